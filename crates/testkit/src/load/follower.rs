//! Somebody who follows all moves of all tenants from the first to the last, across whatever
//! happens to the servers, and writes down what arrives.

use super::fleet::Signals;
use super::record::Recorder;
use crate::blackbox::http::{self, Request};
use crate::history::Streamed;
use mainspring_kernel::StateName;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// How long nothing arrives before the follower looks whether the run is over.
const SILENCE: Duration = Duration::from_millis(500);

/// Silences in a row after which another server is asked: this one may stand still.
const SILENCES_MAX: u32 = 6;

pub(super) struct Follower<'a> {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) token: String,
    pub(super) recorder: &'a Recorder,
    pub(super) signals: &'a Signals,
    /// The last position that arrived.
    pub(super) position: u64,
    /// The server said that moves are gone, and none has come since.
    pub(super) is_reset: bool,
}

/// Why a stream ended.
#[derive(PartialEq, Eq)]
enum End {
    /// All is told.
    Done,
    /// The server went away.
    Broken,
}

impl Follower<'_> {
    /// Follows until everything is settled and told.
    pub(super) fn run(mut self) {
        let servers = self.servers.clone();
        for server in servers.into_iter().cycle() {
            if self.follow(server) == End::Done {
                return;
            }
            std::thread::sleep(Duration::from_millis(20)); // paced: the server is away
        }
    }

    fn follow(&mut self, server: SocketAddr) -> End {
        let request = Request::new("GET", "/api/v1/events")
            .token(&self.token)
            .header("last-event-id", &self.position.to_string());
        let Ok(mut stream) = http::connect(server) else { return End::Broken };
        let is_sent = stream.write_all(&request.bytes(server)).is_ok();
        if !is_sent || stream.set_read_timeout(Some(SILENCE)).is_err() {
            return End::Broken;
        }
        let mut answer = Answer::default();
        let mut silences = 0;
        let mut piece = vec![0; 1 << 16];
        while silences < SILENCES_MAX {
            match stream.read(&mut piece) {
                Ok(0) => return End::Broken,
                Ok(count) => {
                    silences = 0;
                    let Some(events) = answer.take(&piece[..count]) else { return End::Broken };
                    events.iter().for_each(|event| self.arrived(event));
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if self.signals.is_settled() && answer.is_open() {
                        return End::Done;
                    }
                    silences += 1;
                }
                Err(_) => return End::Broken,
            }
        }
        End::Broken
    }

    /// One event: its lines.
    fn arrived(&mut self, event: &str) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let Some(position) = field("id: ").and_then(|id| id.parse().ok()) else { return };
        self.position = position;
        if field("event: ") == Some("reset") {
            self.is_reset = true;
            return;
        }
        let told: Value = serde_json::from_str(field("data: ").unwrap_or_default())
            .unwrap_or_else(|_| panic!("no move: {event}"));
        let to = told["to_state"].as_str().and_then(StateName::parse);
        let seq = told["seq"].as_u64().and_then(|seq| u32::try_from(seq).ok());
        self.recorder.streamed(Streamed {
            position,
            job: told["job_id"].as_str().unwrap_or_else(|| panic!("no job: {event}")).to_owned(),
            seq: seq.unwrap_or_else(|| panic!("no number: {event}")),
            to: to.unwrap_or_else(|| panic!("no state: {event}")),
            is_reset: std::mem::take(&mut self.is_reset),
        });
    }
}

/// An answer as it comes in, in pieces of any size.
#[derive(Default)]
struct Answer {
    bytes: Vec<u8>,
    text: String,
    has_head: bool,
}

impl Answer {
    fn is_open(&self) -> bool {
        self.has_head
    }

    /// The events that are whole; `None` if this is no stream, or its end.
    fn take(&mut self, piece: &[u8]) -> Option<Vec<String>> {
        self.bytes.extend_from_slice(piece);
        if !self.has_head {
            let Some(end) = find(&self.bytes, b"\r\n\r\n") else { return Some(Vec::new()) };
            let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
            head.starts_with("HTTP/1.1 200").then_some(())?;
            self.bytes.drain(..end + 4);
            self.has_head = true;
        }
        while let Some(end) = find(&self.bytes, b"\r\n") {
            let size = std::str::from_utf8(&self.bytes[..end]).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            if size == 0 {
                return None;
            }
            let (start, whole) = (end + 2, end + 2 + size + 2);
            if self.bytes.len() < whole {
                break;
            }
            self.text.push_str(std::str::from_utf8(&self.bytes[start..start + size]).ok()?);
            self.bytes.drain(..whole);
        }
        let mut events = Vec::new();
        while let Some(end) = self.text.find("\n\n") {
            events.push(self.text[..end].to_owned());
            self.text.drain(..end + 2);
        }
        Some(events)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn events_come_out_whole_whatever_the_pieces() {
        let wire =
            "HTTP/1.1 200 OK\r\na: b\r\n\r\n7\r\n: hi\n\ni\r\na\r\nd: 1\n\nid: \r\n3\r\n2\n\n\r\n";
        for size in 1..wire.len() {
            let mut answer = Answer::default();
            let mut events = Vec::new();
            for piece in wire.as_bytes().chunks(size) {
                events.extend(answer.take(piece).expect("a stream"));
            }
            assert_eq!(events, [": hi", "id: 1", "id: 2"], "pieces of {size}");
        }
        assert_eq!(Answer::default().take(b"HTTP/1.1 503 No\r\n\r\n"), None);
        assert_eq!(Answer::default().take(b"HTTP/1.1 200 OK\r\n\r\n0\r\n\r\n"), None);
    }
}
