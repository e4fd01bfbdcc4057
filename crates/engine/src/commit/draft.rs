//! What one attempt at a batch decided. A store may start over, or fail after everything was
//! decided: so nothing here reaches a caller, a counter or a list before the store has said yes.

use super::decide_one;
use crate::engine::{Reply, Shared, Tally};
use crate::execution::Execution;
use crate::limits::PULL_BYTES_MAX;
use crate::pull::Grant;
use crate::request::Request;
use mainspring_kernel::command::Claim;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    Command, Decision, Entity, EntityId, Event, Job, JobId, Receipt, Rejection, TenantId,
    Timestamp, firing,
};
use mainspring_store::Desk;
use std::sync::atomic::Ordering;

/// What an attempt decided, for those who will have to be told.
#[derive(Default)]
pub(super) struct Draft {
    /// What each request of the batch is told.
    replies: Vec<Reply>,
    /// What each waiting pull gets.
    grants: Vec<Vec<Grant>>,
    pub(super) effects: Effects,
}

/// What is true for everybody once a draft is.
#[derive(Default)]
pub(super) struct Effects {
    commands: u64,
    illegal_moves: u64,
    stale_leases: u64,
    idempotent_hits: u64,
    execution: Execution,
    pub(super) has_new_timer: bool,
    /// Tokens were issued or revoked.
    pub(super) has_new_tokens: bool,
    /// Ready jobs were too much for a pull.
    pub(super) has_left_over: bool,
    /// Jobs that ended.
    pub(super) ended: Vec<JobId>,
    /// The names that their callers chose for them, in the same order.
    pub(super) ended_as: Vec<Option<Digest>>,
    /// Triggers that changed, as they are now.
    pub(super) triggers: Vec<(EntityId, Option<Box<Entity>>)>,
    /// Jobs among them whose end their entities want to hear of.
    pub(super) settled: Vec<(EntityId, JobId)>,
    /// Whose jobs moved; may name one several times.
    pub(super) tenants: Vec<TenantId>,
}

impl Draft {
    /// Decides the commands of a batch in order, then serves the pulls: those who have waited
    /// longest first, then this batch's own.
    pub(super) fn decide(
        &mut self,
        shared: &Shared,
        (batch, parked): (&[Request], &[Request]),
        desk: &mut dyn Desk,
        now: Timestamp,
    ) {
        for request in batch {
            let reply = self.decide_request(shared, request, desk, now);
            self.replies.push(reply);
        }
        for request in parked {
            let grants = self.serve_pull(shared, request, desk, now);
            self.grants.push(grants);
        }
        for (index, request) in batch.iter().enumerate() {
            self.replies[index].grants = self.serve_pull(shared, request, desk, now);
        }
    }

    /// Puts what was decided into the requests, which are answered when it is durable.
    pub(super) fn settle(self, batch: &mut [Request], parked: &mut [Request]) -> Effects {
        for (request, reply) in batch.iter_mut().zip(self.replies) {
            request.settle(reply);
        }
        for (request, grants) in parked.iter_mut().zip(self.grants) {
            request.settle(Reply { grants, ..Reply::default() });
        }
        self.effects
    }

    fn decide_request(
        &mut self,
        shared: &Shared,
        request: &Request,
        desk: &mut dyn Desk,
        now: Timestamp,
    ) -> Reply {
        let is_single = request.commands.len() == 1;
        let mut reply = Reply::default();
        reply.outcomes.reserve_exact(request.commands.len());
        for command in &request.commands {
            let outcome = decide_one(shared, command, desk, now).map(|decision| {
                if is_single {
                    reply.job = echoed(&decision, desk);
                }
                self.enact(decision, desk)
            });
            self.effects.note(&outcome);
            reply.outcomes.push(outcome);
        }
        reply
    }

    fn serve_pull(
        &mut self,
        shared: &Shared,
        request: &Request,
        desk: &mut dyn Desk,
        now: Timestamp,
    ) -> Vec<Grant> {
        let Some(pull) = &request.pull else { return Vec::new() };
        let is_dead = |id| desk.token(id).is_none_or(|token| !token.is_live(now));
        if pull.token.is_some_and(is_dead) || request.is_abandoned() {
            return Vec::new();
        }
        let ready = desk.take_ready(&pull.needs().wanted(), pull.limit, now);
        let mut grants = Vec::with_capacity(ready.len());
        let mut bytes = 0;
        for id in ready {
            // What is left over is ready again when the batch ends, for pulls that wait as well.
            if bytes >= PULL_BYTES_MAX {
                self.effects.has_left_over = true;
                break;
            }
            let claim = Claim { job: id, worker: pull.worker.clone(), lease_ms: pull.lease_ms };
            self.effects.commands += 1;
            if let Ok(decision) = decide_one(shared, &Command::Claim(claim), desk, now) {
                self.enact(decision, desk);
                grants.extend(desk.job(id).map(|job| Grant { job: job.clone() }));
                bytes += grants.last().map_or(0, |grant: &Grant| grant.job.payload.len());
            }
        }
        grants
    }

    /// Makes a decision true for the rest of the batch.
    pub(super) fn enact(&mut self, decision: Decision, desk: &mut dyn Desk) -> Receipt {
        let effects = &mut self.effects;
        let mut moved: Vec<JobId> = Vec::new();
        for event in &decision.events {
            match event {
                Event::JobSubmitted(job) => {
                    effects.has_new_timer = true;
                    effects.tenants.push(job.tenant.clone());
                }
                Event::JobMoved(event) => {
                    effects.has_new_timer = true;
                    effects.execution.note(event);
                    if moved.last() != Some(&event.job) {
                        moved.push(event.job);
                    }
                }
                Event::LeaseRenewed { .. } => effects.has_new_timer = true,
                Event::TokenIssued(_) | Event::TokenRevoked { .. } => effects.has_new_tokens = true,
                Event::EntitySet(entity) => {
                    effects.has_new_timer = true;
                    if entity.id.kind == Kind::Trigger {
                        effects.triggers.push((entity.id, Some(entity.clone())));
                    }
                }
                Event::EntityRemoved { entity, .. } => {
                    if entity.kind == Kind::Trigger {
                        effects.triggers.push((*entity, None));
                    }
                }
                Event::EffectCommitted { .. }
                | Event::ItemOpened(_)
                | Event::ItemChanged { .. }
                | Event::TypeSet(_)
                | Event::QueueSet(_) => {}
            }
        }
        if !decision.events.is_empty() {
            desk.apply(decision.events);
        }
        // A decision moves one job through however many states, or several through one each.
        for job in moved.into_iter().filter_map(|id| desk.job(id)) {
            effects.tenants.push(job.tenant.clone());
            if job.state.name().is_terminal() {
                effects.ended.push(job.id);
                effects.ended_as.push(job.alias().map(|alias| alias.hash));
                let watched = firing::origin(job).filter(|origin| origin.is_watched);
                effects.settled.extend(watched.map(|origin| (origin.entity, job.id)));
                effects.settled.extend(job.plan().map(|plan| (plan, job.id)));
            }
        }
        decision.receipt
    }
}

impl Effects {
    fn note(&mut self, outcome: &Result<Receipt, Rejection>) {
        self.commands += 1;
        match outcome {
            Err(Rejection::IllegalMove { .. } | Rejection::IllegalTaskMove { .. }) => {
                self.illegal_moves += 1
            }
            Err(Rejection::LeaseLost) => self.stale_leases += 1,
            Ok(Receipt::Existing { .. }) => self.idempotent_hits += 1,
            _ => {}
        }
    }

    /// Counts a commit, once it is one.
    pub(super) fn count(&self, tally: &Tally) {
        let add = |counter: &std::sync::atomic::AtomicU64, by: u64| {
            counter.fetch_add(by, Ordering::Relaxed);
        };
        add(&tally.commits, 1);
        add(&tally.commands, self.commands);
        add(&tally.illegal_moves, self.illegal_moves);
        add(&tally.stale_leases, self.stale_leases);
        add(&tally.idempotent_hits, self.idempotent_hits);
        tally.executed.add(&self.execution);
    }
}

/// The job a single submission is answered with: as submitted, before any worker takes it.
fn echoed(decision: &Decision, desk: &dyn Desk) -> Option<Box<Job>> {
    match (&decision.receipt, decision.events.first()) {
        (Receipt::Submitted { .. }, Some(Event::JobSubmitted(job))) => Some(job.clone()),
        (Receipt::Existing { job, .. }, _) => desk.job(*job).map(|job| Box::new(job.clone())),
        _ => None,
    }
}
