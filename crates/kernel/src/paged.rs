//! A sorted set in pages. Keys that arrive in order fill their pages to the brim, and taking the
//! first is cheap: what a timer or a ready lane does all day, at half of a B-tree's memory.

use std::collections::VecDeque;

const PAGE: usize = 512;

/// A sorted set of small keys.
#[derive(Debug, Clone)]
pub struct Paged<K> {
    /// None is empty; every key of a page is below every key of the next.
    pages: VecDeque<VecDeque<K>>,
    len: usize,
}

impl<K> Default for Paged<K> {
    fn default() -> Self {
        Paged { pages: VecDeque::new(), len: 0 }
    }
}

impl<K: Copy + Ord> Paged<K> {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The smallest key.
    pub fn first(&self) -> Option<K> {
        self.pages.front()?.front().copied()
    }

    /// Puts a key in; `false` if it was there.
    pub fn insert(&mut self, key: K) -> bool {
        let at = self.page_of(key);
        let is_last = at + 1 == self.pages.len();
        let Some(page) = self.pages.get_mut(at) else {
            self.pages.push_back(VecDeque::from([key]));
            self.len = 1;
            return true;
        };
        let place = page.partition_point(|other| *other < key);
        if page.get(place) == Some(&key) {
            return false;
        }
        self.len += 1;
        if page.len() < PAGE {
            page.insert(place, key);
        } else if place == PAGE && is_last {
            // In order: a new page, and the old one stays full.
            self.pages.push_back(VecDeque::from([key]));
        } else {
            let mut upper = page.split_off(PAGE / 2);
            match place.checked_sub(PAGE / 2) {
                Some(place) => upper.insert(place, key),
                None => page.insert(place, key),
            }
            self.pages.insert(at + 1, upper);
        }
        true
    }

    /// Takes a key out; `false` if it was not there.
    pub fn remove(&mut self, key: K) -> bool {
        self.take(key).is_some()
    }

    /// Takes out the key equal to `key`, which may carry more than what it is compared by.
    pub fn take(&mut self, key: K) -> Option<K> {
        let at = self.page_of(key);
        let page = self.pages.get_mut(at)?;
        let place = page.partition_point(|other| *other < key);
        if page.get(place) != Some(&key) {
            return None;
        }
        let taken = page.remove(place);
        self.len -= 1;
        if page.is_empty() {
            self.pages.remove(at);
        } else if page.len() * 4 < PAGE && page.capacity() >= PAGE {
            page.shrink_to(PAGE / 2);
        }
        taken
    }

    /// Keys above `key`, in order; all of them without one.
    pub fn above(&self, key: Option<K>) -> impl Iterator<Item = K> {
        let at = key.map_or(0, |key| self.page_of(key));
        let place = match (key, self.pages.get(at)) {
            (Some(key), Some(page)) => page.partition_point(|other| *other <= key),
            _ => 0,
        };
        self.pages.range(at.min(self.pages.len())..).flatten().skip(place).copied()
    }

    /// How many keys are below `key`, counted up to `limit` and roughly a page.
    pub fn count_below(&self, key: K, limit: usize) -> usize {
        let at = self.page_of(key);
        let whole: usize = self.pages.iter().take(at.min(limit)).map(VecDeque::len).sum();
        let part = self.pages.get(at).map_or(0, |page| page.partition_point(|other| *other < key));
        (whole + part).min(limit)
    }

    /// The page a key is on or belongs on.
    fn page_of(&self, key: K) -> usize {
        let starts_above = |page: &VecDeque<K>| page.front().is_some_and(|first| *first <= key);
        self.pages.partition_point(starts_above).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_tree() {
        let (mut paged, mut tree, mut seed) = (Paged::default(), BTreeSet::new(), 3u64);
        for turn in 0..200_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            let key = if turn % 3 == 0 { turn } else { (seed >> 33) % 50_000 };
            match seed >> 62 {
                0 | 1 => assert_eq!(paged.insert(key), tree.insert(key)),
                2 => assert_eq!(paged.remove(key), tree.remove(&key)),
                _ => {
                    let first = paged.first();
                    assert_eq!(first, tree.first().copied());
                    first.map(|key| (paged.remove(key), tree.remove(&key)));
                }
            }
            if turn % 5_000 == 0 {
                let (low, all) = (seed % 60_000, usize::MAX);
                assert!(paged.above(Some(low)).eq(tree.range(low + 1..).copied()));
                assert!(paged.above(None).eq(tree.iter().copied()));
                assert_eq!(paged.count_below(low, all), tree.range(..low).count());
                assert_eq!(paged.len(), tree.len());
            }
        }
    }
}
