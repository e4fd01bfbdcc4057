//! Moves with everything that a stream tells of them: a stretch stands alone, whatever becomes of
//! its jobs.

use super::BadRecord;
use super::names::Names;
use super::transition::{read_transition, write_transition};
use super::wire::{Pen, Reader};
use crate::read::LoggedMove;
use mainspring_kernel::{JobId, JobType, QueueName, TenantId, Timestamp, UserId};

/// Appends a stretch of moves, whose positions follow each other.
pub fn encode_moves(moves: &[LoggedMove], out: &mut Vec<u8>) {
    write_moves(&mut Pen::new(out), moves);
}

pub(super) fn write_moves(pen: &mut Pen<'_>, moves: &[LoggedMove]) {
    pen.array(2);
    pen.number(moves.first().map_or(0, |first| first.position)); // 0
    pen.array(moves.len() as u64); // 1
    for LoggedMove {
        position: _,
        job,
        tenant,
        user,
        job_type,
        queue,
        trace_id,
        created_at,
        run_at,
        transition,
    } in moves
    {
        pen.array(9);
        pen.bits(job.0); // 0
        pen.text(tenant.as_str()); // 1
        pen.text(user.as_str()); // 2
        pen.text(job_type.as_str()); // 3
        pen.text(queue.as_str()); // 4
        // What follows from the job's id is not written.
        pen.optional((**trace_id != *job.trace_id()).then_some(&**trace_id), Pen::text); // 5
        pen.instant(*created_at, Timestamp::EPOCH); // 6
        pen.instant(*run_at, *created_at); // 7
        write_transition(pen, transition, *created_at); // 8
    }
}

/// Where a stretch begins.
///
/// # Errors
/// If the bytes are no such stretch.
pub fn first_of_moves(bytes: &[u8]) -> Result<u64, BadRecord> {
    let mut names = Names::default();
    let reader = &mut Reader::new(bytes, 0, &mut names);
    let mut fields = reader.fields()?;
    reader.field(&mut fields, Reader::number)
}

/// The moves of a stretch, in order.
///
/// # Errors
/// If the bytes are no such stretch.
pub fn decode_moves(bytes: &[u8]) -> Result<Vec<LoggedMove>, BadRecord> {
    let mut names = Names::default();
    read_moves(&mut Reader::new(bytes, 0, &mut names))
}

pub(super) fn read_moves(reader: &mut Reader<'_, '_>) -> Result<Vec<LoggedMove>, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let mut position = reader.field(at, Reader::number)?;
    let moves = reader.field(at, |reader| {
        reader.list(|reader| {
            let read = read_move(reader, position);
            position = position.wrapping_add(1);
            read
        })
    })?;
    reader.end(fields)?;
    Ok(moves)
}

fn read_move(reader: &mut Reader<'_, '_>, position: u64) -> Result<LoggedMove, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let job = JobId(reader.field(at, Reader::bits)?);
    let tenant = TenantId::stored(reader.field(at, Reader::name)?);
    let user = UserId::stored(reader.field(at, Reader::name)?);
    let job_type = JobType::stored(reader.field(at, Reader::name)?);
    let queue = QueueName::stored(reader.field(at, Reader::name)?);
    let trace_id = reader.optional(at, Reader::boxed)?;
    let created_at = reader.field(at, |reader| reader.instant(Timestamp::EPOCH))?;
    let run_at = reader.field(at, |reader| reader.instant(created_at))?;
    let transition = reader.field(at, |reader| read_transition(reader, created_at))?;
    reader.end(fields)?;
    Ok(LoggedMove {
        position,
        job,
        tenant,
        user,
        job_type,
        queue,
        trace_id: trace_id.unwrap_or_else(|| job.trace_id().into()),
        created_at,
        run_at,
        transition,
    })
}
