//! Lists. A filter is a handful of facts, each of which some index finds; the one that finds least
//! leads, and the others are asked about what it finds. Only here are statements composed at run
//! time, from fixed pieces; values are always parameters.
//!
//! Read next: `list/lead.rs` for the indexes, `list/pieces.rs` for the statements.

mod items;
mod lead;
mod pieces;

pub(crate) use items::{count_items, items, list_old_items};

use crate::fault::Fault;
use crate::rows::read_job;
use crate::shared::Shared;
use crate::values::uuid;
use lead::Lead;
use mainspring_kernel::{Job, JobId};
use mainspring_store::{JobFilter, Page};
use pieces::{Pieces, Span};
use uuid::Uuid;

/// A statement of each kind that lists are made of, for whoever wants to see their plans.
pub fn list_samples() -> Vec<(String, String, Vec<tokio_postgres::types::Type>)> {
    pieces::samples()
}

/// Candidates looked at in one go, at least and at most.
const LOOKED_AT: (usize, usize) = (64, 4_096);

/// Jobs, newest first, older than `before`.
pub(crate) async fn jobs(
    shared: &Shared,
    filter: &JobFilter,
    before: Option<JobId>,
    limit: usize,
) -> Result<Page<Job>, Fault> {
    let mut found = Vec::new();
    let Some(wanted) = pieces::wanted(shared, filter).await? else {
        return Ok(Page { items: found, next: None });
    };
    let mut span = Span::of(filter, before);
    let lead = lead::choose(shared, filter, &wanted, span).await?;
    let own = filter.traced_job().map(uuid);
    let mut looked_at = (limit + 1).max(LOOKED_AT.0);
    while found.len() <= limit {
        let (mut ids, floor) = candidates(shared, &lead, span, looked_at).await?;
        if let Some(own) = own.filter(|own| span.has(*own) && floor.is_none_or(|it| it <= *own)) {
            ids.push(own);
            ids.sort_unstable_by(|a, b| b.cmp(a));
            ids.dedup();
        }
        for ids in ids.chunks(looked_at) {
            if found.len() <= limit {
                found.extend(read(shared, ids, &wanted, limit + 1 - found.len()).await?);
            }
        }
        match floor {
            Some(floor) => span.end = floor,
            None => break,
        }
        looked_at = (looked_at * 4).min(LOOKED_AT.1);
    }
    Ok(Page::cut(found, limit, |job| job.id))
}

/// How many jobs a filter admits, up to `most`.
pub(crate) async fn count_jobs(
    shared: &Shared,
    filter: &JobFilter,
    most: usize,
) -> Result<usize, Fault> {
    let Some(wanted) = pieces::wanted(shared, filter).await? else { return Ok(0) };
    let span = Span::of(filter, None);
    let lead = lead::choose(shared, filter, &wanted, span).await?;
    let mut count = pieces::count(shared, &lead, &wanted, span, most).await?;
    // What is in the trace by its id alone has no trace of its own to be found by.
    if let Some(own) = filter.traced_job().map(uuid).filter(|own| span.has(*own)) {
        if matches!(lead, Lead::Trace(_)) {
            let own = read(shared, &[own], &wanted, 1).await?;
            count += own.iter().filter(|job| job.trace.is_none()).count();
        }
    }
    Ok(count.min(most))
}

/// The next candidates of a lead below the end of a span, newest first. Also the id above and at
/// which all were looked at, if there are more below it.
async fn candidates(
    shared: &Shared,
    lead: &Lead,
    span: Span,
    looked_at: usize,
) -> Result<(Vec<Uuid>, Option<Uuid>), Fault> {
    let share = lead.share(looked_at);
    let rows = pieces::candidates(shared, lead, span, share).await?;
    // Where one of several values has more, the others must not go further down.
    let mut floor: Option<Uuid> = None;
    for same in rows.chunk_by(|a, b| a.0 == b.0) {
        if same.len() >= share {
            floor = floor.max(same.last().map(|(_, id)| *id));
        }
    }
    let ids = rows.into_iter().map(|(_, id)| id);
    let mut ids: Vec<Uuid> = ids.filter(|id| floor.is_none_or(|floor| floor <= *id)).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    Ok((ids, floor))
}

/// Those of some jobs that are wanted, newest first.
async fn read(
    shared: &Shared,
    ids: &[Uuid],
    wanted: &Pieces<'_>,
    limit: usize,
) -> Result<Vec<Job>, Fault> {
    let rows = pieces::read(shared, ids, wanted, limit).await?;
    shared.learn_lanes(&rows, 0).await?;
    let lanes = shared.lanes();
    let jobs = rows.iter().map(|row| Ok(*read_job(row, 0, true, &lanes)?.job));
    let jobs: Result<Vec<Job>, Fault> = jobs.collect();
    let filter = wanted.filter;
    Ok(jobs?.into_iter().filter(|job| filter.admits(job)).collect())
}
