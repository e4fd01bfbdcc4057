//! The server at a glance. Numbers of the whole server are an admin's to see.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::refusal::Refusal;
use mainspring_api as api;
use mainspring_kernel::{Principal, StateName};

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let engine = ask.engine();
    let health = engine.health();
    let held = engine.held_by(&who.tenant).await?;
    let counters = match who.is_admin() {
        true => Some(counters(&ask).await?),
        false => None,
    };
    let recovery = who.is_admin().then_some(api::runtime::Recovery {
        jobs: health.recovery.jobs,
        running: health.recovery.running,
        frames: health.recovery.frames,
        torn_bytes: health.recovery.torn_bytes,
        took_ms: health.recovery.took_ms,
    });
    Ok(Reply::data(&api::runtime::Runtime {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        executor: api::runtime::Executor {
            mode: ask.app.config.executing.mode.as_str().to_owned(),
        },
        store: api::runtime::StoreHealth {
            kind: health.kind.to_owned(),
            healthy: health.broken.is_none(),
            // The cause names files and addresses.
            broken: health.broken.filter(|_| who.is_admin()),
            low_on_space: health.is_low_on_space,
            damaged_blocks: health.damaged_blocks,
        },
        recovery,
        counters,
        tenant: Some(api::runtime::Backlog {
            tenant_id: who.tenant.to_string(),
            jobs: held.jobs,
            backlog_bytes: held.bytes,
            backlog_bytes_max: engine.backlog_max().0,
        }),
    }))
}

async fn counters(ask: &Ask) -> Result<api::runtime::Counters, Refusal> {
    let (status, counts) = (ask.engine().status(), ask.counts().await?);
    let by_state = StateName::ALL.iter().zip(counts.by_state);
    Ok(api::runtime::Counters {
        started_at: api::Time(status.started_at.0),
        commits: status.commits,
        commands: status.commands,
        illegal_moves: status.illegal_moves,
        stale_leases: status.stale_leases,
        idempotent_hits: status.idempotent_hits,
        parked_pulls: status.parked_pulls,
        jobs: by_state.map(|(state, count)| (state.as_str().to_owned(), count)).collect(),
        due: counts.due,
        submitted: counts.submitted,
        claims: counts.claims,
        retries: counts.retries,
        dlq_open: counts.items_open,
    })
}
