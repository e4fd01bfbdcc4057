//! What can go wrong between here and the server.

use mainspring_api::{ErrorBody, Json};
use std::fmt;
use std::time::Duration;

/// Why a call did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server's address cannot be used.
    #[error("the server address {url:?} cannot be used: {reason}")]
    Address {
        /// As given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No answer. Unless `was_sent` is false, the server may or may not have acted.
    #[error("cannot reach {url}")]
    Unreachable {
        /// The server.
        url: String,
        /// Whether the request may have arrived.
        was_sent: bool,
        /// What the network said.
        #[source]
        source: reqwest::Error,
    },
    /// The server said no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// An answer that this client cannot read; perhaps not from Mainspring at all.
    #[error("the answer to {call} cannot be read (HTTP {status}): {reason}")]
    Unreadable {
        /// What was called.
        call: String,
        /// The status of the answer.
        status: u16,
        /// What is wrong with it.
        reason: String,
    },
}

/// The server's reason for saying no.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// A stable code with a page in the documentation.
    pub code: String,
    /// For people.
    pub message: String,
    /// `validation`, `business_rule`, `transient`, `permanent` or `security_sensitive`.
    pub class: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// More about this case.
    pub details: Option<Json>,
    /// Names the request, for the server's log.
    pub request_id: String,
    /// How long the server asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match &self.details {
            // Which field it is about mostly stands in the sentence.
            Some(details) if self.names_only_its_path(details) => Ok(()),
            Some(details) => write!(f, " {details}"),
            None => Ok(()),
        }
    }
}

impl Refusal {
    pub(crate) fn new(
        status: u16,
        body: ErrorBody,
        request_id: String,
        retry_after: Option<Duration>,
    ) -> Self {
        let ErrorBody { code, message, class, retryable, details } = body;
        Refusal { status, code, message, class, retryable, details, request_id, retry_after }
    }
}

impl Refusal {
    fn names_only_its_path(&self, details: &Json) -> bool {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Path<'a> {
            path: &'a str,
        }
        serde_json::from_str::<Path<'_>>(details.get())
            .is_ok_and(|it| self.message.contains(it.path))
    }
}

impl Error {
    /// The stable code, when the server gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused(refusal) => Some(&refusal.code),
            Error::Address { .. } | Error::Unreachable { .. } | Error::Unreadable { .. } => None,
        }
    }

    /// The HTTP status, when there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Refused(refusal) => Some(refusal.status),
            Error::Unreadable { status, .. } => Some(*status),
            Error::Address { .. } | Error::Unreachable { .. } => None,
        }
    }

    /// Whether the same call may go better later, given that repeating it does no harm.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Unreachable { .. } => true,
            Error::Refused(refusal) => {
                refusal.retryable || matches!(refusal.status, 429 | 502..=504)
            }
            Error::Unreadable { status, .. } => matches!(status, 429 | 502..=504),
            Error::Address { .. } => false,
        }
    }

    /// Whether the server certainly did nothing, so that even a call that must not be repeated can
    /// be: no connection came about, or it said that it is not taking any.
    pub(crate) fn is_certainly_undone(&self) -> bool {
        match self {
            Error::Unreachable { was_sent, .. } => !was_sent,
            Error::Refused(refusal) => refusal.status == 429,
            Error::Address { .. } | Error::Unreadable { .. } => false,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Refused(refusal) => refusal.retry_after,
            Error::Address { .. } | Error::Unreachable { .. } | Error::Unreadable { .. } => None,
        }
    }
}
