//! What a submission asks for in time and order, and how a job went so far.

use super::BadRecord;
use super::event::{cancel_number, read_cancel_code};
use super::wire::{Pen, Reader};
use mainspring_kernel::job::{After, AfterCondition, Bounds, Course};
use mainspring_kernel::{JobId, Timestamp};

type Read<T> = Result<T, BadRecord>;

/// Where the checkpoint of a job is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// In the record.
    Inside,
    /// Not here: the record only says that there is one.
    Elsewhere,
}

pub(super) fn write_bounds(pen: &mut Pen<'_>, bounds: &Bounds, base: Timestamp) {
    let Bounds { deadline_at, queue_timeout_ms, after } = bounds;
    pen.array(3);
    pen.optional(*deadline_at, |pen, at| pen.instant(at, base)); // 0
    pen.optional(*queue_timeout_ms, Pen::number); // 1
    pen.optional(after.as_ref(), |pen, After { jobs, members, condition }| {
        pen.array(3); // 2
        pen.array(jobs.len() as u64);
        jobs.iter().for_each(|job| pen.bits(job.0));
        pen.number(*members);
        pen.number(condition.number());
    });
}

pub(super) fn read_bounds(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Box<Bounds>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let bounds = Bounds {
        deadline_at: reader.optional(at, |reader| reader.instant(base))?,
        queue_timeout_ms: reader.optional(at, Reader::small)?,
        after: reader.optional(at, read_after)?,
    };
    reader.end(fields)?;
    Ok(Box::new(bounds))
}

fn read_after(reader: &mut Reader<'_, '_>) -> Read<After> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let after = After {
        jobs: reader.field(at, |reader| reader.list(|reader| reader.bits().map(JobId)))?,
        members: reader.field(at, Reader::small)?,
        condition: reader.field(at, read_condition)?,
    };
    reader.end(fields)?;
    Ok(after)
}

pub(super) fn read_condition(reader: &mut Reader<'_, '_>) -> Read<AfterCondition> {
    let number = reader.small()?;
    AfterCondition::of_number(number).ok_or_else(|| reader.bad("unknown condition of a wait"))
}

pub(super) fn write_course(pen: &mut Pen<'_>, course: &Course, place: Checkpoint) {
    let Course { message, checkpoint, is_checkpoint_elsewhere, snoozes, ended_by } = course;
    let is_inside = place == Checkpoint::Inside;
    let is_elsewhere = !is_inside && (checkpoint.is_some() || *is_checkpoint_elsewhere);
    pen.array(5);
    pen.optional(message.as_deref(), Pen::text); // 0
    pen.optional(checkpoint.as_deref().filter(|_| is_inside), Pen::text); // 1
    pen.flag(is_elsewhere); // 2
    pen.number(*snoozes); // 3
    pen.optional(*ended_by, |pen, code| pen.number(cancel_number(code))); // 4
}

pub(super) fn read_course(reader: &mut Reader<'_, '_>) -> Read<Box<Course>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let course = Course {
        message: reader.optional(at, Reader::boxed)?,
        checkpoint: reader.optional(at, Reader::payload)?,
        is_checkpoint_elsewhere: reader.field(at, Reader::flag)?,
        snoozes: reader.field(at, Reader::small)?,
        ended_by: reader.optional(at, read_cancel_code)?,
    };
    reader.end(fields)?;
    Ok(Box::new(course))
}
