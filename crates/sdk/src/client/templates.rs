//! System templates, by way of the job orchestration contract. Its envelope has no `meta`.

use super::{Call, Client, Repeat};
use crate::error::Error;
use reqwest::Method;
use serde_json::Value;

impl Client {
    /// The templates of the server's configuration and their schedules: `items` and `runtime`.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn templates(&self) -> Result<Value, Error> {
        self.call(Call::get("/jobs/system-schedules/templates".to_owned())).await
    }

    /// Makes the schedules of templates that are missing: `summary` and `runtime`.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn recover_templates(&self) -> Result<Value, Error> {
        let path = "/jobs/system-schedules/templates/recover".to_owned();
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }
}
