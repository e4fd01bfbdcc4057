//! A receiver of events that can be killed and started again on the same port. What it has taken
//! it keeps over all its lives; what it was sent in a life that ended before the answer was out it
//! has not taken.

#![allow(dead_code, clippy::unwrap_used, reason = "not every test needs all of it")]

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }

    pub(crate) fn position(&self) -> u64 {
        self.json()["data"]["position"].as_u64().expect("a position")
    }

    /// Whether the signature is right for a secret as it was shown.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = unbase64(secret.strip_prefix("whsec_").expect("a secret"));
        let said = [self.id(), ".", self.header("webhook-timestamp"), "."].concat();
        let signed = hmac(&key, &[said.as_bytes(), &self.body].concat());
        self.header("webhook-signature")
            .split(' ')
            .any(|it| it == format!("v1,{}", base64(&signed)))
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

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
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

fn unbase64(text: &str) -> Vec<u8> {
    let (mut bytes, mut whole, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().take_while(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter).expect("a letter of base64");
        (whole, bits) = (whole << 6 | value as u32, bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((whole >> bits) as u8);
        }
    }
    bytes
}

/// A receiver.
pub(crate) struct Inbox {
    pub(crate) address: SocketAddr,
    taken: Arc<Mutex<Vec<Received>>>,
    status: Arc<AtomicU16>,
    life: Option<Life>,
}

struct Life {
    is_over: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Inbox {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let status = Arc::new(AtomicU16::new(204));
        let mut inbox = Inbox { address, taken: Arc::default(), status, life: None };
        inbox.live(listener);
        inbox
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// Answers with this status from now on; what is not success is not taken.
    pub(crate) fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Ends it at once, whoever is speaking.
    pub(crate) fn kill(&mut self) {
        let Some(life) = self.life.take() else { return };
        life.is_over.store(true, Ordering::SeqCst);
        for stream in life.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The one who waits for connections looks up and sees that it is over.
        let _ = TcpStream::connect(self.address);
    }

    /// Starts it again on the same port.
    pub(crate) fn revive(&mut self) {
        let listener = mainspring_testkit::blackbox::eventually("the port is free", || {
            TcpListener::bind(self.address).ok()
        });
        self.live(listener);
    }

    fn live(&mut self, listener: TcpListener) {
        let (is_over, streams) =
            (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<_>>>::default());
        self.life = Some(Life { is_over: is_over.clone(), streams: streams.clone() });
        let (taken, status) = (self.taken.clone(), self.status.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                streams.lock().unwrap().extend(stream.try_clone());
                let (taken, status, is_over) = (taken.clone(), status.clone(), is_over.clone());
                std::thread::spawn(move || serve(stream, &taken, &status, &is_over));
            }
        });
    }

    /// All that was taken so far, in the order in which it came.
    pub(crate) fn taken(&self) -> Vec<Received> {
        self.taken.lock().unwrap().clone()
    }

    /// The ids of it.
    pub(crate) fn ids(&self) -> BTreeSet<String> {
        self.taken.lock().unwrap().iter().map(|it| it.id().to_owned()).collect()
    }

    /// The ids of the events of one name.
    pub(crate) fn named(&self, name: &str) -> Vec<Received> {
        self.taken().into_iter().filter(|it| it.json()["type"] == name).collect()
    }
}

fn serve(
    mut stream: TcpStream,
    taken: &Mutex<Vec<Received>>,
    status: &AtomicU16,
    is_over: &AtomicBool,
) {
    let mut bytes = Vec::new();
    while let Some(received) = read(&mut stream, &mut bytes) {
        let status = status.load(Ordering::SeqCst);
        let mut kept = taken.lock().unwrap();
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        if status < 300 {
            kept.push(received);
        }
        drop(kept);
        let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The next request of a connection; what came too early waits in `bytes`.
fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Received> {
    let mut chunk = [0; 4096];
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
            let headers: Vec<(String, String)> = text
                .split("\r\n")
                .skip(1)
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect();
            let mut received = Received { headers, body: Vec::new() };
            let length: usize = received.header("content-length").parse().ok()?;
            if bytes.len() >= head + 4 + length {
                let rest = bytes.split_off(head + 4 + length);
                received.body = bytes.split_off(head + 4);
                *bytes = rest;
                return Some(received);
            }
        }
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
}
