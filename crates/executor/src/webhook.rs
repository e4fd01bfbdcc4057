//! Mode `webhook`: a job goes out as one signed request. The answer is the result, or says that the
//! report comes later: then the receiver has the lease token, and reports like any worker.
//!
//! A URL is somebody's wish, not a fact about our network: `address.rs` resolves it once and
//! refuses what is ours, `exchange.rs` connects to exactly what was found, and follows no redirect.
//! `signature.rs` says who we are, by Standard Webhooks.

mod address;
mod exchange;
mod postbox;
mod signature;

pub(crate) use exchange::Exchange;
pub(crate) use postbox::{Letter, Postbox, Undelivered};
pub use signature::{BadSecret, Secret};

use crate::failing::{DISPATCH_FAILED, EXECUTION_FAILED, OUTPUT_TOO_LARGE, result, told_by};
use crate::limits::OUTPUT_BYTES_MAX;
use address::{Allowed, Target};
use exchange::{Answer, Broken};
use mainspring_kernel::executor::Webhook;
use mainspring_worker::{Context, Failure, Job, Json, Outcome, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How requests are sent.
#[derive(Clone)]
pub(crate) struct Webhooks {
    /// What requests are signed with; all of them, so that receivers can change from one to
    /// another.
    pub(crate) secrets: Vec<Secret>,
    /// Whether addresses of our own network may be called.
    pub(crate) allows_private: bool,
    /// The seconds since 1970.
    pub(crate) now: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Connections as they are made.
    pub(crate) exchange: Exchange,
}

impl Webhooks {
    pub(crate) fn new(
        secrets: Vec<Secret>,
        allows_private: bool,
        now: Arc<dyn Fn() -> i64 + Send + Sync>,
    ) -> Self {
        Webhooks { secrets, allows_private, now, exchange: Exchange::default() }
    }

    /// Sends the job of `ctx` and judges the answer.
    pub(crate) async fn work(&self, ctx: &Context, webhook: &Webhook) -> Outcome {
        let patience = Duration::from_millis(u64::from(webhook.timeout_ms));
        tokio::select! {
            // The loop knows why and reports accordingly.
            () = ctx.stopped() => Err(Failure::release("the request was given up")),
            outcome = tokio::time::timeout(patience, self.send(ctx.job(), &webhook.url)) => {
                outcome.unwrap_or_else(|_| {
                    let message = format!("no answer within {} ms", webhook.timeout_ms);
                    Err(Failure::retryable(DISPATCH_FAILED, message))
                })
            }
        }
    }

    async fn send(&self, job: &Job, url: &str) -> Outcome {
        if self.secrets.is_empty() {
            let message = "this server has no secret to sign requests with";
            return Err(Failure::permanent(DISPATCH_FAILED, message));
        }
        let never = |why: String| Failure::permanent(DISPATCH_FAILED, why);
        let target = Target::of(url).map_err(never)?;
        let allowed = match self.allows_private {
            true => Allowed::Any,
            false => Allowed::Public,
        };
        let addresses = target.addresses(allowed).await?;
        let body = body_of(job).map_err(|error| never(error.to_string()))?;
        let (id, at) = (&*job.execution_key, (self.now)());
        let signature = signature::header(&self.secrets, id, at, &body);
        let mut headers = vec![
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", at.to_string()),
            ("webhook-signature", signature),
            ("x-trace-id", job.trace_id.clone()),
        ];
        headers.extend(job.traceparent.clone().map(|value| ("traceparent", value)));
        match self.exchange.post(&target, &addresses, &headers, body).await {
            Ok(answer) => judge(answer),
            Err(Broken::TooLarge) => {
                let message = format!("the answer is over {OUTPUT_BYTES_MAX} bytes");
                Err(Failure::permanent(OUTPUT_TOO_LARGE, message))
            }
            Err(Broken::Failed(why)) => Err(Failure::retryable(DISPATCH_FAILED, why)),
        }
    }
}

/// What a receiver is told of a job.
#[derive(Serialize)]
struct Dispatch<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    job_id: &'a str,
    job_type: &'a str,
    attempt: u32,
    retry_count: u16,
    execution_key: &'a str,
    dispatch_id: String,
    lease_token: &'a str,
    deadline_at: Time,
    trace_id: &'a str,
    labels: &'a BTreeMap<String, String>,
    payload: &'a Json,
}

fn body_of(job: &Job) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Dispatch {
        kind: "job.dispatch",
        job_id: &job.job_id,
        job_type: &job.job_type,
        attempt: job.attempt,
        retry_count: job.retry_count,
        execution_key: &job.execution_key,
        dispatch_id: job.dispatch_id(),
        lease_token: &job.lease_token,
        deadline_at: job.deadline_at,
        trace_id: &job.trace_id,
        labels: &job.labels,
        payload: &job.payload,
    })
}

/// What an answer means for the job.
fn judge(answer: Answer) -> Outcome {
    let Answer { status, retry_after, body } = answer;
    match status {
        202 => Err(Failure::handed_over()),
        200..=299 => Ok(result(&body)),
        300..=399 => {
            let message = format!("the receiver answered {status}; redirects are not followed");
            Err(Failure::permanent(DISPATCH_FAILED, message))
        }
        status => {
            let message = format!("the receiver answered {status}");
            // Too early, too late, too many: the receiver may be right another time. Any other
            // refusal is about the request, which would be the same.
            let may_pass = status >= 500 || matches!(status, 408 | 425 | 429);
            let failure = match may_pass {
                true => Failure::retryable(EXECUTION_FAILED, message),
                false => Failure::permanent(EXECUTION_FAILED, message),
            };
            Err(told_by(
                &body,
                match retry_after.filter(|_| may_pass) {
                    Some(wait) => failure.after(wait),
                    None => failure,
                },
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Outcome {
        judge(Answer { status, retry_after: Some(Duration::from_secs(7)), body: body.into() })
    }

    #[test]
    fn the_status_decides_about_the_next_try() {
        assert_eq!(answer(200, "{\"a\":1}").unwrap().unwrap().get(), "{\"a\":1}");
        assert!(answer(204, "").unwrap().is_none());
        assert_eq!(answer(202, "later").unwrap_err(), Failure::handed_over());
        for (status, code, may_pass) in [
            (301, DISPATCH_FAILED, false),
            (304, DISPATCH_FAILED, false),
            (400, EXECUTION_FAILED, false),
            (404, EXECUTION_FAILED, false),
            (408, EXECUTION_FAILED, true),
            (429, EXECUTION_FAILED, true),
            (500, EXECUTION_FAILED, true),
            (599, EXECUTION_FAILED, true),
        ] {
            let failure = answer(status, "").unwrap_err();
            assert_eq!((&*failure.code, failure.retryable), (code, may_pass), "{status}");
            assert_eq!(failure.retry_delay.is_some(), may_pass && status != 301, "{status}");
        }
        let told = answer(503, r#"{"error_code":"NO_PAPER","retryable":false}"#).unwrap_err();
        assert_eq!((&*told.code, told.retryable), ("NO_PAPER", false));
    }
}
