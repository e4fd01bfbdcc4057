//! The frame around every native answer: `success`, then `data` or `error`, then `meta`.

use crate::Json;
use serde::{Deserialize, Serialize};

/// An answer as a client reads it, whichever way it went.
#[derive(Debug, Clone, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Answer<T> {
    /// Whether `data` or `error` is there.
    pub success: bool,
    /// What was asked for.
    #[serde(default = "Option::default")]
    pub data: Option<T>,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<ErrorBody>,
    /// Which request this answers.
    pub meta: Meta,
}

/// An answer that went well.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Success<T> {
    /// Always true.
    pub success: bool,
    /// What was asked for.
    pub data: T,
    /// Always `ok`.
    pub message: String,
    /// Which request this answers.
    pub meta: Meta,
}

/// An answer that went wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Failure {
    /// Always false.
    pub success: bool,
    /// What went wrong.
    pub error: ErrorBody,
    /// Which request this answers.
    pub meta: Meta,
}

/// Which request an answer belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Meta {
    /// The trace, as given in `x-trace-id` or made by the server.
    pub trace_id: String,
    /// The request.
    pub request_id: String,
}

/// What went wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// A stable code with a page in the documentation.
    pub code: String,
    /// For people.
    pub message: String,
    /// `validation`, `business_rule`, `transient`, `permanent` or `security_sensitive`.
    pub class: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// More about this case, such as the path of the wrong field.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub details: Option<Json>,
}

/// What went wrong with one item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorCode {
    /// A stable code.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A part of a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The entries. A page is full unless it is the last one.
    pub items: Vec<T>,
    /// Pass it as `cursor` to go on, with the same filters; null at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// How many entries the whole list has; null if they are too many to be counted.
    #[serde(default)]
    pub total: Option<u64>,
    /// If there is no `total`: the list has more entries than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_at_least: Option<u64>,
}

impl<T> Page<T> {
    /// A list in one part.
    pub fn whole(items: Vec<T>) -> Self {
        let total = Some(items.len() as u64);
        Page { items, next_cursor: None, total, total_at_least: None }
    }
}
