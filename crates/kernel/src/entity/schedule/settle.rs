//! What a schedule learns of its jobs: which have ended, and how. Whoever commits the end of a job
//! tells at once; should that get lost, the schedule looks before it fires.

use super::turn::Turn;
use super::{Pause, Schedule, Status};
use crate::decide::{Decision, Receipt};
use crate::entity::Entity;
use crate::facts::Facts;
use crate::job::StateName;
use crate::rejection::Rejection;

/// Looks at jobs that may have ended.
pub(in crate::entity) fn settle(
    entity: &Entity,
    schedule: &Schedule,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let mut turn = Turn::new(entity, schedule, facts);
    look(&mut turn);
    look_at_plan(&mut turn);
    if turn.next == *schedule {
        return Err(Rejection::NotDue);
    }
    Ok(turn.done(Receipt::Done))
}

/// Stops for good if the job that stands for its plan has ended.
pub(super) fn look_at_plan(turn: &mut Turn<'_>) {
    let Some(task) = &mut turn.next.task else { return };
    let known = turn.facts.watched.iter().find(|(id, _)| *id == task.job);
    let has_ended =
        known.is_some_and(|(_, job)| job.is_none_or(|it| it.state.name().is_terminal()));
    if has_ended && turn.next.status != Status::Stopped {
        let kept_ms = task.window_secs.map(|secs| u64::from(secs) * 1_000);
        task.gone_at = kept_ms.map(|ms| turn.facts.now.plus_millis(ms));
        turn.next.status = Status::Stopped;
        turn.rest();
    }
}

/// Forgets the jobs that have ended and counts the failures; one too many is a pause.
pub(super) fn look(turn: &mut Turn<'_>) {
    for (id, job) in turn.facts.watched {
        let has_ended = job.is_none_or(|job| job.state.name().is_terminal());
        let Some(place) = turn.next.outstanding.iter().position(|other| other == id) else {
            continue;
        };
        if !has_ended {
            continue;
        }
        turn.next.outstanding.remove(place);
        match job.map(|job| job.state.name()) {
            Some(StateName::Succeeded) => turn.next.failures_in_a_row = 0,
            Some(StateName::Failed) => {
                turn.next.failures_in_a_row = turn.next.failures_in_a_row.saturating_add(1);
            }
            // Cancelled, or not kept any more: that says nothing.
            Some(
                StateName::Cancelled
                | StateName::Queued
                | StateName::Running
                | StateName::Retrying
                | StateName::DlqPending
                | StateName::DlqRecorded,
            )
            | None => {}
        }
    }
    let failures = turn.next.failures_in_a_row;
    let is_too_much = turn.next.spec.pause_after_failures.is_some_and(|most| failures >= most);
    if is_too_much && turn.next.status == Status::Active {
        let note = format!("{failures} jobs in a row failed");
        let pause = Pause { by: None, at: turn.facts.now, note: Some(note.into()) };
        turn.next.status = Status::Paused(Box::new(pause));
        turn.rest();
    }
}
