//! What a case works with: a fresh store, a clock it sets by hand, and short words for commands.

use crate::desk::{Circumstances, decide_on, needs_of};
use crate::store::{Desk, Needs, PullNeeds, Store};
use crate::ticket::Ticket;
use crate::{Error, JobFilter, JobWithHistory, Scope};
use mainspring_kernel::command::{Claim, Complete, Fail, Submit};
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::governance::Governance;
use mainspring_kernel::job::{Effect, Idempotency, LeaseToken};
use mainspring_kernel::{
    Command, Decision, Failure, Job, JobId, JobType, QueueName, Receipt, Rejection, StateName,
    TenantId, Timestamp, UserId, WorkerId, fingerprint,
};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// What the jobs of a tenant, and all jobs, may take up before they have ended.
pub(super) const BACKLOG_MAX: (u64, u64) = (7 << 19, 12 << 19);

/// What became of a command.
pub type Outcome = Result<Receipt, Rejection>;

/// A store under test.
pub(super) struct Bench {
    pub(super) store: Arc<dyn Store>,
    pub(super) now: Timestamp,
    fresh: u128,
}

/// What a pull asks for.
#[derive(Debug, Clone)]
pub(super) struct Pull {
    pub(super) tenant: Option<&'static str>,
    pub(super) types: Option<Vec<JobType>>,
    pub(super) queues: Option<Vec<QueueName>>,
    pub(super) limit: usize,
    pub(super) lease_ms: u32,
}

pub(super) fn any(limit: usize) -> Pull {
    Pull { tenant: None, types: None, queues: None, limit, lease_ms: 60_000 }
}

pub(super) fn tenant(name: &str) -> TenantId {
    TenantId::stored(name.into())
}

pub(super) fn user(name: &str) -> UserId {
    UserId::stored(name.into())
}

pub(super) fn kind(name: &str) -> JobType {
    JobType::stored(name.into())
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::stored(name.into())
}

/// A wish for a plain job of type `mill` by ada of acme.
pub fn wish() -> Submit {
    let payload = r#"{"n":1}"#.into();
    Submit { payload, ..Submit::plain(tenant("acme"), user("ada"), kind("mill")) }
}

pub(super) fn key(name: &str, window_secs: Option<u32>) -> Option<Box<Idempotency>> {
    let hash = fingerprint::digest(&[b"acme", b"", name.as_bytes()]);
    let fingerprint = Some(fingerprint::digest(&[b"same"]));
    Some(Box::new(Idempotency {
        hash,
        scope: "".into(),
        key: name.into(),
        fingerprint,
        window_secs,
    }))
}

/// A wish as a command.
pub fn submit(wish: Submit) -> Command {
    Command::Submit(Box::new(wish))
}

/// The end of a job that was granted.
pub fn complete(job: &Job) -> Command {
    Command::Complete(Complete { job: job.id, token: token(job), result: Some("[1]".into()) })
}

/// The failure of a job that was granted.
pub fn fail(job: &Job, retryable: bool) -> Command {
    let failure = Failure { code: "BROKEN".into(), message: "it broke".into(), retryable };
    Command::Fail(Fail {
        job: job.id,
        token: token(job),
        failure,
        retry_delay_ms: Some(5_000),
        result: Some("[0]".into()),
        snooze_ms: None,
    })
}

/// The token of a job that was granted.
pub fn token(job: &Job) -> LeaseToken {
    job.lease().expect("a granted job runs").token()
}

pub(super) fn everything() -> JobFilter {
    JobFilter::of(Scope::All)
}

impl Bench {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Bench { store, now: Timestamp::from_millis(1_790_000_000_000), fresh: 0 }
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now = self.now.plus_millis(millis);
    }

    /// Runs `commands` as one batch and waits until it is durable.
    pub(super) async fn run(&mut self, commands: &[Command]) -> Vec<Outcome> {
        self.batch(commands, None).await.0
    }

    /// Runs one command.
    pub(super) async fn one(&mut self, command: Command) -> Outcome {
        self.run(&[command]).await.remove(0)
    }

    /// Runs one command that must be accepted.
    pub(super) async fn done(&mut self, command: Command) -> Receipt {
        let name = command.name();
        self.one(command).await.unwrap_or_else(|why| panic!("{name} was refused: {why}"))
    }

    pub(super) async fn submit(&mut self, wish: Submit) -> JobId {
        let receipt = self.done(submit(wish)).await;
        let Receipt::Submitted { job } = receipt else { panic!("answered with {receipt:?}") };
        job
    }

    pub(super) async fn pull(&mut self, pull: Pull) -> Vec<Job> {
        self.batch(&[], Some(pull)).await.1
    }

    /// The one job there is to pull.
    pub(super) async fn grant(&mut self) -> Job {
        self.pull(any(1)).await.pop().expect("one job is ready")
    }

    /// Ids of what a pull of everything gets.
    pub(super) async fn pulled(&mut self, limit: usize) -> Vec<JobId> {
        self.pull(any(limit)).await.iter().map(|job| job.id).collect()
    }

    /// Commands, then perhaps a pull, as one batch.
    pub(super) async fn batch(
        &mut self,
        commands: &[Command],
        pull: Option<Pull>,
    ) -> (Vec<Outcome>, Vec<Job>) {
        let store = self.store.clone();
        let needs = needs(commands, pull.as_ref(), self.now);
        let (mut outcomes, mut granted) = (Vec::new(), Vec::new());
        let (now, fresh_before) = (self.now, self.fresh);
        let mut work = |desk: &mut dyn Desk| {
            self.fresh = fresh_before;
            (outcomes, granted) = (Vec::new(), Vec::new());
            for command in commands {
                let first = self.fresh + 1;
                self.fresh += command.parts().len().max(1) as u128;
                outcomes.push(act(command, desk, now, first));
            }
            if let Some(pull) = &pull {
                granted = serve(pull, desk, now, &mut self.fresh);
            }
        };
        let ticket = store.commit(needs, &mut work).await.expect("the store commits");
        kept(ticket).await.expect("the commit becomes durable");
        (outcomes, granted)
    }

    /// Takes ready jobs and claims none of them.
    pub(super) async fn look(&mut self, limit: usize) -> Vec<JobId> {
        let store = self.store.clone();
        let now = self.now;
        let mut seen = Vec::new();
        let mut work = |desk: &mut dyn Desk| {
            let wanted = Wanted { tenant: None, types: None, queues: None };
            seen = desk.take_ready(&wanted, limit, now);
        };
        let needs = Needs { pulls: vec![PullNeeds::any(limit)], now, ..Needs::default() };
        let ticket = store.commit(needs, &mut work).await.expect("the store commits");
        kept(ticket).await.expect("the commit becomes durable");
        seen
    }

    pub(super) async fn job(&self, id: JobId) -> JobWithHistory {
        self.store.job(id).await.expect("reads work").expect("the job is kept")
    }

    pub(super) async fn effect(&self, id: JobId, name: &str) -> Option<Effect> {
        self.store.effect(id, name).await.expect("reads work")
    }

    pub(super) async fn state(&self, id: JobId) -> StateName {
        self.job(id).await.job.state.name()
    }

    pub(super) async fn overdue(&self) -> Vec<JobId> {
        self.store.overdue(self.now, 100).await.expect("reads work")
    }

    /// Lists by pages of `limit`, all of them full but the last.
    pub(super) async fn list(&self, filter: &JobFilter, limit: usize) -> Vec<JobId> {
        let (mut ids, mut before) = (Vec::new(), None);
        loop {
            let page = self.store.jobs(filter, before, limit).await.expect("reads work");
            let is_full = page.items.len() == limit;
            assert!(is_full || page.next.is_none(), "a page of {limit} is short: {filter:?}");
            assert!(page.items.len() <= limit, "a page has at most {limit} entries");
            ids.extend(page.items.iter().map(|job| job.id));
            before = page.next;
            if before.is_none() {
                return ids;
            }
        }
    }
}

fn needs(commands: &[Command], pull: Option<&Pull>, now: Timestamp) -> Needs {
    let mut needs = needs_of(commands, now);
    needs.pulls.extend(pull.map(|pull| PullNeeds {
        tenant: pull.tenant.map(tenant),
        types: pull.types.clone().map(Into::into),
        queues: pull.queues.clone().map(Into::into),
        limit: pull.limit,
    }));
    needs
}

/// Decides one command on what the desk shows and applies the events, like the engine does.
pub fn act(command: &Command, desk: &mut dyn Desk, now: Timestamp, fresh: u128) -> Outcome {
    let millis = u128::try_from(now.as_millis()).unwrap_or(0);
    // Commands that are taken together make several jobs, each later than the one before.
    let mut numbers = fresh..;
    let mut fresh_id = || {
        let number = numbers.next().unwrap_or(fresh);
        (millis << 80) | ((number & 0xffff) << 64) | number
    };
    let mut around = Circumstances {
        now,
        fresh_id: &mut fresh_id,
        fresh_secret: &mut || fresh << 64 | 7,
        are_types_strict: false,
        jumps: &[],
        silences: &[],
        backlog_max: BACKLOG_MAX,
        governance: Governance::DEFAULT,
    };
    let Decision { events, receipt } = decide_on(desk, command, &mut around)?;
    if !events.is_empty() {
        desk.apply(events);
    }
    Ok(receipt)
}

fn serve(pull: &Pull, desk: &mut dyn Desk, now: Timestamp, fresh: &mut u128) -> Vec<Job> {
    let tenant = pull.tenant.map(tenant);
    let wanted = Wanted {
        tenant: tenant.as_ref(),
        types: pull.types.as_deref(),
        queues: pull.queues.as_deref(),
    };
    let ready = desk.take_ready(&wanted, pull.limit, now);
    assert!(ready.len() <= pull.limit, "at most {} were asked for", pull.limit);
    let mut granted = Vec::new();
    for job in ready {
        *fresh += 1;
        let worker = WorkerId::stored("w1".into());
        let claim = Command::Claim(Claim { job, worker, lease_ms: pull.lease_ms });
        match act(&claim, desk, now, *fresh) {
            // A store may or may not have its effects at hand.
            Ok(_) => granted.extend(desk.job(job).cloned().map(|mut job| {
                job.forget_effects();
                job.forget_checkpoint();
                job
            })),
            // It has expired, and the reaper has not come by yet.
            Err(Rejection::NotDue) => {}
            Err(why) => panic!("a job that was taken as ready can be claimed: {why}"),
        }
    }
    granted
}

/// Waits for a ticket without a runtime: the continuation wakes whoever polls.
pub(super) async fn kept(ticket: Ticket) -> Result<(), Error> {
    type Cell = (Option<Result<(), Error>>, Option<Waker>);
    let cell: Arc<Mutex<Cell>> = Arc::default();
    let other = cell.clone();
    ticket.then(move |outcome| {
        let mut cell = other.lock().unwrap_or_else(PoisonError::into_inner);
        cell.0 = Some(outcome);
        if let Some(waker) = cell.1.take() {
            waker.wake();
        }
    });
    poll_fn(|context| {
        let mut cell = cell.lock().unwrap_or_else(PoisonError::into_inner);
        match cell.0.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                cell.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
