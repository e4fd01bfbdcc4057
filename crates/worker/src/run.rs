//! The loop that owns everything a worker knows. Calls and handlers run beside it and come back as
//! values, so there is no lock and no state in two places.

use crate::ask::{ask, backoff, pause};
use crate::attend::{Ended, attend};
use crate::context::{Context, StopReason};
use crate::employer::{Beat, Job, Kind, Renewal, Report, Said, Sign};
use crate::error::Error;
use crate::failure::Meaning;
use crate::limits::{
    ANSWER_WAIT_MAX, BEAT_AGAIN_MAX, BEAT_ITEMS_MAX, BEAT_PARTS_MAX, BEAT_WAIT_MAX, LAST_POLL_MAX,
    REPORT_BYTES_MAX, REPORT_FRESH, REPORTS_OUT_MAX, REST_MAX,
};
use crate::report::{Told, tell};
use crate::worker::{Setup, Summary};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A job this worker holds: running, or finished and not yet reported.
struct Held {
    ctx: Context,
    /// When the lease ends as far as we know.
    ends_at: Instant,
}

/// What came back from the employer.
enum Arrival {
    Polled { result: Result<Vec<Job>, Error>, reserved: usize, sent_at: Instant },
    Told(Told),
    Beat { result: Result<Vec<Renewal>, Error>, tokens: Vec<String>, sent_at: Instant },
    Left,
}

pub(crate) struct Run {
    setup: Arc<Setup>,
    /// By lease token.
    held: HashMap<String, Held>,
    handlers: JoinSet<Ended>,
    /// Handlers that were dropped and have not ended yet.
    stuck: JoinSet<()>,
    calls: JoinSet<Arrival>,
    ready: Vec<Report>,
    /// Slots kept for jobs that calls on the way may bring.
    reserved: usize,
    is_polling: bool,
    beats_out: usize,
    /// How many leases one heartbeat carries, and whether one failed since they last went out.
    beat_items: usize,
    has_beat_failed: bool,
    reports_out: usize,
    /// When the last of them went out.
    reported_at: Instant,
    /// Polls in a row that failed, and that brought nothing of use before their time.
    failed_polls: u32,
    idle_polls: u32,
    /// Nothing is asked for until then.
    wish_not_before: Instant,
    next_beat: Instant,
    /// No lease ends before this, as far as we know.
    leases_end: Option<Instant>,
    /// Set once the worker drains: when running jobs are told to stop.
    drain_ends: Option<Instant>,
    /// When the last poll is given up; set once the worker drains.
    poll_ends: Option<Instant>,
    /// When undeliverable reports are given up; set once the worker drains.
    give_up: Option<Instant>,
    fatal: Option<Error>,
    summary: Summary,
}

impl Run {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        let now = Instant::now();
        Run {
            next_beat: now + setup.lease / 3,
            setup,
            held: HashMap::new(),
            handlers: JoinSet::new(),
            stuck: JoinSet::new(),
            calls: JoinSet::new(),
            ready: Vec::new(),
            reserved: 0,
            is_polling: false,
            beats_out: 0,
            beat_items: BEAT_ITEMS_MAX,
            has_beat_failed: false,
            reports_out: 0,
            reported_at: now,
            failed_polls: 0,
            idle_polls: 0,
            wish_not_before: now,
            leases_end: None,
            drain_ends: None,
            poll_ends: None,
            give_up: None,
            fatal: None,
            summary: Summary::default(),
        }
    }

    pub(crate) async fn until(mut self, stop: CancellationToken) -> Result<Summary, Error> {
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
                Some(Ok(arrival)) = self.calls.join_next() => self.arrived(arrival),
                // Only its slot is of interest.
                Some(_) = self.stuck.join_next() => {}
                () = tokio::time::sleep_until(wake) => self.on_time(),
                () = stop.cancelled(), if self.drain_ends.is_none() => self.drain(),
            }
        }
        // Whatever is still held was given up: nobody said that its report was taken.
        self.summary.refused += self.held.len() as u64;
        match self.fatal {
            Some(error) => Err(error),
            None => Ok(self.summary),
        }
    }

    fn is_finished(&self) -> bool {
        let now = Instant::now();
        if self.give_up.is_some_and(|end| end <= now) {
            return true;
        }
        // A poll on its way may hold jobs; nobody else would give them back.
        let is_poll_over = !self.is_polling || self.poll_ends.is_some_and(|end| end <= now);
        self.drain_ends.is_some()
            && is_poll_over
            && self.held.is_empty()
            && self.ready.is_empty()
            && self.reports_out == 0
    }

    /// How many more jobs may be asked for now.
    fn room(&self) -> usize {
        if self.drain_ends.is_some()
            || Instant::now() < self.wish_not_before
            || self.setup.roster.types().is_empty()
        {
            return 0;
        }
        self.free_slots()
    }

    fn free_slots(&self) -> usize {
        let taken = self.handlers.len() + self.stuck.len() + self.reserved;
        self.setup.concurrency.saturating_sub(taken)
    }

    fn next_wake(&self) -> Instant {
        let mut wake = self.next_beat;
        if let Some(end) = self.leases_end {
            wake = wake.min(end);
        }
        let now = Instant::now();
        if let Some(end) = self.poll_ends.filter(|end| self.is_polling && *end > now) {
            wake = wake.min(end);
        }
        if !self.is_polling && self.drain_ends.is_none() {
            let stale_at = self.reported_at + REPORT_FRESH;
            let soon = [self.wish_not_before, stale_at].into_iter().filter(|at| *at > now);
            wake = soon.fold(wake, Instant::min);
        }
        if let Some(end) = self.drain_ends.filter(|end| *end > now && !self.handlers.is_empty()) {
            wake = wake.min(end);
        }
        self.give_up.map_or(wake, |end| wake.min(end))
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if self.drain_ends.is_some_and(|end| end <= now) {
            self.held.values().for_each(|held| held.ctx.tell_to_stop(StopReason::Draining));
        }
        if self.leases_end.is_some_and(|end| end <= now) {
            for held in self.held.values().filter(|held| held.ends_at <= now) {
                // Nobody renewed it: by now the job may be somebody else's.
                held.ctx.tell_to_stop(StopReason::LeaseLost);
            }
            let untold = self.held.values().filter(|held| held.ctx.stop_reason().is_none());
            self.leases_end = untold.map(|held| held.ends_at).min();
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
        self.give_up = Some(end + self.setup.stop_grace + self.setup.lease);
        if self.is_polling {
            self.poll_ends = Some(now + LAST_POLL_MAX);
            let setup = self.setup.clone();
            self.calls.spawn(async move {
                let call = async { setup.employer.leave(&setup.worker_id).await };
                if let Err(error) = ask("leave", LAST_POLL_MAX, call).await {
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
        let room = self.room();
        if self.is_polling || room == 0 || !self.ready.is_empty() {
            return;
        }
        // Reports on their way bring jobs along, and more cheaply. One that gets nowhere must not
        // keep everybody else waiting; that there may be only a few such is bound enough.
        if self.reports_out > 0 && Instant::now() < self.reported_at + REPORT_FRESH {
            return;
        }
        self.is_polling = true;
        self.reserved += room;
        let (setup, sent_at) = (self.setup.clone(), Instant::now());
        self.calls.spawn(async move {
            let wish = setup.wish(room, setup.wait);
            let call = async { setup.employer.pull(wish).await };
            let result = ask("pull", setup.wait + ANSWER_WAIT_MAX, call).await;
            Arrival::Polled { result, reserved: room, sent_at }
        });
    }

    fn send_reports(&mut self) {
        while !self.ready.is_empty() && self.reports_out < REPORTS_OUT_MAX {
            let reports = self.take_reports();
            let room = self.room();
            self.reserved += room;
            self.reports_out += 1;
            self.reported_at = Instant::now();
            let setup = self.setup.clone();
            self.calls.spawn(async move {
                let wish = (room > 0).then(|| setup.wish(room, Duration::ZERO));
                Arrival::Told(tell(&*setup.employer, reports, wish).await)
            });
        }
    }

    /// The next batch: reports of one kind, within the size of a call.
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
        if self.beats_out > 0 {
            return;
        }
        // If one of many cannot be renewed at present, the call fails for all of them. So they go
        // apart after a failure, and together again, by and by, when there was none.
        self.beat_items = match std::mem::take(&mut self.has_beat_failed) {
            true => self.held.len().div_ceil(BEAT_PARTS_MAX).max(1),
            false => (self.beat_items * 2).min(BEAT_ITEMS_MAX),
        };
        let mut signs = self.held.values().map(|held| Sign {
            job_id: held.ctx.job().job_id.clone(),
            lease_token: held.ctx.job().lease_token.clone(),
            progress: held.ctx.last_progress(),
            message: held.ctx.last_message(),
            checkpoint: None,
        });
        loop {
            let signs: Vec<Sign> = signs.by_ref().take(self.beat_items).collect();
            if signs.is_empty() {
                return;
            }
            self.beats_out += 1;
            let setup = self.setup.clone();
            self.calls.spawn(async move {
                let tokens = signs.iter().map(|sign| sign.lease_token.clone()).collect();
                let worker_id = setup.worker_id.clone();
                let beat = Beat { worker_id, lease: setup.lease, signs };
                // A heartbeat that hangs must not keep the next one from going out.
                let patience = (setup.lease / 3).min(BEAT_WAIT_MAX);
                let call = async { setup.employer.heartbeat(&beat).await };
                let result = ask("heartbeat", patience, call).await;
                Arrival::Beat { result, tokens, sent_at: now }
            });
        }
    }

    fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Polled { result, reserved, sent_at } => {
                self.is_polling = false;
                self.reserved -= reserved;
                self.polled(result, reserved, sent_at);
            }
            Arrival::Told(told) => {
                self.reports_out -= 1;
                self.reserved -= told.reserved;
                self.told(told);
            }
            Arrival::Beat { result, tokens, sent_at } => {
                self.beats_out -= 1;
                self.beaten(result, &tokens, sent_at);
            }
            Arrival::Left => {}
        }
    }

    fn polled(&mut self, result: Result<Vec<Job>, Error>, asked_for: usize, sent_at: Instant) {
        match result {
            Ok(jobs) => {
                self.failed_polls = 0;
                // Sent home long before its time: a worker that came again at once would spin.
                let is_early = jobs.is_empty()
                    && (self.setup.wait.is_zero() || sent_at.elapsed() < self.setup.wait / 2);
                if self.take_in(jobs, asked_for) && !is_early {
                    self.idle_polls = 0;
                } else {
                    self.rest();
                }
            }
            Err(error) if error.is_retryable() => {
                self.failed_polls += 1;
                let wait = pause(self.failed_polls, &error);
                self.wish_not_before = Instant::now() + wait;
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

    /// Asks for nothing for a while, ever longer.
    fn rest(&mut self) {
        self.idle_polls = self.idle_polls.saturating_add(1);
        self.wish_not_before = Instant::now() + backoff(self.idle_polls).min(REST_MAX);
    }

    /// Takes in what was asked for; what is more, or of no use here, is given back. Answers whether
    /// all were welcome.
    fn take_in(&mut self, jobs: Vec<Job>, asked_for: usize) -> bool {
        let mut is_all_welcome = true;
        for (count, job) in jobs.into_iter().enumerate() {
            is_all_welcome &= self.start(job, count < asked_for);
        }
        if !is_all_welcome {
            tracing::warn!("jobs came that were not asked for");
        }
        is_all_welcome
    }

    /// Starts a job, or gives it back; answers whether it was one to start.
    fn start(&mut self, job: Job, has_room: bool) -> bool {
        if self.held.contains_key(&job.lease_token) {
            // The same attempt once more: one is enough.
            return false;
        }
        let now = Instant::now();
        let lease = self.setup.first_lease();
        let ctx = Context::new(job, self.setup.employer.clone(), self.setup.worker_id.clone());
        let token = ctx.job().lease_token.clone();
        let handler = self.setup.roster.handler(&ctx.job().job_type);
        if self.held.is_empty() {
            self.next_beat = now + lease / 3;
        }
        self.next_beat = self.next_beat.min(now + lease / 3);
        let ends_at = now + lease;
        self.leases_end = Some(self.leases_end.map_or(ends_at, |end| end.min(ends_at)));
        self.held.insert(token, Held { ctx: ctx.clone(), ends_at });
        let given_back = match handler {
            _ if self.drain_ends.is_some() => "the worker is shutting down",
            None => "this worker has no handler for it",
            Some(_) if !has_room => "this worker has no room for it",
            Some(handler) => {
                self.handlers.spawn(attend(handler, ctx, self.setup.stop_grace));
                return true;
            }
        };
        self.say(&ctx, Said::Release(given_back.into()));
        self.drain_ends.is_some()
    }

    fn say(&mut self, ctx: &Context, said: Said) {
        let Job { job_id, lease_token, .. } = ctx.job();
        let (job_id, lease_token) = (job_id.clone(), lease_token.clone());
        self.ready.push(Report { job_id, lease_token, said });
    }

    fn ended(&mut self, ended: Ended) {
        if let Some(task) = ended.dropped {
            self.stuck.spawn(async move {
                // However it ends, it has ended.
                let _ = task.await;
            });
        }
        let Some(held) = self.held.get(&ended.lease_token) else { return };
        let ctx = held.ctx.clone();
        let allowed = ctx.job().time_allowed;
        let drained = || Said::Release("the worker is shutting down".into());
        let said = match (ctx.stop_reason(), ended.outcome) {
            // Work that was finished counts, whoever asked to stop meanwhile; the kernel decides.
            (_, Some(Ok(result))) => Some(Said::Complete(result)),
            // Nor is an attempt given back that somebody else is at.
            (_, Some(Err(failure))) if failure.meaning == Meaning::HandedOver => {
                Some(Said::of(Err(failure), allowed))
            }
            (Some(StopReason::Draining), Some(Err(_)) | None) => Some(drained()),
            (Some(StopReason::Cancelled | StopReason::LeaseLost | StopReason::TimedOut), _) => None,
            (None, Some(outcome)) => Some(Said::of(outcome, allowed)),
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
            // Who has it may have reported on it already.
            if let Some(refusal) = refusal.as_ref().filter(|_| report.kind() != Kind::HandOver) {
                self.summary.refused += 1;
                tracing::warn!(job_id = report.job_id, refusal, "a report was refused");
                continue;
            }
            match report.kind() {
                Kind::Complete => self.summary.completed += 1,
                Kind::Fail => self.summary.failed += 1,
                Kind::Release => self.summary.released += 1,
                Kind::HandOver => self.summary.handed_over += 1,
            }
        }
        if let Some((reports, wait)) = told.later {
            self.reports_out += 1;
            let setup = self.setup.clone();
            self.calls.spawn(async move {
                tokio::time::sleep(wait).await;
                Arrival::Told(tell(&*setup.employer, reports, None).await)
            });
        }
        // Without a wish there is nothing to give back: an employer that answered each release with
        // more jobs would be told of releases for ever. Their leases run out.
        if told.reserved > 0 && !self.take_in(told.jobs, told.reserved) {
            self.rest();
        }
    }

    fn beaten(&mut self, result: Result<Vec<Renewal>, Error>, tokens: &[String], sent_at: Instant) {
        let renewals = match result {
            Ok(renewals) if renewals.len() == tokens.len() => renewals,
            // One answer too few or too many, and nobody knows which lease an item is about.
            Ok(_) => return self.beat_soon(&"it is not answered lease by lease"),
            Err(error) => return self.beat_soon(&error),
        };
        for (token, renewal) in tokens.iter().zip(renewals) {
            let Some(held) = self.held.get_mut(token) else { continue };
            match renewal {
                Renewal::Renewed => held.ends_at = sent_at + self.setup.lease,
                Renewal::Lost => held.ctx.tell_to_stop(StopReason::LeaseLost),
                Renewal::Cancelled => held.ctx.tell_to_stop(StopReason::Cancelled),
                // Then it ends when it ends.
                Renewal::Unknown => {}
            }
        }
    }

    fn beat_soon(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!(%why, "a heartbeat failed; trying again soon");
        self.has_beat_failed = true;
        let soon = (self.setup.lease / 10).min(BEAT_AGAIN_MAX);
        self.next_beat = self.next_beat.min(Instant::now() + soon);
    }
}

#[cfg(test)]
mod tests;
