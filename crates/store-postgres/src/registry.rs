//! What every server keeps in mind: the registries with the version they were read at, and the
//! numbers of the lanes.

use crate::fault::Fault;
use mainspring_kernel::dispatch::{LaneKey, LimitKey, order_key};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    Event, Job, JobType, QueueName, QueueOrder, QueueSpec, TenantId, Timestamp, Token, TokenId,
    TypeSpec, UserId,
};
use mainspring_store::record::{Names, Record, records_of};
use std::collections::{BTreeMap, HashMap};
use tokio_postgres::Row;

/// The registries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    pub(crate) version: i64,
    pub(crate) types: BTreeMap<JobType, TypeSpec>,
    pub(crate) queues: BTreeMap<QueueName, QueueSpec>,
    pub(crate) tokens: BTreeMap<TokenId, Token>,
}

impl Registry {
    /// Takes in a change; events of other kinds are none of its business.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::TypeSet(spec) => {
                self.types.insert(spec.name.clone(), (**spec).clone());
            }
            Event::QueueSet(spec) => {
                self.queues.insert(spec.name.clone(), spec.clone());
            }
            Event::TokenIssued(token) => {
                self.tokens.insert(token.id, (**token).clone());
            }
            Event::TokenRevoked { token, at } => {
                if let Some(token) = self.tokens.get_mut(token) {
                    token.revoke(*at);
                }
            }
            Event::JobSubmitted(_)
            | Event::JobMoved(_)
            | Event::LeaseRenewed { .. }
            | Event::EffectCommitted { .. }
            | Event::ItemOpened(_)
            | Event::ItemChanged { .. }
            | Event::EntitySet(_)
            | Event::EntityRemoved { .. } => {}
        }
    }

    pub(crate) fn is_open(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_none_or(|spec| !spec.is_paused)
    }

    pub(crate) fn order(&self, queue: &QueueName) -> QueueOrder {
        self.queues.get(queue).map_or(QueueOrder::Aged, |spec| spec.order)
    }

    /// The lane a job stands in.
    pub(crate) fn lane(&self, job: &Job) -> LaneKey {
        LaneKey::of(job, self.types.get(&job.job_type))
    }

    /// The order key of a job that is due at `due_at`.
    pub(crate) fn key(&self, job: &Job, due_at: Timestamp) -> i64 {
        order_key(self.order(&job.queue), due_at, job.priority)
    }

    /// What a job that runs is counted under, if its type is limited.
    pub(crate) fn limit_key(&self, job: &Job) -> Option<Digest> {
        limit(self.types.get(&job.job_type)?, &job.tenant, Some(&job.user)).map(|(_, key)| key)
    }

    /// The limit of a lane and what it is counted under.
    pub(crate) fn limit(&self, lane: &LaneKey) -> Option<(u32, Digest)> {
        limit(self.types.get(&lane.job_type)?, &lane.tenant, lane.user.as_ref())
    }
}

/// Whether an event changes the registries.
pub(crate) fn changes_registry(event: &Event) -> bool {
    match event {
        Event::TypeSet(_)
        | Event::QueueSet(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked { .. } => true,
        Event::JobSubmitted(_)
        | Event::JobMoved(_)
        | Event::LeaseRenewed { .. }
        | Event::EffectCommitted { .. }
        | Event::ItemOpened(_)
        | Event::ItemChanged { .. }
        | Event::EntitySet(_)
        | Event::EntityRemoved { .. } => false,
    }
}

/// The limit of a type and what jobs are counted under, as `live.limit_key` has it.
pub(crate) fn limit(
    spec: &TypeSpec,
    tenant: &TenantId,
    user: Option<&UserId>,
) -> Option<(u32, Digest)> {
    LimitKey::of(spec, tenant, user).map(|(key, most)| (most, key.digest()))
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
            let event = match record? {
                Record::Type(spec) => Event::TypeSet(spec),
                Record::Token(token) => Event::TokenIssued(token),
                Record::Job(_)
                | Record::Item(_)
                | Record::Queue(_)
                | Record::Key { .. }
                | Record::Entity(_)
                | Record::Counters(_) => continue,
            };
            registry.apply(&event);
        }
    }
    for row in queues {
        let name = QueueName::stored(row.try_get::<_, &str>(0)?.into());
        let order = if row.try_get(2)? { QueueOrder::Due } else { QueueOrder::Aged };
        registry.apply(&Event::QueueSet(QueueSpec { name, is_paused: row.try_get(1)?, order }));
    }
    Ok(registry)
}

/// The numbers of lanes, both ways.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_number: HashMap<i32, LaneKey>,
    by_key: HashMap<LaneKey, i32>,
    newest: i32,
}

impl Lanes {
    pub(crate) fn key(&self, number: i32) -> Option<&LaneKey> {
        self.by_number.get(&number)
    }

    pub(crate) fn number(&self, key: &LaneKey) -> Option<i32> {
        self.by_key.get(key).copied()
    }

    /// Every lane that is known, by its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &LaneKey)> {
        self.by_number.iter().map(|(number, key)| (*number, key))
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Numbers are given before they are seen: look a little further back than the newest.
    pub(crate) fn look_from(&self) -> i32 {
        (self.newest - 64).max(0)
    }

    pub(crate) fn learn(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let number: i32 = row.try_get(0)?;
            if self.by_number.contains_key(&number) {
                continue;
            }
            let text = |at: usize| row.try_get::<_, &str>(at);
            let user = text(4)?;
            let key = LaneKey {
                tenant: TenantId::stored(text(1)?.into()),
                queue: QueueName::stored(text(2)?.into()),
                job_type: JobType::stored(text(3)?.into()),
                user: (!user.is_empty()).then(|| UserId::stored(user.into())),
            };
            self.newest = self.newest.max(number);
            self.by_key.insert(key.clone(), number);
            self.by_number.insert(number, key);
        }
        Ok(())
    }
}
