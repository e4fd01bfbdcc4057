//! What is asked of a trigger, by people and by whoever looks at the world for it.

use super::leaf::{LeafState, Seen, Sight};
use super::turn::Turn;
use super::{Condition, Past, Status, Trigger, TriggerCommand, TriggerSpec, TriggerType};
use crate::agent;
use crate::decide::{Decision, Receipt};
use crate::entity::schedule::Pause;
use crate::entity::{Body, Entity, EntityId, Kind};
use crate::event::Event;
use crate::facts::Facts;
use crate::limits::{
    MESSAGE_BYTES_MAX, NAME_BYTES_MAX, RUN_AHEAD_MS_MAX, RUN_PRIORITY_MAX,
    SCHEDULE_INTERVAL_SECS_MAX, TIMEOUT_MS_MAX, TRIGGER_PROMPT_BYTES_MAX,
};
use crate::name::{TenantId, UserId};
use crate::rejection::Rejection;
use crate::text::{cleaned, refuse_control};
use crate::time::Timestamp;

pub(in crate::entity) fn decide(
    command: &TriggerCommand,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    match command {
        TriggerCommand::Create { id, tenant, owner, spec, sights, past } => {
            if facts.entity.is_some() {
                return Err(Rejection::EntityExists { kind: Kind::Trigger });
            }
            create(*id, (tenant, owner), spec, sights, past, facts)
        }
        TriggerCommand::Observe { made_at, sights, .. } => observe(*made_at, sights, facts),
        TriggerCommand::Pause { by, note, .. } => pause(by, note.as_deref(), facts),
        TriggerCommand::Resume { sights, .. } => resume(sights, facts),
        TriggerCommand::Remove { .. } => {
            let (entity, _) = known(facts)?;
            let event = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
            Ok(Decision { events: vec![event], receipt: Receipt::Done })
        }
    }
}

fn known<'a>(facts: &Facts<'a>) -> Result<(&'a Entity, &'a Trigger), Rejection> {
    let unknown = Rejection::EntityUnknown { kind: Kind::Trigger };
    let entity = facts.entity.ok_or(unknown.clone())?;
    let Body::Trigger(trigger) = &entity.body else { return Err(unknown) };
    Ok((entity, trigger))
}

fn create(
    id: EntityId,
    (tenant, owner): (&TenantId, &UserId),
    spec: &TriggerSpec,
    sights: &[Sight],
    past: &Past,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    spec.check()?;
    check_times(spec, past, facts.now)?;
    let next_run_at = match spec.kind {
        TriggerType::Recurring => {
            let from = past.last_triggered_at.unwrap_or(facts.now);
            let every_ms = spec.interval_secs.unwrap_or(0).saturating_mul(1_000);
            past.next_run_at.or(Some(from.plus_millis(every_ms)))
        }
        TriggerType::Scheduled => spec.run_at,
        TriggerType::Conditional => None,
    };
    let mut trigger = Trigger {
        spec: spec.clone(),
        status: Status::Active,
        leaves: spec.watched_condition().map_or(Vec::new(), |it| begin(it, sights, past)),
        last_triggered_at: past.last_triggered_at,
        last_eval_at: past.last_eval_at,
        outstanding: None,
        last_status: past.last_status,
        last_error: past.last_error.as_deref().map(cut),
        last_duration_ms: past.last_duration_ms,
        next_run_at,
        fired: 0,
        log: Vec::new(),
        made_elsewhere_at: past.created_at,
    };
    let made = Entity {
        id,
        version: 1,
        tenant: tenant.clone(),
        owner: owner.clone(),
        created_at: facts.now,
        updated_at: facts.now,
        body: Body::Trigger(Box::new(trigger.clone())),
    };
    let mut turn = Turn::new(&made, &trigger, facts);
    // What is there already may be all that it waits for.
    if let Some(found) = turn.look(sights) {
        turn.next.leaves = found.leaves;
        turn.reckon();
    }
    trigger = turn.next;
    let made = Entity { body: Body::Trigger(Box::new(trigger)), ..made };
    Ok(Decision { events: vec![Event::EntitySet(Box::new(made))], receipt: Receipt::Done })
}

/// The leaves as they begin: what there is to see is what later changes are compared with.
fn begin(condition: &Condition, sights: &[Sight], past: &Past) -> Vec<LeafState> {
    let seen = |at: usize| sights.iter().find(|it| usize::from(it.leaf) == at).map(|it| &it.seen);
    let begun = |(at, leaf): (usize, &&Condition)| {
        let fresh = LeafState::of(leaf);
        match (&fresh, seen(at)) {
            // It goes on where it was: what changed in between is an edge.
            (LeafState::Changed { .. }, _) if past.is_initialized => {
                LeafState::Changed { is_initialized: true, taken: past.last_mtime, held: None }
            }
            (LeafState::Task { .. }, Some(Seen::Task(Some(ended))))
                if past.last_seen_result_id.as_deref() == leaf.task() =>
            {
                LeafState::Task { taken: Some(ended.job), held: None }
            }
            (LeafState::Llm { .. }, _) => {
                LeafState::Llm { asked_at: past.last_eval_at, answer: None }
            }
            (_, Some(seen)) => fresh.begun(leaf, seen),
            (_, None) => fresh,
        }
    };
    condition.leaves().iter().enumerate().map(begun).collect()
}

/// Keeps in mind what was seen, if that says anything new.
fn observe(made_at: Timestamp, sights: &[Sight], facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, trigger) = known(facts)?;
    if entity.created_at != made_at || trigger.status != Status::Active {
        return Err(Rejection::NotDue);
    }
    let mut turn = Turn::new(entity, trigger, facts);
    let found = turn.look(sights).ok_or(Rejection::NotDue)?;
    if found.leaves == trigger.leaves {
        return Err(Rejection::NotDue);
    }
    turn.next.leaves = found.leaves;
    turn.next.last_eval_at = Some(turn.now);
    turn.reckon();
    Ok(turn.done(Receipt::Done))
}

fn pause(by: &UserId, note: Option<&str>, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, trigger) = known(facts)?;
    if let Some(note) = note {
        if note.len() > MESSAGE_BYTES_MAX {
            return Err(invalid("note", "must be at most 4096 bytes long"));
        }
        refuse_control("note", note)?;
    }
    let mut turn = Turn::new(entity, trigger, facts);
    let pause = Pause { by: Some(by.clone()), at: facts.now, note: note.map(Into::into) };
    turn.next.status = Status::Paused(Box::new(pause));
    Ok(turn.done(Receipt::Done))
}

fn resume(sights: &[Sight], facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, trigger) = known(facts)?;
    if trigger.status == Status::Active {
        return Ok(Decision { events: Vec::new(), receipt: Receipt::Done });
    }
    let mut turn = Turn::new(entity, trigger, facts);
    turn.next.status = Status::Active;
    match turn.next.spec.kind {
        // What went by meanwhile was not missed.
        TriggerType::Recurring => {
            let every_ms = turn.next.spec.interval_secs.unwrap_or(0).saturating_mul(1_000);
            let is_past = turn.next.next_run_at.is_none_or(|next| next <= turn.now);
            if is_past {
                turn.next.next_run_at = Some(turn.now.plus_millis(every_ms));
            }
        }
        TriggerType::Scheduled => {}
        TriggerType::Conditional => {
            let leaves = turn.next.spec.condition.as_ref().map_or(Vec::new(), Condition::leaves);
            let seen = |at| sights.iter().find(|it| usize::from(it.leaf) == at).map(|it| &it.seen);
            let begun = leaves.iter().zip(&turn.next.leaves).enumerate();
            turn.next.leaves = begun
                .map(|(at, (leaf, state))| {
                    seen(at).map_or_else(|| state.clone(), |seen| state.begun(leaf, seen))
                })
                .collect();
            turn.reckon();
        }
    }
    Ok(turn.done(Receipt::Done))
}

impl TriggerSpec {
    /// Refuses what could never be taken, whatever the moment.
    ///
    /// # Errors
    /// If a field breaks a rule that needs no facts.
    pub fn check(&self) -> Result<(), Rejection> {
        agent::check_id("id", &self.name)?;
        if self.prompt.trim().is_empty() || self.prompt.len() > TRIGGER_PROMPT_BYTES_MAX {
            return Err(invalid("prompt", "must be between 1 byte and 16 KiB long"));
        }
        if self.priority > RUN_PRIORITY_MAX {
            return Err(invalid("priority", "must be between 0 and 10"));
        }
        let timeout_max = u64::from(TIMEOUT_MS_MAX / 1_000);
        let is_timeout = |secs: u32| (1..=timeout_max).contains(&u64::from(secs));
        if !self.timeout_secs.is_none_or(is_timeout) {
            return Err(invalid("timeout", "must be between 1 and 604800 seconds (seven days)"));
        }
        if self.cooldown_secs > SCHEDULE_INTERVAL_SECS_MAX {
            return Err(invalid("cooldown", "must be at most 31622400 seconds (366 days)"));
        }
        let is_interval = |secs: u64| (1..=SCHEDULE_INTERVAL_SECS_MAX).contains(&secs);
        if !self.interval_secs.is_none_or(is_interval) {
            return Err(invalid("interval", "must be between 1 and 31622400 seconds (366 days)"));
        }
        for (field, text) in [("trace_id", &self.trace), ("parent_task_id", &self.parent_task_id)] {
            let Some(text) = text else { continue };
            if text.is_empty() || text.len() > NAME_BYTES_MAX {
                return Err(invalid(field, "must be between 1 and 200 bytes long"));
            }
            refuse_control(field, text)?;
        }
        match self.kind {
            TriggerType::Recurring if self.interval_secs.is_none() => {
                return Err(invalid("schedule", "needs an interval: the type is recurring"));
            }
            TriggerType::Scheduled if self.run_at.is_none() => {
                return Err(invalid("schedule", "needs a time to run at: the type is scheduled"));
            }
            TriggerType::Conditional if self.condition.is_none() => {
                return Err(invalid("condition", "is missing: the type is conditional"));
            }
            TriggerType::Recurring | TriggerType::Scheduled | TriggerType::Conditional => {}
        }
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }
}

fn check_times(spec: &TriggerSpec, past: &Past, now: Timestamp) -> Result<(), Rejection> {
    let last = now.plus_millis(RUN_AHEAD_MS_MAX);
    if spec.run_at.into_iter().chain(past.next_run_at).any(|at| at > last) {
        return Err(invalid("schedule", "must be within ten years from now"));
    }
    // An instant ahead of us would hold the trigger up until then.
    let ahead = [past.last_triggered_at, past.last_eval_at, past.created_at];
    if ahead.into_iter().flatten().any(|at| at > now) {
        return Err(invalid("state", "must not lie in the future"));
    }
    Ok(())
}

fn cut(text: &str) -> Box<str> {
    let text = cleaned(text);
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

fn invalid(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}
