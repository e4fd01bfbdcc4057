//! How many jobs of a caller are in each state. Whoever sees everything is told the numbers that
//! the store keeps; of one tenant or user there are none, so they are counted up to a bound.

use super::watched::Watched;
use crate::limits::WATCHED_JOBS_MAX;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mainspring_engine::store::{Counts, JobFilter, Scope};
use mainspring_engine::{Engine, Error};
use mainspring_kernel::StateName;
use std::sync::Arc;
use std::time::Duration;

/// How often is counted while somebody looks.
pub(super) const EVERY: Duration = Duration::from_secs(3);
/// How long a page waits for numbers that it can do without.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long one waits for those that it is about.
const PATIENCE_LONG: Duration = Duration::from_secs(5);

/// How many are in each state, indexed like [`StateName::ALL`]; `None` while nobody has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    counts: [Option<u64>; 8],
    /// Whether a count stops at a bound.
    is_bounded: bool,
}

impl Tally {
    pub(super) fn of(&self, state: StateName) -> Option<u64> {
        let mut found = StateName::ALL.iter().zip(self.counts);
        found.find(|(one, _)| **one == state).and_then(|(_, count)| count)
    }

    /// The same as text.
    pub(super) fn text(&self, state: StateName) -> String {
        match self.of(state) {
            Some(count) if self.is_bounded && count >= WATCHED_JOBS_MAX as u64 => {
                format!("{}+", super::parts::count(WATCHED_JOBS_MAX as u64))
            }
            Some(count) => super::parts::count(count),
            None => "–".to_owned(),
        }
    }
}

/// The numbers that are shown to whoever looks now.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// By tenant or user.
    bounded: Watched<Tally>,
    /// Of the whole server.
    whole: Watched<Arc<Counts>>,
}

impl Tallies {
    /// The numbers of a caller.
    pub(super) async fn of(&self, engine: &Engine, scope: &Scope) -> Tally {
        if *scope == Scope::All {
            let counts = self.whole.latest(engine, scope, PATIENCE).await;
            let counts = counts.map_or([None; 8], |(_, counts)| counts.by_state.map(Some));
            return Tally { counts, is_bounded: false };
        }
        let found = self.bounded.latest(engine, scope, PATIENCE).await;
        found.map_or_else(Tally::default, |(_, tally)| tally)
    }

    /// The numbers of the whole server, as they were a moment ago. Only if nobody could be found
    /// to count them they are counted here.
    pub(crate) async fn counts(&self, engine: &Engine) -> Result<Counts, Error> {
        match self.whole.latest(engine, &Scope::All, PATIENCE_LONG).await {
            Some((_, counts)) => Ok(Counts::clone(&counts)),
            None => engine.counts().await,
        }
    }

    /// Counts for whoever looks until the task ends.
    pub(super) async fn run(&self, engine: &Engine) {
        tokio::join!(
            self.bounded.run(engine, EVERY, bounded),
            self.whole.run(engine, EVERY, whole)
        );
    }
}

fn whole<'a>(engine: &'a Engine, _: &'a Scope) -> BoxFuture<'a, Result<Arc<Counts>, Error>> {
    async move { engine.counts().await.map(Arc::new) }.boxed()
}

fn bounded<'a>(engine: &'a Engine, scope: &'a Scope) -> BoxFuture<'a, Result<Tally, Error>> {
    async move {
        let mut tally = Tally { is_bounded: true, ..Tally::default() };
        for (state, count) in StateName::ALL.into_iter().zip(&mut tally.counts) {
            let filter = JobFilter { state: Some(state), ..JobFilter::of(scope.clone()) };
            *count = Some(engine.count_jobs(&filter, WATCHED_JOBS_MAX).await? as u64);
        }
        Ok(tally)
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_told() {
        let mut tally = Tally { counts: [Some(1_000); 8], is_bounded: true };
        assert_eq!(tally.text(StateName::Queued), "1,000+");
        tally.is_bounded = false;
        assert_eq!(tally.text(StateName::Queued), "1,000");
        assert_eq!(Tally::default().text(StateName::Failed), "–");
    }
}
