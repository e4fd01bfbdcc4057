//! Who has been heard of: for people and for `explain`, never for a decision.

use mainspring_kernel::{JobType, QueueName, TenantId, Timestamp, WorkerId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A worker that pulled or sent a heartbeat lately.
#[derive(Debug, Clone)]
pub struct WorkerSeen {
    /// Its name.
    pub id: WorkerId,
    /// The tenant it works for, or all.
    pub tenant: Option<TenantId>,
    /// The types it asks for, or any.
    pub types: Option<Vec<JobType>>,
    /// The queues it asks for, or any.
    pub queues: Option<Vec<QueueName>>,
    /// When it was last heard of.
    pub last_seen: Timestamp,
    /// When it was first heard of.
    pub first_seen: Timestamp,
    /// Jobs granted to it since.
    pub granted: u64,
}

impl WorkerSeen {
    /// Whether this worker asks for such jobs.
    pub fn wants(&self, tenant: &TenantId, job_type: &JobType, queue: &QueueName) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
            && self.types.as_ref().is_none_or(|types| types.contains(job_type))
            && self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }
}

/// At most this many are remembered; the one silent longest makes room.
const WORKERS_MAX: usize = 10_000;

/// The list of workers.
#[derive(Debug, Default)]
pub(crate) struct Workers(Mutex<BTreeMap<WorkerId, WorkerSeen>>);

impl Workers {
    /// Notes that a worker asked for jobs.
    pub(crate) fn pulled(&self, pull: &crate::Pull, now: Timestamp, granted: usize) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= WORKERS_MAX && !all.contains_key(&pull.worker) {
            let silent = all.values().min_by_key(|seen| seen.last_seen).map(|seen| seen.id.clone());
            if let Some(silent) = silent {
                all.remove(&silent);
            }
        }
        let seen = all.entry(pull.worker.clone()).or_insert_with(|| WorkerSeen {
            id: pull.worker.clone(),
            tenant: None,
            types: None,
            queues: None,
            last_seen: now,
            first_seen: now,
            granted: 0,
        });
        seen.tenant.clone_from(&pull.tenant);
        seen.types.clone_from(&pull.types);
        seen.queues.clone_from(&pull.queues);
        seen.last_seen = now;
        seen.granted += granted as u64;
    }

    /// Notes a heartbeat.
    pub(crate) fn beat(&self, worker: &WorkerId, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = all.get_mut(worker) {
            seen.last_seen = now;
        }
    }

    /// Everyone heard of within `memory`, by name; the others are forgotten.
    pub(crate) fn list(&self, now: Timestamp, memory: Duration) -> Vec<WorkerSeen> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, seen| now.since(seen.last_seen) <= memory);
        all.values().cloned().collect()
    }
}
