//! The alarm of a trigger has come: it fires, or asks, or looks at what it waits for, and the alarm
//! moves on, in one commit with the run. The edges that brought a run about are taken by that very
//! commit, so none has two runs and none is without.

use super::leaf::LeafState;
use super::log::{self, Outcome};
use super::turn::Turn;
use super::{Condition, Evaluated, LastStatus, Outstanding, Trigger, TriggerType, Truth, settle};
use crate::agent::{Purpose, RunId, RunWish};
use crate::command::Submit;
use crate::decide::{Decision, Receipt};
use crate::entity::Entity;
use crate::event::Event;
use crate::facts::Facts;
use crate::firing::{self, Fired, Ties};
use crate::id::JobId;
use crate::limits::{EVALUATION_TIMEOUT_MS, LOOK_AGAIN_MS};
use crate::rejection::Rejection;
use crate::time::Timestamp;

pub(in crate::entity) fn ring(
    entity: &Entity,
    trigger: &Trigger,
    at: Timestamp,
    facts: &Facts<'_>,
) -> Decision {
    let mut turn = Turn::new(entity, trigger, facts);
    if let Some(outstanding) = trigger.outstanding {
        // How its run stands is not a matter of what it heard: a word may have been lost.
        if !facts.watched.iter().any(|(known, _)| *known == outstanding.job) {
            let jobs = vec![outstanding.job];
            return Decision { events: Vec::new(), receipt: Receipt::Wanting { jobs } };
        }
        if !settle::look(&mut turn) {
            look_later(&mut turn, outstanding);
        }
        // What is due has waited for that, and does not wait for another alarm.
        if turn.next.outstanding.is_some() || trigger.spec.kind == TriggerType::Scheduled {
            turn.reckon();
            return turn.done(Receipt::Done);
        }
    }
    match trigger.spec.kind {
        TriggerType::Recurring if turn.next.next_run_at.is_some_and(|next| next > turn.now) => {}
        TriggerType::Recurring => recur(&mut turn, at),
        TriggerType::Scheduled => {
            let fired = submit(&turn, at, Purpose::Run, &[]);
            if let Ok(fired) = fired {
                let version = entity.version + 1;
                let mut events = fired.events;
                events.push(Event::EntityRemoved { entity: entity.id, version });
                return Decision { events, receipt: Receipt::Done };
            }
            refused(&mut turn, fired.err(), None);
        }
        TriggerType::Conditional => match turn.look(&[]) {
            Some(found) => go_by(&mut turn, at, &found),
            None => turn.next.next_run_at = None,
        },
    }
    turn.done(Receipt::Done)
}

/// The run it waits for has not ended: one that takes too long is given up, and else it is looked
/// at again later, ever more seldom.
fn look_later(turn: &mut Turn<'_>, outstanding: Outstanding) {
    let stuck_at = outstanding.at.plus_millis(turn.next.spec.pace.stuck_ms);
    if stuck_at <= turn.now {
        turn.next.outstanding = None;
        turn.next.last_status = Some(LastStatus::Error);
        turn.next.last_error = Some("stuck".into());
        let found = turn.look(&[]);
        let findings = found.map_or(Vec::new(), |found| found.findings);
        let job = Some(outstanding.job);
        let line = super::Evaluation {
            at: turn.now,
            outcome: Outcome::Stuck,
            findings,
            job,
            next_at: None,
        };
        log::push(&mut turn.next.log, line);
        return;
    }
    let waited_ms = u64::try_from(turn.now.since(outstanding.at).as_millis()).unwrap_or(0);
    let look_at = turn.now.plus_millis(waited_ms.max(LOOK_AGAIN_MS)).min(stuck_at);
    turn.next.outstanding = Some(Outstanding { look_at, ..outstanding });
}

/// Fires once, however many intervals have gone by, and goes on from now.
fn recur(turn: &mut Turn<'_>, at: Timestamp) {
    let every_ms = turn.next.spec.interval_secs.unwrap_or(1).saturating_mul(1_000);
    let fired = submit(turn, at, Purpose::Run, &[]);
    turn.next.next_run_at = Some(turn.now.plus_millis(every_ms));
    match fired {
        Ok(fired) => has_fired(turn, fired, None),
        Err(rejection) => {
            turn.next.last_status = Some(LastStatus::Skipped);
            turn.next.last_error = Some(format!("refused: {}", rejection.code()).into());
        }
    }
}

/// Does what a condition comes to.
fn go_by(turn: &mut Turn<'_>, at: Timestamp, found: &Evaluated) {
    let is_cooling = turn.next.cooldown_until(turn.now).is_some();
    match (found.truth, found.asks) {
        (Truth::True, _) if !is_cooling => {
            let fired = submit(turn, at, Purpose::Run, &found.takes);
            match fired {
                Ok(fired) if fired.is_new => {
                    for taken in &found.takes {
                        turn.next.leaves[*taken] = turn.next.leaves[*taken].taken();
                    }
                    has_fired(turn, fired, Some(found));
                }
                // Another firing has that very instant: this one takes the next.
                Ok(_) => turn.next.next_run_at = Some(Timestamp(turn.now.0.max(at.0) + 1)),
                Err(rejection) => refused(turn, Some(rejection), Some(found)),
            }
        }
        (Truth::Undecided, Some((leaf, from))) if from <= turn.now => ask(turn, at, leaf, found),
        (Truth::True | Truth::False | Truth::Undecided, _) => turn.reckon(),
    }
}

/// Hands the question of a leaf to a worker.
fn ask(turn: &mut Turn<'_>, at: Timestamp, leaf: usize, found: &Evaluated) {
    match submit(turn, at, Purpose::Evaluation, &[leaf]) {
        Ok(fired) if fired.is_new => {
            turn.next.leaves[leaf] = LeafState::Llm { asked_at: Some(turn.now), answer: None };
            turn.next.last_eval_at = Some(turn.now);
            let look_at = turn.now.plus_millis(2 * u64::from(EVALUATION_TIMEOUT_MS));
            let (job, leaf) = (fired.job, u16::try_from(leaf).ok());
            turn.waits_for(Outstanding { job, at: turn.now, look_at, leaf });
            let mut line = log::line(turn.now, Outcome::Asked, found);
            line.job = Some(job);
            log::push(&mut turn.next.log, line);
            turn.events.extend(fired.events);
        }
        Ok(_) => turn.next.next_run_at = Some(Timestamp(turn.now.0.max(at.0) + 1)),
        Err(rejection) => refused(turn, Some(rejection), Some(found)),
    }
}

/// Submits the run of `at`, or the question of the one leaf in `leaves`.
fn submit(
    turn: &Turn<'_>,
    at: Timestamp,
    purpose: Purpose,
    leaves: &[usize],
) -> Result<Fired, Rejection> {
    let spec = &turn.next.spec;
    let id = RunId::Job(JobId(turn.facts.fresh_id));
    let ended = leaves.iter().find_map(|at| match &turn.next.leaves[*at] {
        LeafState::Task { held: Some(ended), .. } => Some(ended),
        LeafState::Task { held: None, .. }
        | LeafState::Changed { .. }
        | LeafState::Exists { .. }
        | LeafState::Llm { .. } => None,
    });
    let parts = spec.condition.as_ref().map_or(Vec::new(), Condition::leaves);
    let question = leaves.first().and_then(|at| parts.get(*at)).and_then(|leaf| match leaf {
        Condition::LlmEval { prompt } => Some(&**prompt),
        Condition::FileChanged { .. }
        | Condition::FileExists { .. }
        | Condition::TaskDone { .. }
        | Condition::TaskFailed { .. }
        | Condition::And(_)
        | Condition::Or(_) => None,
    });
    let prompt = match purpose {
        Purpose::Evaluation => question.unwrap_or(&spec.prompt),
        Purpose::Run | Purpose::Plan => &spec.prompt,
    };
    let trace = spec.trace.clone().or_else(|| ended.and_then(|it| it.trace.clone()));
    let parent = spec.parent_task_id.clone();
    let wish = RunWish {
        priority: Some(spec.priority),
        trace,
        parent_task_id: parent.or_else(|| ended.and_then(|it| it.parent_task_id.clone())),
        timeout_secs: spec.timeout_secs.filter(|_| purpose == Purpose::Run),
        source_trigger_id: Some(spec.name.clone()),
        triggered_at: Some(turn.now),
        ..RunWish::plain(purpose, id, prompt)
    };
    let (tenant, owner) = (&turn.entity.tenant, &turn.entity.owner);
    let wish = wish.submit(tenant, owner, None)?;
    let limit = turn.now.plus_millis(u64::from(EVALUATION_TIMEOUT_MS));
    let expires_at = (purpose == Purpose::Evaluation).then_some(limit);
    // One that is gone when it has fired is told nothing.
    let is_watched = spec.kind != TriggerType::Scheduled;
    let ties = Ties { is_watched, ..Ties::default() };
    firing::fire(turn.entity.id, at, ties, Submit { expires_at, ..wish }, turn.facts)
}

fn has_fired(turn: &mut Turn<'_>, fired: Fired, found: Option<&Evaluated>) {
    turn.next.last_triggered_at = Some(turn.now);
    turn.next.fired = turn.next.fired.saturating_add(u32::from(fired.is_new));
    let look_ms = LOOK_AGAIN_MS.min(turn.next.spec.pace.stuck_ms);
    let (job, look_at) = (fired.job, turn.now.plus_millis(look_ms));
    turn.waits_for(Outstanding { job, at: turn.now, look_at, leaf: None });
    let findings = found.map_or(Vec::new(), |found| found.findings.clone());
    let next_at = turn.next.next_run_at;
    let (at, outcome, job) = (turn.now, Outcome::Fired, Some(fired.job));
    log::push(&mut turn.next.log, super::Evaluation { at, outcome, findings, job, next_at });
    turn.events.extend(fired.events);
}

/// Its run was refused: nothing is taken, and it is tried again in a while.
fn refused(turn: &mut Turn<'_>, rejection: Option<Rejection>, found: Option<&Evaluated>) {
    let code = rejection.map_or("", |rejection| rejection.code());
    turn.next.last_status = Some(LastStatus::Skipped);
    turn.next.last_error = Some(format!("refused: {code}").into());
    let next_at = Some(turn.now.plus_millis(turn.next.spec.pace.check_ms.max(1)));
    turn.next.next_run_at = next_at;
    let findings = found.map_or(Vec::new(), |found| found.findings.clone());
    let (at, outcome) = (turn.now, Outcome::Refused(code.into()));
    let line = super::Evaluation { at, outcome, findings, job: None, next_at };
    log::push(&mut turn.next.log, line);
}
