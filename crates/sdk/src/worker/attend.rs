//! One attempt from start to end: the handler runs in a task of its own, so that a panic is a
//! failed attempt and not the end of the worker.

use super::Setup;
use crate::handler::{BoxHandler, Context, Failure, Outcome, StopReason};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its lease token.
    pub(super) lease_token: String,
    /// What the handler gave back; `None` if it was dropped because it did not stop in time.
    pub(super) outcome: Option<Outcome>,
}

/// Aborts the task when dropped.
struct Task(JoinHandle<Outcome>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) async fn attend(handler: BoxHandler, ctx: Context, stop_grace: Duration) -> Ended {
    let lease_token = ctx.job().lease_token.clone();
    let allowed = time_allowed(&ctx);
    let mut task = Task(tokio::spawn(handler(ctx.clone())));
    let overdue = async {
        tokio::select! {
            () = ctx.stopped() => {}
            () = tokio::time::sleep(allowed) => ctx.tell_to_stop(StopReason::TimedOut),
        }
        tokio::time::sleep(stop_grace).await;
    };
    let outcome = tokio::select! {
        biased;
        ended = &mut task.0 => Some(ended.unwrap_or_else(|_| {
            Err(Failure::retryable("HANDLER_PANICKED", "the handler panicked"))
        })),
        () = overdue => None,
    };
    Ended { lease_token, outcome }
}

/// How long the attempt may take from now. The server's clock may differ from ours, so only the
/// difference of two of its own instants counts.
fn time_allowed(ctx: &Context) -> Duration {
    let job = ctx.job();
    let micros = job.deadline_at.0.saturating_sub(ctx.inner.granted_at);
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

impl Setup {
    /// The handler of a type. The server only sends types that were asked for.
    pub(super) fn handler(&self, job_type: &str) -> Option<BoxHandler> {
        self.handlers.get(job_type).cloned()
    }
}
