//! What makes a pull cheap: ready jobs in a book, waiting jobs by due time, alarms by instant, and
//! counts that are kept rather than taken. No operation touches a job it is not about.

use super::slab::Slab;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use mainspring_kernel::dispatch::{
    Book, LaneKey, LimitKey, Place, Rank, Room, Taken, Wanted, has_room, rank,
};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::{Held, Meters};
use mainspring_kernel::governance::{tenant_of, weight_of};
use mainspring_kernel::paged::Paged;
use mainspring_kernel::{
    Job, JobEvent, JobType, QueueName, QueueSpec, StateName, TenantId, Timestamp, TypeSpec,
};
use std::collections::{BTreeMap, BTreeSet};

/// Where the index has a job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// It does not wait, or was just taken.
    Nowhere,
    /// Among those not due.
    Waiting,
    /// In the book.
    Ready(Place),
}

/// A queue's settings and numbers.
#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) spec: QueueSpec,
    pub(crate) is_configured: bool,
    pub(crate) ready: u64,
    pub(crate) waiting: u64,
    pub(crate) running: u64,
    /// Due seconds of ready jobs with how many share each: the age of the oldest without a scan.
    due_seconds: BTreeMap<Timestamp, u32>,
    /// Whether it was empty at the last look.
    was_empty: bool,
}

impl Card {
    fn is_empty(&self) -> bool {
        self.ready + self.waiting + self.running == 0
    }

    /// When the oldest ready job was due, to the second.
    pub(crate) fn oldest_due(&self) -> Option<Timestamp> {
        self.due_seconds.first_key_value().map(|(second, _)| *second)
    }
}

/// Jobs of a type that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Depth {
    pub(crate) queued: u64,
    pub(crate) running: u64,
    pub(crate) retrying: u64,
}

/// Queues without jobs are looked for this often, and forgotten the second time.
const QUEUES_LOOK_MS: u64 = 60_000;

/// The indexes.
#[derive(Debug, Default)]
pub(crate) struct Index {
    book: Book<u32>,
    waiting: Paged<(Timestamp, u32)>,
    alarms: Paged<(Timestamp, u32)>,
    pub(crate) types: HashMap<JobType, TypeSpec, RandomState>,
    pub(crate) queues: HashMap<QueueName, Card, RandomState>,
    /// Turns of tenants that somebody has set; none of those that are paused.
    weights: HashMap<TenantId, u32, RandomState>,
    limits: HashMap<LimitKey, u32, RandomState>,
    pub(crate) meters: Meters,
    /// Lanes of the book that a bucket holds aside, and until when.
    refills: BTreeSet<(Timestamp, Digest)>,
    /// When the first bucket or circuit lets go that held something back.
    pub(crate) opens_at: Option<Timestamp>,
    /// The instant of the commit.
    committed_at: Timestamp,
    pub(crate) by_state: [u64; 8],
    /// Of types that have jobs that have not ended.
    pub(crate) by_type: HashMap<JobType, Depth, RandomState>,
    now: Timestamp,
    /// When queues without jobs are looked for next.
    look_at: Timestamp,
    /// Whether jobs became ready by time alone since the last look.
    pub(crate) has_promoted: bool,
}

impl Index {
    /// Lets a new job share its queue's name with all others.
    pub(crate) fn share_names(&mut self, job: &mut Job) {
        match self.queues.get_key_value(&job.queue) {
            Some((name, _)) => job.queue = name.clone(),
            None => {
                self.card(&job.queue);
            }
        }
    }

    /// Indexes a job in its present state.
    pub(crate) fn enter(&mut self, slot: u32, job: &Job) -> Spot {
        self.by_state[job.state.name() as usize] += 1;
        self.count_type(job, 1);
        if let Some(at) = job.alarm_at() {
            self.alarms.insert((at, slot));
        }
        if job.state.name() == StateName::Running {
            self.card(&job.queue).running += 1;
            self.count_running(job, 1);
        }
        self.place(slot, job)
    }

    /// Puts a waiting job where it waits.
    pub(crate) fn place(&mut self, slot: u32, job: &Job) -> Spot {
        let Some(due_at) = job.due_at() else { return Spot::Nowhere };
        let now = self.now;
        let lane = self.lane(job);
        let card = self.card(&job.queue);
        if due_at > now {
            card.waiting += 1;
            self.waiting.insert((due_at, slot));
            return Spot::Waiting;
        }
        card.ready += 1;
        let rank = rank(card.spec.order, job);
        *card.due_seconds.entry(due_at.whole_second()).or_default() += 1;
        Spot::Ready(self.book.insert(&lane, rank, slot))
    }

    /// Takes a job out of every index it is in.
    pub(crate) fn leave(&mut self, slot: u32, job: &Job, spot: Spot) {
        self.by_state[job.state.name() as usize] -= 1;
        self.count_type(job, -1);
        if let Some(at) = job.alarm_at() {
            self.alarms.remove((at, slot));
        }
        if job.state.name() == StateName::Running {
            self.card(&job.queue).running -= 1;
            self.count_running(job, -1);
        }
        self.unplace(slot, job, spot);
    }

    fn unplace(&mut self, slot: u32, job: &Job, spot: Spot) {
        match spot {
            Spot::Nowhere => {}
            Spot::Waiting => {
                self.card(&job.queue).waiting -= 1;
                if let Some(due_at) = job.due_at() {
                    self.waiting.remove((due_at, slot));
                }
            }
            Spot::Ready(place) => {
                let rank = self.rank(job);
                self.book.remove(place, rank, slot);
                self.left_the_book(job);
            }
        }
    }

    /// Keeps the counts right for a job that was taken from the book.
    pub(crate) fn left_the_book(&mut self, job: &Job) {
        let card = self.card(&job.queue);
        card.ready -= 1;
        let Some(due_at) = job.due_at() else { return };
        if let Some(count) = card.due_seconds.get_mut(&due_at.whole_second()) {
            *count -= 1;
            if *count == 0 {
                card.due_seconds.remove(&due_at.whole_second());
            }
        }
    }

    /// A commit begins, or a look at the timers.
    pub(crate) fn begin(&mut self, slab: &mut Slab, now: Timestamp) {
        self.committed_at = now;
        while let Some((_, key)) = self.refills.first().copied().filter(|(at, _)| *at <= now) {
            self.refills.pop_first();
            self.book.free(key);
        }
        self.promote(slab, now);
    }

    /// Whether something that was held back may go by `now`.
    pub(crate) fn has_opened(&mut self, now: Timestamp) -> bool {
        self.opens_at.take_if(|at| *at <= now).is_some()
    }

    /// Moves what is due by `now` from waiting to ready.
    pub(crate) fn promote(&mut self, slab: &mut Slab, now: Timestamp) {
        self.now = self.now.max(now);
        while let Some((due_at, slot)) = self.waiting.first() {
            if due_at > now {
                return;
            }
            self.waiting.remove((due_at, slot));
            let Some(entry) = slab.get_mut(slot) else { continue };
            self.card(&entry.job.queue).waiting -= 1;
            entry.spot = self.place(slot, &entry.job);
            self.has_promoted = true;
        }
    }

    /// Takes the next jobs out of the book, within pauses and limits.
    pub(crate) fn take(&mut self, wanted: &Wanted<'_>, limit: usize) -> Vec<u32> {
        if self.book.is_empty() {
            return Vec::new();
        }
        let Index { book, types, queues, weights, limits, meters, refills, opens_at, .. } = self;
        let weight = |tenant: &TenantId| weights.get(tenant).copied().unwrap_or(1);
        let now = self.committed_at;
        let (mut taken, mut metered) = (Taken::default(), Taken::default());
        let mut open =
            |queue: &QueueName| QueueSpec::open(queues.get(queue).map(|card| &card.spec));
        let mut has_room = |lane: &LaneKey| {
            let Some(spec) = types.get(&lane.job_type) else { return Room::Free };
            if spec.flow.paused.is_some() {
                return Room::Full;
            }
            let limit = LimitKey::of_lane(spec, lane).map(|(key, most)| {
                let running = limits.get(&key).copied().unwrap_or(0);
                (key, running, most)
            });
            if let Some((key, running, most)) = &limit
                && !has_room(running.saturating_add(taken.count(key)), *most)
            {
                // What this pull has taken may come back: nobody would free the lane then.
                let is_aside = key.is_keyed() && !has_room(*running, *most);
                return if is_aside { Room::Aside(key.digest()) } else { Room::Full };
            }
            if spec.flow.has_meters()
                && let Some(Held { until, key, is_keyed, .. }) =
                    meters.take(spec, lane, now, &mut metered)
            {
                *opens_at = (*opens_at).into_iter().chain(until).min();
                return match until.filter(|_| is_keyed) {
                    Some(until) => {
                        refills.insert((until, key));
                        Room::Aside(key)
                    }
                    None => Room::Full,
                };
            }
            if let Some((key, ..)) = limit {
                taken.add(key);
            }
            Room::Free
        };
        book.take(wanted, limit, &weight, &mut open, &mut has_room)
    }

    /// The limit that applies to a job and how much of it is in use.
    pub(crate) fn limit(&self, job: &Job) -> Option<(u32, u32)> {
        let spec = self.types.get(&job.job_type)?;
        let (key, most) = LimitKey::of_job(spec, job)?;
        Some((most, self.limits.get(&key).copied().unwrap_or(0)))
    }

    /// What a job is counted under.
    pub(crate) fn limit_key(&self, job: &Job) -> Option<LimitKey> {
        LimitKey::of_job(self.types.get(&job.job_type)?, job).map(|(key, _)| key)
    }

    /// What holds a job at `now`, beside pauses and concurrency.
    pub(crate) fn held(&self, job: &Job, now: Timestamp) -> Option<Held> {
        let rate_key = job.limit_keys().and_then(|keys| keys.rate.as_deref());
        self.meters.held(self.types.get(&job.job_type)?, rate_key, now, &Taken::default())
    }

    /// A job moved: what remembers how much was handed out learns of it.
    pub(crate) fn note(&mut self, job: &Job, event: &JobEvent) {
        if let Some(spec) = self.types.get(&job.job_type) {
            self.meters.note(spec, job, event);
        }
    }

    /// Whether a job is a retry, and jobs of its queue are ready that are none and go before it.
    pub(crate) fn is_fresh_first(&self, job: &Job) -> bool {
        let spec = self.queues.get(&job.queue).map(|card| &card.spec);
        job.is_retry()
            && QueueSpec::order_of(spec).bounds_retries()
            && self.book.has_fresh(&job.tenant, &job.queue)
    }

    /// How many ready jobs of its lane go before the one at `place`.
    pub(crate) fn ahead(&self, place: Place, slot: u32, job: &Job, limit: usize) -> usize {
        self.book.ahead(place, self.rank(job), slot, limit)
    }

    /// Where a waiting job stands among its like.
    fn rank(&self, job: &Job) -> Rank {
        let spec = self.queues.get(&job.queue).map(|card| &card.spec);
        rank(QueueSpec::order_of(spec), job)
    }

    /// How many jobs are ready.
    pub(crate) fn ready(&self) -> usize {
        self.book.len()
    }

    /// Slots whose alarm has rung by `now`.
    pub(crate) fn rung(&self, now: Timestamp, limit: usize) -> impl Iterator<Item = u32> {
        let by_now = self.alarms.above(None).take_while(move |(at, _)| *at <= now);
        by_now.take(limit).map(|(_, slot)| slot)
    }

    /// Slots with an alarm: every running job is among them.
    pub(crate) fn with_alarm(&self) -> impl Iterator<Item = u32> {
        self.alarms.above(None).map(|(_, slot)| slot)
    }

    /// The next instant after `now` at which a job becomes due or an alarm rings.
    pub(crate) fn next_instant(&self, now: Timestamp) -> Option<Timestamp> {
        let after = (now, u32::MAX);
        let waiting = self.waiting.above(Some(after)).next();
        let alarm = self.alarms.above(Some(after)).next();
        let opens = self.opens_at.filter(|at| *at > now);
        waiting.into_iter().chain(alarm).map(|(at, _)| at).chain(opens).min()
    }

    /// The alarm of a job moved.
    pub(crate) fn alarm_moved(&mut self, slot: u32, from: Timestamp, to: Timestamp) {
        if from != to {
            self.alarms.remove((from, slot));
            self.alarms.insert((to, slot));
        }
    }

    /// Registers or replaces a type before anything is indexed.
    pub(crate) fn know_type(&mut self, spec: TypeSpec) {
        self.types.insert(spec.name.clone(), spec);
    }

    /// Registers or replaces a type; its waiting jobs change lanes and its running ones are
    /// counted anew, because what its limit is counted over may have changed.
    pub(crate) fn set_type(&mut self, spec: TypeSpec, slab: &mut Slab) {
        let name = spec.name.clone();
        self.replace(
            slab,
            |job| job.job_type == name,
            |index| {
                index.limits.retain(|key, _| *key.job_type() != name);
                index.types.insert(name.clone(), spec.clone());
            },
        );
        for slot in self.with_alarm().collect::<Vec<_>>() {
            let Some(entry) = slab.get(slot) else { continue };
            if entry.job.job_type == name && entry.job.state.name() == StateName::Running {
                self.count_running(&entry.job, 1);
            }
        }
    }

    /// Configures a queue; its ready jobs change order.
    pub(crate) fn set_queue(&mut self, spec: QueueSpec, slab: &mut Slab) {
        let name = spec.name.clone();
        if let Some(tenant) = tenant_of(&name) {
            self.weights.insert(tenant, weight_of(&spec));
        }
        let card = self.card(&name);
        card.is_configured = true;
        if card.spec.order == spec.order {
            card.spec = spec;
            return;
        }
        self.replace(
            slab,
            |job| job.queue == name,
            |index| {
                index.card(&name).spec = spec.clone();
            },
        );
    }

    /// Takes the waiting jobs that match out, makes a change, and puts them back.
    fn replace(
        &mut self,
        slab: &mut Slab,
        matches: impl Fn(&Job) -> bool,
        change: impl Fn(&mut Index),
    ) {
        let mut moved = Vec::new();
        for (slot, entry) in slab.iter_mut() {
            if matches(&entry.job) && entry.spot != Spot::Nowhere {
                self.unplace(slot, &entry.job, entry.spot);
                entry.spot = Spot::Nowhere;
                moved.push(slot);
            }
        }
        change(self);
        for slot in moved {
            if let Some(entry) = slab.get_mut(slot) {
                entry.spot = self.place(slot, &entry.job);
            }
        }
    }

    fn count_type(&mut self, job: &Job, step: i64) {
        let field: fn(&mut Depth) -> &mut u64 = match job.state.name() {
            StateName::Queued => |depth| &mut depth.queued,
            StateName::Running => |depth| &mut depth.running,
            StateName::Retrying => |depth| &mut depth.retrying,
            StateName::DlqPending
            | StateName::DlqRecorded
            | StateName::Succeeded
            | StateName::Failed
            | StateName::Cancelled => return,
        };
        match self.by_type.get_mut(&job.job_type) {
            Some(depth) => {
                let count = field(depth);
                *count = count.saturating_add_signed(step);
            }
            None => {
                let mut depth = Depth::default();
                *field(&mut depth) = step.unsigned_abs();
                self.by_type.insert(job.job_type.clone(), depth);
            }
        }
    }

    fn count_running(&mut self, job: &Job, step: i32) {
        let spec = self.types.get(&job.job_type);
        let limit = spec.and_then(|spec| LimitKey::of_job(spec, job));
        let Some((key, _)) = limit else { return };
        if step < 0 && key.is_keyed() {
            self.book.free(key.digest());
        }
        match self.limits.entry(key) {
            Entry::Occupied(mut entry) => {
                *entry.get_mut() = entry.get().saturating_add_signed(step);
                // Of keys there are many.
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
            Entry::Vacant(entry) if step > 0 => {
                entry.insert(step.unsigned_abs());
            }
            Entry::Vacant(_) => {}
        }
    }

    fn lane(&self, job: &Job) -> LaneKey {
        LaneKey::of(job, self.types.get(&job.job_type))
    }

    /// Forgets queues that nobody configured and that have had no jobs for a while, and types that
    /// have none: anybody can make up names.
    pub(crate) fn forget_queues(&mut self, now: Timestamp) {
        if now < self.look_at {
            return;
        }
        self.look_at = now.plus_millis(QUEUES_LOOK_MS);
        self.queues.retain(|_, card| {
            let is_empty = card.is_empty();
            let was_empty = std::mem::replace(&mut card.was_empty, is_empty);
            card.is_configured || !(was_empty && is_empty)
        });
        self.by_type.retain(|_, depth| *depth != Depth::default());
        self.meters.forget_idle(now);
    }

    fn card(&mut self, queue: &QueueName) -> &mut Card {
        if !self.queues.contains_key(queue) {
            let card = Card {
                spec: QueueSpec::plain(queue.clone()),
                is_configured: false,
                ready: 0,
                waiting: 0,
                running: 0,
                due_seconds: BTreeMap::new(),
                was_empty: false,
            };
            self.queues.insert(queue.clone(), card);
        }
        self.queues.get_mut(queue).expect("just made sure")
    }
}
