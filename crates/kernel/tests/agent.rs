//! Agent runs: where their fields go, in which order they are handed out, and what waits for a
//! person.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::agent::{Purpose, RunId, RunWish};
use mainspring_kernel::command::{
    Claim, Complete, Ended, Ending, Fail, Release, RunInternally, Submit,
};
use mainspring_kernel::dispatch::key_of;
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::question::{Asked, Question, QuestionCommand, ResumeToken, of_job};
use mainspring_kernel::job::{Failure, LeaseToken};
use mainspring_kernel::limits::QUESTION_KEEP_MS;
use mainspring_kernel::view::agent;
use mainspring_kernel::{
    Command, Entity, Event, Facts, Job, JobId, QueueOrder, QueueSpec, Receipt, Rejection,
    StateName, TenantId, Timestamp, TypeSpec, UserId, WorkerId, decide, evolve,
};

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

fn wish(purpose: Purpose, id: &str) -> RunWish {
    RunWish::plain(purpose, RunId::Chosen(id.into()), "do \"it\"\n\u{1}")
}

fn submit(wish: &RunWish) -> Result<Submit, Rejection> {
    wish.submit(&TenantId::new("acme").unwrap(), &user("ann"), Some(60))
}

/// One job, its question, and the time.
struct World {
    now: Timestamp,
    job: Option<Job>,
    entity: Option<Entity>,
    fresh: u128,
}

impl World {
    fn with(wish: &RunWish) -> World {
        let mut world = World { now: Timestamp(1 << 50), job: None, entity: None, fresh: 0 };
        let made = world.ask(&Command::Submit(Box::new(submit(wish).unwrap()))).unwrap();
        assert!(matches!(made, Receipt::Submitted { .. }));
        world
    }

    fn ask(&mut self, command: &Command) -> Result<Receipt, Rejection> {
        self.fresh += 1;
        let watched: Vec<(JobId, Option<&Job>)> =
            command.watched().iter().map(|id| (*id, self.job.as_ref())).collect();
        let facts = Facts {
            job: command.job().and(self.job.as_ref()),
            entity: command.entity().and(self.entity.as_ref()),
            watched: &watched,
            fresh_id: 7,
            fresh_secret: self.fresh,
            ..Facts::at(self.now)
        };
        let decision = decide(command, &facts)?;
        for event in decision.events {
            if let Event::JobMoved(event) = &event {
                evolve(self.job.as_mut().unwrap(), event).unwrap();
            } else if let Event::JobSubmitted(job) = event {
                self.job = Some(*job);
            } else if let Event::EntitySet(entity) = event {
                self.entity = Some(*entity);
            } else if let Event::EntityRemoved { .. } = event {
                self.entity = None;
            } else {
                assert!(matches!(event, Event::ItemOpened(_)), "{event:?}");
            }
        }
        Ok(decision.receipt)
    }

    fn job(&self) -> &Job {
        self.job.as_ref().unwrap()
    }

    fn question(&self) -> &Question {
        let Body::Question(question) = &self.entity.as_ref().unwrap().body else { panic!() };
        question
    }

    fn claim(&mut self) -> Result<LeaseToken, Rejection> {
        let worker = WorkerId::new("w").unwrap();
        self.ask(&Command::Claim(Claim { job: JobId(7), worker, lease_ms: 60_000 }))?;
        Ok(self.job().lease().unwrap().token())
    }

    fn asks(&mut self, token: Option<LeaseToken>, asked: Asked) -> Result<Receipt, Rejection> {
        let (job, by, asked) = (JobId(7), user("ann"), Box::new(asked));
        self.ask(&QuestionCommand::Ask { job, token, by, asked }.into())
    }

    fn answers(&mut self, answer: &str) -> Result<Receipt, Rejection> {
        let (job, answer, by) = (JobId(7), answer.into(), user("bob"));
        self.ask(&QuestionCommand::Answer { job, answer, by, shown: None }.into())
    }

    fn rings(&mut self, jobs: Vec<JobId>) -> Result<Receipt, Rejection> {
        let at = self.entity.as_ref().unwrap().alarm_at().unwrap();
        self.ask(&Command::Ring { entity: of_job(JobId(7)), at, jobs })
    }
}

fn asked(default: Option<&str>) -> Asked {
    Asked {
        text: "which?".into(),
        options: vec!["a".into(), "b".into()],
        default: default.map(Into::into),
        deadline: None,
    }
}

const HOUR_MS: u64 = 3_600_000;

#[test]
fn a_wish_becomes_a_job_of_a_built_in_type() {
    let made = submit(&RunWish {
        priority: Some(7),
        parent_task_id: Some("p".into()),
        timeout_secs: Some(3),
        max_attempts: 4,
        attempts: 2,
        backoff_ms: 9,
        ..wish(Purpose::Run, "r")
    });
    let made = made.unwrap();
    assert_eq!(&*made.payload, r#"{"prompt":"do \"it\"\n\u0001","timeout":3,"attempts":2}"#);
    assert_eq!((made.max_retries, made.timeout_ms, made.priority), (Some(2), Some(3_000), Some(7)));
    assert_eq!(made.subject.as_deref(), Some("run:r"));
    let job = World::with(&wish(Purpose::Plan, "p")).job.unwrap();
    assert_eq!((job.job_type.as_str(), job.queue.as_str()), ("agent_plan", "agent"));
    assert_eq!((job.max_retries, job.priority, job.timeout_ms), (0, 5, 600_000));
    for purpose in Purpose::ALL {
        let spec = TypeSpec::built_in(&purpose.job_type()).unwrap();
        assert!(!spec.is_schedulable && spec.is_of_a_contract());
    }
    for bad in ["", " a", "a\n", &"x".repeat(161), "..", &JobId(1).to_string()] {
        assert!(submit(&wish(Purpose::Run, bad)).is_err(), "{bad:?}");
    }
}

#[test]
fn a_point_of_priority_is_worth_a_minute_and_the_queue_keeps_its_order() {
    let key = |priority: u8, waited_secs: i64| {
        let mut world =
            World::with(&RunWish { priority: Some(priority), ..wish(Purpose::Run, "r") });
        let job = world.job.take().unwrap();
        key_of(QueueOrder::Due, &job, Timestamp(world.now.0 - waited_secs * 1_000_000))
    };
    assert!(key(6, 0) < key(5, 59), "less than a minute is not enough");
    assert!(key(5, 61) < key(6, 0), "more is");
    assert!(key(10, 0) < key(0, 599));
    let spec =
        QueueSpec { order: QueueOrder::Due, ..QueueSpec::plain(mainspring_kernel::agent::queue()) };
    assert_eq!(spec.kept().order, QueueOrder::Aged);
}

#[test]
fn the_same_name_is_the_same_wish_or_a_conflict() {
    let mut world = World::with(&wish(Purpose::Run, "r"));
    let held = world.job().alias().unwrap().held_by(JobId(7));
    let ask = |world: &World, wish: &RunWish| {
        let facts = Facts {
            alias_holder: Some(held),
            alias_job: world.job.as_ref(),
            fresh_id: 8,
            ..Facts::at(world.now)
        };
        decide(&Command::Submit(Box::new(submit(wish).unwrap())), &facts).map(|it| it.receipt)
    };
    let existing = ask(&world, &RunWish { trace: Some("t".into()), ..wish(Purpose::Run, "r") });
    assert!(matches!(existing, Ok(Receipt::Existing { job: JobId(7), .. })));
    let other = RunWish { priority: Some(1), ..wish(Purpose::Run, "r") };
    assert_eq!(ask(&world, &other), Err(Rejection::IdempotencyConflict));
    assert_eq!(ask(&world, &wish(Purpose::Plan, "r")), Err(Rejection::IdempotencyConflict));
    world.now = world.now.plus_millis(1);
    assert!(ask(&world, &wish(Purpose::Run, "r")).is_ok());
}

#[test]
fn a_retry_waits_as_long_as_the_run_says_and_no_longer() {
    let mut world =
        World::with(&RunWish { max_attempts: 2, backoff_ms: 5_000, ..wish(Purpose::Run, "r") });
    let token = world.claim().unwrap();
    let failure = Failure { code: "E".into(), message: "no".into(), retryable: true };
    let (job, retry_delay_ms, result, snooze_ms) = (JobId(7), None, None, None);
    let fail = Fail { job, token, failure, retry_delay_ms, result, snooze_ms };
    world.ask(&Command::Fail(fail)).unwrap();
    assert_eq!(world.job().due_at(), Some(world.now.plus_millis(5_000)));
    assert_eq!(agent::attempts(world.job()), 2);
}

#[test]
fn a_question_parks_the_job_and_its_answer_makes_it_due() {
    let mut world = World::with(&wish(Purpose::Plan, "p"));
    let token = world.claim().unwrap();
    world.asks(Some(token), asked(Some("a"))).unwrap();
    assert_eq!(world.job().state.name(), StateName::Retrying);
    assert_eq!(world.claim(), Err(Rejection::NotDue), "it is not due before the answer");
    assert!(world.question().is_open());
    // The repeat of the report changes nothing; another report under the lease is refused.
    let before = (world.job.clone(), world.entity.clone());
    world.asks(Some(token), asked(Some("a"))).unwrap();
    assert_eq!(before, (world.job.clone(), world.entity.clone()));
    let complete = Complete { job: JobId(7), token, result: None };
    assert_eq!(world.ask(&Command::Complete(complete)), Err(Rejection::ReportConflict));
    assert!(matches!(world.answers("c"), Err(Rejection::FieldInvalid { field: "answer", .. })));
    world.now = world.now.plus_millis(HOUR_MS - 1);
    world.answers("b").unwrap();
    assert_eq!(world.question().answer(), Some("b"));
    assert_eq!(world.answers("a"), Err(Rejection::QuestionConflict { state: "answered" }));
    assert_eq!(world.job().due_at(), Some(world.now));
    assert_eq!(world.job().retry_count, 0, "no try was used up");
    // It asks again: the next version of the same question.
    let token = world.claim().unwrap();
    world.asks(Some(token), asked(None)).unwrap();
    assert_eq!((world.question().count, world.question().answer()), (2, None));
    assert_eq!(world.entity.as_ref().unwrap().version, 3);
}

#[test]
fn at_the_deadline_the_default_counts_or_the_job_ends() {
    for (default, state, shown) in
        [(Some("a"), "defaulted", agent::State::Queue), (None, "expired", agent::State::Failed)]
    {
        let mut world = World::with(&wish(Purpose::Plan, "p"));
        world.asks(None, asked(default)).unwrap();
        assert_eq!(world.rings(vec![JobId(7)]), Err(Rejection::NotDue), "not before");
        world.now = world.now.plus_millis(HOUR_MS);
        assert_eq!(world.answers("a"), Err(Rejection::QuestionConflict { state: "open" }), "late");
        assert_eq!(world.rings(Vec::new()), Ok(Receipt::Wanting { jobs: vec![JobId(7)] }));
        world.rings(vec![JobId(7)]).unwrap();
        assert_eq!((world.question().state(), agent::state(world.job())), (state, shown));
        assert_eq!(world.question().answer(), default);
        // It is kept while its job may be handed out, and looked at now and then.
        for is_over in [state == "expired", true] {
            world.now = world.now.plus_millis(QUESTION_KEEP_MS);
            assert_eq!(world.rings(Vec::new()), Ok(Receipt::Wanting { jobs: vec![JobId(7)] }));
            world.rings(vec![JobId(7)]).unwrap();
            assert_eq!(world.entity.is_none(), is_over, "{state}");
            if is_over {
                break;
            }
            assert_eq!(world.question().answer(), default);
            let cancel = Command::Cancel { job: JobId(7), by: user("ann"), reason: None };
            world.ask(&cancel).unwrap();
        }
    }
}

#[test]
fn a_question_of_a_job_that_ended_is_withdrawn() {
    let mut world = World::with(&wish(Purpose::Plan, "p"));
    world.asks(None, asked(Some("a"))).unwrap();
    let cancel = Command::Cancel { job: JobId(7), by: user("ann"), reason: None };
    world.ask(&cancel).unwrap();
    assert_eq!(world.answers("a"), Err(Rejection::QuestionConflict { state: "open" }));
    world.now = world.now.plus_millis(HOUR_MS);
    world.rings(vec![JobId(7)]).unwrap();
    assert_eq!(
        (world.question().state(), world.job().state.name()),
        ("withdrawn", StateName::Cancelled)
    );
}

#[test]
fn without_a_lease_only_a_job_that_nobody_holds_is_reported_on() {
    let told = |ended| {
        let ending = Ending::Told(ended);
        Command::RunInternally(RunInternally { job: JobId(7), by: user("ann"), ending })
    };
    let well = told(Ended::Well { result: Some("1".into()) });
    let mut world = World::with(&wish(Purpose::Plan, "p"));
    let token = world.claim().unwrap();
    assert_eq!(world.ask(&well), Err(Rejection::LeaseLost));
    assert_eq!(world.asks(None, asked(None)), Err(Rejection::LeaseLost));
    world.ask(&Command::Release(Release { job: JobId(7), token, reason: None })).unwrap();
    world.asks(None, asked(None)).unwrap();
    assert_eq!(world.ask(&well), Err(Rejection::LeaseLost), "a person is asked first");
    assert_eq!(world.asks(None, asked(None)), Err(Rejection::LeaseLost), "one at a time");
    world.answers("a").unwrap();
    world.ask(&well).unwrap();
    assert_eq!(world.job().result().map(|result| &**result), Some("1"));
    assert!(world.ask(&well).is_err(), "once");
}

#[test]
fn what_ended_elsewhere_is_kept_and_never_due() {
    let failure = Failure { code: "RUN_KILLED".into(), message: "gone".into(), retryable: true };
    for (ended, state) in [
        (Ended::Well { result: Some("1".into()) }, agent::State::Done),
        (Ended::Badly { failure, result: Some("2".into()) }, agent::State::Failed),
    ] {
        let past = mainspring_kernel::agent::Past {
            started_at: None,
            completed_at: Some(Timestamp(5)),
            duration_ms: Some(6),
            ended,
        };
        let wish = RunWish { past: Some(Box::new(past)), ..wish(Purpose::Run, "r") };
        let mut world = World::with(&wish);
        assert_eq!(agent::state(world.job()), state);
        assert!(world.job().result().is_some() && world.job().due_at().is_none());
        assert!(world.claim().is_err());
        assert!(world.job().payload.contains("\"durationMs\":6"), "{}", world.job().payload);
    }
}

#[test]
fn a_resume_token_counts_once_for_its_question() {
    let mut world = World::with(&wish(Purpose::Plan, "p"));
    let shows = |world: &mut World, shown: ResumeToken, answer: &str| {
        let (job, answer, by) = (JobId(7), answer.into(), user("bob"));
        world.ask(&QuestionCommand::Answer { job, answer, by, shown: Some(shown) }.into())
    };
    world.asks(None, asked(None)).unwrap();
    let token = world.question().resume_token().unwrap();
    assert_eq!(token.to_string().parse(), Ok(token));
    for text in ["", "rsm_", "rsm_1_1_1", &format!("{token} "), &token.to_string().to_uppercase()] {
        assert_eq!(text.parse::<ResumeToken>(), Err(()), "{text}");
    }
    for wrong in [
        ResumeToken { secret: token.secret ^ 1, ..token },
        ResumeToken { count: token.count + 1, ..token },
        ResumeToken { job: JobId(8), ..token },
    ] {
        assert_eq!(shows(&mut world, wrong, "a"), Err(Rejection::ResumeInvalid));
    }
    assert!(matches!(shows(&mut world, token, "c"), Err(Rejection::FieldInvalid { .. })));
    shows(&mut world, token, "a").unwrap();
    assert_eq!(world.question().resume_token(), None);
    assert_eq!(shows(&mut world, token, "a"), Err(Rejection::ResumeInvalid), "used");
    // Late, it counts for nothing, though nobody has noticed yet.
    let mut world = World::with(&wish(Purpose::Plan, "p"));
    world.asks(None, asked(None)).unwrap();
    let token = world.question().resume_token().unwrap();
    world.now = world.now.plus_millis(HOUR_MS);
    assert_eq!(shows(&mut world, token, "a"), Err(Rejection::ResumeInvalid));
}
