//! Any route of the native contract, for callers that pass on what it shows as it is.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::Json;
use reqwest::Method;
use serde_json::Value;

impl Client {
    /// Reads something below `/api/v1`, such as `["jobs", id, "explain"]`; parameters that are
    /// `None` are left out.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn get_json(
        &self,
        parts: &[&str],
        query: &[(&str, Option<String>)],
    ) -> Result<Json, Error> {
        self.call(Call::get(path_with(parts, query))).await
    }

    /// Sends something there. It is not repeated unless it certainly did not arrive.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn post_json(&self, parts: &[&str], body: Option<&Value>) -> Result<Json, Error> {
        self.call(match body {
            Some(body) => Call::post(path(parts), body, Repeat::Unsafe),
            None => Call::new(Method::POST, path(parts), Repeat::Unsafe),
        })
        .await
    }
}
