//! The desk of one batch: what was loaded, what the kernel's events made of it, and which ready
//! jobs it may take. Knows no SQL; `write.rs` turns the difference into rows.

use crate::commit::entities::DeskEntities;
use crate::commit::meters::DeskMeters;
use crate::commit::tallies::Tallies;
use crate::lanes::Lanes;
use crate::registry::{Registry, RegistryChange};
use crate::rows::Stored;
use crate::terms;
use crate::this_server::ThisServer;
use crate::values::Map;
use mainspring_kernel::dispatch::{Book, LaneKey, Place, Rank, Room, Taken, Wanted, has_room};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::evolve::{Transition, keep_effect, renew};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meters;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobEvent, JobId, JobType, QueueName, QueueSpec,
    StateName, TenantId, Timestamp, Token, TokenId, TypeSpec, evolve,
};
use mainspring_store::record::LoggedStep;
use mainspring_store::{Desk, Held};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Limits that are counted for one batch, at most, and buckets that are loaded; each has a lock.
const COUNTED_MAX: usize = 512;

/// Where the database has a job before the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nowhere: the batch submits it.
    New,
    /// Submitted and never started.
    Queued,
    /// In `live`, at this version.
    Live(i32),
    /// In `finished`.
    Finished,
}

/// A job on the desk.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) job: Box<Job>,
    pub(crate) history: Vec<Transition>,
    pub(crate) origin: Origin,
    /// The number of the lane it was submitted in.
    pub(crate) lane: Option<i32>,
    /// As it was loaded, if it waited then: when it was due.
    pub(crate) was_due_at: Option<Timestamp>,
    /// As it was loaded: whether it was a retry.
    pub(crate) was_retry: bool,
    /// As it was loaded: when its alarm was to ring.
    pub(crate) was_alarm: Option<Timestamp>,
    /// The number of its last event when it was loaded.
    pub(crate) was_seq: u32,
    /// As it was loaded: the number of the code of its last failed attempt.
    pub(crate) was_code: Option<i64>,
    /// The lane's number and the order key of its row in `ready`, if the batch may claim it. The
    /// row was looked at and is not locked, unless others are too quick for that.
    pub(crate) ready_row: Option<(i32, i64)>,
    /// As it was loaded: whether a worker had left something for the next try.
    pub(crate) had_checkpoint: bool,
    /// How many of the effects at hand have rows: the first ones.
    pub(crate) written_effects: usize,
    /// Whether the batch changed it.
    pub(crate) is_changed: bool,
    /// Whether it came from memory and not from the database, and nothing has proved it yet.
    pub(crate) is_recalled: bool,
    /// Where it stands in the book.
    place: Option<(Place, Rank)>,
}

impl Entry {
    pub(crate) fn new(stored: Stored) -> Self {
        let Stored { job, history, version, lane } = stored;
        let origin = match version {
            Some(version) => Origin::Live(version),
            None if job.state.name().is_terminal() => Origin::Finished,
            None => Origin::Queued,
        };
        Entry {
            was_due_at: job.due_at(),
            was_retry: job.is_retry(),
            was_alarm: job.alarm_at(),
            was_seq: job.seq,
            was_code: terms::code(&job),
            had_checkpoint: job.has_checkpoint(),
            job,
            history,
            origin,
            lane,
            ready_row: None,
            written_effects: 0,
            is_changed: false,
            is_recalled: false,
            place: None,
        }
    }
}

/// A dead-letter item on the desk, with the version it was loaded at.
#[derive(Debug)]
pub(crate) struct ItemEntry {
    pub(crate) item: DlqItem,
    pub(crate) was: Option<u32>,
    pub(crate) is_changed: bool,
}

/// A key on the desk: who held it when it was loaded, and who holds it now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyEntry {
    pub(crate) was: Option<KeyHolder>,
    pub(crate) now: Option<KeyHolder>,
}

/// What a batch works on.
pub(crate) struct PostgresDesk<'a> {
    pub(crate) now: Timestamp,
    /// What may be taken is due by then.
    due_by: Timestamp,
    pub(crate) entries: Map<JobId, Entry>,
    pub(crate) items: HashMap<DlqId, ItemEntry>,
    pub(crate) entities: DeskEntities,
    pub(crate) keys: HashMap<Digest, KeyEntry>,
    /// Keys of jobs that ended: free from then on.
    pub(crate) freed: Vec<(Digest, JobId, Timestamp)>,
    /// The registries as the batch's decisions see them.
    shown: Arc<Registry>,
    /// The registries as they are when the batch is over: those that count for dispatch.
    pub(crate) registry: &'a Registry,
    /// How the batch changes types, queues and tokens.
    pub(crate) registry_changes: Vec<RegistryChange>,
    book: &'a mut Book<JobId>,
    /// Knows what jobs that have not ended came to before the batch.
    server: &'a ThisServer,
    /// Running jobs under each limit that was counted.
    running: HashMap<Digest, u32>,
    /// Limits that would have had to be counted.
    pub(crate) uncounted: HashSet<Digest>,
    /// Buckets and circuits that were loaded.
    pub(crate) meters: DeskMeters,
    /// Those that would have had to be.
    pub(crate) unloaded: HashSet<Digest>,
    /// Lanes of keys that are full, by what, and until when if that is a matter of time.
    pub(crate) full: Vec<(LaneKey, Digest, Option<Timestamp>)>,
    /// Limits under which a job ended to run.
    pub(crate) freed_limits: HashSet<Digest>,
    /// Whether limits were not counted because there are too many of them.
    pub(crate) has_uncounted: bool,
    /// When the first of them lets go that kept pulls from taking jobs.
    pub(crate) opens_at: Option<Timestamp>,
    /// Jobs in the order in which the batch first changed them.
    pub(crate) changed: Vec<JobId>,
    pub(crate) steps: Vec<LoggedStep>,
    pub(crate) tallies: Tallies,
    /// When the first of the ready jobs that are not due by our clock is.
    pub(crate) early: Option<Timestamp>,
    /// Whether retries gave way to jobs that the pulls could not look at.
    pub(crate) is_short: bool,
}

/// What a desk starts from.
pub(crate) struct Ground<'a> {
    pub(crate) now: Timestamp,
    pub(crate) due_by: Timestamp,
    pub(crate) shown: Arc<Registry>,
    pub(crate) registry: &'a Registry,
    pub(crate) book: &'a mut Book<JobId>,
    pub(crate) running: HashMap<Digest, u32>,
    pub(crate) meters: DeskMeters,
    pub(crate) server: &'a ThisServer,
}

impl<'a> PostgresDesk<'a> {
    pub(crate) fn new(ground: Ground<'a>) -> Self {
        PostgresDesk {
            now: ground.now,
            due_by: ground.due_by,
            entries: Map::default(),
            items: HashMap::new(),
            entities: DeskEntities::default(),
            keys: HashMap::new(),
            freed: Vec::new(),
            shown: ground.shown,
            registry: ground.registry,
            registry_changes: Vec::new(),
            book: ground.book,
            server: ground.server,
            running: ground.running,
            uncounted: HashSet::new(),
            meters: ground.meters,
            unloaded: HashSet::new(),
            full: Vec::new(),
            freed_limits: HashSet::new(),
            has_uncounted: false,
            opens_at: None,
            changed: Vec::new(),
            steps: Vec::new(),
            tallies: Tallies::default(),
            early: None,
            is_short: false,
        }
    }

    /// Puts a job whose ready row may be claimed in the book.
    pub(crate) fn offer(&mut self, stored: Stored, number: i32, key: i64, lane: &LaneKey) {
        let id = stored.job.id;
        let entry = self.entries.entry(id).or_insert_with(|| Entry::new(stored));
        entry.ready_row = Some((number, key));
        // By the clock of whoever put it there it is due; ours may be a moment behind.
        self.early =
            self.early.into_iter().chain(entry.job.due_at()).filter(|at| *at > self.now).min();
        if entry.job.due_at().is_some_and(|due_at| due_at <= self.due_by) {
            let rank = Rank::of(key, id);
            entry.place = Some((self.book.insert(lane, rank, id), rank));
        }
    }

    /// More is ready in these lanes than was offered.
    pub(crate) fn offered_in_part(&mut self, lanes: &[i32], known: &Lanes) {
        for lane in lanes.iter().filter_map(|number| known.key(*number)) {
            self.book.has_more_of(lane);
        }
    }

    /// Puts a job that is due in the book.
    fn stand(&mut self, id: JobId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some(due_at) = entry.job.due_at().filter(|due_at| *due_at <= self.now) else { return };
        let rank = Rank::of(self.registry.key(&entry.job, due_at), id);
        let place = self.book.insert(&self.registry.lane(&entry.job), rank, id);
        entry.place = Some((place, rank));
    }

    /// Takes what is left out of the book: the next batch fills it anew, and only the memory of who
    /// was served stays.
    pub(crate) fn clear_book(&mut self) {
        self.is_short = self.book.is_short();
        for entry in self.entries.values_mut() {
            if let Some((place, rank)) = entry.place.take() {
                self.book.remove(place, rank, entry.job.id);
            }
        }
    }

    fn submit(&mut self, job: Box<Job>) {
        let id = job.id;
        self.tallies.totals.submitted += 1;
        self.tallies.states[StateName::Queued as usize] += 1;
        self.tallies.of_type(&job.job_type, StateName::Queued, 1);
        self.tallies.hold(&job, 1);
        for key in job.keys() {
            let was = self.keys.get(&key.hash).and_then(|entry| entry.was);
            self.keys.insert(key.hash, KeyEntry { was, now: Some(key.held_by(id)) });
        }
        self.steps.push((id, None));
        let history = vec![Transition::submitted(&job)];
        let mut entry = Entry::new(Stored { job, history, version: None, lane: None });
        entry.origin = Origin::New;
        entry.was_due_at = None;
        entry.was_alarm = None;
        entry.had_checkpoint = false;
        entry.is_changed = true;
        self.changed.push(id);
        self.entries.insert(id, entry);
        self.stand(id);
    }

    fn advance(&mut self, event: &JobEvent) {
        let entry = self.entries.get_mut(&event.job).expect("only loaded jobs move");
        if let Some((place, rank)) = entry.place.take() {
            self.book.remove(place, rank, event.job);
        }
        let was = self.registry.counted_under(&entry.job);
        let step = evolve(&mut entry.job, event).expect("decided from this very state");
        let now = self.registry.counted_under(&entry.job);
        for (key, by) in [(was, -1), (now, 1)] {
            if let Some(count) = key.and_then(|key| self.running.get_mut(&key)) {
                *count = count.saturating_add_signed(by);
            }
        }
        if let Some(key) = was {
            self.book.free(key);
            self.freed_limits.insert(key);
        }
        if let Some(spec) = self.registry.metered(&entry.job.job_type) {
            self.unloaded.extend(
                Meters::keys_moved(spec, &entry.job, &event.change)
                    .filter(|key| !self.meters.knows(*key)),
            );
            self.meters.changed.extend(self.meters.all.note(spec, &entry.job, event));
        }
        entry.history.push(step.clone());
        if !std::mem::replace(&mut entry.is_changed, true) {
            self.changed.push(event.job);
        }
        let tallies = &mut self.tallies;
        if let Some(from) = step.from {
            tallies.states[from as usize] -= 1;
            tallies.of_type(&entry.job.job_type, from, -1);
            if from == StateName::Running {
                tallies.queue(&entry.job.queue).running -= 1;
            }
        }
        tallies.states[step.to as usize] += 1;
        tallies.of_type(&entry.job.job_type, step.to, 1);
        if step.to.is_terminal() {
            tallies.hold(&entry.job, -1);
        }
        tallies.totals.count(&step, &entry.job);
        if step.to == StateName::Running {
            tallies.queue(&entry.job.queue).running += 1;
        }
        let ended: Vec<(Idempotency, Timestamp)> = match entry.job.finished_at() {
            Some(at) => entry.job.keys().map(|key| (key.clone(), at)).collect(),
            None => Vec::new(),
        };
        let waits = entry.job.due_at().is_some();
        self.steps.push((event.job, Some(step)));
        for (key, ended_at) in ended {
            self.free(&key, event.job, ended_at);
        }
        if waits {
            self.stand(event.job);
        }
    }

    /// A job has ended: its key is free after its window.
    fn free(&mut self, key: &Idempotency, job: JobId, ended_at: Timestamp) {
        let holder = self.keys.get(&key.hash).and_then(|entry| entry.now);
        let Some(freed) = key.freed_by(holder, job, ended_at) else { return };
        if let Some(KeyEntry { now: Some(now), .. }) = self.keys.get_mut(&key.hash) {
            *now = freed;
        }
        self.freed.push((key.hash, job, key.free_at(ended_at)));
    }
}

impl Desk for PostgresDesk<'_> {
    fn job(&self, id: JobId) -> Option<&Job> {
        self.entries.get(&id).map(|entry| &*entry.job)
    }

    fn item(&self, id: DlqId) -> Option<&DlqItem> {
        self.items.get(&id).map(|entry| &entry.item)
    }

    fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.entities.get(id)
    }

    fn job_type(&self, name: &JobType) -> Option<&TypeSpec> {
        self.shown.types.get(name)
    }

    fn queue(&self, name: &QueueName) -> Option<&QueueSpec> {
        self.shown.queues.get(name)
    }

    fn key_holder(&self, key: Digest) -> Option<KeyHolder> {
        self.keys.get(&key).and_then(|entry| entry.now)
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.shown.tokens.get(&id)
    }

    fn tokens(&self) -> Vec<&Token> {
        self.shown.tokens.values().collect()
    }

    fn held(&self, tenant: &TenantId) -> (Held, u64) {
        let (mut own, all) = self.server.backlog().of(tenant);
        let (own_here, all_here) = self.tallies.held(tenant);
        own.jobs += own_here.jobs;
        own.bytes += own_here.bytes;
        (own.held(), u64::try_from(all.bytes + all_here).unwrap_or(0))
    }

    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, _now: Timestamp) -> Vec<JobId> {
        if self.book.is_empty() {
            return Vec::new();
        }
        let (registry, running, uncounted) = (self.registry, &self.running, &mut self.uncounted);
        let (meters, unloaded, opens_at) = (&self.meters, &mut self.unloaded, &mut self.opens_at);
        let (full, has_uncounted) = (&mut self.full, &mut self.has_uncounted);
        let counted = running.len() + meters.len();
        let (mut reserved, mut metered) = (Taken::default(), Taken::default());
        let now = self.now;
        let mut has_room = |lane: &LaneKey| {
            if registry.is_paused(&lane.job_type) {
                return Room::Full;
            }
            let limit =
                registry.limit(lane).map(|(key, most)| (key.digest(), key.is_keyed(), most));
            if let Some((key, is_keyed, most)) = limit {
                let Some(running) = running.get(&key) else {
                    if counted + uncounted.len() < COUNTED_MAX {
                        uncounted.insert(key);
                    } else {
                        *has_uncounted = true;
                    }
                    return Room::Full;
                };
                if !has_room(running.saturating_add(reserved.count(&key)), most) {
                    // What this pull has taken may come back: nobody would free the lane then.
                    let is_aside = is_keyed && !has_room(*running, most);
                    if is_aside {
                        full.push((lane.clone(), key, None));
                        return Room::Aside(key);
                    }
                    return Room::Full;
                }
            }
            if let Some(spec) = registry.metered(&lane.job_type) {
                let unknown: Vec<Digest> = Meters::keys_of(spec, lane.rate_key())
                    .filter(|key| !meters.knows(*key))
                    .collect();
                if !unknown.is_empty() {
                    if counted + unloaded.len() < COUNTED_MAX {
                        unloaded.extend(unknown);
                    } else {
                        *has_uncounted = true;
                    }
                    return Room::Full;
                }
                if let Some(held) = meters.all.take(spec, lane, now, &mut metered) {
                    *opens_at = (*opens_at).into_iter().chain(held.until).min();
                    if held.is_keyed {
                        full.push((lane.clone(), held.key, held.until));
                    }
                    return Room::Full;
                }
            }
            if let Some((key, ..)) = limit {
                reserved.add(key);
            }
            Room::Free
        };
        let mut open = |queue: &_| registry.open(queue);
        let weight = |tenant: &TenantId| registry.weight(tenant);
        let taken = self.book.take(wanted, limit, &weight, &mut open, &mut has_room);
        for id in &taken {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.place = None;
            }
        }
        taken
    }

    fn opens_at(&self) -> Option<Timestamp> {
        self.opens_at
    }

    fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::JobSubmitted(job) => self.submit(job),
                Event::JobMoved(event) => self.advance(&event),
                Event::LeaseRenewed { job, fence, expires_at, progress_pct, note, settled } => {
                    self.touch(job, |job| {
                        let said = (progress_pct, note.as_deref());
                        let _ = renew(job, fence, expires_at, said, settled);
                    });
                }
                Event::EffectCommitted { job, effect } => self.touch(job, |job| {
                    let _ = keep_effect(job, &effect);
                }),
                Event::ItemOpened(item) => {
                    self.items.entry(item.id).or_insert(ItemEntry {
                        item: *item,
                        was: None,
                        is_changed: true,
                    });
                }
                Event::ItemChanged { item, version, at, state } => {
                    if let Some(entry) = self.items.get_mut(&item) {
                        entry.item.change(version, at, *state);
                        entry.is_changed = true;
                    }
                }
                Event::EntitySet(entity) => self.entities.set(entity.id, Some(*entity)),
                Event::EntityRemoved { entity, .. } => self.entities.set(entity, None),
                Event::TypeSet(spec) => self.change_registry(RegistryChange::Type(spec)),
                Event::QueueSet(spec) => self.change_registry(RegistryChange::Queue(spec)),
                Event::TokenIssued(token) => self.change_registry(RegistryChange::Token(token)),
                Event::TokenRevoked { token, at } => {
                    self.change_registry(RegistryChange::Revoked { token, at });
                }
            }
        }
    }
}

impl PostgresDesk<'_> {
    /// The rest of the batch is decided by the changed registries.
    fn change_registry(&mut self, change: RegistryChange) {
        Arc::make_mut(&mut self.shown).apply(&change);
        self.registry_changes.push(change);
    }

    /// Changes a job in place: not a move.
    fn touch(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        change(&mut entry.job);
        if !std::mem::replace(&mut entry.is_changed, true) {
            self.changed.push(id);
        }
    }
}
