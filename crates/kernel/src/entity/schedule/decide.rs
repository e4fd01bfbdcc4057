//! What people ask of a schedule.

use super::history::{OutcomeKind, reason};
use super::turn::Turn;
use super::{
    Account, Pause, SYSTEM, Schedule, ScheduleCommand, ScheduleSpec, Status, TaskPlan, Template,
    check,
};
use crate::command::Plan;
use crate::decide::{Decision, Receipt};
use crate::entity::{Body, Entity, EntityId, Kind};
use crate::event::Event;
use crate::facts::Facts;
use crate::job::Job;
use crate::name::{TenantId, UserId};
use crate::rejection::Rejection;
use crate::time::Timestamp;

pub(in crate::entity) fn decide(
    command: &ScheduleCommand,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    match command {
        ScheduleCommand::Create { id, tenant, owner, spec } => {
            if facts.entity.is_some() {
                return Err(Rejection::EntityExists { kind: Kind::Schedule });
            }
            create(*id, tenant, owner, spec, Cause::Asked, facts)
        }
        ScheduleCommand::Ensure { id, tenant, name, entry, spec } => {
            let template = Template { name: name.clone(), entry: *entry };
            ensure(*id, tenant, spec, template, facts)
        }
        ScheduleCommand::Update { spec, .. } => {
            refuse_plan(facts)?;
            update(spec, None, facts)
        }
        ScheduleCommand::Pause { by, note, .. } => pause(by, note.as_deref(), facts),
        ScheduleCommand::Resume { .. } => resume(facts),
        ScheduleCommand::Stop { .. } => {
            refuse_plan(facts)?;
            stop(facts)
        }
        ScheduleCommand::Remove { .. } => {
            refuse_plan(facts)?;
            let (entity, schedule) = known(facts)?;
            if schedule.template.is_some() {
                return stop(facts);
            }
            let event = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
            Ok(Decision { events: vec![event], receipt: Receipt::Done })
        }
        ScheduleCommand::Trigger { at, .. } => by_hand(*at, facts, |turn, job| {
            if turn.next.spec.rhythm.is_at(*at) {
                turn.account(*at);
            }
            turn.record(*at, OutcomeKind::Fired, Some(reason::TRIGGERED), Some(job));
        }),
        ScheduleCommand::Backfill { at, .. } => {
            let (_, schedule) = known(facts)?;
            let before = Timestamp(at.0.saturating_sub(1));
            let is_one = schedule.spec.next_after(before) == Some(*at);
            if *at > facts.now || !is_one || schedule.spec.is_excluded(*at) {
                let reason = "must be firings of the schedule that lie in the past";
                return Err(Rejection::FieldInvalid { field: "from", reason });
            }
            // What is about to fire by itself is not filled in.
            let waiting = schedule.waiting.map(|waiting| waiting.at);
            if schedule.next_at.is_some_and(|next| next <= *at) || waiting == Some(*at) {
                return Err(Rejection::NotDue);
            }
            by_hand(*at, facts, |turn, job| {
                turn.account(*at);
                turn.record(*at, OutcomeKind::Backfilled, None, Some(job));
            })
        }
    }
}

fn known<'a>(facts: &Facts<'a>) -> Result<(&'a Entity, &'a Schedule), Rejection> {
    let unknown = Rejection::EntityUnknown { kind: Kind::Schedule };
    let entity = facts.entity.ok_or(unknown.clone())?;
    let Body::Schedule(schedule) = &entity.body else { return Err(unknown) };
    Ok((entity, schedule))
}

/// The schedule of a plan is the plan's: whoever wants another one cancels the task.
fn refuse_plan(facts: &Facts<'_>) -> Result<(), Rejection> {
    match known(facts)?.1.task {
        Some(_) => Err(Rejection::ScheduleOfTask),
        None => Ok(()),
    }
}

/// One that can still do something.
fn unstopped<'a>(facts: &Facts<'a>) -> Result<(&'a Entity, &'a Schedule), Rejection> {
    let (entity, schedule) = known(facts)?;
    match schedule.status {
        Status::Active | Status::Paused(_) | Status::Ended => Ok((entity, schedule)),
        Status::Stopped => Err(conflict(schedule)),
    }
}

fn conflict(schedule: &Schedule) -> Rejection {
    Rejection::ScheduleConflict { state: schedule.state() }
}

/// Why a schedule is made.
enum Cause {
    /// Somebody asks for it.
    Asked,
    /// There is a template of it.
    Template(Template),
    /// A plan is to make tasks.
    Task(TaskPlan),
}

/// The schedule of the plan that `job` stands for.
pub(crate) fn of_plan(plan: &Plan, job: &Job, facts: &Facts<'_>) -> Result<Event, Rejection> {
    if facts.entity.is_some() {
        return Err(Rejection::EntityExists { kind: Kind::Schedule });
    }
    let alias = job.alias().ok_or(Rejection::FieldInvalid { field: "id", reason: "is missing" })?;
    let window_secs = alias.window_secs;
    let task_id = alias.key.clone();
    let task = TaskPlan { job: job.id, task_id, window_secs, gone_at: None };
    let made = create(plan.schedule, &job.tenant, &job.user, &plan.spec, Cause::Task(task), facts)?;
    Ok(made.events.into_iter().next().expect("a schedule is made by one event"))
}

fn create(
    id: EntityId,
    tenant: &TenantId,
    owner: &UserId,
    spec: &ScheduleSpec,
    cause: Cause,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    check::check(spec, facts)?;
    let next_at = Some(check::first(spec, facts.now)?);
    let namespace = match cause {
        Cause::Template(_) => SYSTEM.into(),
        Cause::Asked | Cause::Task(_) => format!("user:{owner}").into(),
    };
    let (template, task) = match cause {
        Cause::Asked => (None, None),
        Cause::Template(template) => (Some(template), None),
        Cause::Task(task) => (None, Some(task)),
    };
    let schedule = Schedule {
        spec: spec.clone(),
        namespace,
        template,
        task,
        status: Status::Active,
        next_at,
        catch_up_at: None,
        waiting: None,
        outstanding: Vec::new(),
        last_fire_at: None,
        runs: 0,
        by_hand: 0,
        skipped: 0,
        failures_in_a_row: 0,
        history: Vec::new(),
        fired: Account::default(),
        gone_at: None,
    };
    let made = Entity {
        id,
        version: 1,
        tenant: tenant.clone(),
        owner: owner.clone(),
        created_at: facts.now,
        updated_at: facts.now,
        body: Body::Schedule(Box::new(schedule)),
    };
    Ok(Decision { events: vec![Event::EntitySet(Box::new(made))], receipt: Receipt::Done })
}

fn ensure(
    id: EntityId,
    tenant: &TenantId,
    spec: &ScheduleSpec,
    template: Template,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    if facts.entity.is_none() {
        let owner = UserId::stored(SYSTEM.into());
        let made = create(id, tenant, &owner, spec, Cause::Template(template), facts)?;
        return Ok(Decision { receipt: Receipt::Ensured { is_new: true }, ..made });
    }
    let (_, schedule) = known(facts)?;
    let is_same = schedule.template.as_ref().is_some_and(|known| known.entry == template.entry);
    if is_same || schedule.status == Status::Stopped {
        return Ok(Decision { events: Vec::new(), receipt: Receipt::Ensured { is_new: false } });
    }
    let changed = update(spec, Some(template), facts)?;
    Ok(Decision { receipt: Receipt::Ensured { is_new: false }, ..changed })
}

fn update(
    spec: &ScheduleSpec,
    template: Option<Template>,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let (entity, schedule) = unstopped(facts)?;
    check::check(spec, facts)?;
    let mut turn = Turn::new(entity, schedule, facts);
    let first = check::first(spec, turn.now)?;
    turn.drop_waiting();
    turn.next.spec = spec.clone();
    if template.is_some() {
        turn.next.template = template;
    }
    turn.next.catch_up_at = None;
    if turn.next.status == Status::Ended {
        turn.next.status = Status::Active;
    }
    if turn.next.status == Status::Active {
        // What is due already keeps its turn.
        let due = schedule.next_at.filter(|next| *next <= turn.now);
        turn.stand_at(Some(due.unwrap_or(first)));
    }
    Ok(turn.done(Receipt::Done))
}

fn pause(by: &UserId, note: Option<&str>, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, schedule) = unstopped(facts)?;
    if schedule.status == Status::Ended {
        return Err(conflict(schedule));
    }
    if let Some(note) = note {
        check::note(note)?;
    }
    let mut turn = Turn::new(entity, schedule, facts);
    let pause = Pause { by: Some(by.clone()), at: facts.now, note: note.map(Into::into) };
    turn.next.status = Status::Paused(Box::new(pause));
    turn.rest();
    Ok(turn.done(Receipt::Done))
}

fn resume(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, schedule) = unstopped(facts)?;
    match schedule.status {
        Status::Paused(_) => {}
        Status::Active => return Ok(Decision { events: Vec::new(), receipt: Receipt::Done }),
        Status::Ended | Status::Stopped => return Err(conflict(schedule)),
    }
    let mut turn = Turn::new(entity, schedule, facts);
    turn.next.status = Status::Active;
    turn.next.failures_in_a_row = 0;
    let next_at = turn.next.spec.next_after(turn.now);
    turn.stand_at(next_at);
    Ok(turn.done(Receipt::Done))
}

fn stop(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, schedule) = known(facts)?;
    if schedule.status == Status::Stopped {
        return Ok(Decision { events: Vec::new(), receipt: Receipt::Done });
    }
    let mut turn = Turn::new(entity, schedule, facts);
    turn.next.status = Status::Stopped;
    turn.rest();
    Ok(turn.done(Receipt::Done))
}

/// Makes the job of `at` because somebody asks for it; jobs that have not ended do not matter.
fn by_hand(
    at: Timestamp,
    facts: &Facts<'_>,
    record: impl FnOnce(&mut Turn<'_>, crate::id::JobId),
) -> Result<Decision, Rejection> {
    let (entity, schedule) = unstopped(facts)?;
    let mut turn = Turn::new(entity, schedule, facts);
    let fired = turn.submit(at, None)?;
    if !fired.is_new {
        let state = facts.key_job.map(|job| job.state.name());
        let receipt = Receipt::Existing { job: fired.job, state };
        return Ok(Decision { events: Vec::new(), receipt });
    }
    turn.next.by_hand += 1;
    record(&mut turn, fired.job);
    Ok(turn.done(Receipt::Submitted { job: fired.job }))
}
