//! What a submission asks for in time and order beyond the plain, and what is known of how a job
//! went so far. Rare: most jobs have neither.

use super::{Job, Payload, State};
use crate::governance::words;
use crate::id::JobId;
use crate::time::Timestamp;

/// What a submission asks for in time and order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    /// When the job is over, whatever became of it until then.
    pub deadline_at: Option<Timestamp>,
    /// The longest that it may wait for a worker once it is due, at each try.
    pub queue_timeout_ms: Option<u32>,
    /// What it waits for.
    pub after: Option<After>,
}

/// The jobs that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// Those that were named.
    pub jobs: Vec<JobId>,
    /// How many jobs of its batch, if it is what follows one.
    pub members: u32,
    /// What has to become of them.
    pub condition: AfterCondition,
}

words! {
    /// What has to become of the jobs that a job waits for.
    AfterCondition {
        /// All end well; if one does not, the job is cancelled.
        Success = "success",
        /// All end, well or not.
        End = "end",
    }
}

/// How a job went so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Course {
    /// What its worker last said about its progress.
    pub message: Option<Box<str>>,
    /// Where its worker got to, for the next try, if it is at hand.
    pub checkpoint: Option<Payload>,
    /// Whether the store keeps that beside the job and did not bring it along.
    pub is_checkpoint_elsewhere: bool,
    /// How often a worker put it off.
    pub snoozes: u16,
    /// Why it was cancelled, if neither by request nor by its expiry.
    pub ended_by: Option<&'static str>,
}

/// What a worker says about its progress beside the percentage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgressNote {
    /// For people; what was said before stays if there is none.
    pub message: Option<Box<str>>,
    /// Where it got to; what was kept before stays if there is none.
    pub checkpoint: Option<Payload>,
}

/// Which bound on its waiting a job has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GaveUp {
    /// The whole job took too long.
    Deadline,
    /// It was to be started by then.
    Expiry,
    /// It waited too long for a worker since it was due.
    QueueTimeout,
}

impl Job {
    /// What its submission asks for in time and order.
    pub fn bounds(&self) -> Option<&Bounds> {
        self.extras.as_ref()?.bounds.as_deref()
    }

    /// How it went so far.
    pub fn course(&self) -> Option<&Course> {
        self.extras.as_ref()?.course.as_deref()
    }

    /// The same, made on first use.
    pub fn course_mut(&mut self) -> &mut Course {
        self.extras_mut().course.get_or_insert_default()
    }

    /// When the whole job is over.
    pub fn deadline_at(&self) -> Option<Timestamp> {
        self.bounds()?.deadline_at
    }

    /// The jobs that it waits for, or waited for.
    pub fn after(&self) -> Option<&After> {
        self.bounds()?.after.as_ref()
    }

    /// Whether it waits for other jobs: it was never started, and is not due before they are done.
    pub fn waits_for_jobs(&self) -> bool {
        self.state == State::Queued && self.run_at == Timestamp::NEVER && self.after().is_some()
    }

    /// Whether its worker left something for the next try.
    pub fn has_checkpoint(&self) -> bool {
        self.course().is_some_and(|it| it.checkpoint.is_some() || it.is_checkpoint_elsewhere)
    }

    /// When a waiting job is given up, and why: by whichever bound comes first.
    pub fn gives_up_at(&self) -> Option<(Timestamp, GaveUp)> {
        let expires_at = match &self.state {
            State::Queued => self.expires_at(),
            State::Retrying { .. } => None,
            State::Running(_)
            | State::DlqPending
            | State::DlqRecorded
            | State::Succeeded { .. }
            | State::Failed { .. }
            | State::Cancelled { .. } => return None,
        };
        // What waits for something else than time waits for no worker.
        let due_at = self.due_at().filter(|due_at| *due_at != Timestamp::NEVER);
        let timeout_ms = self.bounds().and_then(|bounds| bounds.queue_timeout_ms);
        let waited_at = due_at.zip(timeout_ms).map(|(at, ms)| at.plus_millis(u64::from(ms)));
        let deadline = self.deadline_at().map(|at| (at, GaveUp::Deadline));
        let expiry = expires_at.map(|at| (at, GaveUp::Expiry));
        let waited = waited_at.map(|at| (at, GaveUp::QueueTimeout));
        [deadline, expiry, waited].into_iter().flatten().min()
    }

    /// Drops what its worker left for the next try: there is none.
    pub fn forget_checkpoint(&mut self) {
        let Some(extras) = &mut self.extras else { return };
        let Some(course) = &mut extras.course else { return };
        course.checkpoint = None;
        course.is_checkpoint_elsewhere = false;
        if **course == Course::default() {
            extras.course = None;
        }
        if **extras == super::Extras::default() {
            self.extras = None;
        }
    }
}
