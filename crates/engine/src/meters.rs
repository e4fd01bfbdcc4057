//! What this process has counted since it started, for metrics: of jobs by tenant, queue and type,
//! of schedules, of commits. Only what is durable is counted; other servers count theirs. So many
//! kinds of jobs are counted by themselves, in the order in which they come, and all others
//! together: a number that was shown never shrinks.

use crate::limits::{METERED_KINDS_MAX, METERED_PER_COMMIT_MAX};
use mainspring_kernel::entity::schedule::{Outcome, OutcomeKind, reason};
use mainspring_kernel::entity::{Body, Entity};
use mainspring_kernel::event::{Change, TASK_LEASE_LOST, TASK_TIMEOUT};
use mainspring_kernel::{Failure, Job, JobEvent, JobType, QueueName, TenantId};
use mainspring_store::{Histogram, Readout};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Whose jobs, in which queue, of which type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKind {
    /// Whose.
    pub tenant: TenantId,
    /// In which queue.
    pub queue: QueueName,
    /// Of which type.
    pub job_type: JobType,
}

impl JobKind {
    fn of(job: &Job) -> Self {
        let Job { tenant, queue, job_type, .. } = job;
        JobKind { tenant: tenant.clone(), queue: queue.clone(), job_type: job_type.clone() }
    }

    fn is_of(&self, job: &Job) -> bool {
        self.job_type == job.job_type && self.queue == job.queue && self.tenant == job.tenant
    }
}

/// What can happen to a job and is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// It was accepted.
    Submitted,
    /// An attempt started.
    Started,
    /// It ended well.
    Succeeded,
    /// It failed for good.
    Failed,
    /// It was cancelled, or nobody started it in time.
    Cancelled,
    /// A retry was scheduled.
    Retried,
    /// A worker stopped renewing its lease.
    LeaseLost,
    /// An attempt ran for too long.
    TimedOut,
}

impl Happening {
    /// All of them.
    pub const ALL: [Happening; 8] = [
        Happening::Submitted,
        Happening::Started,
        Happening::Succeeded,
        Happening::Failed,
        Happening::Cancelled,
        Happening::Retried,
        Happening::LeaseLost,
        Happening::TimedOut,
    ];
}

/// What one kind of jobs has come to.
#[derive(Debug, Clone)]
pub struct Metered {
    /// How often each of [`Happening::ALL`] happened.
    pub counts: [u64; 8],
    /// How long jobs that were due waited for a worker.
    pub pickup: Readout,
    /// How long attempts took.
    pub run: Readout,
}

impl Metered {
    /// Nothing yet.
    pub fn none() -> Self {
        Metered { counts: [0; 8], pickup: Readout::no_spans(), run: Readout::no_spans() }
    }

    /// Adds what another kind of jobs has come to.
    pub fn add(&mut self, other: &Metered) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.pickup.add(&other.pickup);
        self.run.add(&other.run);
    }

    /// How often something happened.
    pub const fn count(&self, what: Happening) -> u64 {
        self.counts[what as usize]
    }
}

/// Everything that was counted.
#[derive(Debug, Clone)]
pub struct Meterings {
    /// By kind of jobs, by name.
    pub kinds: Vec<(JobKind, Metered)>,
    /// Of jobs of all other kinds.
    pub others: Metered,
    /// How much later than they should schedules fired.
    pub lateness: Readout,
    /// Firings of schedules that were left out.
    pub skips: u64,
    /// Commands by commit.
    pub batches: Readout,
    /// From the first command of a commit until all of it was durable.
    pub commits: Readout,
}

/// What one commit adds. Made anew if the store starts over.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    kinds: Vec<(JobKind, Tick)>,
    lateness: Vec<Duration>,
    skips: u64,
}

/// What one commit adds for one kind of jobs.
#[derive(Debug, Default)]
struct Tick {
    counts: [u64; 8],
    pickup: Vec<Duration>,
    run: Vec<Duration>,
}

impl Reading {
    /// A job was accepted.
    pub(crate) fn submitted(&mut self, job: &Job) {
        self.of(job).happened(Happening::Submitted);
    }

    /// A job moves; `job` is as it was before.
    pub(crate) fn moves(&mut self, job: &Job, event: &JobEvent) {
        let ran = job.lease().map(|lease| event.at.since(lease.granted_at));
        let due_at = job.due_at().map(|due_at| due_at.max(job.created_at));
        let tick = self.of(job);
        match &event.change {
            Change::Claimed(_) => {
                tick.happened(Happening::Started);
                tick.pickup.extend(due_at.map(|due_at| event.at.since(due_at)));
                return;
            }
            Change::Succeeded { .. } => tick.happened(Happening::Succeeded),
            Change::RetryScheduled { failure, .. } => {
                tick.happened(Happening::Retried);
                tick.failed_by(failure);
            }
            Change::DeadLettered { failure, .. } => {
                tick.happened(Happening::Failed);
                tick.failed_by(failure);
            }
            Change::Cancelled { .. } => tick.happened(Happening::Cancelled),
            Change::Released { .. } => {}
            Change::Hastened | Change::Unblocked { .. } | Change::DlqRecorded | Change::Failed => {
                return;
            }
        }
        tick.run.extend(ran);
    }

    /// A schedule changes.
    pub(crate) fn changes(&mut self, before: Option<&Entity>, after: &Entity) {
        if let (Some(before), Body::Schedule(now)) = (before, &after.body)
            && let Body::Schedule(before) = &before.body
        {
            self.skips += now.skipped.saturating_sub(before.skipped);
            let last = before.history.last();
            let new = now.history.iter().rev().take_while(|outcome| Some(*outcome) != last);
            let fired = new.filter(|outcome| has_fired(outcome));
            self.lateness.extend(fired.map(|outcome| Duration::from_millis(outcome.late_ms)));
        }
    }

    /// How many jobs of each kind were started, if any were.
    pub(crate) fn started(&self) -> impl Iterator<Item = (&JobKind, u32)> {
        let started = |tick: &Tick| tick.counts[Happening::Started as usize];
        let kinds = self.kinds.iter().filter(move |(_, tick)| started(tick) > 0);
        kinds.map(move |(kind, tick)| (kind, u32::try_from(started(tick)).unwrap_or(u32::MAX)))
    }

    /// What is added for jobs like `job`. Jobs of one commit are mostly alike.
    fn of(&mut self, job: &Job) -> &mut Tick {
        let known = self.kinds.iter().rev().take(METERED_PER_COMMIT_MAX);
        let at = match known.clone().position(|(kind, _)| kind.is_of(job)) {
            Some(behind) => self.kinds.len() - 1 - behind,
            None => {
                self.kinds.push((JobKind::of(job), Tick::default()));
                self.kinds.len() - 1
            }
        };
        &mut self.kinds[at].1
    }
}

/// Whether a schedule fired by itself.
fn has_fired(outcome: &Outcome) -> bool {
    let is_by_hand = outcome.reason.as_deref() == Some(reason::TRIGGERED);
    matches!(outcome.kind, OutcomeKind::Fired | OutcomeKind::Late) && !is_by_hand
}

impl Tick {
    fn happened(&mut self, what: Happening) {
        self.counts[what as usize] += 1;
    }

    fn failed_by(&mut self, failure: &Failure) {
        match &*failure.code {
            TASK_LEASE_LOST => self.happened(Happening::LeaseLost),
            TASK_TIMEOUT => self.happened(Happening::TimedOut),
            _ => {}
        }
    }
}

/// What is counted of one kind of jobs.
#[derive(Debug)]
struct Meter {
    counts: [AtomicU64; 8],
    pickup: Histogram,
    run: Histogram,
}

impl Meter {
    fn new() -> Self {
        let (pickup, run) = (Histogram::of_spans(), Histogram::of_spans());
        Meter { counts: Default::default(), pickup, run }
    }

    fn add(&self, tick: &Tick) {
        for (count, more) in self.counts.iter().zip(tick.counts).filter(|(_, more)| *more > 0) {
            count.fetch_add(more, Ordering::Relaxed);
        }
        tick.pickup.iter().for_each(|span| self.pickup.took(*span));
        tick.run.iter().for_each(|span| self.run.took(*span));
    }

    fn metered(&self) -> Metered {
        let count = |n: usize| self.counts[n].load(Ordering::Relaxed);
        let counts = std::array::from_fn(count);
        Metered { counts, pickup: self.pickup.readout(), run: self.run.readout() }
    }
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Meters {
    kinds: RwLock<HashMap<JobKind, Arc<Meter>>>,
    others: Meter,
    lateness: Histogram,
    skips: AtomicU64,
    batches: Histogram,
    commits: Histogram,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Meters {
            kinds: RwLock::default(),
            others: Meter::new(),
            lateness: Histogram::of_spans(),
            skips: Default::default(),
            batches: Histogram::of_numbers(),
            commits: Histogram::of_spans(),
        }
    }

    /// Counts a commit that is durable.
    pub(crate) fn add(&self, reading: &Reading, commands: u64, took: Duration) {
        for (kind, tick) in &reading.kinds {
            match self.meter(kind) {
                Some(meter) => meter.add(tick),
                None => self.others.add(tick),
            }
        }
        reading.lateness.iter().for_each(|span| self.lateness.took(*span));
        if reading.skips > 0 {
            self.skips.fetch_add(reading.skips, Ordering::Relaxed);
        }
        self.batches.add(commands);
        self.commits.took(took);
    }

    /// The meter of a kind of jobs, if it has one of its own.
    fn meter(&self, kind: &JobKind) -> Option<Arc<Meter>> {
        let known = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = known.get(kind) {
            return Some(Arc::clone(meter));
        }
        if known.len() >= METERED_KINDS_MAX {
            return None;
        }
        drop(known);
        let mut known = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= METERED_KINDS_MAX && !known.contains_key(kind) {
            return None;
        }
        Some(Arc::clone(known.entry(kind.clone()).or_insert_with(|| Arc::new(Meter::new()))))
    }

    /// What was counted so far.
    pub(crate) fn read(&self) -> Meterings {
        let known = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let mut kinds: Vec<_> =
            known.iter().map(|(kind, meter)| (kind.clone(), meter.metered())).collect();
        drop(known);
        kinds.sort_by(|a, b| a.0.cmp(&b.0));
        Meterings {
            kinds,
            others: self.others.metered(),
            lateness: self.lateness.readout(),
            skips: self.skips.load(Ordering::Relaxed),
            batches: self.batches.readout(),
            commits: self.commits.readout(),
        }
    }
}

#[cfg(test)]
mod tests;
