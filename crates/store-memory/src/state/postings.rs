//! Which jobs have a term, newest first: what makes a filtered list cheap. A posting is eight
//! bytes, the upper half of an id; the few jobs that share one are told apart when looked at.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use mainspring_kernel::JobId;
use mainspring_store::Term;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Postings of one page; small, because taking one out moves half a page at most.
const PAGE: usize = 256;

/// The upper half of an id: milliseconds and order, so that it sorts by age.
pub(crate) type Upper = u64;

/// The upper half of `id`.
pub(crate) fn upper(id: JobId) -> Upper {
    (id.0 >> 64) as Upper
}

/// The least id with an upper half.
pub(crate) fn first_of(upper: Upper) -> JobId {
    JobId(u128::from(upper) << 64)
}

/// The greatest id with an upper half.
pub(crate) fn last_of(upper: Upper) -> JobId {
    JobId(u128::from(upper) << 64 | u128::from(u64::MAX))
}

/// The postings of one term, with as many equal ones as there are ids.
#[derive(Debug)]
enum List {
    /// Most traces and many labels are those of one job.
    One(Upper),
    Many(Box<Pages>),
}

#[derive(Debug, Default)]
struct Pages {
    /// None is empty; no posting of a page is above one of the next.
    pages: VecDeque<VecDeque<Upper>>,
    len: usize,
}

/// All postings, by term.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    all: Pages,
    lists: HashMap<u64, List, RandomState>,
    hasher: RandomState,
}

/// The postings a filter goes by: those that have every term.
pub(crate) struct Meeting<'a> {
    lists: Vec<&'a List>,
    all: Option<&'a Pages>,
    /// Postings looked at.
    pub(crate) steps: usize,
}

impl Postings {
    /// A new id.
    pub(crate) fn enter(&mut self, id: JobId) {
        self.all.insert(upper(id));
    }

    /// An id that is gone.
    pub(crate) fn leave(&mut self, id: JobId) {
        self.all.remove(upper(id));
    }

    /// An id has a term.
    pub(crate) fn add(&mut self, term: Term<'_>, id: JobId) {
        let upper = upper(id);
        match self.lists.get_mut(&self.hasher.hash_one(term.parts())) {
            Some(list) => list.insert(upper),
            None => {
                self.lists.insert(self.hasher.hash_one(term.parts()), List::One(upper));
            }
        }
    }

    /// An id no longer has a term.
    pub(crate) fn remove(&mut self, term: Term<'_>, id: JobId) {
        let number = self.hasher.hash_one(term.parts());
        let Some(list) = self.lists.get_mut(&number) else { return };
        let is_empty = match list {
            List::One(only) => *only == upper(id),
            List::Many(pages) => {
                pages.remove(upper(id));
                pages.len == 0
            }
        };
        if is_empty {
            self.lists.remove(&number);
        }
    }

    /// How many ids have a term.
    pub(crate) fn count(&self, term: Term<'_>) -> usize {
        match self.lists.get(&self.hasher.hash_one(term.parts())) {
            None => 0,
            Some(List::One(_)) => 1,
            Some(List::Many(pages)) => pages.len,
        }
    }

    /// How many ids there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all.len
    }

    /// What has all of `terms`; `None` if nothing can have.
    pub(crate) fn meeting(&self, terms: &[Term<'_>]) -> Option<Meeting<'_>> {
        let lists = terms.iter().map(|term| self.lists.get(&self.hasher.hash_one(term.parts())));
        let mut lists: Vec<&List> = lists.collect::<Option<_>>()?;
        // The shortest leads: it takes the longest leaps.
        lists.sort_by_key(|list| list.len());
        let all = lists.is_empty().then_some(&self.all);
        Some(Meeting { lists, all, steps: 0 })
    }
}

/// What a search of a meeting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    /// The newest posting that is in every list.
    At(Upper),
    /// None at or below where the search began.
    Nowhere,
    /// None above this one, which is as far as the steps allowed went.
    NotAbove(Upper),
}

impl Meeting<'_> {
    /// Looks for the newest posting that is at most `from` and in every list, until `steps_max`
    /// postings were looked at in all.
    pub(crate) fn at_most(&mut self, from: Upper, steps_max: usize) -> Met {
        if let Some(all) = self.all {
            self.steps += 1;
            return all.at_most(from).map_or(Met::Nowhere, Met::At);
        }
        let (mut candidate, mut agreed, mut at) = (from, 0, 0);
        while agreed < self.lists.len() {
            if self.steps >= steps_max {
                return Met::NotAbove(candidate);
            }
            self.steps += 1;
            let Some(found) = self.lists[at].at_most(candidate) else { return Met::Nowhere };
            agreed = if found == candidate { agreed + 1 } else { 1 };
            candidate = found;
            at = (at + 1) % self.lists.len();
        }
        Met::At(candidate)
    }
}

impl List {
    fn len(&self) -> usize {
        match self {
            List::One(_) => 1,
            List::Many(pages) => pages.len,
        }
    }

    fn insert(&mut self, upper: Upper) {
        match self {
            List::One(only) => {
                let mut pages = Pages::default();
                pages.insert(*only);
                pages.insert(upper);
                *self = List::Many(Box::new(pages));
            }
            List::Many(pages) => pages.insert(upper),
        }
    }

    fn at_most(&self, from: Upper) -> Option<Upper> {
        match self {
            List::One(only) => (*only <= from).then_some(*only),
            List::Many(pages) => pages.at_most(from),
        }
    }
}

impl Pages {
    fn insert(&mut self, key: Upper) {
        self.len += 1;
        let at = self.page_of(key);
        let is_last = at + 1 >= self.pages.len();
        let Some(page) = self.pages.get_mut(at) else {
            self.pages.push_back(VecDeque::from([key]));
            return;
        };
        let place = page.partition_point(|other| *other <= key);
        if page.len() < PAGE {
            page.insert(place, key);
        } else if place == PAGE && is_last {
            // In order: a new page, and the old one stays full.
            self.pages.push_back(VecDeque::from([key]));
        } else {
            let mut above = page.split_off(PAGE / 2);
            match place.checked_sub(PAGE / 2) {
                Some(place) => above.insert(place, key),
                None => page.insert(place, key),
            }
            self.pages.insert(at + 1, above);
        }
    }

    /// Takes out one of the postings equal to `key`.
    fn remove(&mut self, key: Upper) {
        let at = self.page_of(key);
        let Some(page) = self.pages.get_mut(at) else { return };
        let place = page.partition_point(|other| *other < key);
        if page.get(place) != Some(&key) {
            return;
        }
        page.remove(place);
        self.len -= 1;
        if page.is_empty() {
            self.pages.remove(at);
        } else if page.len() * 4 < PAGE && page.capacity() >= PAGE {
            page.shrink_to(PAGE / 2);
        }
    }

    fn at_most(&self, key: Upper) -> Option<Upper> {
        let page = self.pages.get(self.page_of(key))?;
        let place = page.partition_point(|other| *other <= key);
        place.checked_sub(1).and_then(|place| page.get(place).copied())
    }

    /// The last page that starts at or below `key`, or the first.
    fn page_of(&self, key: Upper) -> usize {
        let starts_below = |page: &VecDeque<Upper>| page.front().is_some_and(|it| *it <= key);
        self.pages.partition_point(starts_below).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn next(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        *seed >> 33
    }

    #[test]
    fn postings_agree_with_a_map_even_where_ids_share_their_upper_half() {
        let terms = [Term::Type("mill"), Term::Queue("slow"), Term::Code("E")];
        let (mut postings, mut seed) = (Postings::default(), 7);
        let mut model: BTreeMap<JobId, Vec<usize>> = BTreeMap::new();
        for _ in 0..60_000 {
            let id = JobId(u128::from(next(&mut seed) % 3_000) << 64 | u128::from(seed & 3));
            if let Some(had) = model.remove(&id) {
                had.iter().for_each(|at| postings.remove(terms[*at], id));
                postings.leave(id);
            } else {
                let has: Vec<usize> =
                    (0..3).filter(|_| next(&mut seed).is_multiple_of(2)).collect();
                has.iter().for_each(|at| postings.add(terms[*at], id));
                postings.enter(id);
                model.insert(id, has);
            }
        }
        assert!(model.len() > 4_000, "{}", model.len());
        for wanted in [vec![], vec![0], vec![0, 1], vec![2, 1, 0]] {
            let asked: Vec<Term<'_>> = wanted.iter().map(|at| terms[*at]).collect();
            // A posting may meet others of another id with the same upper half.
            let mut expected: Vec<Upper> = model.keys().rev().map(|id| upper(*id)).collect();
            expected.dedup();
            expected.retain(|it| {
                let ids = || model.range(first_of(*it)..=last_of(*it));
                wanted.iter().all(|at| ids().any(|(_, has)| has.contains(at)))
            });
            let mut meeting = postings.meeting(&asked).unwrap();
            let (mut found, mut from) = (Vec::new(), Upper::MAX);
            while let Met::At(it) = meeting.at_most(from, usize::MAX) {
                found.push(it);
                let Some(below) = it.checked_sub(1) else { break };
                from = below;
            }
            assert_eq!(found, expected, "{asked:?}");
        }
        // A few steps at a time come to the same.
        let (mut found, mut from, mut turns) = (Vec::new(), Upper::MAX, 0);
        loop {
            turns += 1;
            let mut meeting = postings.meeting(&[terms[0], terms[1]]).unwrap();
            match meeting.at_most(from, 2) {
                Met::At(it) => {
                    found.push(it);
                    from = it - 1;
                }
                Met::NotAbove(it) => {
                    assert!(it < from, "every turn gets on");
                    from = it;
                }
                Met::Nowhere => break,
            }
        }
        let both = |id: &Upper| {
            let ids = || model.range(first_of(*id)..=last_of(*id));
            [0, 1].iter().all(|at| ids().any(|(_, has)| has.contains(at)))
        };
        assert!(turns > found.len() + 100 && found.iter().all(both), "{turns}");
        let count = model.values().filter(|has| has.contains(&0)).count();
        assert_eq!(postings.count(terms[0]), count);
        for (id, has) in model {
            has.iter().for_each(|at| postings.remove(terms[*at], id));
            postings.leave(id);
        }
        assert!(postings.lists.is_empty() && postings.all.len == 0);
    }
}
