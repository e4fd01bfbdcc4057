//! Nobody takes everything: streams, calls that wait, connections and bodies have bounds for each
//! token and each tenant, and callers without a token get little.

use super::server::{ADMIN, Answer, Server, request};
use super::socket::{running, talk};
use hyper::{Method, StatusCode};
use mainspring_server::limits::{LEASE_BODY_BYTES_MAX, LEASE_ITEMS_MAX};
use mainspring_server::{Bounds, Config};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(20);

fn assert_told(answer: &Answer, code: &str) {
    let found = (answer.status, answer.code());
    assert_eq!(found, (StatusCode::TOO_MANY_REQUESTS, code.to_owned()), "{}", answer.text);
    assert!(answer.headers.contains_key("retry-after"), "{}", answer.text);
    assert_eq!(answer.json()["error"]["retryable"], true);
}

#[tokio::test]
async fn a_token_and_a_tenant_have_their_share_of_the_streams() {
    let streams = Bounds { all: 4, tenant: 2, token: 1 };
    let server = Server::with(Config { streams, ..Config::standard() }).await;
    let ann = server.token("t", "ann", &["viewer"]).await;
    let bob = server.token("t", "bob", &["viewer"]).await;
    let cem = server.token("t", "cem", &["viewer"]).await;
    let eve = server.token("other", "eve", &["viewer"]).await;
    let follow = |token: &str| request(Method::GET, "/api/v1/events", token, None);
    let first = server.send(follow(&ann)).await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_told(&server.ask(follow(&ann)).await, "TOO_MANY_STREAMS");
    let second = server.send(follow(&bob)).await;
    assert_eq!(second.status(), StatusCode::OK);
    assert_told(&server.ask(follow(&cem)).await, "TOO_MANY_STREAMS");
    let foreign = server.send(follow(&eve)).await;
    assert_eq!(foreign.status(), StatusCode::OK);
    drop(first);
    assert_eq!(server.send(follow(&ann)).await.status(), StatusCode::OK);
}

async fn until_parked(server: &Server, pulls: u64) {
    let parked = async {
        while server.engine.status().parked_pulls != pulls {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, parked).await.expect("the pull waits");
}

#[tokio::test]
async fn a_token_and_a_tenant_have_their_share_of_the_waiting_calls() {
    let waits = Bounds { all: 4, tenant: 2, token: 1 };
    let server = Arc::new(Server::with(Config { waits, ..Config::standard() }).await);
    let roles = ["worker", "submitter"];
    let ann = server.token("t", "ann", &roles).await;
    let bob = server.token("t", "bob", &roles).await;
    let cem = server.token("t", "cem", &roles).await;
    let eve = server.token("other", "eve", &roles).await;
    let path = "/api/v1/work/pull";
    let waiting = || json!({ "worker_id": "w", "wait_ms": 60_000 });
    let park = |token: &str| {
        let (server, token) = (server.clone(), token.to_owned());
        let body = waiting();
        tokio::spawn(async move { server.post(&token, path, body).await })
    };
    let first = park(&ann);
    until_parked(&server, 1).await;
    assert_told(&server.post(&ann, path, waiting()).await, "TOO_MANY_WAITS");
    // Asking without waiting is always possible.
    let now = server.post(&ann, path, json!({ "worker_id": "w" })).await;
    assert_eq!(now.status, StatusCode::OK);
    let job = json!({ "job_type": "t", "payload": 0, "delay_ms": 60_000 });
    let told = server.post(&ann, "/api/v1/jobs?wait_ms=60000", job.clone()).await;
    assert_told(&told, "TOO_MANY_WAITS");
    let jobs = server.get(ADMIN, "/api/v1/jobs").await.data();
    assert_eq!(jobs["items"], json!([]), "whoever is refused has submitted nothing");
    let _second = park(&bob);
    until_parked(&server, 2).await;
    assert_told(&server.post(&cem, path, waiting()).await, "TOO_MANY_WAITS");
    let _foreign = park(&eve);
    until_parked(&server, 3).await;
    // A report that comes with a pull is taken, whatever waits.
    let report = json!({ "items": [{ "job_id": "x", "lease_token": "y" }], "pull": waiting() });
    let taken = server.post(&ann, "/api/v1/work/complete", report).await;
    assert_eq!(taken.status, StatusCode::OK, "{}", taken.text);
    first.abort();
    assert!(first.await.is_err(), "whoever goes away waits no longer");
    let _again = park(&ann);
    until_parked(&server, 3).await;
}

fn get(token: &str) -> String {
    format!("GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
}

/// A connection that asked once as `token`, and the status it got.
async fn asked(address: std::net::SocketAddr, token: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(get(token).as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"meta\"") {
        let read = stream.read_buf(&mut seen).await.unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&seen));
    }
    (stream, String::from_utf8_lossy(&seen).into_owned())
}

#[tokio::test]
async fn a_token_has_its_share_of_the_connections() {
    let connections = Bounds { all: 100, tenant: 100, token: 2 };
    let server = running(Config { connections, ..Config::standard() }).await;
    let issue = |user: &str| {
        let body = json!({ "tenant_id": "t", "user_id": user, "roles": ["viewer"] }).to_string();
        format!(
            "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let token = |answer: String| {
        let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        let body: Value = serde_json::from_str(&body).unwrap();
        body["data"]["token"].as_str().unwrap().to_owned()
    };
    let ann = token(talk(server.address, &issue("ann")).await);
    let bob = token(talk(server.address, &issue("bob")).await);
    let (first, told) = asked(server.address, &ann).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    let (mut second, _) = asked(server.address, &ann).await;
    let (_third, told) = asked(server.address, &ann).await;
    assert!(told.starts_with("HTTP/1.1 429") && told.contains("TOO_MANY_CONNECTIONS"), "{told}");
    assert!(told.contains("retry-after: 1"), "{told}");
    let (_other, told) = asked(server.address, &bob).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    // A connection is of whoever asks on it now.
    second.write_all(get(&bob).as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"meta\"") {
        assert_ne!(second.read_buf(&mut seen).await.unwrap(), 0);
    }
    let (_fourth, told) = asked(server.address, &ann).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    drop(first);
    let freed = async {
        while !asked(server.address, &ann).await.1.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, freed).await.expect("a connection that ended is not counted");
}

#[tokio::test]
async fn without_a_token_reports_are_small_and_few() {
    let server = Server::new().await;
    let token = server.token("t", "w", &["worker"]).await;
    let items = |count: usize| {
        let item = json!({ "job_id": "job_x", "lease_token": "y" });
        json!({ "items": vec![item; count] })
    };
    for path in ["complete", "fail", "release"] {
        let path = format!("/api/v1/work/{path}");
        let few = server.post("", &path, items(LEASE_ITEMS_MAX)).await;
        assert_eq!(few.status, StatusCode::OK, "{}", few.text);
        let many = server.post("", &path, items(LEASE_ITEMS_MAX + 1)).await;
        let told = (many.status, many.code());
        assert_eq!(told, (StatusCode::BAD_REQUEST, "BATCH_TOO_LARGE".to_owned()));
        let known = server.post(&token, &path, items(LEASE_ITEMS_MAX + 1)).await;
        assert_eq!(known.status, StatusCode::OK, "{}", known.text);
        // A token that does not work is none.
        let unknown = server.post("nonsense", &path, items(LEASE_ITEMS_MAX + 1)).await;
        assert_eq!(unknown.code(), "BATCH_TOO_LARGE");
    }
    let mut beats = items(LEASE_ITEMS_MAX + 1);
    beats["worker_id"] = "w".into();
    assert_eq!(server.post("", "/api/v1/work/heartbeat", beats).await.code(), "BATCH_TOO_LARGE");
    let mut large = items(1);
    large["items"][0]["result"] = "x".repeat(LEASE_BODY_BYTES_MAX).into();
    let refused = server.post("", "/api/v1/work/complete", large.clone()).await;
    let told = (refused.status, refused.code());
    assert_eq!(told, (StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE".to_owned()));
    let taken = server.post(&token, "/api/v1/work/complete", large).await;
    assert_eq!(taken.status, StatusCode::OK, "{}", taken.text);
}

/// The head and the first bytes of a submission whose end is a long time coming.
async fn slow_body(address: std::net::SocketAddr, token: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        bytes + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; bytes]).await.unwrap();
    stream
}

fn batch(token: &str, bytes: usize) -> String {
    let body = format!("{{\"jobs\":[]}}{}", " ".repeat(bytes));
    format!(
        "POST /api/v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn bodies_have_so_much_room_and_a_token_its_share_of_it() {
    let kib = 1 << 10;
    let bodies = Bounds { all: 400 * kib, tenant: 400 * kib, token: 200 * kib };
    let server = running(Config { bodies, ..Config::standard() }).await;
    let until = async |text: &str, status: &str| {
        let asking = async {
            loop {
                let answer = talk(server.address, text).await;
                if answer.starts_with(&format!("HTTP/1.1 {status}")) {
                    return answer;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, asking).await.expect("the answer comes")
    };
    let large = batch(ADMIN, 150 * kib);
    until(&large, "200").await;
    let slow = slow_body(server.address, ADMIN, 150 * kib).await;
    let told = until(&large, "429").await;
    assert!(told.contains("TOO_MANY_BODIES") && told.contains("retry-after"), "{told}");
    // A small one still fits.
    until(&batch(ADMIN, 10), "200").await;
    // Announcing much takes no room: it is taken as it arrives.
    let announced = "POST /api/v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \
                     an admin token of our own\r\nContent-Type: application/json\r\n\
                     Content-Length: 10000000\r\n\r\n{";
    let mut announcing = TcpStream::connect(server.address).await.unwrap();
    announcing.write_all(announced.as_bytes()).await.unwrap();
    drop(slow);
    until(&large, "200").await;
}

/// Whoever announces nothing is stopped where whoever announces too much is.
#[tokio::test]
async fn a_body_in_pieces_is_bounded_like_any_other() {
    let config = Config { body_bytes_max: 1 << 10, ..Config::standard() };
    let server = Server::with(config).await;
    let told = async |pieces: usize| {
        let text = json!({ "job_type": "t", "payload": "x".repeat(pieces * 100) }).to_string();
        let pieces: Vec<_> = text
            .as_bytes()
            .chunks(100)
            .map(|piece| {
                Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(
                    bytes::Bytes::copy_from_slice(piece),
                ))
            })
            .collect();
        let body = http_body_util::StreamBody::new(futures_util::stream::iter(pieces));
        let (head, _) = request(Method::POST, "/api/v1/jobs", ADMIN, Some(json!({}))).into_parts();
        server.app.respond(hyper::Request::from_parts(head, body)).await.status()
    };
    assert_eq!(told(5).await, StatusCode::CREATED);
    assert_eq!(told(11).await, StatusCode::PAYLOAD_TOO_LARGE);
}
