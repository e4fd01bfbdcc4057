//! The book of ready jobs, kept in lanes so that taking the best, putting one in and taking one
//! out cost the same however many wait.

use super::lane::{LaneKey, Room};
use super::turns::{Turn, Turns};
use crate::fingerprint::Digest;
use crate::governance::{is_governed, is_held};
use crate::id::JobId;
use crate::limits::RETRY_EVERY;
use crate::name::{JobType, QueueName, TenantId};
use crate::paged::Paged;
use crate::registry::QueueOrder;
use std::collections::{BTreeSet, HashMap};

/// The lane a job stands in: together with its rank, what it takes to take it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

/// Where a job stands in its lane. Derived from the job alone, so it need not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Smaller goes first; see [`super::order_key`].
    pub key: i64,
    /// Among equal keys, the one submitted first goes first.
    pub number: u64,
}

impl Rank {
    /// The rank of a job with that order key. Ids rise with time, so their upper half orders equal
    /// keys by submission.
    pub const fn of(key: i64, id: JobId) -> Rank {
        Rank { key, number: (id.0 >> 64) as u64 }
    }
}

/// What a pull asks for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// One tenant, or all of them in turn.
    pub tenant: Option<&'a TenantId>,
    /// Only these types, or any that is not governed.
    pub types: Option<&'a [JobType]>,
    /// Only these queues, or any.
    pub queues: Option<&'a [QueueName]>,
}

impl Wanted<'_> {
    /// Whether jobs of a lane are asked for.
    pub fn lane(&self, lane: &LaneKey) -> bool {
        self.tenant.is_none_or(|tenant| *tenant == lane.tenant)
            && self.queue(&lane.queue)
            && self.job_type(&lane.job_type)
    }

    fn queue(&self, queue: &QueueName) -> bool {
        self.queues.is_none_or(|queues| queues.contains(queue))
    }

    fn job_type(&self, job_type: &JobType) -> bool {
        match self.types {
            Some(types) => types.contains(job_type),
            // Governed jobs are for whoever asks for them by name.
            None => !is_governed(job_type),
        }
    }
}

#[derive(Debug)]
struct Lane<H> {
    key: LaneKey,
    jobs: Paged<(Rank, H)>,
    /// What it is set aside under: then it is not among the heads.
    aside: Option<Digest>,
    /// Whether more of its jobs are ready than the book has.
    has_more: bool,
}

/// The lanes of one tenant and queue, best head first.
#[derive(Debug, Default)]
struct Heads {
    fresh: BTreeSet<(Rank, u32)>,
    retries: BTreeSet<(Rank, u32)>,
    /// So many that are no retries go before the next retry.
    owed: u32,
    /// Whether others than retries are ready that the book does not have.
    is_short: bool,
}

impl Heads {
    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.retries.is_empty()
    }

    /// Those that stand where this lane does.
    fn beside(&mut self, lane: &LaneKey) -> &mut BTreeSet<(Rank, u32)> {
        if lane.is_retry { &mut self.retries } else { &mut self.fresh }
    }

    /// The lanes in the order in which they are served: the best heads first, but retries after all
    /// others as long as such are owed.
    fn in_turn(&self, order: QueueOrder) -> impl Iterator<Item = u32> {
        let (mut fresh, mut retries) =
            (self.fresh.iter().peekable(), self.retries.iter().peekable());
        let (is_owed, is_short) = (order.bounds_retries() && self.owed > 0, self.is_short);
        std::iter::from_fn(move || {
            let is_retry = match (fresh.peek(), retries.peek()) {
                (Some(fresh), Some(retry)) => !is_owed && retry < fresh,
                (Some(_), None) => false,
                (None, _) if is_owed && is_short => return None,
                (None, _) => true,
            };
            let next = if is_retry { retries.next() } else { fresh.next() };
            next.map(|(_, index)| *index)
        })
    }

    /// One was served.
    fn served(&mut self, is_retry: bool, order: QueueOrder) {
        self.owed = match is_retry && order.bounds_retries() {
            true => RETRY_EVERY - 1,
            false => self.owed.saturating_sub(1),
        };
    }
}

/// Ready jobs by tenant, queue and lane. `H` is how the owner names a job.
///
/// # Fairness
/// A job is *eligible* in a pull if the pull wants it, its tenant and its queue are open and its
/// lane has room. A tenant that weighs `w` counts as `w` tenants that follow each other.
/// From the moment a tenant has ready jobs until it is served, pulls in which it is eligible serve
/// every other tenant at most once: with `n` tenants in the book it waits for at most `n - 1`
/// grants. The same holds for the queues of one tenant. It holds for any mix of pulls, with or
/// without filters, because turns are ordered by who was served last, which is remembered of those
/// who have nothing ready too, and not by a place in a ring, which a filtered pull could push past
/// somebody. Within a lane the order is that of the
/// keys, always. `tests/book.rs` proves all three against a naive model.
///
/// # Retries
/// Among the lanes of a queue of a tenant the best head goes first, whatever its type. But of
/// [`RETRY_EVERY`] jobs in a row one at most is a retry, as long as others are eligible: however
/// many jobs fail over and over, the fresh ones keep the rest of the turns. If no others are
/// eligible, retries go at once; and a queue that promises an order keeps to that
/// ([`QueueOrder::bounds_retries`]).
///
/// # Cost
/// A grant costs a few tree lookups, and one question for every tenant, queue or lane passed over
/// because it was not eligible.
#[derive(Debug)]
pub struct Book<H> {
    lanes: Vec<Option<Lane<H>>>,
    free: Vec<u32>,
    by_key: HashMap<LaneKey, u32>,
    tenants: Turns<TenantId, Turns<QueueName, Heads>>,
    /// Lanes that nobody need ask about, by what will free them.
    aside: HashMap<Digest, Vec<u32>>,
    len: usize,
    /// The turns before each serving since the mark, if there is one.
    servings: Option<Vec<Serving>>,
    /// The queues of tenants that are short since the mark.
    short: Vec<(TenantId, QueueName)>,
}

/// Whom a grant served, with the turns they had before.
#[derive(Debug)]
struct Serving {
    tenant: (TenantId, Turn),
    queue: (QueueName, Turn),
    owed: u32,
}

impl<H> Default for Book<H> {
    fn default() -> Self {
        Book {
            lanes: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            tenants: Turns::default(),
            aside: HashMap::new(),
            len: 0,
            servings: None,
            short: Vec::new(),
        }
    }
}

impl<H: Copy + Ord> Book<H> {
    /// How many jobs are ready.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a job in.
    pub fn insert(&mut self, lane: &LaneKey, rank: Rank, job: H) -> Place {
        let index = match self.by_key.get(lane) {
            Some(index) => *index,
            None => self.open_lane(lane.clone()),
        };
        let lane = self.lanes[index as usize].as_mut().expect("named lanes exist");
        let old_head = lane.jobs.first().map(|(head, _)| head);
        if lane.jobs.insert((rank, job)) {
            self.len += 1;
        }
        if lane.aside.is_none() && old_head.is_none_or(|old| rank < old) {
            let queues = self.tenants.join(&lane.key.tenant);
            let heads = queues.join(&lane.key.queue).beside(&lane.key);
            if let Some(old) = old_head {
                heads.remove(&(old, index));
            }
            heads.insert((rank, index));
        }
        Place(index)
    }

    /// Takes a job out of its place; `false` if it was not there.
    pub fn remove(&mut self, place: Place, rank: Rank, job: H) -> bool {
        let Place(index) = place;
        let Some(Some(lane)) = self.lanes.get_mut(index as usize) else { return false };
        let old_head = lane.jobs.first().map(|(head, _)| head);
        if !lane.jobs.remove((rank, job)) {
            return false;
        }
        self.len -= 1;
        let new_head = lane.jobs.first().map(|(head, _)| head);
        if lane.aside.is_none() && new_head != old_head {
            let queues = self.tenants.join(&lane.key.tenant);
            let heads = queues.join(&lane.key.queue).beside(&lane.key);
            heads.remove(&(rank, index));
            heads.extend(new_head.map(|head| (head, index)));
        }
        if new_head.is_none() {
            self.close_lane(index);
        }
        true
    }

    /// What lanes were set aside under has room again.
    pub fn free(&mut self, aside: Digest) {
        for index in self.aside.remove(&aside).into_iter().flatten() {
            let Some(lane) = self.lanes.get_mut(index as usize).and_then(Option::as_mut) else {
                continue;
            };
            lane.aside = None;
            let head = lane.jobs.first().map(|(head, _)| (head, index));
            let queues = self.tenants.join(&lane.key.tenant);
            queues.join(&lane.key.queue).beside(&lane.key).extend(head);
        }
    }

    /// A lane is asked about no more until it is freed.
    fn set_aside(&mut self, index: u32, under: Digest) {
        let Some(lane) = self.lanes.get_mut(index as usize).and_then(Option::as_mut) else {
            return;
        };
        lane.aside = Some(under);
        self.aside.entry(under).or_default().push(index);
        let LaneKey { tenant, queue, .. } = lane.key.clone();
        let head = lane.jobs.first().map(|(head, _)| head);
        if let (Some(head), Some(queues)) = (head, self.tenants.get_mut(&tenant)) {
            queues.join(&queue).beside(&lane.key).remove(&(head, index));
        }
        self.leave_if_empty(&tenant, &queue);
    }

    /// From here on, who is served can be undone, until the next mark.
    pub fn mark(&mut self) {
        self.servings = Some(Vec::new());
        for (tenant, queue) in std::mem::take(&mut self.short) {
            let queues = self.tenants.value_mut(&tenant);
            if let Some(heads) = queues.and_then(|queues| queues.value_mut(&queue)) {
                heads.is_short = false;
            }
        }
    }

    /// Until the next mark more jobs of a lane are ready than the book has. Once those that it has
    /// are gone, retries of the queue do not go in their place.
    pub fn has_more_of(&mut self, lane: &LaneKey) {
        let index = self.by_key.get(lane).copied();
        let lane = index.and_then(|index| self.lanes.get_mut(index as usize)?.as_mut());
        if let Some(lane) = lane.filter(|lane| !lane.key.is_retry) {
            lane.has_more = true;
        }
    }

    /// Whether retries may be waiting for jobs that the book does not have.
    pub fn is_short(&self) -> bool {
        self.short.iter().any(|(tenant, queue)| {
            let heads = self.tenants.get(tenant).and_then(|queues| queues.get(queue));
            heads.is_some_and(|heads| heads.owed > 0 && !heads.retries.is_empty())
        })
    }

    /// Nobody was served since the mark: what they got was not given after all.
    pub fn undo_servings(&mut self) {
        for serving in self.servings.take().into_iter().flatten().rev() {
            let (tenant, turn) = serving.tenant;
            self.tenants.restore(&tenant, turn);
            if let Some(queues) = self.tenants.value_mut(&tenant) {
                queues.restore(&serving.queue.0, serving.queue.1);
                if let Some(heads) = queues.value_mut(&serving.queue.0) {
                    heads.owed = serving.owed;
                }
            }
        }
    }

    /// Whether anything but retries is ready in that queue of a tenant.
    pub fn has_fresh(&self, tenant: &TenantId, queue: &QueueName) -> bool {
        let heads = self.tenants.get(tenant).and_then(|queues| queues.get(queue));
        heads.is_some_and(|heads| !heads.fresh.is_empty())
    }

    /// How many jobs of the same lane go before this one; counts at most `limit`.
    pub fn ahead(&self, place: Place, rank: Rank, job: H, limit: usize) -> usize {
        match self.lanes.get(place.0 as usize) {
            Some(Some(lane)) => lane.jobs.count_below((rank, job), limit),
            _ => 0,
        }
    }

    /// Takes the next `limit` jobs out, in order. `has_room` is asked once for every job about to
    /// be taken and reserves a place under its lane's limits when there is room; a lane may be set
    /// aside until it is freed. `weight` says how many turns a tenant has, none if it is paused. A
    /// queue for which `open` names no order is closed: it is passed over, and so is a lane that a
    /// closed gate holds.
    pub fn take(
        &mut self,
        wanted: &Wanted<'_>,
        limit: usize,
        weight: &dyn Fn(&TenantId) -> u32,
        open: &mut dyn FnMut(&QueueName) -> Option<QueueOrder>,
        has_room: &mut dyn FnMut(&LaneKey) -> Room,
    ) -> Vec<H> {
        let mut taken = Vec::new();
        if let Some(tenant) = wanted.tenant {
            while taken.len() < limit
                && let Some(job) = self.take_from((tenant, weight(tenant)), wanted, open, has_room)
            {
                taken.push(job);
            }
            return taken;
        }
        // One walk is enough: who is served comes up again further on, and who is not eligible
        // now will not be before the walk is over.
        let mut passed = None;
        while taken.len() < limit {
            let Some(place) = self.tenants.next_after(passed.as_ref()) else { break };
            let weight = weight(&place.1);
            match self.take_from((&place.1, weight), wanted, open, has_room) {
                Some(job) => taken.push(job),
                None => passed = Some(place),
            }
        }
        taken
    }

    fn take_from(
        &mut self,
        (tenant, weight): (&TenantId, u32),
        wanted: &Wanted<'_>,
        open: &mut dyn FnMut(&QueueName) -> Option<QueueOrder>,
        has_room: &mut dyn FnMut(&LaneKey) -> Room,
    ) -> Option<H> {
        if weight == 0 {
            return None;
        }
        let mut full = Vec::new();
        let queues = self.tenants.get_mut(tenant)?;
        let found = queues.iter().find_map(|(name, heads)| {
            if !wanted.queue(name) {
                return None;
            }
            let order = open(name)?;
            heads.in_turn(order).find_map(|index| {
                let lane = self.lanes[index as usize].as_ref()?;
                let mut is_open = |queue: &QueueName| open(queue).is_some();
                if !wanted.job_type(&lane.key.job_type) || is_held(&lane.key, &mut is_open) {
                    return None;
                }
                match has_room(&lane.key) {
                    Room::Free => Some(((name.clone(), order), index, lane.jobs.first()?)),
                    Room::Full => None,
                    Room::Aside(under) => {
                        full.push((index, under));
                        None
                    }
                }
            })
        });
        for (index, under) in full {
            self.set_aside(index, under);
        }
        let ((queue, order), index, head) = found?;
        let queues = self.tenants.get_mut(tenant)?;
        let queue_turn = queues.turn(&queue);
        queues.served(&queue, 1);
        let is_retry = self.lanes[index as usize].as_ref().is_some_and(|lane| lane.key.is_retry);
        let heads = queues.value_mut(&queue)?;
        let owed = heads.owed;
        heads.served(is_retry, order);
        if let Some(servings) = &mut self.servings {
            let turn = self.tenants.turn(tenant);
            let queue = (queue, queue_turn);
            servings.push(Serving { tenant: (tenant.clone(), turn), queue, owed });
        }
        self.tenants.served(tenant, weight);
        let (rank, job) = head;
        self.remove(Place(index), rank, job).then_some(job)
    }

    fn open_lane(&mut self, key: LaneKey) -> u32 {
        let lane = Lane { key: key.clone(), jobs: Paged::default(), aside: None, has_more: false };
        let index = match self.free.pop() {
            Some(index) => {
                self.lanes[index as usize] = Some(lane);
                index
            }
            None => {
                self.lanes.push(Some(lane));
                u32::try_from(self.lanes.len() - 1).expect("fewer than 2^32 lanes")
            }
        };
        self.by_key.insert(key, index);
        index
    }

    fn close_lane(&mut self, index: u32) {
        let Some(lane) = self.lanes[index as usize].take() else { return };
        self.by_key.remove(&lane.key);
        self.free.push(index);
        if let Some(under) = lane.aside
            && let Some(lanes) = self.aside.get_mut(&under)
        {
            lanes.retain(|other| *other != index);
            if lanes.is_empty() {
                self.aside.remove(&under);
            }
        }
        let LaneKey { tenant, queue, .. } = lane.key;
        if lane.has_more {
            self.tenants.join(&tenant).join(&queue).is_short = true;
            self.short.push((tenant.clone(), queue.clone()));
        }
        self.leave_if_empty(&tenant, &queue);
    }

    /// A queue without lanes to ask about takes no turns, nor does a tenant without such queues.
    fn leave_if_empty(&mut self, tenant: &TenantId, queue: &QueueName) {
        let Some(queues) = self.tenants.get_mut(tenant) else { return };
        if queues.get(queue).is_some_and(Heads::is_empty) {
            queues.leave(queue);
        }
        if queues.is_empty() {
            self.tenants.leave(tenant);
        }
    }
}
