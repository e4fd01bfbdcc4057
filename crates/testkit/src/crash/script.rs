//! What is committed in a crash campaign: a little of everything the kernel can decide, chosen by
//! the seed from what exists by then.

use crate::drive::{self, Done};
use crate::rng::Rng;
use mainspring_kernel::command::{CommitEffect, Complete, Fail, Heartbeat, Release};
use mainspring_kernel::job::ProgressNote;
use mainspring_kernel::registry::{ConcurrencyScope, QueueOrder};
use mainspring_kernel::{
    Command, EntityId, Event, Failure, Job, JobId, QueueSpec, Receipt, Role, Roles, StateName,
    Timestamp, Token, TypeSpec,
};
use mainspring_store::conformance::any_entity_command;
use std::collections::BTreeMap;

/// One step of a campaign.
pub(super) enum Step {
    /// Commands, then a pull.
    Commit { commands: Vec<Command>, pull: usize },
    /// Sync what was committed.
    Flush,
    /// The keeper's turn.
    Tidy,
    /// A snapshot.
    Snapshot,
    /// A snapshot with commits in between.
    FuzzySnapshot,
    /// Compare the live store with the model.
    Compare,
}

pub(super) struct Script {
    pub(super) rng: Rng,
    pub(super) now: Timestamp,
    pub(super) fresh: u128,
    /// Keys held for ever, and what their first submission was answered.
    pub(super) keys: BTreeMap<String, Receipt>,
    held: Vec<Job>,
    known: Vec<JobId>,
    items: Vec<JobId>,
    /// Alarms that were set, some of which stand no more.
    alarms: BTreeMap<EntityId, Timestamp>,
    /// Entities that were rung and want to see jobs first.
    wanting: Vec<Command>,
    /// How often an alarm was seen to.
    pub(super) rung: u64,
    number: u64,
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        Script {
            rng: Rng::new(seed, 1),
            now: drive::BEGINNING,
            fresh: 0,
            keys: BTreeMap::new(),
            held: Vec::new(),
            known: Vec::new(),
            items: Vec::new(),
            alarms: BTreeMap::new(),
            wanting: Vec::new(),
            rung: 0,
            number: 0,
        }
    }

    pub(super) fn step(&mut self, nth: usize) -> Step {
        self.now = self.now.plus_millis(self.rng.below(4_000));
        if nth % 30 == 29 {
            return Step::Compare;
        }
        match self.rng.below(100) {
            0..55 => self.commit_step(),
            55..83 => Step::Flush,
            83..90 => Step::Tidy,
            90..94 => Step::Snapshot,
            _ => Step::FuzzySnapshot,
        }
    }

    pub(super) fn commit_step(&mut self) -> Step {
        let count = self.rng.within(1, 4);
        let commands = (0..count).map(|_| self.command()).collect();
        Step::Commit { commands, pull: self.rng.below(4) as usize }
    }

    /// Notes what a batch made known.
    pub(super) fn learn(&mut self, commands: &[Command], done: &Done) {
        for (command, outcome) in commands.iter().zip(&done.outcomes) {
            if let (Command::Submit(wish), Ok(receipt @ Receipt::Submitted { job })) =
                (command, outcome)
            {
                self.known.push(*job);
                if let Some(key) = wish.idempotency.as_ref().filter(|k| k.window_secs.is_none()) {
                    self.keys.insert(key.key.to_string(), receipt.clone());
                }
            }
        }
        for (command, outcome) in commands.iter().zip(&done.outcomes) {
            let (Command::Ring { entity, at, .. }, Ok(receipt)) = (command, outcome) else {
                continue;
            };
            match receipt {
                Receipt::Wanting { jobs } => {
                    let (entity, at, jobs) = (*entity, *at, jobs.clone());
                    self.wanting.push(Command::Ring { entity, at, jobs });
                }
                _ => self.rung += 1,
            }
        }
        for event in &done.events {
            match event {
                Event::ItemOpened(item) => self.items.push(item.id.job()),
                Event::EntitySet(entity) => {
                    self.alarms.extend(entity.alarm_at().map(|at| (entity.id, at)));
                }
                _ => {}
            }
        }
        self.held.extend(done.granted.iter().cloned());
    }

    /// The submission under the key `name`, the same every time.
    pub(super) fn keyed(&self, name: &str) -> Command {
        let mut wish = drive::wish("acme", "ada", "plain", "[1]");
        wish.idempotency = Some(drive::key("acme", name, "[1]", None));
        Command::Submit(Box::new(wish))
    }

    fn command(&mut self) -> Command {
        self.number += 1;
        match self.rng.below(100) {
            0..38 => self.submit(),
            38..72 => self.report(),
            72..78 => self.cancel(),
            78..84 => self.time(),
            84..90 => self.item(),
            90..95 => self.entity(),
            _ => self.settings(),
        }
    }

    fn submit(&mut self) -> Command {
        if self.rng.chance(25) {
            let name = format!("key-{}", self.rng.below(12));
            return self.keyed(&name);
        }
        let payload = format!(
            "{{\"n\":{},\"x\":\"{}\"}}",
            self.number,
            "x".repeat(self.rng.below(300) as usize,)
        );
        let owner = *self.rng.pick(&["acme", "bolt", "cask"]);
        let job_type = *self.rng.pick(&["plain", "limited", "brittle"]);
        let mut wish = drive::wish(owner, "ada", job_type, &payload);
        wish.delay_ms = self.rng.chance(30).then(|| self.rng.below(20_000));
        wish.queue = self.rng.chance(30).then(|| drive::queue("side"));
        wish.max_retries = self.rng.chance(40).then(|| self.rng.below(3) as u16);
        let expires = self.now.plus_millis(30_000);
        wish.expires_at = self.rng.chance(10).then_some(expires);
        if self.rng.chance(20) {
            let name = format!("short-{}", self.rng.below(6));
            wish.idempotency = Some(drive::key(owner, &name, &payload, Some(60)));
        }
        Command::Submit(Box::new(wish))
    }

    fn report(&mut self) -> Command {
        if self.held.is_empty() {
            return self.submit();
        }
        let nth = self.rng.below(self.held.len() as u64) as usize;
        let what = self.rng.below(10);
        let job = if what < 7 { self.held.swap_remove(nth) } else { self.held[nth].clone() };
        let Some(token) = job.lease().map(mainspring_kernel::Lease::token) else {
            return self.submit();
        };
        let id = job.id;
        match what {
            0..3 => {
                let result = Some(format!("{{\"by\":{}}}", self.number).into());
                Command::Complete(Complete { job: id, token, result })
            }
            3..6 => {
                let retryable = self.rng.chance(70);
                let failure =
                    Failure { code: "BROKEN".into(), message: "it broke".into(), retryable };
                let retry_delay_ms = self.rng.chance(50).then_some(2_000);
                let (job, result, snooze_ms) = (id, None, self.rng.chance(20).then_some(1_500));
                Command::Fail(Fail { job, token, failure, retry_delay_ms, result, snooze_ms })
            }
            6 => Command::Release(Release { job: id, token, reason: None }),
            7..9 => Command::Heartbeat(Heartbeat {
                job: id,
                token,
                lease_ms: 40_000,
                progress_pct: self.rng.chance(50).then(|| self.rng.below(100) as u8),
                note: self.rng.chance(30).then(|| {
                    let checkpoint = Some(format!("{{\"at\":{}}}", self.number).into());
                    Box::new(ProgressNote { message: Some("on it".into()), checkpoint })
                }),
            }),
            _ => Command::CommitEffect(CommitEffect {
                job: id,
                token,
                name: format!("effect-{}", self.rng.below(3)).into(),
                value: format!("{}", self.number).into(),
            }),
        }
    }

    fn cancel(&mut self) -> Command {
        match self.known.len() {
            0 => self.submit(),
            count => {
                let job = self.known[self.rng.below(count as u64) as usize];
                Command::Cancel { job, by: drive::user("ada"), reason: Some("enough".into()) }
            }
        }
    }

    fn time(&mut self) -> Command {
        let Some(job) = self.known.get(self.rng.below(self.known.len() as u64) as usize) else {
            return self.submit();
        };
        match self.rng.below(4) {
            0 => Command::ExtendLease { job: *job, until: self.now.plus_millis(60_000) },
            1 => Command::Transition {
                job: *job,
                to: *self.rng.pick(&StateName::ALL),
                by: drive::user("root"),
            },
            _ => Command::Reap { job: *job },
        }
    }

    fn item(&mut self) -> Command {
        let Some(job) = self.items.get(self.rng.below(self.items.len() as u64) as usize) else {
            return self.submit();
        };
        let item = job.dlq();
        match self.rng.below(5) {
            0 => Command::RequeueItem { item, by: drive::user("ada"), key: Some("again".into()) },
            1 | 2 => {
                let by = Box::new(holder(1, "ada").principal());
                Command::RequestDiscard { item, by, reason: "old".into() }
            }
            3 => Command::RejectDiscard { item, by: drive::user("bob") },
            _ => Command::DiscardReviewed {
                item,
                by: Box::new(holder(3, "replay").principal()),
                reason: "old".into(),
                reviewer: "ada".into(),
                reviewer_2: "bob".into(),
            },
        }
    }

    /// An alarm that has come, or something that people do.
    fn entity(&mut self) -> Command {
        if let Some(again) = self.wanting.pop() {
            return again;
        }
        let due = self.alarms.iter().find(|(_, at)| **at <= self.now);
        match due.map(|(entity, at)| (*entity, *at)) {
            Some((entity, at)) if self.rng.chance(70) => {
                self.alarms.remove(&entity);
                Command::Ring { entity, at, jobs: Vec::new() }
            }
            _ => any_entity_command(&mut |bound| self.rng.below(bound as u64) as usize),
        }
    }

    fn settings(&mut self) -> Command {
        match self.rng.below(4) {
            0 => {
                let mut spec = TypeSpec::plain(drive::kind("limited"));
                spec.concurrency_limit = self.rng.chance(80).then(|| self.rng.below(3) as u32);
                spec.concurrency_scope =
                    *self.rng.pick(&[ConcurrencyScope::Global, ConcurrencyScope::Tenant]);
                Command::SetType(Box::new(spec))
            }
            1 => {
                let mut spec = TypeSpec::plain(drive::kind("brittle"));
                spec.max_retries = self.rng.below(2) as u16;
                Command::SetType(Box::new(spec))
            }
            2 => Command::SetQueue(QueueSpec {
                name: drive::queue("side"),
                is_paused: self.rng.chance(30),
                order: *self.rng.pick(&[QueueOrder::Aged, QueueOrder::Due]),
                share: None,
            }),
            _ => {
                let name = *self.rng.pick(&["ada", "bob"]);
                Command::IssueToken(Box::new(holder(u128::from(self.number), name)))
            }
        }
    }
}

/// A token of somebody who may ask for a discard and agree to one.
fn holder(id: u128, name: &str) -> Token {
    Token {
        id: mainspring_kernel::TokenId(id),
        digest: [7; 32],
        tenant: drive::tenant("acme"),
        user: drive::user(name),
        roles: Roles::of(&[Role::Operator, Role::Approver]),
        issued_at: Timestamp::EPOCH,
        issued_by: drive::user("root"),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}
