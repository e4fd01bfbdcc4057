//! What the server can be told. The command line fills it in; nothing here reads files or the
//! environment.

use crate::limits;
use mainspring_kernel::limits::KEY_WINDOW_SECS_DEFAULT;
use std::time::Duration;

/// Settings of one server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether the address can be reached from other machines. Then `/metrics` needs a token, and
    /// any host name is served; on a loopback address only known names are.
    pub is_public: bool,
    /// Host names served on a loopback address besides `localhost`, `127.0.0.1` and `[::1]`.
    pub hosts: Vec<String>,
    /// Whether the routes for moving jobs by hand exist.
    pub has_internal_routes: bool,
    /// Whether public writes need an idempotency key.
    pub is_key_required: bool,
    /// Whether requests need an `x-trace-id`.
    pub is_trace_required: bool,
    /// Seconds an idempotency key stays taken after its job ended; `None` is for ever.
    pub key_window_secs: Option<u32>,
    /// Largest body of a request about one thing.
    pub body_bytes_max: usize,
    /// Largest body of a request about many things.
    pub batch_bytes_max: usize,
    /// Most connections at a time.
    pub connections_max: usize,
    /// Most event streams at a time.
    pub streams_max: usize,
    /// How long the head of a request may take to arrive.
    pub header_timeout: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_timeout: Duration,
    /// How long the body of a request may take to arrive.
    pub body_timeout: Duration,
    /// How long requests may take to finish once the server is told to stop.
    pub shutdown_grace: Duration,
}

impl Config {
    /// The settings `mainspring serve` starts with, on a loopback address.
    pub fn standard() -> Self {
        Config {
            is_public: false,
            hosts: Vec::new(),
            has_internal_routes: false,
            is_key_required: false,
            is_trace_required: false,
            key_window_secs: Some(KEY_WINDOW_SECS_DEFAULT),
            body_bytes_max: limits::BODY_BYTES_MAX,
            batch_bytes_max: limits::BATCH_BYTES_MAX,
            connections_max: 4_096,
            streams_max: 256,
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(90),
            body_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
