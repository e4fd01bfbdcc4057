//! What belongs to one attempt: its lease, the report that ended it, the failure it ended with.

use super::BadRecord;
use super::wire::{Pen, Reader, length};
use mainspring_kernel::job::{AcceptedReport, Actor, LeaseToken};
use mainspring_kernel::{Failure, Lease, Timestamp, UserId, WorkerId};

type Read<T> = Result<T, BadRecord>;

/// An actor is the number of its kind, alone or followed by a name.
pub(super) fn write_actor(pen: &mut Pen<'_>, actor: &Actor) {
    match actor {
        Actor::User(user) => {
            pen.array(2);
            pen.number(0u8);
            pen.text(user.as_str());
        }
        Actor::Worker(worker) => {
            pen.array(2);
            pen.number(1u8);
            pen.text(worker.as_str());
        }
        Actor::Reaper => pen.number(2u8),
    }
}

pub(super) fn read_actor(reader: &mut Reader<'_, '_>) -> Read<Actor> {
    let (kind, mut fields) = reader.kind()?;
    let actor = match kind {
        0 => Actor::User(UserId::stored(reader.field(&mut fields, Reader::name)?)),
        1 => Actor::Worker(WorkerId::stored(reader.field(&mut fields, Reader::name)?)),
        2 => Actor::Reaper,
        _ => return Err(reader.bad("unknown kind of actor")),
    };
    reader.end(fields)?;
    Ok(actor)
}

/// A lease; its worker is left out where it is the `holder` that the record names already.
pub(super) fn write_lease(
    pen: &mut Pen<'_>,
    lease: &Lease,
    holder: Option<&WorkerId>,
    base: Timestamp,
) {
    let Lease { fence, secret, worker, granted_at, expires_at, deadline_at, .. } = lease;
    let Lease { settled_at, due_at, holder: whose, .. } = lease;
    let len = length(6, [settled_at.is_some(), due_at.is_some(), whose.is_some()]);
    pen.array(len);
    pen.number(*fence); // 0
    pen.bits(*secret); // 1
    pen.optional((holder != Some(worker)).then(|| worker.as_str()), Pen::text); // 2
    pen.instant(*granted_at, base); // 3
    pen.instant(*expires_at, *granted_at); // 4
    pen.instant(*deadline_at, *granted_at); // 5
    if len > 6 {
        pen.optional(*settled_at, |pen, at| pen.instant(at, *granted_at)); // 6
    }
    if len > 7 {
        pen.optional(*due_at, |pen, at| pen.instant(at, *granted_at)); // 7
    }
    if let Some(whose) = whose {
        pen.text(whose.as_str()); // 8
    }
}

pub(super) fn read_lease(
    reader: &mut Reader<'_, '_>,
    holder: Option<&WorkerId>,
    base: Timestamp,
) -> Read<Box<Lease>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let fence = reader.field(at, Reader::small)?;
    let secret = reader.field(at, Reader::bits)?;
    let worker = match (reader.optional(at, Reader::name)?, holder) {
        (Some(name), _) => WorkerId::stored(name),
        (None, Some(holder)) => holder.clone(),
        (None, None) => return Err(reader.bad("a lease without a worker")),
    };
    let granted_at = reader.field(at, |reader| reader.instant(base))?;
    let lease = Lease {
        fence,
        secret,
        worker,
        granted_at,
        expires_at: reader.field(at, |reader| reader.instant(granted_at))?,
        deadline_at: reader.field(at, |reader| reader.instant(granted_at))?,
        settled_at: reader.optional(at, |reader| reader.instant(granted_at))?,
        due_at: reader.optional(at, |reader| reader.instant(granted_at))?,
        holder: reader.optional(at, Reader::name)?.map(UserId::stored),
    };
    reader.end(fields)?;
    Ok(Box::new(lease))
}

pub(super) fn write_report(pen: &mut Pen<'_>, report: &AcceptedReport) {
    let AcceptedReport { token: LeaseToken { fence, secret }, digest } = report;
    pen.array(3);
    pen.number(*fence); // 0
    pen.bits(*secret); // 1
    pen.bytes(&digest.0); // 2
}

pub(super) fn read_report(reader: &mut Reader<'_, '_>) -> Read<Box<AcceptedReport>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let token = LeaseToken {
        fence: reader.field(at, Reader::small)?,
        secret: reader.field(at, Reader::bits)?,
    };
    let report = AcceptedReport { token, digest: reader.field(at, Reader::digest)? };
    reader.end(fields)?;
    Ok(Box::new(report))
}

pub(super) fn write_failure(pen: &mut Pen<'_>, failure: &Failure) {
    let Failure { code, message, retryable } = failure;
    pen.array(3);
    pen.text(code); // 0
    pen.text(message); // 1
    pen.flag(*retryable); // 2
}

pub(super) fn read_failure(reader: &mut Reader<'_, '_>) -> Read<Failure> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let failure = Failure {
        code: reader.field(at, Reader::code)?,
        message: reader.field(at, Reader::boxed)?,
        retryable: reader.field(at, Reader::flag)?,
    };
    reader.end(fields)?;
    Ok(failure)
}
