//! A store without an engine: short words for commands, and a batch that decides like the engine
//! does. For tests that look at the store alone.

use mainspring_kernel::command::{Claim, Submit};
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::governance::Governance;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::{
    Command, Decision, Event, Job, JobType, QueueName, Receipt, Rejection, TenantId, Timestamp,
    UserId, WorkerId, fingerprint,
};
use mainspring_store::{Circumstances, Desk, Error, PullNeeds, Store, Ticket, decide_on, needs_of};

/// The instant simulated worlds begin at.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// A tenant of that name.
pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("test names are valid")
}

/// A user of that name.
pub fn user(name: &str) -> UserId {
    UserId::new(name).expect("test names are valid")
}

/// A job type of that name.
pub fn kind(name: &str) -> JobType {
    JobType::new(name).expect("test names are valid")
}

/// A queue of that name.
pub fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("test names are valid")
}

/// A worker of that name.
pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("test names are valid")
}

/// A wish that leaves everything to the type.
pub fn wish(owner: &str, person: &str, job_type: &str, payload: &str) -> Submit {
    let plain = Submit::plain(tenant(owner), user(person), kind(job_type));
    Submit { payload: payload.into(), ..plain }
}

/// A key that is compared by payload, as contracts make it.
pub fn key(owner: &str, name: &str, payload: &str, window_secs: Option<u32>) -> Box<Idempotency> {
    Box::new(Idempotency {
        hash: fingerprint::digest(&[owner.as_bytes(), b"", name.as_bytes()]),
        scope: "".into(),
        key: name.into(),
        fingerprint: Some(fingerprint::digest(&[payload.as_bytes()])),
        window_secs,
    })
}

/// What one batch brought about.
pub struct Done {
    /// One outcome per command.
    pub outcomes: Vec<Result<Receipt, Rejection>>,
    /// The jobs the pull got.
    pub granted: Vec<Job>,
    /// Every event in order.
    pub events: Vec<Event>,
    /// Kept when the batch is durable.
    pub ticket: Ticket,
}

/// Commits `commands` and then a pull of up to `pull` jobs as one batch.
///
/// # Errors
/// If the store refuses the commit.
pub fn commit(
    store: &dyn Store,
    commands: &[Command],
    pull: usize,
    now: Timestamp,
    fresh: &mut u128,
) -> Result<Done, Error> {
    let mut needs = needs_of(commands, now);
    needs.pulls.push(PullNeeds::any(pull));
    let (mut outcomes, mut granted, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let mut work = |desk: &mut dyn Desk| {
        for command in commands {
            outcomes.push(act(command, desk, now, fresh, &mut events));
        }
        let wanted = Wanted { tenant: None, types: None, queues: None };
        for job in desk.take_ready(&wanted, pull, now) {
            let claim = Claim { job, worker: worker("w1"), lease_ms: 30_000 };
            if act(&Command::Claim(claim), desk, now, fresh, &mut events).is_ok() {
                granted.extend(desk.job(job).cloned());
            }
        }
    };
    let ticket = ready(store.commit(needs, &mut work))?;
    Ok(Done { outcomes, granted, events, ticket })
}

/// The value of a future that never waits.
///
/// # Panics
/// If it does wait.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    futures_util::FutureExt::now_or_never(future).expect("nothing here has to wait")
}

/// Decides one command at a desk, as the engine does.
pub(crate) fn act(
    command: &Command,
    desk: &mut dyn Desk,
    now: Timestamp,
    fresh: &mut u128,
    log: &mut Vec<Event>,
) -> Result<Receipt, Rejection> {
    *fresh += 1;
    let (millis, fresh) = (u128::try_from(now.as_millis()).unwrap_or(0), *fresh);
    // Commands that are taken together make several jobs.
    let mut nth = 0..;
    let mut fresh_id = || {
        let nth: u128 = nth.next().unwrap_or(0);
        (millis << 80) | (nth << 40) | fresh
    };
    let mut around = Circumstances {
        now,
        fresh_id: &mut fresh_id,
        fresh_secret: &mut || fresh << 64 | 7,
        are_types_strict: false,
        jumps: &[],
        silences: &[],
        backlog_max: (u64::MAX, u64::MAX),
        governance: Governance::DEFAULT,
    };
    let Decision { events, receipt } = decide_on(desk, command, &mut around)?;
    if !events.is_empty() {
        log.extend(events.iter().cloned());
        desk.apply(events);
    }
    Ok(receipt)
}
