//! The audit trail: its lines, and where it ends.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::audit::{AuditEntry, AuditHead, AuditNote, Fate, Hash};
use mainspring_kernel::governance::RiskTier;
use mainspring_kernel::{Timestamp, TokenId, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_head(pen: &mut Pen<'_>, head: &AuditHead) {
    let AuditHead { seq, hash, at, day, changes, denials } = *head;
    pen.array(6);
    pen.number(seq); // 0
    pen.bytes(&hash); // 1
    pen.instant(at, Timestamp::EPOCH); // 2
    pen.instant(Timestamp(day), Timestamp::EPOCH); // 3
    pen.number(changes); // 4
    pen.number(denials); // 5
}

pub(super) fn read_head(reader: &mut Reader<'_, '_>) -> Read<AuditHead> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let head = AuditHead {
        seq: reader.field(at, Reader::number)?,
        hash: reader.field(at, read_hash)?,
        at: reader.field(at, |reader| reader.instant(Timestamp::EPOCH))?,
        day: reader.field(at, |reader| reader.instant(Timestamp::EPOCH))?.0,
        changes: reader.field(at, Reader::small)?,
        denials: reader.field(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(head)
}

pub(super) fn write_entry(pen: &mut Pen<'_>, entry: &AuditEntry, base: Timestamp) {
    let AuditEntry { seq, at, last_at, keep_until, note, prev_hash, hash } = entry;
    pen.array(7);
    pen.number(*seq); // 0
    pen.instant(*at, base); // 1
    pen.instant(*last_at, base); // 2
    pen.instant(*keep_until, base); // 3
    write_note(pen, note); // 4
    pen.bytes(prev_hash); // 5
    pen.bytes(hash); // 6
}

fn write_note(pen: &mut Pen<'_>, note: &AuditNote) {
    let AuditNote { fate, user, token, action, object_type, object_id, .. } = note;
    let AuditNote { before, after, reason, evidence_refs, trace_id, .. } = note;
    let AuditNote { risk_tier, decision_trace_id, .. } = note;
    pen.array(13);
    pen.flag(*fate == Fate::Denied); // 0
    pen.text(user.as_str()); // 1
    pen.optional(token.map(|token| token.0), Pen::bits); // 2
    pen.text(action); // 3
    pen.text(object_type); // 4
    pen.text(object_id); // 5
    pen.optional(before.as_deref(), Pen::text); // 6
    pen.optional(after.as_deref(), Pen::text); // 7
    pen.optional(reason.as_deref(), Pen::text); // 8
    pen.array(evidence_refs.len() as u64); // 9
    evidence_refs.iter().for_each(|text| pen.text(text));
    pen.optional(trace_id.as_deref(), Pen::text); // 10
    pen.optional(risk_tier.map(RiskTier::number), Pen::number); // 11
    pen.optional(decision_trace_id.as_deref(), Pen::text); // 12
}

pub(super) fn read_entry(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<AuditEntry> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let entry = AuditEntry {
        seq: reader.field(at, Reader::number)?,
        at: reader.field(at, |reader| reader.instant(base))?,
        last_at: reader.field(at, |reader| reader.instant(base))?,
        keep_until: reader.field(at, |reader| reader.instant(base))?,
        note: reader.field(at, read_note)?,
        prev_hash: reader.field(at, read_hash)?,
        hash: reader.field(at, read_hash)?,
    };
    reader.end(fields)?;
    Ok(entry)
}

fn read_note(reader: &mut Reader<'_, '_>) -> Read<AuditNote> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let note = AuditNote {
        fate: if reader.field(at, Reader::flag)? { Fate::Denied } else { Fate::Done },
        user: UserId::stored(reader.field(at, Reader::name)?),
        token: reader.optional(at, Reader::bits)?.map(TokenId),
        action: reader.field(at, Reader::boxed)?,
        object_type: reader.field(at, Reader::boxed)?,
        object_id: reader.field(at, Reader::boxed)?,
        before: reader.optional(at, Reader::boxed)?,
        after: reader.optional(at, Reader::boxed)?,
        reason: reader.optional(at, Reader::boxed)?,
        evidence_refs: reader.field(at, |reader| reader.list(Reader::boxed))?,
        trace_id: reader.optional(at, Reader::boxed)?,
        risk_tier: match reader.optional(at, Reader::small)? {
            Some(number) => {
                Some(RiskTier::of_number(number).ok_or_else(|| reader.bad("unknown risk tier"))?)
            }
            None => None,
        },
        decision_trace_id: reader.optional(at, Reader::boxed)?,
    };
    reader.end(fields)?;
    Ok(note)
}

fn read_hash(reader: &mut Reader<'_, '_>) -> Read<Hash> {
    reader.exactly()
}
