//! Callers and a database that is away: they wait for it, each as long as it is patient, and not
//! one after the other.

use super::NO_ANSWER;
use crate::fault::Fault;
use crate::neighbours;
use crate::this_server::ThisServer;
use mainspring_store::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// A database that is away is asked again after this long.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Even a database that was away for long gets this much time for an answer.
const PATIENCE_MIN: Duration = Duration::from_millis(250);

impl ThisServer {
    /// Does `what`, again and again while the database is away and callers are patient.
    pub(crate) async fn patiently<T, F>(&self, mut what: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let started = Instant::now();
        loop {
            let asked = Instant::now();
            let outcome = match self.patience_left() {
                None => what().await,
                Some(left) => tokio::time::timeout(left, what())
                    .await
                    .unwrap_or_else(|_| Err(Fault::Away(NO_ANSWER.into()))),
            };
            self.note(&outcome, asked);
            if !self.is_worth_another(&outcome, started) {
                return outcome.map_err(Error::from);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// While the database is away, how long it still gets for an answer: callers come one after the
    /// other and must not wait one after the other.
    fn patience_left(&self) -> Option<Duration> {
        let (_, since) = self.away()?;
        Some(self.config.patience.saturating_sub(since.elapsed()).max(PATIENCE_MIN))
    }

    /// Whether a caller that began at `started` should wait and try again.
    fn is_worth_another<T>(&self, outcome: &Result<T, Fault>, started: Instant) -> bool {
        let patience = self.config.patience;
        let is_long_away = self.away().is_some_and(|(_, since)| since.elapsed() > patience);
        matches!(outcome, Err(Fault::Away(_)))
            && started.elapsed() < patience
            && !is_long_away
            && !self.is_closed.load(Ordering::Acquire)
    }

    /// Notes how a commit went; whether it should be tried again, and then waits a moment.
    pub(crate) async fn tries_commit_again<T>(
        &self,
        outcome: &Result<T, Fault>,
        asked: Instant,
        started: Instant,
    ) -> bool {
        self.note(outcome, asked);
        let again = self.is_worth_another(outcome, started);
        if again {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        again
    }

    /// After an outage nothing is decided before it is known whether anybody could renew a lease
    /// meanwhile: waits for the probe, as long as callers are patient. A server that stood still
    /// looks by itself.
    pub(crate) async fn see_clearly(&self, started: Instant) -> Result<(), Fault> {
        let patience = self.config.patience;
        let mut is_back = self.reach.is_back.subscribe();
        loop {
            while let Some((why, since)) = self.away() {
                let left = patience.saturating_sub(started.elapsed().max(since.elapsed()));
                if left.is_zero() || self.is_closed.load(Ordering::Acquire) {
                    return Err(Fault::Away(why));
                }
                // Whether it was rung or not, the next look at it tells.
                let _ = tokio::time::timeout(left, is_back.changed()).await;
            }
            if !self.has_not_looked() {
                return Ok(());
            }
            // A look that is not answered begins an outage: nobody waits for it and then again.
            let asked = Instant::now();
            let left = patience.saturating_sub(started.elapsed()).max(PATIENCE_MIN);
            let outcome = tokio::time::timeout(left, neighbours::say_alive(self)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(Fault::Away(NO_ANSWER.into())));
            self.note_look(&outcome, asked);
        }
    }
}
