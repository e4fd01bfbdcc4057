//! The server as the employer of a worker loop, over HTTP. Everything that comes back is compared
//! with what was asked, item by item: the loop only counts them.

use crate::client::Client;
use crate::error::Error;
use mainspring_api::ErrorCode;
use mainspring_api::work::{
    BeatenItem, Complete, CompleteItem, Fail, FailItem, Heartbeat, HeartbeatItem, Progress,
    ProgressTold, Pull, PulledJob, Release, ReleaseItem, ReportedItem,
};
use mainspring_worker as loops;
use mainspring_worker::{
    About, Answer, Beat, Employer, Job, Json, Kind, Recorded, Refusal, Renewal, Report, Reported,
    Said, Sign, Wish,
};
use std::time::Duration;

/// The server at the other end of a client, as an employer.
#[derive(Debug, Clone)]
pub struct OverHttp {
    client: Client,
}

impl OverHttp {
    /// The server of this client.
    pub fn new(client: Client) -> Self {
        OverHttp { client }
    }
}

impl Employer for OverHttp {
    fn pull(&self, wish: Wish) -> Answer<'_, Vec<Job>> {
        Box::pin(async move {
            let pulled = self.client.pull(&pull(&wish)).await?;
            Ok(pulled.jobs.into_iter().map(|job| job_of(job, wish.lease)).collect())
        })
    }

    fn heartbeat<'a>(&'a self, beat: &'a Beat) -> Answer<'a, Vec<Renewal>> {
        Box::pin(async move {
            let items = beat.signs.iter().map(|sign| HeartbeatItem {
                job_id: sign.job_id.clone(),
                lease_token: sign.lease_token.clone(),
                progress: progress(sign),
            });
            let heartbeat = Heartbeat {
                worker_id: beat.worker_id.to_string(),
                lease_ms: Some(millis(beat.lease)),
                items: items.collect(),
            };
            let beaten = self.client.heartbeat(&heartbeat).await?.items;
            let asked = beat.signs.iter().map(|sign| &*sign.job_id);
            same_jobs("heartbeat", asked, beaten.iter().map(|item| &*item.job_id))?;
            Ok(beaten.iter().map(renewal).collect())
        })
    }

    fn report<'a>(&'a self, reports: &'a [Report], wish: Option<Wish>) -> Answer<'a, Reported> {
        Box::pin(async move {
            let lease = wish.as_ref().map_or(Duration::ZERO, |wish| wish.lease);
            let answer = send(&self.client, reports, wish.as_ref().map(pull)).await?;
            let asked = reports.iter().map(|report| &*report.job_id);
            same_jobs("report", asked, answer.items.iter().map(|item| &*item.job_id))?;
            let jobs = answer.jobs.unwrap_or_default();
            Ok(Reported {
                items: answer.items.into_iter().map(taken).collect(),
                jobs: jobs.into_iter().map(|job| job_of(job, lease)).collect(),
            })
        })
    }

    fn effect<'a>(&'a self, job: &'a Job, name: &'a str) -> Answer<'a, Option<Json>> {
        Box::pin(async move {
            let found = self.client.effect_once(&job.job_id, name, &job.lease_token).await?;
            Ok(found.map(|effect| effect.value))
        })
    }

    fn record<'a>(&'a self, job: &'a Job, name: &'a str, value: Json) -> Answer<'a, Recorded> {
        Box::pin(async move {
            let Job { job_id, lease_token, .. } = job;
            let effect = self.client.commit_effect_once(job_id, name, lease_token, value).await?;
            Ok(Recorded { value: effect.value, is_first: effect.is_first })
        })
    }

    fn leave<'a>(&'a self, worker_id: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            self.client.leave(worker_id).await?;
            Ok(())
        })
    }
}

fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

fn pull(wish: &Wish) -> Pull {
    Pull {
        worker_id: wish.worker_id.to_string(),
        types: Some(wish.types.to_vec()),
        queues: wish.queues.as_ref().map(|queues| queues.to_vec()),
        limit: Some(u32::try_from(wish.limit).unwrap_or(u32::MAX)),
        wait_ms: Some(u64::from(millis(wish.wait))),
        lease_ms: Some(millis(wish.lease)),
    }
}

fn job_of(job: PulledJob, lease: Duration) -> Job {
    let PulledJob {
        job_id,
        job_type,
        payload,
        attempt,
        retry_count,
        lease_token,
        lease_expires_at,
        deadline_at,
        execution_key,
        trace_id,
        traceparent,
        labels,
        checkpoint,
    } = job;
    // The server's clock may differ from ours, so only the difference of two of its own instants
    // counts: the deadline, and the grant, which is one lease before the lease's end.
    let lease = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
    let granted_at = lease_expires_at.0.saturating_sub(lease);
    let allowed = u64::try_from(deadline_at.0.saturating_sub(granted_at)).unwrap_or(0);
    Job {
        job_id,
        job_type,
        payload,
        attempt,
        retry_count,
        lease_token,
        lease_expires_at,
        deadline_at,
        time_allowed: Duration::from_micros(allowed),
        execution_key,
        trace_id,
        traceparent,
        labels,
        checkpoint,
    }
}

/// What a sign says of the progress: a number, unless there is more to say.
fn progress(sign: &Sign) -> Option<Progress> {
    if sign.message.is_none() && sign.checkpoint.is_none() {
        return sign.progress.map(Progress::Percent);
    }
    let checkpoint = sign.checkpoint.as_ref().and_then(|it| serde_json::from_str(it.get()).ok());
    let message = sign.message.clone();
    Some(Progress::Told(ProgressTold { percent: sign.progress, message, checkpoint }))
}

fn renewal(item: &BeatenItem) -> Renewal {
    match item {
        BeatenItem { cancelled: true, .. } => Renewal::Cancelled,
        BeatenItem { lost: true, .. } => Renewal::Lost,
        BeatenItem { lease_expires_at: Some(_), .. } => Renewal::Renewed,
        BeatenItem { lease_expires_at: None, .. } => Renewal::Unknown,
    }
}

fn taken(item: ReportedItem) -> Result<(), Refusal> {
    match item.error {
        Some(error) => Err(Refusal { code: error.code, message: error.message }),
        None => Ok(()),
    }
}

/// Whether an answer is about the jobs that were asked about, in order. An item that the server
/// could not read has no job.
fn same_jobs<'a>(
    call: &'static str,
    mut asked: impl Iterator<Item = &'a str>,
    mut told: impl Iterator<Item = &'a str>,
) -> Result<(), loops::Error> {
    let reason = "is about other jobs than it should be";
    loop {
        match (asked.next(), told.next()) {
            (None, None) => return Ok(()),
            (Some(asked), Some(told)) if asked == told || told.is_empty() => {}
            _ => return Err(loops::Error::Garbled { call, reason }),
        }
    }
}

async fn send(
    client: &Client,
    reports: &[Report],
    pull: Option<Pull>,
) -> Result<mainspring_api::work::Reported, Error> {
    match reports.first().map(Report::kind) {
        Some(Kind::Complete) | None => {
            let items = reports.iter().filter_map(complete_item).collect();
            client.complete(&Complete { items, pull }).await
        }
        Some(Kind::Fail) => {
            let items = reports.iter().filter_map(fail_item).collect();
            client.fail(&Fail { items, pull }).await
        }
        Some(Kind::Release) => {
            let items = reports.iter().filter_map(release_item).collect();
            client.release(&Release { items, pull }).await
        }
        Some(Kind::HandOver) => hand_over(client, reports, pull).await,
    }
}

/// Leases that are to hold for others: renewed for as long as the longest of them may take. No
/// renewal outlives its own attempt. What comes next is asked for by the next poll.
async fn hand_over(
    client: &Client,
    reports: &[Report],
    pull: Option<Pull>,
) -> Result<mainspring_api::work::Reported, Error> {
    let lease = |report: &Report| match report.said {
        Said::HandOver(lease) => lease,
        Said::Complete(_) | Said::Fail(_) | Said::Release(_) => Duration::ZERO,
    };
    let items = reports.iter().map(|report| HeartbeatItem {
        job_id: report.job_id.clone(),
        lease_token: report.lease_token.clone(),
        progress: None,
    });
    let beat = Heartbeat {
        worker_id: pull.map_or_else(|| "hand-over".to_owned(), |pull| pull.worker_id),
        lease_ms: reports.iter().map(lease).max().map(millis),
        items: items.collect(),
    };
    let beaten = client.heartbeat(&beat).await?.items;
    let items = beaten.into_iter().map(|item| {
        let error = item.lost.then(|| ErrorCode {
            code: "LEASE_LOST".to_owned(),
            message: "the lease is no longer this worker's".to_owned(),
        });
        ReportedItem { job_id: item.job_id, status: None, error }
    });
    Ok(mainspring_api::work::Reported { items: items.collect(), jobs: None })
}

fn complete_item(report: &Report) -> Option<CompleteItem> {
    let Said::Complete(result) = &report.said else { return None };
    Some(CompleteItem {
        job_id: report.job_id.clone(),
        lease_token: report.lease_token.clone(),
        result: result.clone(),
    })
}

fn fail_item(report: &Report) -> Option<FailItem> {
    let Said::Fail(failure) = &report.said else { return None };
    let snooze_ms = failure.snoozed_for().map(|delay| u64::from(millis(delay)));
    let delay = failure.retry_delay.filter(|_| snooze_ms.is_none());
    let delay = delay.map(|delay| u64::from(millis(delay)));
    Some(FailItem {
        job_id: report.job_id.clone(),
        lease_token: report.lease_token.clone(),
        error_code: Some(failure.code.clone()),
        message: Some(failure.message.clone()),
        retryable: Some(failure.retryable),
        retry_delay_ms: delay,
        snooze_ms,
        result: None,
    })
}

fn release_item(report: &Report) -> Option<ReleaseItem> {
    let Said::Release(reason) = &report.said else { return None };
    Some(ReleaseItem {
        job_id: report.job_id.clone(),
        lease_token: report.lease_token.clone(),
        reason: Some(reason.clone()),
    })
}

impl From<Error> for loops::Error {
    fn from(error: Error) -> Self {
        if error.is_retryable() {
            return loops::Error::NotNow { wait: error.retry_after(), cause: Box::new(error) };
        }
        let about = match error.status() {
            Some(400 | 413 | 422) => About::Content,
            Some(_) | None => About::Else,
        };
        let code = error.code().map(ToOwned::to_owned);
        loops::Error::Refused { code, about, cause: Box::new(error) }
    }
}

impl From<loops::Error> for Error {
    fn from(error: loops::Error) -> Self {
        let unreadable = |reason: String| Error::Unreadable {
            call: "the worker's employer".into(),
            status: 0,
            reason,
        };
        match error.into_cause() {
            Ok(cause) => match cause.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => unreadable(other.to_string()),
            },
            Err(of_the_loop) => unreadable(of_the_loop.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
