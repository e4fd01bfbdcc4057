//! How much waits: the room taken up by jobs that have not ended, of one tenant and in all. What
//! callers can make grow has an end, and a neighbour's growth is not one's own. Stores count, the
//! engine says how much is allowed, the rule is here.

use crate::entity::alert::ALERT_TYPE;
use crate::job::Job;
use crate::limits::{AFTER_BYTES, JOB_BYTES};
use crate::rejection::Rejection;

/// What jobs that have not ended take up, and how much they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes of the tenant's jobs.
    pub tenant: u64,
    /// How many the tenant may have.
    pub tenant_max: u64,
    /// The tenant's jobs.
    pub jobs: u64,
    /// How many of those it may have.
    pub jobs_max: u64,
    /// Bytes of everybody's jobs.
    pub all: u64,
    /// How many all may have together.
    pub all_max: u64,
}

impl Backlog {
    /// Nothing waits, and anything may.
    pub const UNBOUNDED: Backlog = Backlog {
        tenant: 0,
        tenant_max: u64::MAX,
        jobs: 0,
        jobs_max: u64::MAX,
        all: 0,
        all_max: u64::MAX,
    };

    /// Whether there is room for `job`. What the server itself has to say of a tenant is not kept
    /// back by what the tenant has waiting: that may be just what it says. Whoever makes such jobs
    /// makes a bounded number.
    ///
    /// # Errors
    /// If its tenant, or everybody, has as much as they may.
    pub fn admit(&self, job: &Job) -> Result<(), Rejection> {
        let bytes = held_bytes(job);
        let is_full =
            self.tenant.saturating_add(bytes) > self.tenant_max || self.jobs >= self.jobs_max;
        if is_full && job.job_type.as_str() != ALERT_TYPE {
            return Err(Rejection::TenantBacklogFull);
        }
        if self.all.saturating_add(bytes) > self.all_max {
            return Err(Rejection::BacklogFull);
        }
        Ok(())
    }
}

/// What a job takes up until it ends: what the caller sent, and what keeping it costs. The same
/// from its first moment to its last, so that what is added is what is taken off.
pub fn held_bytes(job: &Job) -> u64 {
    let length = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    let mut bytes = JOB_BYTES + job.payload.len() + length(&job.trace);
    if let Some(key) = &job.idempotency {
        bytes += key.scope.len() + key.key.len();
    }
    if let Some(extras) = &job.extras {
        bytes += length(&extras.subject);
        let after = extras.bounds.as_ref().and_then(|bounds| bounds.after.as_ref());
        bytes += after.map_or(0, |after| AFTER_BYTES * after.jobs.len() + after.members as usize);
        bytes += extras.labels.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    }
    bytes as u64
}
