//! A small world that drives the kernel with random acts: the jobs, items and histories that
//! decisions leave behind, and nothing else. Shared by the property tests.

#![allow(dead_code, reason = "each test crate uses its own part of the world")]

use mainspring_kernel::command::{
    Claim, CommitEffect, Complete, Ending, Fail, Heartbeat, Release, RunInternally, Submit,
};
use mainspring_kernel::event::{Change, JobEvent};
use mainspring_kernel::evolve::{keep_effect, renew};
use mainspring_kernel::job::LeaseToken;
use mainspring_kernel::view::{jobs, tasks};
use mainspring_kernel::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One thing that is tried.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Submit { ahead_ms: Option<u64>, max_retries: u16, timeout_ms: u32, expires_ms: Option<u64> },
    Claim { lease_ms: u32 },
    Complete { by: Holder, result: Option<&'static str> },
    Fail { by: Holder, code: &'static str, retryable: bool, delay_ms: Option<u64> },
    Release { by: Holder },
    Heartbeat { by: Holder, lease_ms: u32 },
    Effect { by: Holder, name: &'static str },
    Cancel,
    Reap,
    Extend { ms: u64 },
    Transition { to: StateName },
    MoveShown { to: jobs::State },
    MoveTask { to: tasks::State },
    Run { ending: &'static str },
    Requeue { key: Option<&'static str> },
    Propose { by: &'static str, reason: &'static str },
    Approve { by: &'static str },
    Reject,
    Review { one: &'static str, two: &'static str },
    BreakGlass,
    Wait { ms: u64 },
    ClockBack { ms: u64 },
}

/// Whose lease token is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder {
    Newest,
    Earlier(usize),
    Nobody,
}

fn holder() -> impl Strategy<Value = Holder> {
    prop_oneof![
        8 => Just(Holder::Newest),
        2 => (0..4usize).prop_map(Holder::Earlier),
        1 => Just(Holder::Nobody),
    ]
}

fn report() -> impl Strategy<Value = Act> {
    let code = prop::sample::select(&["E_ONE", "E_TWO", ""][..]);
    let delay = prop::option::weighted(0.3, 0..5_000u64);
    prop_oneof![
        3 => (holder(), prop::option::of(prop::sample::select(&["1", "2"][..])))
            .prop_map(|(by, result)| Act::Complete { by, result }),
        6 => (holder(), code, prop::bool::weighted(0.8), delay).prop_map(
            |(by, code, retryable, delay_ms)| Act::Fail { by, code, retryable, delay_ms }
        ),
        2 => holder().prop_map(|by| Act::Release { by }),
        2 => (holder(), 0..200_000u32)
            .prop_map(|(by, lease_ms)| Act::Heartbeat { by, lease_ms }),
        1 => (holder(), prop::sample::select(&["x", "y", ""][..]))
            .prop_map(|(by, name)| Act::Effect { by, name }),
    ]
}

fn submission() -> impl Strategy<Value = Act> {
    (
        prop::option::of(0..20_000u64),
        0..4u16,
        prop::sample::select(&[1u32, 2_000, 100_000][..]),
        prop::option::weighted(0.3, 1..40_000u64),
    )
        .prop_map(|(ahead_ms, max_retries, timeout_ms, expires_ms)| Act::Submit {
            ahead_ms,
            max_retries,
            timeout_ms,
            expires_ms,
        })
}

fn by_hand() -> impl Strategy<Value = Act> {
    let person = || prop::sample::select(&["ann", "bob", " bob ", ""][..]);
    prop_oneof![
        4 => prop::sample::select(&StateName::ALL[..]).prop_map(|to| Act::Transition { to }),
        2 => prop::sample::select(jobs::State::ALL).prop_map(|to| Act::MoveShown { to }),
        4 => prop::sample::select(tasks::State::ALL).prop_map(|to| Act::MoveTask { to }),
        2 => prop::sample::select(&["success", "retry", "fatal", "dlq"][..])
            .prop_map(|ending| Act::Run { ending }),
        2 => prop::option::of(prop::sample::select(&["k", "l"][..]))
            .prop_map(|key| Act::Requeue { key }),
        1 => (prop::sample::select(&["ann", "bob"][..]), prop::sample::select(&["why", " "][..]))
            .prop_map(|(by, reason)| Act::Propose { by, reason }),
        1 => prop::sample::select(&["ann", "bob"][..]).prop_map(|by| Act::Approve { by }),
        1 => Just(Act::Reject),
        1 => (person(), person()).prop_map(|(one, two)| Act::Review { one, two }),
        1 => Just(Act::BreakGlass),
    ]
}

/// Any act, with those that carry a job forward more often.
pub(crate) fn act() -> impl Strategy<Value = Act> {
    let ms = prop::sample::select(&[1u64, 100, 2_000, 31_000, 200_000][..]);
    prop_oneof![
        1 => submission(),
        6 => (0..200_000u32).prop_map(|lease_ms| Act::Claim { lease_ms }),
        7 => report(),
        1 => Just(Act::Cancel),
        3 => Just(Act::Reap),
        1 => (0..9_000u64).prop_map(|ms| Act::Extend { ms }),
        2 => by_hand(),
        5 => ms.prop_map(|ms| Act::Wait { ms }),
        1 => (0..5_000u64).prop_map(|ms| Act::ClockBack { ms }),
    ]
}

/// A history: a submission and what follows, with the number of the job that each act is for.
pub(crate) fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let first = submission().prop_map(|act| (0, act));
    let rest = prop::collection::vec((prop::sample::select(&[0, 0, 0, 1, 2][..]), act()), 1..60);
    (first, rest).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

/// One line of a job's history with the job as it was then.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) change: Option<Change>,
    pub(crate) transition: Transition,
    pub(crate) job: Job,
}

/// What one act came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) command: Command,
    pub(crate) before: Option<Job>,
    pub(crate) answer: Result<Decision, Rejection>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) items: BTreeMap<DlqId, DlqItem>,
    pub(crate) histories: BTreeMap<JobId, Vec<Line>>,
    pub(crate) events: Vec<Event>,
    tokens: BTreeMap<JobId, Vec<LeaseToken>>,
    /// Access tokens, by id: who there is.
    pub(crate) people: Vec<Token>,
    /// Over which the clock was set forward.
    pub(crate) jumps: Vec<shared_time::Jump>,
    pub(crate) silences: Vec<shared_time::Silence>,
    fresh: u128,
}

impl Default for World {
    fn default() -> Self {
        World {
            now: Timestamp::from_millis(1_000_000),
            jobs: BTreeMap::new(),
            items: BTreeMap::new(),
            histories: BTreeMap::new(),
            events: Vec::new(),
            tokens: BTreeMap::new(),
            people: ["ann", "bob", "eve"].into_iter().zip(1..).map(holder_of).collect(),
            jumps: Vec::new(),
            silences: Vec::new(),
            fresh: 0,
        }
    }
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// A token that root gave to `name` long ago.
pub(crate) fn holder_of((name, id): (&str, u128)) -> Token {
    Token {
        id: TokenId(id),
        digest: [0; 32],
        tenant: TenantId::new("acme").unwrap(),
        user: user(name),
        roles: Roles::of(&[Role::Approver]),
        issued_at: Timestamp::EPOCH,
        issued_by: user("root"),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}

pub(crate) fn principal(name: &str) -> Principal {
    let id = ["ann", "bob", "eve"].iter().position(|known| *known == name).map_or(99, |at| at + 1);
    holder_of((name, id as u128)).principal()
}

pub(crate) fn wish() -> Submit {
    let (tenant, job_type) = (TenantId::new("acme").unwrap(), JobType::new("mail").unwrap());
    Submit::plain(tenant, user("ann"), job_type)
}

impl World {
    /// Tries `act` on the job of that number; `None` if the act only moves the clock.
    pub(crate) fn act(&mut self, number: usize, act: &Act) -> Option<Outcome> {
        match act {
            Act::Wait { ms } => self.now = self.now.plus_millis(*ms),
            Act::ClockBack { ms } => self.now = Timestamp(self.now.0 - *ms as i64 * 1_000),
            _ => return Some(self.ask(self.command(number, act))),
        }
        None
    }

    /// Decides `command` and applies what it decided.
    pub(crate) fn ask(&mut self, command: Command) -> Outcome {
        self.fresh += 1;
        let before = command.job().and_then(|id| self.jobs.get(&id)).cloned();
        let people: Vec<&Token> = self.people.iter().collect();
        let facts = Facts {
            fresh_id: self.fresh,
            fresh_secret: self.fresh << 64,
            job: before.as_ref(),
            item: command.item().and_then(|id| self.items.get(&id)),
            jumps: &self.jumps,
            silences: &self.silences,
            tokens: &people,
            ..Facts::at(self.now)
        };
        let answer = decide(&command, &facts);
        if let Ok(decision) = &answer {
            decision.events.iter().for_each(|event| self.apply(event));
            self.events.extend(decision.events.iter().cloned());
        }
        Outcome { command, before, answer }
    }

    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::JobSubmitted(job) => {
                let transition = Transition::submitted(job);
                let line = Line { change: None, transition, job: (**job).clone() };
                self.histories.insert(job.id, vec![line]);
                assert!(self.jobs.insert(job.id, (**job).clone()).is_none(), "ids are fresh");
            }
            Event::JobMoved(moved) => self.moved(moved),
            Event::LeaseRenewed { job, fence, expires_at, progress_pct, note, settled } => {
                let job = self.jobs.get_mut(job).unwrap();
                let said = (*progress_pct, note.as_deref());
                renew(job, *fence, *expires_at, said, *settled).unwrap();
            }
            Event::EffectCommitted { job, effect } => {
                keep_effect(self.jobs.get_mut(job).unwrap(), effect).unwrap();
            }
            Event::ItemOpened(item) => {
                assert!(self.items.insert(item.id, (**item).clone()).is_none(), "one item a job");
            }
            Event::ItemChanged { item, version, at, state } => {
                let item = self.items.get_mut(item).unwrap();
                assert_eq!(*version, item.version + 1);
                assert!(*at >= item.updated_at);
                item.change(*version, *at, (**state).clone());
            }
            Event::EntitySet(_)
            | Event::EntityRemoved { .. }
            | Event::TypeSet(_)
            | Event::QueueSet(_)
            | Event::TokenIssued(_)
            | Event::TokenRevoked { .. } => {}
        }
    }

    fn moved(&mut self, moved: &JobEvent) {
        let job = self.jobs.get_mut(&moved.job).unwrap();
        let transition = evolve(job, moved).unwrap();
        if let Some(lease) = job.lease() {
            self.tokens.entry(job.id).or_default().push(lease.token());
        }
        let change = Some(moved.change.clone());
        let line = Line { change, transition, job: job.clone() };
        self.histories.get_mut(&moved.job).unwrap().push(line);
    }

    fn token(&self, job: JobId, by: Holder) -> LeaseToken {
        let all = self.tokens.get(&job).map_or(&[][..], Vec::as_slice);
        let found = match by {
            Holder::Newest => all.last(),
            Holder::Earlier(back) => all.iter().rev().nth(back + 1),
            Holder::Nobody => None,
        };
        found.copied().unwrap_or(LeaseToken { fence: 1, secret: 7 })
    }

    fn command(&self, number: usize, act: &Act) -> Command {
        let job = self.jobs.keys().nth(number).copied().unwrap_or(JobId(u128::MAX));
        let (item, by) = (job.dlq(), user("ann"));
        let failure = |code: &str, retryable| Failure {
            code: code.into(),
            message: "went wrong".into(),
            retryable,
        };
        match act {
            Act::Submit { ahead_ms, max_retries, timeout_ms, expires_ms } => {
                let starts = self.now.plus_millis(ahead_ms.unwrap_or(0));
                Command::Submit(Box::new(Submit {
                    run_at: ahead_ms.map(|_| starts),
                    max_retries: Some(*max_retries),
                    timeout_ms: Some(*timeout_ms),
                    expires_at: expires_ms.map(|ms| starts.plus_millis(ms)),
                    ..wish()
                }))
            }
            Act::Claim { lease_ms } => {
                let worker = WorkerId::new("w").unwrap();
                Command::Claim(Claim { job, worker, lease_ms: *lease_ms })
            }
            Act::Complete { by, result } => {
                let result = result.map(Into::into);
                Command::Complete(Complete { job, token: self.token(job, *by), result })
            }
            Act::Fail { by, code, retryable, delay_ms } => Command::Fail(Fail {
                job,
                token: self.token(job, *by),
                failure: failure(code, *retryable),
                retry_delay_ms: *delay_ms,
                result: None,
                snooze_ms: None,
            }),
            Act::Release { by } => {
                Command::Release(Release { job, token: self.token(job, *by), reason: None })
            }
            Act::Heartbeat { by, lease_ms } => {
                let (token, progress_pct) = (self.token(job, *by), Some(50));
                let (lease_ms, note) = (*lease_ms, None);
                Command::Heartbeat(Heartbeat { job, token, lease_ms, progress_pct, note })
            }
            Act::Effect { by, name } => Command::CommitEffect(CommitEffect {
                job,
                token: self.token(job, *by),
                name: (*name).into(),
                value: format!("{}", self.fresh).into(),
            }),
            Act::Cancel => Command::Cancel { job, by, reason: None },
            Act::Reap => Command::Reap { job },
            Act::Extend { ms } => Command::ExtendLease { job, until: self.now.plus_millis(*ms) },
            Act::Transition { to } => Command::Transition { job, to: *to, by },
            Act::MoveShown { to } => Command::MoveShown { job, to: *to, by },
            Act::MoveTask { to } => Command::MoveTask { job, to: *to, by },
            Act::Run { ending } => {
                let ending = match *ending {
                    "success" => Ending::Success,
                    "dlq" => Ending::DeadLetter(failure("FORCED", true)),
                    kind => Ending::Failure(failure("FORCED", kind == "retry")),
                };
                Command::RunInternally(RunInternally { job, by, ending })
            }
            Act::Requeue { key } => Command::RequeueItem { item, by, key: key.map(Into::into) },
            Act::Propose { by, reason } => {
                let by = Box::new(principal(by));
                Command::RequestDiscard { item, by, reason: (*reason).into() }
            }
            Act::Approve { by } => {
                let version = self.items.get(&item).map_or(0, |item| item.version);
                Command::ApproveDiscard { item, by: Box::new(principal(by)), version }
            }
            Act::Reject => Command::RejectDiscard { item, by },
            Act::BreakGlass => {
                let by = Box::new(principal("ann"));
                Command::BreakGlass { item, by, reason: "now".into() }
            }
            Act::Review { one, two } => Command::DiscardReviewed {
                item,
                by: Box::new(principal("replay")),
                reason: "why".into(),
                reviewer: (*one).into(),
                reviewer_2: (*two).into(),
            },
            Act::Wait { .. } | Act::ClockBack { .. } => unreachable!("the clock is not a command"),
        }
    }
}
