//! What other processes did to a store that several share, told to whoever waits for it here. Hints
//! only: the store is looked at again in any case.

use crate::colleagues;
use crate::engine::Shared;
use mainspring_store::{News, RefusalNote, WorkerNote};
use std::sync::Weak;

/// What other processes did to the store, if it is shared.
pub(crate) struct Elsewhere(pub(crate) Weak<Shared>);

impl News for Elsewhere {
    fn work(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.work_is_due.notify_one();
        }
    }

    fn moved(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.moved.send_modify(|turn| *turn += 1);
            shared.moved_elsewhere.notify_one();
            shared.dependents.look_elsewhere();
        }
    }

    fn timers(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.timer_changed.notify_one();
        }
    }

    fn registry(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.tokens_changed.send_modify(|turn| *turn += 1);
            shared.types_changed.send_modify(|turn| *turn += 1);
            // A queue may be open again, or a limit higher.
            shared.work_is_due.notify_one();
        }
    }

    fn workers(&self) -> Vec<WorkerNote> {
        self.0.upgrade().map(|shared| colleagues::told(&shared)).unwrap_or_default()
    }

    fn refusals(&self) -> Vec<RefusalNote> {
        self.0.upgrade().map(|shared| shared.reports.rows.to_tell()).unwrap_or_default()
    }

    fn refused_elsewhere(&self, notes: Vec<RefusalNote>) {
        if let Some(shared) = self.0.upgrade() {
            shared.reports.refused_elsewhere(notes);
        }
    }
}
