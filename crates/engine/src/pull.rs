//! What a worker asks for and what it gets.

use mainspring_kernel::command::DueClock;
use mainspring_kernel::{Job, JobType, QueueName, TenantId, Timestamp, TokenId, UserId, WorkerId};
use mainspring_store::PullNeeds;
use std::sync::Arc;
use std::time::Duration;

/// A worker's request for jobs.
#[derive(Debug, Clone)]
pub struct Pull {
    /// One tenant, or all of them in turn.
    pub tenant: Option<TenantId>,
    /// Who asks.
    pub worker: WorkerId,
    /// The token on whose behalf: nothing is handed out once it stopped working.
    pub token: Option<TokenId>,
    /// Only these types.
    pub types: Option<Arc<[JobType]>>,
    /// Only these queues.
    pub queues: Option<Arc<[QueueName]>>,
    /// At most this many.
    pub limit: usize,
    /// How long to wait for the first one.
    pub wait: Duration,
    /// For how long each is leased.
    pub lease_ms: u32,
    /// Whether jobs on governed objects are asked for, and in what way.
    pub governed: Option<GovernedPull>,
}

/// A pull of jobs on governed objects.
#[derive(Debug, Clone)]
pub struct GovernedPull {
    /// Whose token asks.
    pub holder: UserId,
    /// By whose clock jobs are due.
    pub clock: DueClock,
}

impl Pull {
    /// What it may take is due by then, if that is later than `now`.
    pub(crate) fn due_by(&self, now: Timestamp) -> Option<Timestamp> {
        self.governed.as_ref().map(|it| it.clock.due_by(now)).filter(|at| *at > now)
    }

    /// What the store has to look for.
    pub(crate) fn needs(&self) -> PullNeeds {
        PullNeeds {
            tenant: self.tenant.clone(),
            types: self.types.clone(),
            queues: self.queues.clone(),
            limit: self.limit,
        }
    }
}

/// A job handed to a worker; its state is `running` and carries the lease.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The job as of the grant.
    pub job: Job,
}
