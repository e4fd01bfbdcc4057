//! What a batch adds to the numbers kept.

use crate::backlog::Amount;
use crate::values::Map;
use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::{Job, JobType, QueueName, StateName, TenantId, Totals};

/// Changes to the numbers kept.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) states: [i64; 8],
    pub(crate) totals: Totals,
    queues: Map<QueueName, QueueTally>,
    held: Map<TenantId, Amount>,
    types: Map<JobType, [i64; 3]>,
}

/// The states in which the jobs of a type are counted, as `type/<state>/<type>`.
pub(crate) const COUNTED_BY_TYPE: [StateName; 3] =
    [StateName::Queued, StateName::Running, StateName::Retrying];

/// Changes to the numbers of one queue.
#[derive(Debug, Default)]
pub(crate) struct QueueTally {
    pub(crate) ready: i64,
    pub(crate) pending: i64,
    pub(crate) running: i64,
}

impl Tallies {
    pub(crate) fn queue(&mut self, queue: &QueueName) -> &mut QueueTally {
        if !self.queues.contains_key(queue) {
            self.queues.insert(queue.clone(), QueueTally::default());
        }
        self.queues.get_mut(queue).expect("just made sure")
    }

    /// A job of a type comes into a state, or leaves it.
    pub(crate) fn of_type(&mut self, job_type: &JobType, state: StateName, by: i64) {
        let Some(at) = COUNTED_BY_TYPE.iter().position(|counted| *counted == state) else { return };
        if !self.types.contains_key(job_type) {
            self.types.insert(job_type.clone(), [0; 3]);
        }
        self.types.get_mut(job_type).expect("just made sure")[at] += by;
    }

    /// A job begins or ends to be one that has not ended.
    pub(crate) fn hold(&mut self, job: &Job, by: i64) {
        if !self.held.contains_key(&job.tenant) {
            self.held.insert(job.tenant.clone(), Amount::default());
        }
        let amount = self.held.get_mut(&job.tenant).expect("just made sure");
        amount.jobs += by;
        amount.bytes += by * i64::try_from(held_bytes(job)).unwrap_or(i64::MAX);
    }

    /// What the batch adds to what a tenant, and all tenants, have that has not ended.
    pub(crate) fn held(&self, tenant: &TenantId) -> (Amount, i64) {
        let own = self.held.get(tenant).copied().unwrap_or_default();
        (own, self.held.values().map(|amount| amount.bytes).sum())
    }

    /// The same by tenant.
    pub(crate) fn all_held(&self) -> Vec<(TenantId, Amount)> {
        self.held.iter().map(|(tenant, amount)| (tenant.clone(), *amount)).collect()
    }

    /// The changes by name; those that add up to nothing are left out.
    pub(crate) fn by_name(&self) -> (Vec<String>, Vec<i64>) {
        let Tallies { states, totals, queues, held, types } = self;
        // How many ended, and how, are numbers of the states.
        let Totals { submitted, claims, retries, jobs_retried, .. } = *totals;
        let mut all: Vec<(String, i64)> = StateName::ALL
            .iter()
            .zip(states)
            .map(|(state, by)| (format!("state/{state}"), *by))
            .collect();
        let total = |name: &str, by: u64| (format!("total/{name}"), i64::try_from(by).unwrap_or(0));
        all.extend([
            total("submitted", submitted),
            total("claims", claims),
            total("retries", retries),
            total("jobs_retried", jobs_retried),
        ]);
        for (queue, QueueTally { ready, pending, running }) in queues {
            all.extend([
                (format!("ready/{queue}"), *ready),
                (format!("pending/{queue}"), *pending),
                (format!("running/{queue}"), *running),
            ]);
        }
        for (tenant, Amount { jobs, bytes }) in held {
            all.extend([(format!("jobs/{tenant}"), *jobs), (format!("bytes/{tenant}"), *bytes)]);
        }
        for (job_type, changes) in types {
            let named = COUNTED_BY_TYPE.iter().zip(changes);
            all.extend(named.map(|(state, by)| (format!("type/{state}/{job_type}"), *by)));
        }
        all.into_iter().filter(|(_, by)| *by != 0).unzip()
    }
}
