//! A trigger while something is done to it: what it becomes, and what becomes true besides.

use super::evaluate::{Evaluated, Truth, evaluate};
use super::leaf::{LeafState, Sight};
use super::log::{self, Outcome};
use super::{Outstanding, Status, Trigger, TriggerType};
use crate::decide::{Decision, Receipt};
use crate::entity::{Body, Entity};
use crate::event::Event;
use crate::facts::Facts;
use crate::time::Timestamp;

impl Trigger {
    /// What a condition comes to that was found to be so at `now`, and when the alarm is to stand.
    pub fn comes_to(&self, found: &Evaluated, now: Timestamp) -> (Outcome, Option<Timestamp>) {
        if self.outstanding.is_some() {
            return (Outcome::Running, None);
        }
        let rules = self.spec.rules();
        match found.truth {
            Truth::True => {
                let between_ms =
                    if found.has_edge { rules.cooldown_ms } else { rules.between_ms() };
                let last = self.last_triggered_at;
                let free_at = last.map_or(now, |last| last.plus_millis(between_ms));
                match free_at > now {
                    true => (Outcome::Cooling, Some(free_at)),
                    false => (Outcome::Due, Some(now)),
                }
            }
            Truth::Undecided => (Outcome::Undecided, found.asks.map(|(_, at)| at)),
            Truth::False => (Outcome::NotYet, self.asks_again_at(&found.leaves, now)),
        }
    }

    /// When a question is asked again that decides it now, because the answer was no.
    fn asks_again_at(&self, leaves: &[LeafState], now: Timestamp) -> Option<Timestamp> {
        let forget = |leaf: &LeafState| match leaf {
            LeafState::Llm { asked_at, answer: Some(false) } => {
                LeafState::Llm { asked_at: *asked_at, answer: None }
            }
            LeafState::Llm { .. }
            | LeafState::Changed { .. }
            | LeafState::Exists { .. }
            | LeafState::Task { .. } => leaf.clone(),
        };
        let forgotten: Vec<LeafState> = leaves.iter().map(forget).collect();
        let condition = self.spec.watched_condition()?;
        let found = evaluate(condition, &forgotten, &[], self.spec.rules(), now);
        found.asks.map(|(_, at)| at)
    }
}

pub(super) struct Turn<'a> {
    pub(super) entity: &'a Entity,
    pub(super) facts: &'a Facts<'a>,
    /// The instant of the turn: the clock of another server may have been ahead.
    pub(super) now: Timestamp,
    /// What it becomes.
    pub(super) next: Trigger,
    pub(super) events: Vec<Event>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(entity: &'a Entity, trigger: &Trigger, facts: &'a Facts<'a>) -> Self {
        let now = facts.now.max(entity.updated_at);
        Turn { entity, facts, now, next: trigger.clone(), events: Vec::new() }
    }

    /// What its condition comes to now; `None` if it has none to go by.
    pub(super) fn look(&self, seen: &[Sight]) -> Option<Evaluated> {
        let spec = &self.next.spec;
        let condition = spec.watched_condition()?;
        Some(evaluate(condition, &self.next.leaves, seen, spec.rules(), self.now))
    }

    /// Sets the alarm by what its condition comes to, and notes that.
    pub(super) fn reckon(&mut self) {
        let Some(found) = self.look(&[]) else { return };
        let (outcome, next_at) = self.next.comes_to(&found, self.now);
        self.next.next_run_at = next_at;
        if outcome != Outcome::Running {
            let mut line = log::line(self.now, outcome, &found);
            line.next_at = next_at;
            log::push(&mut self.next.log, line);
        }
    }

    /// It waits for `job` from now on.
    pub(super) fn waits_for(&mut self, outstanding: Outstanding) {
        self.next.outstanding = Some(outstanding);
        if self.next.spec.kind == TriggerType::Conditional {
            self.next.next_run_at = None;
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.next.status == Status::Active
    }

    /// The decision that makes it so.
    pub(super) fn done(mut self, receipt: Receipt) -> Decision {
        let body = Body::Trigger(Box::new(self.next));
        self.events.push(Event::EntitySet(Box::new(self.entity.changed(body, self.facts.now))));
        Decision { events: self.events, receipt }
    }
}
