//! Why an employer did not give what it was asked for.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// What the employer itself has to say about it.
type Cause = Box<dyn StdError + Send + Sync>;

/// A call that gave nothing.
#[derive(Debug)]
pub enum Error {
    /// The employer cannot be reached or says "not now". The call may have done its work.
    NotNow {
        /// How long it wants to be left alone.
        wait: Option<Duration>,
        /// What it says.
        cause: Cause,
    },
    /// It says no, and would say so again.
    Refused {
        /// A stable code, if there is one.
        code: Option<String>,
        /// What it does not like.
        about: About,
        /// What it says.
        cause: Cause,
    },
    /// It will never answer again.
    Gone {
        /// What it says.
        cause: Cause,
    },
    /// No answer in time. The call may have done its work.
    Late {
        /// What was asked.
        call: &'static str,
    },
    /// The answer is not one to this question.
    Garbled {
        /// What was asked.
        call: &'static str,
        /// What is wrong with the answer.
        reason: &'static str,
    },
    /// A defect of the employer.
    Panicked {
        /// What was asked.
        call: &'static str,
    },
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// What was said: other words may be taken.
    Content,
    /// Who asks, or anything else.
    Else,
}

impl Error {
    /// The stable code, if there is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused { code, .. } => code.as_deref(),
            Error::NotNow { .. }
            | Error::Gone { .. }
            | Error::Late { .. }
            | Error::Garbled { .. }
            | Error::Panicked { .. } => None,
        }
    }

    /// Whether the same call may go better later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::NotNow { .. } | Error::Late { .. } => true,
            Error::Refused { .. }
            | Error::Gone { .. }
            | Error::Garbled { .. }
            | Error::Panicked { .. } => false,
        }
    }

    /// Whether other words about the same attempt may be taken.
    pub(crate) fn is_about_content(&self) -> bool {
        matches!(self, Error::Refused { about: About::Content, .. })
    }

    /// How long the employer wants to be left alone.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if let Error::NotNow { wait, .. } = self { *wait } else { None }
    }

    /// What the employer itself says, if it says anything.
    ///
    /// # Errors
    /// This error, if it is not the employer's.
    pub fn into_cause(self) -> Result<Box<dyn StdError + Send + Sync>, Error> {
        match self {
            Error::NotNow { cause, .. } | Error::Refused { cause, .. } | Error::Gone { cause } => {
                Ok(cause)
            }
            own @ (Error::Late { .. } | Error::Garbled { .. } | Error::Panicked { .. }) => Err(own),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotNow { cause, .. } | Error::Refused { cause, .. } | Error::Gone { cause } => {
                cause.fmt(f)
            }
            Error::Late { call } => write!(f, "no answer to {call} in time"),
            Error::Garbled { call, reason } => write!(f, "the answer to {call} {reason}"),
            Error::Panicked { call } => write!(f, "a defect of the employer at {call}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The cause speaks for itself above; here are its own causes.
            Error::NotNow { cause, .. } | Error::Refused { cause, .. } | Error::Gone { cause } => {
                cause.source()
            }
            Error::Late { .. } | Error::Garbled { .. } | Error::Panicked { .. } => None,
        }
    }
}
