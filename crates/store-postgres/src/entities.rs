//! Entities: loaded, changed and listed by one path, whatever their kind. Nothing here knows what a
//! kind is; the kernel tells state, alarm and fields of each, `store/src/filter.rs` the terms.

use crate::connections::{Call, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::At;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::{Entity, EntityId, Timestamp};
use mainspring_store::record::{Names, decode_entity, encode_entity};
use mainspring_store::{EntityFilter, EntityTerm, Page, entity_terms};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Entities on the desk of a batch.
#[derive(Debug, Default)]
pub(crate) struct Desked(HashMap<EntityId, Entry>);

/// One of them.
#[derive(Debug)]
struct Entry {
    /// As it was loaded, if it was there.
    was: Option<Entity>,
    /// As the batch leaves it, if it does.
    now: Option<Entity>,
}

impl Desked {
    /// Lays out what was loaded.
    pub(crate) fn bring(&mut self, entity: Entity) {
        let was = Some(entity.clone());
        self.0.insert(entity.id, Entry { was, now: Some(entity) });
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Entity> {
        self.0.get(&id)?.now.as_ref()
    }

    /// An entity as it is from now on, or that it is no more.
    pub(crate) fn set(&mut self, id: EntityId, now: Option<Entity>) {
        self.0.entry(id).or_insert(Entry { was: None, now: None }).now = now;
    }

    /// The first alarm that the batch sets.
    pub(crate) fn first_alarm(&self) -> Option<Timestamp> {
        let changed = self.changed().filter_map(|entry| entry.now.as_ref());
        changed.filter_map(Entity::alarm_at).min()
    }

    fn changed(&self) -> impl Iterator<Item = &Entry> {
        self.0.values().filter(|entry| entry.was != entry.now)
    }

    /// The statements that make the database agree.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let (mut gone, mut changed, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let (mut dropped, mut added) = (Terms::default(), Terms::default());
        let mut entries: Vec<&Entry> = self.changed().collect();
        // Sorted, so that two servers that change the same ones wait for each other in one order.
        entries.sort_by_key(|entry| entry.now.as_ref().or(entry.was.as_ref()).map(|it| it.id));
        for entry in entries {
            match (&entry.was, &entry.now) {
                (Some(was), Some(now)) => changed.push((was, now)),
                (Some(was), None) => gone.push(was),
                (None, Some(now)) => new.push(now),
                (None, None) => {}
            }
            let terms = |entity: &Option<Entity>| entity.as_ref().map(entity_terms);
            let was = terms(&entry.was).unwrap_or_default();
            let now = terms(&entry.now).unwrap_or_default();
            if let Some(entity) = entry.now.as_ref().or(entry.was.as_ref()) {
                let only = |these: &[EntityTerm], those: &[EntityTerm]| {
                    these.iter().copied().filter(|it| !those.contains(it)).collect::<Vec<_>>()
                };
                dropped.extend(entity.id, only(&was, &now));
                added.extend(entity.id, only(&now, &was));
            }
        }
        let calls = [
            delete(&gone),
            update(&changed),
            insert(&new),
            dropped.call(Query::DeleteEntityTerms),
            added.call(Query::InsertEntityTerms),
        ];
        calls.into_iter().flatten().collect()
    }
}

/// Terms with the entities that have them, as columns.
#[derive(Default)]
struct Terms {
    terms: Vec<i64>,
    kinds: Vec<i16>,
    ids: Vec<Uuid>,
}

impl Terms {
    fn extend(&mut self, id: EntityId, terms: Vec<EntityTerm>) {
        for term in terms {
            self.terms.push(term_number(term));
            self.kinds.push(kind_number(id.kind));
            self.ids.push(Uuid::from_u128(id.bits));
        }
    }

    fn call(self, query: Query) -> Option<Call> {
        let values: Vec<Value> =
            vec![Box::new(self.terms), Box::new(self.kinds), Box::new(self.ids.clone())];
        (!self.ids.is_empty()).then(|| Call::new(query, values))
    }
}

fn kind_number(kind: Kind) -> i16 {
    i16::from(kind.number())
}

fn term_number(term: EntityTerm) -> i64 {
    term.0.cast_signed()
}

fn version_number(version: u32) -> i32 {
    i32::try_from(version).unwrap_or(i32::MAX)
}

fn encoded(entity: &Entity) -> Vec<u8> {
    let mut record = Vec::new();
    encode_entity(entity, &mut record);
    record
}

/// A column of one value for each entity.
fn column<V>(entities: &[&Entity], of: impl Fn(&Entity) -> V) -> Value
where
    Vec<V>: ToSql + Sync + Send + 'static,
{
    Box::new(entities.iter().map(|entity| of(entity)).collect::<Vec<V>>())
}

fn keys(entities: &[&Entity]) -> Vec<Value> {
    vec![
        column(entities, |it| kind_number(it.id.kind)),
        column(entities, |it| Uuid::from_u128(it.id.bits)),
    ]
}

/// The statement that writes new entities, without their terms.
pub(crate) fn insert(new: &[&Entity]) -> Option<Call> {
    let mut values = keys(new);
    values.extend([
        column(new, |it| version_number(it.version)),
        column(new, |it| it.tenant.as_str().to_owned()),
        column(new, |it| it.owner.as_str().to_owned()),
        column(new, |it| it.state().to_owned()),
        column(new, |it| it.alarm_at().map(At)),
        column(new, encoded),
    ]);
    (!new.is_empty()).then(|| Call::new(Query::InsertEntities, values))
}

/// The statement that writes the terms of new entities.
pub(crate) fn insert_terms(new: &[&Entity]) -> Option<Call> {
    let mut terms = Terms::default();
    new.iter().for_each(|entity| terms.extend(entity.id, entity_terms(entity)));
    terms.call(Query::InsertEntityTerms)
}

fn update(changed: &[(&Entity, &Entity)]) -> Option<Call> {
    let was: Vec<&Entity> = changed.iter().map(|(was, _)| *was).collect();
    let now: Vec<&Entity> = changed.iter().map(|(_, now)| *now).collect();
    let mut values = keys(&now);
    values.extend([
        column(&was, |it| version_number(it.version)),
        column(&now, |it| version_number(it.version)),
        column(&now, |it| it.state().to_owned()),
        column(&now, |it| it.alarm_at().map(At)),
        column(&now, encoded),
    ]);
    (!now.is_empty()).then(|| Call::new(Query::UpdateEntities, values))
}

fn delete(gone: &[&Entity]) -> Option<Call> {
    let mut values = keys(gone);
    values.push(column(gone, |it| version_number(it.version)));
    (!gone.is_empty()).then(|| Call::new(Query::DeleteEntities, values))
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

/// The first alarm of an entity, as far as this server knows: its own to the instant, others' by
/// looking. While none stands, the database is not asked.
pub(crate) struct FirstEntityAlarm(AtomicI64);

impl Default for FirstEntityAlarm {
    fn default() -> Self {
        FirstEntityAlarm(AtomicI64::new(i64::MAX))
    }
}

impl FirstEntityAlarm {
    /// An alarm stands at that instant.
    pub(crate) fn stands_at(&self, at: Timestamp) {
        self.0.fetch_min(at.0, Ordering::AcqRel);
    }

    /// The first one, if it is after `now`.
    pub(crate) fn after(&self, now: Timestamp) -> Option<Timestamp> {
        let at = self.0.load(Ordering::Acquire);
        (at > now.0 && at < i64::MAX).then_some(Timestamp(at))
    }

    /// Forgets alarms until `now`, if there may be any: the database is asked for them.
    fn take(&self, now: Timestamp) -> bool {
        let at = self.0.load(Ordering::Acquire);
        at <= now.0
            && self.0.compare_exchange(at, i64::MAX, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Whose alarm stands at `now` or earlier.
pub(crate) async fn due(
    server: &ThisServer,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(EntityId, Timestamp)>, Fault> {
    if !server.first_alarm.take(now) {
        return Ok(Vec::new());
    }
    let found = find_due(server, now, limit).await;
    // What is due stays so until it was rung, and whoever could not look looks again.
    if !found.as_ref().is_ok_and(Vec::is_empty) {
        server.first_alarm.stands_at(now);
    }
    found
}

async fn find_due(
    server: &ThisServer,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(EntityId, Timestamp)>, Fault> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        server.connections.read(Query::FindAlarms, vec![Box::new(At(now)), Box::new(most)]).await?;
    if rows.is_empty() {
        let next = server.connections.read(Query::NextEntityAlarm, vec![Box::new(At(now))]).await?;
        if let Some(row) = next.first() {
            server.first_alarm.stands_at(row.try_get::<_, At>(0)?.0);
        }
    }
    rows.iter().map(read_due).collect()
}

fn read_due(row: &Row) -> Result<(EntityId, Timestamp), Fault> {
    let number: i16 = row.try_get(0)?;
    let kind = u8::try_from(number).ok().and_then(Kind::of_number);
    let kind = kind.ok_or_else(|| Fault::Broken(format!("kind {number} is unknown")))?;
    let (bits, at): (Uuid, At) = (row.try_get(1)?, row.try_get(2)?);
    Ok((EntityId { kind, bits: bits.as_u128() }, at.0))
}
