//! Plans of the task contract: jobs that are never due, and the schedules that fire for them.

use crate::clockwork::{Clockwork, ID, START, every, s};
use mainspring_kernel::command::{Claim, Ending, Plan, RunInternally, Submit};
use mainspring_kernel::entity::schedule::{ScheduleCommand, Status};
use mainspring_kernel::registry::TASK;
use mainspring_kernel::view::{jobs, tasks};
use mainspring_kernel::{
    Command, JobId, JobType, Receipt, Rejection, StateName, TenantId, Timestamp, UserId, WorkerId,
    firing, idempotency,
};

fn user() -> UserId {
    UserId::new("ada").unwrap()
}

/// A plan that fires every ten seconds, and the job that stands for it.
fn planned() -> (Clockwork, JobId) {
    let mut it = Clockwork::empty();
    it.are_types_strict = true;
    let tenant = TenantId::new("acme").unwrap();
    let name = |id| Box::new(idempotency::alias(&tenant, "task", id, Some(60)));
    let mut spec = every(10);
    spec.job_type = JobType::new(TASK).unwrap();
    let wish = Submit {
        idempotency: Some(name("key")),
        alias: Some(name("beat")),
        plan: Some(Box::new(Plan { schedule: ID, spec: Box::new(spec) })),
        ..Submit::plain(tenant.clone(), user(), JobType::new(TASK).unwrap())
    };
    let made = it.run(&Command::Submit(Box::new(wish))).unwrap();
    let Receipt::Submitted { job } = made else { panic!("{made:?}") };
    (it, job)
}

fn cancel(it: &mut Clockwork, job: JobId) {
    it.run(&Command::Cancel { job, by: user(), reason: None }).unwrap();
}

#[test]
fn a_plan_fires_tasks_that_go_by_its_name_and_their_instants() {
    let (mut it, plan) = planned();
    assert_eq!(it.jobs[&plan].plan(), Some(ID));
    assert_eq!(tasks::state(&it.jobs[&plan], s(1_000_000_000)), tasks::State::Pending);
    it.live_until(s(25));
    assert_eq!(it.fired(), [10, 20]);
    let job = it.latest();
    let origin = firing::origin(job).unwrap();
    assert_eq!((origin.entity, origin.at, origin.is_task), (ID, s(20), true));
    assert!(!origin.is_watched && job.plan().is_none() && job.alias().is_none());
    let label = |name| {
        let labels = &job.extras.as_ref().unwrap().labels;
        labels.iter().find(|(known, _)| &**known == name).map(|(_, value)| value.to_string())
    };
    assert_eq!(label("task_id").unwrap(), "beat@2026-01-05T00:00:20.000000Z");
    assert_eq!(label("schedule_id").unwrap(), ID.to_string());
    assert_eq!(job.idempotency.as_ref().unwrap().window_secs, Some(60), "as long as its name");
}

#[test]
fn a_plan_ends_with_its_job_whether_or_not_that_was_told() {
    for is_told in [true, false] {
        let (mut it, plan) = planned();
        it.live_until(s(12));
        cancel(&mut it, plan);
        if is_told {
            it.tell(plan).unwrap();
            assert_eq!(it.schedule().status, Status::Stopped);
            assert_eq!(it.tell(plan), Err(Rejection::NotDue), "once is enough");
        }
        it.wake_at(s(60));
        assert_eq!((it.fired(), &it.schedule().status), (vec![10], &Status::Stopped));
        assert_eq!((it.schedule().next_at, it.schedule().next_fire_at()), (None, None));
        // What nobody can ask for any more is not kept.
        let gone_at = it.schedule().alarm_at().unwrap();
        assert_eq!(gone_at, if is_told { s(72) } else { s(120) });
        it.live_until(Timestamp(gone_at.0 - 1));
        assert!(it.entity.is_some());
        it.now = gone_at;
        assert!(it.entity.as_ref().and_then(|entity| entity.alarm_at()) == Some(gone_at));
        let ring = Command::Ring { entity: ID, at: gone_at, jobs: Vec::new() };
        assert_eq!(it.run(&ring), Ok(Receipt::Done));
        assert!(it.entity.is_none());
    }
}

#[test]
fn a_plan_whose_job_is_not_kept_any_more_has_ended() {
    let (mut it, plan) = planned();
    it.jobs.remove(&plan);
    it.wake_at(s(30));
    assert_eq!((it.fired(), &it.schedule().status), (vec![], &Status::Stopped));
}

#[test]
fn a_plan_is_not_run_and_its_schedule_is_not_taken_from_it() {
    let (mut it, plan) = planned();
    let before = (it.jobs.clone(), it.entity.clone());
    it.now = Timestamp(START.0 + 1);
    let native = |to| Command::Transition { job: plan, to, by: user() };
    let shown = Command::MoveShown { job: plan, to: jobs::State::Running, by: user() };
    let run = RunInternally { job: plan, by: user(), ending: Ending::Success };
    let worker = WorkerId::new("w").unwrap();
    let illegal = Rejection::IllegalMove { from: StateName::Queued, to: StateName::Running };
    for (command, no) in [
        (native(StateName::Running), illegal.clone()),
        (shown, illegal.clone()),
        (Command::RunInternally(run), illegal),
        (Command::Claim(Claim { job: plan, worker, lease_ms: 1_000 }), Rejection::NotDue),
        (ScheduleCommand::Stop { id: ID }.into(), Rejection::ScheduleOfTask),
        (ScheduleCommand::Remove { id: ID }.into(), Rejection::ScheduleOfTask),
        (
            ScheduleCommand::Update { id: ID, spec: Box::new(every(1)) }.into(),
            Rejection::ScheduleOfTask,
        ),
    ] {
        assert_eq!(it.run(&command), Err(no), "{command:?}");
    }
    for to in tasks::State::ALL.iter().copied().filter(|to| *to != tasks::State::Cancelled) {
        let moved = it.run(&Command::MoveTask { job: plan, to, by: user() });
        let from = tasks::State::Pending;
        assert_eq!(moved, Err(Rejection::IllegalTaskMove { from, to }));
    }
    assert_eq!((it.jobs.clone(), it.entity.clone()), before, "nothing has changed");
    it.run(&Command::MoveTask { job: plan, to: tasks::State::Cancelled, by: user() }).unwrap();
    assert_eq!(it.jobs[&plan].state.name(), StateName::Cancelled);
}

#[test]
fn a_plan_needs_a_name_and_a_fresh_schedule() {
    let (mut it, _) = planned();
    let tenant = TenantId::new("acme").unwrap();
    let plan = || Some(Box::new(Plan { schedule: ID, spec: Box::new(every(10)) }));
    let plain = Submit::plain(tenant.clone(), user(), JobType::new(TASK).unwrap());
    let named = Some(Box::new(idempotency::alias(&tenant, "task", "other", Some(60))));
    let wish = Submit { plan: plan(), alias: named, ..plain.clone() };
    let refused = it.run(&Command::Submit(Box::new(wish)));
    assert!(matches!(refused, Err(Rejection::EntityExists { .. })), "{refused:?}");
    let mut empty = Clockwork::empty();
    let refused = empty.run(&Command::Submit(Box::new(Submit { plan: plan(), ..plain })));
    assert!(matches!(refused, Err(Rejection::FieldInvalid { field: "id", .. })), "{refused:?}");
    assert!(empty.jobs.is_empty() && empty.entity.is_none());
}
