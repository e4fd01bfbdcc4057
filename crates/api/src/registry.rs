//! Types, queues and workers.

use crate::Time;
use serde::{Deserialize, Serialize};

/// What is promised for a type. What is left out gets the default of the house.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetType {
    /// The business domain; `general` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Whether schedules may create jobs of it; true if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedulable: Option<bool>,
    /// Priority of jobs that do not say; 50 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How long one attempt may run; 900 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Extra tries; 3 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u16>,
    /// Most jobs that may run at a time; no limit if left out or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_limit: Option<u32>,
    /// What the limit is counted over: `global`, `tenant` or `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_scope: Option<String>,
    /// The queue of jobs that do not say; `default` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Delay before the first retry; 1,000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_base_ms: Option<u32>,
    /// No delay is longer than this, before jitter; 30,000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_max_ms: Option<u32>,
    /// How its jobs are executed; as the deployment says if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<TypeExecutor>,
    /// Where a job has the key that the concurrency limit counts by: the name of a label, or a JSON
    /// pointer into the payload such as `/customer/id`. One count for all jobs if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// How many jobs may be handed out in a time; no limit if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<TypeRateLimit>,
    /// When to stop handing out jobs because too many fail; never if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<TypeCircuit>,
    /// How soon its jobs are to start and to end; nothing is promised if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sla: Option<TypeSla>,
}

/// How many jobs of a type may be handed out in a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeRateLimit {
    /// So many a second, over time.
    pub per_second: f64,
    /// So many at once after a pause; as many as fall into a second if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Where a job has the key that has a limit of its own: the name of a label, or a JSON pointer
    /// into the payload. One limit for all jobs if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// When to stop handing out jobs because too many fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeCircuit {
    /// The share of attempts that fail from which on it opens.
    pub failure_ratio: f64,
    /// Of the last so many attempts that ended.
    pub min_calls: u8,
    /// For how long it stays open before one job is tried.
    pub open_seconds: u32,
}

/// Where the circuit of a type stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeCircuitState {
    /// `closed`: jobs are handed out. `open`: none is. `half_open`: one is, or was, and how it ends
    /// decides.
    pub state: String,
    /// Until when it is open.
    pub until: Option<Time>,
}

/// How soon jobs of a type are to start and to end. Late ones raise alerts, nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeSla {
    /// Within how long after they are due they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within_ms: Option<u32>,
    /// Within how long after they are due they have ended, all tries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_within_ms: Option<u32>,
}

/// How jobs of a type are executed. Which fields may be said depends on the mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeExecutor {
    /// `pull`, `inprocess`, `process` or `webhook`.
    pub mode: String,
    /// `process`: the program, one of those that the server may start; the script, if `shell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// `process`: its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// `process`: the directory it runs in, as an absolute path; the server's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// `process`: variables it gets besides `PATH` and those of its job: `NAME` as the server has
    /// it, or `NAME=value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// `process`: whether `/bin/sh` reads the command; false if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    /// `process`: from SIGTERM to SIGKILL; 5,000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_grace_ms: Option<u32>,
    /// `webhook`: where the request goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `webhook`: how long the answer may take; 30,000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
}

/// A kind of work and what is promised for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Type {
    /// Its name.
    pub job_type: String,
    /// The business domain.
    pub domain: String,
    /// Whether schedules may create jobs of it.
    pub schedulable: bool,
    /// Priority of jobs that do not say.
    pub priority: u8,
    /// How long one attempt may run, rounded up to seconds.
    pub timeout_seconds: u32,
    /// Extra tries.
    pub max_retries: u16,
    /// Most jobs that may run at a time; null is no limit.
    pub concurrency_limit: Option<u32>,
    /// What the limit is counted over.
    pub concurrency_scope: String,
    /// The queue of jobs that do not say.
    pub queue: String,
    /// Delay before the first retry.
    pub backoff_base_ms: u32,
    /// No delay is longer than this, before jitter.
    pub backoff_max_ms: u32,
    /// How its jobs are executed; null is as the deployment says. All but the mode is for admins.
    #[serde(default)]
    pub executor: Option<TypeExecutor>,
    /// Where a job has the key that the concurrency limit counts by; null is one count for all.
    #[serde(default)]
    pub concurrency_key: Option<String>,
    /// How many jobs may be handed out in a time; null is no limit.
    #[serde(default)]
    pub rate_limit: Option<TypeRateLimit>,
    /// When jobs are handed out no more because too many fail; null is never.
    #[serde(default)]
    pub circuit: Option<TypeCircuit>,
    /// Where its circuit stands; null if it has none.
    #[serde(default)]
    pub circuit_state: Option<TypeCircuitState>,
    /// Who paused it; null if nobody did.
    #[serde(default)]
    pub paused_by: Option<String>,
    /// Since when.
    #[serde(default)]
    pub paused_at: Option<Time>,
    /// How soon its jobs are to start and to end; null if nothing is promised.
    #[serde(default)]
    pub sla: Option<TypeSla>,
}

/// How a queue hands out its jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetQueue {
    /// `aged` (priority first, waiting counts) or `due` (by `run_at`, then priority).
    pub order: String,
}

/// A queue and its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether it hands out nothing for now.
    pub paused: bool,
    /// `aged` or `due`.
    pub order: String,
    /// Waiting and due.
    pub ready: u64,
    /// Waiting and not due.
    pub pending: u64,
    /// Held by workers.
    pub running: u64,
}

/// What a tenant gets and may have. What is left out is as for a tenant that nobody has set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetTenant {
    /// Its turns to one of another tenant; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    /// Most jobs of it that have not ended; no limit if left out or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_max: Option<u64>,
    /// What those may take up; what the server allows every tenant if left out or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_bytes_max: Option<u64>,
    /// Whether nothing of it is handed out; false if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// What a tenant gets, may have, and has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tenant {
    /// Its name.
    pub tenant_id: String,
    /// Its turns to one of another tenant.
    pub weight: u16,
    /// Most jobs of it that have not ended; null is no limit.
    pub backlog_max: Option<u64>,
    /// What those may take up; null is what the server allows every tenant.
    pub backlog_bytes_max: Option<u64>,
    /// Whether nothing of it is handed out.
    pub paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Since when.
    pub paused_at: Option<Time>,
    /// Jobs of it that have not ended.
    pub backlog: u64,
    /// What they take up.
    pub backlog_bytes: u64,
}

/// A worker heard of lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// How it calls itself.
    pub worker_id: String,
    /// The tenant it works for; null is every tenant.
    pub tenant_id: Option<String>,
    /// The types it asks for; null is any.
    pub types: Option<Vec<String>>,
    /// The queues it asks for; null is any.
    pub queues: Option<Vec<String>>,
    /// When it was first heard of.
    pub first_seen_at: Time,
    /// When it was last heard of.
    pub last_seen_at: Time,
    /// Jobs it got since.
    pub granted: u64,
}
