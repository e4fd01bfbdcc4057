//! The way into the dead-letter queue: `dlq_pending`, the item, `dlq_recorded`, `failed`, normally
//! in one commit. The reaper finishes what stopped half way.

use super::attempt::Failed;
use super::{Decision, MoveChain};
use crate::dlq::{DlqItem, DlqState};
use crate::entity::alert;
use crate::event::{Change, Event};
use crate::evolve::evolve;
use crate::governance::is_governed;
use crate::job::{Job, StateName};

/// Moves `job` all the way to `failed`.
pub(super) fn bury(
    job: &Job,
    failed: Failed,
    is_exhausted: bool,
    mut moves: MoveChain,
) -> Decision {
    let mut buried = job.clone();
    let Failed { failure, report, result } = failed;
    let event = moves.push(Change::DeadLettered { failure, is_exhausted, report, result });
    evolve(&mut buried, event).expect("running and retrying jobs may be dead-lettered");
    record(buried, &mut moves);
    moves.push(Change::Failed);
    moves.into_state(StateName::Failed)
}

/// Writes the item of a job that is `dlq_pending`. Effects and a partial result stay with the job:
/// a requeue starts without them, and an item must not grow by what may be megabytes.
pub(super) fn record(mut job: Job, moves: &mut MoveChain) {
    job.forget_effects();
    job.forget_checkpoint();
    if let Some(failed) = &mut job.last_failure {
        failed.result = None;
    }
    if is_governed(&job.job_type) {
        moves.events.push(alert::of_dead_letter(&job, moves.at));
    }
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
