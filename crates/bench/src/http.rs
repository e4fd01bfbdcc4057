//! The connection of the load generator: the project's one client, whose failures here are told in
//! words, and where success can be demanded.

use anyhow::{Context, bail};
use mainspring_http_client as client;
use std::net::SocketAddr;

pub(crate) use client::Answer;

/// One connection.
pub(crate) struct Connection(client::Connection);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Connection(client::Connection::open(address).context("cannot connect")?))
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.0.send(request).context("cannot send")
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.send(request)?;
        self.0.answer().context("no answer")
    }

    /// As [`Connection::ask`], and the answer must be a success.
    pub(crate) fn ask_ok(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.send(request)?;
        self.answer_ok()
    }

    /// Reads an answer that must be a success.
    pub(crate) fn answer_ok(&mut self) -> anyhow::Result<&[u8]> {
        let Answer { status, body, .. } = self.0.answer().context("no answer")?;
        if !(200..300).contains(&status) {
            let start = &body[..body.len().min(400)];
            bail!("the server answered {status}: {}", String::from_utf8_lossy(start));
        }
        Ok(body)
    }
}
