//! Calls of the agent contract, whose answers have no envelope. What it shows is passed on as it
//! is: its documents are JSON to whoever reads and writes them.

use super::{Call, Client, ENCODED, Repeat};
use crate::error::{Error, Refusal};
use mainspring_api::ErrorBody;
use percent_encoding::utf8_percent_encode;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// How this contract says no.
#[derive(Deserialize)]
struct Wrong {
    error: String,
    code: String,
    #[serde(default)]
    retryable: bool,
}

impl Client {
    /// Reads something below `/agent`, such as `["runs", id, "result"]`.
    ///
    /// # Errors
    /// If the server refuses, does not speak the contract `/agent`, or cannot be reached.
    pub async fn agent_get(
        &self,
        parts: &[&str],
        query: &[(&str, Option<String>)],
    ) -> Result<Value, Error> {
        self.call_bare(Call::get(path(parts, query))).await
    }

    /// Sends something there. What the contract takes is safe to repeat where it has an id.
    ///
    /// # Errors
    /// If the server refuses, does not speak the contract `/agent`, or cannot be reached.
    pub async fn agent_post(&self, parts: &[&str], body: Option<&Value>) -> Result<Value, Error> {
        let path = path(parts, &[]);
        self.call_bare(match body {
            Some(body) => Call::post(path, body, Repeat::Unsafe),
            None => Call::new(Method::POST, path, Repeat::Unsafe),
        })
        .await
    }
}

/// A path below `/agent`; parameters that are `None` are left out.
fn path(parts: &[&str], query: &[(&str, Option<String>)]) -> String {
    let mut path = String::from("/agent");
    for part in parts {
        path.push('/');
        path.extend(utf8_percent_encode(part, ENCODED));
    }
    let mut mark = '?';
    for (name, value) in query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        path.push(mark);
        path.push_str(name);
        path.push('=');
        path.extend(utf8_percent_encode(value, ENCODED));
        mark = '&';
    }
    path
}

pub(super) fn read_bare<T: DeserializeOwned>(
    call: &Call,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Result<T, Error> {
    let unreadable = |reason: String| Error::Unreadable {
        call: format!("{} {}", call.method, call.path),
        status: status.as_u16(),
        reason,
    };
    if status.is_success() {
        return serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()));
    }
    let wrong: Wrong =
        serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))?;
    let body = ErrorBody {
        code: wrong.code,
        message: wrong.error,
        class: String::new(),
        retryable: wrong.retryable,
        details: None,
    };
    let refusal = Refusal::new(status.as_u16(), body, String::new(), retry_after);
    Err(Error::Refused(Box::new(refusal)))
}
