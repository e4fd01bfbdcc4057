//! What can go wrong for somebody who uses the library.

use mainspring_kernel::Rejection;
use mainspring_kernel::name::BadName;
use mainspring_store_memory::OpenError;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory cannot be opened: in use by another process, unwritable or damaged.
    #[error("cannot open {path}")]
    Directory {
        /// Which.
        path: String,
        /// Why.
        #[source]
        cause: OpenError,
    },
    /// The directory cannot be made or looked into.
    #[error("cannot use {path}")]
    Made {
        /// Which.
        path: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The database cannot be opened. The text names it without its password.
    #[error("cannot open the database {database}")]
    Database {
        /// Which.
        database: String,
        /// Why.
        #[source]
        cause: mainspring_store_postgres::OpenError,
    },
    /// A job type, queue, tenant or user that is no such name.
    #[error("{0}")]
    Name(#[from] BadName),
    /// What was given is not what was asked for: a pattern that is none, a span that is empty.
    #[error("{what}: {reason}")]
    Invalid {
        /// What it is about.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The payload or the result is not what its type says.
    #[error("{what} does not fit its type")]
    Json {
        /// Which of them.
        what: &'static str,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// The rules say no. The code has a page in the documentation.
    #[error("{code}: {message}")]
    Refused {
        /// A stable code.
        code: &'static str,
        /// For people.
        message: String,
    },
    /// There is no such job, or it is no longer kept.
    #[error("there is no such job")]
    Unknown,
    /// The job failed for good and is in the dead letter queue.
    #[error("the job failed: {code}: {message}")]
    Failed {
        /// The code of its last failure.
        code: String,
        /// Its words.
        message: String,
    },
    /// The job was cancelled.
    #[error("the job was cancelled")]
    Cancelled,
    /// The engine was closed while somebody waited.
    #[error("closed before the job had ended")]
    Closed,
    /// The store failed. Whether what was asked for has happened is unknown: ask again with the
    /// same key.
    #[error(transparent)]
    Store(#[from] mainspring_store::Error),
    /// The worker ended by itself.
    #[error(transparent)]
    Worker(#[from] mainspring_worker::Error),
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Error::Refused { code: rejection.code(), message: rejection.to_string() }
    }
}
