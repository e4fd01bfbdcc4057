//! The smallest HTTP/1.1 client that does the job: keep-alive, `content-length` answers only.

use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest silence before a run is given up.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What of the buffer belongs to the next answer.
    filled: usize,
}

/// The status and body of an answer; the body stays in the connection's buffer.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Connection { stream, buffer: vec![0; 64 * 1024], filled: 0 })
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).context("cannot send")
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.send(request)?;
        self.answer()
    }

    /// As [`Connection::ask`], and the answer must be a success.
    pub(crate) fn ask_ok(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.send(request)?;
        self.answer_ok()
    }

    /// Reads an answer that must be a success.
    pub(crate) fn answer_ok(&mut self) -> anyhow::Result<&[u8]> {
        let Answer { status, body } = self.answer()?;
        if !(200..300).contains(&status) {
            let start = &body[..body.len().min(400)];
            bail!("the server answered {status}: {}", String::from_utf8_lossy(start));
        }
        Ok(body)
    }

    /// Reads the next answer.
    pub(crate) fn answer(&mut self) -> anyhow::Result<Answer<'_>> {
        let head = loop {
            if let Some(end) = find(&self.buffer[..self.filled], b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more()?;
        };
        let (status, length) = read_head(&self.buffer[..head])?;
        let end = head + length;
        while self.filled < end {
            self.read_more()?;
        }
        if self.filled > end {
            bail!("more came than one answer");
        }
        self.filled = 0;
        Ok(Answer { status, body: &self.buffer[head..end] })
    }

    fn read_more(&mut self) -> anyhow::Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = self.stream.read(&mut self.buffer[self.filled..]).context("no answer")?;
        if count == 0 {
            bail!("the server closed the connection");
        }
        self.filled += count;
        Ok(())
    }
}

/// Status and content length of a head.
fn read_head(head: &[u8]) -> anyhow::Result<(u16, usize)> {
    let text = std::str::from_utf8(head).context("the head of the answer is not text")?;
    let status = text.get(9..12).and_then(|status| status.parse().ok());
    let mut length = 0;
    for line in text.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().context("bad content-length")?;
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("the answer is chunked");
        }
    }
    Ok((status.context("the answer has no status")?, length))
}

/// Where `wanted` starts in `text`.
pub(crate) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = 0;
    while let Some(step) = text[at..].iter().position(|byte| *byte == first) {
        at += step;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_whatever_their_case() {
        let head = b"HTTP/1.1 201 Created\r\nDate: x\r\nContent-Length: 17\r\n\r\n";
        assert_eq!(read_head(head).unwrap(), (201, 17));
        assert!(read_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(read_head(b"nonsense\r\n\r\n").is_err());
        assert_eq!(find(b"aab\r\n\r\n", b"\r\n\r\n"), Some(3));
        assert_eq!(find(b"aaab", b"aab"), Some(1));
        assert_eq!(find(b"", b"x"), None);
    }
}
