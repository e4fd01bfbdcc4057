//! For which instants a schedule has had jobs, for as long as it exists. The key of a firing is
//! forgotten some time after its job has ended; this is not, so nothing fires twice however late
//! somebody asks for it again.
//!
//! Firings in a row are one stretch, so that years of a steady rhythm take sixteen bytes. There is
//! a bound to the number of stretches: beyond it the two with the least between them become one,
//! and what lies between counts as done, though it may have had no job. A firing may so be
//! missing for good, and is never there twice.

use crate::calendar::Rhythm;
use crate::limits::FIRED_STRETCHES_MAX;
use crate::time::Timestamp;

/// The instants for which a schedule has had jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The first and the last instant of each stretch, in order, apart from each other.
    stretches: Vec<(Timestamp, Timestamp)>,
}

impl Account {
    /// An account of these stretches, if it can be one.
    pub fn stored(stretches: Vec<(Timestamp, Timestamp)>) -> Option<Self> {
        let are_whole = stretches.iter().all(|(first, last)| first <= last);
        let are_apart = stretches.windows(2).all(|pair| pair[0].1 < pair[1].0);
        let is_bounded = stretches.len() <= FIRED_STRETCHES_MAX;
        (are_whole && are_apart && is_bounded).then_some(Account { stretches })
    }

    /// First and last instant of each stretch, in order.
    pub fn stretches(&self) -> &[(Timestamp, Timestamp)] {
        &self.stretches
    }

    /// Whether there was a job for `at`, as far as that can be told; if it cannot, there was.
    pub fn has(&self, at: Timestamp) -> bool {
        let place = self.stretches.partition_point(|(_, last)| *last < at);
        self.stretches.get(place).is_some_and(|(first, _)| *first <= at)
    }

    /// There is a job for `at`, which is a firing of `rhythm`.
    pub(super) fn add(&mut self, at: Timestamp, rhythm: &Rhythm) {
        if self.has(at) {
            return;
        }
        let place = self.stretches.partition_point(|(_, last)| *last < at);
        self.stretches.insert(place, (at, at));
        // Neighbours between which the rhythm has nothing are one.
        let is_next = |one: Timestamp, other: Timestamp| rhythm.next_after(one) == Some(other);
        if self.stretches.get(place + 1).is_some_and(|(first, _)| is_next(at, *first)) {
            self.join(place);
        }
        if place > 0 && is_next(self.stretches[place - 1].1, at) {
            self.join(place - 1);
        }
        while self.stretches.len() > FIRED_STRETCHES_MAX {
            let between =
                |place: &usize| self.stretches[place + 1].0.0 - self.stretches[*place].1.0;
            let least = (0..self.stretches.len() - 1).min_by_key(between);
            self.join(least.expect("there are two"));
        }
    }

    /// The stretch at `place` and the one behind it become one.
    fn join(&mut self, place: usize) {
        let (_, last) = self.stretches.remove(place + 1);
        self.stretches[place].1 = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    fn of(seconds: &[i64]) -> Account {
        let mut account = Account::default();
        for second in seconds {
            account.add(s(*second), &Rhythm::Interval { every_secs: 10, phase_secs: 0 });
        }
        assert_eq!(Account::stored(account.stretches.clone()).as_ref(), Some(&account));
        account
    }

    #[test]
    fn firings_in_a_row_are_one_stretch_in_whatever_order_they_come() {
        let forth: Vec<i64> = (1..=1_000).map(|turn| turn * 10).collect();
        let back: Vec<i64> = forth.iter().rev().copied().collect();
        let odd_first: Vec<i64> = (1..=50).flat_map(|turn| [turn * 20, turn * 20 - 10]).collect();
        assert_eq!(of(&forth).stretches(), [(s(10), s(10_000))]);
        assert_eq!(of(&back), of(&forth));
        assert_eq!(of(&odd_first).stretches(), [(s(10), s(1_000))]);
        let gapped = of(&[10, 20, 40]);
        assert_eq!(gapped.stretches(), [(s(10), s(20)), (s(40), s(40))]);
        let had = [0, 10, 20, 30, 40, 50].map(|second| gapped.has(s(second)));
        assert_eq!(had, [false, true, true, false, true, false]);
    }

    #[test]
    fn beyond_the_bound_what_lies_closest_is_joined_and_nothing_is_forgotten() {
        let most = FIRED_STRETCHES_MAX as i64;
        // Every second one is left out; one lies far behind.
        let mut all: Vec<i64> = vec![-1_000_000];
        all.extend((0..3 * most).map(|turn| turn * 20));
        let account = of(&all);
        assert_eq!(account.stretches().len(), FIRED_STRETCHES_MAX);
        assert!(all.iter().all(|second| account.has(s(*second))));
        assert_eq!(account.stretches()[0], (s(-1_000_000), s(-1_000_000)), "it is not drawn near");
        assert!(!account.has(s(-500_000)));
        let last = (3 * most - 1) * 20;
        assert!(!account.has(s(last - 10)), "the latest are told apart");
    }

    #[test]
    fn what_is_no_account_is_not_taken_for_one() {
        for bad in [vec![(s(2), s(1))], vec![(s(1), s(3)), (s(3), s(4))], vec![(s(1), s(1)); 2]] {
            assert_eq!(Account::stored(bad), None);
        }
        let many = (0..=FIRED_STRETCHES_MAX as i64).map(|turn| (s(turn * 2), s(turn * 2)));
        assert_eq!(Account::stored(many.collect()), None);
    }
}
