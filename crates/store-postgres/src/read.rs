//! Reads of one thing. Lists are in `list.rs`.

use crate::commit::meters::{DeskMeters, load_meters, read_meter};
use crate::connections::{Call, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::Registry;
use crate::rows::{Stored, read_checkpoint, read_effect, read_holder, read_item, read_job};
use crate::this_server::ThisServer;
use crate::values::{hash_uuid, item_uuid, job_id, uuid};
use mainspring_kernel::dispatch::{LaneKey, Taken, has_room};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::{Meter, Meters};
use mainspring_kernel::job::{Effect, Payload};
use mainspring_kernel::{DlqId, DlqItem, Job, JobId, Timestamp};
use mainspring_store::{HOLDERS_MAX, Scope, Standing};
use std::collections::HashSet;
use uuid::Uuid;

/// Lanes of a queue that are asked whether something is ready in them, at most.
const LANES_ASKED_MAX: usize = 1_000;
/// Jobs counted ahead of one that waits.
const AHEAD_MAX: i32 = 1_000;

/// One job with its history.
pub(crate) async fn job(server: &ThisServer, id: JobId) -> Result<Option<Stored>, Fault> {
    let rows = server.connections.read(Query::ReadJob, vec![Box::new(uuid(id))]).await?;
    server.learn_lanes(&rows, 0).await?;
    let lanes = server.lanes();
    rows.first().map(|row| read_job(row, 0, true, &lanes)).transpose()
}

/// Who holds a key.
pub(crate) async fn holder_of_key(
    server: &ThisServer,
    key: Digest,
) -> Result<Option<KeyHolder>, Fault> {
    let values: Vec<Value> = vec![Box::new(vec![hash_uuid(key)])];
    let rows = server.connections.read(Query::LoadKeys, values).await?;
    rows.first().map(read_holder).transpose()
}

/// Whether there is such a job in scope; reads nothing of it.
pub(crate) async fn has_job(server: &ThisServer, id: JobId, scope: &Scope) -> Result<bool, Fault> {
    let (tenant, user) = names(scope);
    let values: Vec<Value> = vec![Box::new(uuid(id)), Box::new(tenant), Box::new(user)];
    Ok(!server.connections.read(Query::HasJob, values).await?.is_empty())
}

/// The tenant and the user that a scope is bound to.
fn names(scope: &Scope) -> (Option<String>, Option<String>) {
    match scope {
        Scope::All => (None, None),
        Scope::Tenant(tenant) => (Some(tenant.to_string()), None),
        Scope::User(tenant, user) => (Some(tenant.to_string()), Some(user.to_string())),
    }
}

/// One effect of a job.
pub(crate) async fn effect(
    server: &ThisServer,
    id: JobId,
    name: &str,
) -> Result<Option<Effect>, Fault> {
    let wanted: Vec<Value> = vec![Box::new(vec![uuid(id)]), Box::new(vec![name.to_owned()])];
    let rows = server.connections.read(Query::LoadEffects, wanted).await?;
    match rows.first() {
        Some(row) => Ok(Some(read_effect(row)?.1)),
        // In the record, perhaps, of a job that ended before effects were rows.
        None => Ok(job(server, id).await?.and_then(|found| found.job.effect(name).cloned())),
    }
}

/// All effects of a job, in their order.
pub(crate) async fn effects(server: &ThisServer, id: JobId) -> Result<Vec<Effect>, Fault> {
    let inside = job(server, id).await?.and_then(|found| found.job.extras);
    let mut found = inside.map(|extras| extras.effects).unwrap_or_default();
    let rows = server.connections.read(Query::ReadEffects, vec![Box::new(vec![uuid(id)])]).await?;
    for row in &rows {
        found.push(read_effect(row)?.1);
    }
    Ok(found)
}

/// What a worker left for the next try of a job.
pub(crate) async fn checkpoint(server: &ThisServer, id: JobId) -> Result<Option<Payload>, Fault> {
    let wanted: Vec<Value> = vec![Box::new(vec![uuid(id)])];
    let rows = server.connections.read(Query::ReadCheckpoints, wanted).await?;
    rows.first().map(|row| Ok(read_checkpoint(row)?.1)).transpose()
}

/// One dead-letter item.
pub(crate) async fn item(
    server: &ThisServer,
    id: DlqId,
    scope: &Scope,
) -> Result<Option<DlqItem>, Fault> {
    let (tenant, user) = names(scope);
    let values: Vec<Value> = vec![Box::new(item_uuid(id)), Box::new(tenant), Box::new(user)];
    let rows = server.connections.read(Query::ReadItem, values).await?;
    rows.first().map(|row| read_item(row.try_get(0)?)).transpose()
}

/// What stands between a waiting job and a worker.
pub(crate) async fn standing(
    server: &ThisServer,
    id: JobId,
    now: Timestamp,
) -> Result<Option<Standing>, Fault> {
    let Some(stored) = job(server, id).await? else { return Ok(None) };
    let job = stored.job;
    if job.state.name().is_terminal() {
        return Ok(None);
    }
    let registry = server.registry();
    let spec = registry.types.get(&job.job_type);
    let mut standing = Standing {
        is_queue_paused: !registry.is_open(&job.queue),
        type_paused: spec.and_then(|spec| spec.flow.paused.clone()),
        ..Standing::default()
    };
    if let Some(spec) = registry.metered(&job.job_type) {
        let keys = Meters::keys_of_job(spec, &job).collect();
        let Call { query, values } = load_meters(&keys);
        let rows = server.connections.read(query, values).await?;
        let meters = DeskMeters::read(&keys, &rows)?.all;
        let rate_key = job.limit_keys().and_then(|keys| keys.rate.as_deref());
        standing.held = meters.held(spec, rate_key, now, &Taken::default());
    }
    if let Some((most, key)) = registry.limit_of(&job) {
        let keys = vec![hash_uuid(key)];
        let rows = server.connections.read(Query::CountLimits, vec![Box::new(keys)]).await?;
        let used: i64 = rows.first().map_or(Ok(0), |row| row.try_get(1))?;
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        standing.limit = Some((most, used));
        if !has_room(used, most) {
            let most = i32::try_from(HOLDERS_MAX).unwrap_or(i32::MAX);
            let values: Vec<Value> = vec![Box::new(hash_uuid(key)), Box::new(most)];
            let rows = server.connections.read(Query::FindHolders, values).await?;
            let holders = rows.iter().map(|row| Ok(job_id(row.try_get(0)?)));
            standing.holders = holders.collect::<Result<_, Fault>>()?;
        }
    }
    standing.ahead = ahead(server, &registry, &job).await?;
    let gives_way = registry.order(&job.queue).bounds_retries();
    if registry.lane(&job).is_retry && gives_way {
        let is_beside = |lane: &LaneKey| {
            !lane.is_retry && (&lane.tenant, &lane.queue) == (&job.tenant, &job.queue)
        };
        let fresh: Vec<i32> = {
            let lanes = server.lanes();
            let beside = lanes.iter().filter(|(_, lane)| is_beside(lane));
            beside.map(|(number, _)| number).take(LANES_ASKED_MAX).collect()
        };
        let rows = server.connections.read(Query::FindFresh, vec![Box::new(fresh)]).await?;
        standing.is_fresh_first = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
    }
    Ok(Some(standing))
}

/// How many ready jobs of its lane go before a job, counted up to a bound; none if it is not ready.
async fn ahead(server: &ThisServer, registry: &Registry, job: &Job) -> Result<usize, Fault> {
    let Some(due_at) = job.due_at() else { return Ok(0) };
    let own = registry.lane(job);
    // A retry stands among the others if an older server put it there.
    let apart = LaneKey { is_retry: job.is_retry(), ..own.clone() };
    let beside = LaneKey { is_retry: false, ..own };
    let lanes: Vec<i32> = {
        let known = server.lanes();
        let all = std::iter::once(&apart).chain(job.is_retry().then_some(&beside));
        all.filter_map(|lane| known.number(lane)).collect()
    };
    let key = registry.key(job, due_at);
    for lane in lanes {
        let place =
            || -> Vec<Value> { vec![Box::new(lane), Box::new(key), Box::new(uuid(job.id))] };
        let found = server.connections.read(Query::FindReady, place()).await?;
        if found.first().map_or(Ok(false), |row| row.try_get(0))? {
            let mut values = place();
            values.push(Box::new(AHEAD_MAX));
            let rows = server.connections.read(Query::CountAhead, values).await?;
            let ahead: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            return Ok(usize::try_from(ahead).unwrap_or(0));
        }
    }
    Ok(0)
}

/// A bucket or a circuit.
pub(crate) async fn meter(server: &ThisServer, key: Digest) -> Result<Option<Meter>, Fault> {
    let Call { query, values } = load_meters(&HashSet::from([key]));
    let rows = server.connections.read(query, values).await?;
    rows.first().map(|row| read_meter(row.try_get(1)?)).transpose()
}

/// Those of `jobs` that a statement picks.
pub(crate) async fn find_jobs(
    server: &ThisServer,
    query: Query,
    jobs: &[JobId],
) -> Result<Vec<JobId>, Fault> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| uuid(*job)).collect();
    let rows = server.connections.read(query, vec![Box::new(ids)]).await?;
    rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
}
