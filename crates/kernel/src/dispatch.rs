//! Who goes next: tenants in turn, each tenant's queues in turn, and within a queue the order the
//! queue chose. A pure structure; the memory store keeps all ready jobs in one, and a database
//! store fills a small one from the ready rows it has looked at.

mod book;
mod estimate;
mod lane;
mod turns;

pub use book::{Book, Place, Rank, Wanted};
pub use estimate::{Basis, Estimate, Outlook};
pub use lane::{LaneKey, LimitKey, Room, Taken, has_room};

use crate::agent;
use crate::job::Job;
use crate::limits::{AGING_MICROS_PER_POINT, RUN_AGING_MICROS_PER_POINT};
use crate::registry::QueueOrder;
use crate::time::Timestamp;

/// Every code an explanation of a waiting job may give.
pub const WAITING_CODES: &[&str] = &[
    "NOT_DUE",
    "RETRY_BACKOFF",
    "QUEUE_PAUSED",
    "TYPE_PAUSED",
    "TENANT_PAUSED",
    "CIRCUIT_OPEN",
    "RATE_LIMITED",
    "GATE_CLOSED",
    "OBJECT_UNCERTAIN",
    "AUTO_VERIFY_BUDGET",
    "CONCURRENCY_LIMIT_EXCEEDED",
    "RETRY_BUDGET",
    "WAITS_FOR",
    "JOBS_AHEAD",
    "NO_WORKER",
    "READY",
];

/// The place of a job among its like: smaller goes first. It never changes while the job waits, so
/// an ordered index needs no upkeep as time passes: with linear aging, two jobs that wait grow
/// more urgent at the same rate.
pub fn order_key(order: QueueOrder, due_at: Timestamp, priority: u8) -> i64 {
    match order {
        QueueOrder::Aged => due_at.0.saturating_sub(i64::from(priority) * AGING_MICROS_PER_POINT),
        // Microseconds of the next centuries fit in 55 bits; the low 8 break ties by priority.
        QueueOrder::Due => {
            due_at.0.clamp(-(1 << 54), 1 << 54).saturating_mul(256) + i64::from(255 - priority)
        }
    }
}

/// The order key of `job` in a queue of that order, due at `due_at`. In the queue of agent runs,
/// whose priorities go up to ten, a point is worth a minute of waiting instead of a second.
pub fn key_of(order: QueueOrder, job: &Job, due_at: Timestamp) -> i64 {
    match job.queue.as_str() {
        agent::QUEUE => {
            due_at.0.saturating_sub(i64::from(job.priority) * RUN_AGING_MICROS_PER_POINT)
        }
        _ => order_key(order, due_at, job.priority),
    }
}

/// The rank of a waiting job.
pub fn rank(order: QueueOrder, job: &Job) -> Rank {
    Rank::of(key_of(order, job, job.due_at().unwrap_or_default()), job.id)
}
