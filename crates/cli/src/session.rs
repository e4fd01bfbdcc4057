//! What every client command needs: where the server is, who asks, and how to print.

use crate::exit::usage;
use crate::output::Output;
use anyhow::Context;
use mainspring_sdk::Client;
use mainspring_sdk::client::URL_DEFAULT;
use std::path::{Path, PathBuf};

/// Name of the file in a data directory that holds the first admin token.
pub(crate) const TOKEN_FILE: &str = "admin.token";
/// The data directory of a server that was not told otherwise.
pub(crate) const DATA_DIR_DEFAULT: &str = "./mainspring-data";

/// The data directory of a demo.
pub(crate) const DEMO_DIR: &str = "./mainspring-demo";
/// Names a file with the token, where secrets are files.
const TOKEN_FILE_VARIABLE: &str = "MAINSPRING_TOKEN_FILE";

/// Which server is meant, as far as flags say.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct To {
    /// Address of the server [default: MAINSPRING_URL, else http://127.0.0.1:7070]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Trust the authorities in this file instead of the system's [default: MAINSPRING_CA_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// One run of a client command.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) output: Output,
    /// Where the token came from, for `doctor`.
    pub(crate) token_from: &'static str,
}

impl Session {
    /// Finds the server and the token: flag, then environment, then the token file of a server
    /// that was started from this directory.
    pub(crate) fn open(to: &To, output: Output) -> anyhow::Result<Self> {
        let read = crate::config::layers::process_environment;
        let url = to.url.clone().or_else(|| read("MAINSPRING_URL"));
        let url = url.unwrap_or_else(|| URL_DEFAULT.to_owned());
        let (token, token_from) = token(&read)?;
        let authorities = to.ca_file.clone().or_else(|| read("MAINSPRING_CA_FILE").map(Into::into));
        let mut client = match authorities {
            Some(path) => Client::trusting(&url, token.as_deref(), &named(&path)?)?,
            None => Client::new(&url, token.as_deref())?,
        };
        if let Some(trace) = read("MAINSPRING_TRACE_ID") {
            client = client.with_trace(&trace)?;
        }
        Ok(Session { client, output, token_from })
    }

    /// Whether the answer is for a program.
    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }
}

/// The token, and where it came from.
fn token(read: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<(Option<String>, &'static str)> {
    if let Some(token) = read("MAINSPRING_TOKEN") {
        return Ok((Some(token), "MAINSPRING_TOKEN"));
    }
    if let Some(path) = read(TOKEN_FILE_VARIABLE) {
        let text = read_secret(TOKEN_FILE_VARIABLE, Path::new(&path))?;
        return Ok((Some(text), TOKEN_FILE_VARIABLE));
    }
    let directory = read("MAINSPRING_DATA_DIR").unwrap_or_else(|| DATA_DIR_DEFAULT.to_owned());
    if let Some(token) = read_token(Path::new(&directory)) {
        return Ok((Some(token), "the data directory's admin.token"));
    }
    Ok(match read_token(Path::new(DEMO_DIR)) {
        Some(token) => (Some(token), "the admin.token of the demo"),
        None => (None, "nowhere"),
    })
}

/// What a file holds that somebody named on purpose: if it cannot be had, that is a mistake.
fn named(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| usage(format!("{} cannot be read: {error}", path.display())))
}

/// The secret in a file that a variable names, without the line's end.
pub(crate) fn read_secret(variable: &str, path: &Path) -> anyhow::Result<String> {
    let text = named(path).with_context(|| format!("{variable} names a file"))?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    match text.is_empty() {
        true => Err(usage(format!("{variable}: {} is empty", path.display()))),
        false => Ok(text),
    }
}

/// The token in a data directory, if it can be read.
pub(crate) fn read_token(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(directory.join(TOKEN_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}
