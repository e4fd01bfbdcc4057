//! Moving everything from one store to another: records in an agreed order, and a seal that is
//! equal at both ends if nothing was lost, added or changed on the way.

use crate::record::{
    Record, encode_counters, encode_entity, encode_item, encode_job, encode_key, encode_queue,
    encode_token, encode_type,
};
use mainspring_kernel::fingerprint;

/// What is counted apart, in the order in which it travels.
pub const KINDS: [&str; 8] =
    ["types", "queues", "tokens", "jobs", "items", "entities", "keys", "totals"];

/// How many there are of each kind but moves, and a digest of all of them in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seal([(u64, u128); KINDS.len()]);

impl Seal {
    /// Takes one more into account.
    pub fn add(&mut self, record: &Record) {
        let mut bytes = Vec::with_capacity(512);
        let kind = match record {
            // What a store tells of a past move may rest on how its job is now.
            // Nor does what was handed out a moment ago outlast a move by much.
            Record::Moves(_) | Record::Meter { .. } => return,
            Record::Type(spec) => {
                encode_type(spec, &mut bytes);
                0
            }
            Record::Queue(spec) => {
                encode_queue(spec, &mut bytes);
                1
            }
            Record::Token(token) => {
                encode_token(token, &mut bytes);
                2
            }
            Record::Job(found) => {
                encode_job(&found.job, &found.history, &mut bytes);
                3
            }
            Record::Item(item) => {
                encode_item(item, &mut bytes);
                4
            }
            Record::Key { hash, holder } => {
                encode_key(*hash, holder, &mut bytes);
                6
            }
            Record::Counters(counters) => {
                encode_counters(counters, &mut bytes);
                7
            }
            Record::Entity(entity) => {
                encode_entity(entity, &mut bytes);
                5
            }
        };
        let digest = u128::from_be_bytes(fingerprint::digest(&[&bytes]).0);
        let (count, sum) = &mut self.0[kind];
        *count += 1;
        // A sum does not depend on the order, and unlike a bitwise sum it sees duplicates.
        *sum = sum.wrapping_add(digest);
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.into_iter().zip(self.0.map(|(count, _)| count))
    }

    /// What differs from `other`, in words; nothing if they are equal.
    pub fn differences(&self, other: &Seal) -> Vec<String> {
        let pairs = KINDS.into_iter().zip(self.0.into_iter().zip(other.0));
        let different = pairs.filter(|(_, (ours, theirs))| ours != theirs);
        different
            .map(|(kind, (ours, theirs))| match ours.0 == theirs.0 {
                true => format!("{kind}: {} at both ends, but not the same", ours.0),
                false => format!("{kind}: {} at one end, {} at the other", ours.0, theirs.0),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_sees_what_is_lost_doubled_or_changed_and_not_the_order() {
        let seal = |all: &[u64]| {
            let mut seal = Seal::default();
            all.iter().for_each(|n| seal.add(&Record::Counters(vec![*n])));
            seal
        };
        assert_eq!(seal(&[1, 2, 3]), seal(&[3, 1, 2]));
        assert!(seal(&[1]).differences(&seal(&[1])).is_empty());
        assert!(seal(&[1, 2]).differences(&seal(&[1]))[0].contains("2 at one end, 1"));
        assert!(seal(&[1, 2]).differences(&seal(&[1, 3]))[0].contains("not the same"));
        assert!(!seal(&[1, 2, 2]).differences(&seal(&[1, 1, 2])).is_empty());
    }
}
