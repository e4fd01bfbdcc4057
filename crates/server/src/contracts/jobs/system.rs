//! What concerns all jobs: their types, and how the server is. Most of that is for admins.

use super::wire::{
    OrchestrationRuntime, OrchestrationTaskType, RuntimeExecution, RuntimeExecutor,
    RuntimeRecovery, RuntimeScheduler, RuntimeSystemSchedules,
};
use super::{errors, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::refusal::Refusal;
use mainspring_api::Time;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::schedule::SYSTEM;
use mainspring_kernel::limits::TOTAL_MAX;
use mainspring_kernel::{Principal, Timestamp, TypeSpec};

pub(super) async fn types(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    let types = ask.engine().types().await?;
    let listed = types.iter().filter(|spec| !spec.is_of_a_contract());
    let rows: Vec<OrchestrationTaskType> = listed.map(row).collect();
    Ok(view::data(&rows))
}

fn row(spec: &TypeSpec) -> OrchestrationTaskType {
    OrchestrationTaskType {
        task_type: spec.name.to_string(),
        domain: spec.domain.to_string(),
        schedulable: spec.is_schedulable,
        priority: spec.priority,
        timeout_seconds: spec.timeout_ms.div_ceil(1000),
        max_retries: spec.max_retries,
        concurrency_limit: spec.concurrency_limit,
    }
}

pub(super) async fn runtime(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    for_admins(&who)?;
    Ok(view::data(&status(&ask, &who).await?))
}

/// Only admins go on.
pub(super) fn for_admins(who: &Principal) -> Result<(), Refusal> {
    if who.is_admin() { Ok(()) } else { Err(errors::admin_required()) }
}

/// How the server is, as far as `who` may know.
pub(super) async fn status(ask: &Ask, who: &Principal) -> Result<OrchestrationRuntime, Refusal> {
    let (engine, mode) = (ask.engine(), ask.app.config.executing.mode.as_str());
    let time = |at: Timestamp| Time(at.0);
    let execution = || {
        let execution = engine.execution();
        RuntimeExecution {
            dispatched: execution.dispatched,
            succeeded: execution.succeeded,
            failed: execution.failed,
            last_dispatched_at: execution.last_dispatched_at.map(time),
            last_finished_at: execution.last_finished_at.map(time),
            last_error_code: execution.last_error_code.map(|code| code.to_string()),
        }
    };
    let recovery = || {
        let restored = engine.restored();
        RuntimeRecovery {
            recovered_running_jobs: restored.running_jobs,
            recovered_schedules: restored.schedules,
            recovered_system_templates: ask.app.config.templates.recovered,
            recovered_at: time(restored.at),
        }
    };
    let system_schedules = match who.is_admin() {
        true => Some(system_schedules(ask).await?),
        false => None,
    };
    Ok(OrchestrationRuntime {
        executor: RuntimeExecutor { name: mode.to_owned(), mode: mode.to_owned() },
        scheduler: RuntimeScheduler { running: !engine.stopping().is_cancelled() },
        execution: who.is_admin().then(execution),
        system_schedules,
        recovery: who.is_admin().then(recovery),
    })
}

/// The schedules of templates, those that the configuration no longer has included, each counted
/// up to a bound.
async fn system_schedules(ask: &Ask) -> Result<RuntimeSystemSchedules, Refusal> {
    let field = Some(("namespace".to_owned(), SYSTEM.to_owned()));
    let all = EntityFilter { field, ..EntityFilter::of(Kind::Schedule, Scope::All) };
    let active = EntityFilter { state: Some("active".to_owned()), ..all.clone() };
    Ok(RuntimeSystemSchedules {
        total: ask.engine().count_entities(&all, TOTAL_MAX).await? as u64,
        active: ask.engine().count_entities(&active, TOTAL_MAX).await? as u64,
    })
}
