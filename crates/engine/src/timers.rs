//! What happens by itself: due jobs wake waiting pulls, the reaper ends what ran out of time,
//! entities whose alarm stands are rung (`alarms.rs`), and the store does its upkeep. Sleeps until
//! the next due instant; nothing scans.

use crate::alarms::Bells;
use crate::engine::{Reply, Shared};
use crate::limits::{PASSED_OVER_MAX, REAP_MAX, RETRY_AFTER, SLEEP_MAX};
use crate::request::{Patience, Request};
use mainspring_kernel::shared_time::Jump;
use mainspring_kernel::{Command, JobId, Timestamp};
use mainspring_store::Error;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>, mut reaper: Reaper) {
    let mut jumps = shared.clock.jumps();
    let mut bells = Bells::default();
    let mut upkeep_at = Instant::now() + shared.config.maintain_every;
    loop {
        let turned = match settle(&shared, &mut jumps).await {
            Ok(()) => turn(&shared, &mut reaper, &mut bells).await,
            Err(error) => Err(error),
        };
        let pause = match turned {
            Ok(pause) => pause,
            Err(Error::Stopped) => return,
            // In an outage the store tells the log itself, once.
            Err(Error::Away(_)) => RETRY_AFTER,
            Err(error) => {
                tracing::warn!(%error, "timers could not reach the store");
                RETRY_AFTER
            }
        };
        let turn_at = Instant::now() + pause;
        loop {
            // In this order always, so that a simulated run can be repeated.
            tokio::select! {
                biased;
                () = shared.stop.cancelled() => return,
                () = tokio::time::sleep_until(upkeep_at) => {
                    upkeep_at = Instant::now() + shared.config.maintain_every;
                    if let Err(error) = shared.store.maintain(shared.clock.now()).await
                        && !matches!(error, Error::Away(_))
                    {
                        tracing::warn!(%error, "upkeep of the store failed");
                    }
                }
                () = shared.timer_changed.notified() => break,
                () = tokio::time::sleep_until(turn_at) => break,
            }
        }
    }
}

/// Does what is due and says how long nothing will be.
async fn turn(
    shared: &Arc<Shared>,
    reaper: &mut Reaper,
    bells: &mut Bells,
) -> Result<Duration, Error> {
    let now = shared.clock.now();
    if reaper.reap(shared, now).await? | bells.ring(shared, now).await? {
        return Ok(Duration::ZERO);
    }
    let wake = shared.store.wake(now).await?;
    if wake.is_work_due {
        shared.work_is_due.notify_one();
    }
    let pause = wake.next.map_or(SLEEP_MAX, |next| next.since(now).min(SLEEP_MAX));
    let waits = reaper.waits_for_others() || bells.waits_for_others();
    Ok(if waits { pause.min(RETRY_AFTER) } else { pause })
}

/// Writes down what a clock that was set forward did to the leases. They are right without that as
/// long as this process knows of the jump; this makes it last.
async fn settle(shared: &Arc<Shared>, known: &mut Arc<[Jump]>) -> Result<(), Error> {
    let jumps = shared.clock.jumps();
    if jumps != *known {
        let running = shared.store.running().await?;
        for jobs in running.chunks(REAP_MAX) {
            let settle = |job| Command::ExtendLease { job, until: Timestamp::EPOCH };
            // What somebody outside holds is put right by its next report, or by the reaper.
            send_each(shared, jobs.to_vec(), settle, |_, _| {}).await?;
        }
        *known = jumps;
    }
    Ok(())
}

/// Ends what ran out of time. Nothing waits for jobs that somebody outside holds.
pub(crate) struct Reaper {
    /// Jobs that were held or that nothing helped, and when they are tried again.
    passed_over: HashMap<JobId, Instant>,
    /// Jobs that were reaped the last time.
    reaped: HashSet<JobId>,
    /// Jobs that were held when leases were extended after the restart.
    unextended: BTreeSet<JobId>,
    grace_until: Timestamp,
}

impl Reaper {
    /// Makes every live lease last at least until `grace_until` before anything is reaped.
    pub(crate) async fn new(shared: &Arc<Shared>, grace_until: Timestamp) -> Result<Reaper, Error> {
        let unextended = shared.store.running().await?.into_iter().collect();
        let (passed_over, reaped) = (HashMap::new(), HashSet::new());
        let mut reaper = Reaper { passed_over, reaped, unextended, grace_until };
        reaper.extend(shared).await?;
        Ok(reaper)
    }

    fn waits_for_others(&self) -> bool {
        !self.passed_over.is_empty() || !self.unextended.is_empty()
    }

    /// Extends the leases that were not to be had before.
    async fn extend(&mut self, shared: &Arc<Shared>) -> Result<(), Error> {
        let until = self.grace_until;
        let mut left = BTreeSet::new();
        let jobs: Vec<JobId> = self.unextended.iter().copied().collect();
        for some in jobs.chunks(REAP_MAX) {
            let extend = |job| Command::ExtendLease { job, until };
            left.extend(send_each(shared, some.to_vec(), extend, |_, _| {}).await?);
        }
        self.unextended = left;
        Ok(())
    }

    /// Reaps some of what is overdue; whether there may be more.
    async fn reap(&mut self, shared: &Arc<Shared>, now: Timestamp) -> Result<bool, Error> {
        if self.grace_until <= now {
            self.unextended.clear();
        } else if !self.unextended.is_empty() {
            self.extend(shared).await?;
        }
        self.passed_over.retain(|_, again_at| Instant::now() < *again_at);
        // A clock set forward makes leases look overdue: the kernel tells the difference.
        let most = REAP_MAX + self.passed_over.len() + self.unextended.len();
        let mut overdue = shared.store.overdue(now, most).await?;
        overdue.retain(|job| !self.passed_over.contains_key(job) && !self.unextended.contains(job));
        overdue.truncate(REAP_MAX);
        // Whoever is overdue right after it was reaped was not helped by it, whatever the reason.
        // That must not become a loop without an end.
        let reaped = std::mem::take(&mut self.reaped);
        let (unhelped, overdue): (Vec<_>, Vec<_>) =
            overdue.into_iter().partition(|job| reaped.contains(job));
        self.pass_over(unhelped);
        self.reaped = overdue.iter().copied().collect();
        let reap = |job| Command::Reap { job };
        let held = send_each(shared, overdue, reap, |_, _| {}).await?;
        self.pass_over(held);
        Ok(!self.reaped.is_empty())
    }

    fn pass_over(&mut self, jobs: Vec<JobId>) {
        let again_at = Instant::now() + RETRY_AFTER;
        let room = PASSED_OVER_MAX.saturating_sub(self.passed_over.len());
        self.passed_over.extend(jobs.into_iter().take(room).map(|job| (job, again_at)));
    }
}

/// Sends a command for each job or entity, each a request of its own: they have nothing to do with
/// each other, so one that cannot be had must not fail the rest. Answers those; what becomes of the
/// others is told.
pub(crate) async fn send_each<T: Clone>(
    shared: &Arc<Shared>,
    concerned: Vec<T>,
    command: impl Fn(T) -> Command,
    mut told: impl FnMut(T, Reply),
) -> Result<Vec<T>, Error> {
    let (mut held, mut failed) = (Vec::new(), None);
    // No more at a time than the store takes in one go: whoever comes meanwhile waits for these,
    // and not for all of them.
    for some in concerned.chunks(shared.store.takes_at_once()) {
        let mut replies = Vec::with_capacity(some.len());
        for one in some {
            let commands = vec![command(one.clone())];
            let (mut request, reply) = Request::new(commands, None, &shared.requests);
            request.patience = Patience::ComesAgain;
            shared.requests.send(request).await.map_err(|_| Error::Stopped)?;
            replies.push((one, reply));
        }
        for (one, reply) in replies {
            match reply.await.map_err(|_| Error::Stopped)? {
                Ok(parcel) => told(one.clone(), parcel.unpack()),
                Err(Error::Busy) => held.push(one.clone()),
                // It concerns this one alone, and must not keep the others from their turn.
                Err(error) if error.is_divisible() => {
                    tracing::debug!(%error, "nothing can be done about something that is due");
                    held.push(one.clone());
                }
                Err(error) => failed = Some(error),
            }
        }
        if failed.is_some() {
            break;
        }
    }
    failed.map_or(Ok(held), Err)
}
