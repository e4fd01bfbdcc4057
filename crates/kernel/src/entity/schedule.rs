//! Schedules: rules that make jobs at set times. Here is what a schedule is; `schedule/command.rs`
//! has what can be asked of it, `schedule/decide.rs` what people ask, `schedule/ring.rs` what time
//! does, `schedule/settle.rs` what it learns of its jobs.
//!
//! A schedule is a thing of its own: whatever becomes of its jobs, it goes on. It is rewritten as a
//! whole with every change, so everything in it is bounded and small.

mod account;
mod check;
pub mod command;
mod decide;
mod history;
mod ring;
mod settle;
mod turn;

pub use account::Account;
pub use command::ScheduleCommand;
pub(super) use decide::decide;
pub(crate) use decide::of_plan;
pub use history::{Outcome, OutcomeKind, reason};
pub(super) use ring::ring;
pub(super) use settle::settle;

use super::{EntityId, Kind};
use crate::calendar::{Exclusions, Rhythm, Zone};
use crate::fingerprint::{Digest, digest, number};
use crate::id::JobId;
use crate::job::Payload;
use crate::name::{JobType, QueueName, TenantId, UserId};
use crate::time::Timestamp;

/// What a schedule is to do: everything that its owner chooses. An update replaces all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleSpec {
    /// A name for people.
    pub name: Option<Box<str>>,
    /// The type of its jobs.
    pub job_type: JobType,
    /// What its jobs carry.
    pub payload: Payload,
    /// When it fires.
    pub rhythm: Rhythm,
    /// What becomes of firings that were missed.
    pub misfire: Misfire,
    /// With [`Misfire::All`]: how many of those that were missed are made up for at most.
    pub misfire_limit: u32,
    /// What happens when it is to fire while a job of it has not ended.
    pub overlap: Overlap,
    /// Its jobs start up to this much later, each by another part of it.
    pub jitter_secs: u32,
    /// No firing before this.
    pub start_at: Option<Timestamp>,
    /// No firing after this.
    pub end_at: Option<Timestamp>,
    /// It has ended after this many firings; those by hand do not count.
    pub max_runs: Option<u32>,
    /// Days on which it does not fire.
    pub exclude: Exclusions,
    /// The zone whose days those are.
    pub zone: Zone,
    /// It pauses itself after this many jobs in a row that failed.
    pub pause_after_failures: Option<u32>,
    /// The queue of its jobs, unless their type says.
    pub queue: Option<QueueName>,
    /// The priority of its jobs, unless their type says.
    pub priority: Option<u8>,
    /// Start-to-close timeout of its jobs, unless their type says.
    pub timeout_ms: Option<u32>,
    /// Extra tries of its jobs, unless their type says.
    pub max_retries: Option<u16>,
    /// Labels of its jobs. Each gets `schedule_id` besides.
    pub labels: Vec<(Box<str>, Box<str>)>,
}

impl ScheduleSpec {
    /// A schedule that leaves everything else to the defaults.
    pub fn plain(job_type: JobType, rhythm: Rhythm) -> Self {
        ScheduleSpec {
            name: None,
            job_type,
            payload: "{}".into(),
            rhythm,
            misfire: Misfire::Coalesce,
            misfire_limit: crate::limits::MISFIRE_LIMIT_DEFAULT,
            overlap: Overlap::Allow,
            jitter_secs: 0,
            start_at: None,
            end_at: None,
            max_runs: None,
            exclude: Exclusions::default(),
            zone: Zone::UTC,
            pause_after_failures: None,
            queue: None,
            priority: None,
            timeout_ms: None,
            max_retries: None,
            labels: Vec::new(),
        }
    }

    /// The first instant after `after` for which it may fire, days that are left out included.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let next = self.rhythm.next_after(self.not_before(after))?;
        self.end_at.is_none_or(|end| next <= end).then_some(next)
    }

    /// The first instant after `after` for which it fires.
    pub fn next_fire_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = self.not_before(after);
        let next = self.rhythm.next_outside(after, &self.exclude, &self.zone)?;
        self.end_at.is_none_or(|end| next <= end).then_some(next)
    }

    fn not_before(&self, after: Timestamp) -> Timestamp {
        let start = self.start_at.map(|start| Timestamp(start.0.saturating_sub(1)));
        start.map_or(after, |start| start.max(after))
    }

    /// Whether the day of `at` is left out.
    pub fn is_excluded(&self, at: Timestamp) -> bool {
        self.exclude.covers(at, &self.zone)
    }

    /// Up to `limit` instants after `after` and not after `until` for which it fires.
    pub fn firings(&self, after: Timestamp, until: Timestamp, limit: usize) -> Vec<Timestamp> {
        let first = self.next_fire_after(after);
        let firings = std::iter::successors(first, |at| self.next_fire_after(*at));
        firings.take_while(|at| *at <= until).take(limit).collect()
    }

    /// Whether it matters how its jobs end.
    pub(crate) fn watches(&self) -> bool {
        self.overlap != Overlap::Allow || self.pause_after_failures.is_some()
    }
}

/// What becomes of firings that were missed: no server was there, or the clock was set forward.
/// What went by while a schedule was paused was not missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Misfire {
    /// One job for all of them, that of the latest.
    #[default]
    Coalesce,
    /// None.
    Skip,
    /// One each, of the latest `misfire_limit`.
    All,
}

impl Misfire {
    /// All of them.
    pub const ALL: [Misfire; 3] = [Misfire::Coalesce, Misfire::Skip, Misfire::All];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Misfire::Coalesce => "coalesce",
            Misfire::Skip => "skip",
            Misfire::All => "all",
        }
    }

    /// The policy of that name.
    pub fn parse(text: &str) -> Option<Misfire> {
        Misfire::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// What happens when a schedule is to fire while a job of it has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It fires.
    #[default]
    Allow,
    /// It does not.
    Skip,
    /// It fires when the job has ended, once however often it was to fire meanwhile.
    QueueOne,
    /// The job is cancelled, and it fires.
    CancelRunning,
}

impl Overlap {
    /// All of them.
    pub const ALL: [Overlap; 4] =
        [Overlap::Allow, Overlap::Skip, Overlap::QueueOne, Overlap::CancelRunning];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Overlap::Allow => "allow",
            Overlap::Skip => "skip",
            Overlap::QueueOne => "queue_one",
            Overlap::CancelRunning => "cancel_running",
        }
    }

    /// The policy of that name.
    pub fn parse(text: &str) -> Option<Overlap> {
        Overlap::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// Where a schedule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It fires.
    Active,
    /// It does not until it is resumed.
    Paused(Box<Pause>),
    /// It never fires again, by order.
    Stopped,
    /// It never fires again: that was all.
    Ended,
}

impl Status {
    /// The names of all of them on the wire.
    pub const NAMES: [&'static str; 4] = ["active", "paused", "stopped", "ended"];

    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Paused(_) => "paused",
            Status::Stopped => "stopped",
            Status::Ended => "ended",
        }
    }
}

/// Why a schedule is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Who paused it; nobody if it did so itself.
    pub by: Option<UserId>,
    /// When.
    pub at: Timestamp,
    /// Why, for people.
    pub note: Option<Box<str>>,
}

/// A firing that waits for a job to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Which firing.
    pub at: Timestamp,
    /// When to look at the job, should no word of its end come.
    pub look_at: Timestamp,
}

/// Where a schedule came from that nobody made by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its name.
    pub name: Box<str>,
    /// Digest of the entry that it was last made from: a changed entry changes it, an equal one
    /// leaves what people changed since.
    pub entry: Digest,
}

/// The plan that a schedule fires for: its jobs are tasks, each by the plan's name and its instant.
/// Such a schedule ends with the job that stands for the plan, and only so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlan {
    /// The job that stands for it.
    pub job: JobId,
    /// The name that its caller chose.
    pub task_id: Box<str>,
    /// Seconds after which nothing of a task that has ended is kept any more: so long its name
    /// leads to it. `None` is for ever.
    pub window_secs: Option<u32>,
    /// When the schedule goes, too, once its plan has ended.
    pub gone_at: Option<Timestamp>,
}

/// A rule that makes jobs at set times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What it is to do.
    pub spec: ScheduleSpec,
    /// `user:<id>` of whom it belongs to, or `system`.
    pub namespace: Box<str>,
    /// The template it was made from.
    pub template: Option<Template>,
    /// The plan it fires for.
    pub task: Option<TaskPlan>,
    /// Where it stands.
    pub status: Status,
    /// The firing that its alarm is set for, on a day that is left out perhaps.
    pub next_at: Option<Timestamp>,
    /// The latest of the firings that were missed: others that are due meanwhile wait for it.
    pub catch_up_at: Option<Timestamp>,
    /// The firing that waits for a job to end.
    pub waiting: Option<Waiting>,
    /// Jobs of it that have not ended, as far as it knows, the oldest first; only those whose end
    /// matters, and the latest of them.
    pub outstanding: Vec<JobId>,
    /// For which instant it last fired by itself.
    pub last_fire_at: Option<Timestamp>,
    /// How often it fired by itself.
    pub runs: u32,
    /// How many jobs were made by hand: triggered or filled in.
    pub by_hand: u32,
    /// How many firings had no job of their own.
    pub skipped: u64,
    /// How many of its jobs failed, one after the other, up to now.
    pub failures_in_a_row: u32,
    /// What became of its latest firings, the latest last.
    pub history: Vec<Outcome>,
    /// For which instants it has had jobs, however long ago.
    pub fired: Account,
    /// When it goes, if it has ended and nobody made it for good.
    pub gone_at: Option<Timestamp>,
}

/// The namespace and the owner of what belongs to nobody.
pub const SYSTEM: &str = "system";

impl Schedule {
    /// Where it stands.
    pub fn state(&self) -> &'static str {
        self.status.as_str()
    }

    /// When it is to be rung. An alarm that stands for a firing is set to the instant of it.
    pub fn alarm_at(&self) -> Option<Timestamp> {
        let waiting = self.waiting.map(|waiting| match self.outstanding.is_empty() {
            true => waiting.at,
            false => waiting.look_at,
        });
        match self.status {
            Status::Active => [self.next_at, waiting].into_iter().flatten().min(),
            Status::Ended => waiting.or(self.gone_at),
            Status::Stopped => self.task.as_ref().and_then(|task| task.gone_at),
            Status::Paused(_) => None,
        }
    }

    /// When it fires next, days that are left out apart.
    pub fn next_fire_at(&self) -> Option<Timestamp> {
        let next = self.next_at.filter(|_| self.status == Status::Active)?;
        match self.spec.is_excluded(next) {
            true => self.spec.next_fire_after(next),
            false => Some(next),
        }
    }

    /// Whether it has left out a firing since it was `before`: neither on a day that is left out,
    /// nor dropped by whoever paused, stopped or changed it.
    pub fn has_skipped_since(&self, before: &Schedule) -> bool {
        let is_unasked = |outcome: &Outcome| {
            let why = outcome.reason.as_deref();
            outcome.kind == OutcomeKind::Skipped
                && why != Some(reason::EXCLUDED)
                && why != Some(reason::DROPPED)
        };
        self.skipped > before.skipped && self.history.last().is_some_and(is_unasked)
    }

    /// How many jobs it made.
    pub fn fired_count(&self) -> u64 {
        u64::from(self.runs) + u64::from(self.by_hand)
    }
}

/// The id of the schedule that has this name in its `space`: the same for ever, so that it is there
/// once however often it is asked for.
pub fn named(tenant: &TenantId, space: &str, name: &str) -> EntityId {
    let parts = [tenant.as_str(), space, name].map(str::as_bytes);
    let [tenant, space, name] = parts;
    let bits = u128::from_be_bytes(digest(&[b"schedule", tenant, space, name]).0);
    EntityId { kind: Kind::Schedule, bits }
}

/// How much later the job of `at` starts: always the same for the same firing.
pub(crate) fn jitter_ms(schedule: EntityId, at: Timestamp, jitter_secs: u32) -> u64 {
    let bits = schedule.bits.to_be_bytes();
    let chance = number(digest(&[b"jitter", &bits, &at.0.to_be_bytes()]));
    chance % (u64::from(jitter_secs) * 1_000 + 1)
}
