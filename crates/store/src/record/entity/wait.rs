//! Waits.

use super::super::BadRecord;
use super::super::course::read_condition;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::wait::{Members, Wait};
use mainspring_kernel::{JobId, Timestamp};

pub(super) fn write_wait(pen: &mut Pen<'_>, wait: &Wait, base: Timestamp) {
    let Wait { condition, run_at, open, members, look_at, looks, cursor } = wait;
    pen.array(7);
    pen.number(condition.number()); // 0
    pen.instant(*run_at, base); // 1
    pen.array(open.len() as u64); // 2
    open.iter().for_each(|job| pen.bits(job.0));
    pen.optional(members.as_ref(), |pen, Members { first, count, ended }| {
        pen.array(3); // 3
        pen.bits(first.0);
        pen.number(*count);
        pen.bytes(ended);
    });
    pen.instant(*look_at, base); // 4
    pen.number(*looks); // 5
    pen.number(*cursor); // 6
}

pub(super) fn read_wait(reader: &mut Reader<'_, '_>, base: Timestamp) -> Result<Wait, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let wait = Wait {
        condition: reader.field(at, read_condition)?,
        run_at: reader.field(at, |reader| reader.instant(base))?,
        open: reader.field(at, |reader| reader.list(|reader| reader.bits().map(JobId)))?,
        members: reader.optional(at, read_members)?,
        look_at: reader.field(at, |reader| reader.instant(base))?,
        looks: reader.field(at, Reader::small)?,
        cursor: reader.field(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(wait)
}

fn read_members(reader: &mut Reader<'_, '_>) -> Result<Members, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let members = Members {
        first: JobId(reader.field(at, Reader::bits)?),
        count: reader.field(at, Reader::small)?,
        ended: reader.field(at, Reader::blob)?,
    };
    reader.end(fields)?;
    Ok(members)
}
