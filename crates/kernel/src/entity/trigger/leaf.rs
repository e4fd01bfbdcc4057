//! What is seen of the world, and what is known of a leaf.

use super::Condition;
use crate::id::JobId;
use crate::time::Timestamp;

/// What somebody who looked at a leaf has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Which leaf, in the order in which they are read.
    pub leaf: u16,
    /// What was seen.
    pub seen: Seen,
}

/// What is seen of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Files that match: when the newest of them last changed, if there is one.
    Files(Option<Timestamp>),
    /// A task: how it ended, if it has.
    Task(Option<Box<Ended>>),
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its job.
    pub job: JobId,
    /// Whether it ended well.
    pub is_done: bool,
    /// The trace it belonged to.
    pub trace: Option<Box<str>>,
    /// The task it was made for.
    pub parent_task_id: Option<Box<str>>,
}

/// What is known of a leaf. An edge is *held* from when it is seen until a run is made for it, and
/// *taken* from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeafState {
    /// Of files that change. A file's edge is the time of its last change.
    Changed {
        /// Whether there is something to compare with, if it is nothing.
        is_initialized: bool,
        /// The newest file that was fired for, or that was there in the beginning.
        taken: Option<Timestamp>,
        /// A newer one.
        held: Option<Timestamp>,
    },
    /// Of files that are there.
    Exists {
        /// Whether there is one.
        is_there: bool,
    },
    /// Of a task. Its edge is the job that ended.
    Task {
        /// The one that was fired for.
        taken: Option<JobId>,
        /// Another one.
        held: Option<Box<Ended>>,
    },
    /// Of an opinion.
    Llm {
        /// When it was last asked for.
        asked_at: Option<Timestamp>,
        /// What came of it.
        answer: Option<bool>,
    },
}

impl LeafState {
    /// Nothing is known yet.
    pub fn of(leaf: &Condition) -> LeafState {
        match leaf {
            Condition::FileChanged { .. } => {
                LeafState::Changed { is_initialized: false, taken: None, held: None }
            }
            Condition::FileExists { .. } => LeafState::Exists { is_there: false },
            Condition::TaskDone { .. } | Condition::TaskFailed { .. } => {
                LeafState::Task { taken: None, held: None }
            }
            Condition::LlmEval { .. } | Condition::And(_) | Condition::Or(_) => {
                LeafState::Llm { asked_at: None, answer: None }
            }
        }
    }

    /// With what was seen of it at `now`; and when to look again, if a file has not settled.
    pub(super) fn with(
        &self,
        leaf: &Condition,
        seen: &Seen,
        settle_ms: u64,
        now: Timestamp,
    ) -> (LeafState, Option<Timestamp>) {
        match (self, seen) {
            (LeafState::Changed { is_initialized, taken, held }, Seen::Files(Some(newest))) => {
                let fires = matches!(leaf, Condition::FileChanged { fires_on_init: true, .. });
                if !is_initialized && !fires {
                    // It is there from the beginning.
                    let state = LeafState::Changed {
                        is_initialized: true,
                        taken: (*taken).max(Some(*newest)),
                        held: *held,
                    };
                    return (state, None);
                }
                if (*taken).max(*held) >= Some(*newest) {
                    return (self.clone(), None);
                }
                let settled_at = newest.plus_millis(settle_ms);
                // Of one that is dated ahead of its time nobody can say how long it has rested.
                if *newest <= now && now < settled_at {
                    return (self.clone(), Some(settled_at));
                }
                let held = Some(*newest);
                (LeafState::Changed { is_initialized: true, taken: *taken, held }, None)
            }
            (LeafState::Exists { .. }, Seen::Files(newest)) => {
                (LeafState::Exists { is_there: newest.is_some() }, None)
            }
            (LeafState::Task { taken, .. }, Seen::Task(Some(ended))) => {
                let wants_done = matches!(leaf, Condition::TaskDone { .. });
                match ended.is_done == wants_done && *taken != Some(ended.job) {
                    true => (LeafState::Task { taken: *taken, held: Some(ended.clone()) }, None),
                    false => (self.clone(), None),
                }
            }
            // What is gone takes no edge back, and what belongs to another kind of leaf says
            // nothing.
            (LeafState::Changed { .. }, Seen::Files(None) | Seen::Task(_))
            | (LeafState::Exists { .. }, Seen::Task(_))
            | (LeafState::Task { .. }, Seen::Task(None) | Seen::Files(_))
            | (LeafState::Llm { .. }, Seen::Files(_) | Seen::Task(_)) => (self.clone(), None),
        }
    }

    /// With what was seen of it as its beginning: what is there now is no edge.
    pub(super) fn begun(&self, leaf: &Condition, seen: &Seen) -> LeafState {
        let fires = matches!(leaf, Condition::FileChanged { fires_on_init: true, .. });
        match (self, seen) {
            (LeafState::Changed { is_initialized: false, .. }, Seen::Files(_)) if fires => {
                self.clone()
            }
            (LeafState::Changed { taken, .. }, Seen::Files(newest)) => LeafState::Changed {
                is_initialized: true,
                taken: (*taken).max(*newest),
                held: None,
            },
            (LeafState::Exists { .. }, Seen::Files(newest)) => {
                LeafState::Exists { is_there: newest.is_some() }
            }
            (LeafState::Changed { .. } | LeafState::Exists { .. }, Seen::Task(_))
            | (LeafState::Task { .. } | LeafState::Llm { .. }, Seen::Files(_) | Seen::Task(_)) => {
                self.clone()
            }
        }
    }

    /// A run was made for it.
    pub(super) fn taken(&self) -> LeafState {
        match self {
            LeafState::Changed { is_initialized, taken, held } => LeafState::Changed {
                is_initialized: *is_initialized,
                taken: (*taken).max(*held),
                held: None,
            },
            LeafState::Exists { is_there } => LeafState::Exists { is_there: *is_there },
            LeafState::Task { taken, held } => LeafState::Task {
                taken: held.as_ref().map(|ended| ended.job).or(*taken),
                held: None,
            },
            LeafState::Llm { asked_at, .. } => LeafState::Llm { asked_at: *asked_at, answer: None },
        }
    }
}
