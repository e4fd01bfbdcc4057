//! The settings of a server: what the file, the environment and the flags together say. Only the
//! command line reads those three; every other crate gets plain values.
//!
//! Read `file.rs` for the keys, `layers.rs` for who wins, `show.rs` for printing the result.

mod executor;
pub(crate) mod file;
mod flow;
pub(crate) mod layers;
mod otel;
pub(crate) mod reader;
pub(crate) mod show;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;

use crate::memory;
use mainspring_executor::limits::{CONCURRENCY_DEFAULT, GRACE_DEFAULT};
use mainspring_executor::webhook::Secret;
use mainspring_executor::{NatsServer, Otlp};
use mainspring_kernel::entity::trigger::Pace;
use mainspring_kernel::executor::{Executor, ExecutorWish, Mode, Startable};
use mainspring_kernel::limits::{
    BACKLOG_BYTES_DEFAULT, BULK_APPROVAL_ABOVE_DEFAULT, KEY_WINDOW_SECS_DEFAULT,
    RUN_CONCURRENCY_DEFAULT,
};
use mainspring_kernel::{Rejection, TenantId, TypeSpec};
use mainspring_server::config::Shards;
use mainspring_server::templates::Template;
use mainspring_server::{Bounds, limits};
use mainspring_store_memory::MemoryConfig;
use reader::Problem;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// The contracts a server is to speak one day. Those that this version has are the server's to say.
pub(crate) const CONTRACTS: [&str; 5] = ["native", "tasks", "jobs", "agent", "scheduler"];
/// How jobs can be executed; the first holds where nothing is said.
pub(crate) const EXECUTOR_MODES: [&str; 4] =
    [Mode::Pull.as_str(), Mode::InProcess.as_str(), Mode::Process.as_str(), Mode::Webhook.as_str()];

/// Where state is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// RAM with a journal in this directory.
    Directory(PathBuf),
    /// RAM only.
    Ephemeral,
    /// PostgreSQL, perhaps shared with other servers.
    Postgres {
        /// The address.
        url: String,
        /// Who asked for it, for the message.
        from: &'static str,
    },
}

/// How the memory store lays out its files; the standard values fit nearly everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Size of a journal file.
    pub(crate) segment_bytes: u64,
    /// Journal growth before the first snapshot.
    pub(crate) snapshot_bytes_min: u64,
    /// RAM for finished jobs before they go to the archive.
    pub(crate) finished_bytes_max: u64,
}

/// What `[store]` says about PostgreSQL beside its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Postgres {
    pub(crate) schema: String,
    pub(crate) connections: usize,
    pub(crate) is_notified: bool,
    pub(crate) poll_every: Duration,
    /// Whether a server without `fsync` is taken.
    pub(crate) allows_unsafe: bool,
}

/// `[server] tls_cert` and `tls_key`: both or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// `[strict]`: what callers must send that is optional otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strict {
    pub(crate) idempotency_key: bool,
    pub(crate) trace_id: bool,
}

/// `[limits]`: what callers may have of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) connections: Bounds,
    pub(crate) streams: Bounds,
    pub(crate) waits: Bounds,
    pub(crate) body_bytes: Bounds,
    /// Room for jobs that have not ended; chosen by the store if not said.
    pub(crate) backlog_bytes: Option<u64>,
    /// Of that, what one tenant may have.
    pub(crate) backlog_bytes_per_tenant: Option<u64>,
}

/// `[retention]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) finished: Duration,
    pub(crate) dlq: Duration,
    pub(crate) audit: Duration,
    pub(crate) stream: Duration,
}

/// `[executor]`: how jobs are executed whose type does not say, and what all have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executing {
    /// What the file says, of whichever mode, and the mode that was chosen.
    pub(crate) wish: ExecutorWish,
    /// The programs that types set through the API may start.
    pub(crate) programs: Vec<String>,
    /// Jobs that one mode runs side by side.
    pub(crate) concurrency: usize,
    /// How long they may go on when the server stops.
    pub(crate) grace: Duration,
}

/// `[webhooks]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhooks {
    pub(crate) allow_private: bool,
    pub(crate) secrets: Vec<Secret>,
}

/// `[governance]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Governance {
    pub(crate) auto_verify_budget: u64,
    pub(crate) unknowable_tries_max: u64,
}

/// `[alerts]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alerts {
    pub(crate) retrying_ratio: f64,
    pub(crate) dlq_growth_per_minute: u64,
    pub(crate) invalid_transitions: u64,
    /// How much later than due a job may start.
    pub(crate) lag: Duration,
    /// How long jobs may wait for a type that no worker asks for.
    pub(crate) no_worker: Duration,
    pub(crate) schedule_skipped: bool,
    /// How often is looked.
    pub(crate) check: Duration,
    /// For how long too many jobs must be retried.
    pub(crate) hold: Duration,
    /// For how long nothing must be seen before an alert clears.
    pub(crate) quiet: Duration,
    pub(crate) webhook_url: String,
}

/// `[agent]`: what runs get that do not say, and how many of a tenant are executed at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) max_attempts: u16,
    pub(crate) backoff_ms: u64,
    pub(crate) concurrency: u32,
}

/// `[triggers]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Triggers {
    /// Conditions about files look below these folders only.
    pub(crate) roots: Vec<String>,
    pub(crate) pace: Pace,
}

/// Everything `mainspring serve` goes by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) internal_routes: bool,
    /// The files of the certificate and of its key; without them nothing is encrypted.
    pub(crate) tls: TlsFiles,
    /// Host names served on a loopback address besides this machine's own.
    pub(crate) hosts: Vec<String>,
    /// The contracts that are spoken, by name.
    pub(crate) contracts: Vec<&'static str>,
    pub(crate) store: StoreChoice,
    pub(crate) layout: Layout,
    pub(crate) limits: Limits,
    pub(crate) executing: Executing,
    pub(crate) webhooks: Webhooks,
    /// The NATS server that subscriptions publish to.
    pub(crate) nats: Option<NatsServer>,
    pub(crate) allow_client_clock: bool,
    /// How the jobs of `/scheduler` are spread over queues.
    pub(crate) shards: Shards,
    /// How long workers have to come back after a restart before their leases run out.
    pub(crate) restart_grace: Duration,
    pub(crate) strict: Strict,
    /// How long an idempotency key stays taken after its job ended; `None` is for ever.
    pub(crate) key_window: Option<Duration>,
    pub(crate) postgres: Postgres,
    pub(crate) retention: Retention,
    pub(crate) types_strict: bool,
    pub(crate) types: Vec<TypeSpec>,
    /// Schedules that are to be there, by name.
    pub(crate) templates: Vec<Template>,
    /// The tenant that the schedules of templates belong to.
    pub(crate) template_tenant: TenantId,
    pub(crate) governance: Governance,
    /// Where the last line of each audit trail is noted; in the data directory if it does not say.
    pub(crate) audit_anchor: Option<PathBuf>,
    /// How often the history of jobs is sealed by a line of the audit trail; zero is never.
    pub(crate) audit_history_every: Duration,
    /// A bulk operation on more things than this takes a second person.
    pub(crate) bulk_approval_above: u64,
    pub(crate) alerts: Alerts,
    pub(crate) agent: Agent,
    pub(crate) triggers: Triggers,
    /// What was asked for and this version does not do yet, one line each.
    pub(crate) not_yet: Vec<String>,
    /// Where traces go, by the environment alone.
    pub(crate) otlp: Option<Otlp>,
}

impl Settings {
    /// What a server without file, environment and flags does.
    pub(crate) fn standard() -> Self {
        let files = MemoryConfig::standard(0);
        Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            internal_routes: false,
            tls: TlsFiles::default(),
            hosts: Vec::new(),
            contracts: mainspring_server::contract_names(),
            store: StoreChoice::Directory("./mainspring-data".into()),
            layout: Layout {
                segment_bytes: files.segment_bytes,
                snapshot_bytes_min: files.snapshot_bytes_min,
                finished_bytes_max: files.finished_bytes_max as u64,
            },
            limits: Limits {
                connections: Bounds::shared(limits::CONNECTIONS_MAX),
                streams: Bounds::shared(limits::STREAMS_MAX),
                waits: Bounds::shared(limits::WAITS_MAX),
                body_bytes: Bounds::shared(limits::BODIES_BYTES_MAX),
                backlog_bytes: None,
                backlog_bytes_per_tenant: None,
            },
            executing: Executing {
                wish: ExecutorWish::plain(Mode::Pull),
                programs: Vec::new(),
                concurrency: CONCURRENCY_DEFAULT,
                grace: GRACE_DEFAULT,
            },
            webhooks: Webhooks { allow_private: false, secrets: Vec::new() },
            nats: None,
            allow_client_clock: false,
            shards: Shards::None,
            restart_grace: Duration::from_secs(5),
            strict: Strict { idempotency_key: false, trace_id: false },
            key_window: Some(Duration::from_secs(u64::from(KEY_WINDOW_SECS_DEFAULT))),
            postgres: Postgres {
                schema: "mainspring".to_owned(),
                connections: 8,
                is_notified: true,
                poll_every: Duration::from_millis(500),
                allows_unsafe: false,
            },
            retention: Retention {
                finished: DAY * 7,
                dlq: DAY * 90,
                audit: DAY * 365,
                stream: DAY,
            },
            types_strict: true,
            types: Vec::new(),
            templates: Vec::new(),
            template_tenant: TenantId::stored("default".into()),
            audit_anchor: None,
            audit_history_every: Duration::from_secs(600),
            governance: Governance { auto_verify_budget: 2, unknowable_tries_max: 3 },
            bulk_approval_above: BULK_APPROVAL_ABOVE_DEFAULT,
            alerts: Alerts {
                retrying_ratio: 0.2,
                dlq_growth_per_minute: 20,
                invalid_transitions: 5,
                lag: Duration::from_secs(300),
                no_worker: Duration::from_secs(120),
                schedule_skipped: true,
                check: Duration::from_secs(15),
                hold: Duration::from_secs(60),
                quiet: Duration::from_secs(300),
                webhook_url: String::new(),
            },
            agent: Agent { max_attempts: 1, backoff_ms: 0, concurrency: RUN_CONCURRENCY_DEFAULT },
            triggers: Triggers { roots: Vec::new(), pace: Pace::DEFAULT },
            not_yet: Vec::new(),
            otlp: None,
        }
    }
}

impl Settings {
    /// Room for jobs that have not ended, in all and for one tenant. What is kept in RAM gets half
    /// of it: the other half is for everything else that a server needs.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let all = self.limits.backlog_bytes.unwrap_or_else(|| match self.store {
            StoreChoice::Directory(_) | StoreChoice::Ephemeral => memory::bytes() / 2,
            StoreChoice::Postgres { .. } => BACKLOG_BYTES_DEFAULT,
        });
        (all, self.limits.backlog_bytes_per_tenant.unwrap_or(all / 2).min(all))
    }

    /// How jobs are executed whose type does not say.
    ///
    /// # Errors
    /// If what the chosen mode needs is missing or wrong.
    pub(crate) fn executor(&self) -> Result<Executor, Rejection> {
        self.executing.wish.clone().chosen().made()
    }

    /// What may be started: programs that are named, and commands that the file itself asks for.
    pub(crate) fn startable(&self) -> Startable {
        let own = self.executor().ok();
        let types = self.types.iter().filter_map(|spec| spec.executor.as_deref());
        let commands = types.chain(own.as_ref()).filter_map(|executor| match executor {
            Executor::Process(process) => Some(process.clone()),
            Executor::Pull | Executor::InProcess | Executor::Webhook(_) => None,
        });
        Startable { programs: self.executing.programs.clone(), commands: commands.collect() }
    }

    /// Seconds an idempotency key stays taken after its job ended; `None` is for ever.
    pub(crate) fn key_window_secs(&self) -> Option<u32> {
        self.key_window.map(|window| u32::try_from(window.as_secs()).unwrap_or(u32::MAX))
    }

    /// Seconds after its end after which nothing of a job is kept any more. Stores drop what has
    /// ended by the day, and not on the spot.
    pub(crate) fn name_window_secs(&self) -> u32 {
        u32::try_from(self.retention.finished.saturating_add(DAY * 2).as_secs()).unwrap_or(u32::MAX)
    }
}

/// A file, a variable or a flag that cannot be used, with every reason.
#[derive(Debug)]
pub(crate) struct ConfigError {
    /// Where the problems are: a file name, or "the settings".
    pub(crate) place: String,
    /// All of them.
    pub(crate) problems: Vec<Problem>,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.problems.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "{count} {noun} in {}", self.place)?;
        for problem in &self.problems {
            match problem.line {
                Some(line) => write!(f, "\n  {}:{line}: {}", self.place, problem.text)?,
                None => write!(f, "\n  {}", problem.text)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
