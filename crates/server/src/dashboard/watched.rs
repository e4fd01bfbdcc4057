//! How many jobs of a caller are in each state, for those who look at the dashboard now. Whoever
//! sees everything is told the numbers that the store keeps; of one tenant or user there are none,
//! so a task counts them up to a bound, every few seconds, for as long as somebody looks.

use crate::limits::{WATCHED_JOBS_MAX, WATCHED_SCOPES_MAX};
use mainspring_engine::store::{JobFilter, Scope};
use mainspring_engine::{Engine, Error};
use mainspring_kernel::{StateName, Timestamp};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often is counted while somebody looks.
const EVERY: Duration = Duration::from_secs(3);
/// For how long somebody is taken to look on.
const LOOKS_FOR: Duration = Duration::from_secs(15);
/// How long a page waits for the first count.
const PATIENCE: Duration = Duration::from_millis(250);

/// How many are in each state, indexed like [`StateName::ALL`]; `None` while nobody has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    counts: [Option<u64>; 8],
    /// Whether a count stops at a bound.
    is_bounded: bool,
}

impl Tally {
    pub(super) fn of(&self, state: StateName) -> Option<u64> {
        let mut found = StateName::ALL.iter().zip(self.counts);
        found.find(|(one, _)| **one == state).and_then(|(_, count)| count)
    }

    /// The same as text.
    pub(super) fn text(&self, state: StateName) -> String {
        match self.of(state) {
            Some(count) if self.is_bounded && count >= WATCHED_JOBS_MAX as u64 => {
                format!("{}+", super::parts::count(WATCHED_JOBS_MAX as u64))
            }
            Some(count) => super::parts::count(count),
            None => "–".to_owned(),
        }
    }
}

#[derive(Debug)]
struct Entry {
    scope: Scope,
    looked_at: Timestamp,
    tally: Option<Tally>,
}

/// Whose jobs are counted.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    entries: Mutex<Vec<Entry>>,
    /// Somebody looks whose jobs nobody has counted.
    wanted: Notify,
    counted: Notify,
}

impl Watched {
    /// The numbers of a caller.
    pub(super) async fn tally(&self, engine: &Engine, scope: Scope) -> Result<Tally, Error> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let counted = self.counted.notified();
            if let Some(tally) = self.look(&scope, engine.now()) {
                return Ok(tally);
            }
            self.wanted.notify_one();
            tokio::select! {
                () = counted => {}
                () = tokio::time::sleep_until(deadline) => return Ok(Tally::default()),
            }
        }
    }

    /// What was counted, noting that somebody looks. Of too many the one that nobody has looked at
    /// for longest goes.
    fn look(&self, scope: &Scope, now: Timestamp) -> Option<Tally> {
        let mut entries = self.entries();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.scope == *scope) {
            entry.looked_at = now;
            return entry.tally;
        }
        if entries.len() >= WATCHED_SCOPES_MAX {
            let oldest = entries.iter().enumerate().min_by_key(|(_, entry)| entry.looked_at);
            if let Some(index) = oldest.map(|(index, _)| index) {
                entries.swap_remove(index);
            }
        }
        entries.push(Entry { scope: scope.clone(), looked_at: now, tally: None });
        None
    }

    /// Whose jobs are to be counted now.
    fn due(&self, now: Timestamp) -> Vec<Scope> {
        let mut entries = self.entries();
        entries.retain(|entry| now.since(entry.looked_at) < LOOKS_FOR);
        entries.iter().map(|entry| entry.scope.clone()).collect()
    }

    fn note(&self, scope: &Scope, tally: Tally) {
        let mut entries = self.entries();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.scope == *scope) {
            entry.tally = Some(tally);
        }
        drop(entries);
        self.counted.notify_waiters();
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts until the task ends.
pub(super) async fn run(watched: &Watched, engine: &Engine) {
    loop {
        for scope in watched.due(engine.now()) {
            if let Ok(tally) = counted(engine, &scope).await {
                watched.note(&scope, tally);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = watched.wanted.notified() => {}
        }
    }
}

async fn counted(engine: &Engine, scope: &Scope) -> Result<Tally, Error> {
    if *scope == Scope::All {
        let counts = engine.counts().await?.by_state.map(Some);
        return Ok(Tally { counts, is_bounded: false });
    }
    let mut tally = Tally { is_bounded: true, ..Tally::default() };
    for (state, count) in StateName::ALL.into_iter().zip(&mut tally.counts) {
        let filter = JobFilter { state: Some(state), ..JobFilter::of(scope.clone()) };
        *count = Some(engine.count_jobs(&filter, WATCHED_JOBS_MAX).await? as u64);
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::TenantId;

    fn tenant(n: usize) -> Scope {
        Scope::Tenant(TenantId::new(&format!("t{n}")).unwrap())
    }

    #[test]
    fn only_those_who_look_are_counted_for_and_only_so_many() {
        let watched = Watched::default();
        for n in 0..WATCHED_SCOPES_MAX + 1 {
            assert_eq!(watched.look(&tenant(n), Timestamp(n as i64)), None);
        }
        let due = watched.due(Timestamp(100));
        assert_eq!(due.len(), WATCHED_SCOPES_MAX);
        assert!(!due.contains(&tenant(0)), "who looked first made room");
        let tally = Tally { counts: [Some(1); 8], is_bounded: true };
        watched.note(&tenant(5), tally);
        assert_eq!(watched.look(&tenant(5), Timestamp(200)), Some(tally));
        let late = Timestamp(200) + LOOKS_FOR - Duration::from_micros(50);
        assert_eq!(watched.due(late), [tenant(5)], "the others have gone");
    }

    #[test]
    fn a_bound_is_told() {
        let mut tally = Tally { counts: [Some(1_000); 8], is_bounded: true };
        assert_eq!(tally.text(StateName::Queued), "1,000+");
        tally.is_bounded = false;
        assert_eq!(tally.text(StateName::Queued), "1,000");
        assert_eq!(Tally::default().text(StateName::Failed), "–");
    }
}
