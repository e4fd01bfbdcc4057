//! How many entities of each kind there are, counted now and then, so that nobody who asks for
//! metrics has them counted. Each kind is counted up to a bound.

use crate::engine::Shared;
use crate::limits::{CENSUS_EVERY, CENSUS_MAX};
use mainspring_kernel::entity::Kind;
use mainspring_store::{EntityFilter, Error, Scope};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The last count.
#[derive(Debug, Default)]
pub(crate) struct Census(Mutex<BTreeMap<Kind, u64>>);

impl Census {
    /// What was counted last, by kind.
    pub(crate) fn told(&self) -> Vec<(Kind, u64)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(kind, count)| (*kind, *count)).collect()
    }

    fn set(&self, kind: Kind, count: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, count);
    }
}

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = count(&shared).await
            && !matches!(error, Error::Away(_) | Error::Stopped)
        {
            tracing::warn!(%error, "entities could not be counted");
        }
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(CENSUS_EVERY) => {}
        }
    }
}

async fn count(shared: &Shared) -> Result<(), Error> {
    for kind in Kind::ALL {
        let all = EntityFilter::of(*kind, Scope::All);
        let count = shared.store.count_entities(&all, CENSUS_MAX).await?;
        shared.census.set(*kind, count as u64);
    }
    Ok(())
}
