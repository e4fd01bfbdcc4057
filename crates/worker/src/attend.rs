//! One attempt from start to end: the handler runs in a task of its own, so that a panic is a
//! failed attempt and not the end of the worker.

use crate::context::{BoxHandler, Context, Outcome, StopReason};
use crate::failure::Failure;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How an attempt ended.
pub(crate) struct Ended {
    /// Its lease token.
    pub(crate) lease_token: String,
    /// What the handler gave back; `None` if it was dropped because it did not stop in time.
    pub(crate) outcome: Option<Outcome>,
    /// The task of a handler that was dropped. One that blocks its thread goes on all the same, and
    /// nobody can end it.
    pub(crate) dropped: Option<JoinHandle<Outcome>>,
}

/// Aborts the task when dropped.
struct Task(Option<JoinHandle<Outcome>>);

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

pub(crate) async fn attend(handler: BoxHandler, ctx: Context, stop_grace: Duration) -> Ended {
    let lease_token = ctx.job().lease_token.clone();
    let mut task = Task(Some(tokio::spawn(handler(ctx.clone()))));
    let overdue = async {
        tokio::select! {
            () = ctx.stopped() => {}
            () = tokio::time::sleep(ctx.job().time_allowed) => {
                ctx.tell_to_stop(StopReason::TimedOut);
            }
        }
        tokio::time::sleep(stop_grace).await;
    };
    let ended = async {
        match &mut task.0 {
            Some(task) => task.await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        biased;
        ended = ended => Some(ended.unwrap_or_else(|_| {
            Err(Failure::retryable("HANDLER_PANICKED", "the handler panicked"))
        })),
        () = overdue => None,
    };
    let dropped = task.0.take().filter(|_| outcome.is_none());
    if let Some(task) = &dropped {
        task.abort();
    }
    Ended { lease_token, outcome, dropped }
}
