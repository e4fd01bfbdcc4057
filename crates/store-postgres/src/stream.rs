//! Stamping: what commits left in the outbox gets its place in the one order of moves, and is added
//! to the numbers kept. Commits of all servers go on meanwhile; whoever reads the stream or the
//! numbers stamps first, so readers see everything that was committed before they asked.

use crate::fault::Fault;
use crate::link::{Call, Value};
use crate::queries::Query;
use crate::rows::read_job;
use crate::shared::Shared;
use crate::values::{At, uuid};
use mainspring_kernel::{Job, JobId, QueueName, StateName, Transition};
use mainspring_store::record::decode_steps;
use mainspring_store::{Counts, LoggedMove, MovesPage, QueueCount};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// Commits stamped in one transaction, at most.
const STAMPED_MAX: i32 = 500;
/// The name under which the position of the newest move is kept.
const NEWEST: &str = "stream/newest";

/// What stamping remembers between turns.
#[derive(Debug, Default)]
pub(crate) struct Stamper {
    /// Commits before this one are stamped, save those that were slow to be committed.
    from: i64,
    turns: u32,
}

/// Every so many turns the outbox is read from the start.
const FROM_START_EVERY: u32 = 16;
/// A commit takes its number before it is seen: look this much further back.
const LATE_MAX: i64 = 1_000;

impl Stamper {
    /// Stamps everything that is committed.
    pub(crate) async fn stamp(&mut self, shared: &Shared) -> Result<(), Fault> {
        loop {
            self.turns = self.turns.wrapping_add(1);
            let from = if self.turns.is_multiple_of(FROM_START_EVERY) { 0 } else { self.from };
            if self.stamp_some(shared, from).await? < STAMPED_MAX as usize {
                return Ok(());
            }
        }
    }

    async fn stamp_some(&mut self, shared: &Shared, from: i64) -> Result<usize, Fault> {
        let mut link = shared.links.get().await?;
        let take: Vec<Value> = vec![Box::new(from), Box::new(STAMPED_MAX)];
        let calls = vec![
            Call::new(Query::LockStamp, Vec::new()),
            Call::new(Query::TakeOutbox, take),
            Call::new(Query::ReadTally, Vec::new()),
        ];
        let answers = link.run(true, calls, false).await?;
        let [_, outbox, tally] = answers.as_slice() else {
            return Err(Fault::Broken("the outbox did not answer".into()));
        };
        let mut newest = 0;
        for row in tally {
            if row.try_get::<_, &str>(0)? == NEWEST {
                newest = row.try_get(1)?;
            }
        }
        let mut batches: Vec<(i64, i32, Option<Vec<u8>>)> = Vec::new();
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for row in outbox {
            batches.push((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
            let names: Vec<String> = row.try_get(3)?;
            let deltas: Vec<i64> = row.try_get(4)?;
            for (name, by) in names.into_iter().zip(deltas) {
                *sums.entry(name).or_default() += by;
            }
        }
        if batches.is_empty() {
            link.undo().await;
            return Ok(0);
        }
        batches.sort_unstable_by_key(|(id, ..)| *id);
        let top = batches.last().map_or(0, |(id, ..)| *id);
        let (mut last, mut moves, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let count = batches.len();
        for (_, size, bytes) in batches {
            if let Some(bytes) = bytes.filter(|_| size > 0) {
                newest += i64::from(size);
                last.push(newest);
                moves.push(size);
                steps.push(bytes);
                *sums.entry(NEWEST.to_owned()).or_default() += i64::from(size);
            }
        }
        let sums: (Vec<String>, Vec<i64>) = sums.into_iter().filter(|(_, by)| *by != 0).unzip();
        let at = At(shared.now());
        let mut calls = vec![Call::new(Query::AddTally, vec![Box::new(sums.0), Box::new(sums.1)])];
        if !last.is_empty() {
            calls.push(Call::new(
                Query::InsertStream,
                vec![Box::new(last), Box::new(moves), Box::new(at), Box::new(steps)],
            ));
        }
        link.run(false, calls, true).await?;
        self.from = self.from.max(top - LATE_MAX);
        Ok(count)
    }
}

/// Durable moves of all jobs after `position`.
pub(crate) async fn moves_after(
    shared: &Shared,
    position: u64,
    limit: usize,
) -> Result<MovesPage, Fault> {
    let after = i64::try_from(position).unwrap_or(i64::MAX);
    let most = i32::try_from(limit).unwrap_or(i32::MAX);
    let calls = vec![
        Call::new(Query::ReadStream, vec![Box::new(after), Box::new(most)]),
        Call::new(Query::OldestStream, Vec::new()),
        Call::new(Query::ReadTally, Vec::new()),
    ];
    let answers = shared.links.get().await?.run(true, calls, true).await?;
    let [stream, oldest, tally] = answers.as_slice() else {
        return Err(Fault::Broken("the stream did not answer".into()));
    };
    let mut newest = 0_i64;
    for row in tally {
        if row.try_get::<_, &str>(0)? == NEWEST {
            newest = row.try_get(1)?;
        }
    }
    let oldest: i64 = oldest.first().map_or(Ok(newest), |row| row.try_get(0))?;
    let mut found: Vec<(i64, JobId, Option<Transition>)> = Vec::new();
    for row in stream {
        let (last, moves): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
        let first = last - i64::from(moves) + 1;
        let steps = decode_steps(row.try_get(2)?)?;
        found.extend((first..).zip(steps).map(|(at, (job, step))| (at, job, step)));
        if found.len() > limit.saturating_add(moves as usize) {
            break;
        }
    }
    found.retain(|(at, ..)| *at > after);
    found.truncate(limit);
    let jobs = jobs_of(shared, &found).await?;
    let moves = found.into_iter().filter_map(|(at, id, step)| {
        let job = jobs.get(&id)?;
        Some(LoggedMove {
            position: u64::try_from(at).unwrap_or(0),
            job: id,
            tenant: job.tenant.clone(),
            user: job.user.clone(),
            job_type: job.job_type.clone(),
            trace_id: job.trace_id().into(),
            transition: step.unwrap_or_else(|| Transition::submitted(job)),
        })
    });
    let newest = u64::try_from(newest).unwrap_or(0);
    Ok(MovesPage { moves: moves.collect(), has_gap: after < oldest, newest })
}

async fn jobs_of(
    shared: &Shared,
    moves: &[(i64, JobId, Option<Transition>)],
) -> Result<HashMap<JobId, Job>, Fault> {
    let mut ids: Vec<Uuid> = moves.iter().map(|(_, id, _)| uuid(*id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = shared.links.read(Query::LoadJobs, vec![Box::new(ids)]).await?;
    shared.learn_lanes(&rows, 0).await?;
    let lanes = shared.lanes();
    let mut jobs = HashMap::new();
    for row in &rows {
        let stored = read_job(row, 0, true, &lanes)?;
        jobs.insert(stored.job.id, *stored.job);
    }
    Ok(jobs)
}

/// Counts for metrics.
pub(crate) async fn counts(shared: &Shared) -> Result<Counts, Fault> {
    let queries = [Query::ReadTally, Query::OldestDue, Query::CountOpenItems];
    let calls = queries.map(|query| Call::new(query, Vec::new())).into();
    let answers = shared.links.get().await?.run(true, calls, true).await?;
    let [tally, oldest, open] = answers.as_slice() else {
        return Err(Fault::Broken("the counts did not answer".into()));
    };
    let mut counts = Counts::default();
    let mut queues: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for row in tally {
        let (name, n): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let n = u64::try_from(n).unwrap_or(0);
        let Some((kind, name)) = name.split_once('/') else { continue };
        match (kind, name) {
            ("state", name) => {
                if let Some(state) = StateName::parse(name) {
                    counts.by_state[state as usize] = n;
                }
            }
            ("total", "submitted") => counts.submitted = n,
            ("total", "claims") => counts.claims = n,
            ("total", "retries") => counts.retries = n,
            ("total", "jobs_retried") => counts.jobs_retried = n,
            ("ready", queue) => queues.entry(queue.to_owned()).or_default()[0] = n,
            ("pending", queue) => queues.entry(queue.to_owned()).or_default()[1] = n,
            ("running", queue) => queues.entry(queue.to_owned()).or_default()[2] = n,
            _ => {}
        }
    }
    let oldest: Option<At> = oldest.first().map_or(Ok(None), |row| row.try_get(0))?;
    counts.oldest_due = oldest.map(|at| at.0.whole_second());
    let open: i64 = open.first().map_or(Ok(0), |row| row.try_get(0))?;
    counts.items_open = u64::try_from(open).unwrap_or(0);
    for queue in shared.registry().queues.keys() {
        queues.entry(queue.as_str().to_owned()).or_default();
    }
    counts.queues = queues
        .into_iter()
        .map(|(name, [ready, pending, running])| QueueCount {
            name: QueueName::stored(name.into()),
            ready,
            pending,
            running,
        })
        .collect();
    counts.due = counts.queues.iter().map(|queue| queue.ready).sum();
    Ok(counts)
}
