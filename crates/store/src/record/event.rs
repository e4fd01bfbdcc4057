//! Events: the number of a kind, then its fields.

use super::BadRecord;
use super::access::{read_token, write_token};
use super::attempt::{
    read_actor, read_failure, read_lease, read_report, write_actor, write_failure, write_lease,
    write_report,
};
use super::entity::{read_entity, read_id, write_entity, write_id};
use super::item::{read_item, read_item_state, write_item, write_item_state};
use super::job::{read_effect, read_job, write_effect, write_job};
use super::names::Names;
use super::registry::{read_queue, read_type, write_queue, write_type};
use super::wire::{Fields, Pen, Reader, length};
use mainspring_kernel::event::{CANCEL_CODES, Change, Hold, HoldCode};
use mainspring_kernel::job::{Actor, ProgressNote};
use mainspring_kernel::{DlqId, Event, JobEvent, JobId, Timestamp, TokenId, WorkerId};

type Read<T> = Result<T, BadRecord>;

/// Numbers of the kinds. Stored for good: append only.
mod kind {
    pub(super) const JOB_SUBMITTED: u8 = 1;
    pub(super) const JOB_MOVED: u8 = 2;
    pub(super) const LEASE_RENEWED: u8 = 3;
    pub(super) const EFFECT_COMMITTED: u8 = 4;
    pub(super) const ITEM_OPENED: u8 = 5;
    pub(super) const ITEM_CHANGED: u8 = 6;
    pub(super) const TYPE_SET: u8 = 7;
    pub(super) const QUEUE_SET: u8 = 8;
    pub(super) const TOKEN_ISSUED: u8 = 9;
    pub(super) const TOKEN_REVOKED: u8 = 10;
    pub(super) const ENTITY_SET: u8 = 11;
    pub(super) const ENTITY_REMOVED: u8 = 12;
}

/// Numbers of the changes. Stored for good: append only.
mod change {
    pub(super) const CLAIMED: u8 = 1;
    pub(super) const SUCCEEDED: u8 = 2;
    pub(super) const RETRY_SCHEDULED: u8 = 3;
    pub(super) const RELEASED: u8 = 4;
    pub(super) const DEAD_LETTERED: u8 = 5;
    pub(super) const DLQ_RECORDED: u8 = 6;
    pub(super) const FAILED: u8 = 7;
    pub(super) const CANCELLED: u8 = 8;
    pub(super) const HASTENED: u8 = 9;
    pub(super) const UNBLOCKED: u8 = 10;
}

/// Appends `event` to `out`. `base` may be any instant, as long as decoding gets the same one; the
/// nearer it is to the event, the smaller the record.
pub fn encode_event(event: &Event, base: Timestamp, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    match event {
        Event::JobSubmitted(job) => {
            pen.array(2);
            pen.number(kind::JOB_SUBMITTED);
            write_job(pen, job, base);
        }
        Event::JobMoved(event) => write_move(pen, event, base),
        Event::LeaseRenewed { job, fence, expires_at, progress_pct, note, settled } => {
            let is_settled = settled.is_some();
            let has = [progress_pct.is_some(), is_settled, is_settled, note.is_some()];
            let len = length(4, has);
            pen.array(len);
            pen.number(kind::LEASE_RENEWED);
            pen.bits(job.0); // 1
            pen.number(*fence); // 2
            pen.instant(*expires_at, base); // 3
            if len > 4 {
                pen.optional(*progress_pct, Pen::number); // 4
            }
            if len > 5 {
                pen.optional(*settled, |pen, (deadline_at, _)| pen.instant(deadline_at, base)); // 5
                pen.optional(*settled, |pen, (_, at)| pen.instant(at, base)); // 6
            }
            if let Some(note) = note {
                write_note(pen, note); // 7
            }
        }
        Event::EffectCommitted { job, effect } => {
            pen.array(3);
            pen.number(kind::EFFECT_COMMITTED);
            pen.bits(job.0); // 1
            write_effect(pen, effect, base); // 2
        }
        Event::ItemOpened(item) => {
            pen.array(2);
            pen.number(kind::ITEM_OPENED);
            write_item(pen, item, base); // 1
        }
        Event::ItemChanged { item, version, at, state } => {
            pen.array(5);
            pen.number(kind::ITEM_CHANGED);
            pen.bits(item.0); // 1
            pen.number(*version); // 2
            pen.instant(*at, base); // 3
            write_item_state(pen, state, *at); // 4
        }
        Event::EntitySet(entity) => {
            pen.array(2);
            pen.number(kind::ENTITY_SET);
            write_entity(pen, entity, base); // 1
        }
        Event::EntityRemoved { entity, version } => {
            pen.array(3);
            pen.number(kind::ENTITY_REMOVED);
            write_id(pen, *entity); // 1
            pen.number(*version); // 2
        }
        Event::TypeSet(spec) => {
            pen.array(2);
            pen.number(kind::TYPE_SET);
            write_type(pen, spec); // 1
        }
        Event::QueueSet(spec) => {
            pen.array(2);
            pen.number(kind::QUEUE_SET);
            write_queue(pen, spec); // 1
        }
        Event::TokenIssued(token) => {
            pen.array(2);
            pen.number(kind::TOKEN_ISSUED);
            write_token(pen, token, base); // 1
        }
        Event::TokenRevoked { token, at } => {
            pen.array(3);
            pen.number(kind::TOKEN_REVOKED);
            pen.bits(token.0); // 1
            pen.instant(*at, base); // 2
        }
    }
}

/// Decodes the event that starts at `offset` of `bytes` and says where the next one starts.
///
/// # Errors
/// If there is no such event.
pub fn decode_event(
    bytes: &[u8],
    offset: usize,
    base: Timestamp,
    names: &mut Names,
) -> Result<(Event, usize), BadRecord> {
    let mut reader = Reader::new(bytes, offset, names);
    let event = read_event(&mut reader, base)?;
    Ok((event, reader.position()))
}

/// When `event` happened, if it says so: a good base for a frame.
pub fn instant_of(event: &Event) -> Option<Timestamp> {
    match event {
        Event::JobSubmitted(job) => Some(job.created_at),
        Event::JobMoved(event) => Some(event.at),
        Event::LeaseRenewed { expires_at, .. } => Some(*expires_at),
        Event::EffectCommitted { effect, .. } => Some(effect.committed_at),
        Event::ItemOpened(item) => Some(item.created_at),
        Event::ItemChanged { at, .. } | Event::TokenRevoked { at, .. } => Some(*at),
        Event::TokenIssued(token) => Some(token.issued_at),
        Event::EntitySet(entity) => Some(entity.updated_at),
        Event::EntityRemoved { .. } | Event::TypeSet(_) | Event::QueueSet(_) => None,
    }
}

fn read_event(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Event> {
    let (number, mut fields) = reader.kind()?;
    let at = &mut fields;
    let event = match u8::try_from(number).unwrap_or(0) {
        kind::JOB_SUBMITTED => {
            Event::JobSubmitted(reader.field(at, |reader| read_job(reader, base))?)
        }
        kind::JOB_MOVED => Event::JobMoved(read_move(reader, at, base)?),
        kind::LEASE_RENEWED => Event::LeaseRenewed {
            job: JobId(reader.field(at, Reader::bits)?),
            fence: reader.field(at, Reader::small)?,
            expires_at: reader.field(at, |reader| reader.instant(base))?,
            progress_pct: reader.optional(at, Reader::small)?,
            settled: {
                let deadline_at = reader.optional(at, |reader| reader.instant(base))?;
                deadline_at.zip(reader.optional(at, |reader| reader.instant(base))?)
            },
            note: reader.optional(at, read_note)?,
        },
        kind::EFFECT_COMMITTED => Event::EffectCommitted {
            job: JobId(reader.field(at, Reader::bits)?),
            effect: reader.field(at, |reader| read_effect(reader, base))?,
        },
        kind::ITEM_OPENED => {
            Event::ItemOpened(Box::new(reader.field(at, |reader| read_item(reader, base))?))
        }
        kind::ITEM_CHANGED => {
            let item = DlqId(reader.field(at, Reader::bits)?);
            let version = reader.field(at, Reader::small)?;
            let when = reader.field(at, |reader| reader.instant(base))?;
            let state = Box::new(reader.field(at, |reader| read_item_state(reader, when))?);
            Event::ItemChanged { item, version, at: when, state }
        }
        kind::TYPE_SET => Event::TypeSet(Box::new(reader.field(at, read_type)?)),
        kind::QUEUE_SET => Event::QueueSet(reader.field(at, read_queue)?),
        kind::TOKEN_ISSUED => {
            Event::TokenIssued(Box::new(reader.field(at, |reader| read_token(reader, base))?))
        }
        kind::TOKEN_REVOKED => Event::TokenRevoked {
            token: TokenId(reader.field(at, Reader::bits)?),
            at: reader.field(at, |reader| reader.instant(base))?,
        },
        kind::ENTITY_SET => {
            Event::EntitySet(Box::new(reader.field(at, |reader| read_entity(reader, base))?))
        }
        kind::ENTITY_REMOVED => Event::EntityRemoved {
            entity: reader.field(at, read_id)?,
            version: reader.field(at, Reader::small)?,
        },
        _ => return Err(reader.bad("unknown kind of event")),
    };
    reader.end(fields)?;
    Ok(event)
}

/// Kind, job, sequence number, instant, actor, change.
fn write_move(pen: &mut Pen<'_>, event: &JobEvent, base: Timestamp) {
    let JobEvent { job, seq, at, actor, change } = event;
    pen.array(6);
    pen.number(kind::JOB_MOVED);
    pen.bits(job.0); // 1
    pen.number(*seq); // 2
    pen.instant(*at, base); // 3
    write_actor(pen, actor); // 4
    write_change(pen, change, holder(actor), *at); // 5
}

fn read_move(reader: &mut Reader<'_, '_>, fields: &mut Fields, base: Timestamp) -> Read<JobEvent> {
    let job = JobId(reader.field(fields, Reader::bits)?);
    let seq = reader.field(fields, Reader::small)?;
    let at = reader.field(fields, |reader| reader.instant(base))?;
    let actor = reader.field(fields, read_actor)?;
    let change = reader.field(fields, |reader| read_change(reader, holder(&actor), at))?;
    Ok(JobEvent { job, seq, at, actor, change })
}

/// The worker that an actor is.
fn holder(actor: &Actor) -> Option<&WorkerId> {
    match actor {
        Actor::Worker(worker) => Some(worker),
        Actor::User(_) | Actor::Reaper => None,
    }
}

fn write_change(pen: &mut Pen<'_>, what: &Change, holder: Option<&WorkerId>, at: Timestamp) {
    match what {
        Change::Claimed(lease) => {
            pen.array(2);
            pen.number(change::CLAIMED);
            write_lease(pen, lease, holder, at); // 1
        }
        Change::Succeeded { result, report } => {
            let len = length(1, [report.is_some(), result.is_some()]);
            pen.array(len);
            pen.number(change::SUCCEEDED);
            if len > 1 {
                pen.optional(report.as_deref(), write_report); // 1
            }
            if let Some(result) = result {
                pen.text(result); // 2
            }
        }
        Change::RetryScheduled { failure, due_at, report } => {
            pen.array(length(3, [report.is_some()]));
            pen.number(change::RETRY_SCHEDULED);
            write_failure(pen, failure); // 1
            pen.instant(*due_at, at); // 2
            if let Some(report) = report {
                write_report(pen, report); // 3
            }
        }
        Change::Released { reason, report, due_at, hold } => {
            let has = [reason.is_some(), due_at.is_some(), hold.is_some(), hold.is_some()];
            let len = length(2, has);
            pen.array(len);
            pen.number(change::RELEASED);
            write_report(pen, report); // 1
            if len > 2 {
                pen.optional(reason.as_deref(), Pen::text); // 2
            }
            if len > 3 {
                pen.optional(*due_at, |pen, due_at| pen.instant(due_at, at)); // 3
            }
            if let Some(Hold { code, until }) = hold {
                pen.number(code.number()); // 4
                pen.instant(*until, at); // 5
            }
        }
        Change::DeadLettered { failure, is_exhausted, report, result } => {
            let len = length(3, [report.is_some(), result.is_some()]);
            pen.array(len);
            pen.number(change::DEAD_LETTERED);
            write_failure(pen, failure); // 1
            pen.flag(*is_exhausted); // 2
            if len > 3 {
                pen.optional(report.as_deref(), write_report); // 3
            }
            if let Some(result) = result {
                pen.text(result); // 4
            }
        }
        Change::DlqRecorded => pen.number(change::DLQ_RECORDED),
        Change::Hastened => pen.number(change::HASTENED),
        Change::Unblocked { run_at } => {
            pen.array(2);
            pen.number(change::UNBLOCKED);
            pen.instant(*run_at, at); // 1
        }
        Change::Failed => pen.number(change::FAILED),
        Change::Cancelled { code, reason } => {
            pen.array(length(2, [reason.is_some()]));
            pen.number(change::CANCELLED);
            pen.number(cancel_number(code)); // 1
            if let Some(reason) = reason {
                pen.text(reason); // 2
            }
        }
    }
}

fn read_change(
    reader: &mut Reader<'_, '_>,
    holder: Option<&WorkerId>,
    base: Timestamp,
) -> Read<Change> {
    let (number, mut fields) = reader.kind()?;
    let at = &mut fields;
    let what = match u8::try_from(number).unwrap_or(0) {
        change::CLAIMED => {
            Change::Claimed(reader.field(at, |reader| read_lease(reader, holder, base))?)
        }
        change::SUCCEEDED => {
            let report = reader.optional(at, read_report)?;
            Change::Succeeded { report, result: reader.optional(at, Reader::payload)? }
        }
        change::RETRY_SCHEDULED => Change::RetryScheduled {
            failure: reader.field(at, read_failure)?,
            due_at: reader.field(at, |reader| reader.instant(base))?,
            report: reader.optional(at, read_report)?,
        },
        change::RELEASED => {
            let report = reader.field(at, read_report)?;
            let reason = reader.optional(at, Reader::boxed)?;
            let due_at = reader.optional(at, |reader| reader.instant(base))?;
            let hold = match reader.optional(at, Reader::small)? {
                Some(code) => Some(Hold {
                    code: HoldCode::of_number(code)
                        .ok_or_else(|| reader.bad("unknown code of a hold"))?,
                    until: reader.field(at, |reader| reader.instant(base))?,
                }),
                None => None,
            };
            Change::Released { report, reason, due_at, hold }
        }
        change::DEAD_LETTERED => Change::DeadLettered {
            failure: reader.field(at, read_failure)?,
            is_exhausted: reader.field(at, Reader::flag)?,
            report: reader.optional(at, read_report)?,
            result: reader.optional(at, Reader::payload)?,
        },
        change::DLQ_RECORDED => Change::DlqRecorded,
        change::HASTENED => Change::Hastened,
        change::UNBLOCKED => {
            Change::Unblocked { run_at: reader.field(at, |reader| reader.instant(base))? }
        }
        change::FAILED => Change::Failed,
        change::CANCELLED => Change::Cancelled {
            code: reader.field(at, read_cancel_code)?,
            reason: reader.optional(at, Reader::boxed)?,
        },
        _ => return Err(reader.bad("unknown kind of change")),
    };
    reader.end(fields)?;
    Ok(what)
}

fn write_note(pen: &mut Pen<'_>, note: &ProgressNote) {
    let ProgressNote { message, checkpoint } = note;
    pen.array(2);
    pen.optional(message.as_deref(), Pen::text); // 0
    pen.optional(checkpoint.as_deref(), Pen::text); // 1
}

fn read_note(reader: &mut Reader<'_, '_>) -> Read<Box<ProgressNote>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let message = reader.optional(at, Reader::boxed)?;
    let note = ProgressNote { message, checkpoint: reader.optional(at, Reader::payload)? };
    reader.end(fields)?;
    Ok(Box::new(note))
}

/// The kernel cancels under few codes; any other is a bug that a journal must not hide.
pub(super) fn cancel_number(code: &str) -> u8 {
    let place = CANCEL_CODES.iter().position(|known| *known == code);
    match place.and_then(|place| u8::try_from(place + 1).ok()) {
        Some(number) => number,
        None => panic!("a cancellation under the unknown code {code}"),
    }
}

pub(super) fn read_cancel_code(reader: &mut Reader<'_, '_>) -> Read<&'static str> {
    let number: usize = reader.small()?;
    let code = number.checked_sub(1).and_then(|place| CANCEL_CODES.get(place));
    code.copied().ok_or_else(|| reader.bad("unknown code of a cancellation"))
}
