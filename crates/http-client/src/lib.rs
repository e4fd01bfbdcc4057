//! The HTTP/1.1 client of everything that tests or measures a server from outside: the benchmark,
//! the load of the crash tests, the black box.
//!
//! It blocks, keeps its connection, never sends anything twice and hides nothing. Sending and
//! reading are apart, so that one thread can keep many requests in flight, and half a request can
//! be sent. Heads are read by `httparse`, the parser under hyper. hyper's own client was measured
//! and left out: see `docs/decisions/0010-one-http-client.md`. Users have the SDK.
//!
//! `request.rs` is what is sent, `connection.rs` what comes back.

mod connection;
mod request;

pub use connection::{Answer, Connection, TIMEOUT, connect};
pub use request::Request;
