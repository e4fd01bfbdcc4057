//! Taking turns: whoever is served goes behind everybody who waits, and so does a newcomer.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A keyed collection in the order of its turns.
///
/// Nobody keeps a place while absent: a key that leaves and comes back is a newcomer. So from the
/// moment a key joins, every other key is served at most once before it, whoever comes and goes.
#[derive(Debug)]
pub(super) struct Turns<K, V> {
    by_key: HashMap<K, (u64, V)>,
    by_turn: BTreeMap<u64, K>,
    next: u64,
}

impl<K, V> Default for Turns<K, V> {
    fn default() -> Self {
        Turns { by_key: HashMap::new(), by_turn: BTreeMap::new(), next: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Turns<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.by_key.get(key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.by_key.get_mut(key).map(|(_, value)| value)
    }

    /// The value of `key`, which joins behind all others if it is new.
    pub(super) fn join(&mut self, key: &K) -> &mut V {
        if !self.by_key.contains_key(key) {
            let turn = self.fresh_turn(key);
            self.by_key.insert(key.clone(), (turn, V::default()));
        }
        self.get_mut(key).expect("just made sure")
    }

    pub(super) fn leave(&mut self, key: &K) {
        if let Some((turn, _)) = self.by_key.remove(key) {
            self.by_turn.remove(&turn);
        }
    }

    /// `key` was served and goes behind all others.
    pub(super) fn served(&mut self, key: &K) {
        let is_last = self.by_turn.last_key_value().is_some_and(|(_, last)| last == key);
        if is_last || !self.by_key.contains_key(key) {
            return;
        }
        let turn = self.fresh_turn(key);
        if let Some((old, _)) = self.by_key.get_mut(key) {
            self.by_turn.remove(&std::mem::replace(old, turn));
        }
    }

    /// The next key whose turn is `start` or later, and its turn.
    pub(super) fn first_from(&self, start: u64) -> Option<(u64, K)> {
        self.by_turn.range(start..).next().map(|(turn, key)| (*turn, key.clone()))
    }

    /// Keys and values, in turn.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.by_turn.values().filter_map(|key| Some((key, &self.by_key.get(key)?.1)))
    }

    fn fresh_turn(&mut self, key: &K) -> u64 {
        let turn = self.next;
        self.next += 1;
        self.by_turn.insert(turn, key.clone());
        turn
    }
}
