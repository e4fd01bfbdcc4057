//! Following the moves of jobs as they happen.

use super::{Client, path_with};
use crate::error::{Error, Refusal};
use mainspring_api::event::{JobMoved, Reset};
use mainspring_api::{ErrorBody, TRACE_HEADER};
use reqwest::header::{ACCEPT, AUTHORIZATION};

/// Longest piece of a stream that is read; ours are far shorter.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// The moves of jobs, one after the other, from a position on. See [`Client::follow`].
#[derive(Debug)]
pub struct Follow {
    answer: reqwest::Response,
    url: String,
    read: Vec<u8>,
    position: Option<u64>,
}

/// What a stream tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A job moved.
    Moved(Box<JobMoved>),
    /// Moves are missing: read again what you follow.
    Reset(Reset),
}

impl Client {
    /// Follows the moves of the jobs that the token may see: those behind a position, or those to
    /// come. A stream that breaks off is taken up again behind [`Follow::position`].
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn follow(&self, after: Option<u64>) -> Result<Follow, Error> {
        let path = path_with(&["events"], &[("after", after.map(|after| after.to_string()))]);
        let url = self.inner.url.clone();
        let mut request = self.inner.http.get(format!("{url}{path}"));
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(authorization) = &self.inner.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(trace) = &self.inner.trace {
            request = request.header(TRACE_HEADER, trace.clone());
        }
        let answer = request.send().await.map_err(|source| lost(&url, source))?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            let body = answer.bytes().await.map_err(|source| lost(&url, source))?;
            return Err(refused(status, &body));
        }
        Ok(Follow { answer, url, read: Vec::new(), position: after })
    }
}

impl Follow {
    /// The position of what was told last.
    pub fn position(&self) -> Option<u64> {
        self.position
    }

    /// What happens next; `None` when the server ends the stream.
    ///
    /// # Errors
    /// If the connection breaks, or what comes cannot be read.
    pub async fn next(&mut self) -> Result<Option<Told>, Error> {
        loop {
            while let Some(event) = self.take_event() {
                if let Some(told) = self.understand(&event)? {
                    return Ok(Some(told));
                }
            }
            if self.read.len() > EVENT_BYTES_MAX {
                return Err(self.unreadable("an event has no end"));
            }
            match self.answer.chunk().await.map_err(|source| lost(&self.url, source))? {
                Some(bytes) => self.read.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }

    /// The text of an event that has arrived whole.
    fn take_event(&mut self) -> Option<String> {
        let end = self.read.windows(2).position(|pair| pair == b"\n\n")?;
        let event: Vec<u8> = self.read.drain(..end + 2).collect();
        Some(String::from_utf8_lossy(&event).into_owned())
    }

    fn understand(&mut self, event: &str) -> Result<Option<Told>, Error> {
        let (mut kind, mut data) = ("", String::new());
        for line in event.lines() {
            match line.split_once(": ").or_else(|| line.split_once(':')) {
                Some(("event", text)) => kind = text,
                Some(("data", text)) => data.push_str(text),
                Some(("id", text)) => self.position = text.parse().ok().or(self.position),
                Some(_) | None => {}
            }
        }
        let wrong = |error: serde_json::Error| self.unreadable(&error.to_string());
        match kind {
            "job_moved" => {
                let moved: JobMoved = serde_json::from_str(&data).map_err(wrong)?;
                self.position = Some(moved.position);
                Ok(Some(Told::Moved(Box::new(moved))))
            }
            "reset" => {
                let reset: Reset = serde_json::from_str(&data).map_err(wrong)?;
                self.position = Some(reset.position);
                Ok(Some(Told::Reset(reset)))
            }
            // Signs of life, and what later versions tell.
            _ => Ok(None),
        }
    }

    fn unreadable(&self, reason: &str) -> Error {
        Error::Unreadable {
            call: "GET /api/v1/events".to_owned(),
            status: 200,
            reason: reason.to_owned(),
        }
    }
}

fn lost(url: &str, source: reqwest::Error) -> Error {
    let was_sent = !source.is_connect();
    Error::Unreachable { url: url.to_owned(), was_sent, source: source.without_url() }
}

fn refused(status: u16, body: &[u8]) -> Error {
    #[derive(serde::Deserialize)]
    struct Told {
        error: ErrorBody,
    }
    match serde_json::from_slice::<Told>(body) {
        Ok(Told { error }) => {
            Error::Refused(Box::new(Refusal::new(status, error, String::new(), None)))
        }
        Err(error) => Error::Unreadable {
            call: "GET /api/v1/events".to_owned(),
            status,
            reason: error.to_string(),
        },
    }
}
