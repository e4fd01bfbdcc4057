//! Who has been heard of: for people and for `explain`, never for a decision.

use mainspring_kernel::{JobType, QueueName, TenantId, Timestamp, WorkerId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A worker that pulled or sent a heartbeat lately.
#[derive(Debug, Clone)]
pub struct WorkerSeen {
    /// Its name.
    pub id: WorkerId,
    /// The tenant it works for, or all.
    pub tenant: Option<TenantId>,
    /// The types it asks for, or any.
    pub types: Option<Arc<[JobType]>>,
    /// The queues it asks for, or any.
    pub queues: Option<Arc<[QueueName]>>,
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

/// The list of workers. Two tenants may well use one name: what one does never hides the other's.
#[derive(Debug, Default)]
pub(crate) struct Workers(Mutex<BTreeMap<(WorkerId, Option<TenantId>), WorkerSeen>>);

impl Workers {
    /// Notes that a worker asked for jobs.
    pub(crate) fn pulled(&self, pull: &crate::Pull, now: Timestamp, granted: usize) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (pull.worker.clone(), pull.tenant.clone());
        if all.len() >= WORKERS_MAX && !all.contains_key(&key) {
            let silent = all.iter().min_by_key(|(_, seen)| seen.last_seen);
            if let Some(silent) = silent.map(|(key, _)| key.clone()) {
                all.remove(&silent);
            }
        }
        let seen = all.entry(key).or_insert_with(|| WorkerSeen {
            id: pull.worker.clone(),
            tenant: pull.tenant.clone(),
            types: None,
            queues: None,
            last_seen: now,
            first_seen: now,
            granted: 0,
        });
        seen.types.clone_from(&pull.types);
        seen.queues.clone_from(&pull.queues);
        seen.last_seen = now;
        seen.granted += granted as u64;
    }

    /// Notes a heartbeat.
    pub(crate) fn beat(&self, worker: &WorkerId, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = all.range_mut((worker.clone(), None)..);
        for (_, seen) in named.take_while(|((name, _), _)| name == worker) {
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
