//! Workers as servers tell each other of them. Not kept: a record that cannot be read is left out.

use super::BadRecord;
use super::names::Names;
use super::refusal;
use super::wire::{Pen, Reader};
use crate::read::WorkerNote;
use mainspring_kernel::{JobType, QueueName, TenantId, Timestamp, WorkerId};

const BASE: Timestamp = Timestamp::EPOCH;

/// Appends workers, the first ones first, as long as the record stays below `bytes_max`; how many.
pub fn encode_workers(notes: &[WorkerNote], bytes_max: usize, out: &mut Vec<u8>) -> usize {
    for (written, note) in notes.iter().enumerate() {
        let before = out.len();
        write_note(&mut Pen::new(out), note);
        if out.len() > bytes_max {
            out.truncate(before);
            return written;
        }
    }
    notes.len()
}

/// The workers that fill `bytes`, behind the rows of refused moves that may come first.
///
/// # Errors
/// If the bytes are no such record.
pub fn decode_workers(bytes: &[u8]) -> Result<Vec<WorkerNote>, BadRecord> {
    let (mut notes, mut names, mut offset) = (Vec::new(), Names::default(), 0);
    while offset < bytes.len() {
        let reader = &mut Reader::new(bytes, offset, &mut names);
        if offset == 0 && bytes[0] == refusal::FIRST {
            let fields = reader.fields()?;
            reader.end(fields)?;
        } else {
            notes.push(read_note(reader)?);
        }
        offset = reader.position();
    }
    Ok(notes)
}

fn write_note(pen: &mut Pen<'_>, note: &WorkerNote) {
    let WorkerNote { id, tenant, types, queues, first_seen, last_seen, granted } = note;
    pen.array(7);
    pen.text(id.as_str()); // 0
    pen.optional(tenant.as_ref(), |pen, it| pen.text(it.as_str())); // 1
    pen.optional(types.as_ref(), |pen, all| {
        pen.array(all.len() as u64); // 2
        all.iter().for_each(|it| pen.text(it.as_str()));
    });
    pen.optional(queues.as_ref(), |pen, all| {
        pen.array(all.len() as u64); // 3
        all.iter().for_each(|it| pen.text(it.as_str()));
    });
    pen.instant(*first_seen, BASE); // 4
    pen.instant(*last_seen, BASE); // 5
    pen.number(*granted); // 6
}

fn read_note(reader: &mut Reader<'_, '_>) -> Result<WorkerNote, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let texts = |reader: &mut Reader<'_, '_>| reader.list(Reader::name);
    let note = WorkerNote {
        id: WorkerId::stored(reader.field(at, Reader::name)?),
        tenant: reader.optional(at, Reader::name)?.map(TenantId::stored),
        types: reader
            .optional(at, texts)?
            .map(|all| all.into_iter().map(JobType::stored).collect()),
        queues: reader
            .optional(at, texts)?
            .map(|all| all.into_iter().map(QueueName::stored).collect()),
        first_seen: reader.field(at, |reader| reader.instant(BASE))?,
        last_seen: reader.field(at, |reader| reader.instant(BASE))?,
        granted: reader.field(at, Reader::number)?,
    };
    reader.end(fields)?;
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_told_of_as_they_are_and_no_more_than_fit() {
        let note = |n: usize| WorkerNote {
            id: WorkerId::stored(format!("w{n}").into()),
            tenant: n.is_multiple_of(2).then(|| TenantId::stored("acme".into())),
            types: n.is_multiple_of(3).then(|| vec![JobType::stored("mill".into())]),
            queues: n.is_multiple_of(5).then(Vec::new),
            first_seen: Timestamp(n as i64),
            last_seen: Timestamp(1_790_000_000_000_000),
            granted: n as u64,
        };
        let notes: Vec<WorkerNote> = (0..100).map(note).collect();
        let mut out = Vec::new();
        assert_eq!(encode_workers(&notes, usize::MAX, &mut out), 100);
        assert_eq!(decode_workers(&out).unwrap(), notes);
        let mut some = Vec::new();
        let fit = encode_workers(&notes, 500, &mut some);
        assert!((5..50).contains(&fit) && some.len() <= 500, "{fit} in {}", some.len());
        assert_eq!(decode_workers(&some).unwrap(), notes[..fit]);
        assert!(decode_workers(&some[..some.len() - 1]).is_err());
        assert_eq!(decode_workers(&[]).unwrap(), []);
    }
}
