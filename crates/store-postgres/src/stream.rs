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
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;
use uuid::Uuid;

/// Commits stamped in one transaction, at most.
const STAMPED_MAX: i32 = 500;
/// The name under which the position of the newest move is kept.
const NEWEST: &str = "stream/newest";

/// What stamping remembers between turns.
#[derive(Debug, Default)]
pub(crate) struct Stamper {
    /// Whoever took a number before this one has ended, and what they left is stamped. Looking from
    /// here on, and not from the start, passes over rows that were stamped and not yet cleaned up.
    from: i64,
    mark: Option<Mark>,
}

/// A number up to which `from` may go, once all who took one by then have ended.
#[derive(Debug)]
struct Mark {
    last: i64,
    /// A transaction that took a number up to `last` has one of its own before this: it wrote
    /// something else before. Not known if nothing was there to be stamped.
    before: Option<i64>,
    set_at: Instant,
    /// Who may have taken one, if it had to be found out.
    holders: Option<HashSet<String>>,
}

/// A transaction that is open for longer than this, perhaps a stranger's that never took a number,
/// is worth finding out who did.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// What one turn found.
struct Turn {
    /// The number taken last, before the others were read.
    last: i64,
    /// Every transaction before this one had ended.
    ended_before: i64,
    /// The transaction that stamped, which got its number after `last` was read; one that found
    /// nothing has none. The upper end of a snapshot would not do: that is the number after the
    /// last transaction that has ended, and there may be later ones that have not.
    own: Option<i64>,
    /// Who writes to the outbox, if that was asked.
    holders: Option<HashSet<String>>,
    /// Whether everything from `from` on was taken, as far as it was to be seen.
    is_all: bool,
}

impl Stamper {
    /// Stamps everything that is committed; whether that was anything.
    pub(crate) async fn stamp(&mut self, shared: &Shared) -> Result<bool, Fault> {
        let mut is_any = false;
        loop {
            let count = self.stamp_some(shared).await?;
            is_any |= count > 0;
            if count < STAMPED_MAX as usize {
                return Ok(is_any);
            }
        }
    }

    /// Whether commits up to this number may still be on their way.
    pub(crate) fn is_behind(&self, newest: i64) -> bool {
        self.from <= newest
    }

    async fn stamp_some(&mut self, shared: &Shared) -> Result<usize, Fault> {
        let mut link = shared.links.get().await?;
        let take: Vec<Value> = vec![Box::new(self.from), Box::new(STAMPED_MAX)];
        let mut calls = vec![
            Call::new(Query::LockStamp, Vec::new()),
            Call::new(Query::ReadHorizon, Vec::new()),
            Call::new(Query::TakeOutbox, take),
            Call::new(Query::ReadTally, Vec::new()),
        ];
        // Before the outbox is read: whoever is gone by then has left everything to be seen.
        let asks = self.mark.as_ref().is_some_and(|mark| mark.set_at.elapsed() > LATE_AFTER);
        if asks {
            calls.insert(1, Call::new(Query::FindLate, Vec::new()));
        }
        let mut answers = link.run(true, calls, false).await?;
        let late = asks.then(|| answers.remove(1));
        let [lock, horizon, outbox, tally] = answers.as_slice() else {
            return Err(Fault::Broken("the outbox did not answer".into()));
        };
        let (Some(lock), Some(horizon)) = (lock.first(), horizon.first()) else {
            return Err(Fault::Broken("the outbox did not answer".into()));
        };
        let holders = late.map(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        let turn = Turn {
            last: lock.try_get(1)?,
            ended_before: horizon.try_get(0)?,
            own: outbox.first().map(|row| row.try_get(5)).transpose()?,
            holders: holders.transpose()?,
            is_all: outbox.len() < STAMPED_MAX as usize,
        };
        match outbox.is_empty() {
            true => link.undo().await,
            false => {
                let calls = entries(outbox, tally, At(shared.now()))?;
                link.run(false, calls, true).await?;
            }
        }
        self.advance(turn, Instant::now());
        Ok(outbox.len())
    }

    /// Moves on as far as nobody can be late any more.
    fn advance(&mut self, turn: Turn, now: Instant) {
        if let Some(mark) = &mut self.mark {
            let is_past = mark.before.is_some_and(|before| turn.ended_before >= before)
                || matches!((&mark.holders, &turn.holders),
                    (Some(then), Some(now)) if then.is_disjoint(now));
            if mark.holders.is_none() {
                mark.holders = turn.holders;
            }
            let is_better = mark.before.is_none() && turn.own.is_some();
            match is_past && turn.is_all {
                true => self.from = self.from.max(mark.last + 1),
                false if is_better => {}
                false => return,
            }
        }
        let (last, before) = (turn.last, turn.own);
        let is_behind = self.is_behind(last);
        self.mark = is_behind.then_some(Mark { last, before, set_at: now, holders: None });
    }
}

/// The statements that give what was taken from the outbox its place.
fn entries(outbox: &[Row], tally: &[Row], at: At) -> Result<Vec<Call>, Fault> {
    let mut newest = newest(tally)?;
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
    batches.sort_unstable_by_key(|(id, ..)| *id);
    let (mut last, mut moves, mut steps) = (Vec::new(), Vec::new(), Vec::new());
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
    let mut calls = vec![Call::new(Query::AddTally, vec![Box::new(sums.0), Box::new(sums.1)])];
    if !last.is_empty() {
        let values: Vec<Value> =
            vec![Box::new(last), Box::new(moves), Box::new(at), Box::new(steps)];
        calls.push(Call::new(Query::InsertStream, values));
    }
    Ok(calls)
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
    let newest = newest(tally)?;
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
        let step = step.unwrap_or_else(|| Transition::submitted(job));
        Some(LoggedMove::of(u64::try_from(at).unwrap_or(0), job, step))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(last: i64, ended_before: i64, own: i64, holders: Option<&[&str]>) -> Turn {
        let holders = holders.map(|all| all.iter().map(|it| (*it).to_owned()).collect());
        Turn { last, ended_before, own: Some(own), holders, is_all: true }
    }

    #[test]
    fn nobody_is_passed_over_who_took_a_number_and_has_not_ended() {
        let (mut stamper, now) = (Stamper::default(), Instant::now());
        stamper.advance(turn(1_000, 70, 80, None), now);
        assert_eq!(stamper.from, 0, "one of the transactions 70 to 79 may have taken any");
        stamper.advance(turn(5_000, 79, 200, None), now);
        assert_eq!(stamper.from, 0, "79 has not ended");
        stamper.advance(turn(9_000, 80, 300, None), now);
        assert_eq!(stamper.from, 1_001, "all who took one up to 1,000 have");
        assert!(stamper.is_behind(9_000) && !stamper.is_behind(1_000));
        stamper.advance(turn(9_000, 300, 301, None), now);
        assert_eq!(stamper.from, 9_001);
        stamper.advance(turn(9_000, 301, 302, None), now);
        assert!(!stamper.is_behind(9_000), "there is nothing to wait for");
    }

    /// Whoever took a number and wrote nothing leaves nothing to be stamped.
    #[test]
    fn a_turn_that_found_nothing_waits_for_those_who_write_to_the_outbox() {
        let (mut stamper, now) = (Stamper::default(), Instant::now());
        let empty = |holders| Turn { own: None, ..turn(1_000, 90, 0, holders) };
        stamper.advance(empty(None), now);
        stamper.advance(empty(None), now);
        assert_eq!(stamper.from, 0, "nobody knows who may have taken one");
        stamper.advance(empty(Some(&["3/7"])), now);
        stamper.advance(empty(Some(&["4/1"])), now);
        assert_eq!(stamper.from, 1_001, "3/7 has ended");
        assert!(stamper.mark.is_none(), "there is nothing to find out");
        stamper.advance(Turn { last: 2_000, ..empty(None) }, now);
        stamper.advance(turn(3_000, 90, 100, None), now);
        stamper.advance(turn(4_000, 100, 110, None), now);
        assert_eq!(stamper.from, 3_001, "a turn with a number of its own is worth more");
    }

    #[test]
    fn a_turn_that_left_something_behind_does_not_move_on() {
        let (mut stamper, now) = (Stamper::default(), Instant::now());
        stamper.advance(turn(1_000, 70, 80, None), now);
        stamper.advance(Turn { is_all: false, ..turn(1_000, 90, 91, None) }, now);
        assert_eq!(stamper.from, 0);
        stamper.advance(turn(1_000, 90, 91, None), now);
        assert_eq!(stamper.from, 1_001);
    }

    /// A transaction that is open for an hour without having taken a number holds nothing up.
    #[test]
    fn only_those_who_write_to_the_outbox_are_waited_for() {
        let (mut stamper, now) = (Stamper::default(), Instant::now());
        stamper.advance(turn(1_000, 70, 80, None), now);
        stamper.advance(turn(2_000, 70, 90, Some(&["3/7", "4/1"])), now);
        assert_eq!(stamper.from, 0, "they may have taken one");
        stamper.advance(turn(3_000, 70, 99, Some(&["4/1", "5/1"])), now);
        assert_eq!(stamper.from, 0, "4/1 still may");
        stamper.advance(turn(4_000, 70, 110, Some(&["5/1"])), now);
        assert_eq!(stamper.from, 1_001, "5/1 came later");
    }
}
