//! The book of ready jobs, kept in lanes so that taking the best, putting one in and taking one
//! out cost the same however many wait.

use crate::name::{JobType, QueueName, TenantId, UserId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Jobs that compete by order key alone, and share one concurrency count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The queue.
    pub queue: QueueName,
    /// The type.
    pub job_type: JobType,
    /// The user, for types whose concurrency is limited per user.
    pub user: Option<UserId>,
}

/// Where a job stands in the book: what it takes to take it out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    lane: u32,
    key: i64,
    number: u64,
}

/// What a pull asks for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// One tenant, or all of them in turn.
    pub tenant: Option<&'a TenantId>,
    /// Only these types, or any.
    pub types: Option<&'a [JobType]>,
    /// Only these queues, or any.
    pub queues: Option<&'a [QueueName]>,
}

impl Wanted<'_> {
    fn queue(&self, queue: &QueueName) -> bool {
        self.queues.is_none_or(|queues| queues.contains(queue))
    }

    fn job_type(&self, job_type: &JobType) -> bool {
        self.types.is_none_or(|types| types.contains(job_type))
    }
}

#[derive(Debug)]
struct Lane<H> {
    key: LaneKey,
    jobs: BTreeMap<(i64, u64), H>,
}

/// The lanes of one tenant and queue, best head first.
#[derive(Debug, Default)]
struct Heads(BTreeSet<(i64, u64, u32)>);

#[derive(Debug, Default)]
struct Tenant {
    queues: BTreeMap<QueueName, Heads>,
    last_queue: Option<QueueName>,
}

/// Ready jobs by tenant, queue and lane. `H` is how the owner names a job.
#[derive(Debug)]
pub struct Book<H> {
    lanes: Vec<Option<Lane<H>>>,
    free: Vec<u32>,
    by_key: HashMap<LaneKey, u32>,
    tenants: BTreeMap<TenantId, Tenant>,
    last_tenant: Option<TenantId>,
    len: usize,
    next_number: u64,
}

impl<H> Default for Book<H> {
    fn default() -> Self {
        Book {
            lanes: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            tenants: BTreeMap::new(),
            last_tenant: None,
            len: 0,
            next_number: 0,
        }
    }
}

impl<H: Copy> Book<H> {
    /// How many jobs are ready.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a job in; equal keys go in arrival order.
    pub fn insert(&mut self, lane: &LaneKey, key: i64, job: H) -> Place {
        let number = self.next_number;
        self.next_number += 1;
        let index = match self.by_key.get(lane) {
            Some(index) => *index,
            None => self.open_lane(lane.clone()),
        };
        let lane = self.lanes[index as usize].as_mut().expect("named lanes exist");
        let old_head = lane.jobs.first_key_value().map(|(at, _)| *at);
        lane.jobs.insert((key, number), job);
        if old_head.is_none_or(|old| (key, number) < old) {
            let heads = heads(&mut self.tenants, &lane.key);
            if let Some((key, number)) = old_head {
                heads.0.remove(&(key, number, index));
            }
            heads.0.insert((key, number, index));
        }
        self.len += 1;
        Place { lane: index, key, number }
    }

    /// Takes a job out.
    pub fn remove(&mut self, place: Place) -> Option<H> {
        let lane = self.lanes.get_mut(place.lane as usize)?.as_mut()?;
        let job = lane.jobs.remove(&(place.key, place.number))?;
        self.len -= 1;
        let heads = heads(&mut self.tenants, &lane.key);
        if heads.0.remove(&(place.key, place.number, place.lane))
            && let Some(((key, number), _)) = lane.jobs.first_key_value()
        {
            heads.0.insert((*key, *number, place.lane));
        }
        if lane.jobs.is_empty() {
            self.close_lane(place.lane);
        }
        Some(job)
    }

    /// How many jobs of the same lane go before the one at `place`; counts at most `limit`.
    pub fn ahead(&self, place: Place, limit: usize) -> usize {
        match self.lanes.get(place.lane as usize) {
            Some(Some(lane)) => lane.jobs.range(..(place.key, place.number)).take(limit).count(),
            _ => 0,
        }
    }

    /// Takes the next `limit` jobs out, in order. `has_room` is asked once for every job about to
    /// be taken and reserves a place under its lane's limits when it answers yes; a queue for
    /// which `is_open` says no is passed over.
    pub fn take(
        &mut self,
        wanted: &Wanted<'_>,
        limit: usize,
        is_open: &mut dyn FnMut(&QueueName) -> bool,
        has_room: &mut dyn FnMut(&LaneKey) -> bool,
    ) -> Vec<H> {
        let mut taken = Vec::new();
        let mut ring = self.ring(wanted.tenant);
        let mut turn = 0;
        while taken.len() < limit && !ring.is_empty() {
            turn %= ring.len();
            match self.take_from(&ring[turn], wanted, is_open, has_room) {
                Some(job) => {
                    taken.push(job);
                    self.last_tenant = Some(ring[turn].clone());
                    turn += 1;
                }
                None => {
                    ring.remove(turn);
                }
            }
        }
        taken
    }

    /// The tenants with ready jobs, starting after the one that was served last.
    fn ring(&self, only: Option<&TenantId>) -> Vec<TenantId> {
        if let Some(tenant) = only {
            return vec![tenant.clone()];
        }
        let after =
            |last: &TenantId| (std::ops::Bound::Excluded(last.clone()), std::ops::Bound::Unbounded);
        match &self.last_tenant {
            None => self.tenants.keys().cloned().collect(),
            Some(last) => {
                let later = self.tenants.range(after(last));
                let earlier = self.tenants.range(..=last.clone());
                later.chain(earlier).map(|(tenant, _)| tenant.clone()).collect()
            }
        }
    }

    fn take_from(
        &mut self,
        tenant: &TenantId,
        wanted: &Wanted<'_>,
        is_open: &mut dyn FnMut(&QueueName) -> bool,
        has_room: &mut dyn FnMut(&LaneKey) -> bool,
    ) -> Option<H> {
        let ready = self.tenants.get(tenant)?;
        let place = {
            let mut queues = in_turn(&ready.queues, ready.last_queue.as_ref())
                .filter(|(name, _)| wanted.queue(name) && is_open(name));
            queues.find_map(|(_, heads)| {
                heads.0.iter().find_map(|&(key, number, lane)| {
                    let key_of = &self.lanes[lane as usize].as_ref()?.key;
                    (wanted.job_type(&key_of.job_type) && has_room(key_of)).then_some(Place {
                        lane,
                        key,
                        number,
                    })
                })
            })?
        };
        if ready.queues.len() > 1 {
            let queue = self.lanes[place.lane as usize].as_ref().map(|lane| lane.key.queue.clone());
            if let Some(tenant) = self.tenants.get_mut(tenant) {
                tenant.last_queue = queue;
            }
        }
        self.remove(place)
    }

    fn open_lane(&mut self, key: LaneKey) -> u32 {
        let lane = Lane { key: key.clone(), jobs: BTreeMap::new() };
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
        if let Some(tenant) = self.tenants.get_mut(&lane.key.tenant) {
            if tenant.queues.get(&lane.key.queue).is_some_and(|heads| heads.0.is_empty()) {
                tenant.queues.remove(&lane.key.queue);
            }
            if tenant.queues.is_empty() {
                self.tenants.remove(&lane.key.tenant);
            }
        }
    }
}

fn heads<'a>(tenants: &'a mut BTreeMap<TenantId, Tenant>, key: &LaneKey) -> &'a mut Heads {
    if !tenants.contains_key(&key.tenant) {
        tenants.insert(key.tenant.clone(), Tenant::default());
    }
    let tenant = tenants.get_mut(&key.tenant).expect("just made sure");
    if !tenant.queues.contains_key(&key.queue) {
        tenant.queues.insert(key.queue.clone(), Heads::default());
    }
    tenant.queues.get_mut(&key.queue).expect("just made sure")
}

/// The queues of a tenant, starting after the one that was served last.
fn in_turn<'a>(
    queues: &'a BTreeMap<QueueName, Heads>,
    last: Option<&'a QueueName>,
) -> impl Iterator<Item = (&'a QueueName, &'a Heads)> {
    let is_later = move |name: &QueueName| last.is_some_and(|last| name > last);
    let later = queues.iter().filter(move |(name, _)| is_later(name));
    let earlier = queues.iter().filter(move |(name, _)| !is_later(name));
    later.chain(earlier)
}
