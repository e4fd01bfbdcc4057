//! The registries: what kinds of work exist with their service levels, and how queues behave.

use crate::agent::{self, Purpose};
use crate::command::Submit;
use crate::entity::alert::ALERT_TYPE;
use crate::executor::{Executor, Mode};
use crate::fingerprint::Digest;
use crate::flow::{Flow, KeySource, LimitKeys};
use crate::governance::{self, Duty};
use crate::limits::{
    EVALUATION_TIMEOUT_MS, PRIORITY_DEFAULT, RETRIES_DEFAULT, RUN_CONCURRENCY_DEFAULT,
    RUN_PRIORITY_DEFAULT, RUN_TIMEOUT_MS_DEFAULT, SLA_MS_MIN, TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX,
};
use crate::name::{JobType, QueueName};
use crate::rejection::Rejection;
use crate::retry::Backoff;

/// What a concurrency limit is counted over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConcurrencyScope {
    /// Over all jobs of the type.
    Global,
    /// Over the jobs of the type in one tenant.
    Tenant,
    /// Over the jobs of the type of one user.
    User,
}

impl ConcurrencyScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Global, Self::Tenant, Self::User];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConcurrencyScope::Global => "global",
            ConcurrencyScope::Tenant => "tenant",
            ConcurrencyScope::User => "user",
        }
    }

    /// The scope of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The name of the type of tasks.
pub const TASK: &str = "task";

/// A kind of work and what is promised for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeSpec {
    /// Its name.
    pub name: JobType,
    /// The business domain it belongs to.
    pub domain: Box<str>,
    /// Whether schedules may create jobs of it.
    pub is_schedulable: bool,
    /// Priority of jobs that do not say.
    pub priority: u8,
    /// Start-to-close timeout of jobs that do not say.
    pub timeout_ms: u32,
    /// Retries of jobs that do not say.
    pub max_retries: u16,
    /// Most live leases at a time; `None` is no limit, zero holds everything.
    pub concurrency_limit: Option<u32>,
    /// What the limit is counted over.
    pub concurrency_scope: ConcurrencyScope,
    /// The queue of jobs that do not say.
    pub queue: QueueName,
    /// Delay between tries.
    pub backoff: Backoff,
    /// Digest of the entry of the configuration file that was last applied to this type.
    pub file_entry: Option<Digest>,
    /// How its jobs are executed; as the deployment says if `None`.
    pub executor: Option<Box<Executor>>,
    /// What else holds its jobs back.
    pub flow: Box<Flow>,
    /// What is promised of how soon its jobs start and end.
    pub sla: Option<Sla>,
}

/// What is promised of the jobs of a type, counted from when they are due. Nothing is done to a
/// late job: somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sla {
    /// Within how long they start.
    pub start_within_ms: Option<u32>,
    /// Within how long they have ended, all tries included.
    pub finish_within_ms: Option<u32>,
}

impl Sla {
    /// Refuses what cannot be told, or promises nothing.
    ///
    /// # Errors
    /// If it does.
    pub fn check(self) -> Result<(), Rejection> {
        let Sla { start_within_ms, finish_within_ms } = self;
        if start_within_ms.is_none() && finish_within_ms.is_none() {
            let reason = "must have start_within_ms or finish_within_ms";
            return Err(Rejection::FieldInvalid { field: "sla", reason });
        }
        let fields =
            [("sla.start_within_ms", start_within_ms), ("sla.finish_within_ms", finish_within_ms)];
        for (field, within) in fields {
            if within.is_some_and(|within| !(SLA_MS_MIN..=TIMEOUT_MS_MAX).contains(&within)) {
                let reason = "must be between 1000 and 604800000 (seven days)";
                return Err(Rejection::FieldInvalid { field, reason });
            }
        }
        Ok(())
    }
}

impl TypeSpec {
    /// A type with the defaults of the house, in the queue `default`.
    pub fn plain(name: JobType) -> Self {
        TypeSpec {
            name,
            domain: "general".into(),
            is_schedulable: true,
            priority: PRIORITY_DEFAULT,
            timeout_ms: TIMEOUT_MS_DEFAULT,
            max_retries: RETRIES_DEFAULT,
            concurrency_limit: None,
            concurrency_scope: ConcurrencyScope::Global,
            queue: QueueSpec::default_name(),
            backoff: Backoff::DEFAULT,
            file_entry: None,
            executor: None,
            flow: Box::default(),
            sla: None,
        }
    }

    /// The type of tasks: there without being registered, and tried again at once.
    pub fn task() -> Self {
        TypeSpec { backoff: Backoff::NONE, ..TypeSpec::plain(JobType::stored(TASK.into())) }
    }

    /// A type of governed jobs: there without being registered; three executions, tried again at
    /// once unless the worker says when, and bounded by the lease alone. No schedule makes them.
    pub fn governed(name: JobType) -> Self {
        TypeSpec {
            domain: "governance".into(),
            is_schedulable: false,
            timeout_ms: TIMEOUT_MS_MAX,
            max_retries: 2,
            queue: QueueName::stored(governance::QUEUE.into()),
            backoff: Backoff::NONE,
            ..TypeSpec::plain(name)
        }
    }

    /// The type of jobs that tell of alerts: there without being registered. Receivers that are
    /// away for an hour or so miss nothing.
    pub fn alert() -> Self {
        TypeSpec {
            domain: "mainspring".into(),
            is_schedulable: false,
            max_retries: 12,
            timeout_ms: 60_000,
            backoff: Backoff { base_ms: 5_000, max_ms: 600_000 },
            ..TypeSpec::plain(JobType::stored(ALERT_TYPE.into()))
        }
    }

    /// The type of that name that is there without being registered, if there is one.
    pub fn built_in(name: &JobType) -> Option<Self> {
        match (Purpose::of(name), Duty::of(name)) {
            (Some(purpose), _) => Some(TypeSpec::agent(purpose)),
            (None, Some(_)) => Some(TypeSpec::governed(name.clone())),
            (None, None) if name.as_str() == ALERT_TYPE => Some(TypeSpec::alert()),
            (None, None) => (name.as_str() == TASK).then(TypeSpec::task),
        }
    }

    /// The type of agent runs for that purpose: there without being registered. A run says itself
    /// how often and after how long it is tried again; schedules make none, triggers do.
    pub fn agent(purpose: Purpose) -> Self {
        let (timeout_ms, limit) = match purpose {
            Purpose::Run => (RUN_TIMEOUT_MS_DEFAULT, Some(RUN_CONCURRENCY_DEFAULT)),
            Purpose::Plan => (RUN_TIMEOUT_MS_DEFAULT, None),
            Purpose::Evaluation => (EVALUATION_TIMEOUT_MS, None),
        };
        TypeSpec {
            domain: "agent".into(),
            is_schedulable: false,
            priority: RUN_PRIORITY_DEFAULT,
            timeout_ms,
            max_retries: 0,
            concurrency_limit: limit,
            concurrency_scope: ConcurrencyScope::Tenant,
            queue: agent::queue(),
            backoff: Backoff::NONE,
            ..TypeSpec::plain(purpose.job_type())
        }
    }

    /// Whether it belongs to a contract that has words of its own for it. Lists of the types that
    /// people registered do not show it.
    pub fn is_of_a_contract(&self) -> bool {
        Purpose::of(&self.name).is_some()
    }

    /// What is kept of a type that somebody registers: a task that failed is ready again at once,
    /// because its contract knows no wait, and a run says itself how long it waits.
    #[must_use]
    pub fn kept(mut self) -> Self {
        self.backoff = TypeSpec::built_in(&self.name).map_or(self.backoff, |known| known.backoff);
        self
    }

    /// How its jobs are executed, where a deployment says `otherwise` for those that do not say.
    pub fn mode(&self, otherwise: Mode) -> Mode {
        self.executor.as_ref().map_or(otherwise, |executor| executor.mode())
    }

    /// The keys that a job is counted by: its caller's, or those that are found in it.
    pub fn keys_of(&self, wish: &Submit) -> Option<Box<LimitKeys>> {
        let find = |source: &KeySource| source.find(&wish.labels, &wish.payload);
        let own = || self.flow.concurrency_key.as_ref().and_then(find);
        let rate = self.flow.rate_limit.as_ref().and_then(|limit| limit.key.as_ref());
        let keys = LimitKeys {
            concurrency: wish.concurrency_key.clone().or_else(own),
            rate: rate.and_then(find),
        };
        (!keys.is_empty()).then(|| Box::new(keys))
    }

    /// Whether jobs of one lane and another may differ in what they are counted by.
    pub fn is_limited_by_key(&self) -> bool {
        let is_rate = self.flow.rate_limit.as_ref().is_some_and(|limit| limit.key.is_some());
        is_rate || self.concurrency_limit.is_some()
    }

    /// Whether each user of a tenant has a limit of its own.
    pub fn is_limited_by_user(&self) -> bool {
        self.concurrency_limit.is_some() && self.concurrency_scope == ConcurrencyScope::User
    }
}

/// In which order a queue hands out its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueOrder {
    /// Priority first, but waiting makes a job more urgent, so nothing starves.
    Aged,
    /// `run_at` ascending, then priority descending.
    Due,
}

impl QueueOrder {
    /// Every order.
    pub const ALL: [Self; 2] = [Self::Aged, Self::Due];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            QueueOrder::Aged => "aged",
            QueueOrder::Due => "due",
        }
    }

    /// The order of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.as_str() == text)
    }

    /// Whether retries give way to fresh jobs, see [`crate::dispatch::Book`]. Where the order is a
    /// promise nobody gives way.
    pub const fn bounds_retries(self) -> bool {
        match self {
            QueueOrder::Aged => true,
            QueueOrder::Due => false,
        }
    }
}

/// How a queue behaves. A queue nobody configured is `Aged` and not paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name.
    pub name: QueueName,
    /// Whether it hands out nothing for now.
    pub is_paused: bool,
    /// In which order it hands out jobs.
    pub order: QueueOrder,
    /// What a tenant gets and may have, if the queue is that of a tenant.
    pub share: Option<TenantShare>,
}

/// What a tenant gets and may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantShare {
    /// Its turns to one of a tenant that nobody has set.
    pub weight: u16,
    /// Most jobs of it that have not ended.
    pub backlog_max: Option<u64>,
    /// What those may take up.
    pub backlog_bytes_max: Option<u64>,
}

impl TenantShare {
    /// That of a tenant that nobody has set.
    pub const PLAIN: TenantShare =
        TenantShare { weight: 1, backlog_max: None, backlog_bytes_max: None };
}

impl QueueSpec {
    /// A queue as it is before anybody configures it.
    pub fn plain(name: QueueName) -> Self {
        QueueSpec { name, is_paused: false, order: QueueSpec::order_of(None), share: None }
    }

    /// What is kept of a queue that somebody configures: that of agent runs has an order of its
    /// own, see [`crate::dispatch::key_of`], and is never handed out by due time alone.
    #[must_use]
    pub fn kept(self) -> Self {
        let is_agents = self.name.as_str() == agent::QUEUE;
        QueueSpec { order: if is_agents { QueueOrder::Aged } else { self.order }, ..self }
    }

    /// The order of a queue that is configured so, or not at all.
    pub fn order_of(spec: Option<&QueueSpec>) -> QueueOrder {
        spec.map_or(QueueOrder::Aged, |spec| spec.order)
    }

    /// In which order a queue that is configured so, or not at all, hands out jobs; `None` if it
    /// hands out none.
    pub fn open(spec: Option<&QueueSpec>) -> Option<QueueOrder> {
        QueueSpec::is_open(spec).then(|| QueueSpec::order_of(spec))
    }

    /// Whether a queue that is configured so, or not at all, hands out jobs.
    pub fn is_open(spec: Option<&QueueSpec>) -> bool {
        spec.is_none_or(|spec| !spec.is_paused)
    }

    /// The queue of types that do not name one.
    pub fn default_name() -> QueueName {
        QueueName::stored("default".into())
    }
}
