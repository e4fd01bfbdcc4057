//! What every client command needs: where the server is, who asks, and how to print.

use crate::output::Output;
use mainspring_sdk::Client;
use mainspring_sdk::client::URL_DEFAULT;
use std::path::Path;

/// Name of the file in a data directory that holds the first admin token.
pub(crate) const TOKEN_FILE: &str = "admin.token";
/// The data directory of a server that was not told otherwise.
pub(crate) const DATA_DIR_DEFAULT: &str = "./mainspring-data";

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
    pub(crate) fn open(url: Option<&str>, output: Output) -> anyhow::Result<Self> {
        let read = crate::config::layers::process_environment;
        let url = url.map(ToOwned::to_owned).or_else(|| read("MAINSPRING_URL"));
        let url = url.unwrap_or_else(|| URL_DEFAULT.to_owned());
        let directory = read("MAINSPRING_DATA_DIR").unwrap_or_else(|| DATA_DIR_DEFAULT.to_owned());
        let (token, token_from) = match read("MAINSPRING_TOKEN") {
            Some(token) => (Some(token), "MAINSPRING_TOKEN"),
            None => match read_token(Path::new(&directory)) {
                Some(token) => (Some(token), "the data directory's admin.token"),
                None => (None, "nowhere"),
            },
        };
        let mut client = Client::new(&url, token.as_deref())?;
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

/// The token in a data directory, if it can be read.
pub(crate) fn read_token(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(directory.join(TOKEN_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}
