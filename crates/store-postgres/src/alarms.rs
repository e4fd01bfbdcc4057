//! When the reaper has to look: the alarms this server set itself, to the instant. Those of other
//! servers are theirs; if they die, a look finds what they left.

use mainspring_kernel::limits::DLQ_UNFINISHED_MS;
use mainspring_kernel::{Job, JobId, State, Timestamp};
use std::collections::BTreeSet;

/// Alarms in mind, at most; those beyond are found by looking.
const ALARMS_MAX: usize = 200_000;
/// How far back a look goes beyond what was seen to: for commits that were slow.
const LATE_MICROS: i64 = 3_000_000;
/// Every so many looks go back to the start.
const FROM_START_EVERY: u32 = 32;

/// Alarms by instant.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    set: BTreeSet<(Timestamp, JobId)>,
    /// Whether somebody else's alarm has rung, as far as a look could tell.
    is_rung: bool,
    seen_to: Option<Timestamp>,
    looks: u32,
}

impl Alarms {
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

/// When the reaper has to look at a job, if ever.
pub(crate) fn alarm(job: &Job) -> Option<Timestamp> {
    match &job.state {
        State::Queued => job.expires_at(),
        State::Running(lease) => Some(lease.ends_at()),
        State::DlqPending | State::DlqRecorded => {
            Some(job.updated_at.plus_millis(DLQ_UNFINISHED_MS))
        }
        State::Retrying { .. }
        | State::Succeeded { .. }
        | State::Failed { .. }
        | State::Cancelled { .. } => None,
    }
}
