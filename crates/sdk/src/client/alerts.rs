//! Calls about alerts.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::Page;
use mainspring_api::alert::{AcknowledgeAlert, Alert};

/// Which alerts to list. Fields left `None` do not filter.
#[derive(Debug, Clone, Default)]
pub struct AlertFilter {
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those of this rule.
    pub rule: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

impl Client {
    /// The alerts of the tenant.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn alerts(&self, filter: &AlertFilter) -> Result<Page<Alert>, Error> {
        let AlertFilter { state, rule, cursor, limit } = filter.clone();
        let query = [
            ("state", state),
            ("rule", rule),
            ("cursor", cursor),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        self.call(Call::get(path_with(&["alerts"], &query))).await
    }

    /// One alert.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn alert(&self, id: &str) -> Result<Alert, Error> {
        self.call(Call::get(path(&["alerts", id]))).await
    }

    /// Takes notice of an alert.
    ///
    /// # Errors
    /// If it is over, or the server refuses or cannot be reached.
    pub async fn acknowledge_alert(&self, id: &str, note: Option<&str>) -> Result<Alert, Error> {
        let body = AcknowledgeAlert { note: note.map(ToOwned::to_owned) };
        self.call(Call::post(path(&["alerts", id, "ack"]), &body, Repeat::Safe)).await
    }
}
