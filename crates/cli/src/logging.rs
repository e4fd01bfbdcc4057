//! The log goes to stderr: text for a terminal, JSON for everything else. `MAINSPRING_LOG` filters
//! it (`warn`, `mainspring_engine=debug`). No secret gets into it: `redact.rs`.

mod redact;

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// What is logged when nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warn,
}

/// Starts logging; a second call changes nothing.
pub(crate) fn start(format: Option<Format>, level: Level) {
    // The pool of connections tells of each one that an outage breaks; the store tells of the
    // outage.
    let default = match level {
        Level::Info => "info,deadpool=error",
        Level::Warn => "warn,deadpool=error",
    };
    let filter = EnvFilter::builder()
        .with_env_var("MAINSPRING_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new(default));
    let from_env = || match std::env::var("MAINSPRING_LOG_FORMAT").as_deref() {
        Ok("json") => Some(Format::Json),
        Ok("text") => Some(Format::Text),
        Ok(_) | Err(_) => None,
    };
    let is_terminal = std::io::stderr().is_terminal();
    let format = format.or_else(from_env).unwrap_or(match is_terminal {
        true => Format::Text,
        false => Format::Json,
    });
    let writer = || redact::Redacted(std::io::stderr());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    let _ = match format {
        Format::Json => builder.json().flatten_event(true).try_init(),
        Format::Text => builder.with_ansi(is_terminal).with_target(false).try_init(),
    };
}
