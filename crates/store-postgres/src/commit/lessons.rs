//! What one try at a batch learned that the next one has to start from.

use super::desk::PostgresDesk;
use crate::registry::RegistryChange;
use mainspring_kernel::JobId;
use mainspring_kernel::fingerprint::Digest;
use std::collections::HashSet;

/// What was learned.
#[derive(Default)]
pub(super) struct Lessons {
    /// The changes to the registries that the batch makes.
    pub(super) registry_changes: Vec<RegistryChange>,
    /// Lanes that are there only if the try commits.
    pub(super) uncommitted_lanes: Vec<i32>,
    /// Limits under which running jobs have to be counted.
    pub(super) limits: HashSet<Digest>,
    /// Buckets and circuits that have to be loaded.
    pub(super) meters: HashSet<Digest>,
    /// Whether remembered jobs must not be trusted.
    pub(super) is_wary: bool,
    /// Whether somebody was found to hold something.
    pub(super) has_met_lock: bool,
    /// The ready jobs that the last try would have handed out.
    pub(super) claimed: Vec<JobId>,
    /// Whether to hand out nothing: the database refuses something, and it may be among those.
    pub(super) is_without_offers: bool,
}

impl Lessons {
    /// Whether the work on this desk showed that the batch has to be tried again.
    pub(super) fn learn(&mut self, desk: &mut PostgresDesk<'_>) -> bool {
        let has_missed = !desk.uncounted.is_empty() || !desk.unloaded.is_empty();
        if desk.registry_changes != self.registry_changes || has_missed {
            self.registry_changes = std::mem::take(&mut desk.registry_changes);
            self.limits.extend(&desk.uncounted);
            self.meters.extend(&desk.unloaded);
            return true;
        }
        // What was remembered is proved by a change that names its version, or by a load.
        let is_unproved = desk.entries.values().any(|it| it.is_recalled && !it.is_changed);
        self.is_wary |= is_unproved;
        is_unproved
    }

    /// Notes which rows of `ready` the batch claims. A try without any says nothing about them.
    pub(super) fn note_claims(&mut self, desk: &PostgresDesk<'_>) {
        if !self.is_without_offers {
            let claimed =
                desk.entries.values().filter(|it| it.ready_row.is_some() && it.is_changed);
            self.claimed = claimed.map(|entry| entry.job.id).collect();
        }
    }
}
