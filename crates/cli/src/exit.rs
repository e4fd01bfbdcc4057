//! Exit codes scripts can rely on, and how an error gets its code.

use crate::config::ConfigError;
use crate::pages;
use mainspring_sdk as sdk;
use mainspring_store_memory::error::FileError;
use mainspring_store_memory::journal::JournalError;
use mainspring_store_memory::memory;
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
/// Somebody waited as long as he wanted to, and it is not over yet.
pub(crate) const TIMEOUT: u8 = 5;
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
  5  waited in vain: what was waited for has not ended yet
 70  the server's journal could not be written, or a part of it died; restart to recover

Environment:
  MAINSPRING_URL         address of the server [default: http://127.0.0.1:7070]
  MAINSPRING_TOKEN       access token
  MAINSPRING_TOKEN_FILE  file that holds it [default: ./mainspring-data/admin.token]
  MAINSPRING_CA_FILE     certificates to trust on https, instead of the system's";

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

/// What to do about an error, and where more is said about it.
pub(crate) fn cure_of(error: &anyhow::Error) -> Option<String> {
    for cause in error.chain() {
        match cause.downcast_ref::<sdk::Error>() {
            Some(sdk::Error::Refused(refusal)) => {
                let code = refusal.code.as_str();
                let cure = pages::cure(code)?;
                return Some(format!("  cure: {cure}\n  more: mainspring errors {code}"));
            }
            Some(sdk::Error::Unreachable { .. }) => return Some(unreachable(error)),
            Some(sdk::Error::Address { .. } | sdk::Error::Unreadable { .. }) | None => {}
        }
        if let Some(cure) = cure_here(cause) {
            return Some(cure);
        }
    }
    None
}

/// What to do about something that went wrong in this process, not at a server.
fn cure_here(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    let migrate = match cause.downcast_ref::<OpenError>() {
        Some(OpenError::Migrate(error)) => Some(error),
        Some(OpenError::Failed(_)) | None => cause.downcast_ref::<MigrateError>(),
    };
    if let Some(MigrateError::Away(_)) = migrate {
        return Some(
            "  cure: start the database, or correct --database-url (MAINSPRING_DATABASE_URL, \
             [store] database_url)\n  more: mainspring doctor --database-url URL"
                .to_owned(),
        );
    }
    let opening = cause.downcast_ref::<memory::OpenError>();
    if let Some(memory::OpenError::Locked) = opening {
        return Some(
            "  cure: stop the server that uses it, or name another directory with --data-dir"
                .to_owned(),
        );
    }
    let file = match opening {
        Some(memory::OpenError::File(error))
        | Some(memory::OpenError::Journal(JournalError::File(error))) => Some(error),
        Some(_) | None => cause.downcast_ref::<FileError>(),
    };
    if file.is_some_and(FileError::is_damage) {
        return Some(
            "  cure: bring a backup back with `mainspring restore`, into a directory of its own\n  \
             more: mainspring doctor --data-dir DIR"
                .to_owned(),
        );
    }
    if cause.is::<ConfigError>() {
        return Some("  more: mainspring config show, docs/reference.md".to_owned());
    }
    let is_taken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    if cause.downcast_ref::<std::io::Error>().is_some_and(is_taken) {
        return Some(
            "  cure: another server may be there already (`mainspring whoami`); name another \
             address with --listen"
                .to_owned(),
        );
    }
    // What has a code has a page, wherever it comes from.
    let text = cause.to_string();
    let is_of_code = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let code = text
        .split(|c: char| !is_of_code(c))
        .find(|it| it.contains('_') && pages::page(it).is_some())?;
    Some(format!("  cure: {}\n  more: mainspring errors {code}", pages::cure(code)?))
}

fn unreachable(error: &anyhow::Error) -> String {
    let is_distrust = error.chain().any(|cause| cause.to_string().contains("certificate"));
    let cure = match is_distrust {
        true => {
            "name the authority that signed the server's certificate in MAINSPRING_CA_FILE or \
             --ca-file, and the host as it is in the certificate"
        }
        false => {
            "start it with `mainspring serve`, or say where it is with MAINSPRING_URL or --url"
        }
    };
    format!("  cure: {cure}\n  more: mainspring errors SERVER_UNREACHABLE, mainspring doctor")
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
