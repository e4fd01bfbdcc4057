//! Exit codes scripts can rely on, and how an error gets its code.

use crate::config::ConfigError;
use mainspring_sdk as sdk;
use mainspring_store_postgres::{MigrateError, OpenError};
use std::fmt;

/// All went well.
pub(crate) const OK: u8 = 0;
/// The server refused, or the work itself failed.
pub(crate) const REFUSED: u8 = 1;
/// The command or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// The server cannot be reached.
pub(crate) const UNREACHABLE: u8 = 3;
/// Not found, or not allowed.
pub(crate) const DENIED: u8 = 4;
/// The server's journal could not be written, or one of its parts died: restart to recover.
pub(crate) const BROKEN: u8 = 70;

/// The table of codes, for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  ok
  1  the server refused, or something failed
  2  wrong usage or configuration
  3  the server or the database cannot be reached
  4  not found, or not allowed
 70  the server's journal could not be written, or a part of it died; restart to recover

Environment:
  MAINSPRING_URL    address of the server [default: http://127.0.0.1:7070]
  MAINSPRING_TOKEN  access token [default: what ./mainspring-data/admin.token holds]";

/// A mistake in what the caller asked for.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error with this text.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(text.into()))
}

/// The exit code of an error: the first cause that has one decides.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        let is_usage = cause.is::<Usage>() || cause.is::<mainspring_bench::Usage>();
        if is_usage || cause.is::<ConfigError>() {
            return USAGE;
        }
        if let Some(error) = cause.downcast_ref::<MigrateError>() {
            return of_database(error);
        }
        if let Some(OpenError::Migrate(error)) = cause.downcast_ref::<OpenError>() {
            return of_database(error);
        }
        if let Some(error) = cause.downcast_ref::<sdk::Error>() {
            return match error {
                sdk::Error::Unreachable { .. } => UNREACHABLE,
                sdk::Error::Address { .. } => USAGE,
                sdk::Error::Refused(refusal) if matches!(refusal.status, 401 | 403 | 404) => DENIED,
                sdk::Error::Refused(_) | sdk::Error::Unreadable { .. } => REFUSED,
            };
        }
    }
    REFUSED
}

fn of_database(error: &MigrateError) -> u8 {
    match error {
        MigrateError::Away(_) => UNREACHABLE,
        MigrateError::Address(_) => USAGE,
        MigrateError::Failed(_) | MigrateError::Refused(_) => REFUSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn refused(status: u16) -> anyhow::Error {
        let refusal = sdk::Refusal { status, ..sdk::Refusal::default() };
        anyhow::Error::new(sdk::Error::Refused(Box::new(refusal)))
    }

    #[test]
    fn every_kind_of_error_has_its_code() {
        assert_eq!(code_of(&refused(409)), REFUSED);
        assert_eq!(code_of(&refused(503)), REFUSED);
        for status in [401, 403, 404] {
            assert_eq!(code_of(&refused(status)), DENIED);
        }
        assert_eq!(code_of(&usage("no such shell")), USAGE);
        let wrapped = Err::<(), _>(refused(404)).context("while looking").unwrap_err();
        assert_eq!(code_of(&wrapped), DENIED);
        assert_eq!(code_of(&anyhow::anyhow!("disk is gone")), REFUSED);
    }
}
