//! The alarm of a schedule has come: the firing it stands for gets its job, or its reason why not,
//! and the alarm moves on, in one commit.
//!
//! An alarm stands for one firing, and the job's key is made of that instant; so several firings
//! that were missed take several turns. Each turn looks at a bounded number of them.

use super::history::{OutcomeKind, reason};
use super::turn::Turn;
use super::{Misfire, Overlap, Schedule, Status, Waiting, settle};
use crate::decide::{self, Decision, Receipt};
use crate::entity::Entity;
use crate::event::Event;
use crate::facts::Facts;
use crate::firing::Fired;
use crate::id::JobId;
use crate::limits::{FIRINGS_LOOKED_AT_MAX, LATE_MS, LOOK_AGAIN_MS};
use crate::rejection::Rejection;
use crate::time::Timestamp;

pub(in crate::entity) fn ring(
    entity: &Entity,
    schedule: &Schedule,
    at: Timestamp,
    facts: &Facts<'_>,
) -> Decision {
    if schedule.status == Status::Ended
        && schedule.waiting.is_none()
        && schedule.gone_at == Some(at)
    {
        let removed = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
        return Decision { events: vec![removed], receipt: Receipt::Done };
    }
    let mut turn = Turn::new(entity, schedule, facts);
    // A plan ends with the job that stands for it; whether that was told does not matter.
    if let Some(task) = &schedule.task {
        if schedule.status == Status::Stopped {
            let removed = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
            return Decision { events: vec![removed], receipt: Receipt::Done };
        }
        if !facts.watched.iter().any(|(known, _)| *known == task.job) {
            let jobs = schedule.outstanding.iter().copied().chain([task.job]).collect();
            return Decision { events: Vec::new(), receipt: Receipt::Wanting { jobs } };
        }
        settle::look_at_plan(&mut turn);
        if turn.next.status == Status::Stopped {
            return turn.done(Receipt::Done);
        }
    }
    // How its jobs stand is not a matter of what it heard: a word may have been lost.
    if schedule.spec.watches() && !schedule.outstanding.is_empty() {
        let is_known = |job: &JobId| facts.watched.iter().any(|(known, _)| known == job);
        if !schedule.outstanding.iter().all(is_known) {
            let jobs = schedule.outstanding.clone();
            return Decision { events: Vec::new(), receipt: Receipt::Wanting { jobs } };
        }
        settle::look(&mut turn);
    }
    if matches!(turn.next.status, Status::Paused(_)) {
        return turn.done(Receipt::Done);
    }
    if let Some(waiting) = turn.next.waiting {
        let is_free = turn.next.outstanding.is_empty();
        if is_free && at == waiting.at {
            turn.next.waiting = None;
            let fired = turn.fire(at);
            turn.record_firing(at, &fired, Some(reason::QUEUED));
            let next_at = turn.next.next_at;
            turn.stand_at(next_at);
            return turn.done(Receipt::Done);
        }
        if is_free {
            // Its own alarm comes first, whatever else is due.
            return turn.done(Receipt::Done);
        }
        let look_at = facts.now.plus_millis(LOOK_AGAIN_MS);
        turn.next.waiting = Some(Waiting { look_at, ..waiting });
    }
    if turn.next.next_at == Some(at) {
        due(&mut turn, at);
    }
    turn.done(Receipt::Done)
}

/// What is due at `at`, and since.
fn due(turn: &mut Turn<'_>, at: Timestamp) {
    let now = turn.facts.now;
    let spec = turn.next.spec.clone();
    let mut all = vec![at];
    let mut after = spec.next_after(at);
    while let Some(next) = after.filter(|next| *next <= now && all.len() < FIRINGS_LOOKED_AT_MAX) {
        all.push(next);
        after = spec.next_after(next);
    }
    let is_all = after.is_none_or(|next| next > now);
    let live: Vec<usize> = (0..all.len()).filter(|place| !spec.is_excluded(all[*place])).collect();
    // The place of the one that gets a job, and why those before it get none.
    let (kept, kind, why) = match spec.misfire {
        // That of the last turn: it does not lose its place to those that are due meanwhile.
        Misfire::Coalesce if turn.next.catch_up_at == Some(at) => {
            (live.first(), OutcomeKind::Coalesced, reason::MISFIRE)
        }
        Misfire::Coalesce => (live.last(), OutcomeKind::Coalesced, reason::MISFIRE),
        Misfire::Skip => {
            let in_time =
                |place: &&usize| u128::from(LATE_MS) >= now.since(all[**place]).as_millis();
            (live.last().filter(in_time), OutcomeKind::Skipped, reason::MISFIRE)
        }
        Misfire::All => {
            let surplus = live.len().saturating_sub(spec.misfire_limit.max(1) as usize);
            (live.get(surplus), OutcomeKind::Skipped, reason::MISFIRE_LIMIT)
        }
    };
    let until = kept.copied().unwrap_or(all.len());
    for (place, at) in all[..until].iter().enumerate() {
        match live.contains(&place) {
            true => turn.record_none(*at, kind, why),
            false => turn.record_none(*at, OutcomeKind::Skipped, reason::EXCLUDED),
        }
    }
    match all.get(until) {
        Some(kept) if until > 0 => {
            turn.next.catch_up_at = (is_all && spec.misfire == Misfire::Coalesce).then_some(*kept);
            turn.stand_at(Some(*kept));
        }
        Some(_) => {
            turn.next.catch_up_at = None;
            fire(turn, at);
            turn.stand_at(spec.next_after(at));
        }
        None => {
            turn.next.catch_up_at = None;
            turn.stand_at(after);
        }
    }
}

/// Fires for `at`, as far as jobs of earlier firings allow.
fn fire(turn: &mut Turn<'_>, at: Timestamp) {
    let running = turn.next.outstanding.clone();
    let is_free = running.is_empty() && turn.next.waiting.is_none();
    match turn.next.spec.overlap {
        Overlap::Skip if !is_free => turn.record_none(at, OutcomeKind::Skipped, reason::OVERLAP),
        Overlap::QueueOne if !is_free && turn.next.waiting.is_some() => {
            turn.record_none(at, OutcomeKind::Skipped, reason::OVERLAP);
        }
        Overlap::QueueOne if !is_free => {
            let look_at = turn.facts.now.plus_millis(LOOK_AGAIN_MS);
            turn.next.waiting = Some(Waiting { at, look_at });
        }
        Overlap::CancelRunning if !is_free => {
            let fired = turn.fire(at);
            let has_cancelled = fired.as_ref().is_ok_and(|fired| cancel(turn, &running, fired));
            let why = has_cancelled.then_some(reason::CANCELLED_RUNNING);
            turn.record_firing(at, &fired, why);
        }
        Overlap::Allow | Overlap::Skip | Overlap::QueueOne | Overlap::CancelRunning => {
            let fired = turn.fire(at);
            turn.record_firing(at, &fired, None);
        }
    }
}

/// Cancels the jobs of earlier firings, by the rule for every cancel; whether there were any.
fn cancel(turn: &mut Turn<'_>, running: &[JobId], fired: &Fired) -> bool {
    let reason = format!("{} fired again and ends what runs: {}", turn.entity.id, fired.job);
    let mut has_cancelled = false;
    for (id, job) in turn.facts.watched.iter().filter(|(id, _)| running.contains(id)) {
        let facts = Facts { job: *job, ..*turn.facts };
        // One that cannot be cancelled any more is about to end.
        let cancelled: Result<Decision, Rejection> =
            decide::cancel(&turn.entity.owner, Some(&reason), &facts);
        if let Ok(mut decision) = cancelled
            && *id != fired.job
        {
            turn.events.append(&mut decision.events);
            turn.next.outstanding.retain(|other| other != id);
            has_cancelled = true;
        }
    }
    has_cancelled
}
