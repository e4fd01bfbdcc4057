//! Debian's NATS server as a process of the test, and a client that asks it what it has stored.

use mainspring_testkit::blackbox::eventually;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A server with JetStream; killed when the test lets go of it.
pub(crate) struct NatsServer {
    pub(crate) address: SocketAddr,
    directory: TempDir,
    child: Option<Child>,
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let directory = tempfile::tempdir().expect("a directory");
        let mut server = NatsServer { address, directory, child: None };
        server.revive();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://ann:s3cret@{}", self.address)
    }

    /// Starts it with whatever it had stored.
    pub(crate) fn revive(&mut self) {
        let child = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", &self.address.port().to_string()])
            .args(["--user", "ann", "--pass", "s3cret", "-js", "-sd"])
            .arg(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin")
            .spawn()
            .expect("nats-server is installed: apt-get install nats-server");
        self.child = Some(child);
        eventually("the NATS server listens", || Client::open(self.address).ok());
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::open(self.address).expect("it takes connections")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Asks one thing after another.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    asked: usize,
}

impl Client {
    fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut client = Client { stream: BufReader::new(stream), asked: 0 };
        client.line()?;
        let who = json!({ "verbose": false, "user": "ann", "pass": "s3cret", "headers": true,
            "no_responders": true });
        client.say(&format!("CONNECT {who}\r\nSUB me.* 1\r\nPING\r\n"))?;
        while client.line()? != "PONG" {}
        Ok(client)
    }

    fn say(&mut self, text: &str) -> std::io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Asks JetStream something; what it says.
    pub(crate) fn ask(&mut self, what: &str, body: &Value) -> Value {
        self.asked += 1;
        let (body, reply) = (body.to_string(), format!("me.{}", self.asked));
        let text = format!("PUB $JS.API.{what} {reply} {}\r\n{body}\r\n", body.len());
        self.say(&text).expect("it listens");
        loop {
            let line = self.line().expect("it answers");
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["MSG", to, .., len] => {
                    let mut bytes = vec![0; len.parse::<usize>().expect("a length") + 2];
                    self.stream.read_exact(&mut bytes).expect("a message");
                    if *to == reply {
                        bytes.truncate(bytes.len() - 2);
                        return serde_json::from_slice(&bytes).expect("JSON");
                    }
                }
                ["PING"] => self.say("PONG\r\n").expect("it listens"),
                ["HMSG", ..] => return Value::Null,
                _ => {}
            }
        }
    }

    /// Makes a stream of these subjects.
    pub(crate) fn make(&mut self, name: &str, subjects: &str) {
        let wish = json!({ "name": name, "subjects": [subjects], "retention": "limits",
            "storage": "file", "num_replicas": 1, "duplicate_window": 120_000_000_000_u64 });
        let made = self.ask(&format!("STREAM.CREATE.{name}"), &wish);
        assert!(made.get("error").is_none(), "{made}");
    }

    /// How many messages a stream has.
    pub(crate) fn count(&mut self, name: &str) -> u64 {
        let told = self.ask(&format!("STREAM.INFO.{name}"), &Value::Null);
        told["state"]["messages"].as_u64().unwrap_or(0)
    }

    /// Subject, head and body of one message.
    pub(crate) fn message(&mut self, name: &str, seq: u64) -> (String, String, Value) {
        let told = self.ask(&format!("STREAM.MSG.GET.{name}"), &json!({ "seq": seq }));
        let message = &told["message"];
        let field = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
        let plain = |text: &str| String::from_utf8(unbase64(text)).expect("text");
        let body = serde_json::from_str(&plain(&field("data"))).expect("JSON");
        (field("subject"), plain(&field("hdrs")), body)
    }
}

fn unbase64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
