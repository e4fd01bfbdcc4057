//! Jobs and their parts. Positions are documented where they are written; reading follows the same
//! order.

use super::BadRecord;
use super::attempt::{
    read_failure, read_lease, read_report, write_failure, write_lease, write_report,
};
use super::course::{Checkpoint, read_bounds, read_course, write_bounds, write_course};
use super::wire::{Pen, Reader, length};
use mainspring_kernel::entity::{EntityId, Kind};
use mainspring_kernel::flow::LimitKeys;
use mainspring_kernel::job::{Effect, EffectTotals, Extras, Idempotency, LastFailure, StateName};
use mainspring_kernel::{
    DlqId, Job, JobId, JobType, QueueName, State, TenantId, Timestamp, UserId,
};

type Read<T> = Result<T, BadRecord>;

/// The stored number of a state. Stored for good: append only.
pub(super) fn state_number(state: StateName) -> u8 {
    match state {
        StateName::Queued => 0,
        StateName::Running => 1,
        StateName::Retrying => 2,
        StateName::DlqPending => 3,
        StateName::DlqRecorded => 4,
        StateName::Succeeded => 5,
        StateName::Failed => 6,
        StateName::Cancelled => 7,
    }
}

pub(super) fn read_state_name(reader: &mut Reader<'_, '_>) -> Read<StateName> {
    let number = reader.number()?;
    let named = StateName::ALL.into_iter().find(|state| u64::from(state_number(*state)) == number);
    named.ok_or_else(|| reader.bad("unknown state"))
}

pub(super) fn write_job(pen: &mut Pen<'_>, job: &Job, base: Timestamp) {
    let Job {
        id,
        tenant,
        user,
        job_type,
        queue,
        payload,
        priority,
        max_retries,
        retry_count,
        timeout_ms,
        seq,
        fence,
        created_at,
        updated_at,
        run_at,
        started_at,
        trace,
        idempotency,
        last_failure,
        last_report,
        extras,
        state,
    } = job;
    let rare = [
        started_at.is_some(),
        trace.is_some(),
        idempotency.is_some(),
        last_failure.is_some(),
        last_report.is_some(),
        extras.is_some(),
    ];
    let len = length(16, rare);
    pen.array(len);
    pen.bits(id.0); // 0
    pen.text(tenant.as_str()); // 1
    pen.text(user.as_str()); // 2
    pen.text(job_type.as_str()); // 3
    pen.text(queue.as_str()); // 4
    pen.text(payload); // 5
    pen.instant(*created_at, base); // 6
    pen.instant(*updated_at, *created_at); // 7
    pen.instant(*run_at, *created_at); // 8
    pen.number(*priority); // 9
    pen.number(*max_retries); // 10
    pen.number(*timeout_ms); // 11
    write_state(pen, state, *created_at); // 12
    pen.number(*seq); // 13
    pen.number(*retry_count); // 14
    pen.number(*fence); // 15
    let mut left = len - 16;
    let mut is_left = || {
        let is_left = left > 0;
        left = left.saturating_sub(1);
        is_left
    };
    if is_left() {
        pen.optional(*started_at, |pen, at| pen.instant(at, *created_at)); // 16
    }
    if is_left() {
        pen.optional(trace.as_deref(), Pen::text); // 17
    }
    if is_left() {
        pen.optional(idempotency.as_deref(), write_idempotency); // 18
    }
    if is_left() {
        pen.optional(last_failure.as_deref(), |pen, it| {
            write_last_failure(pen, it, *created_at); // 19
        });
    }
    if is_left() {
        pen.optional(last_report.as_deref(), write_report); // 20
    }
    if is_left() {
        pen.optional(extras.as_deref(), |pen, it| write_extras(pen, it, *created_at)); // 21
    }
}

/// The owner of a job, which stands before everything that can be long.
pub(super) fn read_owner(reader: &mut Reader<'_, '_>) -> Read<(TenantId, UserId)> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    reader.field(at, Reader::bits)?;
    let tenant = TenantId::stored(reader.field(at, Reader::name)?);
    Ok((tenant, UserId::stored(reader.field(at, Reader::name)?)))
}

pub(super) fn read_job(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Box<Job>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let id = JobId(reader.field(at, Reader::bits)?);
    let tenant = TenantId::stored(reader.field(at, Reader::name)?);
    let user = UserId::stored(reader.field(at, Reader::name)?);
    let job_type = JobType::stored(reader.field(at, Reader::name)?);
    let queue = QueueName::stored(reader.field(at, Reader::name)?);
    let payload = reader.field(at, Reader::payload)?;
    let created_at = reader.field(at, |reader| reader.instant(base))?;
    let job = Box::new(Job {
        id,
        tenant,
        user,
        job_type,
        queue,
        payload,
        created_at,
        updated_at: reader.field(at, |reader| reader.instant(created_at))?,
        run_at: reader.field(at, |reader| reader.instant(created_at))?,
        priority: reader.field(at, Reader::small)?,
        max_retries: reader.field(at, Reader::small)?,
        timeout_ms: reader.field(at, Reader::small)?,
        state: reader.field(at, |reader| read_state(reader, created_at))?,
        seq: reader.field(at, Reader::small)?,
        retry_count: reader.field(at, Reader::small)?,
        fence: reader.field(at, Reader::small)?,
        started_at: reader.optional(at, |reader| reader.instant(created_at))?,
        trace: reader.optional(at, Reader::boxed)?,
        idempotency: reader.optional(at, read_idempotency)?,
        last_failure: reader.optional(at, |reader| read_last_failure(reader, created_at))?,
        last_report: reader.optional(at, read_report)?,
        extras: reader.optional(at, |reader| read_extras(reader, created_at))?,
    });
    reader.end(fields)?;
    Ok(job)
}

/// A state is the number of its name, alone or followed by its data.
pub(super) fn write_state(pen: &mut Pen<'_>, state: &State, base: Timestamp) {
    let number = state_number(state.name());
    match state {
        State::Queued | State::DlqPending | State::DlqRecorded => pen.number(number),
        State::Running(lease) => {
            pen.array(2);
            pen.number(number);
            write_lease(pen, lease, None, base);
        }
        State::Retrying { due_at: at }
        | State::Failed { finished_at: at }
        | State::Cancelled { finished_at: at } => {
            pen.array(2);
            pen.number(number);
            pen.instant(*at, base);
        }
        State::Succeeded { finished_at, result } => {
            pen.array(length(2, [result.is_some()]));
            pen.number(number);
            pen.instant(*finished_at, base);
            if let Some(result) = result {
                pen.text(result);
            }
        }
    }
}

pub(super) fn read_state(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<State> {
    let (number, mut fields) = reader.kind()?;
    let at = &mut fields;
    let state = match number {
        0 => State::Queued,
        1 => State::Running(reader.field(at, |reader| read_lease(reader, None, base))?),
        2 => State::Retrying { due_at: reader.field(at, |reader| reader.instant(base))? },
        3 => State::DlqPending,
        4 => State::DlqRecorded,
        5 => State::Succeeded {
            finished_at: reader.field(at, |reader| reader.instant(base))?,
            result: reader.optional(at, Reader::payload)?,
        },
        6 => State::Failed { finished_at: reader.field(at, |reader| reader.instant(base))? },
        7 => State::Cancelled { finished_at: reader.field(at, |reader| reader.instant(base))? },
        _ => return Err(reader.bad("unknown state")),
    };
    reader.end(fields)?;
    Ok(state)
}

pub(super) fn write_last_failure(pen: &mut Pen<'_>, last_failure: &LastFailure, base: Timestamp) {
    let LastFailure { failure, at, is_exhausted, result } = last_failure;
    pen.array(length(3, [result.is_some()]));
    write_failure(pen, failure); // 0
    pen.instant(*at, base); // 1
    pen.flag(*is_exhausted); // 2
    if let Some(result) = result {
        pen.text(result); // 3
    }
}

pub(super) fn read_last_failure(
    reader: &mut Reader<'_, '_>,
    base: Timestamp,
) -> Read<Box<LastFailure>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let last_failure = LastFailure {
        failure: reader.field(at, read_failure)?,
        at: reader.field(at, |reader| reader.instant(base))?,
        is_exhausted: reader.field(at, Reader::flag)?,
        result: reader.optional(at, Reader::payload)?,
    };
    reader.end(fields)?;
    Ok(Box::new(last_failure))
}

fn write_idempotency(pen: &mut Pen<'_>, key: &Idempotency) {
    let Idempotency { hash, scope, key, fingerprint, window_secs } = key;
    let len = length(3, [fingerprint.is_some(), window_secs.is_some()]);
    pen.array(len);
    pen.bytes(&hash.0); // 0
    pen.text(scope); // 1
    pen.text(key); // 2
    if len > 3 {
        pen.optional(fingerprint.as_ref(), |pen, it| pen.bytes(&it.0)); // 3
    }
    if len > 4 {
        pen.optional(*window_secs, Pen::number); // 4
    }
}

fn read_idempotency(reader: &mut Reader<'_, '_>) -> Read<Box<Idempotency>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let key = Idempotency {
        hash: reader.field(at, Reader::digest)?,
        scope: reader.field(at, Reader::boxed)?,
        key: reader.field(at, Reader::boxed)?,
        fingerprint: reader.optional(at, Reader::digest)?,
        window_secs: reader.optional(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(Box::new(key))
}

fn write_extras(pen: &mut Pen<'_>, extras: &Extras, base: Timestamp) {
    // A job that travels whole has all its effects at hand.
    let Extras {
        parent,
        source_dlq,
        subject,
        labels,
        expires_at,
        effects,
        effects_elsewhere: _,
        progress_pct,
        alias,
        plan,
        traceparent,
        bounds,
        course,
        limit_keys,
    } = extras;
    let has = [
        alias.is_some(),
        plan.is_some(),
        false,
        false,
        traceparent.is_some(),
        limit_keys.is_some(),
        bounds.is_some(),
        course.is_some(),
    ];
    let len = length(7, has);
    pen.array(len);
    pen.optional(*parent, |pen, id| pen.bits(id.0)); // 0
    pen.optional(*source_dlq, |pen, id| pen.bits(id.0)); // 1
    pen.optional(subject.as_deref(), Pen::text); // 2
    pen.array(labels.len() as u64 * 2); // 3: name, value, name, value...
    for (name, value) in labels {
        pen.text(name);
        pen.text(value);
    }
    pen.optional(*expires_at, |pen, at| pen.instant(at, base)); // 4
    pen.array(effects.len() as u64); // 5
    for effect in effects {
        write_effect(pen, effect, base);
    }
    pen.optional(*progress_pct, Pen::number); // 6
    if len > 7 {
        pen.optional(alias.as_deref(), write_idempotency); // 7
    }
    if len > 8 {
        pen.optional(plan.as_ref(), |pen, plan| pen.bits(plan.bits)); // 8
    }
    if len > 9 {
        pen.null(); // 9: given out
        pen.null(); // 10: given out
        pen.optional(traceparent.as_deref(), Pen::text); // 11
    }
    if len > 12 {
        pen.optional(limit_keys.as_deref(), write_limit_keys); // 12
    }
    if len > 13 {
        pen.optional(bounds.as_deref(), |pen, it| write_bounds(pen, it, base)); // 13
    }
    if let Some(course) = course {
        write_course(pen, course, Checkpoint::Inside); // 14
    }
}

fn read_extras(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Box<Extras>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let extras = Extras {
        parent: reader.optional(at, Reader::bits)?.map(JobId),
        source_dlq: reader.optional(at, Reader::bits)?.map(DlqId),
        subject: reader.optional(at, Reader::boxed)?,
        labels: reader.optional(at, read_labels)?.unwrap_or_default(),
        expires_at: reader.optional(at, |reader| reader.instant(base))?,
        effects: reader
            .optional(at, |reader| reader.list(|reader| read_effect(reader, base)))?
            .unwrap_or_default(),
        effects_elsewhere: EffectTotals::default(),
        progress_pct: reader.optional(at, Reader::small)?,
        alias: reader.optional(at, read_idempotency)?,
        plan: reader
            .optional(at, Reader::bits)?
            .map(|bits| EntityId { kind: Kind::Schedule, bits }),
        traceparent: {
            for _ in 9..11 {
                reader.optional(at, |reader| Err::<(), _>(reader.bad("of another version")))?;
            }
            reader.optional(at, Reader::boxed)?
        },
        limit_keys: reader.optional(at, read_limit_keys)?,
        bounds: reader.optional(at, |reader| read_bounds(reader, base))?,
        course: reader.optional(at, read_course)?,
    };
    reader.end(fields)?;
    Ok(Box::new(extras))
}

fn write_limit_keys(pen: &mut Pen<'_>, keys: &LimitKeys) {
    let LimitKeys { concurrency, rate } = keys;
    pen.array(2);
    pen.optional(concurrency.as_deref(), Pen::text);
    pen.optional(rate.as_deref(), Pen::text);
}

fn read_limit_keys(reader: &mut Reader<'_, '_>) -> Read<Box<LimitKeys>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let keys = LimitKeys {
        concurrency: reader.optional(at, Reader::boxed)?,
        rate: reader.optional(at, Reader::boxed)?,
    };
    reader.end(fields)?;
    Ok(Box::new(keys))
}

type Label = (Box<str>, Box<str>);

fn read_labels(reader: &mut Reader<'_, '_>) -> Read<Vec<Label>> {
    let mut texts = reader.list(Reader::boxed)?.into_iter();
    let mut labels = Vec::with_capacity(texts.len() / 2);
    while let Some(name) = texts.next() {
        let value = texts.next().ok_or_else(|| reader.bad("a label without a value"))?;
        labels.push((name, value));
    }
    Ok(labels)
}

pub(super) fn write_effect(pen: &mut Pen<'_>, effect: &Effect, base: Timestamp) {
    let Effect { name, value, committed_at } = effect;
    pen.array(3);
    pen.text(name); // 0
    pen.text(value); // 1
    pen.instant(*committed_at, base); // 2
}

pub(super) fn read_effect(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Effect> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let effect = Effect {
        name: reader.field(at, Reader::boxed)?,
        value: reader.field(at, Reader::payload)?,
        committed_at: reader.field(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(effect)
}
