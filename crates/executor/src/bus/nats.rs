//! A NATS server as a receiver: publishes one message at a time and waits for JetStream to say that
//! it is stored. The protocol is lines of text; what is not needed for that is not here
//! (`docs/decisions/0014-own-nats-client.md`).
//!
//! The id of the event is the message's `Nats-Msg-Id`, so that the server stores a repeat once,
//! within the window of its stream.

use crate::limits::{NATS_ACK_BYTES_MAX, NATS_LINE_BYTES_MAX, NATS_TRUSTED};
use crate::webhook::Exchange;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;

const PORT: u16 = 4222;

/// Where a NATS server is, and who we are there.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsServer {
    host: String,
    port: u16,
    is_encrypted: bool,
    user: Option<String>,
    password: Option<String>,
}

/// Text that names no NATS server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be like nats://host:4222 or tls://user:password@host:4222")]
pub struct BadNats;

impl FromStr for NatsServer {
    type Err = BadNats;

    fn from_str(text: &str) -> Result<Self, BadNats> {
        let url = Url::parse(text).map_err(|_| BadNats)?;
        let is_encrypted = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err(BadNats),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(BadNats)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(BadNats);
        }
        let plain = |text: &str| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
            decoded.map(|text| text.into_owned()).map_err(|_| BadNats)
        };
        let user = Some(url.username()).filter(|user| !user.is_empty()).map(plain).transpose()?;
        Ok(NatsServer {
            // An address of six parts stands in brackets, which no connection wants.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(PORT),
            is_encrypted,
            user,
            password: url.password().map(plain).transpose()?,
        })
    }
}

/// The password is not shown.
impl fmt::Display for NatsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NatsServer { host, port, is_encrypted, user, .. } = self;
        let scheme = if *is_encrypted { "tls" } else { "nats" };
        let who = if user.is_some() { "***@" } else { "" };
        match host.contains(':') {
            true => write!(f, "{scheme}://{who}[{host}]:{port}"),
            false => write!(f, "{scheme}://{who}{host}:{port}"),
        }
    }
}

impl fmt::Debug for NatsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A connection that answers.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire for S {}

/// Publishes to one server.
pub(super) struct Nats {
    server: NatsServer,
    exchange: Exchange,
    /// Nobody else's answers come here.
    inbox: String,
    /// Messages published so far.
    count: u64,
    link: Option<(Link, Instant)>,
}

/// One connection.
struct Link {
    wire: BufReader<Box<dyn Wire>>,
}

/// What a server says of itself first.
#[derive(Deserialize)]
struct Greeting {
    #[serde(default)]
    tls_required: bool,
    #[serde(default)]
    headers: bool,
}

#[derive(Serialize)]
struct Introduction<'a> {
    verbose: bool,
    pedantic: bool,
    tls_required: bool,
    headers: bool,
    no_responders: bool,
    lang: &'static str,
    version: &'static str,
    name: &'static str,
    protocol: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_token: Option<&'a str>,
}

/// What JetStream says to a message.
#[derive(Deserialize)]
struct Ack {
    #[serde(default)]
    stream: String,
    error: Option<AckError>,
}

#[derive(Deserialize)]
struct AckError {
    #[serde(default)]
    description: String,
}

impl Nats {
    pub(super) fn new(server: NatsServer, exchange: Exchange, bits: u128) -> Self {
        Nats { server, exchange, inbox: format!("_INBOX.{bits:032x}"), count: 0, link: None }
    }

    /// Publishes one message; JetStream has stored it when this comes back.
    pub(super) async fn publish(
        &mut self,
        subject: &str,
        id: &str,
        body: &[u8],
    ) -> Result<(), String> {
        let is_trusted = |(_, used): &(Link, Instant)| used.elapsed() < NATS_TRUSTED;
        let mut link = match self.link.take().filter(is_trusted) {
            Some((link, _)) => link,
            None => Link::open(&self.server, &self.exchange, &self.inbox).await?,
        };
        self.count += 1;
        let reply = format!("{}.{}", self.inbox, self.count);
        link.publish((subject, &reply), id, body).await?;
        self.link = Some((link, Instant::now()));
        Ok(())
    }
}

impl Link {
    async fn open(server: &NatsServer, exchange: &Exchange, inbox: &str) -> Result<Self, String> {
        let NatsServer { host, port, .. } = server;
        let failed = |error: std::io::Error| format!("no connection to {server}: {error}");
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let mut stream = BufReader::new(stream);
        let line = line(&mut stream).await?;
        let greeting: Greeting = line
            .strip_prefix("INFO ")
            .and_then(|text| serde_json::from_str(text).ok())
            .ok_or_else(|| format!("{server} is no NATS server"))?;
        if !greeting.headers {
            return Err(format!("{server} knows no headers; it is too old"));
        }
        let is_encrypted = server.is_encrypted || greeting.tls_required;
        let wire: Box<dyn Wire> = match is_encrypted {
            true => Box::new(exchange.encrypted(host.clone(), stream.into_inner()).await?),
            false => Box::new(stream),
        };
        let mut link = Link { wire: BufReader::new(wire) };
        // Alone it is a token, with a password a user.
        let (user, token) = match &server.password {
            Some(_) => (server.user.as_deref(), None),
            None => (None, server.user.as_deref()),
        };
        let introduction = serde_json::to_string(&Introduction {
            verbose: false,
            pedantic: false,
            tls_required: is_encrypted,
            headers: true,
            no_responders: true,
            lang: "rust",
            version: env!("CARGO_PKG_VERSION"),
            name: "mainspring",
            protocol: 1,
            user,
            pass: server.password.as_deref(),
            auth_token: token,
        });
        let introduction = introduction.map_err(|error| error.to_string())?;
        let text = format!("CONNECT {introduction}\r\nSUB {inbox}.* 1\r\nPING\r\n");
        link.write(text.as_bytes()).await?;
        // Refused names and passwords are told before this.
        while link.next().await?.is_some() {}
        Ok(link)
    }

    async fn publish(
        &mut self,
        (subject, reply): (&str, &str),
        id: &str,
        body: &[u8],
    ) -> Result<(), String> {
        let head = format!("NATS/1.0\r\nNats-Msg-Id: {id}\r\n\r\n");
        let (head_len, len) = (head.len(), head.len() + body.len());
        let mut message = format!("HPUB {subject} {reply} {head_len} {len}\r\n{head}").into_bytes();
        message.extend_from_slice(body);
        message.extend_from_slice(b"\r\n");
        self.write(&message).await?;
        loop {
            let Some((to, answer)) = self.next().await? else { continue };
            // An answer to a message that was given up before.
            if to != reply {
                continue;
            }
            let ack: Result<Ack, _> = serde_json::from_slice(&answer);
            return match ack {
                Ok(Ack { error: Some(error), .. }) => {
                    Err(format!("JetStream refused it: {}", error.description))
                }
                Ok(Ack { stream, error: None }) if !stream.is_empty() => Ok(()),
                Ok(_) | Err(_) => Err(format!("no stream of JetStream has the subject {subject}")),
            };
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the NATS server is gone: {error}");
        self.wire.write_all(bytes).await.map_err(failed)?;
        self.wire.flush().await.map_err(failed)
    }

    /// The next message with where it went, or nothing for a sign of life.
    async fn next(&mut self) -> Result<Option<(String, Vec<u8>)>, String> {
        loop {
            let line = line(&mut self.wire).await?;
            let mut words = line.split_ascii_whitespace();
            let verb = words.next().unwrap_or_default().to_ascii_uppercase();
            let words: Vec<&str> = words.collect();
            match (verb.as_str(), words.as_slice()) {
                ("PING", _) => self.write(b"PONG\r\n").await?,
                ("PONG", _) => return Ok(None),
                ("INFO" | "+OK", _) => {}
                ("-ERR", _) => return Err(format!("the NATS server says {}", line[4..].trim())),
                ("MSG", [to, _, .., len]) => {
                    let to = (*to).to_owned();
                    return Ok(Some((to, self.body(0, len).await?)));
                }
                ("HMSG", [to, _, .., head, len]) => {
                    let (to, head) = ((*to).to_owned(), size(head)?);
                    return Ok(Some((to, self.body(head, len).await?)));
                }
                _ => return Err("the NATS server says what nobody understands".to_owned()),
            }
        }
    }

    /// A body without its head.
    async fn body(&mut self, head: usize, len: &str) -> Result<Vec<u8>, String> {
        let len = size(len)?;
        let mut bytes = vec![0; len + 2];
        let read = self.wire.read_exact(&mut bytes).await;
        read.map_err(|error| format!("the NATS server is gone: {error}"))?;
        bytes.truncate(len);
        Ok(bytes.split_off(head.min(len)))
    }
}

fn size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size <= NATS_ACK_BYTES_MAX);
    size.ok_or_else(|| "the NATS server sends more than an answer".to_owned())
}

/// The next line, without its end.
async fn line<S: AsyncRead + Unpin>(wire: &mut BufReader<S>) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut limited = wire.take(NATS_LINE_BYTES_MAX);
    let read = limited.read_until(b'\n', &mut bytes).await;
    read.map_err(|error| format!("the NATS server is gone: {error}"))?;
    if bytes.pop() != Some(b'\n') {
        return Err("the NATS server has closed the connection".to_owned());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| "the NATS server sends no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_its_password_is_not_shown() {
        let server: NatsServer = "tls://ada:s%40crt@nats.example".parse().unwrap();
        assert_eq!((&*server.host, server.port, server.is_encrypted), ("nats.example", 4222, true));
        assert_eq!(server.password.as_deref(), Some("s@crt"));
        assert_eq!(format!("{server} {server:?}"), "tls://***@nats.example:4222 ".repeat(2).trim());
        let server: NatsServer = "nats://[::1]:4333/".parse().unwrap();
        assert_eq!((&*server.host, server.port), ("::1", 4333));
        assert_eq!(server.to_string(), "nats://[::1]:4333");
        for bad in ["", "nats://", "http://a", "nats://a/b", "nats://a?b=1", "a:4222"] {
            assert_eq!(bad.parse::<NatsServer>(), Err(BadNats), "{bad}");
        }
    }

    /// Plays a server that says `lines` after the introduction.
    async fn told(lines: &str) -> Result<(), String> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (mut near, mut far) = (Link { wire: BufReader::new(Box::new(ours)) }, theirs);
        far.write_all(lines.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        near.publish(("a.job.failed", "_INBOX.1.7"), "evt_1", b"{}").await
    }

    #[tokio::test]
    async fn only_an_acknowledgement_of_this_message_counts() {
        let ack = "{\"stream\":\"S\",\"seq\":1}";
        let msg = |to: &str, text: &str| format!("MSG {to} 1 {}\r\n{text}\r\n", text.len());
        let stale = msg("_INBOX.1.6", "{\"error\":{\"description\":\"old\"}}");
        assert_eq!(told(&(stale.clone() + &msg("_INBOX.1.7", ack))).await, Ok(()));
        assert_eq!(told(&format!("PING\r\n+OK\r\n{}", msg("_INBOX.1.7", ack))).await, Ok(()));
        let full = msg("_INBOX.1.7", "{\"error\":{\"code\":503,\"description\":\"full\"}}");
        assert_eq!(told(&full).await, Err("JetStream refused it: full".to_owned()));
        let nobody = "HMSG _INBOX.1.7 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
        assert!(told(nobody).await.unwrap_err().contains("no stream"));
        assert!(told("-ERR 'Authorization Violation'\r\n").await.is_err());
        assert!(told("MSG _INBOX.1.7 1 999999999\r\n").await.unwrap_err().contains("more than"));
        assert!(told("what?\r\n").await.is_err());
        assert!(told(&stale).await.is_err(), "the connection ends before the answer");
    }
}
