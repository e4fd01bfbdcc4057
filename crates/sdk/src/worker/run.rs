//! The loop that owns everything a worker knows. Requests and handlers run beside it and come back
//! as values, so there is no lock and no state in two places.

use super::attend::{Ended, attend};
use super::report::{Kind, Report, Said, Told, tell};
use super::{Setup, Summary};
use crate::client::pause;
use crate::error::Error;
use crate::handler::{Context, StopReason};
use mainspring_api::work::{Beaten, Heartbeat, HeartbeatItem, Pulled, PulledJob};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a worker that stops waits for its last poll after it has said so.
const LAST_POLL_MAX: Duration = Duration::from_secs(5);
/// A heartbeat that is not answered by then does not keep the next one from going out.
const BEAT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Most report requests on the way at a time; what finishes meanwhile shares the next one.
const REPORTS_OUT_MAX: usize = 2;
/// Most bytes of results in one request, unless a single one is larger.
const REPORT_BYTES_MAX: usize = 512 * 1024;

/// A job this worker holds: running, or finished and not yet reported.
struct Held {
    ctx: Context,
    /// When the lease ends as far as we know.
    ends_at: Instant,
}

/// What came back from the server.
enum Arrival {
    Polled { result: Result<Pulled, Error>, reserved: usize },
    Told(Told),
    Beat { result: Result<Beaten, Error>, tokens: Vec<String>, sent_at: Instant },
    Left,
}

pub(super) struct Run {
    setup: Arc<Setup>,
    /// By lease token.
    held: HashMap<String, Held>,
    handlers: JoinSet<Ended>,
    requests: JoinSet<Arrival>,
    ready: Vec<Report>,
    /// Slots kept for jobs that requests on the way may bring.
    reserved: usize,
    is_polling: bool,
    is_beating: bool,
    reports_out: usize,
    poll_failures: u32,
    poll_not_before: Instant,
    next_beat: Instant,
    /// Set once the worker drains: when running jobs are told to stop.
    drain_ends: Option<Instant>,
    /// When the last poll is given up; set once the worker drains.
    poll_ends: Option<Instant>,
    /// When undeliverable reports are given up; set once the worker drains.
    give_up: Arc<OnceLock<Instant>>,
    fatal: Option<Error>,
    summary: Summary,
}

impl Run {
    pub(super) fn new(setup: Arc<Setup>) -> Self {
        let now = Instant::now();
        Run {
            next_beat: now + setup.lease / 3,
            setup,
            held: HashMap::new(),
            handlers: JoinSet::new(),
            requests: JoinSet::new(),
            ready: Vec::new(),
            reserved: 0,
            is_polling: false,
            is_beating: false,
            reports_out: 0,
            poll_failures: 0,
            poll_not_before: now,
            drain_ends: None,
            poll_ends: None,
            give_up: Arc::default(),
            fatal: None,
            summary: Summary::default(),
        }
    }

    pub(super) async fn until(mut self, stop: CancellationToken) -> Result<Summary, Error> {
        loop {
            self.send_reports();
            self.poll();
            if self.is_finished() {
                break;
            }
            let wake = self.next_wake();
            tokio::select! {
                Some(ended) = self.handlers.join_next() => {
                    if let Ok(ended) = ended { self.ended(ended); }
                    while let Some(Ok(ended)) = self.handlers.try_join_next() { self.ended(ended); }
                }
                Some(Ok(arrival)) = self.requests.join_next() => self.arrived(arrival),
                () = tokio::time::sleep_until(wake) => self.on_time(),
                () = stop.cancelled(), if self.drain_ends.is_none() => self.drain(),
            }
        }
        match self.fatal {
            Some(error) => Err(error),
            None => Ok(self.summary),
        }
    }

    fn is_finished(&self) -> bool {
        // A poll on its way may hold jobs; nobody else would give them back.
        let is_poll_over =
            !self.is_polling || self.poll_ends.is_some_and(|end| end <= Instant::now());
        self.drain_ends.is_some()
            && is_poll_over
            && self.held.is_empty()
            && self.ready.is_empty()
            && self.reports_out == 0
    }

    fn free_slots(&self) -> usize {
        if self.drain_ends.is_some() {
            return 0;
        }
        let taken = self.handlers.len() + self.reserved;
        self.setup.concurrency.saturating_sub(taken)
    }

    fn next_wake(&self) -> Instant {
        let mut wake = self.next_beat;
        let untold = self.held.values().filter(|held| held.ctx.stop_reason().is_none());
        if let Some(end) = untold.map(|held| held.ends_at).min() {
            wake = wake.min(end);
        }
        if self.is_polling
            && let Some(end) = self.poll_ends
        {
            wake = wake.min(end);
        }
        if !self.is_polling && self.free_slots() > 0 {
            wake = wake.min(self.poll_not_before);
        }
        match self.drain_ends {
            Some(end) if !self.handlers.is_empty() && end > Instant::now() => wake.min(end),
            Some(_) | None => wake,
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if self.drain_ends.is_some_and(|end| end <= now) {
            self.held.values().for_each(|held| held.ctx.tell_to_stop(StopReason::Draining));
        }
        for held in self.held.values().filter(|held| held.ends_at <= now) {
            // Nobody renewed it: by now the job may be somebody else's.
            held.ctx.tell_to_stop(StopReason::LeaseLost);
        }
        if now < self.next_beat {
            return;
        }
        self.next_beat = now + self.setup.lease / 3;
        self.beat(now);
    }

    fn drain(&mut self) {
        let now = Instant::now();
        let end = now + self.setup.drain_grace;
        self.drain_ends = Some(end);
        let _ = self.give_up.set(end + self.setup.stop_grace + self.setup.lease);
        if self.is_polling {
            self.poll_ends = Some(now + LAST_POLL_MAX);
            let setup = self.setup.clone();
            self.requests.spawn(async move {
                if let Err(error) = setup.client.leave(&setup.worker_id).await {
                    tracing::warn!(%error, "could not say that this worker leaves");
                }
                Arrival::Left
            });
        }
        if self.setup.drain_grace.is_zero() {
            self.held.values().for_each(|held| held.ctx.tell_to_stop(StopReason::Draining));
        }
    }

    /// Keeps one long poll open as long as there is room.
    fn poll(&mut self) {
        let free = self.free_slots();
        // Reports that are about to go out bring jobs along, and more cheaply.
        let is_idle = self.ready.is_empty() && self.reports_out == 0;
        if self.is_polling || free == 0 || !is_idle || Instant::now() < self.poll_not_before {
            return;
        }
        self.is_polling = true;
        self.reserved += free;
        let setup = self.setup.clone();
        self.requests.spawn(async move {
            let pull = setup.pull(free, setup.wait);
            Arrival::Polled { result: setup.client.pull(&pull).await, reserved: free }
        });
    }

    fn send_reports(&mut self) {
        while !self.ready.is_empty() && self.reports_out < REPORTS_OUT_MAX {
            let reports = self.take_reports();
            let limit = self.free_slots();
            self.reserved += limit;
            self.reports_out += 1;
            let (setup, give_up) = (self.setup.clone(), self.give_up.clone());
            self.requests.spawn(async move {
                Arrival::Told(tell(&setup, reports, limit, || give_up.get().copied()).await)
            });
        }
    }

    /// The next batch: reports of one kind, within the size of a request.
    fn take_reports(&mut self) -> Vec<Report> {
        let kind = self.ready.first().map_or(Kind::Complete, Report::kind);
        let (mut taken, mut left, mut bytes) = (Vec::new(), Vec::new(), 0);
        for report in self.ready.drain(..) {
            let fits = taken.is_empty() || bytes + report.weight() <= REPORT_BYTES_MAX;
            if report.kind() == kind && fits {
                bytes += report.weight();
                taken.push(report);
            } else {
                left.push(report);
            }
        }
        self.ready = left;
        taken
    }

    fn beat(&mut self, now: Instant) {
        if self.is_beating || self.held.is_empty() {
            return;
        }
        self.is_beating = true;
        let tokens: Vec<String> = self.held.keys().cloned().collect();
        let items = self.held.values().map(|held| HeartbeatItem {
            job_id: held.ctx.job().job_id.clone(),
            lease_token: held.ctx.job().lease_token.clone(),
            progress: held.ctx.last_progress(),
        });
        let heartbeat = Heartbeat {
            worker_id: self.setup.worker_id.clone(),
            lease_ms: Some(self.setup.lease_ms()),
            items: items.collect(),
        };
        let setup = self.setup.clone();
        self.requests.spawn(async move {
            // A heartbeat that hangs must not keep the next one from going out.
            let patience = (setup.lease / 3).min(BEAT_WAIT_MAX);
            let call = tokio::time::timeout(patience, setup.client.heartbeat(&heartbeat));
            let result = call.await.unwrap_or_else(|_| {
                let reason = "no answer in time".to_owned();
                Err(Error::Unreadable { call: "heartbeat".into(), status: 504, reason })
            });
            Arrival::Beat { result, tokens, sent_at: now }
        });
    }

    fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Polled { result, reserved } => {
                self.is_polling = false;
                self.reserved -= reserved;
                self.polled(result);
            }
            Arrival::Told(told) => {
                self.reports_out -= 1;
                self.reserved -= told.reserved;
                self.told(told);
            }
            Arrival::Beat { result, tokens, sent_at } => {
                self.is_beating = false;
                self.beaten(result, &tokens, sent_at);
            }
            Arrival::Left => {}
        }
    }

    fn polled(&mut self, result: Result<Pulled, Error>) {
        match result {
            Ok(pulled) => {
                self.poll_failures = 0;
                pulled.jobs.into_iter().for_each(|job| self.start(job));
            }
            Err(error) if error.is_retryable() => {
                self.poll_failures += 1;
                let wait = pause(self.poll_failures, &error);
                self.poll_not_before = Instant::now() + wait;
                tracing::warn!(%error, ?wait, "no jobs could be fetched; trying again");
            }
            Err(error) => {
                self.fatal.get_or_insert(error);
                if self.drain_ends.is_none() {
                    self.drain();
                }
            }
        }
    }

    fn start(&mut self, job: PulledJob) {
        let now = Instant::now();
        let lease = self.setup.first_lease();
        let ctx = Context::new(job, self.setup.client.clone(), lease);
        let token = ctx.job().lease_token.clone();
        let handler = self.setup.handler(&ctx.job().job_type);
        if self.held.is_empty() {
            self.next_beat = now + lease / 3;
        }
        self.next_beat = self.next_beat.min(now + lease / 3);
        self.held.insert(token, Held { ctx: ctx.clone(), ends_at: now + lease });
        match handler {
            Some(handler) if self.drain_ends.is_none() => {
                self.handlers.spawn(attend(handler, ctx, self.setup.stop_grace));
            }
            Some(_) => self.say(&ctx, Said::Release("the worker is shutting down".into())),
            None => self.say(&ctx, Said::Release("this worker has no handler for it".into())),
        }
    }

    fn say(&mut self, ctx: &Context, said: Said) {
        let PulledJob { job_id, lease_token, .. } = ctx.job().clone();
        self.ready.push(Report { job_id, lease_token, said });
    }

    fn ended(&mut self, ended: Ended) {
        let Some(held) = self.held.get(&ended.lease_token) else { return };
        let ctx = held.ctx.clone();
        let drained = || Said::Release("the worker is shutting down".into());
        let said = match (ctx.stop_reason(), ended.outcome) {
            // Work that was finished counts, whoever asked to stop meanwhile; the server decides.
            (_, Some(Ok(result))) => Some(Said::Complete(result)),
            (Some(StopReason::Draining), Some(Err(_)) | None) => Some(drained()),
            (Some(StopReason::Cancelled | StopReason::LeaseLost | StopReason::TimedOut), _) => None,
            (None, Some(outcome)) => Some(Said::of(outcome)),
            (None, None) => None,
        };
        match said {
            Some(said) => self.say(&ctx, said),
            None => {
                self.summary.lost += 1;
                self.held.remove(&ended.lease_token);
            }
        }
    }

    fn told(&mut self, told: Told) {
        for (report, refusal) in &told.reports {
            self.held.remove(&report.lease_token);
            if let Some(refusal) = refusal {
                self.summary.refused += 1;
                tracing::warn!(job_id = report.job_id, refusal, "a report was refused");
                continue;
            }
            match report.kind() {
                Kind::Complete => self.summary.completed += 1,
                Kind::Fail => self.summary.failed += 1,
                Kind::Release => self.summary.released += 1,
            }
        }
        told.jobs.into_iter().for_each(|job| self.start(job));
    }

    fn beaten(&mut self, result: Result<Beaten, Error>, tokens: &[String], sent_at: Instant) {
        let beaten = match result {
            Ok(beaten) => beaten,
            Err(error) => {
                tracing::warn!(%error, "a heartbeat failed; trying again soon");
                let soon = (self.setup.lease / 10).min(Duration::from_millis(500));
                self.next_beat = self.next_beat.min(Instant::now() + soon);
                return;
            }
        };
        for (token, item) in tokens.iter().zip(beaten.items) {
            let Some(held) = self.held.get_mut(token) else { continue };
            if item.cancelled {
                held.ctx.tell_to_stop(StopReason::Cancelled);
            } else if item.lost {
                held.ctx.tell_to_stop(StopReason::LeaseLost);
            } else {
                held.ends_at = sent_at + self.setup.lease;
            }
        }
    }
}

#[cfg(test)]
mod tests;
