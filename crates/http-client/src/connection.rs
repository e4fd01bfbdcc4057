//! One connection and the answers that come over it. What was read stays in one buffer until it is
//! given out, so a read that timed out loses nothing: asking again goes on where it stopped.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest silence; more than any long poll is asked for.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Headers of an answer; more are refused.
const HEADERS_MAX: usize = 64;

/// Bytes that are read at a time, at least.
const PIECE: usize = 64 * 1024;

/// A bare stream to the server, with a timeout on everything.
///
/// # Errors
/// If nobody listens there.
pub fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection that is kept while both sides want it.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What of the buffer has come and has not been given out.
    start: usize,
    end: usize,
    /// The body of a chunked answer, put together.
    joined: Vec<u8>,
}

/// An answer; head and body stay in the connection's buffers.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body, without any chunking.
    pub body: &'a [u8],
    head: &'a [u8],
}

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Bytes(usize),
    Chunked,
    /// With the stream.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    status: u16,
    bytes: usize,
    length: Length,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn open(address: SocketAddr) -> Result<Self> {
        Ok(Self::over(connect(address)?))
    }

    /// Over a stream on which nothing has been read yet.
    pub fn over(stream: TcpStream) -> Self {
        Connection { stream, buffer: vec![0; PIECE], start: 0, end: 0, joined: Vec::new() }
    }

    /// The stream itself, to set its timeouts or shut it down.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether another request may be sent, as far as this side knows: the other one has not hung
    /// up, and has said nothing that was not asked for.
    pub fn is_open(&self) -> bool {
        let is_set = self.stream.set_nonblocking(true).is_ok();
        let looked = self.stream.peek(&mut [0]);
        let is_reset = self.stream.set_nonblocking(false).is_ok();
        let is_silent = looked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        is_set && is_reset && is_silent && self.start == self.end
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If they cannot all be sent; some may have been.
    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request)
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// As [`Connection::send`] and [`Connection::answer`].
    pub fn ask(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.send(request)?;
        self.answer()
    }

    /// Reads the next answer.
    ///
    /// # Errors
    /// `UnexpectedEof` if the stream ends before the answer does, `InvalidData` for what is no
    /// HTTP, and whatever the stream says.
    pub fn answer(&mut self) -> Result<Answer<'_>> {
        let Head { status, bytes, length } = self.read_head()?;
        let (head, body) = (self.start, self.start + bytes);
        let body = match length {
            Length::Bytes(count) => {
                self.read_up_to(body + count)?;
                self.start = body + count;
                &self.buffer[body..body + count]
            }
            Length::Chunked => {
                self.joined.clear();
                let mut at = body;
                loop {
                    let (start, count) = self.read_chunk(at)?;
                    at = start + count + 2;
                    self.joined.extend_from_slice(&self.buffer[start..start + count]);
                    if count == 0 {
                        break;
                    }
                }
                self.start = at;
                &self.joined[..]
            }
            Length::Open => {
                while self.read_more(PIECE)? > 0 {}
                self.start = self.end;
                &self.buffer[body..self.end]
            }
        };
        Ok(Answer { status, body, head: &self.buffer[head..head + bytes] })
    }

    /// Reads the head of an answer whose body is a stream, and tells its status.
    ///
    /// # Errors
    /// As [`Connection::answer`].
    pub fn head(&mut self) -> Result<u16> {
        let head = self.read_head()?;
        self.start += head.bytes;
        Ok(head.status)
    }

    /// Reads the next piece of a stream after its [`head`](Connection::head); `None` at its end.
    ///
    /// # Errors
    /// As [`Connection::answer`]. After a timeout it may be called again.
    pub fn chunk(&mut self) -> Result<Option<&[u8]>> {
        self.make_room();
        let (start, count) = self.read_chunk(self.start)?;
        self.start = start + count + 2;
        Ok((count > 0).then_some(&self.buffer[start..start + count]))
    }

    /// Reads until a head is whole; it stays where it is.
    fn read_head(&mut self) -> Result<Head> {
        self.make_room();
        loop {
            if let Some(head) = parse(&self.buffer[self.start..self.end])? {
                return Ok(head);
            }
            self.read_up_to(self.end + 1)?;
        }
    }

    /// Reads until the chunk whose size line starts `at` is whole, with the line end behind it;
    /// tells where its bytes start and how many they are.
    fn read_chunk(&mut self, at: usize) -> Result<(usize, usize)> {
        loop {
            match httparse::parse_chunk_size(&self.buffer[at..self.end]) {
                Ok(httparse::Status::Complete((bytes, count))) => {
                    let count = usize::try_from(count).map_err(|_| bad("a chunk beyond memory"))?;
                    let start = at + bytes;
                    self.read_up_to(start + count + 2)?;
                    return Ok((start, count));
                }
                Ok(httparse::Status::Partial) => self.read_up_to(self.end + 1)?,
                Err(_) => return Err(bad("no size of a chunk")),
            }
        }
    }

    /// Reads until the buffer is filled up to here.
    fn read_up_to(&mut self, end: usize) -> Result<()> {
        while self.end < end {
            if self.read_more(end - self.end)? == 0 {
                return Err(Error::new(ErrorKind::UnexpectedEof, "the server hung up"));
            }
        }
        Ok(())
    }

    /// Reads once; tells how much came.
    fn read_more(&mut self, wanted: usize) -> Result<usize> {
        if self.buffer.len() < self.end + wanted || self.buffer.len() == self.end {
            self.buffer.resize(self.end + wanted.max(PIECE), 0);
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
            }
        }
    }

    /// Moves what has not been given out to the front.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }
}

impl<'a> Answer<'a> {
    /// The headers as they came.
    pub fn headers(&self) -> Vec<(&'a str, String)> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        head.parse(self.head).expect("the head was read before");
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        head.headers.iter().map(|header| (header.name, text(header.value))).collect()
    }

    /// Whether the server will hang up after this answer.
    pub fn is_last(&self) -> bool {
        self.headers().iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close")
        })
    }
}

fn bad(text: &str) -> Error {
    Error::new(ErrorKind::InvalidData, text.to_owned())
}

/// Reads a head; `None` while it is not whole.
fn parse(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let count = match head.parse(bytes).map_err(|error| bad(&format!("no answer: {error}")))? {
        httparse::Status::Complete(count) => count,
        httparse::Status::Partial => return Ok(None),
    };
    let status = head.code.ok_or_else(|| bad("an answer without a status"))?;
    let has_no_body = matches!(status, 100..200 | 204 | 304);
    let mut length = if has_no_body { Length::Bytes(0) } else { Length::Open };
    for header in head.headers.iter().filter(|_| !has_no_body) {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            length = Length::Chunked;
        } else if header.name.eq_ignore_ascii_case("content-length") && length != Length::Chunked {
            let told = std::str::from_utf8(header.value).ok().and_then(|text| text.parse().ok());
            length = Length::Bytes(told.ok_or_else(|| bad("a content-length that is none"))?);
        }
    }
    Ok(Some(Head { status, bytes: count, length }))
}

#[cfg(test)]
mod tests;
