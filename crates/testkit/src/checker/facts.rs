//! A history arranged for looking things up.

use crate::history::{
    Answer, Call, EventDump, Grant, History, JobDump, Operation, Outcome, PullScope, fence,
};
use mainspring_kernel::{JobId, StateName};
use std::collections::BTreeMap;

/// A grant with the call that brought it.
pub(super) struct Given<'a> {
    pub(super) grant: &'a Grant,
    pub(super) worker: &'a str,
    pub(super) scope: &'a PullScope,
    pub(super) lease_ms: u64,
    pub(super) invoked_at: u64,
    pub(super) ended_at: u64,
}

/// The history, indexed.
pub(super) struct Facts<'a> {
    pub(super) history: &'a History,
    pub(super) jobs: BTreeMap<&'a str, &'a JobDump>,
    /// Delivered grants of each job, in the order in which the answers came.
    pub(super) grants: BTreeMap<&'a str, Vec<Given<'a>>>,
    /// The calls about each job.
    pub(super) calls: BTreeMap<&'a str, Vec<&'a Operation>>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let jobs = history.dump.jobs.iter().map(|job| (&*job.id, job)).collect();
        let mut grants: BTreeMap<&str, Vec<Given<'_>>> = BTreeMap::new();
        let mut calls: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
        for operation in &history.operations {
            if let Some(job) = operation.job() {
                calls.entry(job).or_default().push(operation);
            }
            if let (
                Call::Pull { worker, lease_ms, scope },
                Outcome::Ok(Answer::Grants(given)),
                Some(ended_at),
            ) = (&operation.call, &operation.outcome, operation.ended_at)
            {
                for grant in given {
                    grants.entry(&grant.job).or_default().push(Given {
                        grant,
                        worker,
                        scope,
                        lease_ms: *lease_ms,
                        invoked_at: operation.invoked_at,
                        ended_at,
                    });
                }
            }
        }
        grants.values_mut().for_each(|given| given.sort_by_key(|given| given.ended_at));
        Facts { history, jobs, grants, calls }
    }

    /// Whether retention may have removed a job that was once there. Its id tells when it was made.
    pub(super) fn may_be_gone(&self, job: &str) -> bool {
        let made_at = job.parse::<JobId>().map(|id| (id.0 >> 80) as i64 * 1000);
        let kept_since = self.history.dump.kept_since;
        made_at.is_ok_and(|made_at| kept_since.is_some_and(|since| made_at < since))
    }

    /// Successful calls about `job`.
    pub(super) fn accepted(&self, job: &str) -> impl Iterator<Item = (&'a Operation, &'a Answer)> {
        let calls = self.calls.get(job).into_iter().flatten();
        calls.filter_map(|operation| Some((*operation, operation.answer()?)))
    }
}

impl Operation {
    /// The job this call is about.
    pub fn job(&self) -> Option<&str> {
        match &self.call {
            Call::Complete { job, .. }
            | Call::Fail { job, .. }
            | Call::Release { job, .. }
            | Call::Heartbeat { job, .. }
            | Call::Effect { job, .. }
            | Call::Cancel { job }
            | Call::Read { job } => Some(job),
            Call::Submit { .. }
            | Call::Pull { .. }
            | Call::Requeue { .. }
            | Call::RequestDiscard { .. }
            | Call::ApproveDiscard { .. }
            | Call::RejectDiscard { .. }
            | Call::Pause { .. }
            | Call::ListJobs { .. }
            | Call::ListItems
            | Call::Knock { .. }
            | Call::Revoke { .. } => None,
        }
    }

    /// The lease token this call presents.
    pub fn token(&self) -> Option<&str> {
        match &self.call {
            Call::Complete { token, .. }
            | Call::Fail { token, .. }
            | Call::Release { token, .. }
            | Call::Heartbeat { token, .. }
            | Call::Effect { token, .. } => Some(token),
            Call::Cancel { .. }
            | Call::Read { .. }
            | Call::Submit { .. }
            | Call::Pull { .. }
            | Call::Requeue { .. }
            | Call::RequestDiscard { .. }
            | Call::ApproveDiscard { .. }
            | Call::RejectDiscard { .. }
            | Call::Pause { .. }
            | Call::ListJobs { .. }
            | Call::ListItems
            | Call::Knock { .. }
            | Call::Revoke { .. } => None,
        }
    }

    /// What it was answered, if it was accepted.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Ok(answer) => Some(answer),
            Outcome::Fail(_) | Outcome::Info | Outcome::Gone => None,
        }
    }

    /// Whether it may have happened.
    pub fn may_have_happened(&self) -> bool {
        !matches!(self.outcome, Outcome::Fail(_))
    }

    /// Whether this is the end of an attempt by its worker.
    pub fn is_report(&self) -> bool {
        matches!(self.call, Call::Complete { .. } | Call::Fail { .. } | Call::Release { .. })
    }

    /// The counter of the token it presents.
    pub fn fence(&self) -> Option<u32> {
        self.token().map(fence)
    }
}

/// Reason of an attempt that was given back.
pub(super) const RELEASED: &str = "RELEASED";

impl JobDump {
    /// Attempts in order: the event that began each, and the one that ended it.
    pub(super) fn attempts(&self) -> Vec<(&EventDump, Option<&EventDump>)> {
        let events = self.events.iter().enumerate();
        let starts = events.filter(|(_, event)| event.to == StateName::Running);
        starts.map(|(nth, event)| (event, self.events.get(nth + 1))).collect()
    }

    /// How the attempt under `fence` began and ended.
    pub(super) fn attempt(&self, fence: u32) -> Option<(&EventDump, Option<&EventDump>)> {
        let nth = usize::try_from(fence).ok()?.checked_sub(1)?;
        self.attempts().get(nth).copied()
    }
}

impl EventDump {
    /// Whether an attempt was given back by it.
    pub(super) fn is_release(&self) -> bool {
        self.to == StateName::Retrying && self.code.as_deref() == Some(RELEASED)
    }
}
