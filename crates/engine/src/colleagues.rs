//! Workers that pull from other servers of the same store: told to them and heard from them, for
//! people and for `explain`, never for a decision. Read `workers.rs` for those of this server.

use crate::engine::Shared;
use crate::workers::WorkerSeen;
use mainspring_store::{Error, WorkerNote};
use std::collections::BTreeMap;

/// Workers that the other servers are told of, at most: those heard from last.
const TOLD_MAX: usize = 2_000;

/// What the other servers are told.
pub(crate) fn told(shared: &Shared) -> Vec<WorkerNote> {
    let mut seen = shared.workers.remembered(shared.clock.now());
    seen.sort_by_key(|worker| std::cmp::Reverse(worker.last_seen));
    seen.truncate(TOLD_MAX);
    seen.into_iter().map(note).collect()
}

/// Everyone heard of lately by any server, by name.
pub(crate) async fn everywhere(shared: &Shared) -> Result<Vec<WorkerSeen>, Error> {
    let now = shared.clock.now();
    let mut all = remembered(shared).await?;
    all.retain(|it| now.since(it.last_seen) <= shared.config.worker_memory);
    Ok(all)
}

/// Everyone whom any server remembers, by name.
pub(crate) async fn remembered(shared: &Shared) -> Result<Vec<WorkerSeen>, Error> {
    let elsewhere = shared.store.workers_elsewhere().await?;
    let elsewhere = elsewhere.into_iter().map(seen);
    let own = shared.workers.remembered(shared.clock.now());
    let mut all = BTreeMap::new();
    for worker in elsewhere.chain(own) {
        let key = (worker.id.clone(), worker.tenant.clone());
        match all.get_mut(&key) {
            None => {
                all.insert(key, worker);
            }
            Some(known) => join(known, worker),
        }
    }
    Ok(all.into_values().collect())
}

/// The same worker, heard by two servers: it asks for what it asked for last.
fn join(known: &mut WorkerSeen, other: WorkerSeen) {
    known.granted += other.granted;
    known.first_seen = known.first_seen.min(other.first_seen);
    if other.last_seen > known.last_seen {
        known.last_seen = other.last_seen;
        known.types = other.types;
        known.queues = other.queues;
    }
}

fn note(seen: WorkerSeen) -> WorkerNote {
    let WorkerSeen { id, tenant, types, queues, last_seen, first_seen, granted } = seen;
    WorkerNote {
        id,
        tenant,
        types: types.map(|all| all.to_vec()),
        queues: queues.map(|all| all.to_vec()),
        first_seen,
        last_seen,
        granted,
    }
}

fn seen(note: WorkerNote) -> WorkerSeen {
    let WorkerNote { id, tenant, types, queues, last_seen, first_seen, granted } = note;
    WorkerSeen {
        id,
        tenant,
        types: types.map(Into::into),
        queues: queues.map(Into::into),
        last_seen,
        first_seen,
        granted,
    }
}
