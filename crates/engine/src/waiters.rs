//! Who waits for what, so that a commit wakes only those it concerns: callers that wait for the
//! end of a job by its id, streams by whose jobs they show. What other processes did is looked up
//! here, for all waiting callers in one read.
//!
//! A waiter takes its place first and looks at the store then: what happens between its look and
//! its sleep has rung by the time it falls asleep.

use crate::engine::Shared;
use crate::limits::{LOOK_EVERY, LOOK_MAX, LOOK_UNTOLD_EVERY};
use mainspring_kernel::{JobId, TenantId};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// For the end of a job.
    pub(crate) jobs: Bells<JobId>,
    /// For moves of a tenant's jobs.
    pub(crate) tenants: Bells<TenantId>,
}

/// Bells by what they are rung for. All clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Bells<K>(Arc<Mutex<BTreeMap<K, watch::Sender<()>>>>);

/// A place among those who wait for one thing, left when it is dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Ord> {
    bells: Bells<K>,
    key: K,
    /// Until it is dropped.
    rung: Option<watch::Receiver<()>>,
}

impl<K> Default for Bells<K> {
    fn default() -> Self {
        Bells(Arc::default())
    }
}

impl<K: Ord + Clone> Bells<K> {
    /// Takes a place: whatever rings for `key` from now on is heard.
    pub(crate) fn wait(&self, key: K) -> Place<K> {
        let rung = self.lock().entry(key.clone()).or_default().subscribe();
        Place { bells: self.clone(), key, rung: Some(rung) }
    }

    /// Wakes those who wait for one of these.
    pub(crate) fn ring<Q>(&self, keys: impl IntoIterator<Item = Q>)
    where
        Q: Borrow<K>,
    {
        let bells = self.lock();
        if bells.is_empty() {
            return;
        }
        for key in keys {
            if let Some(bell) = bells.get(key.borrow()) {
                bell.send_replace(());
            }
        }
    }

    /// What is waited for.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.lock().keys().cloned().collect()
    }
}

impl<K> Bells<K> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord> Place<K> {
    /// What rang until now is of no interest: it is looked at the store after this.
    pub(crate) fn forgets(&mut self) {
        if let Some(rung) = &mut self.rung {
            rung.mark_unchanged();
        }
    }

    /// Ends when the bell has rung since the place was taken, this last ended, or it was forgotten.
    pub(crate) async fn is_rung(&mut self) {
        if let Some(rung) = &mut self.rung {
            // The bell stays as long as somebody has a place.
            let _ = rung.changed().await;
        }
    }
}

impl<K: Ord> Drop for Place<K> {
    fn drop(&mut self) {
        let mut bells = self.bells.lock();
        // Under the lock, so that the last one to leave is told apart.
        self.rung = None;
        if bells.get(&self.key).is_some_and(|bell| bell.receiver_count() == 0) {
            bells.remove(&self.key);
        }
    }
}

/// Finds, for everybody at once, the jobs that ended elsewhere: when the store has news, and now
/// and then without. Runs until the engine stops.
pub(crate) async fn look_elsewhere(shared: Arc<Shared>) {
    loop {
        let looked_at = Instant::now();
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = shared.moved_elsewhere.notified() => {}
            () = tokio::time::sleep_until(looked_at + LOOK_UNTOLD_EVERY) => {}
        }
        let awaited = shared.waiters.jobs.keys();
        for some in awaited.chunks(LOOK_MAX) {
            match shared.store.ended(some).await {
                Ok(ended) => shared.waiters.jobs.ring(ended),
                Err(error) => tracing::debug!(%error, "could not look for jobs that ended"),
            }
        }
        // Paced: news come with every commit of every other server.
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep_until(looked_at + LOOK_EVERY) => {}
        }
    }
}
