//! What a black-box test sends and what it demands of the answer: one connection per request,
//! headers in the order they came, bodies as bytes, and raw bytes out for those who want to
//! misbehave. The client itself is `mainspring-http-client`.

use mainspring_http_client as client;
use serde_json::Value;
use std::net::{Shutdown, SocketAddr};

pub use client::{Connection, connect};

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Request(client::Request);

impl Request {
    /// A request with any method.
    pub fn new(method: &str, path: &str) -> Self {
        Request(client::Request::new(method, path).header("connection", "close"))
    }

    /// With an access token.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        Request(self.0.token(token))
    }

    /// With one more header.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        Request(self.0.header(name, value))
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        Request(self.0.json(body.to_string()))
    }

    /// With any body; the content type is the caller's business.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Request(self.0.body(body))
    }

    /// The bytes of the request on the wire.
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        self.0.bytes(address)
    }

    /// Sends the request and reads the answer.
    ///
    /// # Errors
    /// If the server cannot be reached, or breaks off.
    pub fn try_send(&self, address: SocketAddr) -> std::io::Result<Response> {
        let mut connection = Connection::open(address)?;
        // A server that refuses early may close before all is written: its answer still counts.
        let sent = connection.send(&self.bytes(address));
        let answer = connection.answer().map(Response::from);
        answer.map_err(|error| sent.err().unwrap_or(error))
    }

    /// Sends the request and reads the answer.
    ///
    /// # Panics
    /// If the server cannot be reached, or breaks off.
    pub fn send(&self, address: SocketAddr) -> Response {
        match self.try_send(address) {
            Ok(response) => response,
            Err(error) => panic!("{}: {error}", self.0.line()),
        }
    }
}

/// Sends bytes as they are, says that no more will come, and reads all answers until the end.
/// Whatever is not an HTTP answer ends the list.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<Response> {
    let Ok(mut connection) = Connection::open(address) else { return Vec::new() };
    let _ = connection.send(bytes);
    let _ = connection.stream().shutdown(Shutdown::Write);
    let mut answers = Vec::new();
    while let Ok(answer) = connection.answer() {
        answers.push(answer.into());
    }
    answers
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers as they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without any chunking.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let is_it = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().find(is_it).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none.
    pub fn json(&self) -> Value {
        let read = serde_json::from_slice(&self.body);
        read.unwrap_or_else(|error| panic!("{} is no JSON ({error}): {}", self.status, self.text()))
    }

    /// The `data` of a good answer.
    ///
    /// # Panics
    /// If the answer is a refusal.
    #[track_caller]
    pub fn data(&self) -> Value {
        let mut whole = self.json();
        assert_eq!(whole["success"], true, "{}: {}", self.status, self.text());
        assert!(self.status < 300, "{}: {}", self.status, self.text());
        whole["data"].take()
    }

    /// The code of a refusal, after checking the frame around it.
    ///
    /// # Panics
    /// If the answer is no refusal.
    #[track_caller]
    pub fn code(&self) -> String {
        let whole = self.json();
        assert_eq!(whole["success"], false, "{}: {}", self.status, self.text());
        assert!(self.status >= 400, "{}: {}", self.status, self.text());
        assert!(whole["meta"]["request_id"].is_string(), "{}", self.text());
        whole["error"]["code"].as_str().expect("a refusal has a code").to_owned()
    }

    /// Status and code of a refusal.
    ///
    /// # Panics
    /// If the answer is no refusal.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        (self.status, self.code())
    }
}

impl From<client::Answer<'_>> for Response {
    fn from(answer: client::Answer<'_>) -> Self {
        let headers = answer.headers().into_iter();
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        Response { status: answer.status, headers, body: answer.body.to_vec() }
    }
}
