//! The latest moves of all jobs, in commit order, for event streams. A ring: who falls behind it is
//! told so and reads the jobs instead.

use mainspring_kernel::evolve::Transition;
use mainspring_kernel::{Job, JobId, JobType, TenantId, Timestamp, UserId};
use mainspring_store::LoggedMove;
use std::collections::VecDeque;

const KEPT: usize = 1 << 15;

#[derive(Debug)]
struct Move {
    job: JobId,
    tenant: TenantId,
    user: UserId,
    job_type: JobType,
    trace: Option<Box<str>>,
    created_at: Timestamp,
    run_at: Timestamp,
    step: Transition,
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct RecentMoves {
    ring: VecDeque<Move>,
    /// Position of the newest move ever; the first has 1.
    newest: u64,
}

impl RecentMoves {
    /// Position of the newest move.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Goes on counting from a stored position.
    pub(crate) fn resume(&mut self, newest: u64) {
        self.ring.clear();
        self.newest = newest;
    }

    pub(crate) fn push(&mut self, job: &Job, step: Transition) {
        if self.ring.len() == KEPT {
            self.ring.pop_front();
        }
        self.newest += 1;
        self.ring.push_back(Move {
            job: job.id,
            tenant: job.tenant.clone(),
            user: job.user.clone(),
            job_type: job.job_type.clone(),
            trace: job.trace.clone(),
            created_at: job.created_at,
            run_at: job.run_at,
            step,
        });
    }

    /// Moves after `position` up to `until`; whether some in between are gone.
    pub(crate) fn after(&self, position: u64, until: u64, limit: usize) -> (Vec<LoggedMove>, bool) {
        // Whoever wants to know the newest position alone asks behind the largest one.
        if position >= self.newest {
            return (Vec::new(), false);
        }
        let oldest = self.newest - self.ring.len() as u64 + 1;
        let from = (position + 1).max(oldest);
        let has_gap = from > position + 1;
        let skip = usize::try_from(from - oldest).unwrap_or(usize::MAX);
        let numbered = (from..).zip(self.ring.iter().skip(skip));
        let within = numbered.take_while(|(at, _)| *at <= until).take(limit);
        (within.map(|(position, entry)| logged(position, entry)).collect(), has_gap)
    }
}

fn logged(position: u64, entry: &Move) -> LoggedMove {
    let derived = || entry.job.trace_id().into();
    LoggedMove {
        position,
        job: entry.job,
        tenant: entry.tenant.clone(),
        user: entry.user.clone(),
        job_type: entry.job_type.clone(),
        trace_id: entry.trace.clone().unwrap_or_else(derived),
        created_at: entry.created_at,
        run_at: entry.run_at,
        transition: entry.step.clone(),
    }
}
