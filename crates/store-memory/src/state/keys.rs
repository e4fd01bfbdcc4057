//! Who holds which idempotency key, and until when.

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::{JobId, Timestamp};
use std::collections::BTreeSet;

/// Held keys. Those of live jobs can be told from the jobs; those of ended jobs are also in `ends`.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    holders: HashMap<Digest, KeyHolder, RandomState>,
    ends: BTreeSet<(Timestamp, Digest)>,
}

impl Keys {
    pub(crate) fn get(&self, key: Digest) -> Option<KeyHolder> {
        self.holders.get(&key).copied()
    }

    /// Every key that is held.
    pub(crate) fn all(&self) -> Vec<(Digest, KeyHolder)> {
        self.holders.iter().map(|(key, holder)| (*key, *holder)).collect()
    }

    /// A job takes a key that is free.
    pub(crate) fn hold(&mut self, key: &Idempotency, job: JobId) {
        self.set(key.hash, key.held_by(job));
    }

    /// A job has ended: its key is free after its window.
    pub(crate) fn release(&mut self, key: &Idempotency, job: JobId, ended_at: Timestamp) {
        if let Some(freed) = key.freed_by(self.get(key.hash), job, ended_at) {
            self.set(key.hash, freed);
        }
    }

    /// Puts a holder in, replacing an earlier one.
    pub(crate) fn set(&mut self, key: Digest, holder: KeyHolder) {
        let old = self.holders.insert(key, holder);
        if let Some(end) = old.and_then(|old| old.free_at) {
            self.ends.remove(&(end, key));
        }
        if let Some(end) = holder.free_at {
            self.ends.insert((end, key));
        }
    }

    /// Forgets keys that are free by `now`, at most `limit` of them.
    pub(crate) fn forget_free(&mut self, now: Timestamp, limit: usize) {
        for _ in 0..limit {
            match self.ends.first() {
                Some(&(end, key)) if end <= now => {
                    self.ends.remove(&(end, key));
                    self.holders.remove(&key);
                }
                _ => return,
            }
        }
    }

    /// Keys of ended jobs after `after`, for snapshots.
    pub(crate) fn ended_after(
        &self,
        after: Option<(Timestamp, Digest)>,
    ) -> impl Iterator<Item = ((Timestamp, Digest), KeyHolder)> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let ends = self.ends.range((from, Bound::Unbounded));
        ends.filter_map(|end| Some((*end, self.get(end.1)?)))
    }
}
