//! Where this server believes ready jobs to be: which lanes, and from which place on. Only a
//! memory: looking again finds what it missed, and a look that finds nothing costs a probe.

use crate::registry::{Lanes, Registry};
use mainspring_kernel::dispatch::{LaneKey, Wanted};
use mainspring_store::Ask;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// A place in a lane: order key and id.
pub(crate) type Spot = (i64, Uuid);

const START: Spot = (i64::MIN, Uuid::nil());

/// Lanes looked at in one batch, at most.
const LANES_MAX: usize = 500;
/// Jobs looked at in one lane at least, however many lanes share a pull.
const PER_LANE_MIN: usize = 16;
/// Jobs looked at in one lane because the batch names others, at most.
const NAMED_MAX: usize = 64;
/// A lane that never runs dry is looked at from the start this often: for rows that another server
/// let go of again, or put in ahead.
const FROM_START_EVERY: Duration = Duration::from_secs(2);
/// A lane that has run dry is looked at from the start this often.
const DRY_AGAIN_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
struct Known {
    from: Spot,
    from_start_at: Option<Instant>,
}

/// The lanes that may have ready jobs.
#[derive(Debug, Default)]
pub(crate) struct Field {
    lanes: BTreeMap<i32, Known>,
    has_to_look: bool,
    /// Where the next batch begins when there are more lanes than one batch looks at.
    turn: i32,
}

/// What to look at for the pulls of one batch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) lanes: Vec<i32>,
    pub(crate) keys: Vec<i64>,
    pub(crate) ids: Vec<Uuid>,
    pub(crate) per_lane: usize,
}

/// What was found in one lane: places in order, and whether each was taken.
pub(crate) type Found = BTreeMap<i32, Vec<(Spot, bool)>>;

impl Field {
    /// Others may have made jobs ready anywhere.
    pub(crate) fn look_again(&mut self) {
        self.has_to_look = true;
    }

    pub(crate) fn has_to_look(&self) -> bool {
        self.has_to_look
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.lanes.clear();
        self.has_to_look = true;
    }

    /// These lanes have ready jobs.
    pub(crate) fn found(&mut self, lanes: impl IntoIterator<Item = i32>) {
        self.has_to_look = false;
        for lane in lanes {
            self.lanes.entry(lane).or_insert(Known { from: START, from_start_at: None });
        }
    }

    /// A job was put in a lane.
    pub(crate) fn filled(&mut self, lane: i32, spot: Spot) {
        let known = self.lanes.entry(lane).or_insert(Known { from: START, from_start_at: None });
        if spot <= known.from {
            known.from = START;
        }
    }

    /// What to look at for `asks`; nothing if no lane that is wanted may have jobs.
    /// `named` more are looked at in each lane: jobs that the batch names may be gone before its
    /// pulls come to them.
    pub(crate) fn plan(
        &mut self,
        asks: &[Ask],
        named: usize,
        registry: &Registry,
        lanes: &Lanes,
    ) -> Plan {
        let now = Instant::now();
        let is_wanted = |number: &i32| {
            lanes.key(*number).is_none_or(|lane| {
                registry.is_open(&lane.queue)
                    && registry.limit(lane).is_none_or(|(most, _)| most > 0)
                    && asks.iter().any(|ask| wants(&ask.wanted(), lane))
            })
        };
        let turn = self.turn;
        let (before, after): (Vec<i32>, Vec<i32>) =
            self.lanes.keys().copied().filter(is_wanted).partition(|lane| *lane < turn);
        let mut plan = Plan::default();
        let chosen: Vec<i32> = after.into_iter().chain(before).take(LANES_MAX).collect();
        if let (LANES_MAX, Some(last)) = (chosen.len(), chosen.last()) {
            self.turn = last + 1;
        }
        for lane in chosen {
            let Some(known) = self.lanes.get_mut(&lane) else { continue };
            let since = known.from_start_at.map(|at| now.duration_since(at));
            if since.is_none_or(|since| since >= FROM_START_EVERY) {
                known.from = START;
            }
            if known.from == START {
                known.from_start_at = Some(now);
            }
            plan.lanes.push(lane);
            plan.keys.push(known.from.0);
            plan.ids.push(known.from.1);
        }
        let most: usize = asks.iter().map(|ask| ask.limit).sum();
        plan.per_lane = match plan.lanes.len() {
            0 | 1 => most,
            lanes => (most * 3 / 2 / lanes).max(PER_LANE_MIN).min(most),
        };
        plan.per_lane += named.min(NAMED_MAX);
        plan
    }

    /// Takes in what was found where, after what was taken is gone for good.
    pub(crate) fn searched(&mut self, plan: &Plan, found: &Found) {
        let now = Instant::now();
        for lane in &plan.lanes {
            let Some(known) = self.lanes.get_mut(lane) else { continue };
            let spots = found.get(lane).map_or(&[][..], Vec::as_slice);
            let taken = spots.iter().take_while(|(_, is_taken)| *is_taken).count();
            if let Some((spot, _)) = taken.checked_sub(1).and_then(|last| spots.get(last)) {
                known.from = known.from.max(*spot);
            }
            if spots.len() < plan.per_lane && taken == spots.len() {
                // Dry, as far as was looked.
                let since = known.from_start_at.map(|at| now.duration_since(at));
                let was_from_start = plan_from(plan, *lane) == Some(START);
                if was_from_start {
                    self.lanes.remove(lane);
                } else if since.is_none_or(|since| since >= DRY_AGAIN_EVERY) {
                    known.from = START;
                }
            }
        }
    }
}

fn plan_from(plan: &Plan, lane: i32) -> Option<Spot> {
    let at = plan.lanes.iter().position(|other| *other == lane)?;
    Some((*plan.keys.get(at)?, *plan.ids.get(at)?))
}

fn wants(wanted: &Wanted<'_>, lane: &LaneKey) -> bool {
    wanted.tenant.is_none_or(|tenant| *tenant == lane.tenant)
        && wanted.types.is_none_or(|types| types.contains(&lane.job_type))
        && wanted.queues.is_none_or(|queues| queues.contains(&lane.queue))
}
