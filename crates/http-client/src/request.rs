//! A request, and its bytes on the wire. Nothing is checked: some callers mean to misbehave.

use std::fmt::Write;
use std::net::SocketAddr;

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method and target.
    line: String,
    /// All header lines but those that [`Request::bytes`] adds.
    headers: String,
    has_host: bool,
    is_get: bool,
    body: Option<Vec<u8>>,
}

impl Request {
    /// A request with any method, path and query.
    pub fn new(method: &str, target: &str) -> Self {
        Request {
            line: format!("{method} {target}"),
            headers: String::new(),
            has_host: false,
            is_get: method == "GET",
            body: None,
        }
    }

    /// Method and target, for those who tell what failed.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// With an access token.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.header("authorization", format_args!("Bearer {token}"))
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.has_host |= name.eq_ignore_ascii_case("host");
        write!(self.headers, "{name}: {value}\r\n").expect("writing to a string cannot fail");
        self
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: impl Into<Vec<u8>>) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// With any body; the content type is the caller's business.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The bytes of the request on the wire, to the server at this address.
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let Request { line, headers, has_host, is_get, body } = self;
        let body = body.as_deref();
        // Enough for the lines that are added here.
        let mut bytes =
            String::with_capacity(line.len() + headers.len() + body.map_or(0, <[u8]>::len) + 96);
        bytes.push_str(line);
        bytes.push_str(" HTTP/1.1\r\n");
        if !has_host {
            write!(bytes, "host: {address}\r\n").expect("writing to a string cannot fail");
        }
        bytes.push_str(headers);
        if body.is_some() || !is_get {
            let length = body.map_or(0, <[u8]>::len);
            write!(bytes, "content-length: {length}\r\n").expect("writing to a string cannot fail");
        }
        bytes.push_str("\r\n");
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_they_were_asked_for() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7070));
        let text = |request: Request| String::from_utf8(request.bytes(address)).unwrap();
        assert_eq!(
            text(Request::new("GET", "/a?b")),
            "GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:7070\r\n\r\n"
        );
        assert_eq!(
            text(Request::new("POST", "/a").token("t").json("{}")),
            "POST /a HTTP/1.1\r\nhost: 127.0.0.1:7070\r\nauthorization: Bearer t\r\n\
             content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
        );
        assert_eq!(
            text(Request::new("DELETE", "/a").header("Host", "x")),
            "DELETE /a HTTP/1.1\r\nHost: x\r\ncontent-length: 0\r\n\r\n"
        );
        assert!(text(Request::new("GET", "/").body("x")).ends_with("content-length: 1\r\n\r\nx"));
    }
}
