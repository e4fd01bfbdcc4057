//! What a store has to be told.

use mainspring_kernel::Timestamp;
use mainspring_kernel::limits::KEY_WINDOW_SECS_DEFAULT;
use mainspring_kernel::shared_time::{Look, SharedTime};
use mainspring_store::Fatal;
use std::sync::Arc;
use std::time::Duration;

/// What a store has to be told.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`, or `key=value` pairs.
    pub url: String,
    /// The schema everything lives in.
    pub schema: String,
    /// What this server is called in the list of servers.
    pub node_name: String,
    /// How long finished jobs are kept.
    pub keep_finished: Duration,
    /// How long dead-letter items are kept.
    pub keep_items: Duration,
    /// How long the stream of moves can be resumed.
    pub keep_stream: Duration,
    /// How long a caller waits for a database that does not answer.
    pub patience: Duration,
    /// Connections, at most.
    pub connections_max: usize,
    /// How often to look for what other servers did without being told.
    pub poll_every: Duration,
    /// Whether to tell and to be told through NOTIFY; looking alone suffices.
    pub is_notified: bool,
    /// Whether jobs of unknown types are refused; kept for submissions by SQL.
    pub are_types_strict: bool,
    /// Seconds an idempotency key stays taken after its job ended, `None` for ever; kept for
    /// submissions by SQL.
    pub key_window_secs: Option<u32>,
    /// Whether a server that may lose or tear what it acknowledged is taken all the same.
    pub allows_unsafe: bool,
    /// The present instant.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Called with what the database's clock shows, again and again.
    pub on_time: OnTime,
    /// Told when one of the store's tasks dies.
    pub fatal: Fatal,
}

/// Takes in a look at the database's clock and what its servers know about it; answers with what
/// they have to know first, if it is something else.
pub type OnTime = Arc<dyn Fn(&Look, &SharedTime) -> Option<SharedTime> + Send + Sync>;

/// The schema used unless another is named; the one the SQL files are written for.
pub const SCHEMA: &str = "mainspring";

const DAY: Duration = Duration::from_secs(86_400);

impl PostgresConfig {
    /// The usual settings for a database; `now` tells the time.
    pub fn standard(url: &str, now: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        PostgresConfig {
            url: url.to_owned(),
            schema: SCHEMA.to_owned(),
            node_name: "mainspring".to_owned(),
            keep_finished: 7 * DAY,
            keep_items: 90 * DAY,
            keep_stream: DAY,
            patience: Duration::from_secs(5),
            connections_max: 8,
            poll_every: Duration::from_millis(500),
            is_notified: true,
            are_types_strict: true,
            key_window_secs: Some(KEY_WINDOW_SECS_DEFAULT),
            allows_unsafe: false,
            now,
            on_time: Arc::new(|_, _| None),
            fatal: Fatal::default(),
        }
    }
}
