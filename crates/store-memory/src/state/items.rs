//! Dead-letter items in RAM, with their terms.

use super::postings::{Met, Postings, Upper, first_of, last_of, upper};
use mainspring_kernel::{DlqId, DlqItem, DlqState, Timestamp};
use mainspring_store::filter::lasting_item_terms;
use mainspring_store::{ItemFilter, Term};
use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// The items.
#[derive(Debug, Default)]
pub(crate) struct Items {
    by_id: BTreeMap<DlqId, DlqItem>,
    postings: Postings,
}

impl Items {
    pub(crate) fn get(&self, id: &DlqId) -> Option<&DlqItem> {
        self.by_id.get(id)
    }

    /// Items in a range of ids, oldest first.
    pub(crate) fn range(
        &self,
        range: impl RangeBounds<DlqId>,
    ) -> impl Iterator<Item = (&DlqId, &DlqItem)> {
        self.by_id.range(range)
    }

    /// A new item; one that is known stays as it is.
    pub(crate) fn open(&mut self, item: DlqItem) {
        if self.by_id.contains_key(&item.id) {
            return;
        }
        let postings = &mut self.postings;
        postings.enter(item.id.job());
        lasting_item_terms(&item, |term| postings.add(term, item.id.job()));
        postings.add(Term::State(item.state.as_str()), item.id.job());
        self.by_id.insert(item.id, item);
    }

    /// An item changes, unless it has already.
    pub(crate) fn change(&mut self, id: DlqId, version: u32, at: Timestamp, state: DlqState) {
        let Some(item) = self.by_id.get_mut(&id).filter(|item| item.version < version) else {
            return;
        };
        self.postings.remove(Term::State(item.state.as_str()), id.job());
        self.postings.add(Term::State(state.as_str()), id.job());
        item.change(version, at, state);
    }

    /// Forgets items written before `keep_from`.
    pub(crate) fn forget_before(&mut self, keep_from: Timestamp) {
        let Items { by_id, postings } = self;
        for (_, item) in by_id.extract_if(.., |_, item| item.created_at < keep_from) {
            lasting_item_terms(&item, |term| postings.remove(term, item.id.job()));
            postings.remove(Term::State(item.state.as_str()), item.id.job());
            postings.leave(item.id.job());
        }
    }

    /// How many items wait for a decision.
    pub(crate) fn open_count(&self) -> usize {
        let count = |state| self.postings.count(Term::State(state));
        DlqState::WAITING_NAMES.into_iter().map(count).sum()
    }

    /// The items that a filter admits, older than `before`, newest first; at most `limit`. Also
    /// how many postings were looked at.
    pub(crate) fn find(
        &self,
        filter: &ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> (Vec<&DlqItem>, usize) {
        let own = filter.job.traced_job().map(upper);
        let mut meeting = self.postings.meeting(&filter.terms());
        let mut found = Vec::new();
        let mut from = match before {
            None => Some(Upper::MAX),
            Some(before) => before.0.checked_sub(1).map(|last| (last >> 64) as Upper),
        };
        while let Some(at) = from {
            let met = match meeting.as_mut().map(|meeting| meeting.at_most(at, usize::MAX)) {
                Some(Met::At(met)) => Some(met),
                Some(Met::Nowhere | Met::NotAbove(_)) | None => None,
            };
            let Some(next) = met.max(own.filter(|own| *own <= at)) else { break };
            let ids = first_of(next).dlq()..=last_of(next).dlq();
            let items = self.by_id.range(ids).rev().map(|(_, item)| item);
            let is_older = |item: &&DlqItem| before.is_none_or(|before| item.id < before);
            for item in items.filter(is_older).filter(|item| filter.admits(item)) {
                found.push(item);
                if found.len() >= limit {
                    return (found, meeting.map_or(0, |meeting| meeting.steps));
                }
            }
            from = next.checked_sub(1);
        }
        (found, meeting.map_or(0, |meeting| meeting.steps))
    }
}
