//! Answers in pieces of any size, several behind each other, streams, and ends that come early.

use super::*;
use std::net::TcpListener;

/// A connection on which these pieces come, one after the other, and then the end.
fn told(pieces: Vec<Vec<u8>>) -> Connection {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let connection = Connection::open(listener.local_addr().unwrap()).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    std::thread::spawn(move || {
        for piece in pieces {
            let _ = stream.write_all(&piece);
        }
    });
    connection
}

fn all(text: &str) -> Connection {
    told(vec![text.as_bytes().to_vec()])
}

const PLAIN: &str = "HTTP/1.1 201 Created\r\nA: b\r\nContent-Length: 3\r\n\r\nabc";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";

#[test]
fn answers_behind_each_other_are_read_whatever_the_pieces() {
    let wire = format!("{PLAIN}{CHUNKED}HTTP/1.1 204 No Content\r\n\r\n{PLAIN}");
    for size in [1, 2, 3, 7, 40, wire.len()] {
        let mut connection = told(wire.as_bytes().chunks(size).map(<[u8]>::to_vec).collect());
        for (status, body) in [(201, "abc"), (200, "abcd"), (204, ""), (201, "abc")] {
            let answer = connection.answer().unwrap();
            assert_eq!((answer.status, answer.body), (status, body.as_bytes()), "pieces of {size}");
        }
        assert_eq!(connection.answer().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn headers_are_told_as_they_came() {
    let mut connection = all("HTTP/1.1 200 OK\r\nA:  b \r\nConnection: Close\r\na: \r\n\r\nrest");
    let answer = connection.answer().unwrap();
    let expected = [("A", "b"), ("Connection", "Close"), ("a", "")];
    assert_eq!(answer.headers(), expected.map(|(name, value)| (name, value.to_owned())));
    assert_eq!((answer.is_last(), answer.body), (true, &b"rest"[..]));
    assert!(!all(PLAIN).answer().unwrap().is_last());
}

#[test]
fn a_large_body_is_read_whole() {
    let body = "x".repeat(3 * PIECE + 1);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let mut connection = told(vec![head.into_bytes(), body.clone().into_bytes(), PLAIN.into()]);
    assert_eq!(connection.answer().unwrap().body, body.as_bytes());
    assert_eq!(connection.answer().unwrap().body, b"abc");
}

#[test]
fn a_stream_goes_on_after_a_timeout() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut connection = Connection::open(listener.local_addr().unwrap()).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    connection.stream().set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab").unwrap();
    assert_eq!(connection.head().unwrap(), 200);
    let silence = connection.chunk().unwrap_err().kind();
    assert!(matches!(silence, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
    stream.write_all(b"cde\r\n2\r\nfg\r\n0\r\n\r\n").unwrap();
    assert_eq!(connection.chunk().unwrap(), Some(&b"abcde"[..]));
    assert_eq!(connection.chunk().unwrap(), Some(&b"fg"[..]));
    assert_eq!(connection.chunk().unwrap(), None);
}

#[test]
fn what_is_no_answer_is_refused() {
    for (wire, kind) in [
        ("", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\n", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nab", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nz\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", ErrorKind::InvalidData),
        ("nonsense\r\n\r\n", ErrorKind::InvalidData),
    ] {
        assert_eq!(all(wire).answer().unwrap_err().kind(), kind, "{wire:?}");
    }
}

#[test]
fn a_connection_is_open_while_nobody_hung_up_or_spoke() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let open = || {
        let connection = Connection::open(listener.local_addr().unwrap()).unwrap();
        (connection, listener.accept().unwrap().0)
    };
    let (connection, other) = open();
    assert!(connection.is_open());
    drop(other);
    let waited = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1)); // paced: the end travels by itself
        !connection.is_open()
    });
    assert!(waited);
    let (mut connection, mut other) = open();
    other.write_all(format!("{PLAIN}{PLAIN}").as_bytes()).unwrap();
    connection.answer().unwrap();
    assert!(!connection.is_open(), "an answer that nobody asked for is there");
}
