//! The stock: rows of `ready`, with their jobs, that the writer of this server has read ahead and
//! may hand out to pulls. By lane: from which row on to read, and the first rows from there.
//!
//! Only a memory. Nothing in it is locked: the claim proves itself by deleting the row
//! (`DeleteReady`), reading again finds what was missed, and a server whose stock others empty
//! locks what it reads for a while (`LockReady` instead of `PeekReady`). Never talks to the
//! database; `commit/offers.rs` does.

use crate::lanes::Lanes;
use crate::registry::Registry;
use crate::rows::Stored;
use crate::throttle::Throttle;
use crate::values::{Map, uuid};
use mainspring_kernel::dispatch::{LaneKey, has_room};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::governance::is_held;
use mainspring_kernel::{JobId, QueueOrder, Timestamp};
use mainspring_store::PullNeeds;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Where a row of `ready` stands in its lane: order key and id.
pub(crate) type ReadyKey = (i64, Uuid);

const START: ReadyKey = (i64::MIN, Uuid::nil());

/// Lanes looked at in one batch, at most.
const LANES_MAX: usize = 500;
/// Jobs looked at in one lane at least, however many lanes share a pull.
const PER_LANE_MIN: usize = 16;
/// Jobs looked at over all lanes, about, because there are retries beside others.
const BESIDE_RETRIES_MAX: usize = 20_000;
/// Jobs looked at in one lane because the batch names others, at most.
const NAMED_MAX: usize = 64;
/// Jobs kept in stock over all lanes, about.
const STOCK: usize = 512;
/// Jobs in the stock of one lane, at most.
const STOCK_MAX: usize = 2_048;
/// A stock is not trusted for longer: others may have put jobs in ahead.
const STOCK_AGE_MAX: Duration = Duration::from_millis(200);
/// How long a server locks what it looks at after somebody emptied its stock.
const LOCKING: Duration = Duration::from_secs(1);
/// A lane that never runs dry is looked at from the start this often: for rows that another server
/// let go of again, or put in ahead.
const FROM_START_EVERY: Duration = Duration::from_secs(2);
/// For how long a lane is passed over whose key was full, if nobody tells that it no longer is.
const FULL_AGE_MAX: Duration = Duration::from_secs(1);
/// A lane that has run dry is looked at from the start this often.
const DRY_AGAIN_EVERY: Duration = Duration::from_millis(100);

/// A key that had no room.
#[derive(Debug)]
struct Full {
    /// The limit or the bucket.
    by: Digest,
    /// Until then, if it is a matter of time.
    until: Option<Timestamp>,
    seen_at: Instant,
}

/// What is known of the rows that one lane has in `ready`.
#[derive(Debug)]
struct LaneStock {
    /// Rows are read from here on: those before were claimed.
    from: ReadyKey,
    /// When the lane was last read from its start.
    from_start: Throttle,
    rows: BTreeMap<ReadyKey, Stored>,
    /// When the rows were read.
    stocked_at: Option<Instant>,
    /// Whether the lane had no more than what was found, and was looked at from the start.
    is_all: bool,
    is_from_start: bool,
}

impl LaneStock {
    const fn new() -> Self {
        LaneStock {
            from: START,
            from_start: Throttle::new(),
            rows: BTreeMap::new(),
            stocked_at: None,
            is_all: false,
            is_from_start: false,
        }
    }

    fn empty(&mut self) {
        self.rows.clear();
        self.stocked_at = None;
        self.is_all = false;
    }
}

/// The lanes that may have rows in `ready`, and the first of those rows.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    lanes: BTreeMap<i32, LaneStock>,
    /// Whether others may have put rows in lanes that are not known here.
    has_to_find_lanes: bool,
    knows_nothing: bool,
    /// When lanes with rows were last looked for.
    found_at: Throttle,
    /// Until when rows are locked as they are read.
    locking_until: Option<Instant>,
    /// Where the next batch begins when there are more lanes than one batch looks at.
    turn: i32,
    /// Lanes of keys that were full when somebody looked.
    full: HashMap<i32, Full>,
}

/// Which rows of `ready` to read for the pulls of one batch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The lanes that may serve the pulls.
    pub(crate) lanes: Vec<i32>,
    /// How many of each are offered, at most.
    pub(crate) per_lane: usize,
    /// The lanes that have to be read, and from where.
    pub(crate) to_read: Vec<i32>,
    pub(crate) keys: Vec<i64>,
    pub(crate) ids: Vec<Uuid>,
    /// How many of each are read, at most.
    pub(crate) read_most: usize,
    /// Whether the rows that are read are locked.
    pub(crate) is_locking: bool,
    /// Whether there are lanes that this batch does not look at.
    pub(crate) has_more: bool,
    /// The lanes that may have more than is offered.
    pub(crate) cut: Vec<i32>,
}

/// A row of `ready` that may be claimed: its lane, its order key and its job.
pub(crate) type Offer = (i32, i64, Stored);

impl Stock {
    /// Others may have put rows in `ready`, in any lane.
    pub(crate) fn others_filled_lanes(&mut self) {
        self.has_to_find_lanes = true;
        // They may also have ended what filled a limit.
        self.full.clear();
    }

    /// Whether to look for lanes with rows in `ready` now (`FindLanes`).
    pub(crate) fn has_to_find_lanes(&self) -> bool {
        self.knows_nothing || (self.has_to_find_lanes && self.found_at.is_due(Duration::ZERO))
    }

    /// How long a look that is due has to be put off.
    pub(crate) fn finds_lanes_in(&self) -> Option<Duration> {
        (self.has_to_find_lanes && !self.has_to_find_lanes())
            .then(|| self.found_at.due_in(Duration::ZERO))
    }

    /// These lanes have no room under these limits; nobody need look at them for a while.
    pub(crate) fn lanes_full(&mut self, lanes: Vec<(i32, Digest, Option<Timestamp>)>) {
        let seen_at = Instant::now();
        let full = |(lane, by, until)| (lane, Full { by, until, seen_at });
        self.full.extend(lanes.into_iter().map(full));
    }

    /// There may be room under these limits.
    pub(crate) fn limits_freed(&mut self, freed: &HashSet<Digest>) {
        if !freed.is_empty() && !self.full.is_empty() {
            self.full.retain(|_, full| !freed.contains(&full.by));
        }
    }

    /// Nothing is known any more.
    pub(crate) fn forget_lanes(&mut self) {
        self.full.clear();
        self.lanes.clear();
        self.knows_nothing = true;
    }

    /// What was in stock went to a batch that came to nothing.
    pub(crate) fn empty(&mut self) {
        self.lanes.values_mut().for_each(LaneStock::empty);
    }

    /// Somebody got ahead: the stock is worthless, and for a while rows are locked as they are
    /// read.
    pub(crate) fn lock_for_a_while(&mut self) {
        self.empty();
        self.locking_until = Some(Instant::now() + LOCKING);
    }

    /// A look that began then found rows in these lanes.
    pub(crate) fn found_lanes(&mut self, lanes: impl IntoIterator<Item = i32>, began: Instant) {
        self.has_to_find_lanes = false;
        self.knows_nothing = false;
        self.found_at.done(began);
        for lane in lanes {
            let lane_stock = self.lanes.entry(lane).or_insert_with(LaneStock::new);
            if lane_stock.rows.is_empty() {
                *lane_stock = LaneStock::new();
            }
        }
    }

    /// Rows were put in a lane, nobody here knows which.
    pub(crate) fn lane_filled(&mut self, lane: i32) {
        *self.lanes.entry(lane).or_insert_with(LaneStock::new) = LaneStock::new();
    }

    /// A batch of this server put a row in a lane: it goes into the stock too, if it is the next
    /// there or the stock is all there is. Otherwise the next look finds it.
    pub(crate) fn row_written(&mut self, lane: i32, place: ReadyKey, stored: Option<Stored>) {
        let lane_stock = self.lanes.entry(lane).or_insert_with(LaneStock::new);
        let is_ahead = lane_stock.rows.last_key_value().is_some_and(|(last, _)| place < *last);
        match stored {
            Some(stored)
                if is_ahead || (lane_stock.is_all && lane_stock.rows.len() < STOCK_MAX) =>
            {
                lane_stock.rows.insert(place, stored);
            }
            Some(_) => lane_stock.is_all = false,
            None => lane_stock.empty(),
        }
        // The place before: rows that lie between were taken, or will be found from the start.
        lane_stock.from = lane_stock.from.min((place.0, before(place.1)));
    }

    /// Which rows to read for `pulls`; none if no lane that is wanted may have jobs. In each lane
    /// `named` more are read: jobs that the batch names may be gone before its pulls come.
    pub(crate) fn plan_reads(
        &mut self,
        (pulls, needs_now): (&[PullNeeds], Timestamp),
        named: usize,
        registry: &Registry,
        lanes: &Lanes,
    ) -> Plan {
        let now = Instant::now();
        self.full.retain(|_, full| {
            let is_over = full.until.is_some_and(|until| until <= needs_now);
            !is_over && now - full.seen_at < FULL_AGE_MAX
        });
        let full = &self.full;
        let is_wanted = |number: &i32| {
            let is_full = full.contains_key(number);
            !is_full
                && lanes.key(*number).is_none_or(|lane| {
                    registry.is_open(&lane.queue)
                        && !is_held(lane, &mut |queue| registry.is_open(queue))
                        && !registry.is_paused(&lane.job_type)
                        && registry.weight(&lane.tenant) > 0
                        && registry.limit(lane).is_none_or(|(_, most)| has_room(0, most))
                        && pulls.iter().any(|pull| pull.wanted().lane(lane))
                })
        };
        let turn = self.turn;
        let (before, after): (Vec<i32>, Vec<i32>) =
            self.lanes.keys().copied().filter(is_wanted).partition(|lane| *lane < turn);
        let chosen: Vec<i32> = after.into_iter().chain(before).take(LANES_MAX).collect();
        let has_more = chosen.len() == LANES_MAX;
        if let (true, Some(last)) = (has_more, chosen.last()) {
            self.turn = last + 1;
        }
        let is_locking = self.locking_until.is_some_and(|until| now < until);
        let most: usize = pulls.iter().map(|pull| pull.limit).sum();
        let is_by_due = |lane: &LaneKey| registry.order(&lane.queue) == QueueOrder::Due;
        let has_due_order = chosen.iter().any(|lane| lanes.key(*lane).is_some_and(is_by_due));
        let is_fresh = |lane: &&i32| lanes.key(**lane).is_none_or(|lane| !lane.is_retry);
        let fresh = chosen.iter().filter(is_fresh).count();
        let share = |lanes: usize| match lanes {
            0 | 1 => most,
            lanes => (most * 3 / 2 / lanes).max(PER_LANE_MIN).min(most),
        };
        let share = match chosen.len() {
            // There the lanes compete by due time alone: any of them may have all that is due next.
            _ if has_due_order => most,
            lanes if fresh == 0 || fresh == lanes => share(lanes),
            // Those that are no retries get most of the turns, however many lanes of retries stand
            // beside theirs.
            lanes => share(fresh).min(share(lanes).max(BESIDE_RETRIES_MAX / lanes)),
        };
        let per_lane = share + named.min(NAMED_MAX);
        let read_most = match is_locking {
            true => per_lane,
            false => per_lane.max(STOCK / chosen.len().max(1)),
        };
        let mut plan = Plan { per_lane, read_most, is_locking, has_more, ..Plan::default() };
        for lane in chosen {
            let Some(lane_stock) = self.lanes.get_mut(&lane) else { continue };
            let is_fresh = lane_stock.stocked_at.is_some_and(|at| now - at < STOCK_AGE_MAX);
            let is_enough = lane_stock.rows.len() >= per_lane || lane_stock.is_all;
            if !is_fresh
                && lane_stock.is_all
                && lane_stock.rows.is_empty()
                && lane_stock.is_from_start
            {
                // Dry: whoever fills it again is heard of, or found by looking.
                self.lanes.remove(&lane);
                continue;
            }
            plan.lanes.push(lane);
            if !is_locking && is_fresh && is_enough {
                continue;
            }
            lane_stock.empty();
            if lane_stock.from_start.is_due(FROM_START_EVERY) {
                lane_stock.from = START;
            }
            lane_stock.is_from_start = lane_stock.from == START;
            plan.to_read.push(lane);
            plan.keys.push(lane_stock.from.0);
            plan.ids.push(lane_stock.from.1);
        }
        plan
    }

    /// Takes in the rows that were read and answers what the batch may take.
    pub(crate) fn take_offers(
        &mut self,
        plan: &mut Plan,
        rows: Vec<Offer>,
        began: Instant,
    ) -> Vec<Offer> {
        for lane in &plan.to_read {
            if let Some(lane_stock) = self.lanes.get_mut(lane) {
                lane_stock.stocked_at = Some(began);
                if lane_stock.is_from_start {
                    lane_stock.from_start.done(began);
                }
            }
        }
        for (lane, key, stored) in rows {
            if let Some(lane_stock) = self.lanes.get_mut(&lane) {
                lane_stock.rows.insert((key, uuid(stored.job.id)), stored);
            }
        }
        let mut offers = Vec::new();
        for lane in &plan.lanes {
            let Some(lane_stock) = self.lanes.get_mut(lane) else { continue };
            if plan.to_read.contains(lane) {
                lane_stock.is_all = lane_stock.rows.len() < plan.read_most;
            }
            for _ in 0..plan.per_lane {
                let Some(((key, _), stored)) = lane_stock.rows.pop_first() else { break };
                offers.push((*lane, key, stored));
            }
            if !lane_stock.rows.is_empty() || !lane_stock.is_all {
                plan.cut.push(*lane);
            }
        }
        offers
    }

    /// Whether a job put in this lane would go into its stock.
    pub(crate) fn is_stocked(&self, lane: i32) -> bool {
        self.lanes.get(&lane).is_some_and(|lane_stock| lane_stock.stocked_at.is_some())
    }

    /// These jobs have no rows any more.
    pub(crate) fn rows_gone(&mut self, gone: &HashSet<JobId>) {
        if !gone.is_empty() {
            for lane_stock in self.lanes.values_mut() {
                lane_stock.rows.retain(|_, stored| !gone.contains(&stored.job.id));
            }
        }
    }

    /// What was offered and not taken goes back into stock.
    pub(crate) fn put_back(&mut self, untaken: Vec<Offer>) {
        for (lane, key, stored) in untaken {
            if let Some(lane_stock) = self.lanes.get_mut(&lane) {
                lane_stock.rows.insert((key, uuid(stored.job.id)), stored);
            }
        }
    }

    /// The pulls of a plan are served; `passed` names the last place taken in each lane.
    pub(crate) fn rows_claimed(&mut self, plan: &Plan, passed: Option<&Map<i32, ReadyKey>>) {
        for lane in &plan.lanes {
            let Some(lane_stock) = self.lanes.get_mut(lane) else { continue };
            if let Some(place) = passed.and_then(|passed| passed.get(lane)) {
                // Not beyond what is still there.
                let first = lane_stock.rows.first_key_value().map(|(first, _)| *first);
                let place = first.map_or(*place, |(key, id)| (*place).min((key, before(id))));
                lane_stock.from = lane_stock.from.max(place);
            }
            let is_dry = lane_stock.rows.is_empty() && lane_stock.is_all;
            if is_dry && !lane_stock.is_from_start && lane_stock.from_start.is_due(DRY_AGAIN_EVERY)
            {
                // Only as far as was read: rows that others let go of may lie before.
                lane_stock.from = START;
            }
            if plan.is_locking && !is_dry {
                lane_stock.empty();
            }
        }
    }
}

/// The id before another one.
fn before(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_sub(1))
}
