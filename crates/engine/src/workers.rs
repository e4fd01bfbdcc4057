//! Who has been heard of: for people and for `explain`, never for a decision.

use mainspring_kernel::{JobType, QueueName, TenantId, Timestamp, WorkerId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// Workers remembered, at most.
pub const WORKERS_MAX: usize = 10_000;
/// Workers of one tenant remembered, at most.
pub const WORKERS_PER_TENANT_MAX: usize = 1_000;
/// What the remembered workers of one tenant may take up, with the names they ask for.
pub const WORKERS_PER_TENANT_BYTES_MAX: usize = 1 << 20;
/// For so long it is remembered who asked for what, to tell since when nobody has.
const REMEMBERED: Duration = Duration::from_secs(24 * 3_600);
/// What a worker takes up besides names.
const WORKER_BYTES: usize = 256;
/// What a name takes up besides its letters.
const NAME_BYTES: usize = 32;

/// The list of workers. Two tenants may well use one name: what one does never hides the other's,
/// and a tenant that makes up names only makes its own workers forgotten.
#[derive(Debug, Default)]
pub(crate) struct Workers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    tenants: BTreeMap<Option<TenantId>, Team>,
    count: usize,
}

/// The workers of one tenant.
#[derive(Debug, Default)]
struct Team {
    workers: BTreeMap<WorkerId, WorkerSeen>,
    bytes: usize,
}

impl Team {
    fn remove(&mut self, id: &WorkerId) {
        if let Some(gone) = self.workers.remove(id) {
            self.bytes -= bytes(&gone);
        }
    }

    /// Forgets whoever has been silent longest.
    fn forget_one(&mut self) -> bool {
        let silent = self.workers.values().min_by_key(|seen| seen.last_seen);
        let Some(id) = silent.map(|seen| seen.id.clone()) else { return false };
        self.remove(&id);
        true
    }
}

/// What remembering a worker takes.
fn bytes(seen: &WorkerSeen) -> usize {
    let types = seen.types.iter().flat_map(|types| types.iter()).map(|name| name.as_str().len());
    let queues =
        seen.queues.iter().flat_map(|queues| queues.iter()).map(|name| name.as_str().len());
    let names = types.chain(queues).map(|letters| letters + NAME_BYTES).sum::<usize>();
    WORKER_BYTES + seen.id.as_str().len() + names
}

impl Workers {
    /// Notes that a worker asked for jobs.
    pub(crate) fn pulled(&self, pull: &crate::Pull, now: Timestamp, granted: usize) {
        let mut known = self.known();
        let team = known.tenants.entry(pull.tenant.clone()).or_default();
        let before = team.workers.len();
        let seen = match team.workers.get(&pull.worker) {
            Some(seen) => seen.clone(),
            None => WorkerSeen {
                id: pull.worker.clone(),
                tenant: pull.tenant.clone(),
                types: None,
                queues: None,
                last_seen: now,
                first_seen: now,
                granted: 0,
            },
        };
        team.remove(&pull.worker);
        let seen = WorkerSeen {
            types: pull.types.clone(),
            queues: pull.queues.clone(),
            last_seen: now,
            granted: seen.granted + granted as u64,
            ..seen
        };
        let more = bytes(&seen);
        while team.workers.len() >= WORKERS_PER_TENANT_MAX
            || team.bytes + more > WORKERS_PER_TENANT_BYTES_MAX
        {
            if !team.forget_one() {
                break;
            }
        }
        team.bytes += more;
        team.workers.insert(pull.worker.clone(), seen);
        let after = team.workers.len();
        known.count = known.count + after - before;
        while known.count > WORKERS_MAX && known.forget_one() {}
    }

    /// Notes a heartbeat.
    pub(crate) fn beat(&self, worker: &WorkerId, now: Timestamp) {
        for team in self.known().tenants.values_mut() {
            if let Some(seen) = team.workers.get_mut(worker) {
                seen.last_seen = now;
            }
        }
    }

    /// Everyone heard of within `memory`, by name.
    pub(crate) fn list(&self, now: Timestamp, memory: Duration) -> Vec<WorkerSeen> {
        let mut all = self.remembered(now);
        all.retain(|seen| now.since(seen.last_seen) <= memory);
        all
    }

    /// Everyone who is remembered, by name.
    pub(crate) fn remembered(&self, now: Timestamp) -> Vec<WorkerSeen> {
        let mut known = self.known();
        known.tenants.retain(|_, team| {
            team.workers.retain(|_, seen| now.since(seen.last_seen) <= REMEMBERED);
            team.bytes = team.workers.values().map(bytes).sum();
            !team.workers.is_empty()
        });
        known.count = known.tenants.values().map(|team| team.workers.len()).sum();
        let teams = known.tenants.values();
        let mut all: Vec<_> = teams.flat_map(|team| team.workers.values().cloned()).collect();
        all.sort_by(|a, b| (&a.id, &a.tenant).cmp(&(&b.id, &b.tenant)));
        all
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Forgets somebody of the tenant that has most.
    fn forget_one(&mut self) -> bool {
        let largest = self.tenants.values_mut().max_by_key(|team| team.workers.len());
        let is_one_less = largest.is_some_and(Team::forget_one);
        self.count -= usize::from(is_one_less);
        is_one_less
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pull;
    use mainspring_kernel::JobType;

    const MEMORY: Duration = Duration::from_secs(120);

    fn pull(tenant: &str, worker: &str, names: usize) -> Pull {
        let name = |n| JobType::new(&format!("{n:0>190}")).unwrap();
        Pull {
            tenant: Some(TenantId::new(tenant).unwrap()),
            worker: WorkerId::new(worker).unwrap(),
            token: None,
            types: (names > 0).then(|| (0..names).map(name).collect()),
            queues: None,
            limit: 1,
            wait: Duration::ZERO,
            lease_ms: 1_000,
            governed: None,
        }
    }

    #[test]
    fn a_tenant_that_makes_up_names_only_loses_its_own_workers() {
        let workers = Workers::default();
        workers.pulled(&pull("quiet", "w", 3), Timestamp(0), 1);
        for n in 0..3_000 {
            workers.pulled(&pull("loud", &format!("w{n}"), 0), Timestamp(n + 1), 0);
        }
        let list = workers.list(Timestamp(3_000), MEMORY);
        assert_eq!(list.len(), WORKERS_PER_TENANT_MAX + 1);
        let quiet = list.iter().find(|seen| seen.id.as_str() == "w").unwrap();
        assert_eq!((quiet.granted, quiet.types.as_ref().unwrap().len()), (1, 3));
        assert!(list.iter().any(|seen| seen.id.as_str() == "w2999"), "the newest is there");
        assert!(list.iter().all(|seen| seen.id.as_str() != "w1999"), "the oldest made room");
    }

    #[test]
    fn long_lists_of_names_are_bounded_by_bytes() {
        let workers = Workers::default();
        for n in 0..1_000 {
            workers.pulled(&pull("loud", &format!("w{n}"), 100), Timestamp(n), 0);
        }
        let list = workers.list(Timestamp(1_000), MEMORY);
        let held: usize = list.iter().map(bytes).sum();
        assert!(!list.is_empty() && held <= WORKERS_PER_TENANT_BYTES_MAX, "{held}");
        // One that comes again takes its own place.
        let last = list.last().unwrap().id.as_str().to_owned();
        for n in 0..100 {
            workers.pulled(&pull("loud", &last, 100), Timestamp(2_000 + n), 1);
        }
        let again = workers.list(Timestamp(2_100), MEMORY);
        assert_eq!(again.len(), list.len());
        assert_eq!(again.last().unwrap().granted, 100);
    }

    #[test]
    fn everybody_together_is_bounded_and_the_largest_makes_room() {
        let workers = Workers::default();
        for tenant in 0..12 {
            for n in 0..900 {
                let name = format!("w{n}");
                workers.pulled(&pull(&format!("t{tenant}"), &name, 0), Timestamp(n), 0);
            }
        }
        workers.pulled(&pull("small", "only", 0), Timestamp(0), 0);
        let list = workers.list(Timestamp(900), MEMORY);
        assert_eq!(list.len(), WORKERS_MAX);
        assert!(list.iter().any(|seen| seen.id.as_str() == "only"));
        let later = Timestamp(900) + MEMORY * 2;
        assert_eq!(workers.list(later, MEMORY).len(), 0, "the silent go");
        assert_eq!(workers.remembered(later).len(), WORKERS_MAX, "and are remembered for a while");
        assert_eq!(workers.remembered(later + REMEMBERED).len(), 0);
    }
}
