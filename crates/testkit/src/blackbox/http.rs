//! A blocking HTTP/1.1 client that hides nothing: one connection per request, headers in the order
//! they came, bodies as bytes, and raw bytes out for those who want to misbehave.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any long poll a test asks for.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// A request with any method.
    pub fn new(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Request { method, path, headers: Vec::new(), body: None }
    }

    /// With an access token.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// With any body; the content type is the caller's business.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The bytes of the request on the wire.
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("host: {address}\r\n"));
        }
        head.push_str("connection: close\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let needs_length = self.body.is_some() || self.method != "GET";
        if needs_length {
            let length = self.body.as_ref().map_or(0, Vec::len);
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or(&[]));
        bytes
    }

    /// Sends the request and reads the answer.
    ///
    /// # Errors
    /// If the server cannot be reached, or breaks off.
    pub fn try_send(&self, address: SocketAddr) -> std::io::Result<Response> {
        let mut stream = connect(address)?;
        // A server that refuses early may close before all is written: its answer still counts.
        let written = stream.write_all(&self.bytes(address));
        match read(&mut BufReader::new(stream)) {
            Ok(Some(response)) => Ok(response),
            Ok(None) => Err(written.err().unwrap_or_else(|| {
                std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "closed without an answer")
            })),
            Err(error) => Err(error),
        }
    }

    /// Sends the request and reads the answer.
    ///
    /// # Panics
    /// If the server cannot be reached, or breaks off.
    pub fn send(&self, address: SocketAddr) -> Response {
        match self.try_send(address) {
            Ok(response) => response,
            Err(error) => panic!("{} {}: {error}", self.method, self.path),
        }
    }
}

/// A connection to the server, with a timeout on everything.
///
/// # Errors
/// If nobody listens there.
pub fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends bytes as they are, says that no more will come, and reads all answers until the end.
/// Whatever is not an HTTP answer ends the list.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<Response> {
    let Ok(mut stream) = connect(address) else { return Vec::new() };
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut reader = BufReader::new(stream);
    let mut answers = Vec::new();
    while let Ok(Some(answer)) = read(&mut reader) {
        answers.push(answer);
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

/// Reads one answer; `None` at the end of the stream.
///
/// # Errors
/// If the stream breaks or what comes is no HTTP.
pub fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Response>> {
    let Some(first) = line(reader)? else { return Ok(None) };
    let bad = |text: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, text.to_owned());
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status: u16 = status.ok_or_else(|| bad(&format!("no status line: {first:?}")))?;
    let mut headers = Vec::new();
    while let Some(header) = line(reader)?.filter(|header| !header.is_empty()) {
        let (name, value) = header.split_once(':').ok_or_else(|| bad("no header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut response = Response { status, headers, body: Vec::new() };
    if response.header("transfer-encoding").is_some() {
        while let Some(piece) = chunk(reader)? {
            response.body.extend_from_slice(&piece);
        }
    } else if let Some(length) = response.header("content-length") {
        let length = length.parse().map_err(|_| bad("no length"))?;
        response.body = vec![0; length];
        reader.read_exact(&mut response.body)?;
    } else {
        reader.read_to_end(&mut response.body)?;
    }
    Ok(Some(response))
}

/// Reads one piece of a chunked body; `None` at its end.
///
/// # Errors
/// If the stream breaks.
pub fn chunk(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let size = line(reader)?.unwrap_or_default();
    let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
    let mut piece = vec![0; size];
    reader.read_exact(&mut piece)?;
    line(reader)?;
    Ok((size > 0).then_some(piece))
}

fn line(reader: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if reader.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}
