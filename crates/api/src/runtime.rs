//! How the server is.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The server at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Runtime {
    /// The version of the server.
    pub version: String,
    /// How jobs reach workers.
    pub executor: Executor,
    /// The store.
    pub store: StoreHealth,
    /// What was found when the store was opened; for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Counters of the whole server; for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// Your own tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Backlog>,
}

/// What the jobs of a tenant come to that have not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backlog {
    /// The tenant.
    pub tenant_id: String,
    /// How many there are.
    pub jobs: u64,
    /// What they take up.
    pub backlog_bytes: u64,
    /// What they may take up.
    pub backlog_bytes_max: u64,
}

/// How jobs reach workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Executor {
    /// How jobs are executed whose type does not say: `pull`, `inprocess`, `process` or `webhook`.
    pub mode: String,
}

/// How the store is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreHealth {
    /// `memory` or `postgres`.
    pub kind: String,
    /// Whether it serves.
    pub healthy: bool,
    /// Why it does not, if it does not.
    pub broken: Option<String>,
    /// Whether new work is refused for want of space.
    pub low_on_space: bool,
    /// Blocks of finished jobs found damaged since the start: lists leave them out.
    #[serde(default)]
    pub damaged_blocks: u64,
}

/// What was found when the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recovery {
    /// Live jobs restored.
    pub jobs: u64,
    /// Of these, running ones.
    pub running: u64,
    /// Journal frames replayed.
    pub frames: u64,
    /// Bytes of a torn tail that were cut.
    pub torn_bytes: u64,
    /// How long it took.
    pub took_ms: u64,
}

/// Counters of the process and of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Counters {
    /// When the process started.
    pub started_at: Time,
    /// Commits since then.
    pub commits: u64,
    /// Commands decided since then.
    pub commands: u64,
    /// Illegal transitions refused since then.
    pub illegal_moves: u64,
    /// Stale lease tokens refused since then.
    pub stale_leases: u64,
    /// Idempotency hits answered since then.
    pub idempotent_hits: u64,
    /// Pulls that wait now.
    pub parked_pulls: u64,
    /// Jobs by state: live ones now, finished ones since the store was made.
    pub jobs: BTreeMap<String, u64>,
    /// Jobs that are due now.
    pub due: u64,
    /// Jobs accepted since the store was made.
    pub submitted: u64,
    /// Attempts started since the store was made.
    pub claims: u64,
    /// Retries scheduled since the store was made.
    pub retries: u64,
    /// DLQ items that wait for a decision.
    pub dlq_open: u64,
}
