//! One trigger and its runs, with a clock and a world that the test sets: decides by the real rules
//! and applies what they say, as a store would.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, dead_code, reason = "a test may")]

use mainspring_kernel::command::{Complete, Ending, RunInternally};
use mainspring_kernel::entity::trigger::{
    Condition, Ended, Outcome, Pace, Past, Seen, Sight, Trigger, TriggerCommand, TriggerSpec,
    TriggerType,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    Backlog, Command, Entity, EntityId, Event, Facts, Failure, Job, JobId, Receipt, Rejection,
    TenantId, Timestamp, UserId, decide, evolve,
};
use std::collections::{BTreeMap, HashMap};

/// 2026-01-05T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_767_571_200_000_000);

pub(crate) const ID: EntityId = EntityId { kind: Kind::Trigger, bits: 77 };

pub(crate) struct Sentry {
    pub(crate) now: Timestamp,
    pub(crate) entity: Option<Entity>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) keys: HashMap<Digest, JobId>,
    pub(crate) backlog: Backlog,
    /// How often the trigger was rewritten.
    pub(crate) writes: usize,
    next_id: u128,
}

/// So many milliseconds after the start.
pub(crate) fn ms(millis: i64) -> Timestamp {
    Timestamp(START.0 + millis * 1_000)
}

pub(crate) fn changed(path: &str) -> Condition {
    Condition::FileChanged { path: path.into(), fires_on_init: false }
}

pub(crate) fn exists(path: &str) -> Condition {
    Condition::FileExists { path: path.into() }
}

pub(crate) fn done(task: &str) -> Condition {
    Condition::TaskDone { task: task.into() }
}

pub(crate) fn asked() -> Condition {
    Condition::LlmEval { prompt: "is it time?".into() }
}

pub(crate) fn files(leaf: u16, newest: Option<Timestamp>) -> Sight {
    Sight { leaf, seen: Seen::Files(newest) }
}

pub(crate) fn ended(leaf: u16, job: u128, is_done: bool) -> Sight {
    let (trace, parent) = (Some("trace-a".into()), Some("parent-a".into()));
    let ended = Ended { job: JobId(job), is_done, trace, parent_task_id: parent };
    Sight { leaf, seen: Seen::Task(Some(Box::new(ended))) }
}

pub(crate) fn on(condition: Condition) -> TriggerSpec {
    TriggerSpec { condition: Some(condition), ..plain(TriggerType::Conditional) }
}

pub(crate) fn plain(kind: TriggerType) -> TriggerSpec {
    TriggerSpec {
        name: "trigger-001".into(),
        kind,
        interval_secs: Some(60),
        run_at: Some(ms(30_000)),
        condition: None,
        cooldown_secs: 0,
        prompt: "look".into(),
        priority: 5,
        timeout_secs: None,
        trace: None,
        parent_task_id: None,
        pace: Pace { check_ms: 5_000, settle_ms: 500, stuck_ms: 7_200_000 },
        sees_tenant: false,
    }
}

impl Sentry {
    pub(crate) fn empty() -> Self {
        Sentry {
            now: START,
            entity: None,
            jobs: BTreeMap::new(),
            keys: HashMap::new(),
            backlog: Backlog::UNBOUNDED,
            writes: 0,
            next_id: 1 << 100,
        }
    }

    /// A trigger that began with what `sights` show.
    pub(crate) fn of(spec: TriggerSpec, sights: Vec<Sight>) -> Self {
        let mut sentry = Sentry::empty();
        sentry.create(spec, sights, Past::default()).unwrap();
        sentry
    }

    pub(crate) fn create(
        &mut self,
        spec: TriggerSpec,
        sights: Vec<Sight>,
        past: Past,
    ) -> Result<Receipt, Rejection> {
        let (tenant, owner) = (TenantId::new("acme").unwrap(), UserId::new("ada").unwrap());
        let (spec, past) = (Box::new(spec), Box::new(past));
        self.ask(TriggerCommand::Create { id: ID, tenant, owner, spec, sights, past })
    }

    pub(crate) fn ask(&mut self, command: TriggerCommand) -> Result<Receipt, Rejection> {
        self.run(&command.into())
    }

    pub(crate) fn see(&mut self, sights: Vec<Sight>) -> Result<Receipt, Rejection> {
        let made_at = self.entity.as_ref().unwrap().created_at;
        self.ask(TriggerCommand::Observe { id: ID, made_at, sights })
    }

    pub(crate) fn trigger(&self) -> &Trigger {
        let entity = self.entity.as_ref().unwrap();
        let Body::Trigger(trigger) = &entity.body else { panic!("no trigger: {entity:?}") };
        trigger
    }

    /// The outcomes in its log.
    pub(crate) fn log(&self) -> Vec<&'static str> {
        self.trigger().log.iter().map(|line| line.outcome.as_str()).collect()
    }

    pub(crate) fn last(&self) -> &Outcome {
        &self.trigger().log.last().unwrap().outcome
    }

    pub(crate) fn of_type(&self, job_type: &str) -> Vec<&Job> {
        self.jobs.values().filter(|job| job.job_type.as_str() == job_type).collect()
    }

    /// How many runs it has made.
    pub(crate) fn runs(&self) -> usize {
        self.of_type("agent_run").len()
    }

    /// How many questions it has asked.
    pub(crate) fn questions(&self) -> usize {
        self.of_type("agent_evaluation").len()
    }

    pub(crate) fn latest(&self) -> &Job {
        self.jobs.values().next_back().unwrap()
    }

    pub(crate) fn run(&mut self, command: &Command) -> Result<Receipt, Rejection> {
        self.next_id += 1;
        let job = command.job().and_then(|id| self.jobs.get(&id));
        let holder = command.key().and_then(|key| self.keys.get(&key)).copied();
        let watched: Vec<_> = command.watched().iter().map(|id| (*id, self.jobs.get(id))).collect();
        let facts = Facts {
            fresh_id: self.next_id,
            job,
            entity: self.entity.as_ref(),
            watched: &watched,
            are_types_strict: true,
            key_holder: holder.map(|job| KeyHolder { job, fingerprint: None, free_at: None }),
            key_job: holder.and_then(|id| self.jobs.get(&id)),
            backlog: self.backlog,
            ..Facts::at(self.now)
        };
        let decision = decide(command, &facts)?;
        for event in decision.events {
            match event {
                Event::JobSubmitted(job) => {
                    let key = job.idempotency.as_ref().unwrap().hash;
                    assert!(self.keys.insert(key, job.id).is_none(), "a key is taken twice");
                    self.jobs.insert(job.id, *job);
                }
                Event::JobMoved(event) => {
                    evolve(self.jobs.get_mut(&event.job).unwrap(), &event).unwrap();
                }
                Event::EntitySet(entity) => {
                    let was = self.entity.as_ref().map_or(0, |entity| entity.version);
                    assert_eq!(entity.version, was + 1);
                    self.writes += 1;
                    self.entity = Some(*entity);
                }
                Event::EntityRemoved { .. } => self.entity = None,
                Event::ItemOpened(_) => {}
                other => panic!("{other:?}"),
            }
        }
        Ok(decision.receipt)
    }

    /// Rings as the engine does, once; whether an alarm stood.
    pub(crate) fn ring(&mut self) -> bool {
        let Some(at) = self.entity.as_ref().and_then(Entity::alarm_at) else { return false };
        if at > self.now {
            return false;
        }
        let ring = Command::Ring { entity: ID, at, jobs: Vec::new() };
        if let Receipt::Wanting { jobs } = self.run(&ring).unwrap() {
            let again = self.run(&Command::Ring { entity: ID, at, jobs }).unwrap();
            assert_eq!(again, Receipt::Done);
        }
        assert_ne!(self.entity.as_ref().and_then(Entity::alarm_at), Some(at), "the alarm moves");
        true
    }

    /// Goes to `to` and does what is due then.
    pub(crate) fn wake_at(&mut self, to: Timestamp) {
        self.now = to.max(self.now);
        for _ in 0..1_000 {
            if !self.ring() {
                return;
            }
        }
        panic!("it rings for ever");
    }

    /// Lives until `to`, ringing on time.
    pub(crate) fn live_until(&mut self, to: Timestamp) {
        while let Some(at) = self.entity.as_ref().and_then(Entity::alarm_at).filter(|at| *at <= to)
        {
            self.now = self.now.max(at);
            self.ring();
        }
        self.now = to;
    }

    /// Ends the latest job; nobody is told.
    pub(crate) fn end(&mut self, well: bool) {
        let job = self.latest().id;
        let failure =
            Failure { code: "BROKEN".into(), message: "no paper".into(), retryable: false };
        let ending = if well { Ending::Success } else { Ending::DeadLetter(failure) };
        let by = UserId::new("ada").unwrap();
        self.run(&Command::RunInternally(RunInternally { job, by, ending })).unwrap();
    }

    /// Ends the latest job with a result; nobody is told.
    pub(crate) fn answer(&mut self, result: &str) {
        use mainspring_kernel::WorkerId;
        use mainspring_kernel::command::Claim;
        let (job, worker) = (self.latest().id, WorkerId::new("w").unwrap());
        self.run(&Command::Claim(Claim { job, worker, lease_ms: 60_000 })).unwrap();
        let token = self.jobs[&job].lease().unwrap().token();
        let result = Some(result.into());
        self.run(&Command::Complete(Complete { job, token, result })).unwrap();
    }

    /// Tells of the end of the latest job, as the engine that committed it does.
    pub(crate) fn tell(&mut self) -> Result<Receipt, Rejection> {
        let job = self.latest().id;
        self.run(&Command::Settle { entity: ID, jobs: vec![job] })
    }

    /// Ends the latest run and tells of it.
    pub(crate) fn finish(&mut self) {
        self.end(true);
        self.tell().unwrap();
    }
}
