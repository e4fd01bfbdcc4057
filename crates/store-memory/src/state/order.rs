//! Live ids in order, for newest-first lists. Ids rise, so a new one goes at the end; a dead one is
//! merely counted until half its page is dead.

use mainspring_kernel::JobId;

const PAGE: usize = 1 << 10;

#[derive(Debug, Default)]
struct Page {
    /// Rising; dead ones stay until half the page is dead.
    ids: Vec<JobId>,
    dead: usize,
}

/// Ids in rising order, in pages.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pages: Vec<Page>,
}

impl Order {
    /// Adds a live id: at the end if it is the newest, else where it belongs.
    pub(crate) fn push(&mut self, id: JobId) {
        let is_newest =
            self.pages.last().and_then(|page| page.ids.last()).is_none_or(|top| *top < id);
        if is_newest {
            if self.pages.last().is_none_or(|page| page.ids.len() >= PAGE) {
                self.pages.push(Page { ids: Vec::with_capacity(PAGE), dead: 0 });
            }
            self.pages.last_mut().expect("just made sure").ids.push(id);
            return;
        }
        let at = self.page_of(id);
        let page = &mut self.pages[at];
        let place = page.ids.partition_point(|other| *other < id);
        if page.ids.get(place) == Some(&id) {
            // The id was counted dead on this page and lives again.
            page.dead = page.dead.saturating_sub(1);
            return;
        }
        page.ids.insert(place, id);
        if page.ids.len() >= 2 * PAGE {
            let upper = page.ids.split_off(PAGE);
            self.pages.insert(at + 1, Page { ids: upper, dead: 0 });
        }
    }

    /// Notes that an id is no longer live.
    pub(crate) fn forget(&mut self, id: JobId, is_live: impl Fn(JobId) -> bool) {
        if self.pages.is_empty() {
            return;
        }
        let at = self.page_of(id);
        let page = &mut self.pages[at];
        page.dead += 1;
        if page.dead * 2 > page.ids.len() {
            page.ids.retain(|id| is_live(*id));
            page.dead = 0;
            if page.ids.is_empty() {
                self.pages.remove(at);
            } else {
                page.ids.shrink_to_fit();
            }
        }
    }

    /// Ids below `before`, newest first; dead ones may be among them.
    pub(crate) fn descending(&self, before: Option<JobId>) -> impl Iterator<Item = JobId> {
        let before = before.unwrap_or(JobId(u128::MAX));
        let pages =
            self.pages.partition_point(|page| page.ids.first().is_some_and(|id| *id < before));
        self.pages[..pages]
            .iter()
            .rev()
            .flat_map(|page| page.ids.iter().rev().copied())
            .skip_while(move |id| *id >= before)
    }

    fn page_of(&self, id: JobId) -> usize {
        self.pages.partition_point(|page| page.ids.first().is_some_and(|first| *first <= id)).max(1)
            - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn order_agrees_with_a_set() {
        let (mut order, mut model, mut seed) = (Order::default(), BTreeSet::new(), 7u64);
        for turn in 0..60_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let id =
                JobId(u128::from(if seed >> 60 < 12 { turn * 4 } else { (seed >> 33) % 240_000 }));
            if seed & 3 == 0 {
                let live = &model;
                if let Some(id) =
                    live.iter().nth((seed >> 40) as usize % live.len().max(1)).copied()
                {
                    model.remove(&id);
                    order.forget(id, |id| model.contains(&id));
                }
            } else if model.insert(id) {
                order.push(id);
            }
        }
        let listed: Vec<JobId> = order.descending(None).filter(|id| model.contains(id)).collect();
        assert_eq!(listed, model.iter().rev().copied().collect::<Vec<_>>());
        let middle = JobId(120_000);
        let below: Vec<JobId> =
            order.descending(Some(middle)).filter(|id| model.contains(id)).collect();
        assert_eq!(below, model.range(..middle).rev().copied().collect::<Vec<_>>());
    }
}
