//! Lines of a job's history.

use super::BadRecord;
use super::attempt::{read_actor, write_actor};
use super::job::{read_state_name, state_number};
use super::wire::{Pen, Reader, length};
use mainspring_kernel::evolve::{Reason, Transition};
use mainspring_kernel::{Timestamp, event};
use std::borrow::Cow;

type Read<T> = Result<T, BadRecord>;

/// Codes that most reasons bear; read back without allocating.
const CODES: [&str; 7] = [
    event::JOB_CANCELLED,
    event::TASK_EXPIRED,
    event::TASK_TIMEOUT,
    event::TASK_LEASE_LOST,
    event::TASK_RETRY_EXHAUSTED,
    event::TASK_EXECUTION_FAILED,
    "RELEASED",
];

pub(super) fn write_history(pen: &mut Pen<'_>, history: &[Transition], base: Timestamp) {
    pen.array(history.len() as u64);
    let mut before = base;
    for line in history {
        write_transition(pen, line, before);
        before = line.at;
    }
}

pub(super) fn read_history(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Vec<Transition>> {
    let mut before = base;
    reader.list(|reader| {
        let line = read_transition(reader, before)?;
        before = line.at;
        Ok(line)
    })
}

pub(super) fn write_transition(pen: &mut Pen<'_>, line: &Transition, base: Timestamp) {
    let Transition { seq, from, to, at, attempt, reason, actor } = line;
    let len = length(5, [from.is_some(), reason.is_some()]);
    pen.array(len);
    pen.number(*seq); // 0
    pen.number(state_number(*to)); // 1
    pen.instant(*at, base); // 2
    pen.number(*attempt); // 3
    write_actor(pen, actor); // 4
    if len > 5 {
        pen.optional(*from, |pen, from| pen.number(state_number(from))); // 5
    }
    if let Some(Reason { code, message }) = reason.as_deref() {
        pen.array(2); // 6
        pen.text(code);
        pen.text(message);
    }
}

pub(super) fn read_transition(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Transition> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let line = Transition {
        seq: reader.field(at, Reader::small)?,
        to: reader.field(at, read_state_name)?,
        at: reader.field(at, |reader| reader.instant(base))?,
        attempt: reader.field(at, Reader::small)?,
        actor: reader.field(at, read_actor)?,
        from: reader.optional(at, read_state_name)?,
        reason: reader.optional(at, read_reason)?,
    };
    reader.end(fields)?;
    Ok(line)
}

fn read_reason(reader: &mut Reader<'_, '_>) -> Read<Box<Reason>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let code = reader.field(at, Reader::text)?;
    let code = match CODES.into_iter().find(|known| *known == code) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(code.to_string()),
    };
    let reason = Reason { code, message: reader.field(at, Reader::boxed)? };
    reader.end(fields)?;
    Ok(Box::new(reason))
}
