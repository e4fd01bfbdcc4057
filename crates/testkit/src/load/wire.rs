//! One kept connection per server. What matters here is to know exactly when a request certainly
//! did not reach the server: only then may its outcome be called a failure.

use crate::blackbox::http::Response;
use mainspring_http_client::{Connection, Request};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;

/// What became of a request.
#[derive(Debug)]
pub enum Reached {
    /// It was answered.
    Answer(Response),
    /// Nobody listened: it was never sent.
    Nobody,
    /// It was sent, at least in part, and no answer came.
    Silence,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The access token.
    pub token: &'a str,
    /// One more header.
    pub header: Option<(&'a str, &'a str)>,
    /// The body.
    pub body: Option<&'a Value>,
}

/// A server that did not answer is left out of this many turns.
const TURNS_OUT: u32 = 10;

/// One of the servers.
#[derive(Debug)]
struct End {
    address: SocketAddr,
    kept: Option<Connection>,
    turns_out: u32,
}

/// Connections that are kept while they last; the servers take turns.
#[derive(Debug)]
pub struct Wire {
    ends: Vec<End>,
    turn: usize,
    /// After this long an answer is not waited for any more, if not the usual time.
    patience: Option<Duration>,
}

impl Wire {
    /// Nothing is connected yet.
    ///
    /// # Panics
    /// If there is no server.
    pub fn new(servers: &[SocketAddr], patience: Option<Duration>) -> Self {
        assert!(!servers.is_empty(), "there must be somebody to talk to");
        let end = |address: &SocketAddr| End { address: *address, kept: None, turns_out: 0 };
        Wire { ends: servers.iter().map(end).collect(), turn: 0, patience }
    }

    /// Sends a request to the next server and waits for the answer; never sends anything twice.
    pub fn send(&mut self, question: Question<'_>) -> Reached {
        let patience = self.patience;
        let End { address, kept, turns_out } = self.next();
        let mut connection = match kept.take().filter(Connection::is_open) {
            Some(kept) => kept,
            None => match Connection::open(*address) {
                Ok(connection) => connection,
                Err(_) => {
                    *turns_out = TURNS_OUT;
                    return Reached::Nobody;
                }
            },
        };
        if patience.is_some() {
            let _ = connection.stream().set_read_timeout(patience);
        }
        let Ok(answer) = connection.ask(&bytes(*address, question)) else {
            *turns_out = TURNS_OUT;
            return Reached::Silence;
        };
        let (is_last, answer) = (answer.is_last(), answer.into());
        *kept = (!is_last).then_some(connection);
        Reached::Answer(answer)
    }

    /// Whose turn it is.
    fn next(&mut self) -> &mut End {
        for _ in 1..self.ends.len() {
            self.turn = (self.turn + 1) % self.ends.len();
            let end = &mut self.ends[self.turn];
            if end.turns_out == 0 {
                return &mut self.ends[self.turn];
            }
            end.turns_out -= 1;
        }
        self.turn = (self.turn + 1) % self.ends.len();
        &mut self.ends[self.turn]
    }
}

fn bytes(address: SocketAddr, question: Question<'_>) -> Vec<u8> {
    let Question { method, path, token, header, body } = question;
    let mut request = Request::new(method, path);
    if !token.is_empty() {
        request = request.token(token);
    }
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.json(body.to_string());
    }
    request.bytes(address)
}
