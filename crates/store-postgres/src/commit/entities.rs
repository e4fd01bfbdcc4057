//! Entities on the desk of a batch, and as rows of `entity` and `entity_term`: a change names the
//! version it was decided on. Nothing here knows what a kind is.

use crate::connections::{Call, Value};
use crate::entities::{kind_number, term_number};
use crate::queries::Query;
use crate::values::At;
use mainspring_kernel::{Entity, EntityId, Timestamp};
use mainspring_store::record::encode_entity;
use mainspring_store::{EntityTerm, entity_terms};
use std::collections::HashMap;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Entities on the desk of a batch.
#[derive(Debug, Default)]
pub(crate) struct DeskEntities(HashMap<EntityId, Entry>);

/// One of them.
#[derive(Debug)]
struct Entry {
    /// As it was loaded, if it was there.
    was: Option<Entity>,
    /// As the batch leaves it, if it does.
    now: Option<Entity>,
}

impl DeskEntities {
    /// Lays out what was loaded.
    pub(crate) fn lay_out(&mut self, entity: Entity) {
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

    /// The statements that make `entity` and `entity_term` agree.
    pub(crate) fn write_entities(&self) -> Vec<Call> {
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
