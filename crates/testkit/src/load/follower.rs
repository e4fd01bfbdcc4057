//! Somebody who follows all moves of all tenants from the first to the last, across whatever
//! happens to the servers, and writes down what arrives.

use super::fleet::Signals;
use super::record::Recorder;
use crate::history::Streamed;
use mainspring_http_client::{Connection, Request};
use mainspring_kernel::StateName;
use serde_json::Value;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

/// How long nothing arrives before the follower looks whether the run is over.
const SILENCE: Duration = Duration::from_millis(500);

/// Silences in a row after which all is told: a store of several servers may take a second to tell.
const SILENCES_AT_END: u32 = 4;

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
            .header("last-event-id", self.position);
        let Ok(mut connection) = Connection::open(server) else { return End::Broken };
        let is_sent = connection.send(&request.bytes(server)).is_ok();
        if !is_sent || connection.stream().set_read_timeout(Some(SILENCE)).is_err() {
            return End::Broken;
        }
        let (mut is_open, mut silences) = (false, 0);
        let mut text = String::new();
        while silences < SILENCES_MAX {
            let told = match is_open {
                false => connection.head().map(|status| (status == 200).then_some("")),
                true => connection.chunk().map(|piece| std::str::from_utf8(piece?).ok()),
            };
            match told {
                Ok(Some(piece)) => {
                    (is_open, silences) = (true, 0);
                    text.push_str(piece);
                    while let Some(end) = text.find("\n\n") {
                        self.arrived(&text[..end]);
                        text.drain(..end + 2);
                    }
                }
                Ok(None) => return End::Broken,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    silences += 1;
                    if self.signals.is_settled() && is_open && silences >= SILENCES_AT_END {
                        return End::Done;
                    }
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
