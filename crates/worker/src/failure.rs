//! How a handler says that its attempt did not succeed.

use std::fmt;
use std::time::Duration;

/// Why an attempt did not succeed.
///
/// Any error becomes a retryable failure through `?`; say more when you know more.
///
/// ```
/// use mainspring_worker::Failure;
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     text.parse().map_err(|error| Failure::permanent("BAD_NUMBER", format!("{error}")))
/// }
/// assert!(!parse("x").unwrap_err().retryable);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable code of capitals, digits and `_`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// Your own wish for the next delay.
    pub retry_delay: Option<Duration>,
    /// What is said about the attempt.
    pub(crate) meaning: Meaning,
}

/// What an attempt that did not end well comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It failed.
    Failed,
    /// It is put off.
    Snoozed,
    /// It is given back unused.
    Released,
    /// Somebody else has it now, with its lease token.
    HandedOver,
}

/// The code of failures that do not have their own.
const CODE_DEFAULT: &str = "TASK_EXECUTION_FAILED";

impl Failure {
    /// A failure that may pass.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure {
            code: code.into(),
            message: message.into(),
            retryable: true,
            retry_delay: None,
            meaning: Meaning::Failed,
        }
    }

    /// A failure that will not pass: the job goes to the dead letter queue.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure { retryable: false, ..Self::retryable(code, message) }
    }

    /// No failure at all: the job goes back to its queue and no try is used.
    pub fn release(reason: impl Into<String>) -> Self {
        Failure { meaning: Meaning::Released, ..Self::retryable(CODE_DEFAULT, reason) }
    }

    /// No failure at all: the job comes back after this long, and no try is used. Only so often:
    /// after a thousand times it ends.
    pub fn snooze(delay: Duration, reason: impl Into<String>) -> Self {
        let failure = Failure::retryable(CODE_DEFAULT, reason).after(delay);
        Failure { meaning: Meaning::Snoozed, ..failure }
    }

    /// For how long the job is put off, if this is no failure but that.
    pub fn snoozed_for(&self) -> Option<Duration> {
        self.retry_delay.filter(|_| self.meaning == Meaning::Snoozed)
    }

    /// No failure at all: somebody else has taken the attempt over, knows its lease token, and will
    /// report on it. The lease then holds for as long as the attempt may take, and no longer than a
    /// day; it is theirs to renew.
    pub fn handed_over() -> Self {
        let reason = "the attempt was handed over";
        Failure { meaning: Meaning::HandedOver, ..Self::retryable(CODE_DEFAULT, reason) }
    }

    /// Asks for this delay before the next try.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Failure::retryable(CODE_DEFAULT, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_is_a_retryable_failure_with_its_causes() {
        let cause = "x".parse::<u32>().unwrap_err();
        let failure = Failure::from(cause);
        assert!(failure.retryable && failure.code == CODE_DEFAULT);
        assert_eq!(failure.message, "invalid digit found in string");
    }
}
