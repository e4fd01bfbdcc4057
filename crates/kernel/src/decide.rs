//! The one place where a command becomes events or a rejection. This file only routes; each rule
//! has a file of its own below `decide/`. `tests/rules.rs` has the rules as text tables, and
//! `docs/lifecycle.md` the full grid.

mod attempt;
mod cancel;
mod claim;
mod dead_letter;
mod effect;
mod governed;
mod internal;
mod item;
mod park;
mod reap;
mod registry;
mod submit;
pub(crate) mod two_people;

use crate::command::Command;
use crate::entity;
use crate::event::{Change, Event, JobEvent};
use crate::facts::Facts;
use crate::governance::{Gate, is_governed};
use crate::id::{DlqId, JobId};
use crate::job::{Actor, Job, LeaseToken, Payload, StateName};
use crate::rejection::Rejection;
use crate::time::Timestamp;
pub(crate) use cancel::cancel;
pub(crate) use internal::give_up;
pub(crate) use item::{request_discard, requeue};
pub(crate) use park::{hasten, is_parked, park, pause, resume};
pub(crate) use submit::submit;

/// What a command brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What became true, in order. Empty when the answer repeats an earlier one.
    pub events: Vec<Event>,
    /// What the caller learns.
    pub receipt: Receipt,
}

/// What the caller of an accepted command learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// A job was accepted.
    Submitted {
        /// The new job.
        job: JobId,
    },
    /// The idempotency key named a job that exists; nothing was created.
    Existing {
        /// That job.
        job: JobId,
        /// Where it stands, if it is still kept.
        state: Option<StateName>,
    },
    /// The job is in this state now, or was already when a report was repeated.
    Moved {
        /// The state.
        state: StateName,
    },
    /// The lease lasts until then.
    Renewed {
        /// Its end.
        expires_at: Timestamp,
    },
    /// The heartbeat of a job that was cancelled under its worker.
    CancelledMeanwhile,
    /// A side effect is committed, now or earlier.
    Effect {
        /// The value of the first commit.
        value: Payload,
        /// Whether this call was the first.
        is_first: bool,
    },
    /// One attempt was run by hand.
    Ran {
        /// Where the job stands.
        state: StateName,
        /// Retries scheduled so far.
        retry_count: u16,
        /// The dead-letter item, if it came to that.
        item: Option<DlqId>,
        /// When the next try is due, if there is one.
        retry_at: Option<Timestamp>,
        /// How long after the failure that is, by the rule.
        retry_after_ms: Option<u64>,
    },
    /// A dead-letter item runs again as this job.
    Requeued {
        /// The new job.
        job: JobId,
    },
    /// A dead-letter item changed.
    Item {
        /// Where it stands.
        state: &'static str,
    },
    /// Nothing was decided: how these jobs stand matters. Ask again and name them.
    Wanting {
        /// Those jobs.
        jobs: Vec<JobId>,
    },
    /// A gate was closed since the job was handed out: it waits again, and no try is used up.
    TakenBack {
        /// Which gate.
        gate: Gate,
    },
    /// A line of the audit trail was written.
    Audited {
        /// Its number.
        seq: u64,
        /// Its hash.
        hash: [u8; 32],
    },
    /// The entity is there.
    Ensured {
        /// Whether it was not before.
        is_new: bool,
    },
    /// What each of several commands is told that were taken together.
    Together(Vec<Receipt>),
    /// Done; nothing more to say.
    Done,
}

/// Decides `command` in the light of `facts`.
///
/// # Errors
/// A [`Rejection`] says why not; then nothing happened.
pub fn decide(command: &Command, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    match command {
        Command::Submit(wish) => submit(wish, facts),
        Command::Claim(claim) => claim::claim(claim, facts),
        Command::ClaimGoverned(claim) => governed::claim(claim, facts),
        Command::Ack(ack) => governed::ack(ack, facts),
        Command::Renew(renew) => governed::renew(renew, facts),
        Command::Complete(report) => {
            not_governed(Some(report.token), facts)?;
            attempt::complete(report, facts)
        }
        Command::Fail(report) => attempt::fail(report, facts),
        Command::Release(report) => attempt::release(report, facts),
        Command::Heartbeat(beat) => {
            not_governed(Some(beat.token), facts)?;
            attempt::heartbeat(beat, facts)
        }
        Command::CommitEffect(wish) => effect::commit(wish, facts),
        Command::Cancel { by, reason, .. } => cancel(by, reason.as_deref(), facts),
        Command::Reap { .. } => reap::reap(facts),
        Command::ExtendLease { until, .. } => reap::extend(*until, facts),
        Command::Transition { to, by, .. } => {
            not_governed(None, facts)?;
            internal::transition(*to, by, facts)
        }
        Command::MoveTask { to, by, .. } => {
            not_governed(None, facts)?;
            internal::move_task(*to, by, facts)
        }
        Command::RunInternally(run) => {
            not_governed(None, facts)?;
            internal::run(run, facts)
        }
        Command::MoveShown { to, by, .. } => {
            not_governed(None, facts)?;
            internal::move_shown(*to, by, facts)
        }
        Command::RequeueItem { by, key, .. } => item::requeue(by, key.as_deref(), facts),
        Command::RequestDiscard { by, reason, .. } => item::request_discard(by, reason, facts),
        Command::ApproveDiscard { by, version, .. } => item::approve_discard(by, *version, facts),
        Command::RejectDiscard { .. } => item::reject_discard(facts),
        Command::DiscardReviewed { by, reason, reviewer, reviewer_2, .. } => {
            item::discard_reviewed(by, reason, [reviewer, reviewer_2], facts)
        }
        Command::BreakGlass { by, reason, .. } => item::break_glass(by, reason, facts),
        Command::Entity(command) => entity::decide(command, facts),
        Command::Ring { at, .. } => entity::ring(*at, facts),
        Command::Settle { .. } => entity::settle(facts),
        Command::Together(_) => unreachable!("each part is decided on facts of its own"),
        Command::SetType(spec) => registry::set_type(spec, facts),
        Command::ChangeType { name, change } => registry::change_type(name, change, facts),
        Command::SetQueue(spec) => registry::set_queue(spec),
        Command::IssueToken(token) => Ok(done(Event::TokenIssued(token.clone()))),
        Command::ExpireToken { at, .. } => match facts.token {
            Some(token) => Ok(done(Event::TokenIssued(Box::new(token.ending_by(*at))))),
            None => Err(Rejection::TokenUnknown),
        },
        Command::RevokeToken { token } => match facts.token {
            Some(_) => Ok(done(Event::TokenRevoked { token: *token, at: facts.now })),
            None => Err(Rejection::TokenUnknown),
        },
    }
}

/// Refuses what would get a governed job past its gates: it is started and ended by its contract
/// alone. With a token, only whoever holds the lease learns so.
fn not_governed(token: Option<LeaseToken>, facts: &Facts<'_>) -> Result<(), Rejection> {
    let is_holder =
        |job: &&Job| token.is_none_or(|token| attempt::live_lease(job, token, facts).is_some());
    match facts.job.filter(|job| is_governed(&job.job_type)).filter(is_holder) {
        Some(_) => Err(Rejection::JobGoverned),
        None => Ok(()),
    }
}

/// One move of a job.
pub(crate) fn moved(job: &Job, change: Change, actor: Actor, facts: &Facts<'_>) -> Event {
    let mut moves = MoveChain::of(job, facts, actor);
    moves.push(change);
    moves.events.remove(0)
}

fn done(event: Event) -> Decision {
    Decision { events: vec![event], receipt: Receipt::Done }
}

/// A chain of moves of one job, numbered on from its last event.
struct MoveChain {
    job: JobId,
    seq: u32,
    at: Timestamp,
    actor: Actor,
    events: Vec<Event>,
}

impl MoveChain {
    fn of(job: &Job, facts: &Facts<'_>, actor: Actor) -> Self {
        // The job's clock never runs backwards, whatever the machine's does.
        let at = facts.now.max(job.updated_at);
        MoveChain { job: job.id, seq: job.seq, at, actor, events: Vec::with_capacity(1) }
    }

    fn push(&mut self, change: Change) -> &JobEvent {
        self.seq += 1;
        self.events.push(Event::JobMoved(JobEvent {
            job: self.job,
            seq: self.seq,
            at: self.at,
            actor: self.actor.clone(),
            change,
        }));
        match self.events.last() {
            Some(Event::JobMoved(event)) => event,
            _ => unreachable!("a move was just pushed"),
        }
    }

    fn into_state(self, state: StateName) -> Decision {
        Decision { events: self.events, receipt: Receipt::Moved { state } }
    }
}
