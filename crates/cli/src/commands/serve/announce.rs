//! What a server says when it is up: where it is, where its data is, what it found there, and the
//! admin token if it is new. Secrets are for a terminal, a pipe or a file of whoever started it:
//! the journal of systemd gets none that can be had elsewhere.

use super::{AdminToken, token_directory};
use crate::config::layers::process_environment;
use crate::config::{Settings, StoreChoice};
use crate::output::say;
use crate::session::TOKEN_FILE;
use indicatif::{HumanBytes, HumanCount};
use mainspring_store::Recovery;
use mainspring_store_postgres::address;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Names device and inode of the journal's end of our output.
const JOURNAL: &str = "JOURNAL_STREAM";

/// Says all of it. The address comes first: programs that start a server read it there.
pub(super) fn announce(
    settings: &Settings,
    address: SocketAddr,
    (token, link): (&AdminToken, Option<&str>),
    recovery: &Recovery,
) {
    say(&format!("mainspring {} on {}", env!("CARGO_PKG_VERSION"), at(settings, address)));
    match &settings.store {
        StoreChoice::Directory(path) => say(&format!("data in {}", path.display())),
        StoreChoice::Ephemeral => say("data in memory only: everything is forgotten at the end"),
        StoreChoice::Postgres { url, .. } => {
            say(&format!("data in {}, schema {}", address::shown(url), settings.postgres.schema))
        }
    }
    if let Some(told) = recovered(&settings.store, recovery) {
        say(&told);
    }
    let is_logged = is_logged(process_environment(JOURNAL).as_deref(), std::io::stdout());
    match (token, token_directory(&settings.store)) {
        (AdminToken::Fresh(_), Some(path)) if is_logged => {
            say(&format!("admin token in {}", path.join(TOKEN_FILE).display()));
        }
        (AdminToken::Fresh(text), Some(path)) => {
            say(&format!("admin token {text} (also in {})", path.join(TOKEN_FILE).display()));
        }
        (AdminToken::Fresh(text), None) | (AdminToken::Unkept(text), _) => {
            say(&format!("admin token {text}"));
        }
        (AdminToken::Given(_), _) => say("admin token as set by the environment"),
        (AdminToken::Known, _) => {}
    }
    match link.filter(|_| !is_logged) {
        Some(link) => say(&format!("dashboard {link} (signs in once, within 10 minutes)")),
        None => say(&format!("dashboard {}/", at(settings, address))),
    }
    settings.not_yet.iter().for_each(|line| say(&format!("note: {line}")));
    if settings.allow_client_clock {
        say(
            "note: allow_client_clock lets workers say what time it is; for tests and replays only",
        );
    }
}

/// Whether what is printed goes into the journal of systemd, which others read, keep and send to
/// other machines. `stream` is what systemd says of it; a process that was merely started by a
/// service has that, too, so it counts only if it names where we print.
fn is_logged(stream: Option<&str>, to: impl AsFd) -> bool {
    let Some(stream) = stream else { return false };
    rustix::fs::fstat(to).is_ok_and(|it| stream == format!("{}:{}", it.st_dev, it.st_ino))
}

/// The address as clients write it.
fn at(settings: &Settings, address: SocketAddr) -> String {
    let scheme = if settings.tls.cert.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// What was found at opening; nothing of a store that keeps nothing.
fn recovered(store: &StoreChoice, recovery: &Recovery) -> Option<String> {
    let Recovery { jobs, running, entities, frames, journal_bytes, torn_bytes, took_ms } = recovery;
    let [jobs, running, entities, frames] =
        [jobs, running, entities, frames].map(|n| HumanCount(*n));
    match store {
        StoreChoice::Ephemeral => None,
        StoreChoice::Postgres { .. } => {
            Some(format!("found {jobs} jobs that have not ended, {running} of them running"))
        }
        StoreChoice::Directory(_) => {
            let (bytes, took) = (HumanBytes(*journal_bytes), *took_ms as f64 / 1_000.0);
            let torn = match torn_bytes {
                0 => String::new(),
                count => format!("; cut {} of a torn end", HumanBytes(*count)),
            };
            Some(format!(
                "recovered {jobs} jobs ({running} running) and {entities} entities in {took:.2} s, \
                 {frames} frames of the journal ({bytes}) replayed{torn}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recovered_is_said_for_each_store() {
        let recovery = Recovery {
            jobs: 1_234_567,
            running: 3,
            entities: 2,
            frames: 4_000,
            journal_bytes: 5 << 20,
            torn_bytes: 0,
            took_ms: 1_270,
        };
        let directory = StoreChoice::Directory("d".into());
        assert_eq!(
            recovered(&directory, &recovery).unwrap(),
            "recovered 1,234,567 jobs (3 running) and 2 entities in 1.27 s, 4,000 frames of the \
             journal (5.00 MiB) replayed"
        );
        let torn = Recovery { torn_bytes: 100, ..recovery.clone() };
        assert!(recovered(&directory, &torn).unwrap().ends_with("; cut 100 B of a torn end"));
        let postgres = StoreChoice::Postgres { url: String::new(), from: "x" };
        let told = "found 1,234,567 jobs that have not ended, 3 of them running";
        assert_eq!(recovered(&postgres, &recovery).as_deref(), Some(told));
        assert_eq!(recovered(&StoreChoice::Ephemeral, &recovery), None);
    }
}
