//! The stream: every move of every job in one order, which all servers tell alike.
//!
//! A commit leaves what it moved and counted in `outbox`, without an order between servers, so that
//! no commit waits for a counter. Whoever reads the stream or the numbers stamps first
//! (`stamper.rs`), so readers see everything that was committed before they asked. The table's name
//! is of the first schema; messages to the outside are jobs and never go through it
//! (`docs/decisions/0008`).

mod counts;
mod stamper;
pub(crate) mod tail;

pub(crate) use counts::counts;
pub(crate) use stamper::Stamper;

use crate::connections::{Call, Part};
use crate::fault::Fault;
use crate::queries::Query;
use crate::rows::read_job;
use crate::this_server::ThisServer;
use crate::values::uuid;
use mainspring_kernel::{Job, JobId, Transition};
use mainspring_store::record::decode_steps;
use mainspring_store::{LoggedMove, MovesPage, PlacedStep, StepsPage};
use std::collections::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

/// The name under which the position of the newest move is kept in `tally`.
const NEWEST: &str = "stream/newest";

/// Durable moves of all jobs after `position`.
pub(crate) async fn moves_after(
    server: &ThisServer,
    position: u64,
    limit: usize,
) -> Result<MovesPage, Fault> {
    let StepsPage { mut steps, has_gap, newest } =
        read_steps(server, position, limit, limit).await?;
    steps.truncate(limit);
    let jobs = jobs_of(server, &steps).await?;
    let moves = steps.into_iter().filter_map(|(at, id, step)| {
        let job = jobs.get(&id)?;
        let step = step.unwrap_or_else(|| Transition::submitted(job));
        Some(LoggedMove::of(at, job, step))
    });
    Ok(MovesPage { moves: moves.collect(), has_gap, newest })
}

/// Commits whose moves are read at once by whoever reads all: a commit may have thousands.
const COMMITS_READ: usize = 64;

/// The same without their jobs: about `limit`, of whole commits.
pub(crate) async fn steps_after(
    server: &ThisServer,
    position: u64,
    limit: usize,
) -> Result<StepsPage, Fault> {
    read_steps(server, position, limit, limit.min(COMMITS_READ)).await
}

/// The moves of at most so many commits after `position`; no more of them once there are `limit`.
async fn read_steps(
    server: &ThisServer,
    position: u64,
    limit: usize,
    commits: usize,
) -> Result<StepsPage, Fault> {
    let after = i64::try_from(position).unwrap_or(i64::MAX);
    let most = i32::try_from(commits).unwrap_or(i32::MAX);
    let calls = vec![
        Call::new(Query::ReadStream, vec![Box::new(after), Box::new(most)]),
        Call::new(Query::OldestStream, Vec::new()),
        Call::new(Query::ReadTally, Vec::new()),
    ];
    let answers = server.connections.get().await?.run(Part::All, calls).await?;
    let [stream, oldest, tally] = answers.as_slice() else {
        return Err(Fault::Broken("the stream did not answer".into()));
    };
    let newest = newest(tally)?;
    let oldest: i64 = oldest.first().map_or(Ok(newest), |row| row.try_get(0))?;
    let mut found: Vec<PlacedStep> = Vec::new();
    for row in stream {
        let (last, moves): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
        let first = last - i64::from(moves) + 1;
        let steps = decode_steps(row.try_get(2)?)?;
        let placed = (first..).zip(steps).filter(|(at, _)| *at > after);
        found.extend(placed.map(|(at, (job, step))| (at.cast_unsigned(), job, step)));
        if found.len() >= limit {
            break;
        }
    }
    let newest = u64::try_from(newest).unwrap_or(0);
    Ok(StepsPage { steps: found, has_gap: after < oldest, newest })
}

async fn jobs_of(server: &ThisServer, moves: &[PlacedStep]) -> Result<HashMap<JobId, Job>, Fault> {
    let mut ids: Vec<Uuid> = moves.iter().map(|(_, id, _)| uuid(*id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = server.connections.read(Query::LoadJobs, vec![Box::new(ids)]).await?;
    server.learn_lanes(&rows, 0).await?;
    let lanes = server.lanes();
    let mut jobs = HashMap::new();
    for row in &rows {
        let stored = read_job(row, 0, true, &lanes)?;
        jobs.insert(stored.job.id, *stored.job);
    }
    Ok(jobs)
}

/// The position of the newest move that is stamped.
fn newest(tally: &[Row]) -> Result<i64, Fault> {
    for row in tally {
        if row.try_get::<_, &str>(0)? == NEWEST {
            return Ok(row.try_get(1)?);
        }
    }
    Ok(0)
}
