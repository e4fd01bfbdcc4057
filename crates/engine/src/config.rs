//! What the engine can be told, and what it is told where nobody says otherwise. The command line
//! takes the latter and changes what the configuration file names.

use crate::alerts::AlertConfig;
use crate::triggers::TriggerConfig;
use mainspring_kernel::governance::Governance;
use mainspring_kernel::limits::BACKLOG_BYTES_DEFAULT;
use mainspring_store::Fatal;
use std::time::Duration;

/// Settings of one engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether an unregistered type is refused.
    pub are_types_strict: bool,
    /// Most requests one commit may take; see [`crate::limits::BATCH_BYTES_MAX`] for their bytes.
    pub batch_max: usize,
    /// Bytes that jobs that have not ended may take up.
    pub backlog_bytes_max: u64,
    /// Of these, what the jobs of one tenant may.
    pub backlog_bytes_per_tenant: u64,
    /// How long leases that ran out while the server was away are kept alive after a restart.
    pub restart_grace: Duration,
    /// How often the store is asked to do its upkeep.
    pub maintain_every: Duration,
    /// How long a worker that is not heard of is still listed.
    pub worker_memory: Duration,
    /// What triggers look at, and how quickly.
    pub triggers: TriggerConfig,
    /// What is true of governed objects that do not say it themselves.
    pub governance: Governance,
    /// When alerts are raised.
    pub alerts: AlertConfig,
    /// A commit of at most so many requests is synced on the runtime's thread where the store allows
    /// it, which waits for the disk meanwhile: none, unless somebody keeps a thread in reserve
    /// (see [`crate::Engine::wait_until_held_up`]).
    pub settled_here_max: usize,
    /// Told when one of the engine's tasks dies.
    pub fatal: Fatal,
}

impl Config {
    /// The settings where nobody says otherwise.
    pub fn standard() -> Self {
        Config {
            are_types_strict: true,
            batch_max: 4_096,
            backlog_bytes_max: BACKLOG_BYTES_DEFAULT,
            backlog_bytes_per_tenant: BACKLOG_BYTES_DEFAULT / 2,
            restart_grace: Duration::from_secs(5),
            maintain_every: Duration::from_secs(1),
            worker_memory: Duration::from_secs(120),
            triggers: TriggerConfig::none(),
            governance: Governance::DEFAULT,
            alerts: AlertConfig::none(),
            settled_here_max: 0,
            fatal: Fatal::default(),
        }
    }
}
