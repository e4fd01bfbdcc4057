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

/// The code of a failure whose own words the server refused.
const REPORT_REFUSED: &str = "REPORT_REFUSED";

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

    /// What to say instead of a report that the server refused for what it says, if there is
    /// something left to say.
    fn instead(&self, why: &str) -> Option<Report> {
        let failure = match &self.said {
            Said::Complete(_) => Failure::permanent("RESULT_REFUSED", why),
            Said::Fail(failure) if failure.code != REPORT_REFUSED => {
                Failure { code: REPORT_REFUSED.into(), message: why.into(), ..failure.clone() }
            }
            Said::Fail(_) | Said::Release(_) => return None,
        };
        Some(Report { said: Said::Fail(failure), ..self.clone() })
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
    /// The reports as they were last sent, each with why it was refused, if it was.
    pub(super) reports: Vec<(Report, Option<String>)>,
    /// The jobs of the pull.
    pub(super) jobs: Vec<PulledJob>,
    /// Slots that were kept for them.
    pub(super) reserved: usize,
}

/// Sends reports of one kind until they are accepted or refused, or `give_up` has come.
///
/// If the server refuses a request as a whole, its halves are sent apart, so that one report never
/// spoils its neighbours. A report that it refuses for what it says (a result too deep, a repeated
/// key) becomes a failure that says so: the attempt must not end as a lost lease.
pub(super) async fn tell(
    setup: &Setup,
    reports: Vec<Report>,
    limit: usize,
    give_up: impl Fn() -> Option<Instant>,
) -> Told {
    let mut pull = (limit > 0).then(|| setup.pull(limit, std::time::Duration::ZERO));
    let mut told =
        Told { reports: Vec::with_capacity(reports.len()), jobs: vec![], reserved: limit };
    let mut parts = vec![reports];
    while let Some(mut part) = parts.pop() {
        match deliver(setup, &part, &mut pull, &give_up).await {
            Ok(answer) => {
                told.jobs.extend(answer.jobs.unwrap_or_default());
                let mut errors = answer.items.into_iter().map(|item| item.error);
                for report in part {
                    let error = errors.next().flatten();
                    let why = error.as_ref().map(|e| format!("{}: {}", e.code, e.message));
                    let is_about_lease =
                        error.is_some_and(|error| ABOUT_LEASE.contains(&&*error.code));
                    match why
                        .as_deref()
                        .filter(|_| !is_about_lease)
                        .and_then(|why| report.instead(why))
                    {
                        Some(instead) => parts.push(vec![instead]),
                        None => told.reports.push((report, why)),
                    }
                }
            }
            Err(Undelivered::Refused(_)) if part.len() > 1 => {
                let later = part.split_off(part.len() / 2);
                parts.extend([later, part]);
            }
            Err(Undelivered::Refused(error)) => {
                let why = error.to_string();
                for report in part {
                    match report.instead(&why).filter(|_| is_about_content(&error)) {
                        Some(instead) => parts.push(vec![instead]),
                        None => told.reports.push((report, Some(why.clone()))),
                    }
                }
            }
            Err(Undelivered::GivenUp(error)) => {
                let why = error.to_string();
                let all = part.into_iter().chain(parts.drain(..).flatten());
                told.reports.extend(all.map(|report| (report, Some(why.clone()))));
            }
        }
    }
    told
}

/// Codes of refusals that are about the lease, not about what was said.
const ABOUT_LEASE: [&str; 2] = ["LEASE_LOST", "REPORT_CONFLICT"];

fn is_about_content(error: &Error) -> bool {
    matches!(error.status(), Some(400 | 413 | 422))
}

enum Undelivered {
    /// The server said no, and would say so again.
    Refused(Error),
    /// It could not be reached in time.
    GivenUp(Error),
}

async fn deliver(
    setup: &Setup,
    reports: &[Report],
    pull: &mut Option<Pull>,
    give_up: &impl Fn() -> Option<Instant>,
) -> Result<Reported, Undelivered> {
    let mut tries = 0;
    loop {
        let error = match send(setup, reports, pull.take()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if !error.is_retryable() {
            return Err(Undelivered::Refused(error));
        }
        tries += 1;
        if give_up().is_some_and(|end| Instant::now() >= end) {
            return Err(Undelivered::GivenUp(error));
        }
        tracing::warn!(%error, tries, "a report could not be delivered; trying again");
        tokio::time::sleep(pause(tries, &error)).await;
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
        result: None,
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
