//! Dead-letter items.

use super::BadRecord;
use super::job::{read_job, write_job};
use super::wire::{Pen, Reader, length};
use mainspring_kernel::dlq::Proposal;
use mainspring_kernel::{DlqId, DlqItem, DlqState, JobId, Timestamp, TokenId, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_item(pen: &mut Pen<'_>, item: &DlqItem, base: Timestamp) {
    let DlqItem { id, job, created_at, updated_at, version, state, first_asked_at } = item;
    pen.array(length(6, [first_asked_at.is_some()]));
    pen.bits(id.0); // 0
    pen.instant(*created_at, base); // 1
    pen.instant(*updated_at, *created_at); // 2
    pen.number(*version); // 3
    write_item_state(pen, state, *created_at); // 4
    write_job(pen, job, *created_at); // 5
    if let Some(at) = first_asked_at {
        pen.instant(*at, *created_at); // 6
    }
}

pub(super) fn read_item(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<DlqItem> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let id = DlqId(reader.field(at, Reader::bits)?);
    let created_at = reader.field(at, |reader| reader.instant(base))?;
    let item = DlqItem {
        id,
        created_at,
        updated_at: reader.field(at, |reader| reader.instant(created_at))?,
        version: reader.field(at, Reader::small)?,
        state: reader.field(at, |reader| read_item_state(reader, created_at))?,
        job: reader.field(at, |reader| read_job(reader, created_at))?,
        first_asked_at: reader.optional(at, |reader| reader.instant(created_at))?,
    };
    reader.end(fields)?;
    Ok(item)
}

/// The number of its kind, alone or followed by its data.
pub(super) fn write_item_state(pen: &mut Pen<'_>, state: &DlqState, base: Timestamp) {
    match state {
        DlqState::Open => pen.number(0u8),
        DlqState::Requeued { job, by, key } => {
            pen.array(length(3, [key.is_some()]));
            pen.number(1u8);
            pen.bits(job.0); // 1
            pen.text(by.as_str()); // 2
            if let Some(key) = key {
                pen.text(key); // 3
            }
        }
        DlqState::DiscardRequested(proposal) => {
            pen.array(2);
            pen.number(2u8);
            write_proposal(pen, proposal, base); // 1
        }
        DlqState::Discarded { proposal, approved_by } => {
            pen.array(3);
            pen.number(3u8);
            write_proposal(pen, proposal, base); // 1
            pen.text(approved_by.as_str()); // 2
        }
        DlqState::GlassBroken(proposal) => {
            pen.array(2);
            pen.number(4u8);
            write_proposal(pen, proposal, base); // 1
        }
    }
}

pub(super) fn read_item_state(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<DlqState> {
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let state = match kind {
        0 => DlqState::Open,
        1 => DlqState::Requeued {
            job: JobId(reader.field(at, Reader::bits)?),
            by: UserId::stored(reader.field(at, Reader::name)?),
            key: reader.optional(at, Reader::boxed)?,
        },
        2 => DlqState::DiscardRequested(reader.field(at, |reader| read_proposal(reader, base))?),
        3 => DlqState::Discarded {
            proposal: reader.field(at, |reader| read_proposal(reader, base))?,
            approved_by: UserId::stored(reader.field(at, Reader::name)?),
        },
        4 => DlqState::GlassBroken(reader.field(at, |reader| read_proposal(reader, base))?),
        _ => return Err(reader.bad("unknown state of a dead-letter item")),
    };
    reader.end(fields)?;
    Ok(state)
}

fn write_proposal(pen: &mut Pen<'_>, proposal: &Proposal, base: Timestamp) {
    let Proposal { by, reason, at, token } = proposal;
    pen.array(length(3, [token.is_some()]));
    pen.text(by.as_str()); // 0
    pen.text(reason); // 1
    pen.instant(*at, base); // 2
    if let Some(token) = token {
        pen.bits(token.0); // 3
    }
}

fn read_proposal(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Proposal> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let proposal = Proposal {
        by: UserId::stored(reader.field(at, Reader::name)?),
        reason: reader.field(at, Reader::boxed)?,
        at: reader.field(at, |reader| reader.instant(base))?,
        token: reader.optional(at, Reader::bits)?.map(TokenId),
    };
    reader.end(fields)?;
    Ok(proposal)
}
