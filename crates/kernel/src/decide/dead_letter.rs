//! The way into the dead-letter queue: `dlq_pending`, the item, `dlq_recorded`, `failed`, normally
//! in one commit. The reaper finishes what stopped half way.

use super::{Decision, MoveChain};
use crate::dlq::{DlqItem, DlqState};
use crate::event::{Change, Event};
use crate::evolve::evolve;
use crate::job::{AcceptedReport, Failure, Job, StateName};

/// Moves `job` all the way to `failed`.
pub(super) fn bury(
    job: &Job,
    failure: Failure,
    is_exhausted: bool,
    report: Option<Box<AcceptedReport>>,
    mut moves: MoveChain,
) -> Decision {
    let mut buried = job.clone();
    let event = moves.push(Change::DeadLettered { failure, is_exhausted, report });
    evolve(&mut buried, event).expect("running and retrying jobs may be dead-lettered");
    record(buried, &mut moves);
    moves.push(Change::Failed);
    moves.into_state(StateName::Failed)
}

/// Writes the item of a job that is `dlq_pending`. Effects stay with the job: a requeue starts
/// without them, and an item must not grow by what may be megabytes.
pub(super) fn record(mut job: Job, moves: &mut MoveChain) {
    job.forget_effects();
    moves.events.push(Event::ItemOpened(Box::new(DlqItem {
        id: job.id.dlq(),
        created_at: moves.at,
        updated_at: moves.at,
        version: 1,
        state: DlqState::Open,
        first_asked_at: None,
        job: Box::new(job),
    })));
    moves.push(Change::DlqRecorded);
}
