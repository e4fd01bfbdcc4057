//! What is said to the employer about finished attempts. A report is repeated until it is accepted
//! or refused: a repeat is answered like the first time, so a lost answer loses nothing. The wish
//! that rides along is sent once only, because a lost answer may hold jobs.

use crate::ask::{ask, pause};
use crate::context::Outcome;
use crate::employer::{Employer, Job, Refusal, Report, Reported, Said, Wish};
use crate::error::Error;
use crate::failure::{Failure, Meaning};
use crate::limits::{
    ANSWER_WAIT_MAX, CODE_BYTES_MAX, LEASE_MAX, MESSAGE_BYTES_MAX, REPORT_BYTES, RESULT_BYTES_MAX,
};
use serde::Serialize;
use std::time::Duration;

/// The code of a failure whose own words the employer refused.
const REPORT_REFUSED: &str = "REPORT_REFUSED";
/// Codes of refusals that are about the lease, not about what was said.
const ABOUT_LEASE: [&str; 2] = ["LEASE_LOST", "REPORT_CONFLICT"];

impl Said {
    /// What a handler's outcome says of an attempt that may take as long as `allowed`.
    pub(crate) fn of(outcome: Outcome, allowed: Duration) -> Self {
        match outcome {
            Ok(result) => Said::Complete(result),
            Err(failure) => match failure.meaning {
                Meaning::Released => Said::Release(cut(failure.message)),
                Meaning::HandedOver => Said::HandOver(allowed.min(LEASE_MAX)),
                Meaning::Failed | Meaning::Snoozed => Said::Fail(Failure {
                    code: cut_to(failure.code, CODE_BYTES_MAX),
                    message: cut(failure.message),
                    ..failure
                }),
            },
        }
    }
}

impl Report {
    /// What to say instead of a report that was refused for what it says, if there is something
    /// left to say.
    fn instead(&self, why: &str) -> Option<Report> {
        let failure = match &self.said {
            Said::Complete(_) => Failure::permanent("RESULT_REFUSED", cut(why.to_owned())),
            Said::Fail(failure) if failure.code != REPORT_REFUSED => Failure {
                code: REPORT_REFUSED.into(),
                message: cut(why.to_owned()),
                ..failure.clone()
            },
            Said::Fail(_) | Said::Release(_) | Said::HandOver(_) => return None,
        };
        Some(Report { said: Said::Fail(failure), ..self.clone() })
    }

    /// Bytes this report adds to a call, roughly.
    pub(crate) fn weight(&self) -> usize {
        let text = match &self.said {
            Said::Complete(result) => result.as_ref().map_or(0, |result| result.get().len()),
            Said::Fail(failure) => failure.code.len() + failure.message.len(),
            Said::Release(reason) => reason.len(),
            Said::HandOver(_) => 0,
        };
        REPORT_BYTES + text
    }
}

/// A handler's answer as the result of a job; `null` is no result.
pub(crate) fn result_of<T: Serialize>(value: &T) -> Outcome {
    let raw = serde_json::value::to_raw_value(value)
        .map_err(|error| Failure::permanent("RESULT_INVALID", error.to_string()))?;
    if raw.get().len() > RESULT_BYTES_MAX {
        return Err(Failure::permanent("RESULT_TOO_LARGE", "the result is over 1 MiB of JSON"));
    }
    Ok((raw.get() != "null").then_some(raw))
}

/// What came of a batch of reports of one kind.
pub(crate) struct Told {
    /// The reports as they were last sent, each with why it was refused, if it was.
    pub(crate) reports: Vec<(Report, Option<String>)>,
    /// What the wish brought.
    pub(crate) jobs: Vec<Job>,
    /// Slots that were kept for them.
    pub(crate) reserved: usize,
    /// Reports that were not delivered at the first try, to be repeated after this long: without
    /// the wish, so that no slot is kept for jobs that will not come.
    pub(crate) later: Option<(Vec<Report>, Duration)>,
}

/// Sends reports of one kind until they are accepted or refused.
///
/// If the employer refuses a call as a whole, its halves are sent apart, so that one report never
/// spoils its neighbours. A report that it refuses for what it says (a result too deep, a repeated
/// key) becomes a failure that says so: the attempt must not end as a lost lease.
pub(crate) async fn tell(
    employer: &dyn Employer,
    reports: Vec<Report>,
    mut wish: Option<Wish>,
) -> Told {
    let reserved = wish.as_ref().map_or(0, |wish| wish.limit);
    let with_capacity = Vec::with_capacity(reports.len());
    let mut told = Told { reports: with_capacity, jobs: vec![], reserved, later: None };
    let mut parts = vec![reports];
    while let Some(mut part) = parts.pop() {
        match deliver(employer, &part, &mut wish).await {
            Ok(answer) => {
                told.jobs.extend(answer.jobs);
                for (report, taken) in part.into_iter().zip(answer.items) {
                    let Err(refusal) = taken else {
                        told.reports.push((report, None));
                        continue;
                    };
                    let why = format!("{}: {}", refusal.code, refusal.message);
                    match other_words(&report, &refusal, &why) {
                        Some(instead) => parts.push(vec![instead]),
                        None => told.reports.push((report, Some(why))),
                    }
                }
            }
            Err(error) if error.is_retryable() => told.later = Some((part, pause(1, &error))),
            Err(_) if part.len() > 1 => {
                let later = part.split_off(part.len() / 2);
                parts.extend([later, part]);
            }
            Err(error) => {
                let why = error.to_string();
                for report in part {
                    match report.instead(&why).filter(|_| error.is_about_content()) {
                        Some(instead) => parts.push(vec![instead]),
                        None => told.reports.push((report, Some(why.clone()))),
                    }
                }
            }
        }
    }
    told
}

fn other_words(report: &Report, refusal: &Refusal, why: &str) -> Option<Report> {
    if ABOUT_LEASE.contains(&&*refusal.code) {
        return None;
    }
    report.instead(why)
}

/// Repeats the call until it is answered, unless it came with a wish: that is sent once. The loop
/// gives up on it when its own time is over.
///
/// # Errors
/// What would be said again if it were repeated, and whatever became of a wish.
async fn deliver(
    employer: &dyn Employer,
    reports: &[Report],
    wish: &mut Option<Wish>,
) -> Result<Reported, Error> {
    let mut tries = 0;
    loop {
        let wish = wish.take();
        let had_wish = wish.is_some();
        let call = async { employer.report(reports, wish).await };
        let error = match ask("report", ANSWER_WAIT_MAX, call).await {
            Ok(answer) if answer.items.len() == reports.len() => return Ok(answer),
            // Halved and repeated: nothing is believed to be taken that was not said to be.
            Ok(_) => {
                let reason = "does not have one item for each report";
                return Err(Error::Garbled { call: "report", reason });
            }
            Err(error) => error,
        };
        if !error.is_retryable() {
            return Err(error);
        }
        tries += 1;
        tracing::warn!(%error, tries, "a report could not be delivered; trying again");
        if had_wish {
            return Err(error);
        }
        tokio::time::sleep(pause(tries, &error)).await;
    }
}

/// Text for people as it is sent.
pub(crate) fn cut(text: String) -> String {
    cut_to(text, MESSAGE_BYTES_MAX)
}

fn cut_to(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
