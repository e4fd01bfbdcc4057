//! What the server can be told. The command line fills it in; nothing here reads files or the
//! environment.

use crate::contracts;
use crate::dashboard::once::Once;
use crate::limits;
use crate::shares::Bounds;
use crate::templates::Templates;
use crate::tls::Tls;
use mainspring_kernel::executor::{Mode, Startable};
use mainspring_kernel::limits::{BULK_APPROVAL_ABOVE_DEFAULT, KEY_WINDOW_SECS_DEFAULT};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of one server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether the address can be reached from other machines. Then `/metrics` needs a token, and
    /// any host name is served; on a loopback address only known names are.
    pub is_public: bool,
    /// The certificate to show; without one, nothing is encrypted.
    pub tls: Option<Tls>,
    /// Host names served on a loopback address besides `localhost`, `127.0.0.1` and `[::1]`.
    pub hosts: Vec<String>,
    /// The names of the contracts that are spoken; see [`crate::contract_names`].
    pub contracts: Vec<&'static str>,
    /// Schedules that the configuration asks for.
    pub templates: Templates,
    /// What runs get that do not say.
    pub agent: AgentSettings,
    /// How jobs are executed.
    pub executing: Executing,
    /// Whether the routes for moving jobs by hand exist.
    pub has_internal_routes: bool,
    /// Whether public writes need an idempotency key.
    pub is_key_required: bool,
    /// Whether requests need an `x-trace-id`.
    pub is_trace_required: bool,
    /// Whether workers of `/scheduler` may say what time it is, for tests and replays.
    pub allow_client_clock: bool,
    /// How the jobs of `/scheduler` are spread over queues.
    pub shards: Shards,
    /// A bulk operation on more things than this takes a second person.
    pub bulk_approval_above: u64,
    /// How long lines of the audit trail are kept.
    pub audit_keep: Duration,
    /// Where the last line of each audit trail is noted outside of the store.
    pub audit_anchor: Option<PathBuf>,
    /// How often the history of jobs is sealed by a line of the audit trail; zero is never.
    pub audit_history_every: Duration,
    /// How long the stream can surely be read back, for comparing it with its seals.
    pub audit_history_keep: Duration,
    /// Seconds an idempotency key stays taken after its job ended; `None` is for ever.
    pub key_window_secs: Option<u32>,
    /// Seconds after the end of a job after which nothing of it is kept any more: so long, and not
    /// longer than the job is kept, the name that its caller chose is taken.
    pub name_window_secs: Option<u32>,
    /// Largest body of a request about one thing.
    pub body_bytes_max: usize,
    /// Largest body of a request about many things.
    pub batch_bytes_max: usize,
    /// Connections at a time; a tenant's and a token's are counted from their first request on.
    pub connections: Bounds,
    /// Connections beyond that, for probes and operators only.
    pub connections_kept: usize,
    /// When all connections are taken, one whose client is waited for this long makes room.
    pub evict_after: Duration,
    /// Event streams at a time.
    pub streams: Bounds,
    /// Calls that wait at a time: pulls, submissions and reads with `wait_ms`.
    pub waits: Bounds,
    /// Bytes of request bodies at a time. All callers without a token have one token's share.
    pub bodies: Bounds,
    /// How long the head of a request may take to arrive.
    pub header_timeout: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_timeout: Duration,
    /// How long an answer may find no taker.
    pub write_timeout: Duration,
    /// How long the body of a request may take to arrive.
    pub body_timeout: Duration,
    /// How long requests may take to finish once the server is told to stop.
    pub shutdown_grace: Duration,
    /// The link by which somebody may sign in to the dashboard once.
    pub once: Option<Once>,
}

/// How the jobs of `/scheduler` are spread over queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shards {
    /// Not: all are in one.
    None,
    /// One queue for each type of object.
    ObjectType,
    /// One queue for each risk tier.
    RiskTier,
}

impl Shards {
    /// Every way, by its name in the configuration.
    pub const ALL: [(&'static str, Shards); 3] = [
        ("none", Shards::None),
        ("object_type", Shards::ObjectType),
        ("risk_tier", Shards::RiskTier),
    ];
}

/// What the server can say about the execution of jobs; the crate `executor` does it.
#[derive(Debug, Clone)]
pub struct Executing {
    /// How jobs are executed whose type does not say.
    pub mode: Mode,
    /// The commands that types set through the API may start.
    pub startable: Startable,
    /// Whether there is a secret to sign requests with.
    pub can_sign: bool,
}

impl Executing {
    /// Workers ask for jobs, and nothing else is possible.
    pub fn pulled() -> Self {
        Executing { mode: Mode::Pull, startable: Startable::default(), can_sign: false }
    }
}

impl Config {
    /// The settings `mainspring serve` starts with, on a loopback address.
    pub fn standard() -> Self {
        Config {
            is_public: false,
            tls: None,
            hosts: Vec::new(),
            contracts: contracts::names(),
            templates: Templates::none(),
            agent: AgentSettings::standard(),
            executing: Executing::pulled(),
            has_internal_routes: false,
            is_key_required: false,
            is_trace_required: false,
            allow_client_clock: false,
            shards: Shards::None,
            bulk_approval_above: BULK_APPROVAL_ABOVE_DEFAULT,
            audit_keep: Duration::from_secs(365 * 24 * 3600),
            audit_anchor: None,
            audit_history_every: Duration::from_secs(600),
            audit_history_keep: Duration::from_secs(24 * 3600),
            key_window_secs: Some(KEY_WINDOW_SECS_DEFAULT),
            name_window_secs: None,
            body_bytes_max: limits::BODY_BYTES_MAX,
            batch_bytes_max: limits::BATCH_BYTES_MAX,
            connections: Bounds::shared(limits::CONNECTIONS_MAX),
            connections_kept: limits::CONNECTIONS_KEPT,
            evict_after: Duration::from_millis(limits::EVICT_AFTER_MS),
            streams: Bounds::shared(limits::STREAMS_MAX),
            waits: Bounds::shared(limits::WAITS_MAX),
            bodies: Bounds::shared(limits::BODIES_BYTES_MAX),
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(90),
            write_timeout: Duration::from_secs(limits::WRITE_TIMEOUT_SECS),
            body_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
            once: None,
        }
    }
}

/// What agent runs get that do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentSettings {
    /// How many attempts.
    pub max_attempts: u16,
    /// How long before each but the first.
    pub backoff_ms: u64,
}

impl AgentSettings {
    /// One attempt.
    pub const fn standard() -> Self {
        AgentSettings { max_attempts: 1, backoff_ms: 0 }
    }
}
