//! Moves refused in a row as servers tell each other of them, in front of the workers
//! (`worker.rs`). Not kept: a record that cannot be read is left out.

use super::BadRecord;
use super::names::Names;
use super::wire::{Pen, Reader};
use crate::read::RefusalNote;
use mainspring_kernel::{TenantId, Timestamp};

const BASE: Timestamp = Timestamp::EPOCH;

/// What the record begins with: an array of one. No record of a worker does.
pub(super) const FIRST: u8 = 0x81;

/// Appends rows of refused moves, the first ones first, as long as the record stays below
/// `bytes_max`; nothing if there are none.
pub fn encode_refusals(notes: &[RefusalNote], bytes_max: usize, out: &mut Vec<u8>) {
    let mut fitting = notes.len();
    while fitting > 0 {
        let before = out.len();
        let pen = &mut Pen::new(out);
        pen.array(1);
        pen.array(fitting as u64); // 0
        notes[..fitting].iter().for_each(|note| write_note(pen, note));
        if out.len() - before <= bytes_max {
            return;
        }
        out.truncate(before);
        fitting /= 2;
    }
}

/// The rows that `bytes` begin with; none, if they begin with something else.
///
/// # Errors
/// If the bytes are no such record.
pub fn decode_refusals(bytes: &[u8]) -> Result<Vec<RefusalNote>, BadRecord> {
    if bytes.first() != Some(&FIRST) {
        return Ok(Vec::new());
    }
    let mut names = Names::default();
    let reader = &mut Reader::new(bytes, 0, &mut names);
    let mut fields = reader.fields()?;
    let notes = reader.field(&mut fields, |reader| reader.list(read_note))?;
    reader.end(fields)?;
    Ok(notes)
}

fn write_note(pen: &mut Pen<'_>, note: &RefusalNote) {
    let RefusalNote { tenant, place, count, since, last_at, taken_at } = note;
    pen.array(6);
    pen.text(tenant.as_str()); // 0
    pen.text(place); // 1
    pen.number(*count); // 2
    pen.instant(*since, BASE); // 3
    pen.instant(*last_at, BASE); // 4
    pen.optional(*taken_at, |pen, at| pen.instant(at, BASE)); // 5
}

fn read_note(reader: &mut Reader<'_, '_>) -> Result<RefusalNote, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let note = RefusalNote {
        tenant: TenantId::stored(reader.field(at, Reader::name)?),
        place: reader.field(at, Reader::text)?.into(),
        count: reader.field(at, Reader::number)?,
        since: reader.field(at, |reader| reader.instant(BASE))?,
        last_at: reader.field(at, |reader| reader.instant(BASE))?,
        taken_at: reader.optional(at, |reader| reader.instant(BASE))?,
    };
    reader.end(fields)?;
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::WorkerNote;
    use crate::record::{decode_workers, encode_workers};
    use mainspring_kernel::WorkerId;

    #[test]
    fn rows_are_told_before_the_workers_and_no_more_than_fit() {
        let note = |n: i64| RefusalNote {
            tenant: TenantId::stored(format!("t{n}").into()),
            place: "/api/v1/internal/jobs/{job_id}/transition".into(),
            count: n.unsigned_abs(),
            since: Timestamp(n),
            last_at: Timestamp(1_790_000_000_000_000),
            taken_at: (n % 2 == 0).then_some(Timestamp(n)),
        };
        let notes: Vec<RefusalNote> = (0..100).map(note).collect();
        let worker = WorkerNote {
            id: WorkerId::stored("w".into()),
            tenant: None,
            types: None,
            queues: None,
            first_seen: Timestamp(1),
            last_seen: Timestamp(2),
            granted: 0,
        };
        for bytes_max in [usize::MAX, 2_000] {
            let mut out = Vec::new();
            encode_refusals(&notes, bytes_max, &mut out);
            let fit = if bytes_max == usize::MAX { 100 } else { 25 };
            assert!(out.len() <= bytes_max);
            encode_workers(std::slice::from_ref(&worker), usize::MAX, &mut out);
            assert_eq!(decode_refusals(&out).unwrap(), notes[..fit]);
            assert_eq!(decode_workers(&out).unwrap(), std::slice::from_ref(&worker));
        }
        let mut alone = Vec::new();
        encode_refusals(&[], usize::MAX, &mut alone);
        encode_workers(std::slice::from_ref(&worker), usize::MAX, &mut alone);
        assert_eq!(decode_refusals(&alone).unwrap(), []);
        assert!(decode_refusals(&[FIRST, 0x82]).is_err());
    }
}
