//! Calls about triggers.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::Page;
use mainspring_api::trigger::{
    PauseTrigger, RemovedTrigger, SetTrigger, Trigger, TriggerEvaluations, TriggerExplanation,
};
use reqwest::Method;

/// Which triggers to list. Fields left `None` do not filter.
#[derive(Debug, Clone, Default)]
pub struct TriggerFilter {
    /// Only those in this state.
    pub status: Option<String>,
    /// Only those of this type.
    pub kind: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

impl Client {
    /// Makes a trigger.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn create_trigger(&self, wish: &SetTrigger) -> Result<Trigger, Error> {
        self.call(Call::post(path(&["triggers"]), wish, Repeat::Unsafe)).await
    }

    /// Triggers.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn triggers(&self, filter: &TriggerFilter) -> Result<Page<Trigger>, Error> {
        let TriggerFilter { status, kind, cursor, limit } = filter.clone();
        let query = [
            ("status", status),
            ("type", kind),
            ("cursor", cursor),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        self.call(Call::get(path_with(&["triggers"], &query))).await
    }

    /// One trigger.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn trigger(&self, id: &str) -> Result<Trigger, Error> {
        self.call(Call::get(path(&["triggers", id]))).await
    }

    /// Takes a trigger away.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn delete_trigger(&self, id: &str) -> Result<RemovedTrigger, Error> {
        self.call(Call::new(Method::DELETE, path(&["triggers", id]), Repeat::Unsafe)).await
    }

    /// Has a trigger rest until it is resumed.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn pause_trigger(&self, id: &str, note: Option<&str>) -> Result<Trigger, Error> {
        let body = PauseTrigger { note: note.map(ToOwned::to_owned) };
        self.call(Call::post(path(&["triggers", id, "pause"]), &body, Repeat::Safe)).await
    }

    /// Has a paused trigger go on with what happens from now on.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn resume_trigger(&self, id: &str) -> Result<Trigger, Error> {
        self.call(Call::new(Method::POST, path(&["triggers", id, "resume"]), Repeat::Safe)).await
    }

    /// What was decided about a trigger, the latest first.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn trigger_evaluations(&self, id: &str) -> Result<TriggerEvaluations, Error> {
        self.call(Call::get(path(&["triggers", id, "evaluations"]))).await
    }

    /// Why a trigger has not fired.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn explain_trigger(&self, id: &str) -> Result<TriggerExplanation, Error> {
        self.call(Call::get(path(&["triggers", id, "explain"]))).await
    }

    /// Looks at a trigger as if it were its turn, and changes nothing.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn dry_run_trigger(&self, id: &str) -> Result<TriggerExplanation, Error> {
        self.call(Call::new(Method::POST, path(&["triggers", id, "dry-run"]), Repeat::Safe)).await
    }
}
