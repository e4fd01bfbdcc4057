//! One life of the server as its clients see it. Calls are recorded here, and the planted bugs that
//! a contract could have are made here.

use super::dump;
use super::world::World;
use crate::drive;
use crate::history::{Answer, Call, Grant, Outcome, PullScope, Seen};
use crate::planted::{Plant, lot};
use mainspring_engine::{Engine, Pull};
use mainspring_kernel::{
    Command, Job, JobId, Principal, QueueSpec, Receipt, Rejection, Roles, State, StateName,
    Timestamp, Token, TokenId,
};
use mainspring_store::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A running server.
#[derive(Clone)]
pub(super) struct Server {
    /// One, or several on a store they share.
    pub(super) engines: Arc<Mutex<Vec<Engine>>>,
    pub(super) world: Arc<World>,
    pub(super) plant: Plant,
    /// What failed commits handed out, if that is the mistake.
    pub(super) phantoms: Arc<Mutex<Vec<Job>>>,
    /// How often an answer is lost, in percent.
    pub(super) lost_percent: u64,
    /// How often a worker that waits goes away, in percent.
    pub(super) vanish_percent: u64,
}

impl Server {
    /// Whoever is asked next.
    pub(super) fn engine(&self) -> Engine {
        let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        match &engines[..] {
            [only] => only.clone(),
            several => several[self.world.below(several.len() as u64) as usize].clone(),
        }
    }

    /// Sends `command` and records it as `call`.
    pub(super) async fn call(&self, call: Call, command: Command) -> Outcome {
        let id = self.world.invoke(call);
        let outcome = self.execute(command).await;
        if self.is_lost() {
            return Outcome::Info;
        }
        self.world.end(id, &outcome);
        outcome
    }

    /// Whether the answer to a call never arrives.
    fn is_lost(&self) -> bool {
        let is_lost =
            self.lost_percent > 0 && !self.world.is_quiet() && self.world.chance(self.lost_percent);
        if is_lost {
            self.world.fault("answer_lost");
        }
        is_lost
    }

    async fn execute(&self, command: Command) -> Outcome {
        let is_cancel = matches!(command, Command::Cancel { .. });
        let is_lost = match self.plant {
            Plant::LoseCancel => is_cancel && self.world.chance(50),
            Plant::LoseRareCancel if is_cancel => {
                let job = match command.job() {
                    Some(job) => self.engine().job(job).await.ok().flatten(),
                    None => None,
                };
                job.is_some_and(|found| {
                    let is_waiting = found.job.state.name() == StateName::Retrying;
                    found.job.retry_count >= 2 && is_waiting
                })
            }
            _ => false,
        };
        if is_lost {
            let state = mainspring_kernel::StateName::Cancelled;
            return Outcome::Ok(Answer::State { state });
        }
        let command = self.spoilt(command).await;
        let created_at = match &command {
            Command::Submit(wish) => match self.engine().submit((**wish).clone()).await {
                Ok(Ok(found)) => {
                    if self.plant == Plant::RefuseAndDo && lot(found.job.id, 9_000) == 0 {
                        return Outcome::Fail("BUSY".to_owned());
                    }
                    return Outcome::Ok(Answer::Submitted {
                        job: found.job.id.to_string(),
                        is_hit: found.is_hit,
                        created_at: found.job.created_at.0,
                    });
                }
                Ok(Err(rejection)) => return refused(&rejection),
                Err(error) => return unknown(&error),
            },
            _ => 0,
        };
        match self.engine().execute_one(command).await {
            Ok(Ok(receipt)) => Outcome::Ok(answer(receipt, created_at)),
            Ok(Err(rejection)) => refused(&rejection),
            Err(error) => unknown(&error),
        }
    }

    /// The command as a server with the mistake would understand it.
    async fn spoilt(&self, mut command: Command) -> Command {
        match (self.plant, &mut command) {
            (Plant::StaleToken | Plant::StaleTokenLate, command) => {
                let live = match command.job() {
                    Some(job) => self.engine().job(job).await.ok().flatten(),
                    None => None,
                };
                let Some(now) = live.as_ref().and_then(|s| s.job.lease()).map(|l| l.token()) else {
                    return command.clone();
                };
                if self.plant == Plant::StaleTokenLate && now.fence < 3 {
                    return command.clone();
                }
                match command {
                    Command::Complete(report) => report.token = now,
                    Command::Fail(report) => report.token = now,
                    Command::Heartbeat(report) => report.token = now,
                    _ => {}
                }
            }
            (Plant::IgnoreDelay, Command::Submit(wish)) => wish.delay_ms = None,
            (Plant::IgnoreFingerprint, Command::Submit(wish)) => {
                if let Some(key) = &mut wish.idempotency {
                    key.fingerprint = None;
                }
            }
            (Plant::IgnorePause, Command::SetQueue(spec)) => spec.is_paused = false,
            (Plant::WrongLimit, Command::SetType(spec)) => {
                spec.concurrency_limit = spec.concurrency_limit.map(|limit| limit + 1);
            }
            (Plant::EffectTwice, Command::CommitEffect(wish)) => {
                wish.name = format!("{}-{}", wish.name, wish.token.fence).into();
            }
            (Plant::EffectAgain, Command::CommitEffect(wish)) if wish.token.fence >= 3 => {
                wish.name = format!("{}-{}", wish.name, wish.token.fence).into();
            }
            (Plant::OnePerson, Command::ApproveDiscard { by, .. }) => by.user = drive::user("zoe"),
            _ => {}
        }
        command
    }

    /// Asks for jobs; also says under which name.
    pub(super) async fn pull(&self, mut pull: Pull) -> (String, Vec<Grant>) {
        let is_ghost = self.vanish_percent > 0
            && !self.world.is_quiet()
            && self.world.chance(self.vanish_percent);
        if is_ghost {
            // A name of its own, so that what it is given can be told from what others get.
            let nth = self.world.lock().history.operations.len();
            pull.worker = drive::worker(&format!("{}-ghost-{nth}", pull.worker));
        }
        let (worker, lease_ms) = (pull.worker.to_string(), u64::from(pull.lease_ms));
        let name = worker.clone();
        let id = self.world.invoke(Call::Pull { worker, lease_ms, scope: scope(&pull) });
        match self.plant {
            Plant::IgnoreTenant => pull.tenant = None,
            Plant::IgnoreQueue => pull.queues = None,
            _ => {}
        }
        let answer = if is_ghost {
            let patience = Duration::from_micros(self.world.below(2_000_000));
            let engine = self.engine();
            let pulling = tokio::spawn(async move { engine.pull(pull).await });
            let stopper = pulling.abort_handle();
            let pulled = tokio::time::timeout(patience, pulling).await;
            if self.plant != Plant::KeepForGhost {
                stopper.abort();
            }
            match pulled.map(|pulled| pulled.unwrap_or(Err(Error::Stopped))) {
                Ok(answer) => answer,
                Err(_) => {
                    self.world.fault("caller_vanished");
                    self.world.end(id, &Outcome::Gone);
                    return (name, Vec::new());
                }
            }
        } else {
            self.engine().pull(pull).await
        };
        if self.is_lost() {
            return (name, Vec::new());
        }
        let mut grants: Vec<Grant> = match answer {
            Ok(grants) => grants.into_iter().map(|grant| granted(&grant.job)).collect(),
            Err(error) => {
                self.world.end(id, &unknown(&error));
                return (name, Vec::new());
            }
        };
        if self.plant == Plant::GrantTwice {
            self.grant_again(&mut grants);
        }
        let phantom = self.phantoms.lock().unwrap_or_else(PoisonError::into_inner).pop();
        grants.extend(phantom.iter().map(granted));
        self.world.end(id, &Outcome::Ok(Answer::Grants(grants.clone())));
        self.world.lock().held.extend(grants.iter().cloned());
        (name, grants)
    }

    fn grant_again(&self, grants: &mut Vec<Grant>) {
        let held = self.world.lock().held.first().cloned();
        if let Some(again) = held.filter(|_| self.world.chance(20)) {
            grants.push(again);
        }
    }

    /// Looks at a job.
    pub(super) async fn read(&self, job: &str) {
        let Ok(id) = job.parse::<JobId>() else { return };
        let call = self.world.invoke(Call::Read { job: job.to_owned() });
        let outcome = match self.engine().job(id).await {
            Ok(Some(found)) => {
                let due_at = match &found.job.state {
                    State::Retrying { .. } => found.job.due_at().map(|at| at.0),
                    _ => None,
                };
                let state = found.job.state.name();
                let is_torn = self.plant == Plant::TornRead
                    && state == StateName::Retrying
                    && self.world.chance(1);
                let retry_count = u32::from(found.job.retry_count) + u32::from(is_torn);
                // Not at the same moment, but whatever is written with a move is there after it.
                let has_item = match state {
                    StateName::DlqRecorded | StateName::Failed => {
                        self.engine().item(id.dlq()).await.ok().map(|item| item.is_some())
                    }
                    _ => None,
                };
                Outcome::Ok(Answer::Seen(Seen {
                    state,
                    seq: found.job.seq,
                    updated_at: found.job.updated_at.0,
                    retry_count: Some(retry_count),
                    due_at,
                    has_item,
                }))
            }
            Ok(None) => Outcome::Fail("JOB_NOT_FOUND".to_owned()),
            Err(error) => unknown(&error),
        };
        self.world.end(call, &outcome);
    }

    /// Lists the jobs of a tenant, page by page.
    pub(super) async fn list_jobs(&self, tenant: &str) {
        let call = self.world.invoke(Call::ListJobs { tenant: tenant.to_owned() });
        let outcome = match dump::jobs_of(&self.engine(), tenant).await {
            Ok(ids) => Outcome::Ok(Answer::Listed(ids)),
            Err(error) => unknown(&error),
        };
        self.world.end(call, &outcome);
    }

    /// Lists all dead-letter items, page by page.
    pub(super) async fn list_items(&self) {
        let call = self.world.invoke(Call::ListItems);
        let outcome = match dump::items(&self.engine()).await {
            Ok(items) => {
                Outcome::Ok(Answer::Listed(items.iter().map(|item| item.id.to_string()).collect()))
            }
            Err(error) => unknown(&error),
        };
        self.world.end(call, &outcome);
    }

    /// Pauses or resumes a queue.
    pub(super) async fn pause(&self, queue: &str, is_paused: bool) -> Outcome {
        let mut spec = QueueSpec::plain(drive::queue(queue));
        spec.is_paused = is_paused;
        let call = Call::Pause { queue: queue.to_owned(), is_paused };
        self.call(call, Command::SetQueue(spec)).await
    }

    /// Sleeps in simulated time.
    pub(super) async fn pass(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// A person with a token of their own.
pub(super) fn principal(name: &str) -> Box<Principal> {
    Box::new(holder(name, 7).principal())
}

/// A token that root gave to `name` long ago.
pub(super) fn holder(name: &str, id: u128) -> Token {
    Token {
        id: TokenId(id),
        digest: [7; 32],
        tenant: drive::tenant("acme"),
        user: drive::user(name),
        roles: Roles(255),
        issued_at: Timestamp::EPOCH,
        issued_by: drive::user("root"),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}

fn scope(pull: &Pull) -> PullScope {
    PullScope {
        tenant: pull.tenant.as_ref().map(ToString::to_string),
        queues: pull.queues.as_ref().map(|all| all.iter().map(ToString::to_string).collect()),
        types: pull.types.as_ref().map(|all| all.iter().map(ToString::to_string).collect()),
    }
}

fn granted(job: &Job) -> Grant {
    let lease = job.lease().expect("a granted job runs");
    Grant {
        job: job.id.to_string(),
        attempt: job.attempt(),
        token: lease.token().to_string(),
        granted_at: lease.granted_at.0,
        lease_until: lease.ends_at().0,
        payload: job.payload.to_string(),
        queue: job.queue.to_string(),
    }
}

fn answer(receipt: Receipt, created_at: i64) -> Answer {
    match receipt {
        Receipt::Submitted { job } | Receipt::Existing { job, .. } => {
            Answer::Submitted { job: job.to_string(), is_hit: true, created_at }
        }
        Receipt::Moved { state } | Receipt::Ran { state, .. } => Answer::State { state },
        Receipt::Renewed { expires_at } => Answer::Lease { until: expires_at.0 },
        Receipt::CancelledMeanwhile => Answer::Cancelled,
        Receipt::Effect { value, is_first } => {
            Answer::Effect { value: value.to_string(), is_first }
        }
        Receipt::Requeued { job } => Answer::Requeued { job: job.to_string() },
        Receipt::Item { .. }
        | Receipt::Wanting { .. }
        | Receipt::Ensured { .. }
        | Receipt::TakenBack { .. }
        | Receipt::Audited { .. }
        | Receipt::Together(_)
        | Receipt::Done => Answer::Done,
    }
}

fn refused(rejection: &Rejection) -> Outcome {
    Outcome::Fail(rejection.code().to_owned())
}

/// A store that failed leaves the outcome open, unless it refused for want of room.
fn unknown(error: &Error) -> Outcome {
    match error {
        Error::NoRoom => Outcome::Fail("NO_ROOM".to_owned()),
        Error::Busy => Outcome::Fail("BUSY".to_owned()),
        Error::Refused(_) | Error::Broken(_) => Outcome::Fail("REFUSED".to_owned()),
        Error::Stopped | Error::Away(_) | Error::Failed(_) | Error::Unreadable(_) => Outcome::Info,
    }
}
