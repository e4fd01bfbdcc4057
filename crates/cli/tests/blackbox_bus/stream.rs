//! The stream of moves as a client reads it: one server-sent event after another, from a position,
//! for as many as it likes.

#![allow(dead_code, reason = "not every test needs all of it")]

use mainspring_testkit::blackbox::Caller;
use mainspring_testkit::blackbox::http::{Connection, Request};
use serde_json::Value;
use std::time::Duration;

/// What a stream told: positions, kinds and data of its events.
pub(crate) type Told = (u64, String, Value);

/// Reads up to `most` events after `position`, and hangs up. Fewer, if the stream falls silent.
pub(crate) fn read(who: &Caller, position: u64, most: usize) -> Vec<Told> {
    read_from(who, "/api/v1/events", position, most)
}

/// The same from an address of one's own.
pub(crate) fn read_from(who: &Caller, path: &str, position: u64, most: usize) -> Vec<Told> {
    let mut open = Open::at(who, path, position);
    std::iter::from_fn(|| open.next_event()).take(most).collect()
}

/// A stream that stays open.
pub(crate) struct Open {
    connection: Connection,
    text: String,
}

impl Open {
    pub(crate) fn at(who: &Caller, path: &str, position: u64) -> Self {
        let request = Request::new("GET", path)
            .token(&who.token)
            .header("last-event-id", &position.to_string());
        let mut connection = Connection::open(who.address).expect("it takes connections");
        connection.send(&request.bytes(who.address)).expect("it takes requests");
        let wait = Some(Duration::from_millis(1_500));
        connection.stream().set_read_timeout(wait).expect("a socket");
        assert_eq!(connection.head().expect("an answer"), 200);
        Open { connection, text: String::new() }
    }

    /// The next event; nothing if the stream falls silent.
    pub(crate) fn next_event(&mut self) -> Option<Told> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let told = event(&self.text[..end]);
                self.text.drain(..end + 2);
                if told.is_some() {
                    return told;
                }
            }
            let piece = self.connection.chunk().ok()??;
            self.text.push_str(std::str::from_utf8(piece).expect("text"));
        }
    }
}

fn event(lines: &str) -> Option<Told> {
    let field = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name));
    let position = field("id: ")?.parse().expect("a position");
    let data = serde_json::from_str(field("data: ")?).expect("data");
    Some((position, field("event: ")?.to_owned(), data))
}

/// All events after `position` of which there are `count`.
pub(crate) fn all(who: &Caller, mut position: u64, count: usize) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    while told.len() < count {
        let more = read(who, position, count - told.len());
        assert!(!more.is_empty(), "{} of {count} events came", told.len());
        position = more.last().expect("not empty").0;
        told.extend(more);
    }
    told
}
