//! Beacons.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::beacon::Beacon;
use mainspring_kernel::{JobType, Timestamp};

pub(super) fn write_beacon(pen: &mut Pen<'_>, beacon: &Beacon, base: Timestamp) {
    let Beacon { job_type, every_ms, next_at, fired, missed } = beacon;
    pen.array(5);
    pen.text(job_type.as_str()); // 0
    pen.number(*every_ms); // 1
    pen.optional(*next_at, |pen, at| pen.instant(at, base)); // 2
    pen.number(*fired); // 3
    pen.number(*missed); // 4
}

pub(super) fn read_beacon(
    reader: &mut Reader<'_, '_>,
    base: Timestamp,
) -> Result<Beacon, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let beacon = Beacon {
        job_type: JobType::stored(reader.field(at, Reader::name)?),
        every_ms: reader.field(at, Reader::number)?,
        next_at: reader.optional(at, |reader| reader.instant(base))?,
        fired: reader.field(at, Reader::small)?,
        missed: reader.field(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(beacon)
}
