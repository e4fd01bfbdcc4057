//! What may be asked for.

use super::{BulkAction, BulkFilter, BulkSpec, Canary};
use crate::entity::alert::Milli;
use crate::job::StateName;
use crate::limits::{BULK_MAX, CANARY_MAX, LABELS_WANTED_MAX, MESSAGE_BYTES_MAX};
use crate::rejection::Rejection;
use crate::text::refuse_control;

fn invalid(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}

impl BulkSpec {
    /// Refuses what makes no sense, or would do too much.
    ///
    /// # Errors
    /// If it does.
    pub fn check(&self) -> Result<(), Rejection> {
        if self.reason.trim().is_empty() {
            return Err(invalid("reason", "must say why"));
        }
        if self.reason.len() > MESSAGE_BYTES_MAX {
            return Err(invalid("reason", "must be at most 4096 bytes long"));
        }
        refuse_control("reason", &self.reason)?;
        self.filter.check(self.action)?;
        match (self.canary, self.action) {
            (None, _) => Ok(()),
            (Some(canary), BulkAction::Requeue) => canary.check(),
            (
                Some(_),
                BulkAction::Discard | BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume,
            ) => Err(invalid("canary", "belongs to requeue")),
        }
    }
}

impl BulkFilter {
    fn check(&self, action: BulkAction) -> Result<(), Rejection> {
        let BulkFilter { state, job_type, queue, trace_id, user, .. } = self;
        let BulkFilter { labels, error_code, signature, since, until, .. } = self;
        let is_narrow = job_type.is_some()
            || queue.is_some()
            || trace_id.is_some()
            || user.is_some()
            || !labels.is_empty()
            || error_code.is_some()
            || signature.is_some()
            || since.is_some()
            || until.is_some();
        if !is_narrow {
            return Err(invalid("filter", "must name something besides the state"));
        }
        if labels.len() > LABELS_WANTED_MAX {
            return Err(invalid("filter", "must have at most four labels"));
        }
        let can_end = |state: &StateName| state.may_become(StateName::Cancelled);
        match action {
            BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume if signature.is_some() => {
                Err(invalid("filter", "must not have a signature: jobs have none"))
            }
            BulkAction::Pause
                if !matches!(state, Some(StateName::Queued | StateName::Retrying)) =>
            {
                Err(invalid("filter", "must have a status: queued or retrying"))
            }
            BulkAction::Resume if *state != Some(StateName::Retrying) => {
                Err(invalid("filter", "must have the status retrying, as jobs have that wait"))
            }
            // Without it, everything that ever ended would be looked at.
            BulkAction::Cancel if !state.as_ref().is_some_and(can_end) => {
                Err(invalid("filter", "must have a status: queued, running or retrying"))
            }
            BulkAction::Requeue | BulkAction::Discard if state.is_some() => {
                Err(invalid("filter", "must not have a state of jobs"))
            }
            BulkAction::Requeue
            | BulkAction::Discard
            | BulkAction::Cancel
            | BulkAction::Pause
            | BulkAction::Resume => Ok(()),
        }
    }
}

impl Canary {
    fn check(self) -> Result<(), Rejection> {
        if !(1..=CANARY_MAX).contains(&self.first) {
            return Err(invalid("canary.first", "must be between 1 and 100"));
        }
        if self.max_failure_ratio > Milli::whole(1) {
            return Err(invalid("canary.max_failure_ratio", "must be between 0 and 1"));
        }
        Ok(())
    }
}

/// Refuses to begin with so many things.
pub(super) fn check_matched(matched: u64) -> Result<(), Rejection> {
    if matched > BULK_MAX { Err(Rejection::BulkTooLarge) } else { Ok(()) }
}
