//! How many entities of each kind there are, and how many jobs of each registered type in each
//! state in which they have not ended, counted now and then, so that nobody who asks for metrics
//! has them counted. Everything is counted up to a bound.

use crate::engine::Shared;
use crate::limits::{CENSUS_EVERY, CENSUS_JOBS_MAX, CENSUS_MAX, CENSUS_TYPES_MAX};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::{JobType, StateName};
use mainspring_store::{EntityFilter, Error, JobFilter, Scope};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The states whose jobs are counted by type: those in which many may stay.
pub(crate) const STATES: [StateName; 3] =
    [StateName::Queued, StateName::Running, StateName::Retrying];

/// The jobs of one type that have not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depth {
    /// Which type.
    pub job_type: JobType,
    /// How many are in each state, counted up to a bound.
    pub counts: Vec<(StateName, u64)>,
}

/// The last count.
#[derive(Debug, Default)]
pub(crate) struct Census(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    kinds: BTreeMap<Kind, u64>,
    depths: Vec<Depth>,
}

impl Census {
    /// How many entities were counted last, by kind.
    pub(crate) fn told(&self) -> Vec<(Kind, u64)> {
        self.known().kinds.iter().map(|(kind, count)| (*kind, *count)).collect()
    }

    /// How many jobs were counted last, by type.
    pub(crate) fn depths(&self) -> Vec<Depth> {
        self.known().depths.clone()
    }

    fn known(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        shared.census.known().kinds.insert(*kind, count as u64);
    }
    let types = shared.store.types().await?;
    let mut depths = Vec::with_capacity(types.len().min(CENSUS_TYPES_MAX));
    for spec in types.into_iter().take(CENSUS_TYPES_MAX) {
        let mut counts = Vec::with_capacity(STATES.len());
        for state in STATES {
            let job_type = Some(spec.name.clone());
            let of = JobFilter { state: Some(state), job_type, ..JobFilter::of(Scope::All) };
            let count = shared.store.count_jobs(&of, CENSUS_JOBS_MAX).await?;
            counts.push((state, count as u64));
        }
        depths.push(Depth { job_type: spec.name, counts });
    }
    shared.census.known().depths = depths;
    Ok(())
}
