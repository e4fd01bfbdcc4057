//! The latest moves of all jobs, in commit order, for event streams. A ring; what leaves it is in
//! files by then (`memory/stream.rs`), and who falls behind those, too, is told so.

use crate::limits::{MOVES_HELD_MAX, MOVES_KEPT};
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::{Job, JobId, JobType, QueueName, TenantId, Timestamp, UserId};
use mainspring_store::{LoggedMove, PlacedStep};
use std::collections::VecDeque;

#[derive(Debug)]
struct Move {
    job: JobId,
    tenant: TenantId,
    user: UserId,
    job_type: JobType,
    queue: QueueName,
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
    /// Moves up to here are in files, or need not be.
    written: u64,
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

    /// Moves up to `position` are in files, or need not be.
    pub(crate) fn written_to(&mut self, position: u64) {
        self.written = self.written.max(position);
    }

    /// How many moves are in no file yet.
    pub(crate) fn unwritten(&self) -> u64 {
        (self.ring.len() as u64).min(self.newest.saturating_sub(self.written))
    }

    /// Moves up to `until` that are in no file yet, the oldest first.
    pub(crate) fn to_write(&self, until: u64, limit: usize) -> Vec<LoggedMove> {
        let before = self.newest - self.unwritten();
        self.after(before, until, limit).0
    }

    /// Position of the oldest move that is here; the one to come, if there is none.
    pub(crate) fn oldest(&self) -> u64 {
        self.newest - self.ring.len() as u64 + 1
    }

    /// Takes in a move of another store, behind those that are here.
    pub(crate) fn take_in(&mut self, logged: LoggedMove) {
        if logged.position != self.newest + 1 {
            self.resume(logged.position - 1);
        }
        self.make_room();
        self.newest = logged.position;
        self.ring.push_back(Move {
            trace: (*logged.trace_id != *logged.job.trace_id()).then_some(logged.trace_id),
            job: logged.job,
            tenant: logged.tenant,
            user: logged.user,
            job_type: logged.job_type,
            queue: logged.queue,
            created_at: logged.created_at,
            run_at: logged.run_at,
            step: logged.transition,
        });
    }

    /// What is in no file yet stays, unless the files fall behind by far too much.
    fn make_room(&mut self) {
        let may_go = self.oldest() <= self.written || self.ring.len() >= MOVES_HELD_MAX;
        if self.ring.len() >= MOVES_KEPT && may_go {
            self.ring.pop_front();
        }
    }

    pub(crate) fn push(&mut self, job: &Job, step: Transition) {
        self.make_room();
        self.newest += 1;
        self.ring.push_back(Move {
            job: job.id,
            tenant: job.tenant.clone(),
            user: job.user.clone(),
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            trace: job.trace.clone(),
            created_at: job.created_at,
            run_at: job.run_at,
            step,
        });
    }

    /// The same without what is known of the jobs; nothing if some in between are gone.
    pub(crate) fn steps(&self, position: u64, until: u64, limit: usize) -> Option<Vec<PlacedStep>> {
        if position >= self.newest {
            return Some(Vec::new());
        }
        let skip = usize::try_from((position + 1).checked_sub(self.oldest())?).ok()?;
        let numbered = (position + 1..).zip(self.ring.iter().skip(skip));
        let within = numbered.take_while(|(at, _)| *at <= until).take(limit);
        Some(within.map(|(at, entry)| (at, entry.job, Some(entry.step.clone()))).collect())
    }

    /// Moves after `position` up to `until`; whether some in between are gone.
    pub(crate) fn after(&self, position: u64, until: u64, limit: usize) -> (Vec<LoggedMove>, bool) {
        // Whoever wants to know the newest position alone asks behind the largest one.
        if position >= self.newest {
            return (Vec::new(), false);
        }
        let oldest = self.oldest();
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
        queue: entry.queue.clone(),
        trace_id: entry.trace.clone().unwrap_or_else(derived),
        created_at: entry.created_at,
        run_at: entry.run_at,
        transition: entry.step.clone(),
    }
}
