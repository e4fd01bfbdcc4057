//! What is said to the server about finished attempts. A report is repeated until it is accepted or
//! refused: the server answers a repeat like the first time, so a lost answer loses nothing. The
//! pull that rides along is sent once only, because a lost answer may hold jobs.

use super::Setup;
use crate::client::pause;
use crate::error::Error;
use crate::handler::{Failure, Outcome};
use mainspring_api::Json;
use mainspring_api::work::{
    Complete, CompleteItem, Fail, FailItem, Pull, PulledJob, Release, ReleaseItem, Reported,
};
use serde::Serialize;
use tokio::time::Instant;

/// Largest result, in bytes of JSON text.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Longest message that is sent; the server keeps no more.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// The last word on one attempt.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) job_id: String,
    pub(super) lease_token: String,
    pub(super) said: Said,
}

/// What is said.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Complete(Option<Json>),
    Fail(Failure),
    Release(String),
}

/// The three kinds of report; each goes to its own route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Complete,
    Fail,
    Release,
}

impl Said {
    pub(super) fn of(outcome: Outcome) -> Self {
        match outcome {
            Ok(result) => Said::Complete(result),
            Err(failure) if failure.is_release => Said::Release(failure.message),
            Err(failure) => Said::Fail(failure),
        }
    }
}

impl Report {
    pub(super) fn kind(&self) -> Kind {
        match self.said {
            Said::Complete(_) => Kind::Complete,
            Said::Fail(_) => Kind::Fail,
            Said::Release(_) => Kind::Release,
        }
    }

    /// Bytes this report adds to a request, roughly.
    pub(super) fn weight(&self) -> usize {
        match &self.said {
            Said::Complete(Some(result)) => result.get().len(),
            Said::Complete(None) | Said::Fail(_) | Said::Release(_) => 256,
        }
    }
}

/// A handler's answer as the result of a job; `null` is no result.
pub(super) fn result_of<T: Serialize>(value: &T) -> Outcome {
    let raw = serde_json::value::to_raw_value(value)
        .map_err(|error| Failure::permanent("RESULT_INVALID", error.to_string()))?;
    if raw.get().len() > RESULT_BYTES_MAX {
        return Err(Failure::permanent("RESULT_TOO_LARGE", "the result is over 1 MiB of JSON"));
    }
    Ok((raw.get() != "null").then_some(raw))
}

/// What came of a batch of reports of one kind.
pub(super) struct Told {
    pub(super) reports: Vec<Report>,
    /// One error per report that was refused; `Err` if the whole call was.
    pub(super) result: Result<Vec<Option<String>>, Error>,
    /// The jobs of the pull.
    pub(super) jobs: Vec<PulledJob>,
    /// Slots that were kept for them.
    pub(super) reserved: usize,
}

/// Sends reports of one kind until they are accepted or refused, or `give_up` has come.
pub(super) async fn tell(
    setup: &Setup,
    reports: Vec<Report>,
    limit: usize,
    give_up: impl Fn() -> Option<Instant>,
) -> Told {
    let mut pull = (limit > 0).then(|| setup.pull(limit, std::time::Duration::ZERO));
    let mut tries = 0;
    loop {
        match send(setup, &reports, pull.take()).await {
            Ok(answer) => {
                let refusals = answer.items.into_iter().map(|item| {
                    item.error.map(|error| format!("{}: {}", error.code, error.message))
                });
                let result = Ok(refusals.collect());
                let jobs = answer.jobs.unwrap_or_default();
                return Told { reports, result, jobs, reserved: limit };
            }
            Err(error) => {
                tries += 1;
                let is_over = give_up().is_some_and(|end| Instant::now() >= end);
                if !error.is_retryable() || is_over {
                    return Told { reports, result: Err(error), jobs: vec![], reserved: limit };
                }
                tracing::warn!(%error, tries, "a report could not be delivered; trying again");
                tokio::time::sleep(pause(tries, &error)).await;
            }
        }
    }
}

async fn send(setup: &Setup, reports: &[Report], pull: Option<Pull>) -> Result<Reported, Error> {
    let client = &setup.client;
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
    }
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
    let delay = failure.retry_delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(0));
    Some(FailItem {
        job_id: report.job_id.clone(),
        lease_token: report.lease_token.clone(),
        error_code: Some(failure.code.clone()),
        message: Some(cut(&failure.message)),
        retryable: Some(failure.retryable),
        retry_delay_ms: delay,
    })
}

fn release_item(report: &Report) -> Option<ReleaseItem> {
    let Said::Release(reason) = &report.said else { return None };
    Some(ReleaseItem {
        job_id: report.job_id.clone(),
        lease_token: report.lease_token.clone(),
        reason: Some(cut(reason)),
    })
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
