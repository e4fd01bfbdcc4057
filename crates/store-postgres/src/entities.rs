//! Entities, read: loaded for a batch, found, listed and counted by one path, whatever their kind.
//! Nothing here knows what a kind is; `store/src/filter.rs` has the terms. Writing is in
//! `commit/entities.rs`, alarms are in `due/entity_alarms.rs`.

use crate::connections::{Call, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::{Entity, EntityId, JobId};
use mainspring_store::record::{Names, decode_entity};
use mainspring_store::{EntityFilter, EntityTerm, Page, wait_terms};
use std::collections::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

/// The number of a kind in the tables.
pub(crate) fn kind_number(kind: Kind) -> i16 {
    i16::from(kind.number())
}

/// The number of a term in the tables.
pub(crate) fn term_number(term: EntityTerm) -> i64 {
    term.0.cast_signed()
}

/// The statement that loads these, if there are any.
pub(crate) fn load(ids: &[EntityId]) -> Option<Call> {
    let kinds: Vec<i16> = ids.iter().map(|id| kind_number(id.kind)).collect();
    let bits: Vec<Uuid> = ids.iter().map(|id| Uuid::from_u128(id.bits)).collect();
    let values: Vec<Value> = vec![Box::new(kinds), Box::new(bits)];
    (!ids.is_empty()).then(|| Call::new(Query::LoadEntities, values))
}

/// An entity from its record.
pub(crate) fn read(row: &Row) -> Result<Entity, Fault> {
    Ok(decode_entity(row.try_get(0)?, &mut Names::default())?)
}

/// One entity.
pub(crate) async fn find(server: &ThisServer, id: EntityId) -> Result<Option<Entity>, Fault> {
    let Some(Call { query, values }) = load(&[id]) else { return Ok(None) };
    server.connections.read(query, values).await?.first().map(read).transpose()
}

/// A page of a list.
pub(crate) async fn list(
    server: &ThisServer,
    filter: &EntityFilter,
    before: Option<EntityId>,
    limit: usize,
) -> Result<Page<Entity, EntityId>, Fault> {
    let first = EntityId { kind: filter.kind, bits: u128::MAX };
    let from = match before {
        Some(before) if before <= first => before.bits.checked_sub(1),
        Some(_) | None => Some(u128::MAX),
    };
    let is_there = before.is_none_or(|before| before.kind >= filter.kind);
    let Some(from) = from.filter(|_| is_there) else {
        return Ok(Page { items: Vec::new(), next: None });
    };
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let values: Vec<Value> = vec![
        Box::new(term_number(filter.term())),
        Box::new(kind_number(filter.kind)),
        Box::new(Uuid::from_u128(from)),
        Box::new(most),
    ];
    let rows = server.connections.read(Query::ListEntities, values).await?;
    let mut found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    found.retain(|entity| filter.admits(entity));
    Ok(Page::cut(found, limit, |entity| entity.id))
}

/// The waits that name these jobs, or a batch that they may belong to: some, if there are more than
/// `limit`.
pub(crate) async fn waits_on(
    server: &ThisServer,
    jobs: &[JobId],
    limit: usize,
) -> Result<Vec<(EntityId, JobId)>, Fault> {
    let mut named: HashMap<i64, Vec<JobId>> = HashMap::new();
    for job in jobs {
        for term in wait_terms(*job) {
            named.entry(term_number(term)).or_default().push(*job);
        }
    }
    let terms: Vec<i64> = named.keys().copied().collect();
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: Vec<Value> =
        vec![Box::new(terms), Box::new(kind_number(Kind::Wait)), Box::new(most)];
    let rows = server.connections.read(Query::FindByTerms, values).await?;
    let mut found = Vec::new();
    for row in &rows {
        let bits = row.try_get::<_, Uuid>(1)?.as_u128();
        let jobs = named.get(&row.try_get(0)?).into_iter().flatten();
        found.extend(jobs.map(|job| (EntityId { kind: Kind::Wait, bits }, *job)));
    }
    Ok(found)
}

/// How many a list has, up to `most`.
pub(crate) async fn count(
    server: &ThisServer,
    filter: &EntityFilter,
    most: usize,
) -> Result<usize, Fault> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values: Vec<Value> = vec![
        Box::new(term_number(filter.term())),
        Box::new(kind_number(filter.kind)),
        Box::new(most),
    ];
    let rows = server.connections.read(Query::CountEntities, values).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}
