//! This server, as its writer, its readers and its background tasks all know it: the connections,
//! and what it keeps in mind of the database. What each part means stands in the room it comes
//! from.

use crate::backlog::KnownBacklog;
use crate::config::PostgresConfig;
use crate::connections::Connections;
use crate::due::Due;
use crate::lanes::Lanes;
use crate::neighbours::Neighbours;
use crate::outage::Reach;
use crate::registry::Registry;
use mainspring_kernel::Timestamp;
use mainspring_store::News;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use uuid::Uuid;

/// One server of those that use the database.
pub(crate) struct ThisServer {
    pub(crate) connections: Connections,
    pub(crate) config: PostgresConfig,
    /// The id of its row in `node`.
    pub(crate) id: Uuid,
    /// Types, queues and tokens.
    pub(crate) registry: RwLock<Arc<Registry>>,
    pub(crate) lanes: RwLock<Lanes>,
    /// When something next happens by time alone.
    pub(crate) due: Due,
    /// Whether the database can be used at present.
    pub(crate) reach: Reach,
    /// What is known of the other servers.
    pub(crate) neighbours: Neighbours,
    /// What jobs that have not ended come to.
    backlog: Mutex<KnownBacklog>,
    /// The engine, which is woken by what other servers did.
    pub(crate) news: OnceLock<Arc<dyn News>>,
    pub(crate) is_closed: AtomicBool,
}

impl ThisServer {
    pub(crate) fn new(connections: Connections, config: PostgresConfig, id: Uuid) -> Self {
        ThisServer {
            connections,
            config,
            id,
            registry: RwLock::default(),
            lanes: RwLock::default(),
            due: Due::default(),
            reach: Reach::default(),
            neighbours: Neighbours::default(),
            backlog: Mutex::default(),
            news: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.config.now)()
    }

    /// What jobs that have not ended come to, as far as this server knows.
    pub(crate) fn backlog(&self) -> MutexGuard<'_, KnownBacklog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
