//! What the sentry looks up: how many of a tenant's jobs are being retried, and whether somebody
//! asks for the jobs that are due.

use super::reports::Told;
use super::sentry::{Seen, Sentry, millis};
use crate::colleagues;
use crate::engine::Shared;
use crate::limits::{
    QUEUES_LOOKED_AT, RATIO_JOBS_MIN, RATIOS_PER_TURN, RETRYING_COUNTED_MAX, TYPES_LOOKED_AT,
    WAITING_COUNTED_MAX, WAITING_LOOKED_AT,
};
use crate::workers::WorkerSeen;
use mainspring_kernel::entity::alert::watch::Thresholds;
use mainspring_kernel::entity::alert::{Milli, Rule};
use mainspring_kernel::governance::is_reserved;
use mainspring_kernel::{Job, JobType, QueueName, QueueSpec, StateName, TenantId, Timestamp};
use mainspring_store::{Error, JobFilter, QueueCount, Scope};
use std::cmp::Reverse;
use std::collections::BTreeSet;

impl Sentry {
    /// The share of retries of the tenants that had some.
    pub(super) async fn ratios(
        &mut self,
        shared: &Shared,
        seen: &mut Vec<Seen>,
    ) -> Result<(), Error> {
        let config = shared.config.alerts;
        if config.retrying_ratio == Milli(0) {
            self.retrying.clear();
            return Ok(());
        }
        let hold_ms = millis(config.hold).0;
        let thresholds = Thresholds { raise: config.retrying_ratio, hold_ms };
        let tenants: Vec<TenantId> = self.retrying.iter().take(RATIOS_PER_TURN).cloned().collect();
        for tenant in tenants {
            let live = shared.store.held_by(&tenant).await?.jobs;
            let mut value = Milli(0);
            if live >= RATIO_JOBS_MIN {
                let state = Some(StateName::Retrying);
                let filter = JobFilter { state, ..JobFilter::of(Scope::Tenant(tenant.clone())) };
                let retrying = shared.store.count_jobs(&filter, RETRYING_COUNTED_MAX).await?;
                value = Milli::share(retrying as u64, live);
            }
            if value < thresholds.clear() {
                // Until it has one again.
                self.retrying.remove(&tenant);
                continue;
            }
            let key = (Rule::RetryingRatio, tenant, "".into());
            seen.push(Seen { key, value, thresholds, quiet: config.quiet });
        }
        Ok(())
    }

    /// Types of whose jobs more was promised than they kept.
    pub(super) async fn promises(
        &self,
        shared: &Shared,
        told: &Told,
        seen: &mut Vec<Seen>,
    ) -> Result<(), Error> {
        if told.tenants.values().all(|signs| signs.by_type.is_empty()) {
            return Ok(());
        }
        let types = shared.store.types().await?;
        for (tenant, signs) in &told.tenants {
            for (job_type, late) in &signs.by_type {
                let spec = types.iter().find(|spec| spec.name == *job_type);
                let Some(sla) = spec.and_then(|spec| spec.sla) else { continue };
                for (rule, late, within) in [
                    (Rule::Lag, late.start, sla.start_within_ms),
                    (Rule::Overdue, late.end, sla.finish_within_ms),
                ] {
                    let Some(within) = within else { continue };
                    seen.push(Seen {
                        key: (rule, tenant.clone(), job_type.as_str().into()),
                        value: millis(late),
                        thresholds: Thresholds { raise: Milli(within.into()), hold_ms: 0 },
                        quiet: shared.config.alerts.quiet,
                    });
                }
            }
        }
        Ok(())
    }

    /// Types that no worker anywhere asks for, though jobs of them are due.
    pub(super) async fn workers(
        &mut self,
        shared: &Shared,
        now: Timestamp,
        seen: &mut Vec<Seen>,
    ) -> Result<(), Error> {
        let config = shared.config.alerts;
        self.has_due = false;
        if config.no_worker.is_zero() {
            return Ok(());
        }
        let counts = shared.store.counts(now).await?;
        self.has_due = counts.due > 0;
        if !self.has_due {
            return Ok(());
        }
        let workers = colleagues::everywhere(shared).await?;
        let paused = paused(&shared.store.queues().await?);
        let mut unasked: BTreeSet<(TenantId, JobType)> = BTreeSet::new();
        for filter in waiting(shared, counts.queues, &workers, &paused).await? {
            let page = shared.store.jobs(&filter, None, WAITING_LOOKED_AT).await?;
            for job in page.items.into_iter().filter(|job| !paused.contains(&job.queue)) {
                if is_unasked(&job, &workers, now) {
                    unasked.insert((job.tenant, job.job_type));
                }
            }
        }
        let hold_ms = millis(config.no_worker).0;
        for (tenant, job_type) in unasked {
            let filter = JobFilter {
                job_type: Some(job_type.clone()),
                state: Some(StateName::Queued),
                ..JobFilter::of(Scope::Tenant(tenant.clone()))
            };
            let waiting = shared.store.count_jobs(&filter, WAITING_COUNTED_MAX).await?;
            seen.push(Seen {
                key: (Rule::NoWorker, tenant, job_type.as_str().into()),
                value: Milli::whole(waiting.max(1) as u64),
                thresholds: Thresholds { raise: Milli::whole(1), hold_ms },
                quiet: config.quiet,
            });
        }
        Ok(())
    }
}

/// Whether a job is due and nobody asks for such jobs.
fn is_unasked(job: &Job, workers: &[WorkerSeen], now: Timestamp) -> bool {
    let is_due = job.due_at().is_some_and(|at| at <= now);
    is_due && !workers.iter().any(|worker| worker.wants(&job.tenant, &job.job_type, &job.queue))
}

fn paused(queues: &[QueueSpec]) -> BTreeSet<QueueName> {
    queues.iter().filter(|queue| queue.is_paused).map(|queue| queue.name.clone()).collect()
}

/// Where jobs wait that nobody may be asking for: the fullest queues, and the types that are
/// registered and that no worker names. Of each the latest jobs are looked at.
async fn waiting(
    shared: &Shared,
    mut queues: Vec<QueueCount>,
    workers: &[WorkerSeen],
    paused: &BTreeSet<QueueName>,
) -> Result<Vec<JobFilter>, Error> {
    let queued = || JobFilter { state: Some(StateName::Queued), ..JobFilter::of(Scope::All) };
    queues.retain(|queue| {
        queue.ready > 0 && !is_reserved(&queue.name) && !paused.contains(&queue.name)
    });
    queues.sort_by_key(|queue| Reverse(queue.ready));
    queues.truncate(QUEUES_LOOKED_AT);
    let of_queue = |queue: QueueCount| JobFilter { queue: Some(queue.name), ..queued() };
    let mut filters: Vec<JobFilter> = queues.into_iter().map(of_queue).collect();
    let is_named = |name: &JobType| {
        workers.iter().any(|worker| worker.types.as_ref().is_none_or(|types| types.contains(name)))
    };
    let types = shared.store.types().await?.into_iter().map(|spec| spec.name);
    let unnamed = types.filter(|name| !is_named(name)).take(TYPES_LOOKED_AT);
    filters.extend(unnamed.map(|name| JobFilter { job_type: Some(name), ..queued() }));
    Ok(filters)
}
