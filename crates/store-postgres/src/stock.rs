//! Where this server believes ready jobs to be: which lanes, from which place on, and a stock of
//! the first ones. Only a memory: a claim proves itself by deleting the rows, looking again finds
//! what was missed, and a server whose stock others empty takes to locking what it looks at.

use crate::registry::{Lanes, Registry};
use crate::rows::Stored;
use crate::throttle::Throttle;
use crate::values::{Map, uuid};
use mainspring_kernel::JobId;
use mainspring_store::PullNeeds;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// A place in a lane: order key and id.
pub(crate) type ReadyKey = (i64, Uuid);

const START: ReadyKey = (i64::MIN, Uuid::nil());

/// Lanes looked at in one batch, at most.
const LANES_MAX: usize = 500;
/// Jobs looked at in one lane at least, however many lanes share a pull.
const PER_LANE_MIN: usize = 16;
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
/// A lane that has run dry is looked at from the start this often.
const DRY_AGAIN_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Known {
    from: ReadyKey,
    from_start: Throttle,
    stock: BTreeMap<ReadyKey, Stored>,
    stocked_at: Option<Instant>,
    /// Whether the lane had no more than what was found, and was looked at from the start.
    is_all: bool,
    is_from_start: bool,
}

impl Known {
    const fn new() -> Self {
        Known {
            from: START,
            from_start: Throttle::new(),
            stock: BTreeMap::new(),
            stocked_at: None,
            is_all: false,
            is_from_start: false,
        }
    }

    fn drop_stock(&mut self) {
        self.stock.clear();
        self.stocked_at = None;
        self.is_all = false;
    }
}

/// The lanes that may have ready jobs.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    lanes: BTreeMap<i32, Known>,
    has_to_look: bool,
    knows_nothing: bool,
    looked: Throttle,
    locking_until: Option<Instant>,
    /// Where the next batch begins when there are more lanes than one batch looks at.
    turn: i32,
}

/// What to look at for the pulls of one batch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The lanes that may serve the pulls.
    pub(crate) lanes: Vec<i32>,
    /// How many of each are offered, at most.
    pub(crate) per_lane: usize,
    /// The lanes that have to be fetched, and from where.
    pub(crate) fetched: Vec<i32>,
    pub(crate) keys: Vec<i64>,
    pub(crate) ids: Vec<Uuid>,
    /// How many of each are fetched, at most.
    pub(crate) fetch: usize,
    /// Whether what is fetched is locked.
    pub(crate) is_locking: bool,
}

/// A ready job with its lane and order key.
pub(crate) type Offer = (i32, i64, Stored);

impl Stock {
    /// Others may have made jobs ready anywhere.
    pub(crate) fn look_again(&mut self) {
        self.has_to_look = true;
    }

    /// Whether to look for lanes with ready jobs now.
    pub(crate) fn has_to_look(&self) -> bool {
        self.knows_nothing || (self.has_to_look && self.looked.is_due(Duration::ZERO))
    }

    /// How long a look that is due has to be put off.
    pub(crate) fn looks_in(&self) -> Option<Duration> {
        (self.has_to_look && !self.has_to_look()).then(|| self.looked.due_in(Duration::ZERO))
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.lanes.clear();
        self.knows_nothing = true;
    }

    /// What was in stock went to a batch that came to nothing.
    pub(crate) fn drop_stock(&mut self) {
        self.lanes.values_mut().for_each(Known::drop_stock);
    }

    /// Somebody got ahead: the stock is worthless, and for a while what is looked at is locked.
    pub(crate) fn distrust(&mut self) {
        self.drop_stock();
        self.locking_until = Some(Instant::now() + LOCKING);
    }

    /// A look that began then found ready jobs in these lanes.
    pub(crate) fn found(&mut self, lanes: impl IntoIterator<Item = i32>, began: Instant) {
        self.has_to_look = false;
        self.knows_nothing = false;
        self.looked.done(began);
        for lane in lanes {
            let known = self.lanes.entry(lane).or_insert_with(Known::new);
            if known.stock.is_empty() {
                *known = Known::new();
            }
        }
    }

    /// Jobs became ready in a lane, nobody here knows which.
    pub(crate) fn stirred(&mut self, lane: i32) {
        *self.lanes.entry(lane).or_insert_with(Known::new) = Known::new();
    }

    /// A job was put in a lane: into the stock too, if it is the next there or the stock is all
    /// there is. Otherwise the next look finds it.
    pub(crate) fn filled(&mut self, lane: i32, spot: ReadyKey, stored: Option<Stored>) {
        let known = self.lanes.entry(lane).or_insert_with(Known::new);
        let is_ahead = known.stock.last_key_value().is_some_and(|(last, _)| spot < *last);
        match stored {
            Some(stored) if is_ahead || (known.is_all && known.stock.len() < STOCK_MAX) => {
                known.stock.insert(spot, stored);
            }
            Some(_) => known.is_all = false,
            None => known.drop_stock(),
        }
        // The place before: rows that lie between were taken, or will be found from the start.
        known.from = known.from.min((spot.0, before(spot.1)));
    }

    /// What to look at for `asks`; nothing if no lane that is wanted may have jobs. In each lane
    /// `named` more are looked at: jobs that the batch names may be gone before its pulls come.
    pub(crate) fn plan(
        &mut self,
        asks: &[PullNeeds],
        named: usize,
        registry: &Registry,
        lanes: &Lanes,
    ) -> Plan {
        let now = Instant::now();
        let is_wanted = |number: &i32| {
            lanes.key(*number).is_none_or(|lane| {
                registry.is_open(&lane.queue)
                    && registry.limit(lane).is_none_or(|(most, _)| most > 0)
                    && asks.iter().any(|ask| ask.wanted().lane(lane))
            })
        };
        let turn = self.turn;
        let (before, after): (Vec<i32>, Vec<i32>) =
            self.lanes.keys().copied().filter(is_wanted).partition(|lane| *lane < turn);
        let chosen: Vec<i32> = after.into_iter().chain(before).take(LANES_MAX).collect();
        if let (LANES_MAX, Some(last)) = (chosen.len(), chosen.last()) {
            self.turn = last + 1;
        }
        let is_locking = self.locking_until.is_some_and(|until| now < until);
        let most: usize = asks.iter().map(|ask| ask.limit).sum();
        let share = match chosen.len() {
            0 | 1 => most,
            lanes => (most * 3 / 2 / lanes).max(PER_LANE_MIN).min(most),
        };
        let per_lane = share + named.min(NAMED_MAX);
        let fetch = match is_locking {
            true => per_lane,
            false => per_lane.max(STOCK / chosen.len().max(1)),
        };
        let mut plan = Plan { per_lane, fetch, is_locking, ..Plan::default() };
        for lane in chosen {
            let Some(known) = self.lanes.get_mut(&lane) else { continue };
            let is_fresh = known.stocked_at.is_some_and(|at| now - at < STOCK_AGE_MAX);
            let is_enough = known.stock.len() >= per_lane || known.is_all;
            if !is_fresh && known.is_all && known.stock.is_empty() && known.is_from_start {
                // Dry: whoever fills it again is heard of, or found by looking.
                self.lanes.remove(&lane);
                continue;
            }
            plan.lanes.push(lane);
            if !is_locking && is_fresh && is_enough {
                continue;
            }
            known.drop_stock();
            if known.from_start.is_due(FROM_START_EVERY) {
                known.from = START;
            }
            known.is_from_start = known.from == START;
            plan.fetched.push(lane);
            plan.keys.push(known.from.0);
            plan.ids.push(known.from.1);
        }
        plan
    }

    /// Takes in what was fetched and answers what the batch may take.
    pub(crate) fn offers(
        &mut self,
        plan: &Plan,
        fetched: Vec<Offer>,
        began: Instant,
    ) -> Vec<Offer> {
        for lane in &plan.fetched {
            if let Some(known) = self.lanes.get_mut(lane) {
                known.stocked_at = Some(began);
                if known.is_from_start {
                    known.from_start.done(began);
                }
            }
        }
        for (lane, key, stored) in fetched {
            if let Some(known) = self.lanes.get_mut(&lane) {
                known.stock.insert((key, uuid(stored.job.id)), stored);
            }
        }
        let mut offers = Vec::new();
        for lane in &plan.lanes {
            let Some(known) = self.lanes.get_mut(lane) else { continue };
            if plan.fetched.contains(lane) {
                known.is_all = known.stock.len() < plan.fetch;
            }
            for _ in 0..plan.per_lane {
                let Some(((key, _), stored)) = known.stock.pop_first() else { break };
                offers.push((*lane, key, stored));
            }
        }
        offers
    }

    /// Whether a job put in this lane would go into its stock.
    pub(crate) fn is_stocked(&self, lane: i32) -> bool {
        self.lanes.get(&lane).is_some_and(|known| known.stocked_at.is_some())
    }

    /// These jobs wait no longer.
    pub(crate) fn left(&mut self, gone: &HashSet<JobId>) {
        if !gone.is_empty() {
            for known in self.lanes.values_mut() {
                known.stock.retain(|_, stored| !gone.contains(&stored.job.id));
            }
        }
    }

    /// What was offered and not taken goes back into stock.
    pub(crate) fn give_back(&mut self, untaken: Vec<Offer>) {
        for (lane, key, stored) in untaken {
            if let Some(known) = self.lanes.get_mut(&lane) {
                known.stock.insert((key, uuid(stored.job.id)), stored);
            }
        }
    }

    /// The pulls of a plan are served; `passed` names the last place taken in each lane.
    pub(crate) fn searched(&mut self, plan: &Plan, passed: Option<&Map<i32, ReadyKey>>) {
        for lane in &plan.lanes {
            let Some(known) = self.lanes.get_mut(lane) else { continue };
            if let Some(spot) = passed.and_then(|passed| passed.get(lane)) {
                // Not beyond what is still there.
                let first = known.stock.first_key_value().map(|(first, _)| *first);
                let spot = first.map_or(*spot, |(key, id)| (*spot).min((key, before(id))));
                known.from = known.from.max(spot);
            }
            let is_dry = known.stock.is_empty() && known.is_all;
            if is_dry && !known.is_from_start && known.from_start.is_due(DRY_AGAIN_EVERY) {
                // Only as far as was looked: rows that others let go of may lie before.
                known.from = START;
            }
            if plan.is_locking && !is_dry {
                known.drop_stock();
            }
        }
    }
}

/// The id before another one.
fn before(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_sub(1))
}
