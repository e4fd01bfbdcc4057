//! What a trigger learns of its runs and questions: that they have ended, and how.

use super::leaf::LeafState;
use super::turn::Turn;
use super::{LastStatus, Outstanding, Trigger, answer};
use crate::decide::{Decision, Receipt};
use crate::entity::Entity;
use crate::facts::Facts;
use crate::job::{Job, StateName};
use crate::rejection::Rejection;
use crate::view::agent;

/// Looks at a job that may have ended.
pub(in crate::entity) fn settle(
    entity: &Entity,
    trigger: &Trigger,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let mut turn = Turn::new(entity, trigger, facts);
    if !look(&mut turn) {
        return Err(Rejection::NotDue);
    }
    if turn.is_active() {
        turn.reckon();
    }
    Ok(turn.done(Receipt::Done))
}

/// Takes note of the end of the job it waits for; whether that has ended.
pub(super) fn look(turn: &mut Turn<'_>) -> bool {
    let Some(outstanding) = turn.next.outstanding else { return false };
    let Some((_, job)) = turn.facts.watched.iter().find(|(id, _)| *id == outstanding.job) else {
        return false;
    };
    if job.is_some_and(|job| !job.state.name().is_terminal()) {
        return false;
    }
    turn.next.outstanding = None;
    // Of one that is not kept any more there is nothing to tell.
    if let Some(job) = job {
        ended(turn, outstanding, job);
    }
    true
}

fn ended(turn: &mut Turn<'_>, outstanding: Outstanding, job: &Job) {
    let is_well = job.state.name() == StateName::Succeeded;
    let error = (!is_well).then(|| error_of(job));
    match outstanding.leaf {
        None => {
            let took = job.finished_at().zip(job.started_at);
            let took_ms = took.map_or(0, |(end, start)| end.since(start).as_millis());
            turn.next.last_duration_ms = Some(u64::try_from(took_ms).unwrap_or(u64::MAX));
            turn.next.last_status = Some(if is_well { LastStatus::Ok } else { LastStatus::Error });
            turn.next.last_error = error;
        }
        Some(leaf) => {
            let answer = is_well.then(|| job.result().is_some_and(|it| answer::is_yes(it)));
            if let Some(LeafState::Llm { answer: place, .. }) =
                turn.next.leaves.get_mut(usize::from(leaf))
            {
                *place = answer;
            }
            if let Some(error) = error {
                turn.next.last_status = Some(LastStatus::Error);
                turn.next.last_error = Some(format!("evaluation: {error}").into());
            }
        }
    }
}

/// What a run that ended badly had to say, or else why it ended.
fn error_of(job: &Job) -> Box<str> {
    let said = job.last_failure.as_ref().map(|last| &*last.failure.message);
    let said = said.filter(|text| !text.is_empty());
    let reason = agent::failure_reason(job).map_or("error", |reason| reason.as_str());
    let mut text = said.unwrap_or(reason).to_owned();
    let mut end = text.len().min(crate::limits::NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.into()
}
