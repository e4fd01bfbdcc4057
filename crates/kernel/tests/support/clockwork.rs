//! One schedule and its jobs, with a clock that the test sets: decides by the real rules and
//! applies what they say, as a store would.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, dead_code, reason = "a test may")]

use mainspring_kernel::calendar::Rhythm;
use mainspring_kernel::command::Claim;
use mainspring_kernel::entity::schedule::{Outcome, Schedule, ScheduleCommand, ScheduleSpec};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    Backlog, Command, Entity, EntityId, Event, Facts, Job, JobId, JobType, Receipt, Rejection,
    TenantId, Timestamp, TypeSpec, UserId, WorkerId, decide, evolve, firing,
};
use std::collections::{BTreeMap, HashMap};

/// 2026-01-05T00:00:00Z, a Monday.
pub(crate) const START: Timestamp = Timestamp(1_767_571_200_000_000);

pub(crate) const ID: EntityId = EntityId { kind: Kind::Schedule, bits: 77 };

pub(crate) struct Clockwork {
    pub(crate) now: Timestamp,
    pub(crate) entity: Option<Entity>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) keys: HashMap<Digest, JobId>,
    pub(crate) backlog: Backlog,
    pub(crate) job_type: Option<TypeSpec>,
    pub(crate) are_types_strict: bool,
    /// How often it was rung, those that asked for jobs included.
    pub(crate) rings: usize,
    next_id: u128,
}

/// So many seconds after the start.
pub(crate) fn s(seconds: i64) -> Timestamp {
    Timestamp(START.0 + seconds * 1_000_000)
}

pub(crate) fn every(every_secs: u64) -> ScheduleSpec {
    let rhythm = Rhythm::Interval { every_secs, phase_secs: 0 };
    ScheduleSpec::plain(JobType::new("mill").unwrap(), rhythm)
}

impl Clockwork {
    pub(crate) fn empty() -> Self {
        Clockwork {
            now: START,
            entity: None,
            jobs: BTreeMap::new(),
            keys: HashMap::new(),
            backlog: Backlog::UNBOUNDED,
            job_type: None,
            are_types_strict: false,
            rings: 0,
            next_id: 1,
        }
    }

    pub(crate) fn of(spec: ScheduleSpec) -> Self {
        let mut clockwork = Clockwork::empty();
        clockwork.create(spec).unwrap();
        clockwork
    }

    pub(crate) fn create(&mut self, spec: ScheduleSpec) -> Result<Receipt, Rejection> {
        let (tenant, owner) = (TenantId::new("acme").unwrap(), UserId::new("ada").unwrap());
        self.ask(ScheduleCommand::Create { id: ID, tenant, owner, spec: Box::new(spec) })
    }

    pub(crate) fn ask(&mut self, command: ScheduleCommand) -> Result<Receipt, Rejection> {
        self.run(&command.into())
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        let entity = self.entity.as_ref().unwrap();
        let Body::Schedule(schedule) = &entity.body else { panic!("no schedule: {entity:?}") };
        schedule
    }

    pub(crate) fn history(&self) -> Vec<(i64, i64, u64, &'static str, String)> {
        let line = |it: &Outcome| {
            let at = |at: Timestamp| (at.0 - START.0) / 1_000_000;
            let reason = it.reason.as_deref().unwrap_or("").to_owned();
            (at(it.at), at(it.until), it.count, it.kind.as_str(), reason)
        };
        self.schedule().history.iter().map(line).collect()
    }

    /// For which instants it has jobs, in seconds after the start, each as often as it has.
    pub(crate) fn fired(&self) -> Vec<i64> {
        let origin = |job: &Job| (firing::origin(job).unwrap().at.0 - START.0) / 1_000_000;
        let mut all: Vec<i64> = self.jobs.values().map(origin).collect();
        all.sort_unstable();
        all
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
            job_type: self.job_type.as_ref(),
            are_types_strict: self.are_types_strict,
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
        self.rings += 1;
        let ring = Command::Ring { entity: ID, at, jobs: Vec::new() };
        if let Receipt::Wanting { jobs } = self.run(&ring).unwrap() {
            let again = self.run(&Command::Ring { entity: ID, at, jobs }).unwrap();
            assert_eq!(again, Receipt::Done);
        }
        assert_ne!(self.entity.as_ref().and_then(Entity::alarm_at), Some(at), "the alarm moves");
        true
    }

    /// Goes to `to` and does what is due then, as a server that was away.
    pub(crate) fn wake_at(&mut self, to: Timestamp) {
        self.now = to.max(self.now);
        for _ in 0..100_000 {
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

    pub(crate) fn claim(&mut self, job: JobId) {
        let worker = WorkerId::new("w").unwrap();
        self.run(&Command::Claim(Claim { job, worker, lease_ms: 60_000 })).unwrap();
    }

    /// Ends a job; nobody is told.
    pub(crate) fn end(&mut self, job: JobId, well: bool) {
        use mainspring_kernel::Failure;
        use mainspring_kernel::command::{Ending, RunInternally};
        let failure = Failure { code: "BROKEN".into(), message: "no".into(), retryable: false };
        let ending = if well { Ending::Success } else { Ending::DeadLetter(failure) };
        let by = UserId::new("ada").unwrap();
        self.run(&Command::RunInternally(RunInternally { job, by, ending })).unwrap();
    }

    /// Tells of the end of a job, as the engine that committed it does.
    pub(crate) fn tell(&mut self, job: JobId) -> Result<Receipt, Rejection> {
        self.run(&Command::Settle { entity: ID, jobs: vec![job] })
    }
}
