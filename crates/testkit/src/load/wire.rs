//! One kept connection. What matters here is to know exactly when a request certainly did not reach
//! the server: only then may its outcome be called a failure.

use crate::blackbox::http::{self, Response};
use serde_json::Value;
use std::io::{BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

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

/// A connection that is kept while it lasts.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Wire {
    /// Nothing is connected yet.
    pub fn new(address: SocketAddr) -> Self {
        Wire { address, stream: None }
    }

    /// Sends a request and waits for the answer; never sends anything twice.
    pub fn send(&mut self, ask: Ask<'_>) -> Reached {
        let mut reader = match self.stream.take().filter(is_open) {
            Some(kept) => kept,
            None => match http::connect(self.address) {
                Ok(stream) => BufReader::new(stream),
                Err(_) => return Reached::Nobody,
            },
        };
        if reader.get_mut().write_all(&self.bytes(ask)).is_err() {
            return Reached::Silence;
        }
        match http::read(&mut reader) {
            Ok(Some(answer)) => {
                let closes = answer.header("connection").is_some_and(|told| told == "close");
                self.stream = (!closes).then_some(reader);
                Reached::Answer(answer)
            }
            Ok(None) | Err(_) => Reached::Silence,
        }
    }

    fn bytes(&self, ask: Ask<'_>) -> Vec<u8> {
        let Ask { method, path, token, header, body } = ask;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
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
