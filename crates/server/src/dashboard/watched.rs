//! What is counted for those who look at the dashboard now, never because a page is asked for: a
//! task counts every few seconds for as long as somebody looks, and pages show what it last came
//! to. Read next: `tally.rs` and `dlq/groups.rs` for what is counted.

use crate::limits::WATCHED_SCOPES_MAX;
use futures_util::future::BoxFuture;
use mainspring_engine::store::Scope;
use mainspring_engine::{Engine, Error};
use mainspring_kernel::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// For how long somebody is taken to look on.
const LOOKS_FOR: Duration = Duration::from_secs(15);

/// What a count of somebody's things takes.
pub(super) type Count<T> = for<'a> fn(&'a Engine, &'a Scope) -> BoxFuture<'a, Result<T, Error>>;

#[derive(Debug)]
struct Entry<T> {
    scope: Scope,
    looked_at: Timestamp,
    /// When it was counted, and what it came to.
    counted: Option<(Timestamp, T)>,
}

/// Whose things are counted, and what they came to.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    entries: Mutex<Vec<Entry<T>>>,
    /// Somebody looks whose things nobody has counted.
    wanted: Notify,
    counted: Notify,
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        let entries = Mutex::new(Vec::new());
        Watched { entries, wanted: Notify::new(), counted: Notify::new() }
    }
}

impl<T: Clone> Watched<T> {
    /// What the things of a caller last came to, and when; the first one who looks waits for it,
    /// but not for longer than `patience`.
    pub(super) async fn latest(
        &self,
        engine: &Engine,
        scope: &Scope,
        patience: Duration,
    ) -> Option<(Timestamp, T)> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let counted = self.counted.notified();
            if let Some(found) = self.look(scope, engine.now()) {
                return Some(found);
            }
            self.wanted.notify_one();
            tokio::select! {
                () = counted => {}
                () = tokio::time::sleep_until(deadline) => return None,
            }
        }
    }

    /// Counts every so often until the task ends.
    pub(super) async fn run(&self, engine: &Engine, every: Duration, count: Count<T>) {
        loop {
            for scope in self.due(engine.now(), every) {
                if let Ok(found) = count(engine, &scope).await {
                    self.note(&scope, engine.now(), found);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.wanted.notified() => {}
            }
        }
    }

    /// What was counted, noting that somebody looks. Of too many the one that nobody has looked at
    /// for longest goes.
    fn look(&self, scope: &Scope, now: Timestamp) -> Option<(Timestamp, T)> {
        let mut entries = self.entries();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.scope == *scope) {
            entry.looked_at = now;
            return entry.counted.clone();
        }
        if entries.len() >= WATCHED_SCOPES_MAX {
            let oldest = entries.iter().enumerate().min_by_key(|(_, entry)| entry.looked_at);
            if let Some(index) = oldest.map(|(index, _)| index) {
                entries.swap_remove(index);
            }
        }
        entries.push(Entry { scope: scope.clone(), looked_at: now, counted: None });
        None
    }

    /// Whose things are to be counted now: those of whoever looks that were not counted lately. A
    /// clock that was set back makes nothing new of what is old.
    fn due(&self, now: Timestamp, every: Duration) -> Vec<Scope> {
        let mut entries = self.entries();
        entries.retain(|entry| now.since(entry.looked_at) < LOOKS_FOR);
        let is_old = |entry: &&Entry<T>| {
            let counted = entry.counted.as_ref().map(|(at, _)| *at);
            counted.is_none_or(|at| now < at || now.since(at) >= every / 2)
        };
        entries.iter().filter(is_old).map(|entry| entry.scope.clone()).collect()
    }

    fn note(&self, scope: &Scope, at: Timestamp, found: T) {
        let mut entries = self.entries();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.scope == *scope) {
            entry.counted = Some((at, found));
        }
        drop(entries);
        self.counted.notify_waiters();
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::TenantId;

    const EVERY: Duration = Duration::from_secs(3);

    fn tenant(n: usize) -> Scope {
        Scope::Tenant(TenantId::new(&format!("t{n}")).unwrap())
    }

    #[test]
    fn only_those_who_look_are_counted_for_and_only_so_many() {
        let watched = Watched::<u8>::default();
        for n in 0..WATCHED_SCOPES_MAX + 1 {
            assert_eq!(watched.look(&tenant(n), Timestamp(n as i64)), None);
        }
        let due = watched.due(Timestamp(100), EVERY);
        assert_eq!(due.len(), WATCHED_SCOPES_MAX);
        assert!(!due.contains(&tenant(0)), "who looked first made room");
        watched.note(&tenant(5), Timestamp(150), 7);
        assert_eq!(watched.look(&tenant(5), Timestamp(200)), Some((Timestamp(150), 7)));
        let late = Timestamp(200) + LOOKS_FOR - Duration::from_micros(50);
        assert_eq!(watched.due(late, EVERY), [tenant(5)], "the others have gone");
    }

    #[test]
    fn what_was_just_counted_is_not_counted_again_because_another_looks() {
        let watched = Watched::<u8>::default();
        assert_eq!(watched.look(&tenant(1), Timestamp(0)), None);
        watched.note(&tenant(1), Timestamp(0), 7);
        assert_eq!(watched.look(&tenant(2), Timestamp(1)), None);
        assert_eq!(watched.due(Timestamp(1), EVERY), [tenant(2)]);
        assert_eq!(watched.due(Timestamp(0) + EVERY, EVERY), [tenant(1), tenant(2)]);
    }
}
