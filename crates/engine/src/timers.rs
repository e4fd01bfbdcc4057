//! What happens by itself: due jobs wake waiting pulls, the reaper ends what ran out of time, and
//! the store does its upkeep. Sleeps until the next due instant; nothing scans.

use crate::commit::Request;
use crate::engine::Shared;
use mainspring_kernel::{Command, Timestamp};
use mainspring_store::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Jobs the reaper takes in one request; more follow at once.
const REAP_MAX: usize = 1_000;
/// No sleep is longer, so that a clock set by hand is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// A failing store is asked again after this long.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut upkeep_at = Instant::now() + shared.config.maintain_every;
    loop {
        let pause = match turn(&shared).await {
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
async fn turn(shared: &Arc<Shared>) -> Result<Duration, Error> {
    let now = shared.clock.now();
    // A clock set forward makes leases look overdue: the commit extends them before it reaps.
    let overdue = shared.store.overdue(now, REAP_MAX).await?;
    if !overdue.is_empty() {
        let commands = overdue.into_iter().map(|job| Command::Reap { job }).collect();
        send(shared, commands).await?;
        return Ok(Duration::ZERO);
    }
    let wake = shared.store.wake(now).await?;
    if wake.is_work_due {
        shared.work_is_due.notify_one();
    }
    Ok(wake.next.map_or(SLEEP_MAX, |next| next.since(now).min(SLEEP_MAX)))
}

/// Makes every live lease last at least until `until`.
pub(crate) async fn extend_leases(shared: &Arc<Shared>, until: Timestamp) -> Result<(), Error> {
    let running = shared.store.running().await?;
    for jobs in running.chunks(REAP_MAX) {
        let extend = |job: &_| Command::ExtendLease { job: *job, until };
        send(shared, jobs.iter().map(extend).collect()).await?;
    }
    Ok(())
}

async fn send(shared: &Arc<Shared>, commands: Vec<Command>) -> Result<(), Error> {
    let (answer, reply) = oneshot::channel();
    let request = Request::new(commands, None, answer);
    shared.requests.send(request).await.map_err(|_| Error::Stopped)?;
    reply.await.map_err(|_| Error::Stopped)?.map(|_| ())
}
