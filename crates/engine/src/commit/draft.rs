//! What one attempt at a batch decided. A store may start over, or fail after everything was
//! decided: so nothing here reaches a caller, a counter or a list before the store has said yes.

use crate::alerts::Signals;
use crate::bulk;
use crate::dependents;
use crate::engine::{Reply, Shared};
use crate::execution::Execution;
use crate::limits::{PULL_BYTES_MAX, TAKES_PER_PULL};
use crate::meters::Reading;
use crate::pull::{GovernedPull, Grant, Pull};
use crate::request::Request;
use mainspring_kernel::command::{Claim, GovernedClaim};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::shared_time::{Jump, Silence};
use mainspring_kernel::{
    Command, Decision, Entity, EntityId, Event, Job, JobId, Receipt, Rejection, TenantId,
    Timestamp, firing,
};
use mainspring_store::{Circumstances, Desk, decide_on};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What an attempt decided, for those who will have to be told.
#[derive(Default)]
pub(super) struct Draft {
    /// What each request of the batch is told.
    replies: Vec<Reply>,
    /// What each waiting pull gets.
    grants: Vec<Vec<Grant>>,
    pub(super) effects: Effects,
    /// What the clock had been through when the batch was decided.
    jumps: Arc<[Jump]>,
    silences: Arc<[Silence]>,
}

/// What is true for everybody once a draft is.
#[derive(Default)]
pub(super) struct Effects {
    commands: u64,
    illegal_moves: u64,
    stale_leases: u64,
    idempotent_hits: u64,
    execution: Execution,
    reading: Reading,
    /// What is out of the ordinary.
    pub(super) signals: Signals,
    pub(super) has_new_timer: bool,
    /// Bulk operations have something to do.
    pub(super) has_new_bulk: bool,
    /// Tokens were issued or revoked.
    pub(super) has_new_tokens: bool,
    /// Whether a type was registered or changed.
    pub(super) has_new_types: bool,
    /// Whether an alert was raised, acknowledged or cleared.
    pub(super) has_new_alerts: bool,
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
    /// Waits that were made, with the jobs that they name.
    pub(super) waits: Vec<(EntityId, Vec<JobId>)>,
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
        self.jumps = shared.clock.jumps();
        self.silences = shared.clock.silences();
        for request in batch {
            let reply = self.decide_request(shared, request, desk, now);
            self.replies.push(reply);
        }
        for request in parked {
            let (grants, _) = self.serve_pull(shared, request, desk, now);
            self.grants.push(grants);
        }
        for (index, request) in batch.iter().enumerate() {
            let (grants, has_held) = self.serve_pull(shared, request, desk, now);
            self.replies[index].grants = grants;
            self.replies[index].has_held = has_held;
        }
        // Pulls that wait are served when what held jobs back lets go.
        self.effects.has_new_timer |= desk.opens_at().is_some();
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
            let outcome = self.decide_one(shared, command, desk, now).map(|decision| {
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

    /// What a pull gets, and whether jobs were held that it would have got.
    fn serve_pull(
        &mut self,
        shared: &Shared,
        request: &Request,
        desk: &mut dyn Desk,
        now: Timestamp,
    ) -> (Vec<Grant>, bool) {
        let Some(pull) = &request.pull else { return (Vec::new(), false) };
        let is_dead = |id| desk.token(id).is_none_or(|token| !token.is_live(now));
        if pull.token.is_some_and(is_dead) || request.is_abandoned() {
            return (Vec::new(), false);
        }
        let (mut grants, mut has_held) = (Vec::new(), false);
        let mut bytes = 0;
        for _ in 0..TAKES_PER_PULL {
            let by = pull.due_by(now).unwrap_or(now);
            let ready = desk.take_ready(&pull.needs().wanted(), pull.limit - grants.len(), by);
            let mut is_any_held = false;
            for id in ready {
                // What is left over is ready again when the batch ends, for pulls that wait too.
                if bytes >= PULL_BYTES_MAX {
                    self.effects.has_left_over = true;
                    return (grants, has_held);
                }
                self.effects.commands += 1;
                let claim = claim(pull, id);
                let Ok(decision) = self.decide_one(shared, &claim, desk, now) else { continue };
                self.enact(decision, desk);
                match desk.job(id).filter(|job| job.lease().is_some()) {
                    Some(job) => {
                        bytes += job.payload.len();
                        grants.push(Grant { job: job.clone() });
                    }
                    // It was put out of the way: there may be others behind it.
                    None => is_any_held = true,
                }
            }
            if !is_any_held {
                break;
            }
            has_held = true;
        }
        (grants, has_held)
    }

    fn decide_one(
        &self,
        shared: &Shared,
        command: &Command,
        desk: &dyn Desk,
        now: Timestamp,
    ) -> Result<Decision, Rejection> {
        let config = &shared.config;
        let mut around = Circumstances {
            now,
            fresh_id: &mut || shared.ids.next(now, shared.entropy.bits()),
            fresh_secret: &mut || shared.entropy.bits(),
            are_types_strict: config.are_types_strict,
            jumps: &self.jumps,
            silences: &self.silences,
            backlog_max: (config.backlog_bytes_per_tenant, config.backlog_bytes_max),
            governance: config.governance,
        };
        decide_on(desk, command, &mut around)
    }

    /// Makes a decision true for the rest of the batch.
    pub(super) fn enact(&mut self, decision: Decision, desk: &mut dyn Desk) -> Receipt {
        let effects = &mut self.effects;
        let mut moved: Vec<JobId> = Vec::new();
        for event in &decision.events {
            match event {
                Event::JobSubmitted(job) => {
                    effects.has_new_timer = true;
                    effects.moved_of(&job.tenant);
                    effects.reading.submitted(job);
                }
                Event::JobMoved(event) => {
                    effects.has_new_timer = true;
                    effects.execution.note(event);
                    if let Some(job) = desk.job(event.job) {
                        effects.reading.moves(job, event);
                    }
                    if moved.last() != Some(&event.job) {
                        moved.push(event.job);
                    }
                }
                Event::LeaseRenewed { .. } => effects.has_new_timer = true,
                Event::TokenIssued(_) | Event::TokenRevoked { .. } => effects.has_new_tokens = true,
                Event::TypeSet(_) => effects.has_new_types = true,
                Event::EntitySet(entity) => {
                    effects.has_new_timer = true;
                    effects.has_new_bulk |= bulk::is_going_on(entity);
                    effects.waits.extend(dependents::made(entity));
                    if entity.id.kind == Kind::Schedule {
                        effects.signals.changed(desk.entity(entity.id), entity);
                        effects.reading.changes(desk.entity(entity.id), entity);
                    }
                    effects.has_new_alerts |= entity.id.kind == Kind::Alert;
                    if entity.id.kind == Kind::Trigger {
                        effects.triggers.push((entity.id, Some(entity.clone())));
                    }
                }
                Event::EntityRemoved { entity, .. } => {
                    if entity.kind == Kind::Trigger {
                        effects.triggers.push((*entity, None));
                    }
                }
                Event::ItemOpened(item) => effects.signals.buried(item),
                Event::EffectCommitted { .. } | Event::ItemChanged { .. } | Event::QueueSet(_) => {}
            }
        }
        if !decision.events.is_empty() {
            desk.apply(decision.events);
        }
        // A decision moves one job through however many states, or several through one each.
        for job in moved.into_iter().filter_map(|id| desk.job(id)) {
            effects.moved_of(&job.tenant);
            effects.signals.moved(job);
            effects.execution.pickup.note(job);
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
    /// A job of this tenant moved. Jobs of one commit are mostly of one tenant.
    fn moved_of(&mut self, tenant: &TenantId) {
        if self.tenants.last() != Some(tenant) {
            self.tenants.push(tenant.clone());
        }
    }

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
    pub(super) fn count(&self, shared: &Shared, now: Timestamp, took: Duration) {
        let tally = &shared.tally;
        let add = |counter: &std::sync::atomic::AtomicU64, by: u64| {
            counter.fetch_add(by, Ordering::Relaxed);
        };
        add(&tally.commits, 1);
        add(&tally.commands, self.commands);
        add(&tally.illegal_moves, self.illegal_moves);
        add(&tally.stale_leases, self.stale_leases);
        add(&tally.idempotent_hits, self.idempotent_hits);
        tally.executed.add(&self.execution);
        shared.meters.add(&self.reading, self.commands, took);
        for (kind, started) in self.reading.started() {
            shared.paces.add(kind, started, now);
        }
    }
}

/// What hands job `id` to a pull.
fn claim(pull: &Pull, id: JobId) -> Command {
    let claim = Claim { job: id, worker: pull.worker.clone(), lease_ms: pull.lease_ms };
    match &pull.governed {
        Some(GovernedPull { holder, clock }) => Command::ClaimGoverned(Box::new(GovernedClaim {
            claim,
            holder: holder.clone(),
            clock: *clock,
        })),
        None => Command::Claim(claim),
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
