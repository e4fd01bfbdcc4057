//! The registries (tables `type`, `queue` and `token`) as every server keeps them in mind, with the
//! version they were read at (`registry.version`). Every commit checks that version (`guard()`);
//! whoever changes a registry makes it the next one.

use crate::connections::{Call, Part, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use mainspring_kernel::dispatch::{LaneKey, LimitKey, key_of};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::KeySource;
use mainspring_kernel::governance::{tenant_of, weight_of};
use mainspring_kernel::registry::TenantShare;
use mainspring_kernel::{
    Job, JobType, QueueName, QueueOrder, QueueSpec, TenantId, Timestamp, Token, TokenId, TypeSpec,
    UserId,
};
use mainspring_store::record::{Names, Record, encode_token, encode_type, records_of};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use tokio_postgres::Row;
use uuid::Uuid;

/// The registries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    pub(crate) version: i64,
    pub(crate) types: BTreeMap<JobType, TypeSpec>,
    pub(crate) queues: BTreeMap<QueueName, QueueSpec>,
    pub(crate) tokens: BTreeMap<TokenId, Token>,
    /// Turns of tenants that somebody has set; none of those that are paused.
    weights: BTreeMap<TenantId, u32>,
    /// Whether there are servers that know no lanes of retries: then nobody makes any. See
    /// `migrations/0015_retry_lanes.sql`.
    has_older_servers: bool,
}

/// A change to the registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RegistryChange {
    /// A type is registered or replaced.
    Type(Box<TypeSpec>),
    /// A queue is configured.
    Queue(QueueSpec),
    /// A token is issued.
    Token(Box<Token>),
    /// A token stops working.
    Revoked {
        /// Which.
        token: TokenId,
        /// From when on.
        at: Timestamp,
    },
}

impl Registry {
    /// Takes in a change.
    pub(crate) fn apply(&mut self, change: &RegistryChange) {
        match change {
            RegistryChange::Type(spec) => {
                self.types.insert(spec.name.clone(), (**spec).clone());
            }
            RegistryChange::Queue(spec) => {
                if let Some(tenant) = tenant_of(&spec.name) {
                    self.weights.insert(tenant, weight_of(spec));
                }
                self.queues.insert(spec.name.clone(), spec.clone());
            }
            RegistryChange::Token(token) => {
                self.tokens.insert(token.id, (**token).clone());
            }
            RegistryChange::Revoked { token, at } => {
                if let Some(token) = self.tokens.get_mut(token) {
                    token.revoke(*at);
                }
            }
        }
    }

    /// How many turns a tenant has; none while it is paused.
    pub(crate) fn weight(&self, tenant: &TenantId) -> u32 {
        self.weights.get(tenant).copied().unwrap_or(1)
    }

    pub(crate) fn is_open(&self, queue: &QueueName) -> bool {
        QueueSpec::is_open(self.queues.get(queue))
    }

    /// In which order a queue hands out jobs; `None` if it hands out none.
    pub(crate) fn open(&self, queue: &QueueName) -> Option<QueueOrder> {
        QueueSpec::open(self.queues.get(queue))
    }

    pub(crate) fn order(&self, queue: &QueueName) -> QueueOrder {
        QueueSpec::order_of(self.queues.get(queue))
    }

    /// The lane a job stands in.
    pub(crate) fn lane(&self, job: &Job) -> LaneKey {
        let mut lane = LaneKey::of(job, self.types.get(&job.job_type));
        lane.is_retry &= !self.has_older_servers;
        lane
    }

    /// The lane that is kept with a job for good.
    pub(crate) fn home(&self, job: &Job) -> LaneKey {
        self.lane(job).home()
    }

    /// The type of a lane, if anything has to be remembered of it.
    pub(crate) fn metered(&self, name: &JobType) -> Option<&TypeSpec> {
        self.types.get(name).filter(|spec| spec.flow.has_meters())
    }

    /// Whether a type hands out nothing for now.
    pub(crate) fn is_paused(&self, name: &JobType) -> bool {
        self.types.get(name).is_some_and(|spec| spec.flow.paused.is_some())
    }

    /// The order key of a job that is due at `due_at`.
    pub(crate) fn key(&self, job: &Job, due_at: Timestamp) -> i64 {
        key_of(self.order(&job.queue), job, due_at)
    }

    /// What a job is counted under now, as `live.limit_key` has it: if it runs and is limited.
    pub(crate) fn counted_under(&self, job: &Job) -> Option<Digest> {
        job.lease()?;
        self.limit_of(job).map(|(_, key)| key)
    }

    /// The limit of a job and what it is counted under.
    pub(crate) fn limit_of(&self, job: &Job) -> Option<(u32, Digest)> {
        LimitKey::of_job(self.types.get(&job.job_type)?, job)
            .map(|(key, most)| (most, key.digest()))
    }

    /// The limit of a lane and what it is counted under.
    pub(crate) fn limit(&self, lane: &LaneKey) -> Option<(LimitKey, u32)> {
        LimitKey::of_lane(self.types.get(&lane.job_type)?, lane)
    }
}

/// The row of a type.
pub(crate) fn write_type(spec: &TypeSpec) -> Call {
    let mut record = Vec::new();
    encode_type(spec, &mut record);
    Call::new(
        Query::SetType,
        vec![
            Box::new(spec.name.as_str().to_owned()),
            Box::new(spec.queue.as_str().to_owned()),
            Box::new(i16::from(spec.priority)),
            Box::new(i16::try_from(spec.max_retries).unwrap_or(i16::MAX)),
            Box::new(i32::try_from(spec.timeout_ms).unwrap_or(i32::MAX)),
            Box::new(spec.is_limited_by_user()),
            Box::new(record),
            Box::new(spec.concurrency_limit.is_some()),
            Box::new(spec.flow.concurrency_key.as_ref().map(source)),
            Box::new(rate_key(spec).map(source)),
        ],
    )
}

fn source(key: &KeySource) -> String {
    key.as_str().to_owned()
}

/// Where jobs of a type have the key of their bucket.
pub(crate) fn rate_key(spec: &TypeSpec) -> Option<&KeySource> {
    spec.flow.rate_limit.as_ref()?.key.as_ref()
}

/// The row of a queue.
pub(crate) fn write_queue(spec: &QueueSpec) -> Call {
    let (name, is_by_due) = (spec.name.as_str().to_owned(), spec.order == QueueOrder::Due);
    let number = |most: Option<u64>| most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
    let share = spec.share;
    let values: Vec<Value> = vec![
        Box::new(name),
        Box::new(spec.is_paused),
        Box::new(is_by_due),
        Box::new(share.map(|share| i32::from(share.weight))),
        Box::new(share.and_then(|share| number(share.backlog_max))),
        Box::new(share.and_then(|share| number(share.backlog_bytes_max))),
    ];
    Call::new(Query::SetQueue, values)
}

/// The row of a token.
pub(crate) fn write_token(token: &Token) -> Call {
    let mut record = Vec::new();
    encode_token(token, &mut record);
    Call::new(Query::SetToken, vec![Box::new(Uuid::from_u128(token.id.0)), Box::new(record)])
}

/// The limit of a type and what jobs are counted under, as `live.limit_key` has it.
pub(crate) fn limit(
    spec: &TypeSpec,
    tenant: &TenantId,
    user: Option<&UserId>,
    key: Option<&str>,
) -> Option<(u32, Digest)> {
    LimitKey::of(spec, tenant, user, key).map(|(key, most)| (most, key.digest()))
}

/// Rows of the registry tables.
pub(crate) fn read_registry(
    version: i64,
    types: &[Row],
    queues: &[Row],
    tokens: &[Row],
) -> Result<Registry, Fault> {
    let mut registry = Registry { version, ..Registry::default() };
    let mut names = Names::default();
    for row in types.iter().chain(tokens) {
        let bytes: &[u8] = row.try_get(0)?;
        for record in records_of(bytes, &mut names) {
            let row = match record? {
                Record::Type(spec) => RegistryChange::Type(spec),
                Record::Token(token) => RegistryChange::Token(token),
                Record::Job(_)
                | Record::Item(_)
                | Record::Queue(_)
                | Record::Key { .. }
                | Record::Entity(_)
                | Record::Counters(_)
                | Record::Meter { .. }
                | Record::Moves(_) => continue,
            };
            registry.apply(&row);
        }
    }
    for row in queues {
        let name = QueueName::stored(row.try_get::<_, &str>(0)?.into());
        let order = if row.try_get(2)? { QueueOrder::Due } else { QueueOrder::Aged };
        let number = |at: usize| -> Result<Option<u64>, Fault> {
            Ok(row.try_get::<_, Option<i64>>(at)?.map(|most| u64::try_from(most).unwrap_or(0)))
        };
        let share = match row.try_get::<_, Option<i32>>(3)? {
            Some(weight) => Some(TenantShare {
                weight: u16::try_from(weight).unwrap_or(1),
                backlog_max: number(4)?,
                backlog_bytes_max: number(5)?,
            }),
            None => None,
        };
        let spec = QueueSpec { name, is_paused: row.try_get(1)?, order, share };
        registry.apply(&RegistryChange::Queue(spec));
    }
    Ok(registry)
}

impl ThisServer {
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The registries as this server itself changed them, or read them.
    pub(crate) fn learn_registry(&self, mut registry: Arc<Registry>) {
        let is_new = {
            let mut known = self.registry.write().unwrap_or_else(PoisonError::into_inner);
            let is_new = known.version < registry.version;
            if registry.has_older_servers != known.has_older_servers {
                Arc::make_mut(&mut registry).has_older_servers = known.has_older_servers;
            }
            if known.version <= registry.version {
                *known = registry;
            }
            is_new
        };
        if is_new {
            self.lanes_mut().forget_passing();
        }
        if is_new && let Some(news) = self.news.get() {
            news.registry();
        }
    }

    /// Whether servers were seen that know no lanes of retries.
    pub(crate) fn learn_of_older(&self, has_older_servers: bool) {
        let mut known = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        if known.has_older_servers != has_older_servers {
            Arc::make_mut(&mut known).has_older_servers = has_older_servers;
        }
    }

    /// Reads the registries anew.
    pub(crate) async fn read_registry(&self) -> Result<(), Fault> {
        let queries = [Query::ReadVersion, Query::LoadTypes, Query::LoadQueues, Query::LoadTokens];
        let calls = queries.map(|query| Call::new(query, Vec::new())).into();
        let rows = self.connections.get().await?.run(Part::All, calls).await?;
        let [version, types, queues, tokens] = rows.as_slice() else {
            return Err(Fault::Broken("the registries did not answer".into()));
        };
        let version = version.first().map_or(Ok(0), |row| row.try_get(0))?;
        self.learn_registry(Arc::new(read_registry(version, types, queues, tokens)?));
        Ok(())
    }

    /// Fails if the registries are no longer those of `version`.
    pub(crate) async fn check_registry(&self, version: i64) -> Result<(), Fault> {
        let rows = self.connections.read(Query::ReadVersion, Vec::new()).await?;
        let present: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        if present == version { Ok(()) } else { Err(Fault::RegistryChanged) }
    }

    /// The registries, read anew if somebody changed them.
    pub(crate) async fn fresh_registry(&self) -> Result<Arc<Registry>, Fault> {
        let version = self.registry().version;
        match self.check_registry(version).await {
            Err(Fault::RegistryChanged) => self.read_registry().await?,
            other => other?,
        }
        Ok(self.registry())
    }

    /// A row of `token` that is not in mind.
    pub(crate) async fn find_token(&self, id: TokenId) -> Result<Option<Token>, Fault> {
        let values: Vec<Value> = vec![Box::new(Uuid::from_u128(id.0))];
        let rows = self.connections.read(Query::LoadToken, values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        // It was made elsewhere: a pull on its behalf has to find it, too.
        self.read_registry().await?;
        let mut names = Names::default();
        match records_of(row.try_get(0)?, &mut names).next() {
            Some(Ok(Record::Token(token))) => Ok(Some(*token)),
            Some(Err(bad)) => Err(bad.into()),
            _ => Err(Fault::Broken("a token is no token".into())),
        }
    }
}
