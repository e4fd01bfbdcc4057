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
use crate::this_server::ThisServer;
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
/// Candidates of each of two leads that are compared in one go, at most, before anything is read.
const COMPARED_MAX: usize = 6_000;
/// Candidates of one lead that are counted before another has its turn; four times as many in
/// each turn.
const TURN: usize = 12_000;

/// Jobs, newest first, older than `before`.
pub(crate) async fn jobs(
    server: &ThisServer,
    filter: &JobFilter,
    before: Option<JobId>,
    limit: usize,
) -> Result<Page<Job>, Fault> {
    let Some(wanted) = pieces::wanted(server, filter).await? else {
        return Ok(Page { items: Vec::new(), next: None });
    };
    let span = Span::of(filter, before);
    let leads = lead::choose(server, filter, &wanted, span).await?;
    let own = filter.traced_job().map(uuid);
    let (mut span, mut found) = (span, Vec::new());
    let mut looked_at = (limit + 1).max(LOOKED_AT.0);
    while found.len() <= limit {
        let (ids, floor) = both(server, &leads, span, looked_at, own).await?;
        for ids in ids.chunks(LOOKED_AT.1) {
            let missing = (limit + 1).saturating_sub(found.len());
            if missing > 0 {
                found.extend(read(server, ids, &wanted, missing).await?);
            }
        }
        match floor {
            Some(floor) => span.end = floor,
            None => break,
        }
        let most = if leads.len() > 1 { COMPARED_MAX } else { LOOKED_AT.1 };
        looked_at = (looked_at * 4).min(most);
    }
    Ok(Page::cut(found, limit, |job| job.id))
}

/// The next candidates that all leads find, as [`candidates`]. Of two long leads only ids are
/// compared, and the second is looked through only where the first has any: reading a job costs ten
/// times as much as passing one by. With 95,000 cancelled jobs and 100,000 of a type, none of them
/// both, a page took 1.2 s when jobs were read along either lead in turn.
async fn both(
    server: &ThisServer,
    leads: &[Lead],
    span: Span,
    looked_at: usize,
    own: Option<Uuid>,
) -> Result<(Vec<Uuid>, Option<Uuid>), Fault> {
    let [first, rest @ ..] = leads else { return Ok((Vec::new(), None)) };
    let (mut ids, mut floor) = candidates(server, first, span, looked_at, own).await?;
    for lead in rest {
        let Some(newest) = ids.first() else { break };
        let end = Uuid::from_u128(newest.as_u128().saturating_add(1)).min(span.end);
        let within = Span { floor: floor.unwrap_or(span.floor), end };
        let (others, end) = candidates(server, lead, within, looked_at, own).await?;
        // Both are in order, newest first.
        let mut others = others.into_iter().peekable();
        ids.retain(|id| {
            while others.next_if(|other| other > id).is_some() {}
            others.peek() == Some(id)
        });
        floor = end.or(floor);
    }
    Ok((ids, floor))
}

/// How many jobs a filter admits, up to `most`.
pub(crate) async fn count_jobs(
    server: &ThisServer,
    filter: &JobFilter,
    most: usize,
) -> Result<usize, Fault> {
    let Some(wanted) = pieces::wanted(server, filter).await? else { return Ok(0) };
    let span = Span::of(filter, None);
    if let Some(lead) = lead::queued(filter, &wanted) {
        return pieces::count(server, &lead, &wanted, span, (usize::MAX, most)).await;
    }
    let leads = lead::choose(server, filter, &wanted, span).await?;
    let is_only = leads.len() == 1;
    let mut turn = TURN;
    loop {
        for lead in &leads {
            let within = if is_only { usize::MAX } else { turn };
            let mut count = pieces::count(server, lead, &wanted, span, (within, most)).await?;
            let is_whole = count >= most
                || is_only
                || pieces::measure(server, lead, span, within + 1).await? <= within;
            if !is_whole {
                continue;
            }
            // What is in the trace by its id alone has no trace of its own to be found by.
            if let Some(own) = filter.traced_job().map(uuid).filter(|own| span.has(*own))
                && matches!(lead, Lead::Trace(_))
            {
                let own = read(server, &[own], &wanted, 1).await?;
                count += own.iter().filter(|job| job.trace.is_none()).count();
            }
            return Ok(count.min(most));
        }
        turn *= 4;
    }
}

/// The next candidates of a lead below the end of a span, newest first, and `own` if it is among
/// them. Also the id above and at which all were looked at, if there are more below it.
async fn candidates(
    server: &ThisServer,
    lead: &Lead,
    span: Span,
    looked_at: usize,
    own: Option<Uuid>,
) -> Result<(Vec<Uuid>, Option<Uuid>), Fault> {
    let share = lead.share(looked_at);
    let rows = pieces::candidates(server, lead, span, share).await?;
    // Where one of several values has more, the others must not go further down.
    let mut floor: Option<Uuid> = None;
    for same in rows.chunk_by(|a, b| a.0 == b.0) {
        if same.len() >= share {
            floor = floor.max(same.last().map(|(_, id)| *id));
        }
    }
    let ids = rows.into_iter().map(|(_, id)| id);
    let is_above = |id: &Uuid| floor.is_none_or(|floor| floor <= *id);
    let mut ids: Vec<Uuid> = ids.filter(is_above).collect();
    ids.extend(own.filter(|own| span.has(*own)).filter(is_above));
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    Ok((ids, floor))
}

/// Those of some jobs that are wanted, newest first.
async fn read(
    server: &ThisServer,
    ids: &[Uuid],
    wanted: &Pieces<'_>,
    limit: usize,
) -> Result<Vec<Job>, Fault> {
    let rows = pieces::read(server, ids, wanted, limit).await?;
    server.learn_lanes(&rows, 0).await?;
    let lanes = server.lanes();
    let jobs = rows.iter().map(|row| Ok(*read_job(row, 0, true, &lanes)?.job));
    let jobs: Result<Vec<Job>, Fault> = jobs.collect();
    let filter = wanted.filter;
    Ok(jobs?.into_iter().filter(|job| filter.admits(job)).collect())
}
