//! What can go wrong between us and the database, by what has to be done about it.

use crate::connections::encryption::explain;
use mainspring_store::Error;
use tokio_postgres::error::{Severity, SqlState};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Somebody else changed what was decided on: decide again.
    Conflict,
    /// The registries changed: read them and decide again.
    RegistryChanged,
    /// Somebody else holds what is needed, and goes on holding it.
    Locked,
    /// The database will never take something in the statement: a value, or a rule of its own.
    Refused(String),
    /// The database cannot be reached or cannot write at present.
    Away(String),
    /// The database went away during a commit: nobody knows whether it counts.
    Unknown(String),
    /// A record in the database is not one.
    Unreadable(String),
    /// Anything else: a bug or a broken database.
    Broken(String),
}

/// Raised by `expect()`.
const DECIDED_ON_OTHER_ROWS: &str = "MS001";
/// Raised by `guard()`.
const REGISTRY_CHANGED: &str = "MS002";

/// How the driver's message about such a value begins.
const UNSENDABLE: &str = "error serializing parameter";

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(told) = error.as_db_error() else {
            // A value that cannot even be sent never reached the connection.
            return match error.to_string().starts_with(UNSENDABLE) {
                true => Fault::Refused(text(&error)),
                false => Fault::Away(text(&error)),
            };
        };
        // The session is gone, and with it whoever knew whether a commit counts: a sync that failed
        // is told this way, too.
        if matches!(told.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
            return Fault::Away(text(&error));
        }
        let state = told.code();
        match state.code() {
            DECIDED_ON_OTHER_ROWS => return Fault::Conflict,
            REGISTRY_CHANGED => return Fault::RegistryChanged,
            _ => {}
        }
        let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        // Two at once make the same row; but somebody else's rule about rows stays broken.
        let is_ours = |name: &str| name.ends_with("_pkey") || name.starts_with("lane_");
        let is_row_there =
            *state == SqlState::UNIQUE_VIOLATION && told.constraint().is_some_and(is_ours);
        if conflicts.contains(state) || is_row_there {
            return Fault::Conflict;
        }
        if [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(state) {
            return Fault::Locked;
        }
        // Connection, resources, operator intervention, read-only; and what a pooler says.
        let is_in = |classes: &[&str]| classes.iter().any(|it| state.code().starts_with(it));
        if is_in(&["08", "53", "57", "25"]) {
            return Fault::Away(text(&error));
        }
        // Values, constraints, checks, limits, and whatever a trigger raises.
        match is_in(&["21", "22", "23", "44", "54", "P0"]) {
            true => Fault::Refused(text(&error)),
            false => Fault::Broken(text(&error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Fault {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => match Fault::from(error) {
                Fault::Broken(why)
                | Fault::Unreadable(why)
                | Fault::Refused(why)
                | Fault::Away(why) => Fault::Away(why),
                fault @ (Fault::Conflict
                | Fault::RegistryChanged
                | Fault::Locked
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
        Fault::Unreadable(bad.to_string())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Conflict | Fault::RegistryChanged | Fault::Locked => Error::Busy,
            Fault::Refused(why) => Error::Refused(format!("PostgreSQL: {why}").into()),
            Fault::Away(why) => Error::Away(format!("PostgreSQL is away: {why}").into()),
            Fault::Unknown(why) => {
                let text = format!("PostgreSQL went away during a commit, outcome unknown: {why}");
                Error::Away(text.into())
            }
            Fault::Unreadable(why) => Error::Unreadable(format!("PostgreSQL: {why}").into()),
            Fault::Broken(why) => Error::Broken(format!("PostgreSQL: {why}").into()),
        }
    }
}

/// The message with its causes: the driver's own says only "db error".
fn text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None if let Some(told) = explain(error) => told,
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
