//! Reads. Only the list filters are composed at run time, and only here; a list looks at a bounded
//! number of jobs in one call and says where to go on.

use crate::fault::Fault;
use crate::link::Value;
use crate::load::read_item;
use crate::queries::{Query, in_schema};
use crate::rows::{Stored, read_job};
use crate::shared::Shared;
use crate::values::{item_uuid, job_id, uuid};
use crate::writes::number;
use mainspring_kernel::{DlqId, DlqItem, Job, JobId, StateName, TenantId, UserId};
use mainspring_store::{ItemFilter, JobFilter, Page, Scope, Standing};
use std::fmt::Write;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Jobs one list call looks at, at most.
const LOOKED_AT_MAX: usize = 5_000;
/// Jobs counted ahead of one that waits.
const AHEAD_MAX: i32 = 1_000;

/// One job with its history.
pub(crate) async fn job(shared: &Shared, id: JobId) -> Result<Option<Stored>, Fault> {
    let rows = shared.links.read(Query::ReadJob, vec![Box::new(uuid(id))]).await?;
    shared.learn_lanes(&rows, 0).await?;
    let lanes = shared.lanes();
    rows.first().map(|row| read_job(row, 0, true, &lanes)).transpose()
}

/// Whose a job is.
pub(crate) async fn owner(shared: &Shared, id: JobId) -> Result<Option<(TenantId, UserId)>, Fault> {
    let rows = shared.links.read(Query::OwnerOfJob, vec![Box::new(uuid(id))]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let tenant = TenantId::stored(row.try_get::<_, &str>(0)?.into());
    Ok(Some((tenant, UserId::stored(row.try_get::<_, &str>(1)?.into()))))
}

/// A statement under construction, with its parameters.
#[derive(Default)]
struct Composed {
    filters: String,
    values: Vec<(Value, Type)>,
}

impl Composed {
    fn value(&mut self, value: Value, kind: Type) -> usize {
        self.values.push((value, kind));
        self.values.len()
    }

    fn filter(&mut self, column: &str, value: Value, kind: Type) {
        let at = self.value(value, kind);
        // Writing to a string cannot fail.
        let _ = write!(self.filters, " AND {column} = ${at}");
    }

    fn scope(&mut self, scope: &Scope, tenant: &str, user: &str) {
        let (only, one) = match scope {
            Scope::All => return,
            Scope::Tenant(only) => (only, None),
            Scope::User(only, one) => (only, Some(one)),
        };
        self.filter(tenant, Box::new(only.as_str().to_owned()), Type::TEXT);
        if let Some(one) = one {
            self.filter(user, Box::new(one.as_str().to_owned()), Type::TEXT);
        }
    }
}

/// Jobs, newest first, older than `before`.
pub(crate) async fn jobs(
    shared: &Shared,
    filter: &JobFilter,
    before: Option<JobId>,
    limit: usize,
) -> Result<Page<Job>, Fault> {
    let mut composed = Composed::default();
    composed.value(Box::new(uuid(before.unwrap_or(JobId(u128::MAX)))), Type::UUID);
    let is_plain = matches!(filter.scope, Scope::All)
        && filter.job_type.is_none()
        && filter.queue.is_none()
        && filter.trace_id.is_none()
        && filter.state != Some(StateName::Queued);
    let looked_at = if is_plain { limit + 1 } else { LOOKED_AT_MAX };
    composed.value(Box::new(looked_at as i64), Type::INT8);
    composed.value(Box::new(limit as i64 + 1), Type::INT8);
    composed.scope(&filter.scope, "n.tenant", "j.user_id");
    if let Some(job_type) = &filter.job_type {
        composed.filter("n.type", Box::new(job_type.as_str().to_owned()), Type::TEXT);
    }
    if let Some(queue) = &filter.queue {
        composed.filter("n.queue", Box::new(queue.as_str().to_owned()), Type::TEXT);
    }
    if let Some(trace) = &filter.trace_id {
        let own = trace.strip_prefix("trace_").and_then(|id| format!("job_{id}").parse().ok());
        let trace = composed.value(Box::new(trace.clone()), Type::TEXT);
        let own = composed.value(Box::new(own.map(|id: JobId| uuid(id))), Type::UUID);
        let _ = write!(
            composed.filters,
            " AND (j.trace = ${trace} OR (j.trace IS NULL AND j.id = ${own}))"
        );
    }
    let source = match filter.state {
        None | Some(StateName::Queued) => "mainspring.job WHERE id < $1".to_owned(),
        Some(state) => {
            let table = if state.is_terminal() { "finished" } else { "live" };
            let state = composed.value(Box::new(number(state)), Type::INT2);
            format!("mainspring.{table} WHERE id < $1 AND state = ${state}")
        }
    };
    if filter.state == Some(StateName::Queued) {
        composed.filters.push_str(" AND l.id IS NULL AND f.id IS NULL");
    }
    let sql = format!(
        "WITH looked AS MATERIALIZED (SELECT id FROM {source} ORDER BY id DESC LIMIT $2)
         SELECT w.lowest, w.n, m.* FROM (
             SELECT (SELECT id FROM looked ORDER BY id LIMIT 1) AS lowest,
                 (SELECT count(*) FROM looked) AS n
         ) w
         LEFT JOIN (
             SELECT j.id, j.lane, j.priority, j.max_retries, j.timeout_ms, j.created_at, j.run_at,
                 j.user_id, j.payload, j.trace, j.more::text, l.version, l.record AS live,
                 f.record AS finished
             FROM looked
             CROSS JOIN LATERAL (
                 SELECT * FROM mainspring.job j WHERE j.id = looked.id LIMIT 1) j
             JOIN mainspring.lane n ON n.lane = j.lane
             LEFT JOIN LATERAL (
                 SELECT * FROM mainspring.live l WHERE l.id = j.id LIMIT 1) l ON true
             LEFT JOIN LATERAL (
                 SELECT * FROM mainspring.finished f WHERE f.id = j.id LIMIT 1) f ON true
             WHERE true{}
             ORDER BY j.id DESC LIMIT $3
         ) m ON true
         ORDER BY m.id DESC",
        composed.filters
    );
    let mut link = shared.links.get().await?;
    let rows = link.composed(&in_schema(&sql, &shared.config.schema), &composed.values).await?;
    drop(link);
    let Some(first) = rows.first() else { return Ok(Page { items: Vec::new(), next: None }) };
    let (lowest, count): (Option<Uuid>, i64) = (first.try_get(0)?, first.try_get(1)?);
    let rows = if first.try_get::<_, Option<Uuid>>(2)?.is_some() { &rows[..] } else { &[] };
    shared.learn_lanes(rows, 2).await?;
    let lanes = shared.lanes();
    let found: Result<Vec<Job>, Fault> =
        rows.iter().map(|row| Ok(*read_job(row, 2, true, &lanes)?.job)).collect();
    let mut found = found?;
    if found.len() > limit {
        found.truncate(limit);
        let next = found.last().map(|job| job.id);
        return Ok(Page { items: found, next });
    }
    // A short list goes on below what was looked at, if not all was.
    let next = (count >= looked_at as i64).then_some(lowest).flatten().map(job_id);
    Ok(Page { items: found, next })
}

/// One dead-letter item.
pub(crate) async fn item(
    shared: &Shared,
    id: DlqId,
    scope: &Scope,
) -> Result<Option<DlqItem>, Fault> {
    let (tenant, user) = match scope {
        Scope::All => (None, None),
        Scope::Tenant(tenant) => (Some(tenant.to_string()), None),
        Scope::User(tenant, user) => (Some(tenant.to_string()), Some(user.to_string())),
    };
    let values: Vec<Value> = vec![Box::new(item_uuid(id)), Box::new(tenant), Box::new(user)];
    let rows = shared.links.read(Query::ReadItem, values).await?;
    rows.first().map(|row| read_item(row.try_get(0)?)).transpose()
}

/// Dead-letter items, newest first, older than `before`.
pub(crate) async fn items(
    shared: &Shared,
    filter: &ItemFilter,
    before: Option<DlqId>,
    limit: usize,
) -> Result<Page<DlqItem>, Fault> {
    let mut composed = Composed::default();
    composed.value(Box::new(item_uuid(before.unwrap_or(DlqId(u128::MAX)))), Type::UUID);
    composed.value(Box::new(LOOKED_AT_MAX as i64), Type::INT8);
    composed.value(Box::new(limit as i64 + 1), Type::INT8);
    composed.scope(&filter.scope, "tenant", "user_id");
    if let Some(state) = &filter.state {
        composed.filter("state", Box::new(state.clone()), Type::TEXT);
    }
    if let Some(job_type) = &filter.job_type {
        composed.filter("type", Box::new(job_type.as_str().to_owned()), Type::TEXT);
    }
    let sql = format!(
        "WITH looked AS MATERIALIZED (
             SELECT * FROM mainspring.item WHERE id < $1 ORDER BY id DESC LIMIT $2)
         SELECT w.lowest, w.n, m.* FROM (
             SELECT (SELECT id FROM looked ORDER BY id LIMIT 1) AS lowest,
                 (SELECT count(*) FROM looked) AS n
         ) w
         LEFT JOIN (
             SELECT id, record FROM looked WHERE true{} ORDER BY id DESC LIMIT $3
         ) m ON true
         ORDER BY m.id DESC",
        composed.filters
    );
    let mut link = shared.links.get().await?;
    let rows = link.composed(&in_schema(&sql, &shared.config.schema), &composed.values).await?;
    let mut page = Page { items: Vec::new(), next: None };
    let mut lowest = None;
    for row in &rows {
        let count: i64 = row.try_get(1)?;
        lowest = row.try_get::<_, Option<Uuid>>(0)?.filter(|_| count >= LOOKED_AT_MAX as i64);
        if let Some(record) = row.try_get::<_, Option<&[u8]>>(3)? {
            page.items.push(read_item(record)?);
        }
    }
    page.next = lowest.map(job_id);
    if page.items.len() > limit {
        page.items.truncate(limit);
        page.next = page.items.last().map(|item| JobId(item.id.0));
    }
    Ok(page)
}

/// What stands between a waiting job and a worker.
pub(crate) async fn standing(shared: &Shared, id: JobId) -> Result<Option<Standing>, Fault> {
    let Some(stored) = job(shared, id).await? else { return Ok(None) };
    let job = stored.job;
    if job.state.name().is_terminal() {
        return Ok(None);
    }
    let registry = shared.registry();
    let mut standing =
        Standing { is_queue_paused: !registry.is_open(&job.queue), limit: None, ahead: 0 };
    if let (Some(key), Some(spec)) = (registry.limit_key(&job), registry.types.get(&job.job_type)) {
        let keys = vec![crate::values::hash_uuid(key)];
        let rows = shared.links.read(Query::CountLimits, vec![Box::new(keys)]).await?;
        let used: i64 = rows.first().map_or(Ok(0), |row| row.try_get(1))?;
        let limit = spec.concurrency_limit.unwrap_or(u32::MAX);
        standing.limit = Some((limit, u32::try_from(used).unwrap_or(u32::MAX)));
    }
    let lane = shared.lanes().number(&registry.lane(&job));
    if let (Some(due_at), Some(lane)) = (job.due_at(), lane) {
        let key = registry.key(&job, due_at);
        let place = || -> Vec<Value> { vec![Box::new(lane), Box::new(key), Box::new(uuid(id))] };
        let found = shared.links.read(Query::FindReady, place()).await?;
        if found.first().map_or(Ok(false), |row| row.try_get(0))? {
            let mut values = place();
            values.push(Box::new(AHEAD_MAX));
            let rows = shared.links.read(Query::CountAhead, values).await?;
            let ahead: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            standing.ahead = usize::try_from(ahead).unwrap_or(0);
        }
    }
    Ok(Some(standing))
}
