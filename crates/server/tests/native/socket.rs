//! Connections: slow ones end, too many are turned away, and a stop ends long polls.

use super::server::{ADMIN, engine};
use mainspring_server::{Config, serve};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

async fn running(config: Config) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve(listener, engine().await, config, shutdown.clone()));
    Running { address, shutdown, task }
}

/// Sends `text` and reads until the server closes the connection.
async fn talk(address: SocketAddr, text: &str) -> String {
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

#[tokio::test]
async fn one_connection_too_many_is_turned_away_politely() {
    let server = running(Config { connections_max: 1, ..Config::standard() }).await;
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
