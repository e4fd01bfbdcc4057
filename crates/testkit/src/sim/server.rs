//! One life of the server as its clients see it. Calls are recorded here, and the planted bugs that
//! a contract could have are made here.

use super::world::World;
use crate::drive;
use crate::history::{Answer, Call, Grant, Outcome};
use crate::planted::Plant;
use mainspring_engine::{Engine, Pull};
use mainspring_kernel::{
    Command, Job, JobId, Principal, QueueSpec, Receipt, Rejection, Roles, Timestamp, TokenId,
    UserId,
};
use mainspring_store::Error;
use std::sync::Arc;
use std::time::Duration;

/// A running server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) engine: Engine,
    pub(super) world: Arc<World>,
    pub(super) plant: Plant,
}

impl Server {
    /// Sends `command` and records it as `call`.
    pub(super) async fn call(&self, call: Call, command: Command) -> Outcome {
        let id = self.world.invoke(call);
        let outcome = self.execute(command).await;
        self.world.end(id, &outcome);
        outcome
    }

    async fn execute(&self, command: Command) -> Outcome {
        let is_cancel = matches!(command, Command::Cancel { .. });
        if self.plant == Plant::LoseCancel && is_cancel && self.world.chance(50) {
            let state = mainspring_kernel::StateName::Cancelled;
            return Outcome::Ok(Answer::State { state });
        }
        let command = self.spoilt(command).await;
        let created_at = match &command {
            Command::Submit(wish) => match self.engine.submit((**wish).clone()).await {
                Ok(Ok(found)) => {
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
        match self.engine.execute_one(command).await {
            Ok(Ok(receipt)) => Outcome::Ok(answer(receipt, created_at)),
            Ok(Err(rejection)) => refused(&rejection),
            Err(error) => unknown(&error),
        }
    }

    /// The command as a server with the mistake would understand it.
    async fn spoilt(&self, mut command: Command) -> Command {
        match (self.plant, &mut command) {
            (Plant::StaleToken, command) => {
                let live = match command.job() {
                    Some(job) => self.engine.job(job).await.ok().flatten(),
                    None => None,
                };
                let Some(now) = live.as_ref().and_then(|s| s.job.lease()).map(|l| l.token()) else {
                    return command.clone();
                };
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
            (Plant::OnePerson, Command::ApproveDiscard { by, .. }) => by.user = drive::user("zoe"),
            _ => {}
        }
        command
    }

    /// Asks for jobs.
    pub(super) async fn pull(&self, pull: Pull) -> Vec<Grant> {
        let (worker, lease_ms) = (pull.worker.to_string(), u64::from(pull.lease_ms));
        let id = self.world.invoke(Call::Pull { worker, lease_ms });
        let mut grants = match self.engine.pull(pull).await {
            Ok(grants) => grants.into_iter().map(|grant| granted(&grant.job)).collect(),
            Err(error) => {
                self.world.end(id, &unknown(&error));
                return Vec::new();
            }
        };
        if self.plant == Plant::GrantTwice {
            self.grant_again(&mut grants);
        }
        self.world.end(id, &Outcome::Ok(Answer::Grants(grants.clone())));
        self.world.lock().held.extend(grants.iter().cloned());
        grants
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
        let outcome = match self.engine.job(id).await {
            Ok(Some(found)) => Outcome::Ok(Answer::Seen {
                state: found.job.state.name(),
                seq: found.job.seq,
                updated_at: found.job.updated_at.0,
            }),
            Ok(None) => Outcome::Fail("JOB_NOT_FOUND".to_owned()),
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
    Box::new(Principal {
        tenant: drive::tenant("acme"),
        user: drive::user(name),
        roles: Roles(255),
        token: TokenId(7),
        token_issued_at: Timestamp::EPOCH,
        token_issued_by: UserId::new("root").expect("a name"),
    })
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
        Receipt::Item { .. } | Receipt::Done => Answer::Done,
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
        Error::Refused(_) | Error::Damaged(_) => Outcome::Fail("REFUSED".to_owned()),
        Error::Stopped | Error::Away(_) | Error::Failed(_) | Error::Unreadable(_) => Outcome::Info,
    }
}
