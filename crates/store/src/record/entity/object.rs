//! Governed objects.

use super::super::BadRecord;
use super::super::wire::{Fields, Pen, Reader};
use mainspring_kernel::entity::object::{Epistemic, Object, Signals, Status, UnknownType};
use mainspring_kernel::governance::{Action, ObjectType, RiskTier};
use mainspring_kernel::{JobId, Timestamp};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_object(pen: &mut Pen<'_>, object: &Object, base: Timestamp) {
    let Object { object_type, object_id, risk_tier, epistemic, unknown_type, .. } = object;
    let Object { auto_verify_budget, verifies_used, verify_tries, uncertainty_ttl, .. } = object;
    let Object { status, signals, next_action_at, next_action, alarm_at, .. } = object;
    let Object { audit_event_id, parked, .. } = object;
    pen.array(16);
    pen.number(object_type.number()); // 0
    pen.text(object_id); // 1
    pen.number(risk_tier.number()); // 2
    pen.number(epistemic.number()); // 3
    pen.optional(unknown_type.map(UnknownType::number), Pen::number); // 4
    pen.optional(*auto_verify_budget, Pen::number); // 5
    pen.number(*verifies_used); // 6
    pen.number(*verify_tries); // 7
    pen.optional(uncertainty_ttl.as_deref(), Pen::text); // 8
    pen.optional(status.map(Status::number), Pen::number); // 9
    write_signals(pen, signals, base); // 10
    pen.optional(*next_action_at, |pen, at| pen.instant(at, base)); // 11
    pen.optional(next_action.map(Action::number), Pen::number); // 12
    pen.optional(*alarm_at, |pen, at| pen.instant(at, base)); // 13
    pen.optional(audit_event_id.as_deref(), Pen::text); // 14
    pen.array(parked.len() as u64); // 15
    parked.iter().for_each(|job| pen.bits(job.0));
}

fn write_signals(pen: &mut Pen<'_>, signals: &Signals, base: Timestamp) {
    let Signals { reinstate_signal, reinforcement_count, new_evidence_count, .. } = *signals;
    let Signals { last_reinforced_at, stale_since, confidence_millis, .. } = *signals;
    pen.array(6);
    pen.flag(reinstate_signal); // 0
    pen.number(reinforcement_count); // 1
    pen.number(new_evidence_count); // 2
    pen.optional(last_reinforced_at, |pen, at| pen.instant(at, base)); // 3
    pen.optional(stale_since, |pen, at| pen.instant(at, base)); // 4
    pen.optional(confidence_millis, Pen::number); // 5
}

pub(super) fn read_object(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Object> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let object = Object {
        object_type: word(reader, at, ObjectType::of_number)?,
        object_id: reader.field(at, Reader::boxed)?,
        risk_tier: word(reader, at, RiskTier::of_number)?,
        epistemic: word(reader, at, Epistemic::of_number)?,
        unknown_type: maybe_word(reader, at, UnknownType::of_number)?,
        auto_verify_budget: reader.optional(at, Reader::small)?,
        verifies_used: reader.field(at, Reader::small)?,
        verify_tries: reader.field(at, Reader::small)?,
        uncertainty_ttl: reader.optional(at, Reader::boxed)?,
        status: maybe_word(reader, at, Status::of_number)?,
        signals: reader.field(at, |reader| read_signals(reader, base))?,
        next_action_at: reader.optional(at, |reader| reader.instant(base))?,
        next_action: maybe_word(reader, at, Action::of_number)?,
        alarm_at: reader.optional(at, |reader| reader.instant(base))?,
        audit_event_id: reader.optional(at, Reader::boxed)?,
        parked: reader.field(at, |reader| reader.list(|reader| Ok(JobId(reader.bits()?))))?,
    };
    reader.end(fields)?;
    Ok(object)
}

fn read_signals(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Signals> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let signals = Signals {
        reinstate_signal: reader.field(at, Reader::flag)?,
        reinforcement_count: reader.field(at, Reader::small)?,
        new_evidence_count: reader.field(at, Reader::small)?,
        last_reinforced_at: reader.optional(at, |reader| reader.instant(base))?,
        stale_since: reader.optional(at, |reader| reader.instant(base))?,
        confidence_millis: reader.optional(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(signals)
}

fn word<T>(
    reader: &mut Reader<'_, '_>,
    at: &mut Fields,
    of_number: fn(u8) -> Option<T>,
) -> Read<T> {
    let number = reader.field(at, Reader::small)?;
    of_number(number).ok_or_else(|| reader.bad("unknown word of an object"))
}

fn maybe_word<T>(
    reader: &mut Reader<'_, '_>,
    at: &mut Fields,
    of_number: fn(u8) -> Option<T>,
) -> Read<Option<T>> {
    let number = reader.optional(at, Reader::small)?;
    let unknown = || "unknown word of an object";
    number.map(|it| of_number(it).ok_or_else(|| reader.bad(unknown()))).transpose()
}
