//! Entities in RAM, with their terms and alarms.

use mainspring_kernel::{Entity, EntityId, Timestamp};
use mainspring_store::{EntityFilter, EntityTerm, entity_terms};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

/// The entities.
#[derive(Debug, Default)]
pub(crate) struct Entities {
    by_id: BTreeMap<EntityId, Entity>,
    terms: BTreeSet<(EntityTerm, EntityId)>,
    alarms: BTreeSet<(Timestamp, EntityId)>,
}

impl Entities {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Entity> {
        self.by_id.get(&id)
    }

    /// Entities in a range of ids.
    pub(crate) fn range(
        &self,
        range: impl RangeBounds<EntityId>,
    ) -> impl Iterator<Item = (&EntityId, &Entity)> {
        self.by_id.range(range)
    }

    /// An entity as it is now; a replay may bring one that a snapshot knows better.
    pub(crate) fn set(&mut self, entity: Entity) {
        let id = entity.id;
        if let Some(known) = self.by_id.get(&id) {
            if known.version >= entity.version {
                return;
            }
            self.unlist(id);
        }
        self.terms.extend(entity_terms(&entity).into_iter().map(|term| (term, id)));
        self.alarms.extend(entity.alarm_at().map(|at| (at, id)));
        self.by_id.insert(id, entity);
    }

    /// An entity is no more, unless a replay brings an old removal.
    pub(crate) fn remove(&mut self, id: EntityId, version: u32) {
        if self.by_id.get(&id).is_some_and(|known| known.version < version) {
            self.unlist(id);
            self.by_id.remove(&id);
        }
    }

    fn unlist(&mut self, id: EntityId) {
        let Some(known) = self.by_id.get(&id) else { return };
        for term in entity_terms(known) {
            self.terms.remove(&(term, id));
        }
        if let Some(at) = known.alarm_at() {
            self.alarms.remove(&(at, id));
        }
    }

    /// What a filter admits below `before`, the greatest id first.
    pub(crate) fn find<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
    ) -> impl Iterator<Item = &'a Entity> {
        let term = filter.term();
        let first = EntityId { kind: filter.kind, bits: 0 };
        let last = EntityId { kind: filter.kind, bits: u128::MAX };
        let is_below = move |id: &EntityId| before.is_none_or(|before| *id < before);
        let end = before.filter(|before| (first..=last).contains(before)).unwrap_or(last);
        let found = self.terms.range((term, first)..=(term, end)).rev().map(|(_, id)| id);
        let found = found.filter(move |id| is_below(id)).filter_map(|id| self.by_id.get(id));
        found.filter(|entity| filter.admits(entity))
    }

    /// Whose alarm stands at `now` or earlier, the earliest first.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = (EntityId, Timestamp)> {
        self.alarms.iter().take_while(move |(at, _)| *at <= now).map(|(at, id)| (*id, *at))
    }

    /// The next alarm after `now`.
    pub(crate) fn next_alarm(&self, now: Timestamp) -> Option<Timestamp> {
        use mainspring_kernel::entity::Kind;
        let after = EntityId { kind: *Kind::ALL.last()?, bits: u128::MAX };
        self.alarms.range((now, after)..).map(|(at, _)| *at).find(|at| *at > now)
    }
}
