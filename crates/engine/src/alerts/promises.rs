//! What is promised of a type and not kept: jobs that started or ended too late, as commits tell of
//! them, and jobs that are too late already and still wait or run. Of the latter a few of each type
//! are looked up, by the index that lists use; nothing is counted.

use super::reports::Told;
use super::sentry::{Key, Seen, Sentry, at_once, millis};
use crate::engine::Shared;
use crate::limits::{PROMISES_LOOKED_AT, WAITING_LOOKED_AT};
use mainspring_kernel::entity::alert::{Milli, Rule};
use mainspring_kernel::{Job, StateName, TenantId, Timestamp, TypeSpec};
use mainspring_store::{Error, JobFilter, Scope};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How late what was, at most, and how late it might have been.
type Broken = BTreeMap<Key, (Duration, u32)>;

/// States in which a job has not started, and those in which it has not ended.
const NOT_STARTED: &[StateName] = &[StateName::Queued];
const NOT_ENDED: &[StateName] = &[StateName::Queued, StateName::Running, StateName::Retrying];

impl Sentry {
    /// Types of whose jobs more was promised than they kept.
    pub(super) async fn promises(
        &mut self,
        shared: &Shared,
        told: &Told,
        now: Timestamp,
        seen: &mut Vec<Seen>,
    ) -> Result<(), Error> {
        let types = shared.store.types().await?;
        let promised = types.iter().filter_map(|spec| Some((spec, spec.sla?)));
        let mut broken = Broken::new();
        self.has_promises = types.iter().any(|spec| spec.sla.is_some());
        shared.reports.has_promises.store(self.has_promises, Ordering::Relaxed);
        for (spec, sla) in promised.take(PROMISES_LOOKED_AT) {
            for (rule, within, states) in [
                (Rule::Lag, sla.start_within_ms, NOT_STARTED),
                (Rule::Overdue, sla.finish_within_ms, NOT_ENDED),
            ] {
                let Some(within) = within else { continue };
                for (tenant, signs) in &told.tenants {
                    let late = signs.by_type.get(&spec.name).copied().unwrap_or_default();
                    let late = if rule == Rule::Lag { late.start } else { late.end };
                    note(&mut broken, rule, tenant, spec, (late, within));
                }
                for state in states {
                    let found =
                        late_ones(shared, spec, *state, now - Duration::from_millis(within.into()))
                            .await?;
                    for job in found {
                        let late = now.since(due_at(&job));
                        note(&mut broken, rule, &job.tenant, spec, (late, within));
                    }
                }
            }
        }
        seen.extend(broken.into_iter().map(|(key, (late, within))| Seen {
            key,
            value: millis(late),
            thresholds: at_once(Milli(within.into())),
            quiet: shared.config.alerts.quiet,
        }));
        Ok(())
    }
}

/// When a job was to start: a job of the past is due when it comes.
fn due_at(job: &Job) -> Timestamp {
    job.run_at.max(job.created_at)
}

/// Jobs of a type in a state that were due by then: some of those submitted by then, the latest.
async fn late_ones(
    shared: &Shared,
    spec: &TypeSpec,
    state: StateName,
    by: Timestamp,
) -> Result<Vec<Job>, Error> {
    let filter = JobFilter {
        job_type: Some(spec.name.clone()),
        state: Some(state),
        until: Some(by),
        ..JobFilter::of(Scope::All)
    };
    let page = shared.store.jobs(&filter, None, WAITING_LOOKED_AT).await?;
    Ok(page.items.into_iter().filter(|job| due_at(job) <= by).collect())
}

fn note(
    broken: &mut Broken,
    rule: Rule,
    tenant: &TenantId,
    spec: &TypeSpec,
    (late, within): (Duration, u32),
) {
    if late >= Duration::from_millis(within.into()) {
        let key = (rule, tenant.clone(), spec.name.as_str().into());
        let most = broken.entry(key).or_insert((late, within));
        most.0 = most.0.max(late);
    }
}
