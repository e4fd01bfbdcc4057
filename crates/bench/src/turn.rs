//! The limit of one durable job per request: the least that could be done for it, on one thread. A
//! turn reads every request that is there, puts each job into a map, overwrites a piece of a file
//! that is there already, syncs it once and answers all. It checks nothing, keeps no history and
//! cannot be restarted; a scheduler that comes near it wastes little.

use anyhow::{Context, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file that is written over and over, as a journal's segment is.
const FILE_BYTES: u64 = 64 << 20;
/// Connections that are looked at in one turn, at most.
const TURN_MAX: usize = 1_024;
/// About what the answer to a submission weighs.
const ANSWER_BYTES: usize = 400;
/// What names the listener; connections are numbered from 1.
const LISTENER: u64 = 0;

/// What is read of a job.
#[derive(Deserialize)]
struct Wish<'a> {
    job_type: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

struct Connection {
    stream: TcpStream,
    /// What has arrived and was not taken yet.
    unread: Vec<u8>,
}

/// Serves until the process ends.
pub(crate) fn serve(address: SocketAddr, folder: &Path) -> anyhow::Result<()> {
    let file = File::create_new(folder.join("turn.log"))?;
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let mut jobs: HashMap<u64, (Box<str>, Box<str>)> = HashMap::new();
    let answer = answer();
    let (mut events, mut frames, mut end) = (Vec::with_capacity(TURN_MAX), Vec::new(), 0);
    let (mut named, mut count) = (LISTENER, 0_u64);
    loop {
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        let mut asked = Vec::new();
        for event in events.drain(..) {
            let name = event.data.u64();
            if name == LISTENER {
                while let Some(stream) = accepted(&listener)? {
                    named += 1;
                    let data = epoll::EventData::new_u64(named);
                    epoll::add(&poll, &stream, data, epoll::EventFlags::IN)?;
                    connections.insert(named, Connection { stream, unread: Vec::new() });
                }
                continue;
            }
            let Some(connection) = connections.get_mut(&name) else { continue };
            if !connection.read()? {
                connections.remove(&name);
                continue;
            }
            while let Some((start, whole)) = request(&connection.unread)? {
                let body = &connection.unread[start..whole];
                let wish: Wish<'_> = serde_json::from_slice(body)?;
                count += 1;
                jobs.insert(count, (wish.job_type.into(), wish.payload.get().into()));
                frames.extend_from_slice(body);
                connection.unread.drain(..whole);
                asked.push(name);
            }
        }
        if asked.is_empty() {
            continue;
        }
        if end + frames.len() as u64 > FILE_BYTES {
            end = 0;
        }
        file.write_all_at(&frames, end)?;
        file.sync_data()?;
        end += frames.len() as u64;
        frames.clear();
        for name in asked {
            if let Some(connection) = connections.get_mut(&name) {
                connection.stream.write_all(&answer)?;
            }
        }
    }
}

fn answer() -> Vec<u8> {
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(ANSWER_BYTES - 11));
    let head = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

fn accepted(listener: &TcpListener) -> anyhow::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(Some(stream))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Connection {
    /// Reads what is there; says whether the client is.
    fn read(&mut self) -> anyhow::Result<bool> {
        let mut piece = [0; 8 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(bytes) => {
                    self.unread.extend_from_slice(&piece[..bytes]);
                    if bytes < piece.len() {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Where the body of the first request begins and ends, if all of it is there.
fn request(bytes: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(bytes)? else { return Ok(None) };
    let is_length =
        |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("content-length");
    let Some(length) = head.headers.iter().find(is_length) else {
        bail!("a request without a body")
    };
    let length: usize =
        std::str::from_utf8(length.value)?.parse().context("a length that is no number")?;
    Ok((bytes.len() >= start + length).then_some((start, start + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_when_all_of_it_is_there() {
        let text = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST";
        assert_eq!(request(text).unwrap(), Some((38, 41)));
        assert_eq!(request(&text[..40]).unwrap(), None);
        assert_eq!(request(&text[..20]).unwrap(), None);
        assert!(request(b"GET / HTTP/1.1\r\n\r\n").is_err());
    }
}
