//! The engine as the employer of a worker loop in the same process: no HTTP, no JSON in between.
//! It asks for nothing that a worker over HTTP could not ask for, and the kernel decides the same.
//! The loop is in the crate `mainspring-worker`; the way over HTTP is in the SDK.

use crate::engine::{Engine, Reply};
use crate::pull::{Grant, Pull};
use mainspring_kernel::command::{CommitEffect, Complete, Fail, Heartbeat, Release};
use mainspring_kernel::job::{self, LeaseToken, ProgressNote};
use mainspring_kernel::limits::{LEASE_MS_MAX, PULL_MAX, WAIT_MS_MAX};
use mainspring_kernel::name::BadName;
use mainspring_kernel::rejection::Class;
use mainspring_kernel::{
    Command, JobId, JobType, Payload, QueueName, Receipt, Rejection, TenantId, WorkerId,
};
use mainspring_store::Error;
use mainspring_worker as worker;
use mainspring_worker::{
    About, Answer, Beat, Employer, Job, Json, Recorded, Refusal, Renewal, Report, Reported, Said,
    Sign, Time, Wish,
};
use std::sync::Arc;
use std::time::Duration;

/// An engine as an employer.
#[derive(Clone)]
pub struct Inside {
    engine: Engine,
    /// Whose jobs are handed out; everybody's in turn if `None`.
    tenant: Option<TenantId>,
}

impl Inside {
    /// Hands out jobs of all tenants, in turn.
    pub fn new(engine: Engine) -> Self {
        Inside { engine, tenant: None }
    }

    /// Hands out jobs of one tenant only.
    #[must_use]
    pub fn of_tenant(mut self, tenant: TenantId) -> Self {
        self.tenant = Some(tenant);
        self
    }

    fn pull_of(&self, wish: &Wish) -> Result<Pull, worker::Error> {
        Ok(Pull {
            tenant: self.tenant.clone(),
            worker: WorkerId::new(&wish.worker_id).map_err(bad_name)?,
            token: None,
            types: Some(names(&wish.types, JobType::new)?),
            queues: wish.queues.as_ref().map(|it| names(it, QueueName::new)).transpose()?,
            limit: wish.limit.clamp(1, PULL_MAX),
            wait: wish.wait.min(Duration::from_millis(WAIT_MS_MAX)),
            lease_ms: millis(wish.lease),
            governed: None,
        })
    }

    /// What was granted, as a worker gets it. A payload that is not JSON could never be worked on:
    /// such a job fails here, for good, instead of coming back for ever.
    async fn handed_out(&self, mut grants: Vec<Grant>) -> Vec<Job> {
        if let Err(error) = self.engine.bring_checkpoints(&mut grants).await {
            tracing::warn!(%error, "jobs are given back: what was left for them cannot be read");
            return Vec::new();
        }
        let mut jobs = Vec::with_capacity(grants.len());
        let mut hopeless = Vec::new();
        for grant in &grants {
            match (job_of(grant), grant.job.lease()) {
                (Some(job), _) => jobs.push(job),
                (None, Some(lease)) => hopeless.push(Command::Fail(Fail {
                    job: grant.job.id,
                    token: lease.token(),
                    failure: job::Failure {
                        code: "PAYLOAD_INVALID".into(),
                        message: "the payload is not JSON".into(),
                        retryable: false,
                    },
                    retry_delay_ms: None,
                    result: None,
                    snooze_ms: None,
                })),
                (None, None) => {}
            }
        }
        if !hopeless.is_empty()
            && let Err(error) = self.engine.execute(hopeless).await
        {
            tracing::warn!(%error, "jobs whose payload is not JSON could not be failed");
        }
        jobs
    }

    async fn beat(&self, beat: &Beat) -> Result<Vec<Renewal>, worker::Error> {
        let worker = WorkerId::new(&beat.worker_id).map_err(bad_name)?;
        let lease_ms = millis(beat.lease);
        let signs: Vec<Option<Command>> =
            beat.signs.iter().map(|sign| heartbeat(sign, lease_ms)).collect();
        let known = signs.iter().map(Option::is_some).collect::<Vec<_>>();
        let commands: Vec<Command> = signs.into_iter().flatten().collect();
        let outcomes = match commands.is_empty() {
            true => Vec::new(),
            false => self.engine.execute(commands).await.map_err(store_failed)?,
        };
        let mut outcomes = outcomes.into_iter();
        let renewals: Vec<Renewal> = known
            .into_iter()
            .map(|is_known| match is_known.then(|| outcomes.next()).flatten() {
                Some(Ok(Receipt::Renewed { .. })) => Renewal::Renewed,
                Some(Ok(Receipt::CancelledMeanwhile)) => Renewal::Cancelled,
                // Any other answer, or none, renews nothing.
                Some(Ok(_) | Err(_)) | None => Renewal::Lost,
            })
            .collect();
        if renewals.contains(&Renewal::Renewed) {
            self.engine.worker_seen(&worker);
        }
        Ok(renewals)
    }

    async fn take(
        &self,
        reports: &[Report],
        wish: Option<Wish>,
    ) -> Result<Reported, worker::Error> {
        let pull = wish.as_ref().map(|wish| self.pull_of(wish)).transpose()?;
        let commands: Vec<Option<Command>> = reports.iter().map(command).collect();
        let known = commands.iter().map(Option::is_some).collect::<Vec<_>>();
        let commands: Vec<Command> = commands.into_iter().flatten().collect();
        let reply = match commands.is_empty() && pull.is_none() {
            true => Reply::default(),
            false => self.engine.work(commands, pull).await.map_err(store_failed)?,
        };
        let mut outcomes = reply.outcomes.into_iter();
        let items = known.into_iter().map(|is_known| {
            let outcome = match is_known {
                true => outcomes.next().unwrap_or(Err(Rejection::LeaseLost)),
                // Text that is no id or token names no lease at all.
                false => Err(Rejection::LeaseLost),
            };
            outcome.map(|_| ()).map_err(|rejection| Refusal {
                code: rejection.code().to_owned(),
                message: rejection.to_string(),
            })
        });
        Ok(Reported { items: items.collect(), jobs: self.handed_out(reply.grants).await })
    }

    async fn recall(&self, job: &Job, name: &str) -> Result<Option<Json>, worker::Error> {
        let (id, token) = attempt(&job.job_id, &job.lease_token).ok_or_else(lost)?;
        let found = self.engine.job(id).await.map_err(store_failed)?;
        let lease = found.as_ref().and_then(|found| found.job.lease());
        let holds = lease.is_some_and(|it| it.token() == token && it.is_live(self.engine.now()));
        if !holds {
            return Err(lost());
        }
        let effect = self.engine.effect(id, name).await.map_err(store_failed)?;
        effect.map(|effect| json(&effect.value)).transpose()
    }

    async fn commit(&self, job: &Job, name: &str, value: &Json) -> Result<Recorded, worker::Error> {
        let (job, token) = attempt(&job.job_id, &job.lease_token).ok_or_else(lost)?;
        let value = Payload::from(value.get());
        let command = Command::CommitEffect(CommitEffect { job, token, name: name.into(), value });
        match self.engine.execute_one(command).await.map_err(store_failed)? {
            Ok(Receipt::Effect { value, is_first }) => {
                Ok(Recorded { value: json(&value)?, is_first })
            }
            Ok(_) => Err(worker::Error::Garbled { call: "record", reason: "is no effect" }),
            Err(rejection) => Err(refused(&rejection)),
        }
    }
}

impl Employer for Inside {
    fn pull(&self, wish: Wish) -> Answer<'_, Vec<Job>> {
        Box::pin(async move {
            let grants = match self.engine.pull(self.pull_of(&wish)?).await {
                Ok(grants) => grants,
                // It says nothing about any job, and a worker that went for good would be missed.
                Err(error @ (Error::Broken(_) | Error::Unreadable(_) | Error::Refused(_))) => {
                    return Err(not_now(error));
                }
                Err(error) => return Err(store_failed(error)),
            };
            Ok(self.handed_out(grants).await)
        })
    }

    fn heartbeat<'a>(&'a self, beat: &'a Beat) -> Answer<'a, Vec<Renewal>> {
        Box::pin(self.beat(beat))
    }

    fn report<'a>(&'a self, reports: &'a [Report], wish: Option<Wish>) -> Answer<'a, Reported> {
        Box::pin(self.take(reports, wish))
    }

    fn effect<'a>(&'a self, job: &'a Job, name: &'a str) -> Answer<'a, Option<Json>> {
        Box::pin(self.recall(job, name))
    }

    fn record<'a>(&'a self, job: &'a Job, name: &'a str, value: Json) -> Answer<'a, Recorded> {
        Box::pin(async move { self.commit(job, name, &value).await })
    }

    fn leave<'a>(&'a self, worker_id: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let worker = WorkerId::new(worker_id).map_err(bad_name)?;
            self.engine.leave(self.tenant.clone(), worker);
            Ok(())
        })
    }
}

fn names<T>(
    texts: &[String],
    make: impl Fn(&str) -> Result<T, BadName>,
) -> Result<Arc<[T]>, worker::Error> {
    texts.iter().map(|text| make(text).map_err(bad_name)).collect()
}

fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX).min(LEASE_MS_MAX)
}

fn job_of(grant: &Grant) -> Option<Job> {
    let job = &grant.job;
    let lease = job.lease()?;
    let labels = job.extras.as_ref().map_or(&[][..], |extras| &extras.labels);
    Some(Job {
        job_id: job.id.to_string(),
        job_type: job.job_type.as_str().to_owned(),
        payload: json(&job.payload).ok()?,
        attempt: job.attempt(),
        retry_count: job.retry_count,
        lease_token: lease.token().to_string(),
        lease_expires_at: Time(lease.expires_at.0),
        deadline_at: Time(lease.deadline_at.0),
        time_allowed: lease.deadline_at.since(lease.granted_at),
        execution_key: job.execution_key(),
        trace_id: job.trace_id(),
        traceparent: job.traceparent().map(str::to_owned),
        labels: labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        checkpoint: match job.course().and_then(|course| course.checkpoint.as_ref()) {
            Some(value) => Some(json(value).ok()?),
            None => None,
        },
    })
}

/// Kept text as JSON; it was written as JSON.
fn json(text: &str) -> Result<Json, worker::Error> {
    serde_json::value::RawValue::from_string(text.to_owned())
        .map_err(|_| worker::Error::Garbled { call: "effect", reason: "is not JSON" })
}

fn attempt(job: &str, token: &str) -> Option<(JobId, LeaseToken)> {
    Some((job.parse().ok()?, token.parse().ok()?))
}

fn command(report: &Report) -> Option<Command> {
    let (job, token) = attempt(&report.job_id, &report.lease_token)?;
    Some(match &report.said {
        Said::Complete(result) => {
            let result = result.as_ref().map(|result| Payload::from(result.get()));
            Command::Complete(Complete { job, token, result })
        }
        Said::Fail(failure) => {
            let snoozed = failure.snoozed_for().is_some();
            let delay = failure.retry_delay.map(|it| u64::try_from(it.as_millis()));
            let failure = job::Failure {
                code: failure.code.as_str().into(),
                message: failure.message.as_str().into(),
                retryable: failure.retryable,
            };
            let retry_delay_ms = delay.map(|delay| delay.unwrap_or(u64::MAX));
            let snooze_ms = retry_delay_ms.filter(|_| snoozed);
            Command::Fail(Fail { job, token, failure, retry_delay_ms, result: None, snooze_ms })
        }
        Said::Release(reason) => {
            Command::Release(Release { job, token, reason: Some(reason.as_str().into()) })
        }
        Said::HandOver(lease) => Command::Heartbeat(Heartbeat {
            job,
            token,
            lease_ms: millis(*lease),
            progress_pct: None,
            note: None,
        }),
    })
}

fn heartbeat(sign: &Sign, lease_ms: u32) -> Option<Command> {
    let (job, token) = attempt(&sign.job_id, &sign.lease_token)?;
    let progress_pct = sign.progress.map(|progress| progress.clamp(0.0, 100.0) as u8);
    let message = sign.message.as_deref().map(Into::into);
    let checkpoint = sign.checkpoint.as_ref().map(|value| Payload::from(value.get()));
    let has_note = message.is_some() || checkpoint.is_some();
    let note = has_note.then(|| Box::new(ProgressNote { message, checkpoint }));
    Some(Command::Heartbeat(Heartbeat { job, token, lease_ms, progress_pct, note }))
}

fn bad_name(bad: BadName) -> worker::Error {
    let code = Some("REQ_VALIDATION_FAILED".to_owned());
    worker::Error::Refused { code, about: About::Else, cause: Box::new(bad) }
}

fn lost() -> worker::Error {
    refused(&Rejection::LeaseLost)
}

fn refused(rejection: &Rejection) -> worker::Error {
    let about = match rejection.class() {
        Class::Validation | Class::Approval => About::Content,
        Class::Unknown
        | Class::Conflict
        | Class::Lease
        | Class::Share
        | Class::Room
        | Class::Damage => About::Else,
    };
    let code = Some(rejection.code().to_owned());
    worker::Error::Refused { code, about, cause: rejection.to_string().into() }
}

fn not_now(error: Error) -> worker::Error {
    worker::Error::NotNow { wait: None, cause: Box::new(error) }
}

/// What a failing store means for the caller.
fn store_failed(error: Error) -> worker::Error {
    let refused = |code: &str, about: About, error: Error| {
        let code = Some(code.to_owned());
        worker::Error::Refused { code, about, cause: Box::new(error) }
    };
    match error {
        Error::Stopped => worker::Error::Gone { cause: Box::new(error) },
        Error::NoRoom | Error::Busy | Error::Away(_) | Error::Failed(_) => not_now(error),
        Error::Refused(_) => refused("STORE_REFUSED", About::Content, error),
        Error::Broken(_) => refused("INTERNAL_ERROR", About::Else, error),
        Error::Unreadable(_) => refused("JOB_UNREADABLE", About::Else, error),
    }
}
