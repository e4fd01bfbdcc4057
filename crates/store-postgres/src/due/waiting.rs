//! Jobs that wait for their time: rows of `waiting`, moved to `ready` when they are due by
//! whichever server comes first. This server knows when the next one is due, as far as it put it
//! there itself, was told, or looked.

use super::Due;
use crate::connections::Value;
use crate::fault::Fault;
use crate::queries::Query;
use crate::stock::Stock;
use crate::this_server::ThisServer;
use crate::values::At;
use mainspring_kernel::{JobId, Timestamp};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// Rows of `waiting` moved at once, at most.
const PROMOTED_MAX: i32 = 5_000;

impl Due {
    /// Lanes in which rows of `waiting` became rows of `ready`, for the writer.
    fn filled(&self) -> MutexGuard<'_, Vec<i32>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThisServer {
    /// A job was put to wait until then.
    pub(crate) fn due_by(&self, at: Timestamp) {
        self.due.next_waiting.fetch_min(at.0, Ordering::AcqRel);
    }

    /// Rows of `ready` are not due before then by our clock.
    pub(crate) fn work_by(&self, at: Timestamp) {
        if self.due.early.fetch_min(at.0, Ordering::AcqRel) > at.0
            && let Some(news) = self.news.get()
        {
            news.timers();
        }
    }

    /// Whether rows of `ready` that were not due by our clock are by `now`.
    pub(crate) fn is_early_due(&self, now: Timestamp) -> bool {
        let early = self.due.early.load(Ordering::Acquire);
        early <= now.0
            && self
                .due
                .early
                .compare_exchange(early, i64::MAX, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Moves rows of `waiting` that are due by `now` to `ready`, if there may be any.
    pub(crate) async fn promote(&self, now: Timestamp) -> Result<(), Fault> {
        while self.due.next_waiting.load(Ordering::Acquire) <= now.0 {
            // Lowered again by whoever puts a job to wait meanwhile, and if this is given up.
            self.due.next_waiting.store(i64::MAX, Ordering::Release);
            let mut again = Again { server: self, at: Some(now) };
            let (found, is_all) = self.promote_some(now).await?;
            self.due.has_promoted.fetch_or(!found.is_empty(), Ordering::AcqRel);
            self.due.filled().extend(found);
            if is_all {
                again.at = None;
                break;
            }
        }
        Ok(())
    }

    async fn promote_some(&self, now: Timestamp) -> Result<(Vec<i32>, bool), Fault> {
        let values: Vec<Value> = vec![Box::new(At(now)), Box::new(PROMOTED_MAX)];
        let rows = self.connections.read(Query::PromoteDue, values).await?;
        let (mut lanes, mut moved) = (Vec::new(), 0);
        for row in &rows {
            lanes.push(row.try_get(0)?);
            moved += row.try_get::<_, i64>(1)?;
        }
        self.know_lanes(&lanes).await?;
        if let Some(next) = self.look(now, now).await?.due {
            self.due_by(next);
        }
        Ok((lanes, moved < i64::from(PROMOTED_MAX)))
    }

    /// Tells the first writer's stock where rows of `ready` came from elsewhere than its own batches.
    /// What was handed out already needs no telling: it was found by reading.
    pub(crate) fn tell_stock(&self, stock: &mut Stock, is_handed_out: impl Fn(JobId) -> bool) {
        let lanes = std::mem::take(&mut *self.due.filled());
        for lane in lanes {
            stock.lane_filled(lane);
        }
        for row in self.due.made_ready().take() {
            if row.2.as_ref().is_none_or(|stored| !is_handed_out(stored.job.id)) {
                stock.row_written(row);
            }
        }
        if self.neighbours.has_to_look.swap(false, Ordering::AcqRel) {
            stock.others_filled_lanes();
        }
    }
}

/// Has jobs that are due by then looked for again when it is dropped.
struct Again<'a> {
    server: &'a ThisServer,
    at: Option<Timestamp>,
}

impl Drop for Again<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            self.server.due_by(at);
        }
    }
}
