//! Waits: each belongs to a job that waits for other jobs, and knows which of them have not ended
//! yet. It is made in the commit that submits the job and goes in the one that lets the job start,
//! or cancels it.
//!
//! Whoever commits the end of a job tells the waits that name it (`engine/src/dependents.rs`). That
//! is a hint: what a crash loses of it is found when the alarm of the wait rings and it looks for
//! itself. Every look compares with the jobs as they are, and a change names the version it was
//! decided on, so it does not matter who tells what, how often, or in which order.
//!
//! Of the jobs of a batch, which may be ten thousand, only a bit each is kept: their ids follow
//! each other ([`member_id`]).

use super::{Body, Entity, EntityId, Kind};
use crate::command::{Follows, Submit};
use crate::decide::{self, Decision, Receipt};
use crate::event::{Change, DEPENDENCY_FAILED, Event};
use crate::facts::Facts;
use crate::id::JobId;
use crate::job::{Actor, After, AfterCondition, Job, StateName};
use crate::limits::{AFTER_MAX, LOOK_AGAIN_MS, WAIT_LOOK_JOBS, WAIT_LOOK_MS_FIRST};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What has to become of the jobs.
    pub condition: AfterCondition,
    /// Not before this, whenever they are done.
    pub run_at: Timestamp,
    /// Jobs that were named and have not ended, as far as is known.
    pub open: Vec<JobId>,
    /// Jobs of its batch.
    pub members: Option<Members>,
    /// When it looks for itself.
    pub look_at: Timestamp,
    /// How often it has.
    pub looks: u32,
    /// From which member on it looks next.
    pub cursor: u32,
}

/// The jobs of a batch: their ids follow each other, see [`member_id`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// The first id.
    pub first: JobId,
    /// How many there are.
    pub count: u32,
    /// Which have ended, or never were: a bit for each.
    pub ended: Vec<u8>,
}

impl Members {
    fn place(&self, id: JobId) -> Option<u32> {
        let place = place_after(self.first, id).filter(|place| *place < u64::from(self.count))?;
        u32::try_from(place).ok()
    }

    fn has_ended(&self, place: u32) -> bool {
        let byte = self.ended.get(place as usize / 8).copied().unwrap_or(u8::MAX);
        byte & (1 << (place % 8)) != 0
    }

    fn end(&mut self, place: u32) {
        if let Some(byte) = self.ended.get_mut(place as usize / 8) {
            *byte |= 1 << (place % 8);
        }
    }

    /// Those that have not ended, from `cursor` on.
    fn open(&self, cursor: u32) -> impl Iterator<Item = JobId> + '_ {
        let open = (cursor..self.count).filter(|place| !self.has_ended(*place));
        open.map(|place| member_id(self.first, u64::from(place)))
    }

    /// How many have not ended.
    pub fn left(&self) -> usize {
        self.open(0).count()
    }
}

impl Wait {
    /// The id of the wait of a job.
    pub const fn id_of(waiter: JobId) -> EntityId {
        EntityId { kind: Kind::Wait, bits: waiter.0 }
    }

    /// What the ids of all jobs of the batch have in common that `job` may belong to.
    pub const fn batch_of(job: JobId) -> JobId {
        JobId(job.0 & u64::MAX as u128)
    }

    /// How many jobs it waits for.
    pub fn left(&self) -> usize {
        self.open.len() + self.members.as_ref().map_or(0, Members::left)
    }

    /// Some of the jobs that it waits for.
    pub fn some_left(&self, most: usize) -> Vec<JobId> {
        let members = self.members.iter().flat_map(|members| members.open(0));
        self.open.iter().copied().chain(members).take(most).collect()
    }

    /// The jobs that it looks at next.
    fn wanted(&self) -> Vec<JobId> {
        let members = self.members.iter().flat_map(|members| members.open(self.cursor));
        self.open.iter().copied().chain(members.take(WAIT_LOOK_JOBS)).collect()
    }

    /// Notes that a job has ended; whether that is news.
    fn strike(&mut self, id: JobId) -> bool {
        if let Some(place) = self.open.iter().position(|other| *other == id) {
            self.open.swap_remove(place);
            return true;
        }
        let Some(members) = &mut self.members else { return false };
        match members.place(id).filter(|place| !members.has_ended(*place)) {
            Some(place) => {
                members.end(place);
                true
            }
            None => false,
        }
    }
}

/// The id of the job in that place of a batch whose first one has the id `first`. The lower half,
/// which is chance, is the same for all of them; the upper half, milliseconds and an order within
/// them, counts on, so that they are told apart by it and sort by it like any others.
pub const fn member_id(first: JobId, place: u64) -> JobId {
    let upper = (first.0 >> 64) as u64;
    let counted = number_of(upper).wrapping_add(place);
    let upper = ((counted >> ORDER_BITS) << 16) | (upper & 0xf000) | (counted & ORDER_MASK);
    JobId(((upper as u128) << 64) | (first.0 & u64::MAX as u128))
}

/// How many places behind `first` an id of the same batch is.
fn place_after(first: JobId, id: JobId) -> Option<u64> {
    let upper = |id: JobId| (id.0 >> 64) as u64;
    let place = number_of(upper(id)).checked_sub(number_of(upper(first)))?;
    (member_id(first, place) == id).then_some(place)
}

/// Bits of the order within a millisecond; four more tell the version of the layout.
const ORDER_BITS: u32 = 12;
const ORDER_MASK: u64 = (1 << ORDER_BITS) - 1;

const fn number_of(upper: u64) -> u64 {
    ((upper >> 16) << ORDER_BITS) | (upper & ORDER_MASK)
}

/// One job of the batch that a submission follows.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// The job.
    pub job: JobId,
    /// Where it stands, if it is kept.
    pub state: Option<StateName>,
}

/// What a submission waits for.
pub(crate) enum Start {
    /// Nothing, or nothing any more.
    AtOnce,
    /// Other jobs.
    Waits(Box<Wait>),
    /// A job that had to end well did not: this one, and so.
    Never(JobId, Option<StateName>),
}

/// Whether a submission may start, by the jobs that it names and those of the batch it follows.
///
/// # Errors
/// If it names a job that its user cannot see.
pub(crate) fn start(
    wish: &Submit,
    run_at: Timestamp,
    facts: &Facts<'_>,
) -> Result<Start, Rejection> {
    let Some(After { condition, members, .. }) = &wish.bounds.after else {
        return Ok(Start::AtOnce);
    };
    let mut open = Vec::new();
    let mut judge = |id: JobId, state: Option<StateName>| match state {
        Some(state) if !state.is_terminal() => {
            open.push(id);
            None
        }
        Some(StateName::Succeeded) => None,
        state => (*condition == AfterCondition::Success).then_some(Start::Never(id, state)),
    };
    let mut never = None;
    let visible =
        |job: &&Job| job.tenant == wish.tenant && (wish.may_name_others || job.user == wish.user);
    // Its own id follows those of the jobs before it.
    let behind = (facts.members.len() as u64).wrapping_neg();
    let first = member_id(JobId(facts.fresh_id), behind);
    for (id, job) in facts.watched {
        let place = place_after(first, *id).and_then(|place| usize::try_from(place).ok());
        let earlier = place.and_then(|place| facts.members.get(place)).filter(|it| it.job == *id);
        let state = match (job.filter(visible), earlier) {
            (Some(job), _) => Some(job.state.name()),
            (None, Some(earlier)) => earlier.state,
            (None, None) => return Err(Rejection::JobUnknown),
        };
        never = never.or(judge(*id, state));
    }
    let ended = vec![0; (*members as usize).div_ceil(8)];
    let mut batch = Members { first, count: *members, ended };
    let mut has_members = false;
    let follows_all = wish.follows == Some(Follows::All);
    for (place, member) in (0..).zip(facts.members).filter(|_| follows_all) {
        let is_new = batch.place(member.job) == Some(place);
        if is_new && member.state.is_some_and(|state| !state.is_terminal()) {
            has_members = true;
        } else {
            batch.end(place);
            never = never.or(judge(member.job, member.state));
        }
    }
    if let Some(never) = never {
        return Ok(never);
    }
    open.sort_unstable();
    open.dedup();
    if open.is_empty() && !has_members {
        return Ok(Start::AtOnce);
    }
    if open.len() > AFTER_MAX {
        let reason = "follows too many jobs that were there before: give it an idempotency_key";
        return Err(Rejection::FieldInvalid { field: "then", reason });
    }
    Ok(Start::Waits(Box::new(Wait {
        condition: *condition,
        run_at,
        open,
        members: has_members.then_some(batch),
        look_at: facts.now.plus_millis(WAIT_LOOK_MS_FIRST),
        looks: 0,
        cursor: 0,
    })))
}

/// The wait of a job that was just submitted.
pub(crate) fn of_job(job: &Job, wait: Box<Wait>) -> Event {
    Event::EntitySet(Box::new(Entity {
        id: Wait::id_of(job.id),
        version: 1,
        tenant: job.tenant.clone(),
        owner: job.user.clone(),
        created_at: job.created_at,
        updated_at: job.created_at,
        body: Body::Wait(wait),
    }))
}

/// Looks at jobs that may have ended.
pub(super) fn settle(
    entity: &Entity,
    wait: &Wait,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    match look(entity, wait, facts) {
        Looked::Over(decision) => Ok(decision),
        Looked::Waits(next) if next != *wait => Ok(stays(entity, next, facts)),
        Looked::Waits(_) => Err(Rejection::NotDue),
    }
}

/// It looks for itself: what it was told may not have been all.
pub(super) fn ring(entity: &Entity, wait: &Wait, facts: &Facts<'_>) -> Decision {
    let wanted = wait.wanted();
    if facts.watched.is_empty() && facts.job.is_some_and(Job::waits_for_jobs) && !wanted.is_empty()
    {
        return Decision { events: Vec::new(), receipt: Receipt::Wanting { jobs: wanted } };
    }
    match look(entity, wait, facts) {
        Looked::Over(decision) => decision,
        Looked::Waits(mut next) => {
            let places = |id: &JobId| wait.members.as_ref().and_then(|it| it.place(*id));
            let last = wanted.iter().filter_map(places).max();
            // A large batch is looked through in parts, one after the other.
            let has_more = |place: &u32| {
                let from = place.saturating_add(1);
                next.members.as_ref().is_some_and(|it| it.open(from).next().is_some())
            };
            match last.filter(has_more) {
                Some(place) => {
                    next.cursor = place.saturating_add(1);
                    next.look_at = Timestamp(facts.now.0.max(wait.look_at.0) + 1);
                }
                None => {
                    let doubled = WAIT_LOOK_MS_FIRST << wait.looks.min(16);
                    next.cursor = 0;
                    next.looks = wait.looks.saturating_add(1);
                    next.look_at = facts.now.plus_millis(doubled.min(LOOK_AGAIN_MS));
                }
            }
            stays(entity, next, facts)
        }
    }
}

enum Looked {
    /// The job may start, or never will, or waits for something else by now.
    Over(Decision),
    Waits(Wait),
}

fn look(entity: &Entity, wait: &Wait, facts: &Facts<'_>) -> Looked {
    let gone = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
    let over = |mut events: Vec<Event>| {
        events.push(gone);
        Looked::Over(Decision { events, receipt: Receipt::Done })
    };
    let Some(waiter) = facts.job.filter(|job| job.waits_for_jobs()) else {
        return over(Vec::new());
    };
    let mut next = wait.clone();
    let mut culprit = None;
    for (id, job) in facts.watched {
        let state = job.map(|job| job.state.name());
        if state.is_some_and(|state| !state.is_terminal()) || !next.strike(*id) {
            continue;
        }
        if state != Some(StateName::Succeeded) && culprit.is_none() {
            culprit = Some((*id, state));
        }
    }
    if let Some((id, state)) = culprit.filter(|_| wait.condition == AfterCondition::Success) {
        return over(vec![cancelled(waiter, id, state, facts)]);
    }
    if next.left() > 0 {
        return Looked::Waits(next);
    }
    let unblocked = Change::Unblocked { run_at: wait.run_at };
    over(vec![decide::moved(waiter, unblocked, Actor::Reaper, facts)])
}

/// The end of a job because one that had to end well did not.
pub(crate) fn cancelled(
    waiter: &Job,
    culprit: JobId,
    state: Option<StateName>,
    facts: &Facts<'_>,
) -> Event {
    let reason = match state {
        Some(state) => format!("{culprit}, which had to end well, is {state}"),
        None => format!("{culprit}, which had to end well, is not kept any more"),
    };
    let change = Change::Cancelled { code: DEPENDENCY_FAILED, reason: Some(reason.into()) };
    decide::moved(waiter, change, Actor::Reaper, facts)
}

fn stays(entity: &Entity, next: Wait, facts: &Facts<'_>) -> Decision {
    let changed = entity.changed(Body::Wait(Box::new(next)), facts.now);
    Decision { events: vec![Event::EntitySet(Box::new(changed))], receipt: Receipt::Done }
}
