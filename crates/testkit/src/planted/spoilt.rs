//! The events of a decision with a mistake made in them.

use super::{Plant, lot};
use mainspring_kernel::calendar::{Fold, Rhythm};
use mainspring_kernel::entity::schedule::Schedule;
use mainspring_kernel::entity::trigger::LeafState;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::event::Change;
use mainspring_kernel::job::Actor;
use mainspring_kernel::{Event, Failure, JobEvent, JobId, Timestamp};

/// The events of one decision, with the mistake made.
pub(super) fn spoilt(plant: Plant, events: Vec<Event>) -> Vec<Event> {
    match plant {
        Plant::RetryForever | Plant::RetryFinal => retried(plant, events),
        Plant::DropItem => {
            let is_kept = |event: &Event| !matches!(event, Event::ItemOpened(_));
            events.into_iter().filter(is_kept).collect()
        }
        Plant::DropItemSometimes => {
            let is_kept = |event: &Event| match event {
                Event::ItemOpened(item) => lot(item.job.id, 1_200) != 0,
                _ => true,
            };
            events.into_iter().filter(is_kept).collect()
        }
        Plant::LoseRenewal => {
            let is_kept = |event: &Event| !matches!(event, Event::LeaseRenewed { .. });
            events.into_iter().filter(is_kept).collect()
        }
        Plant::LoseRelease => {
            let is_kept = |event: &Event| {
                let change = if let Event::JobMoved(it) = event { Some(&it.change) } else { None };
                !matches!(change, Some(Change::Unblocked { .. }))
            };
            events.into_iter().filter(is_kept).collect()
        }
        Plant::LoseFiring if is_firing(&events) => {
            let is_kept = |event: &Event| match event {
                Event::JobSubmitted(job) => lot(job.id, 4) != 0,
                _ => true,
            };
            events.into_iter().filter(is_kept).collect()
        }
        Plant::FireTwice if is_firing(&events) => events.into_iter().flat_map(twice).collect(),
        Plant::LoseEdge | Plant::KeepEdge | Plant::IgnoreCooldown => {
            let fired = events.iter().any(|event| matches!(event, Event::JobSubmitted(_)));
            events.into_iter().map(|event| mistaken(plant, fired, event)).collect()
        }
        Plant::SkipUntold
        | Plant::AlarmStays
        | Plant::PassOver
        | Plant::ForgetWaiting
        | Plant::WrongFold => {
            let fired = events.iter().any(|event| matches!(event, Event::JobSubmitted(_)));
            events.into_iter().map(|event| mistold(plant, fired, event)).collect()
        }
        Plant::CountRelease
        | Plant::FlatFence
        | Plant::ChangePayload
        | Plant::NoBackoff
        | Plant::RetryLate => events.into_iter().map(|event| changed(plant, event)).collect(),
        _ => events,
    }
}

/// Whether an entity submits a job.
fn is_firing(events: &[Event]) -> bool {
    let is_wait = |kind: Kind| kind == Kind::Wait;
    events.iter().any(|event| matches!(event, Event::EntitySet(it) if !is_wait(it.id.kind)))
}

/// A schedule that is kept otherwise than was decided.
fn mistold(plant: Plant, fired: bool, event: Event) -> Event {
    let Event::EntitySet(mut entity) = event else { return event };
    if let Body::Schedule(schedule) = &mut entity.body {
        let is_chosen = entity.version.is_multiple_of(5);
        match plant {
            Plant::SkipUntold if is_chosen && !fired => schedule.skipped /= 2,
            Plant::AlarmStays if is_chosen && fired && schedule.next_at.is_some() => {
                schedule.next_at = schedule.last_fire_at;
            }
            Plant::PassOver if is_chosen && fired => {
                schedule.next_at = schedule.next_at.and_then(|at| schedule.spec.next_after(at));
            }
            Plant::ForgetWaiting => schedule.waiting = None,
            Plant::WrongFold if entity.version == 1 => mistake_fold(schedule, entity.created_at),
            _ => {}
        }
    }
    Event::EntitySet(entity)
}

/// Takes one fold policy for the other.
fn mistake_fold(schedule: &mut Schedule, now: Timestamp) {
    if let Rhythm::Cron { fold, .. } = &mut schedule.spec.rhythm {
        *fold = match *fold {
            Fold::Once => Fold::Twice,
            Fold::Twice => Fold::Once,
        };
    }
    schedule.next_at = schedule.spec.next_fire_after(now);
}

/// A trigger that is kept otherwise than was decided.
fn mistaken(plant: Plant, fired: bool, event: Event) -> Event {
    let Event::EntitySet(mut entity) = event else { return event };
    let is_chosen = entity.version.is_multiple_of(3);
    if let Body::Trigger(trigger) = &mut entity.body
        && let Some(LeafState::Changed { taken, held, .. }) = trigger.leaves.first_mut()
    {
        match plant {
            // It passes for taken, and no run was made.
            Plant::LoseEdge if is_chosen && !fired && held.is_some() => {
                *taken = held.take();
                trigger.next_run_at = None;
            }
            Plant::KeepEdge if is_chosen && fired => *held = *taken,
            Plant::IgnoreCooldown if fired => trigger.last_triggered_at = None,
            _ => {}
        }
    }
    Event::EntitySet(entity)
}

/// Another job beside the one that is submitted.
fn twice(event: Event) -> Vec<Event> {
    let Event::JobSubmitted(job) = &event else { return vec![event] };
    let other = mainspring_kernel::Job { id: JobId(job.id.0 ^ 1), ..(**job).clone() };
    vec![event, Event::JobSubmitted(Box::new(other))]
}

fn changed(plant: Plant, event: Event) -> Event {
    match (plant, event) {
        (Plant::ChangePayload, Event::JobSubmitted(mut job)) => {
            job.payload = job.payload.to_uppercase().into();
            Event::JobSubmitted(job)
        }
        (plant, Event::JobMoved(event)) => {
            let at = event.at;
            let change = match (plant, event.change) {
                (Plant::FlatFence, Change::Claimed(mut lease)) => {
                    lease.fence = 1;
                    Change::Claimed(lease)
                }
                (Plant::CountRelease, Change::Released { report, .. }) => {
                    let failure =
                        Failure { code: "RELEASED".into(), message: "".into(), retryable: true };
                    Change::RetryScheduled { failure, due_at: at, report: Some(report) }
                }
                (Plant::NoBackoff, Change::RetryScheduled { failure, report, .. }) => {
                    Change::RetryScheduled { failure, due_at: at, report }
                }
                (Plant::RetryLate, Change::RetryScheduled { failure, report, due_at }) => {
                    let due_at = due_at.plus_millis(4_000);
                    Change::RetryScheduled { failure, due_at, report }
                }
                (_, change) => change,
            };
            Event::JobMoved(JobEvent { change, ..event })
        }
        (_, event) => event,
    }
}

/// A burial becomes another try.
fn retried(plant: Plant, events: Vec<Event>) -> Vec<Event> {
    let Some(Event::JobMoved(first)) = events.first() else { return events };
    let Change::DeadLettered { failure, is_exhausted, report, .. } = &first.change else {
        return events;
    };
    let is_by_hand = matches!(first.actor, Actor::User(_));
    if is_by_hand || *is_exhausted != (plant == Plant::RetryForever) {
        return events;
    }
    let due_at = first.at.plus_millis(1_000);
    let (failure, report) = (failure.clone(), report.clone());
    let change = Change::RetryScheduled { failure, due_at, report };
    vec![Event::JobMoved(JobEvent { change, ..first.clone() })]
}
