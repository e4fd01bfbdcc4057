//! Dead letters by their failure. The latest are looked at, so many of them or so many bytes; where
//! that is not all of them, the index says how many of a failure there are.

use crate::engine::Engine;
use crate::limits::{GROUPED_BYTES_MAX, GROUPED_MAX, GROUPED_STEP};
use mainspring_kernel::limits::TOTAL_MAX;
use mainspring_kernel::signature::{Group, Groups};
use mainspring_kernel::{DlqId, DlqItem};
use mainspring_store::{Error, ItemFilter};

/// Dead letters by their failure.
#[derive(Debug, Clone)]
pub struct Grouped {
    /// Those with most first.
    pub groups: Vec<Group>,
    /// How many dead letters were looked at.
    pub looked_at: u64,
    /// Whether those are all.
    pub is_whole: bool,
}

impl Engine {
    /// The dead letters that `filter` admits, by their failure. No more than `most` are looked at,
    /// and never more than a bound.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn dlq_groups(&self, filter: &ItemFilter, most: usize) -> Result<Grouped, Error> {
        let most = most.min(GROUPED_MAX);
        let mut groups = Groups::default();
        let (mut looked_at, mut bytes, mut before) = (0, 0, None);
        let is_whole = loop {
            let step = GROUPED_STEP.min(most - looked_at);
            let page = self.items(filter, before, step).await?;
            for item in &page.items {
                groups.see(item);
                bytes += weight(item);
            }
            looked_at += page.items.len();
            match page.next {
                None => break true,
                Some(_) if looked_at >= most || bytes >= GROUPED_BYTES_MAX => break false,
                Some(next) => before = Some(DlqId(next.0)),
            }
        };
        let groups = groups.largest_first();
        Ok(Grouped { groups, looked_at: looked_at as u64, is_whole })
    }

    /// How many dead letters that `filter` admits have the failure of `group`, up to a bound.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn dlq_group_count(&self, filter: &ItemFilter, group: &Group) -> Result<u64, Error> {
        let signature = Some(group.signature.to_string());
        let filter = ItemFilter { signature, ..filter.clone() };
        let count = self.count_items(&filter, TOTAL_MAX).await? as u64;
        Ok(count.max(group.count))
    }
}

/// What looking at an item costs.
fn weight(item: &DlqItem) -> usize {
    item.job.payload.len()
}
