//! Those who work: some finish, some fail, some give back, some stall past their lease and report
//! all the same, some die and never say a word. Whatever report got no answer is sent again.

use super::Api;
use super::fleet::{Signals, Temper};
use super::wish::{Pull, Report};
use crate::history::{Grant, Outcome};
use crate::rng::Rng;
use std::time::Duration;

/// A worker of one tenant, with a new name after each death.
pub(super) struct Worker<'a> {
    pub(super) api: Api,
    pub(super) rng: Rng,
    pub(super) signals: &'a Signals,
    pub(super) name: String,
    pub(super) temper: Temper,
}

/// A report that comes late or again.
struct Later {
    /// On the recorder's clock.
    due: u64,
    job: String,
    token: String,
    report: Report,
}

impl Worker<'_> {
    /// Works until told to stop. Once things wind down it only finishes jobs.
    pub(super) fn run(mut self) {
        let mut later: Vec<Later> = Vec::new();
        let mut life = 0;
        while !self.signals.is_over() {
            let is_polite = self.temper == Temper::Polite;
            let is_gentle = is_polite || self.signals.is_winding_down();
            if self.rng.chance(2) {
                life += 1;
            }
            let pull = Pull {
                worker: format!("{}-{life}", self.name),
                limit: self.rng.within(1, 6),
                wait_ms: self.rng.within(0, 150),
                lease_ms: if is_polite { 10_000 } else { self.rng.within(300, 1_500) },
            };
            let mut grants = self.api.pull(&pull);
            while !grants.is_empty() {
                grants = self.work(grants, &pull, &mut later, is_gentle);
            }
            self.late_ones(&mut later);
            let pause = self.rng.within(1, 6);
            std::thread::sleep(Duration::from_millis(pause)); // paced: work takes time
        }
    }

    /// Works on what was granted; what a report brought along is answered.
    fn work(
        &mut self,
        grants: Vec<Grant>,
        pull: &Pull,
        later: &mut Vec<Later>,
        is_gentle: bool,
    ) -> Vec<Grant> {
        let mut more = Vec::new();
        for grant in &grants {
            self.api.recorder().work(&pull.worker, &grant.job, &grant.token, false);
        }
        for grant in grants {
            let Grant { job, token, .. } = grant;
            if !is_gentle && self.rng.chance(4) {
                continue; // died
            }
            if self.rng.chance(15) {
                self.api.heartbeat(&pull.worker, &job, &token, pull.lease_ms);
            }
            if self.rng.chance(20) {
                let value = format!("v-{token}");
                self.api.effect(&job, &token, "charge", &value);
            }
            self.api.recorder().work(&pull.worker, &job, &token, true);
            let report = self.report(&token, is_gentle);
            if !is_gentle && self.rng.chance(6) {
                let due = self.api.recorder().now() + (pull.lease_ms + 300) * 1000;
                later.push(Later { due, job, token, report });
                continue;
            }
            let pull = (!is_gentle && self.rng.chance(10)).then_some(pull);
            let (outcomes, granted) =
                self.api.report(&[(job.clone(), token.clone())], &report, pull);
            if !granted.is_empty() {
                more.extend(granted);
            }
            let is_unknown = outcomes.iter().any(|outcome| {
                *outcome == Outcome::Info || *outcome == Outcome::Fail("UNREACHABLE".to_owned())
            });
            if is_unknown || self.rng.chance(5) {
                later.push(Later { due: 0, job, token, report });
            }
        }
        more
    }

    fn report(&mut self, token: &str, is_gentle: bool) -> Report {
        let done = Report::Complete(format!("{{\"by\":\"{token}\"}}"));
        if is_gentle {
            return done;
        }
        let fail = |retryable, delay_ms| Report::Fail {
            code: if retryable { "E_AGAIN" } else { "E_FINAL" }.to_owned(),
            retryable,
            delay_ms,
        };
        match self.rng.below(100) {
            0..62 => done,
            62..76 => fail(true, None),
            76..81 => fail(true, Some(self.rng.within(10, 200))),
            81..88 => fail(false, None),
            _ => Report::Release,
        }
    }

    /// Sends the reports that are due, sometimes with another content, which must be refused if the
    /// first one counted.
    fn late_ones(&mut self, later: &mut Vec<Later>) {
        let now = self.api.recorder().now();
        let due: Vec<Later> = later.extract_if(.., |one| one.due <= now).collect();
        for Later { job, token, report, .. } in due {
            if self.rng.chance(10) {
                self.api.heartbeat("zombie", &job, &token, 2_000);
                self.api.effect(&job, &token, "charge", "\"late\"");
            }
            let (outcomes, _) = self.api.report(&[(job.clone(), token.clone())], &report, None);
            let is_unknown = outcomes.first().is_none_or(|outcome| {
                *outcome == Outcome::Info || *outcome == Outcome::Fail("UNREACHABLE".to_owned())
            });
            if is_unknown {
                let due = now + 20_000;
                later.push(Later { due, job, token, report });
            } else if self.rng.chance(20) {
                let other = Report::Complete("\"something else\"".to_owned());
                self.api.report(&[(job, token)], &other, None);
            }
        }
    }
}
