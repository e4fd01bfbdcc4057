//! Workers: most do their work, some stall past their lease and report late, repeat themselves,
//! use old tokens, or die. In the quiet phase all are healthy.

use super::clients::is_refused;
use super::server::Server;
use crate::drive;
use crate::history::{Answer, Call, Grant, Outcome};
use mainspring_engine::Pull;
use mainspring_kernel::command::{CommitEffect, Complete, Fail, Heartbeat, Release};
use mainspring_kernel::job::LeaseToken;
use mainspring_kernel::{Command, Failure, JobId, JobType, QueueName, TenantId};
use std::sync::Arc;
use std::time::Duration;

/// Works until the server ends.
pub(super) async fn worker(server: Server, name: String) {
    loop {
        server.pass(server.world.below(400)).await;
        let is_quiet = server.world.is_quiet();
        let (limit, wait, lease_ms) = {
            let rng = &mut server.world.lock().rng;
            (rng.within(1, 3) as usize, rng.below(3_000), rng.within(1_000, 9_000) as u32)
        };
        let (tenant, types, queues) = if is_quiet { (None, None, None) } else { confined(&server) };
        let pull = Pull {
            tenant,
            worker: drive::worker(&name),
            token: None,
            types,
            queues,
            limit: if is_quiet { 4 } else { limit },
            wait: Duration::from_millis(if is_quiet { 5_000 } else { wait }),
            lease_ms,
            governed: None,
        };
        let (name, grants) = server.pull(pull).await;
        for grant in grants {
            let hand = Hand { server: &server, name: &name, grant: &grant, lease_ms };
            hand.work().await;
        }
        if !is_quiet && server.world.chance(15) {
            use_old_token(&server, &name).await;
        }
    }
}

/// Some pulls want only jobs of one tenant, some types, or one queue.
#[expect(clippy::type_complexity, reason = "the three fields of a pull")]
fn confined(
    server: &Server,
) -> (Option<TenantId>, Option<Arc<[JobType]>>, Option<Arc<[QueueName]>>) {
    let rng = &mut server.world.lock().rng;
    let owner: &str = rng.pick::<&str>(&["acme", "bolt", "cask"]);
    let owner = drive::tenant(owner);
    let types: Arc<[JobType]> = if rng.chance(50) {
        [drive::kind("plain"), drive::kind("narrow")].into()
    } else {
        [drive::kind("single")].into()
    };
    let queue = if rng.chance(50) { "side" } else { "default" };
    (
        rng.chance(25).then_some(owner),
        rng.chance(12).then_some(types),
        rng.chance(12).then(|| [drive::queue(queue)].into()),
    )
}

/// One job in a worker's hands.
struct Hand<'a> {
    server: &'a Server,
    name: &'a str,
    grant: &'a Grant,
    lease_ms: u32,
}

impl Hand<'_> {
    async fn work(&self) {
        let world = &self.server.world;
        world.work(self.name, self.grant, false);
        if world.is_quiet() {
            self.complete("\"quiet\"").await;
            self.forget();
            return;
        }
        if world.chance(30) {
            self.effect().await;
        }
        let what = world.below(100);
        match what {
            0..48 => {
                self.take_time().await;
                self.complete("\"done\"").await;
            }
            48..68 => {
                self.take_time().await;
                self.fail(true).await;
            }
            68..75 => self.fail(false).await,
            75..83 => self.release().await,
            83..92 => {
                // Stalls past its lease and reports as if nothing had happened.
                let late = u64::from(self.lease_ms) + world.below(12_000);
                self.server.pass(late).await;
                self.complete("\"late\"").await;
            }
            // Dies: the grant stays among those held, where it may be found after a restart.
            _ => return,
        }
        if world.chance(12) {
            self.complete(if world.chance(50) { "\"done\"" } else { "\"other\"" }).await;
        }
        self.forget();
    }

    /// Works for a while, with heartbeats or without.
    async fn take_time(&self) {
        let world = &self.server.world;
        if world.chance(30) {
            let beats = world.below(5) + 1;
            for _ in 0..beats {
                self.server.pass(u64::from(self.lease_ms) / 2).await;
                if !self.beat().await {
                    return;
                }
            }
        } else {
            self.server.pass(world.below(u64::from(self.lease_ms))).await;
        }
    }

    fn ids(&self) -> Option<(JobId, LeaseToken)> {
        Some((self.grant.job.parse().ok()?, self.grant.token.parse().ok()?))
    }

    fn names(&self) -> (String, String) {
        (self.grant.job.clone(), self.grant.token.clone())
    }

    async fn beat(&self) -> bool {
        let (Some((id, token)), (job, text)) = (self.ids(), self.names()) else { return false };
        let lease_ms = self.lease_ms;
        let call = Call::Heartbeat { job, token: text, lease_ms: u64::from(lease_ms) };
        let progress_pct = Some(self.server.world.below(100) as u8);
        let beat = Heartbeat { job: id, token, lease_ms, progress_pct, note: None };
        let outcome = self.server.call(call, Command::Heartbeat(beat)).await;
        !is_refused(&outcome) && outcome != Outcome::Ok(Answer::Cancelled)
    }

    async fn effect(&self) {
        let (Some((id, token)), (job, text)) = (self.ids(), self.names()) else { return };
        let name = format!("mail-{}", self.server.world.below(2));
        let value = format!("\"by {} under {}\"", self.name, token.fence);
        let call = Call::Effect { job, token: text, name: name.clone(), value: value.clone() };
        let (name, value) = (name.into(), value.into());
        let wish = CommitEffect { job: id, token, name, value };
        self.server.call(call, Command::CommitEffect(wish)).await;
    }

    async fn complete(&self, result: &str) {
        let (Some((id, token)), (job, text)) = (self.ids(), self.names()) else { return };
        self.server.world.work(self.name, self.grant, true);
        let call = Call::Complete { job, token: text, result: result.to_owned() };
        let report = Complete { job: id, token, result: Some(result.into()) };
        self.server.call(call, Command::Complete(report)).await;
    }

    async fn fail(&self, retryable: bool) {
        let (Some((id, token)), (job, text)) = (self.ids(), self.names()) else { return };
        let delay_ms = self.server.world.chance(25).then(|| self.server.world.below(6_000));
        let code = "BROKEN".to_owned();
        let call = Call::Fail { job, token: text, code, retryable, delay_ms };
        let failure = Failure { code: "BROKEN".into(), message: "it broke".into(), retryable };
        let (job, retry_delay_ms, result, snooze_ms) = (id, delay_ms, None, None);
        let report = Fail { job, token, failure, retry_delay_ms, result, snooze_ms };
        self.server.call(call, Command::Fail(report)).await;
    }

    async fn release(&self) {
        let (Some((id, token)), (job, text)) = (self.ids(), self.names()) else { return };
        let call = Call::Release { job, token: text };
        let report = Release { job: id, token, reason: None };
        self.server.call(call, Command::Release(report)).await;
    }

    /// The worker no longer cares; its token is over.
    fn forget(&self) {
        let mut memory = self.server.world.lock();
        memory.held.retain(|held| held.token != self.grant.token || held.job != self.grant.job);
        memory.stale.push(self.grant.clone());
    }
}

/// Somebody comes back with a token from long ago, perhaps from before a crash.
async fn use_old_token(server: &Server, name: &str) {
    let grant = {
        let mut memory = server.world.lock();
        let is_held = memory.rng.chance(50);
        let pool = if is_held { &memory.held } else { &memory.stale };
        let count = pool.len() as u64;
        let nth = memory.rng.below(count) as usize;
        let pool = if is_held { &memory.held } else { &memory.stale };
        pool.get(nth).cloned()
    };
    let Some(grant) = grant else { return };
    let hand = Hand { server, name, grant: &grant, lease_ms: 2_000 };
    match server.world.below(4) {
        0 => hand.complete("\"stale\"").await,
        1 => {
            hand.beat().await;
        }
        2 => hand.effect().await,
        _ => hand.fail(true).await,
    }
}
