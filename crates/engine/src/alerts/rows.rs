//! Moves refused in a row, by tenant and by where they were asked for. A row is one row though
//! several servers answered it: they tell each other of theirs every few seconds, as long as there
//! are any (`News::refusals`), and a move that any of them made ends all that began before it.
//! Where nothing was refused lately, by anybody, a move that is made costs one look at a flag.

use crate::limits::{REFUSALS_DATED_MAX, REPORTED_TENANTS_MAX};
use mainspring_kernel::{TenantId, Timestamp};
use mainspring_store::RefusalNote;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    known: Mutex<Known>,
    /// Whether any move was refused lately, here or elsewhere; most of the time none was.
    is_any: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    own: BTreeMap<TenantId, BTreeMap<&'static str, Row>>,
    /// When a move was made here that ended a row, of this server or another.
    taken: BTreeMap<(TenantId, &'static str), Timestamp>,
    elsewhere: Vec<RefusalNote>,
}

/// Moves that this server refused.
#[derive(Debug, Clone)]
struct Row {
    count: u64,
    since: Timestamp,
    /// The latest of them, in order.
    latest: VecDeque<Timestamp>,
}

impl Row {
    fn last_at(&self) -> Timestamp {
        self.latest.back().copied().unwrap_or(self.since)
    }

    fn refused(&mut self, now: Timestamp) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
        if self.latest.len() >= REFUSALS_DATED_MAX {
            self.latest.pop_front();
        }
        self.latest.push_back(now.max(self.last_at()));
    }

    /// A move was made elsewhere: only what was refused later is still in a row.
    fn ended(&mut self, at: Timestamp) {
        if at < self.since {
            return;
        }
        self.latest.retain(|refused| *refused > at);
        self.count = self.latest.len() as u64;
        self.since = self.latest.front().copied().unwrap_or(self.since);
    }
}

impl Rows {
    /// A move was refused.
    pub(super) fn refused(&self, tenant: &TenantId, place: &'static str, now: Timestamp) {
        let mut known = self.known();
        if known.own.len() >= REPORTED_TENANTS_MAX && !known.own.contains_key(tenant) {
            return;
        }
        let new = Row { count: 0, since: now, latest: VecDeque::new() };
        let rows = known.own.entry(tenant.clone()).or_default();
        rows.entry(place).or_insert(new).refused(now);
        self.is_any.store(true, Ordering::SeqCst);
    }

    /// A move was made.
    pub(super) fn taken(
        &self,
        tenant: &TenantId,
        place: &'static str,
        now: impl FnOnce() -> Timestamp,
    ) {
        if !self.is_any.load(Ordering::SeqCst) {
            return;
        }
        let mut known = self.known();
        let Known { own, taken, elsewhere } = &mut *known;
        let had = own.get_mut(tenant).and_then(|rows| rows.remove(place)).is_some();
        let is_theirs = |note: &RefusalNote| note.tenant == *tenant && *note.place == *place;
        let key = (tenant.clone(), place);
        let has_room = taken.len() < REPORTED_TENANTS_MAX || taken.contains_key(&key);
        if (had || elsewhere.iter().any(is_theirs)) && has_room {
            taken.insert(key, now());
        }
    }

    /// What the other servers tell, each of its own rows; whether that is news for this one's.
    pub(crate) fn heard(&self, notes: Vec<RefusalNote>) -> bool {
        let mut known = self.known();
        if known.elsewhere == notes {
            return false;
        }
        for note in &notes {
            let row = known.own.get_mut(&note.tenant).and_then(|it| it.get_mut(&*note.place));
            if let (Some(row), Some(at)) = (row, note.taken_at) {
                row.ended(at);
            }
        }
        known.elsewhere = notes;
        let is_any = !known.own.is_empty() || !known.elsewhere.is_empty();
        self.is_any.store(is_any, Ordering::SeqCst);
        !known.own.is_empty()
    }

    /// What the other servers are told, the latest first.
    pub(crate) fn to_tell(&self) -> Vec<RefusalNote> {
        if !self.is_any.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let known = self.known();
        let rows = known.own.iter().flat_map(|(tenant, rows)| {
            rows.iter().map(move |(place, row)| ((tenant.clone(), *place), Some(row)))
        });
        let mut all: BTreeMap<_, _> = known.taken.keys().cloned().map(|key| (key, None)).collect();
        all.extend(rows);
        type Place = (TenantId, &'static str);
        let note = |(key, row): (Place, Option<&Row>)| {
            let taken_at = known.taken.get(&key).copied();
            let at = taken_at.unwrap_or(Timestamp::EPOCH);
            let (count, since, last_at) =
                row.map_or((0, at, at), |row| (row.count, row.since, row.last_at()));
            let (tenant, place) = key;
            RefusalNote { tenant, place: place.into(), count, since, last_at, taken_at }
        };
        let mut notes: Vec<RefusalNote> = all.into_iter().map(note).collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.last_at));
        notes
    }

    /// The most moves in a row that were refused, of each tenant that this server refused some.
    /// What ended `quiet` ago is forgotten.
    pub(super) fn longest(&self, now: Timestamp, quiet: Duration) -> Vec<(TenantId, u64)> {
        if !self.is_any.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut known = self.known();
        let Known { own, taken, elsewhere } = &mut *known;
        let is_recent = |at: Timestamp| now.since(at) < quiet;
        own.retain(|_, rows| {
            rows.retain(|_, row| is_recent(row.last_at()));
            !rows.is_empty()
        });
        taken.retain(|_, at| is_recent(*at));
        let is_any = !own.is_empty() || !elsewhere.is_empty() || !taken.is_empty();
        self.is_any.store(is_any, Ordering::SeqCst);
        let longest = |(tenant, rows): (&TenantId, &BTreeMap<&'static str, Row>)| {
            let all = rows.iter().map(|(place, row)| {
                let of_it = |it: &&RefusalNote| it.tenant == *tenant && *it.place == **place;
                let theirs: Vec<&RefusalNote> = elsewhere.iter().filter(of_it).collect();
                let ended = theirs.iter().filter_map(|it| it.taken_at);
                let ended = ended.chain(taken.get(&(tenant.clone(), *place)).copied()).max();
                let stands = |it: &&&RefusalNote| {
                    is_recent(it.last_at) && ended.is_none_or(|ended| it.since > ended)
                };
                let more = theirs.iter().filter(stands).map(|it| it.count);
                more.fold(row.count, u64::saturating_add)
            });
            (tenant.clone(), all.max().unwrap_or(0))
        };
        own.iter().map(longest).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_secs(300);
    const PLACE: &str = "/p";

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    fn tenant() -> TenantId {
        TenantId::new("t").unwrap()
    }

    fn refused(rows: &Rows, seconds: &[i64]) {
        seconds.iter().for_each(|second| rows.refused(&tenant(), PLACE, at(*second)));
    }

    fn longest(rows: &Rows, now: i64) -> u64 {
        rows.longest(at(now), QUIET).first().map_or(0, |(_, count)| *count)
    }

    /// Each hears what the other has to tell.
    fn tell(one: &Rows, two: &Rows) {
        two.heard(one.to_tell());
        one.heard(two.to_tell());
    }

    #[test]
    fn a_row_that_two_servers_answered_is_one_row() {
        let (one, two) = (Rows::default(), Rows::default());
        refused(&one, &[1, 3, 5]);
        refused(&two, &[2, 4]);
        assert_eq!((longest(&one, 6), longest(&two, 6)), (3, 2));
        tell(&one, &two);
        assert_eq!((longest(&one, 6), longest(&two, 6)), (5, 5));
        assert!(!one.heard(two.to_tell()), "that is no news");
        // A server that is gone takes its part along.
        assert!(one.heard(Vec::new()));
        assert_eq!(longest(&one, 6), 3);
    }

    #[test]
    fn a_move_made_anywhere_ends_what_was_refused_before_it() {
        let (one, two) = (Rows::default(), Rows::default());
        refused(&one, &[1, 2, 3]);
        tell(&one, &two);
        two.taken(&tenant(), PLACE, || at(4));
        refused(&one, &[5]);
        refused(&two, &[6]);
        tell(&two, &one);
        tell(&two, &one);
        assert_eq!((longest(&one, 7), longest(&two, 7)), (2, 2));
        // One that was made here ends the rows of others at once, and elsewhere when it is told.
        one.taken(&tenant(), PLACE, || at(8));
        assert_eq!((longest(&one, 8), longest(&two, 8)), (0, 2));
        refused(&one, &[9]);
        assert_eq!(longest(&one, 9), 1);
        tell(&one, &two);
        assert_eq!((longest(&one, 9), longest(&two, 9)), (1, 1));
        // At another place, and of another tenant, it ends nothing.
        one.taken(&tenant(), "/q", || at(10));
        one.taken(&TenantId::new("u").unwrap(), PLACE, || at(10));
        assert_eq!(longest(&one, 10), 1);
        // What is refused where the row had ended is of the new one.
        refused(&two, &[11]);
        tell(&one, &two);
        assert_eq!((longest(&one, 12), longest(&two, 12)), (2, 2));
    }

    #[test]
    fn what_is_long_ago_is_forgotten_and_a_long_row_is_not() {
        let rows = Rows::default();
        let seconds: Vec<i64> = (0..1_000).collect();
        refused(&rows, &seconds);
        assert_eq!(longest(&rows, 1_000), 1_000);
        assert_eq!(longest(&rows, 999 + 299), 1_000);
        assert_eq!(longest(&rows, 999 + 300), 0);
        assert_eq!(rows.to_tell(), [], "there is nothing to tell any more");
    }

    #[test]
    fn more_tenants_than_are_kept_are_not_noted() {
        let rows = Rows::default();
        for n in 0..REPORTED_TENANTS_MAX + 1 {
            rows.refused(&TenantId::new(&format!("t{n}")).unwrap(), PLACE, at(1));
        }
        assert_eq!(rows.longest(at(2), QUIET).len(), REPORTED_TENANTS_MAX);
    }
}
