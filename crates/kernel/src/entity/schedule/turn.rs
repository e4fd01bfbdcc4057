//! A schedule while something is done to it: what it becomes, and what becomes true besides.

use super::history::{self, Outcome, OutcomeKind, reason};
use super::{Schedule, Status, jitter_ms};
use crate::command::Submit;
use crate::decide::{Decision, Receipt};
use crate::entity::{Body, Entity};
use crate::event::Event;
use crate::facts::Facts;
use crate::firing::{self, Fired, Ties};
use crate::id::JobId;
use crate::limits::{FIRINGS_LOOKED_AT_MAX, LATE_MS, OUTSTANDING_MAX, SCHEDULE_KEEP_MS};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// The label by which the jobs of a schedule are found.
pub(super) const LABEL: &str = "schedule_id";

pub(super) struct Turn<'a> {
    pub(super) entity: &'a Entity,
    pub(super) facts: &'a Facts<'a>,
    /// The instant of the turn. The clock of another server, or of the one before a restart, may
    /// have been ahead; up to what the schedule has seen then, everything is accounted for.
    pub(super) now: Timestamp,
    /// What it becomes.
    pub(super) next: Schedule,
    pub(super) events: Vec<Event>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(entity: &'a Entity, schedule: &Schedule, facts: &'a Facts<'a>) -> Self {
        let now = facts.now.max(entity.updated_at);
        Turn { entity, facts, now, next: schedule.clone(), events: Vec::new() }
    }

    /// Submits the job of `at`, which is due by itself, or finds it. Nothing is recorded.
    pub(super) fn fire(&mut self, at: Timestamp) -> Result<Fired, Rejection> {
        let jitter_ms = jitter_ms(self.entity.id, at, self.next.spec.jitter_secs);
        self.submit(at, Some(at.plus_millis(jitter_ms)))
    }

    /// Submits the job of `at`, or finds it. A firing that has had its job gets no other, also if
    /// that job is forgotten.
    pub(super) fn submit(
        &mut self,
        at: Timestamp,
        run_at: Option<Timestamp>,
    ) -> Result<Fired, Rejection> {
        let spec = &self.next.spec;
        let (tenant, owner) = (self.entity.tenant.clone(), self.entity.owner.clone());
        let mut labels = spec.labels.clone();
        labels.push((LABEL.into(), self.entity.id.to_string().into()));
        let wish = Submit {
            payload: spec.payload.clone(),
            run_at,
            priority: spec.priority,
            queue: spec.queue.clone(),
            timeout_ms: spec.timeout_ms,
            max_retries: spec.max_retries,
            labels,
            ..Submit::plain(tenant, owner, spec.job_type.clone())
        };
        let is_watched = spec.watches();
        let ties = Ties { is_watched, task: self.next.task.as_ref() };
        let mut fired = firing::fire(self.entity.id, at, ties, wish, self.facts)?;
        if fired.is_new && self.next.fired.has(at) {
            return Err(Rejection::FiringDone);
        }
        if is_watched && fired.is_new {
            self.next.outstanding.push(fired.job);
            let surplus = self.next.outstanding.len().saturating_sub(OUTSTANDING_MAX);
            self.next.outstanding.drain(..surplus);
        }
        self.events.append(&mut fired.events);
        Ok(fired)
    }

    /// Keeps in mind that the firing of `at` has its job.
    pub(super) fn account(&mut self, at: Timestamp) {
        self.next.fired.add(at, &self.next.spec.rhythm);
    }

    /// Records that the firing of `at`, which was due by itself, has a job, or why it has none.
    pub(super) fn record_firing(
        &mut self,
        at: Timestamp,
        fired: &Result<Fired, Rejection>,
        why: Option<&str>,
    ) {
        let late_ms = u64::try_from(self.facts.now.since(at).as_millis()).unwrap_or(u64::MAX);
        match fired {
            Ok(fired) => {
                self.account(at);
                self.next.last_fire_at = self.next.last_fire_at.max(Some(at));
                self.next.runs += u32::from(fired.is_new);
                let kind = if late_ms > LATE_MS { OutcomeKind::Late } else { OutcomeKind::Fired };
                self.record(at, kind, why, Some(fired.job));
            }
            Err(rejection) => {
                let why = format!("refused: {}", rejection.code());
                self.record_none(at, OutcomeKind::Skipped, &why);
            }
        }
    }

    /// Records that the firing of `at` has no job.
    pub(super) fn record_none(&mut self, at: Timestamp, kind: OutcomeKind, why: &str) {
        self.next.skipped = self.next.skipped.saturating_add(1);
        self.record(at, kind, Some(why), None);
    }

    pub(super) fn record(
        &mut self,
        at: Timestamp,
        kind: OutcomeKind,
        why: Option<&str>,
        job: Option<JobId>,
    ) {
        let late_ms = match kind {
            OutcomeKind::Fired | OutcomeKind::Late => {
                u64::try_from(self.facts.now.since(at).as_millis()).unwrap_or(u64::MAX)
            }
            OutcomeKind::Skipped | OutcomeKind::Coalesced | OutcomeKind::Backfilled => 0,
        };
        let reason = why.map(Into::into);
        let outcome = Outcome { at, until: at, count: 1, kind, reason, job, late_ms };
        history::push(&mut self.next.history, outcome);
    }

    /// Gives up the firing that waits for a job to end.
    pub(super) fn drop_waiting(&mut self) {
        if let Some(waiting) = self.next.waiting.take() {
            self.record_none(waiting.at, OutcomeKind::Skipped, reason::DROPPED);
        }
    }

    /// Gives up everything that is due and has not fired yet: it rests, or it is over.
    pub(super) fn rest(&mut self) {
        self.drop_waiting();
        let mut due = self.next.next_at.take();
        for _ in 0..FIRINGS_LOOKED_AT_MAX {
            let Some(at) = due.filter(|at| *at <= self.now) else { break };
            self.record_none(at, OutcomeKind::Skipped, reason::DROPPED);
            due = self.next.spec.next_after(at);
        }
        self.next.catch_up_at = None;
    }

    /// Sets the alarm for `next_at`, unless that was all.
    pub(super) fn stand_at(&mut self, next_at: Option<Timestamp>) {
        let spec = &self.next.spec;
        let is_over = spec.max_runs.is_some_and(|most| self.next.runs >= most);
        self.next.next_at = next_at.filter(|_| !is_over);
        if self.next.next_at.is_none() {
            self.next.catch_up_at = None;
            if self.next.status == Status::Active {
                self.next.status = Status::Ended;
                // The id of one that the configuration asks for, or that stands for a plan, follows
                // from a name, and would come again.
                let is_plain = self.next.template.is_none() && self.next.task.is_none();
                self.next.gone_at = is_plain.then(|| self.now.plus_millis(SCHEDULE_KEEP_MS));
            }
        }
    }

    /// The decision that makes it so.
    pub(super) fn done(mut self, receipt: Receipt) -> Decision {
        let body = Body::Schedule(Box::new(self.next));
        self.events.push(Event::EntitySet(Box::new(self.entity.changed(body, self.facts.now))));
        Decision { events: self.events, receipt }
    }
}
