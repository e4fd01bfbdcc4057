//! What can go wrong between us and the database, by what has to be done about it.

use mainspring_store::Error;
use tokio_postgres::error::SqlState;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Somebody else changed what was decided on: decide again.
    Conflict,
    /// The registries changed: read them and decide again.
    RegistryChanged,
    /// Somebody else holds what is needed, and goes on holding it.
    Held,
    /// The database cannot be reached or cannot write at present.
    Away(String),
    /// The database went away during a commit: nobody knows whether it counts.
    Unknown(String),
    /// Anything else: a bug or a broken database.
    Broken(String),
}

/// Raised by `expect()`.
const DECIDED_ON_OTHER_ROWS: &str = "MS001";
/// Raised by `guard()`.
const REGISTRY_CHANGED: &str = "MS002";

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(told) = error.as_db_error() else {
            return Fault::Away(text(&error));
        };
        let state = told.code();
        match state.code() {
            DECIDED_ON_OTHER_ROWS => return Fault::Conflict,
            REGISTRY_CHANGED => return Fault::RegistryChanged,
            _ => {}
        }
        let conflicts = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
        ];
        if conflicts.contains(state) {
            return Fault::Conflict;
        }
        if [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(state) {
            return Fault::Held;
        }
        // Connection, resources, operator intervention, read-only; and what a pooler says.
        let is_away = ["08", "53", "57", "25"].iter().any(|class| state.code().starts_with(class));
        match is_away {
            true => Fault::Away(text(&error)),
            false => Fault::Broken(text(&error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Fault {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => match Fault::from(error) {
                Fault::Broken(why) | Fault::Away(why) => Fault::Away(why),
                fault @ (Fault::Conflict
                | Fault::RegistryChanged
                | Fault::Held
                | Fault::Unknown(_)) => fault,
            },
            error @ (deadpool_postgres::PoolError::Timeout(_)
            | deadpool_postgres::PoolError::Closed
            | deadpool_postgres::PoolError::NoRuntimeSpecified
            | deadpool_postgres::PoolError::PostCreateHook(_)) => Fault::Away(error.to_string()),
        }
    }
}

impl From<mainspring_store::record::BadRecord> for Fault {
    fn from(bad: mainspring_store::record::BadRecord) -> Self {
        Fault::Broken(bad.to_string())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Conflict | Fault::RegistryChanged | Fault::Held => Error::Busy,
            Fault::Away(why) => Error::Failed(format!("PostgreSQL is away: {why}").into()),
            Fault::Unknown(why) => {
                let text = format!("PostgreSQL went away during a commit, outcome unknown: {why}");
                Error::Failed(text.into())
            }
            Fault::Broken(why) => Error::Failed(format!("PostgreSQL: {why}").into()),
        }
    }
}

/// The message with its causes: the driver's own says only "db error".
fn text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
