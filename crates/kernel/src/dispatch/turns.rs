//! Taking turns: whoever was served longest ago goes first, and a newcomer before everybody.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Bound;

/// A keyed collection in the order of its turns.
///
/// The turn of a key is when it was last served, zero if never; equal turns go by key. A key that
/// is away keeps its turn, so coming and going gains nothing: from the moment a key is there, every
/// other key is served at most once before it. Nothing but the past servings decides, so two
/// processes that know the same servings agree.
#[derive(Debug)]
pub(super) struct Turns<K, V> {
    by_key: HashMap<K, Member<V>>,
    /// Those who are there.
    by_turn: BTreeSet<(u64, K)>,
    last: u64,
}

#[derive(Debug, Default)]
struct Member<V> {
    turn: u64,
    /// How often it was served since it went behind the others.
    served: u32,
    is_there: bool,
    value: V,
}

/// A place among turns: when it was taken, and how often it was used.
pub(super) type Turn = (u64, u32);

/// Keys that are away are remembered up to this many more than are there.
const AWAY_MAX: usize = 10_000;

impl<K, V> Default for Turns<K, V> {
    fn default() -> Self {
        Turns { by_key: HashMap::new(), by_turn: BTreeSet::new(), last: 0 }
    }
}

impl<K: Clone + Eq + Hash + Ord, V: Default> Turns<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.by_key.get(key).filter(|member| member.is_there).map(|member| &member.value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let member = self.by_key.get_mut(key).filter(|member| member.is_there);
        member.map(|member| &mut member.value)
    }

    /// The value of `key`, which takes its place if it was away.
    pub(super) fn join(&mut self, key: &K) -> &mut V {
        if !self.by_key.contains_key(key) {
            self.forget_some();
            self.by_key.insert(key.clone(), Member::default());
        }
        let member = self.by_key.get_mut(key).expect("just made sure");
        if !member.is_there {
            member.is_there = true;
            self.by_turn.insert((member.turn, key.clone()));
        }
        &mut member.value
    }

    pub(super) fn leave(&mut self, key: &K) {
        if let Some(member) = self.by_key.get_mut(key) {
            member.is_there = false;
            self.by_turn.remove(&(member.turn, key.clone()));
        }
    }

    /// `key` was served. It goes behind all others when that was so often as it weighs.
    pub(super) fn served(&mut self, key: &K, weight: u32) {
        let Some(member) = self.by_key.get_mut(key) else { return };
        if member.turn == self.last && self.last > 0 {
            return;
        }
        member.served += 1;
        if member.served < weight {
            return;
        }
        member.served = 0;
        self.last += 1;
        let old = std::mem::replace(&mut member.turn, self.last);
        if self.by_turn.remove(&(old, key.clone())) {
            self.by_turn.insert((self.last, key.clone()));
        }
    }

    /// When `key` last went behind the others, zero if never, and how often it was served since.
    pub(super) fn turn(&self, key: &K) -> Turn {
        self.by_key.get(key).map_or((0, 0), |member| (member.turn, member.served))
    }

    /// `key` has its old turn again.
    pub(super) fn restore(&mut self, key: &K, (turn, served): Turn) {
        let Some(member) = self.by_key.get_mut(key) else { return };
        member.served = served;
        let wrong = std::mem::replace(&mut member.turn, turn);
        if self.by_turn.remove(&(wrong, key.clone())) {
            self.by_turn.insert((turn, key.clone()));
        }
    }

    /// The value of `key`, whether it is there or away.
    pub(super) fn value_mut(&mut self, key: &K) -> Option<&mut V> {
        self.by_key.get_mut(key).map(|member| &mut member.value)
    }

    /// The next key after `place` and its place; the first if there is no place.
    pub(super) fn next_after(&self, place: Option<&(u64, K)>) -> Option<(u64, K)> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_turn.range((from, Bound::Unbounded)).next().cloned()
    }

    /// Keys and values, in turn.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.by_turn.iter().filter_map(|(_, key)| Some((key, &self.by_key.get(key)?.value)))
    }

    /// Forgets the half of those away that were served longest ago, if there are too many.
    fn forget_some(&mut self) {
        let away = self.by_key.len() - self.by_turn.len();
        if away <= self.by_turn.len() + AWAY_MAX {
            return;
        }
        let is_away = |member: &&Member<V>| !member.is_there;
        let mut turns: Vec<u64> =
            self.by_key.values().filter(is_away).map(|member| member.turn).collect();
        let middle = turns.len() / 2;
        let (_, middle, _) = turns.select_nth_unstable(middle);
        let middle = *middle;
        self.by_key.retain(|_, member| member.is_there || member.turn > middle);
    }
}
