//! Somebody who listens: takes requests one by one, keeps what came, and answers as it was told.

use mainspring_testkit::blackbox::eventually;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }

    /// Whether the signature is right for this secret.
    pub(crate) fn is_signed_with(&self, key: &[u8]) -> bool {
        let (id, at) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let said = [id.as_bytes(), b".", at.as_bytes(), b".", &self.body].concat();
        let wanted = format!("v1,{}", base64(&hmac(key, &said)));
        self.header("webhook-signature").split(' ').any(|signed| signed == wanted)
    }
}

/// By the book, apart from what the product uses.
fn hmac(key: &[u8], said: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(said);
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let whole = three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        let whole = whole << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(whole >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// A receiver, for as long as the test lasts.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    connections: Arc<Mutex<usize>>,
}

impl Receiver {
    /// Answers every request with the bytes that `answer` makes of it. An empty answer is none: the
    /// connection stays open for as long as the other side likes.
    pub(crate) fn start(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let receiver = Receiver { address, received: Arc::default(), connections: Arc::default() };
        let (kept, answer) = (receiver.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                *kept.connections.lock().unwrap() += 1;
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || kept.serve(stream, &*answer));
            }
        });
        receiver
    }

    fn serve(&self, mut stream: TcpStream, answer: &(dyn Fn(&Received) -> Vec<u8> + Send + Sync)) {
        let Some(received) = read(&mut stream) else { return };
        let bytes = answer(&received);
        self.received.lock().unwrap().push(received);
        if bytes.is_empty() {
            // Until the other side has had enough.
            let _ = stream.read(&mut [0; 1]);
        }
        let _ = stream.write_all(&bytes);
    }

    /// All that came so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// How often somebody connected.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    /// The request about this job.
    pub(crate) fn about(&self, job: &str) -> Received {
        eventually("the request comes", || {
            self.received().into_iter().find(|it| it.json()["job_id"] == job)
        })
    }
}

/// An answer with this status, these headers and this body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut chunk) {
            // A handshake of TLS is nothing that we understand.
            Ok(1..) if bytes.is_empty() && chunk[0] == 0x16 => {
                let _ = stream.write_all(&answer("400 Bad Request", "", ""));
                return None;
            }
            Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
            Ok(_) | Err(_) => return None,
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut received = Received { line, headers, body: bytes[head + 4..].to_vec() };
    let length: usize = received.header("content-length").parse().ok()?;
    while received.body.len() < length {
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => received.body.extend_from_slice(&chunk[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
    Some(received)
}
