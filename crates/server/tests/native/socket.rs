//! Connections: slow ones end, too many are turned away, and a stop ends long polls.

use super::server::{ADMIN, engine};
use mainspring_server::limits::UNSENT_BYTES_MAX;
use mainspring_server::{Bounds, Config, serve};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

pub(crate) async fn running(config: Config) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve(listener, engine().await, config, shutdown.clone()));
    Running { address, shutdown, task }
}

/// Sends `text` and reads until the server closes the connection.
pub(crate) async fn talk(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A server that resets the connection has closed it, too.
    let _ = tokio::time::timeout(Duration::from_secs(20), read).await.expect("it closes");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn two_requests_share_a_connection() {
    let server = running(Config::standard()).await;
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    let text = format!("{head}\r\n{head}Connection: close\r\n\r\n");
    let answer = talk(server.address, &text).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection_and_idleness_is_borne_longer() {
    let config = Config {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(600),
        ..Config::standard()
    };
    let server = running(config).await;
    assert_eq!(talk(server.address, "").await, "");
    assert_eq!(talk(server.address, "GET /healthz HT").await, "");
    let started = tokio::time::Instant::now();
    let answer = talk(server.address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(started.elapsed() >= Duration::from_millis(500), "{:?}", started.elapsed());
}

/// So much that no pair of socket buffers holds it.
const ANSWERS: usize = 400;

const LIMIT: Duration = Duration::from_secs(30);

fn get(path: &str, token: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{more}\r\n")
}

/// A client that asks for much and reads nothing of it.
async fn never_reads(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let asks = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(ANSWERS);
    stream.write_all(asks.as_bytes()).await.unwrap();
    stream
}

/// Asks until the answer is one that `is_it` likes.
async fn ask_until(address: SocketAddr, text: &str, is_it: impl Fn(&str) -> bool) -> String {
    let asking = async {
        loop {
            let answer = talk(address, text).await;
            if is_it(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, asking).await.expect("the answer comes")
}

fn all(most: usize) -> Bounds {
    Bounds { all: most, tenant: most, token: most }
}

#[tokio::test]
async fn one_connection_too_many_is_turned_away_politely() {
    let hour = Duration::from_secs(3600);
    let config = Config {
        connections: all(1),
        connections_kept: 0,
        evict_after: hour,
        ..Config::standard()
    };
    let server = running(config).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    first.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = [0; 12];
    first.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"HTTP/1.1 200");
    let answer = talk(server.address, "").await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("TOO_MANY_CONNECTIONS"),
        "{answer}"
    );
}

/// Bytes that the operating system holds for the other end of `client`, as the kernel tells them.
fn unsent(server: SocketAddr, client: SocketAddr) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let place = |address: SocketAddr| format!("0100007F:{:04X}", address.port());
    let ends = format!("{} {}", place(server), place(client));
    let line = table.lines().find(|line| line.contains(&ends))?;
    let queues = line.split_whitespace().nth(4)?;
    u64::from_str_radix(queues.split(':').next()?, 16).ok()
}

/// The memory for what is unsent is the whole machine's: 4,096 clients that took 600 KB of it each
/// stopped every other connection.
#[tokio::test]
async fn what_nobody_reads_takes_little_of_the_systems_memory() {
    const SAME: u32 = 50;
    let config = Config { write_timeout: Duration::from_secs(3600), ..Config::standard() };
    let server = running(config).await;
    let client = never_reads(server.address).await;
    let own = client.local_addr().unwrap();
    let settling = async {
        let (mut held, mut same) = (0, 0);
        while same < SAME || held == 0 {
            let now = unsent(server.address, own).expect("the connection is in the table");
            same = if now == held { same + 1 } else { 0 };
            held = now;
            tokio::time::sleep(Duration::from_millis(2)).await; // paced: until it fills no further
        }
        held
    };
    let held = tokio::time::timeout(LIMIT, settling).await.expect("it fills up");
    // What the client's side would not take any more, and a write that began below the bound; how
    // much of a write is taken at once depends on the length of the answer.
    assert!(held <= 3 * u64::from(UNSENT_BYTES_MAX), "{held}");
}

/// Every seat is taken by a client that never reads, and none is put out: what is left are the
/// seats kept for probes and operators.
#[tokio::test]
async fn probes_and_operators_are_served_beside_clients_that_never_read() {
    let config = Config {
        connections: all(24),
        connections_kept: 2,
        evict_after: Duration::from_secs(3600),
        write_timeout: Duration::from_secs(3600),
        ..Config::standard()
    };
    let server = running(config).await;
    let mut hostile = Vec::new();
    for _ in 0..24 {
        hostile.push(never_reads(server.address).await);
    }
    let close = "Connection: close\r\n";
    let stranger = get("/api/v1/jobs", "nobody", close);
    ask_until(server.address, &stranger, |it| it.starts_with("HTTP/1.1 401")).await;
    for _ in 0..5 {
        let probe = talk(server.address, &get("/healthz", "", close)).await;
        assert!(probe.starts_with("HTTP/1.1 200"), "{probe}");
        let operator = talk(server.address, &get("/api/v1/jobs", ADMIN, close)).await;
        assert!(operator.starts_with("HTTP/1.1 200"), "{operator}");
    }
    // A lease is no reason to sit there.
    let text = "POST /api/v1/work/complete HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\
                Content-Type: application/json\r\n\r\n{}";
    let worker = talk(server.address, text).await;
    assert!(worker.starts_with("HTTP/1.1 503"), "{worker}");
    assert!(worker.contains("TOO_MANY_CONNECTIONS"), "{worker}");
    // Whoever says nothing on a kept seat does not keep it.
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let probe = talk(server.address, &get("/healthz", "", close)).await;
    assert!(probe.starts_with("HTTP/1.1 200"), "{probe}");
}

#[tokio::test]
async fn the_slowest_client_makes_room_for_a_new_one() {
    let config = Config {
        connections: all(8),
        connections_kept: 0,
        evict_after: Duration::from_millis(50),
        write_timeout: Duration::from_secs(3600),
        ..Config::standard()
    };
    let server = running(config).await;
    // Four that never read, two that never speak again, one in the middle of a body.
    let mut hostile = Vec::new();
    for _ in 0..4 {
        hostile.push(never_reads(server.address).await);
    }
    for _ in 0..2 {
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        idle.write_all(get("/healthz", "", "").as_bytes()).await.unwrap();
        hostile.push(idle);
    }
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    hostile.push(slow);
    // The one that is being worked for stays: it waits for the server, not the other way round.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(get("/api/v1/events", ADMIN, "").as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(": welcome") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "the stream ended");
    }
    // Seven newcomers that stay need seven seats.
    let mut newcomers = Vec::new();
    for _ in 0..7 {
        let asking = async {
            loop {
                let mut newcomer = TcpStream::connect(server.address).await.unwrap();
                let follow = get("/api/v1/events", ADMIN, "");
                let _ = newcomer.write_all(follow.as_bytes()).await;
                let mut bytes = [0; 12];
                if newcomer.read_exact(&mut bytes).await.is_ok() && &bytes == b"HTTP/1.1 200" {
                    return newcomer;
                }
                tokio::task::yield_now().await;
            }
        };
        newcomers.push(tokio::time::timeout(LIMIT, asking).await.expect("there is room"));
    }
    server.shutdown.cancel();
    let rest = tokio::time::timeout(LIMIT, stream.read_to_end(&mut seen)).await;
    assert!(rest.unwrap().is_ok(), "the stream was put out");
}

#[tokio::test]
async fn an_answer_that_nobody_takes_ends_its_connection() {
    let config = Config {
        connections: all(1),
        connections_kept: 0,
        evict_after: Duration::from_secs(3600),
        write_timeout: Duration::from_millis(200),
        ..Config::standard()
    };
    let server = running(config).await;
    let _hostile = never_reads(server.address).await;
    let probe = get("/healthz", "", "Connection: close\r\n");
    let is_away = |answer: &str| !answer.starts_with("HTTP/1.1 200");
    ask_until(server.address, &probe, is_away).await;
    ask_until(server.address, &probe, |answer| answer.starts_with("HTTP/1.1 200")).await;
}

#[tokio::test]
async fn a_steady_reader_gets_all_of_a_long_answer() {
    let config = Config { write_timeout: Duration::from_millis(500), ..Config::standard() };
    let server = running(config).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let ask = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n";
    let asks = format!("{}{ask}Connection: close\r\n\r\n", format!("{ask}\r\n").repeat(100));
    stream.write_all(asks.as_bytes()).await.unwrap();
    let (mut answers, mut piece) = (0, vec![0; 256 << 10]);
    let mut tail = Vec::new();
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await; // paced: a reader of about 50 MB/s
        let read = stream.read(&mut piece).await.unwrap();
        if read == 0 {
            break;
        }
        tail.extend_from_slice(&piece[..read]);
        let mark = b"HTTP/1.1 200 OK";
        let found = tail.windows(mark.len()).filter(|window| window == mark).count();
        answers += found;
        // What may be the beginning of the next mark is looked at again.
        let keep = tail.len().min(mark.len() - 1);
        tail.drain(..tail.len() - keep);
    }
    assert_eq!(answers, 101);
}

#[tokio::test]
async fn a_stop_ends_long_polls_and_closes_the_door() {
    let server = running(Config::standard()).await;
    let body = r#"{"worker_id":"w","wait_ms":60000}"#;
    let text = format!(
        "POST /api/v1/work/pull HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = server.address;
    let poll = tokio::spawn(async move { talk(address, &text).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    let follow = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
    );
    stream.write_all(follow.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(": welcome") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "the stream ended");
    }
    server.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(5), server.task).await.unwrap().unwrap().unwrap();
    let answer = poll.await.unwrap();
    let is_told = answer.contains("\"jobs\":[]") || answer.contains("SHUTTING_DOWN");
    assert!(is_told, "{answer}");
    assert!(TcpStream::connect(address).await.is_err());
}
