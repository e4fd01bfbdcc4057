//! When the reaper has to look for jobs whose lease, timeout, expiry or unfinished DLQ move is due
//! (`live.alarm_at`, `expiry`): the alarms this server set itself, to the instant. Those of other
//! servers are theirs; if they die, a look finds what they left.

use crate::connections::Value;
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::{At, job_id};
use mainspring_kernel::{JobId, Timestamp};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// Alarms in mind, at most; those beyond are found by looking.
const ALARMS_MAX: usize = 200_000;
/// How far back a look goes beyond what was seen to: for commits that were slow.
const LATE_MICROS: i64 = 3_000_000;
/// Every so many looks go back to the start.
const FROM_START_EVERY: u32 = 32;
/// A lease that ran out this long ago and is still there was left alone by everybody.
const UNREAPED_MIN: Duration = Duration::from_millis(250);

/// Alarms by instant.
#[derive(Debug, Default)]
pub(crate) struct JobAlarms {
    set: BTreeSet<(Timestamp, JobId)>,
    /// Whether somebody else's alarm has rung, as far as a look could tell.
    is_rung: bool,
    seen_to: Option<Timestamp>,
    looks: u32,
}

impl JobAlarms {
    /// The alarm of a job moved.
    pub(crate) fn moved(&mut self, job: JobId, from: Option<Timestamp>, to: Option<Timestamp>) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.set.remove(&(from, job));
        }
        if let Some(to) = to
            && self.set.len() < ALARMS_MAX
        {
            self.set.insert((to, job));
        }
    }

    /// The next alarm after `now`.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.set.range((now, JobId(u128::MAX))..).next().map(|(at, _)| *at)
    }

    /// A look found that an alarm has rung.
    pub(crate) fn ring(&mut self) {
        self.is_rung = true;
    }

    /// From where on to look for alarms that have rung.
    pub(crate) fn look_from(&self) -> Timestamp {
        self.seen_to.map_or(Timestamp(i64::MIN), |at| Timestamp(at.0.saturating_sub(LATE_MICROS)))
    }

    /// Whether the database has to be asked for overdue jobs at `now`; from where on.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<Timestamp> {
        let is_due = self.set.first().is_some_and(|(at, _)| *at <= now);
        if !is_due && !self.is_rung {
            return None;
        }
        self.looks = self.looks.wrapping_add(1);
        let is_from_start = self.looks.is_multiple_of(FROM_START_EVERY);
        Some(if is_from_start { Timestamp(i64::MIN) } else { self.look_from() })
    }

    /// Nothing is overdue at `now`: what was in mind until then is done with.
    pub(crate) fn done(&mut self, now: Timestamp) {
        self.is_rung = false;
        self.seen_to = self.seen_to.max(Some(now));
        while self.set.first().is_some_and(|(at, _)| *at <= now) {
            self.set.pop_first();
        }
    }
}

impl ThisServer {
    pub(crate) fn job_alarms(&self) -> MutexGuard<'_, JobAlarms> {
        self.due.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Alarms of jobs moved, each from an instant to another.
    pub(crate) fn set_alarms(&self, moved: &[(JobId, Option<Timestamp>, Option<Timestamp>)]) {
        let mut alarms = self.job_alarms();
        for (job, from, to) in moved {
            alarms.moved(*job, *from, *to);
        }
    }

    /// Jobs whose alarm has rung by `now`, for the reaper.
    pub(crate) async fn find_overdue(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<JobId>, Fault> {
        let Some(from) = self.job_alarms().begin(now) else { return Ok(Vec::new()) };
        let most = i32::try_from(limit).unwrap_or(i32::MAX);
        let values: Vec<Value> = vec![Box::new(At(now)), Box::new(At(from)), Box::new(most)];
        let rows = self.connections.read(Query::FindOverdue, values).await?;
        if rows.is_empty() {
            self.job_alarms().done(now);
        }
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
    }

    /// Jobs that run, for extending their leases after a restart.
    pub(crate) async fn find_running(&self) -> Result<Vec<JobId>, Fault> {
        // While others serve, workers have somebody to send their heartbeats to, and a lease that
        // ran out is reaped at once: one that was not shows that nobody served.
        let by = match self.neighbours.has_others.load(Ordering::Acquire) {
            true => self.now() - UNREAPED_MIN,
            false => Timestamp::MAX,
        };
        let rows = self.connections.read(Query::FindRunning, vec![Box::new(At(by))]).await?;
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp(secs * 1_000_000)
    }

    /// A commit of another server may become visible after its alarm has rung and was looked for.
    #[test]
    fn a_look_goes_back_beyond_what_was_seen_to() {
        let mut alarms = JobAlarms::default();
        alarms.ring();
        assert_eq!(alarms.begin(at(100)), Some(Timestamp(i64::MIN)), "nothing was seen to yet");
        alarms.done(at(100));
        assert_eq!(alarms.begin(at(101)), None, "no alarm, none heard of");
        alarms.moved(JobId(1), None, Some(at(102)));
        assert_eq!(alarms.begin(at(101)), None, "not yet");
        assert_eq!(alarms.begin(at(102)), Some(at(97)), "three seconds before what was seen to");
        assert_eq!(alarms.look_from(), at(97));
    }

    #[test]
    fn now_and_then_a_look_goes_back_to_the_start() {
        let mut alarms = JobAlarms::default();
        alarms.done(at(100));
        let mut from_start = 0;
        for _ in 0..2 * FROM_START_EVERY {
            alarms.ring();
            let from = alarms.begin(at(200)).expect("one has rung");
            from_start += u32::from(from == Timestamp(i64::MIN));
            alarms.done(at(200));
        }
        assert_eq!(from_start, 2);
    }

    #[test]
    fn what_is_overdue_is_in_mind_until_a_look_finds_nothing() {
        let mut alarms = JobAlarms::default();
        alarms.moved(JobId(1), None, Some(at(10)));
        alarms.moved(JobId(2), None, Some(at(20)));
        assert!(alarms.begin(at(10)).is_some());
        assert!(alarms.begin(at(10)).is_some(), "until it is done");
        alarms.moved(JobId(1), Some(at(10)), None);
        alarms.done(at(10));
        assert_eq!(alarms.begin(at(11)), None);
        assert_eq!(alarms.next(at(11)), Some(at(20)));
    }
}
