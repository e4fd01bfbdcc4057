//! The simplest store that is right: one lock, plain maps, linear scans, nothing durable. Other
//! stores are compared with it; nobody should run it.

use super::model_read;
use crate::read::{HOLDERS_MAX, LoggedMove};
use crate::store::{Desk, Error, Needs, Store, Wake, Work};
use crate::ticket::Ticket;
use crate::{
    Counts, EntityFilter, Health, Held, ItemFilter, JobFilter, JobWithHistory, MovesPage, Page,
    Recovery, Standing,
};
use futures_util::future::{BoxFuture, ready};
use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::dispatch::{LaneKey, LimitKey, Taken, Wanted, has_room, key_of};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::evolve::{keep_effect, renew};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::{Meter, Meters};
use mainspring_kernel::governance::{is_held, tenant_queue, weight_of};
use mainspring_kernel::limits::RETRY_EVERY;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobEvent, JobId, JobType, QueueName, QueueSpec,
    TenantId, Timestamp, Token, TokenId, Totals, Transition, TypeSpec, evolve,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The model.
#[derive(Debug, Default)]
pub struct ModelStore(Mutex<Memory>);

#[derive(Debug, Default, Clone)]
pub(super) struct Memory {
    pub(super) jobs: BTreeMap<JobId, JobWithHistory>,
    pub(super) items: BTreeMap<DlqId, DlqItem>,
    pub(super) entities: BTreeMap<EntityId, Entity>,
    pub(super) types: BTreeMap<JobType, TypeSpec>,
    pub(super) queues: BTreeMap<QueueName, QueueSpec>,
    tokens: BTreeMap<TokenId, Token>,
    keys: BTreeMap<Digest, KeyHolder>,
    pub(super) moves: Vec<LoggedMove>,
    pub(super) totals: Totals,
    /// When each tenant, and each queue of a tenant, was last served.
    served: BTreeMap<(TenantId, Option<QueueName>), u64>,
    /// How often a tenant was served since it went behind the others.
    served_since: BTreeMap<TenantId, u32>,
    /// How many were no retries, in a queue of a tenant, since the last one that was.
    since_retry: BTreeMap<(TenantId, QueueName), u32>,
    servings: u64,
    looked_at: Option<Timestamp>,
    pub(super) meters: Meters,
    /// When the first bucket or circuit lets go that held something back.
    pub(super) opens_at: Option<Timestamp>,
}

impl Memory {
    /// The limit that applies to `job` and how many leases count against it.
    pub(super) fn limit(&self, job: &Job) -> Option<(u32, u32)> {
        let spec = self.types.get(&job.job_type)?;
        let (key, most) = LimitKey::of_job(spec, job)?;
        let counts = |other: &&JobWithHistory| {
            other.job.lease().is_some() && is_counted(spec, &key, &other.job)
        };
        let used = self.jobs.values().filter(counts).count();
        Some((most, u32::try_from(used).unwrap_or(u32::MAX)))
    }

    /// Those leases, if they are all that there may be; some of them.
    pub(super) fn holders(&self, job: &Job) -> Vec<JobId> {
        let Some(spec) = self.types.get(&job.job_type) else { return Vec::new() };
        let Some((key, _)) = LimitKey::of_job(spec, job) else { return Vec::new() };
        if self.limit(job).is_none_or(|(most, used)| has_room(used, most)) {
            return Vec::new();
        }
        let running =
            self.jobs.values().map(|whole| &whole.job).filter(|job| job.lease().is_some());
        let counted = running.filter(|other| is_counted(spec, &key, other));
        counted.take(HOLDERS_MAX).map(|job| job.id).collect()
    }

    /// What the jobs that have not ended come to: of one tenant, or all.
    fn held(&self, tenant: Option<&TenantId>) -> Held {
        let live = self.jobs.values().map(|whole| &whole.job).filter(|job| {
            job.finished_at().is_none() && tenant.is_none_or(|tenant| *tenant == job.tenant)
        });
        live.fold(Held::default(), |held, job| Held {
            jobs: held.jobs + 1,
            bytes: held.bytes + held_bytes(job),
        })
    }

    /// Turns of a tenant; none while it is paused.
    fn weight(&self, tenant: &TenantId) -> u32 {
        self.queues.get(&tenant_queue(tenant)).map_or(1, weight_of)
    }

    pub(super) fn is_paused(&self, queue: &QueueName) -> bool {
        !QueueSpec::is_open(self.queues.get(queue))
    }

    pub(super) fn order_of(&self, job: &Job) -> Option<(i64, JobId)> {
        let order = QueueSpec::order_of(self.queues.get(&job.queue));
        Some((key_of(order, job, job.due_at()?), job.id))
    }

    /// When a tenant, or one of its queues, was last served; zero if never.
    fn turn(&self, tenant: &TenantId, queue: Option<&QueueName>) -> u64 {
        self.served.get(&(tenant.clone(), queue.cloned())).copied().unwrap_or_default()
    }

    /// Whether a job lets others of its queue go first: retries do, where the order is no promise.
    pub(super) fn gives_way(&self, job: &Job) -> bool {
        job.is_retry() && QueueSpec::order_of(self.queues.get(&job.queue)).bounds_retries()
    }

    /// Whether a retry was handed out in a queue so lately that others go before the next one.
    fn owes_fresh(&self, tenant: &TenantId, queue: &QueueName) -> bool {
        let since = self.since_retry.get(&(tenant.clone(), queue.clone()));
        since.is_some_and(|since| *since < RETRY_EVERY - 1)
    }

    /// A tenant was served: it goes behind all others when it was as often as it weighs.
    fn serve(&mut self, tenant: TenantId, turn: u64) {
        let turns = self.served.iter().filter(|((_, queue), _)| queue.is_none());
        let last = turns.map(|(_, turn)| *turn).max();
        if last.is_some_and(|last| last == self.turn(&tenant, None)) {
            return;
        }
        let weight = self.weight(&tenant);
        let served = self.served_since.entry(tenant.clone()).or_default();
        *served += 1;
        if *served >= weight {
            *served = 0;
            self.served.insert((tenant, None), turn);
        }
    }

    fn log(&mut self, job: JobId, transition: Transition) {
        let position = self.moves.len() as u64 + 1;
        let Some(JobWithHistory { job, history }) = self.jobs.get_mut(&job) else { return };
        history.push(transition.clone());
        self.moves.push(LoggedMove::of(position, job, transition));
    }

    fn submitted(&mut self, job: Job) {
        for key in job.keys() {
            self.keys.insert(key.hash, key.held_by(job.id));
        }
        self.totals.submitted += 1;
        let (id, first) = (job.id, Transition::submitted(&job));
        self.jobs.insert(id, JobWithHistory { job, history: Vec::new() });
        self.log(id, first);
    }

    fn moved(&mut self, event: &JobEvent) {
        let whole = self.jobs.get_mut(&event.job).expect("only known jobs move");
        let transition = evolve(&mut whole.job, event).expect("decided moves apply");
        self.totals.count(&transition, &whole.job);
        if let Some(spec) = self.types.get(&whole.job.job_type) {
            self.meters.note(spec, &whole.job, event);
        }
        for (end, key) in whole.job.finished_at().into_iter().cycle().zip(whole.job.keys()) {
            if let holder @ Some(_) = self.keys.get(&key.hash).copied()
                && let Some(freed) = key.freed_by(holder, event.job, end)
            {
                self.keys.insert(key.hash, freed);
            }
        }
        self.log(event.job, transition);
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::JobSubmitted(job) => self.submitted(*job),
            Event::JobMoved(event) => self.moved(&event),
            Event::LeaseRenewed { job, fence, expires_at, progress_pct, note, settled } => {
                let job = &mut self.jobs.get_mut(&job).expect("only known jobs run").job;
                let said = (progress_pct, note.as_deref());
                renew(job, fence, expires_at, said, settled).expect("a decided renewal");
            }
            Event::EffectCommitted { job, effect } => {
                let whole = self.jobs.get_mut(&job).expect("only known jobs have effects");
                keep_effect(&mut whole.job, &effect).expect("a decided effect");
            }
            Event::ItemOpened(item) => {
                self.items.insert(item.id, *item);
            }
            Event::ItemChanged { item, version, at, state } => {
                let item = self.items.get_mut(&item).expect("only known items change");
                item.change(version, at, *state);
            }
            Event::EntitySet(entity) => {
                self.entities.insert(entity.id, *entity);
            }
            Event::EntityRemoved { entity, .. } => {
                self.entities.remove(&entity);
            }
            Event::TypeSet(spec) => {
                self.types.insert(spec.name.clone(), *spec);
            }
            Event::QueueSet(spec) => {
                self.queues.insert(spec.name.clone(), spec);
            }
            Event::TokenIssued(token) => {
                self.tokens.insert(token.id, *token);
            }
            Event::TokenRevoked { token, at } => {
                let token = self.tokens.get_mut(&token).expect("only known tokens");
                token.revoke(at);
            }
        }
    }
}

struct ModelDesk<'a> {
    memory: MutexGuard<'a, Memory>,
    taken: BTreeSet<JobId>,
    now: Timestamp,
    opens_at: Option<Timestamp>,
}

impl ModelDesk<'_> {
    /// The best job that may be taken now: of the tenant served longest ago, of its queue served
    /// longest ago, the first; but retries after all others while such are owed.
    fn next_ready(&self, wanted: &Wanted<'_>, now: Timestamp) -> Option<JobId> {
        let memory = &self.memory;
        let is_candidate = |job: &&Job| {
            job.due_at().is_some_and(|due_at| due_at <= now)
                && !self.taken.contains(&job.id)
                && wanted.lane(&LaneKey::of(job, None))
                && memory.weight(&job.tenant) > 0
                && !memory.is_paused(&job.queue)
                && !is_held(&LaneKey::of(job, None), &mut |queue| !memory.is_paused(queue))
                && memory
                    .limit(job)
                    .is_none_or(|(most, used)| has_room(used + self.reserved(job), most))
                && self.held(job).is_none()
        };
        let best = memory.jobs.values().map(|whole| &whole.job).filter(is_candidate).min_by_key(
            |job| {
                let (tenant, queue) = (job.tenant.clone(), job.queue.clone());
                let tenant_turn = memory.turn(&tenant, None);
                let queue_turn = memory.turn(&tenant, Some(&queue));
                let is_late = memory.gives_way(job) && memory.owes_fresh(&tenant, &queue);
                (tenant_turn, tenant, queue_turn, queue, is_late, memory.order_of(job))
            },
        )?;
        Some(best.id)
    }

    /// What else holds `job`, beside those that were taken in this batch and not claimed yet.
    fn held(&self, job: &Job) -> Option<Option<Timestamp>> {
        let spec = self.memory.types.get(&job.job_type)?;
        if spec.flow.paused.is_some() {
            return Some(None);
        }
        let mut taken = Taken::default();
        for JobWithHistory { job: other, .. } in
            self.taken.iter().filter_map(|id| self.memory.jobs.get(id))
        {
            if other.lease().is_none() && other.job_type == spec.name {
                Meters::keys_of_job(spec, other).for_each(|key| taken.add(key));
            }
        }
        let rate_key = job.limit_keys().and_then(|keys| keys.rate.as_deref());
        self.memory.meters.held(spec, rate_key, self.now, &taken).map(|held| held.until)
    }

    /// Jobs taken in this batch, not claimed yet, that will count against the limit of `job`.
    fn reserved(&self, job: &Job) -> u32 {
        let Some(spec) = self.memory.types.get(&job.job_type) else { return 0 };
        let Some((key, _)) = LimitKey::of_job(spec, job) else { return 0 };
        let counts = |id: &&JobId| {
            self.memory.jobs.get(id).is_some_and(|JobWithHistory { job: other, .. }| {
                other.lease().is_none() && is_counted(spec, &key, other)
            })
        };
        u32::try_from(self.taken.iter().filter(counts).count()).unwrap_or(u32::MAX)
    }
}

/// Whether a job is counted under that key of its type.
fn is_counted(spec: &TypeSpec, key: &LimitKey, job: &Job) -> bool {
    let own = || LimitKey::of_job(spec, job);
    job.job_type == spec.name && own().is_some_and(|(own, _)| own == *key)
}

impl Desk for ModelDesk<'_> {
    fn job(&self, id: JobId) -> Option<&Job> {
        self.memory.jobs.get(&id).map(|whole| &whole.job)
    }

    fn item(&self, id: DlqId) -> Option<&DlqItem> {
        self.memory.items.get(&id)
    }

    fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.memory.entities.get(&id)
    }

    fn job_type(&self, name: &JobType) -> Option<&TypeSpec> {
        self.memory.types.get(name)
    }

    fn queue(&self, name: &QueueName) -> Option<&QueueSpec> {
        self.memory.queues.get(name)
    }

    fn key_holder(&self, key: Digest) -> Option<KeyHolder> {
        self.memory.keys.get(&key).copied()
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.memory.tokens.get(&id)
    }

    fn tokens(&self) -> Vec<&Token> {
        self.memory.tokens.values().collect()
    }

    fn held(&self, tenant: &TenantId) -> (Held, u64) {
        (self.memory.held(Some(tenant)), self.memory.held(None).bytes)
    }

    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, now: Timestamp) -> Vec<JobId> {
        let mut ready = Vec::new();
        while ready.len() < limit
            && let Some(id) = self.next_ready(wanted, now)
        {
            let job = &self.memory.jobs[&id].job;
            let (tenant, queue) = (job.tenant.clone(), job.queue.clone());
            let (gives_way, own) = (self.memory.gives_way(job), (tenant.clone(), queue.clone()));
            if gives_way {
                self.memory.since_retry.insert(own, 0);
            } else if let Some(since) = self.memory.since_retry.get_mut(&own) {
                *since += 1;
            }
            self.memory.servings += 1;
            let turn = self.memory.servings;
            self.memory.served.insert((tenant.clone(), Some(queue)), turn);
            self.memory.serve(tenant, turn);
            self.taken.insert(id);
            ready.push(id);
        }
        let jobs = self.memory.jobs.values().map(|whole| &whole.job);
        let due = jobs.filter(|job| job.due_at().is_some_and(|due_at| due_at <= now));
        let first = due.filter_map(|job| self.held(job)).flatten().min();
        self.opens_at = self.opens_at.into_iter().chain(first).min();
        self.memory.opens_at = self.opens_at;
        ready
    }

    fn opens_at(&self) -> Option<Timestamp> {
        self.opens_at
    }

    fn apply(&mut self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.memory.apply(event));
    }
}

impl ModelStore {
    /// Another store that holds the same: for trying what must not count.
    pub fn copy(&self) -> ModelStore {
        ModelStore(Mutex::new(self.lock().clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Memory) -> T,
    ) -> BoxFuture<'_, Result<T, Error>> {
        Box::pin(ready(Ok(look(&self.lock()))))
    }
}

impl Store for ModelStore {
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>> {
        let (taken, now) = (BTreeSet::new(), needs.now);
        work(&mut ModelDesk { memory: self.lock(), taken, now, opens_at: None });
        Box::pin(ready(Ok(Ticket::kept())))
    }

    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<JobWithHistory>, Error>> {
        self.read(|memory| memory.jobs.get(&id).cloned())
    }

    fn holder_of_key(&self, key: Digest) -> BoxFuture<'_, Result<Option<KeyHolder>, Error>> {
        self.read(|memory| memory.keys.get(&key).copied())
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        self.read(|memory| model_read::jobs(memory, filter, before, limit))
    }

    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.read(|memory| model_read::count_jobs(memory, filter, most))
    }

    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>> {
        self.read(|memory| memory.items.get(&id).cloned())
    }

    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>> {
        self.read(|memory| model_read::items(memory, filter, before, limit))
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.read(|memory| model_read::count_items(memory, filter, most))
    }

    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>> {
        self.read(|memory| memory.entities.get(&id).cloned())
    }

    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>> {
        self.read(|memory| {
            let found = model_read::entities(memory, filter, before);
            Page::cut(found.take(limit + 1).cloned().collect(), limit, |entity| entity.id)
        })
    }

    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.read(|memory| model_read::entities(memory, filter, None).take(most).count())
    }

    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>> {
        self.read(|memory| memory.types.values().cloned().collect())
    }

    fn meter(&self, key: Digest) -> BoxFuture<'_, Result<Option<Meter>, Error>> {
        self.read(|memory| memory.meters.get(key))
    }

    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>> {
        self.read(|memory| memory.queues.values().cloned().collect())
    }

    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>> {
        self.read(|memory| memory.tokens.values().cloned().collect())
    }

    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>> {
        self.read(|memory| memory.tokens.get(&id).cloned())
    }

    fn standing(
        &self,
        id: JobId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        self.read(|memory| model_read::standing(memory, id, now))
    }

    fn held_by<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Held, Error>> {
        self.read(|memory| memory.held(Some(tenant)))
    }

    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>> {
        self.read(|memory| model_read::counts(memory, now))
    }

    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>> {
        self.read(|memory| {
            let after = |logged: &&LoggedMove| logged.position > position;
            MovesPage {
                moves: memory.moves.iter().filter(after).take(limit).cloned().collect(),
                has_gap: false,
                newest: memory.moves.len() as u64,
            }
        })
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        self.read(|memory| model_read::overdue(memory, now, limit))
    }

    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>> {
        self.read(|memory| model_read::alarms(memory, now, limit))
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        self.read(|memory| {
            let jobs = memory.jobs.values().map(|whole| &whole.job);
            jobs.filter(|job| job.lease().is_some()).map(|job| job.id).collect()
        })
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        let mut memory = self.lock();
        let since = memory.looked_at.replace(now);
        let wake = model_read::wake(&memory, now, since);
        Box::pin(ready(Ok(wake)))
    }

    fn maintain(&self, _: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }

    fn is_low_on_space(&self) -> bool {
        false
    }

    fn health(&self) -> Health {
        let recovery = Recovery::default();
        Health { kind: "model", broken: None, is_low_on_space: false, damaged_blocks: 0, recovery }
    }

    fn close(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }
}
