//! Triggers: rules that make agent runs every so often, once, or when a condition holds. Here is
//! what a trigger is; `trigger/condition.rs` has conditions, `trigger/evaluate.rs` what is true of
//! them, `trigger/decide.rs` what is asked of a trigger, `trigger/ring.rs` what time does,
//! `trigger/settle.rs` what it learns of its runs.
//!
//! What is seen of the world is kept per leaf of the condition, in the trigger itself: an edge that
//! was seen stays until a run has been made for it. So whoever saw it may die, and two servers that
//! see it make one run. Firing is always the ring of an alarm.

mod answer;
pub mod command;
mod condition;
mod decide;
mod evaluate;
mod leaf;
mod log;
mod ring;
mod settle;
mod turn;

pub use command::TriggerCommand;
pub use condition::Condition;
pub(super) use decide::decide;
pub use evaluate::{Evaluated, Finding, Rules, Truth, Why, evaluate};
pub use leaf::{Ended, LeafState, Seen, Sight};
pub use log::{Evaluation, Outcome};
pub(super) use ring::ring;
pub(super) use settle::settle;

use super::schedule::Pause;
use super::{EntityId, Kind};
use crate::fingerprint::digest;
use crate::id::JobId;
use crate::name::TenantId;
use crate::time::Timestamp;

/// What makes a trigger fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TriggerType {
    /// Every so often.
    Recurring,
    /// Once; then it is gone.
    Scheduled,
    /// When its condition holds.
    Conditional,
}

impl TriggerType {
    /// All of them.
    pub const ALL: [TriggerType; 3] =
        [TriggerType::Recurring, TriggerType::Scheduled, TriggerType::Conditional];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            TriggerType::Recurring => "recurring",
            TriggerType::Scheduled => "scheduled",
            TriggerType::Conditional => "conditional",
        }
    }

    /// The type of that name.
    pub fn parse(text: &str) -> Option<TriggerType> {
        TriggerType::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// How quickly a trigger goes by what happens. Taken from the settings when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// What holds for as long as nothing changes is looked at this often, at most.
    pub check_ms: u64,
    /// A file counts as changed when it has been left alone for this long.
    pub settle_ms: u64,
    /// A run that has not ended after this long holds the trigger up no longer.
    pub stuck_ms: u64,
}

impl Pace {
    /// The pace where nobody says otherwise.
    pub const DEFAULT: Pace = Pace { check_ms: 5_000, settle_ms: 500, stuck_ms: 7_200_000 };
}

/// What a trigger is to do: everything that its owner chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSpec {
    /// Its id as callers know it, once in a tenant.
    pub name: Box<str>,
    /// What makes it fire. The parts that belong to another type are kept, and nothing more.
    pub kind: TriggerType,
    /// Seconds from one run to the next; for `recurring`.
    pub interval_secs: Option<u64>,
    /// When; for `scheduled`.
    pub run_at: Option<Timestamp>,
    /// On which condition; for `conditional`.
    pub condition: Option<Condition>,
    /// Seconds that must lie between two runs; for `conditional`.
    pub cooldown_secs: u64,
    /// What its runs are to do.
    pub prompt: Box<str>,
    /// The priority of its runs.
    pub priority: u8,
    /// Seconds that one attempt of a run may take.
    pub timeout_secs: Option<u32>,
    /// The trace of its runs; else that of the task it waited for.
    pub trace: Option<Box<str>>,
    /// The parent of its runs; else that of the task it waited for.
    pub parent_task_id: Option<Box<str>>,
    /// How quickly it goes by what happens.
    pub pace: Pace,
    /// Whether it goes by tasks of everybody in its tenant, or of its owner alone.
    pub sees_tenant: bool,
}

impl TriggerSpec {
    /// What a condition is judged by besides what is seen.
    pub fn rules(&self) -> Rules {
        Rules { pace: self.pace, cooldown_ms: self.cooldown_secs.saturating_mul(1_000) }
    }

    /// The condition it goes by, if it goes by one.
    pub fn watched_condition(&self) -> Option<&Condition> {
        match self.kind {
            TriggerType::Conditional => self.condition.as_ref(),
            TriggerType::Recurring | TriggerType::Scheduled => None,
        }
    }
}

/// Where a trigger stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It fires.
    Active,
    /// It does not until it is resumed.
    Paused(Box<Pause>),
}

impl Status {
    /// The names of all of them on the wire.
    pub const NAMES: [&'static str; 2] = ["active", "paused"];

    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Paused(_) => "paused",
        }
    }
}

/// How the last run of a trigger ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastStatus {
    /// Well.
    Ok,
    /// Badly, or it took too long.
    Error,
    /// There was none: it was refused.
    Skipped,
}

impl LastStatus {
    /// All of them.
    pub const ALL: [LastStatus; 3] = [LastStatus::Ok, LastStatus::Error, LastStatus::Skipped];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            LastStatus::Ok => "ok",
            LastStatus::Error => "error",
            LastStatus::Skipped => "skipped",
        }
    }

    /// The status of that name.
    pub fn parse(text: &str) -> Option<LastStatus> {
        LastStatus::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// A job of the trigger that has not ended, as far as it knows. There is one at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// Which.
    pub job: JobId,
    /// Since when.
    pub at: Timestamp,
    /// When to look at it, should no word of its end come.
    pub look_at: Timestamp,
    /// The leaf that it is a question about; a run if there is none.
    pub leaf: Option<u16>,
}

/// What a trigger that was somewhere else before brings along.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Past {
    /// When it was made there.
    pub created_at: Option<Timestamp>,
    /// When it last fired.
    pub last_triggered_at: Option<Timestamp>,
    /// When its condition was last looked at.
    pub last_eval_at: Option<Timestamp>,
    /// The task whose result it fired for.
    pub last_seen_result_id: Option<Box<str>>,
    /// The newest file it fired for, or began with.
    pub last_mtime: Option<Timestamp>,
    /// Whether it has begun to look at files.
    pub is_initialized: bool,
    /// How its last run ended.
    pub last_status: Option<LastStatus>,
    /// What that run had to say.
    pub last_error: Option<Box<str>>,
    /// How long it took.
    pub last_duration_ms: Option<u64>,
    /// When it is due next.
    pub next_run_at: Option<Timestamp>,
}

/// A rule that makes agent runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// What it is to do.
    pub spec: TriggerSpec,
    /// Where it stands.
    pub status: Status,
    /// What is known of the leaves of its condition, in their order.
    pub leaves: Vec<LeafState>,
    /// When it last fired.
    pub last_triggered_at: Option<Timestamp>,
    /// When its condition was last looked at with an outcome.
    pub last_eval_at: Option<Timestamp>,
    /// The job it waits for.
    pub outstanding: Option<Outstanding>,
    /// How its last run ended.
    pub last_status: Option<LastStatus>,
    /// What that run had to say.
    pub last_error: Option<Box<str>>,
    /// How long it took.
    pub last_duration_ms: Option<u64>,
    /// When it is to fire, or to ask, next.
    pub next_run_at: Option<Timestamp>,
    /// How many runs it has made.
    pub fired: u32,
    /// What was decided lately, the latest last.
    pub log: Vec<Evaluation>,
    /// When it was made, if that was elsewhere and before.
    pub made_elsewhere_at: Option<Timestamp>,
}

impl Trigger {
    /// Where it stands.
    pub fn state(&self) -> &'static str {
        self.status.as_str()
    }

    /// When it is to be rung. While it waits for a job, only to look at that.
    pub fn alarm_at(&self) -> Option<Timestamp> {
        match (&self.status, self.outstanding) {
            (Status::Paused(_), _) => None,
            (Status::Active, Some(outstanding)) => Some(outstanding.look_at),
            (Status::Active, None) => self.next_run_at,
        }
    }

    /// The end of its cooldown, if that lies ahead of `now`.
    pub fn cooldown_until(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.last_triggered_at.filter(|_| self.spec.kind == TriggerType::Conditional)?;
        Some(last.plus_millis(self.spec.rules().cooldown_ms)).filter(|end| *end > now)
    }

    /// When it is looked at next, as far as that is known.
    pub fn next_shown(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_run_at.or_else(|| self.cooldown_until(now))
    }

    /// When the run or the question it waits for began.
    pub fn running_at(&self) -> Option<Timestamp> {
        self.outstanding.map(|outstanding| outstanding.at)
    }

    /// The newest file that it has fired for, or began with.
    pub fn last_mtime(&self) -> Option<Timestamp> {
        let taken = self.leaves.iter().filter_map(|leaf| match leaf {
            LeafState::Changed { taken, .. } => *taken,
            LeafState::Exists { .. } | LeafState::Task { .. } | LeafState::Llm { .. } => None,
        });
        taken.max()
    }

    /// The last task whose result it has fired for.
    pub fn last_seen_result_id(&self) -> Option<&str> {
        let leaves = self.spec.watched_condition()?.leaves();
        let mut seen = leaves.iter().zip(&self.leaves).filter_map(|(leaf, state)| {
            let is_taken = matches!(state, LeafState::Task { taken: Some(_), .. });
            leaf.task().filter(|_| is_taken)
        });
        seen.next_back()
    }

    /// Whether it has begun to look at files, all of those that it goes by.
    pub fn is_initialized(&self) -> bool {
        self.leaves.iter().all(|leaf| match leaf {
            LeafState::Changed { is_initialized, .. } => *is_initialized,
            LeafState::Exists { .. } | LeafState::Task { .. } | LeafState::Llm { .. } => true,
        })
    }
}

/// The id of the trigger of that name: the same for ever, so that there is one of it in a tenant.
pub fn named(tenant: &TenantId, name: &str) -> EntityId {
    let bits = digest(&[b"trigger", tenant.as_str().as_bytes(), name.as_bytes()]);
    EntityId { kind: Kind::Trigger, bits: u128::from_be_bytes(bits.0) }
}
