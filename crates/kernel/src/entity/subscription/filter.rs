//! Which events a subscription passes on.

use crate::evolve::Transition;
use crate::governance::words;
use crate::job::StateName;
use crate::name::{JobType, QueueName};

words! {
    /// What an event is called outside.
    EventName {
        /// A job was accepted.
        Submitted = "job.submitted",
        /// A job waits again, without having used a try.
        Queued = "job.queued",
        /// A worker has it.
        Running = "job.running",
        /// It waits for its next try.
        Retrying = "job.retrying",
        /// It failed for good and is on its way to the dead letter queue.
        DlqPending = "job.dlq_pending",
        /// It is there.
        DlqRecorded = "job.dlq_recorded",
        /// It was done.
        Succeeded = "job.succeeded",
        /// It will not be done.
        Failed = "job.failed",
        /// It is not wanted any more.
        Cancelled = "job.cancelled",
    }
}

impl EventName {
    /// What a move is called.
    pub const fn of(step: &Transition) -> EventName {
        match (step.from, step.to) {
            (None, _) => EventName::Submitted,
            (Some(_), StateName::Queued) => EventName::Queued,
            (Some(_), StateName::Running) => EventName::Running,
            (Some(_), StateName::Retrying) => EventName::Retrying,
            (Some(_), StateName::DlqPending) => EventName::DlqPending,
            (Some(_), StateName::DlqRecorded) => EventName::DlqRecorded,
            (Some(_), StateName::Succeeded) => EventName::Succeeded,
            (Some(_), StateName::Failed) => EventName::Failed,
            (Some(_), StateName::Cancelled) => EventName::Cancelled,
        }
    }
}

/// Which events are passed on. A list that is empty leaves nothing out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of these names.
    pub events: Vec<EventName>,
    /// Of jobs of these types.
    pub types: Vec<JobType>,
    /// Of jobs in these queues.
    pub queues: Vec<QueueName>,
    /// Of the jobs of every tenant, not only of the subscription's own.
    pub is_for_all: bool,
}

impl Filter {
    /// Whether an event of that name, of a job of that type and queue, is passed on. Whose it is
    /// must be seen to before.
    pub fn admits(&self, event: EventName, job_type: &JobType, queue: &QueueName) -> bool {
        (self.events.is_empty() || self.events.contains(&event))
            && (self.types.is_empty() || self.types.contains(job_type))
            && (self.queues.is_empty() || self.queues.contains(queue))
    }
}
