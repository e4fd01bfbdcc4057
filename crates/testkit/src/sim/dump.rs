//! The final answer of a server, read as any client with all rights could read it.

use super::entities;
use super::triggers::{self, FILES, SimFile};
use crate::drive;
use crate::history::{Dump, EventDump, ItemDump, JobDump, TypeRules};
use mainspring_engine::Engine;
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{DlqItem, DlqState, JobId, TypeSpec};
use mainspring_store::{Error, ItemFilter, JobFilter, JobWithHistory, Scope};

const PAGE: usize = 50;

/// Reads everything.
pub(super) async fn take(engine: &Engine, files: [SimFile; FILES]) -> Dump {
    let mut dump = Dump { is_settled: true, ..Dump::default() };
    if let Ok(ids) = jobs(engine, Scope::All).await {
        for id in ids {
            if let Ok(Some(found)) = engine.job(id).await {
                dump.jobs.push(job_dump(&found));
            }
        }
    }
    dump.items = items(engine).await.unwrap_or_default().iter().map(item_dump).collect();
    dump.firings = entities::firings(engine).await;
    dump.firings.extend(triggers::firings(engine, &files).await);
    dump.by_state = engine.counts().await.ok().map(|counts| counts.by_state);
    dump
}

/// What has not ended, for whoever has to find out why.
pub(super) async fn unfinished(engine: &Engine) -> Vec<String> {
    let mut told = Vec::new();
    for id in jobs(engine, Scope::All).await.unwrap_or_default() {
        if let Ok(Some(found)) = engine.job(id).await
            && !found.job.state.name().is_terminal()
        {
            told.push(format!("{id} is {:?} at {:?}", found.job.state, engine.now()));
        }
    }
    told
}

/// The ids of all jobs of a tenant.
pub(super) async fn jobs_of(engine: &Engine, tenant: &str) -> Result<Vec<String>, Error> {
    let ids = jobs(engine, Scope::Tenant(drive::tenant(tenant))).await?;
    Ok(ids.iter().map(ToString::to_string).collect())
}

async fn jobs(engine: &Engine, scope: Scope) -> Result<Vec<JobId>, Error> {
    let filter = JobFilter::of(scope);
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page = engine.jobs(&filter, before, PAGE).await?;
        ids.extend(page.items.iter().map(|job| job.id));
        before = page.next;
        if before.is_none() {
            return Ok(ids);
        }
    }
}

/// All dead-letter items.
pub(super) async fn items(engine: &Engine) -> Result<Vec<DlqItem>, Error> {
    let filter = ItemFilter::of(Scope::All);
    let (mut items, mut before) = (Vec::new(), None);
    loop {
        let page = engine.items(&filter, before, PAGE).await?;
        items.extend(page.items);
        before = page.next.map(JobId::dlq);
        if before.is_none() {
            return Ok(items);
        }
    }
}

/// The rules of a type, as the checker wants them.
pub(super) fn rules(spec: &TypeSpec) -> TypeRules {
    TypeRules {
        name: spec.name.to_string(),
        base_ms: u64::from(spec.backoff.base_ms),
        max_ms: u64::from(spec.backoff.max_ms),
        limit: spec.concurrency_limit,
        is_per_tenant: spec.concurrency_scope == ConcurrencyScope::Tenant,
        rate: spec.flow.rate_limit.as_ref().map(|it| (it.nanos_per_second(), it.burst)),
        key: spec.flow.concurrency_key.as_ref().map(|key| key.as_str().replace('/', "")),
        circuit: spec.flow.circuit.map(|it| i64::from(it.open_secs) * 1_000_000),
    }
}

fn job_dump(found: &JobWithHistory) -> JobDump {
    let job = &found.job;
    let extras = job.extras.as_deref();
    let effects = extras.map(|extras| extras.effects.as_slice()).unwrap_or_default();
    JobDump {
        id: job.id.to_string(),
        tenant: job.tenant.to_string(),
        job_type: job.job_type.to_string(),
        payload: job.payload.to_string(),
        queue: job.queue.to_string(),
        priority: u32::from(job.priority),
        key: job.idempotency.as_ref().map(|key| key.key.to_string()),
        source_item: extras.and_then(|extras| extras.source_dlq).map(|item| item.to_string()),
        state: job.state.name(),
        retry_count: u32::from(job.retry_count),
        max_retries: u32::from(job.max_retries),
        timeout_ms: u64::from(job.timeout_ms),
        created_at: job.created_at.0,
        updated_at: job.updated_at.0,
        run_at: job.run_at.0,
        started_at: job.started_at.map(|at| at.0),
        finished_at: job.finished_at().map(|at| at.0),
        effects: effects.iter().map(|e| (e.name.to_string(), e.value.to_string())).collect(),
        events: found
            .history
            .iter()
            .map(|line| EventDump {
                seq: line.seq,
                from: line.from,
                to: line.to,
                at: line.at.0,
                attempt: line.attempt,
                code: line.reason.as_ref().map(|reason| reason.code.to_string()),
                actor: line.actor.to_string(),
            })
            .collect(),
    }
}

fn item_dump(item: &DlqItem) -> ItemDump {
    let mut dump = ItemDump {
        id: item.id.to_string(),
        job: item.job.id.to_string(),
        state: item.state.as_str().to_owned(),
        requeued_as: None,
        proposed_by: None,
        approved_by: None,
    };
    match &item.state {
        DlqState::Open => {}
        DlqState::Requeued { job, .. } => dump.requeued_as = Some(job.to_string()),
        DlqState::DiscardRequested(proposal) => dump.proposed_by = Some(proposal.by.to_string()),
        DlqState::GlassBroken(mark) => dump.proposed_by = Some(mark.by.to_string()),
        DlqState::Discarded { proposal, approved_by } => {
            dump.proposed_by = Some(proposal.by.to_string());
            dump.approved_by = Some(approved_by.to_string());
        }
    }
    dump
}
