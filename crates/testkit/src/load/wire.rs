//! One kept connection per server. What matters here is to know exactly when a request certainly
//! did not reach the server: only then may its outcome be called a failure.

use crate::blackbox::http::{self, Response};
use serde_json::Value;
use std::io::{BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
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
pub struct Ask<'a> {
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
    kept: Option<BufReader<TcpStream>>,
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
    pub fn send(&mut self, ask: Ask<'_>) -> Reached {
        let patience = self.patience;
        let End { address, kept, turns_out } = self.next();
        let mut reader = match kept.take().filter(is_open) {
            Some(kept) => kept,
            None => match http::connect(*address) {
                Ok(stream) => BufReader::new(stream),
                Err(_) => {
                    *turns_out = TURNS_OUT;
                    return Reached::Nobody;
                }
            },
        };
        if patience.is_some() {
            let _ = reader.get_mut().set_read_timeout(patience);
        }
        let answer = match reader.get_mut().write_all(&bytes(*address, ask)) {
            Ok(()) => http::read(&mut reader),
            Err(error) => Err(error),
        };
        let Ok(Some(answer)) = answer else {
            *turns_out = TURNS_OUT;
            return Reached::Silence;
        };
        let closes = answer.header("connection").is_some_and(|told| told == "close");
        *kept = (!closes).then_some(reader);
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

fn bytes(address: SocketAddr, ask: Ask<'_>) -> Vec<u8> {
    let Ask { method, path, token, header, body } = ask;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n");
    if !token.is_empty() {
        head.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    if let Some((name, value)) = header {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = body.map(Value::to_string);
    if body.is_some() {
        head.push_str("content-type: application/json\r\n");
    }
    let body = body.unwrap_or_default();
    if method != "GET" {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    format!("{head}\r\n{body}").into_bytes()
}

/// Whether the other side has not hung up, as far as we know.
fn is_open(reader: &BufReader<TcpStream>) -> bool {
    let stream = reader.get_ref();
    let mut byte = [0];
    let is_set = stream.set_nonblocking(true).is_ok();
    let looked = stream.peek(&mut byte);
    let is_reset = stream.set_nonblocking(false).is_ok();
    is_set && is_reset && looked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
