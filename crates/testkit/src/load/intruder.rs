//! Somebody with a token of one tenant who tries the jobs of all the others, and jobs that do not
//! exist, and goes on trying after the token was revoked.

use super::Api;
use super::fleet::{Signals, Yard};
use crate::history::{Answer, Call, Outcome};
use crate::rng::Rng;
use std::sync::Arc;
use std::time::Duration;

/// Attempts before the token is revoked.
const KNOCKS: u32 = 80;

pub(super) struct Intruder<'a> {
    pub(super) api: Api,
    /// Somebody who may revoke the token.
    pub(super) admin: Api,
    pub(super) token_id: String,
    pub(super) rng: Rng,
    /// The jobs of all tenants, the own ones first.
    pub(super) yards: Vec<Arc<Yard>>,
    pub(super) signals: &'a Signals,
}

impl Intruder<'_> {
    /// Tries until everything is over.
    pub(super) fn run(mut self) {
        let mut knocks = 0;
        let mut is_revoked = false;
        while !self.signals.is_over() {
            self.knock();
            knocks += 1;
            if !is_revoked && (knocks >= KNOCKS || self.signals.is_winding_down()) {
                is_revoked = self.revoke();
            }
            let pause = self.rng.within(15, 40);
            std::thread::sleep(Duration::from_millis(pause)); // paced: one among many
        }
    }

    fn knock(&mut self) {
        let yard = self.rng.pick(&self.yards).clone();
        let Some(mut job) = yard.some(&mut self.rng) else { return };
        if self.rng.chance(30) {
            // One that looks as if it could be, and is not.
            let last = if job.ends_with('0') { '1' } else { '0' };
            job.pop();
            job.push(last);
        }
        let (what, method, path) = match self.rng.below(3) {
            0 => ("read", "GET", format!("/api/v1/jobs/{job}")),
            1 => ("follow", "GET", format!("/api/v1/jobs/{job}/events")),
            _ => ("explain", "GET", format!("/api/v1/jobs/{job}/explain")),
        };
        let at = self.api.recorder().now();
        let outcome = match self.api.ask(method, &path, None) {
            Ok(_) => Outcome::Ok(Answer::Done),
            Err(outcome) => outcome,
        };
        let (tenant, token) = (self.api.tenant.clone(), self.token_id.clone());
        let call = Call::Knock { tenant, token, job, what: what.to_owned() };
        self.api.recorder().call(at, call, outcome);
    }

    fn revoke(&mut self) -> bool {
        let at = self.admin.recorder().now();
        let path = format!("/api/v1/tokens/{}", self.token_id);
        let outcome = match self.admin.ask("DELETE", &path, None) {
            Ok(_) => Outcome::Ok(Answer::Done),
            Err(outcome) => outcome,
        };
        let is_done = matches!(outcome, Outcome::Ok(_));
        let call = Call::Revoke { token: self.token_id.clone() };
        self.admin.recorder().call(at, call, outcome);
        is_done
    }
}
