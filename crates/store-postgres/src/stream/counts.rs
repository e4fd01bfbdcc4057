//! The numbers kept (`tally`), as metrics want them.

use crate::commit::tallies::COUNTED_BY_TYPE;
use crate::connections::{Call, Part};
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::At;
use mainspring_kernel::{JobType, QueueName, StateName, Timestamp};
use mainspring_store::{Counts, QueueCount, TypeCount};
use std::collections::BTreeMap;

/// Counts for metrics.
pub(crate) async fn counts(server: &ThisServer) -> Result<Counts, Fault> {
    let queries = [Query::ReadTally, Query::OldestDue, Query::CountOpenItems];
    let calls = queries.map(|query| Call::new(query, Vec::new())).into();
    let answers = server.connections.get().await?.run(Part::All, calls).await?;
    let [tally, oldest, open] = answers.as_slice() else {
        return Err(Fault::Broken("the counts did not answer".into()));
    };
    let mut counts = Counts::default();
    let mut queues: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let mut types: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for row in tally {
        let (name, n): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let n = u64::try_from(n).unwrap_or(0);
        let Some((kind, name)) = name.split_once('/') else { continue };
        match (kind, name) {
            ("state", name) => {
                if let Some(state) = StateName::parse(name) {
                    counts.by_state[state as usize] = n;
                }
            }
            ("total", "submitted") => counts.submitted = n,
            ("total", "claims") => counts.claims = n,
            ("total", "retries") => counts.retries = n,
            ("total", "jobs_retried") => counts.jobs_retried = n,
            ("ready", queue) => queues.entry(queue.to_owned()).or_default()[0] = n,
            ("pending", queue) => queues.entry(queue.to_owned()).or_default()[1] = n,
            ("running", queue) => queues.entry(queue.to_owned()).or_default()[2] = n,
            ("type", rest) => {
                let Some((state, name)) = rest.split_once('/') else { continue };
                let at = COUNTED_BY_TYPE.iter().position(|counted| counted.as_str() == state);
                if let Some(at) = at.filter(|_| n > 0) {
                    types.entry(name.to_owned()).or_default()[at] = n;
                }
            }
            _ => {}
        }
    }
    let mut due: BTreeMap<String, Timestamp> = BTreeMap::new();
    for row in oldest {
        due.insert(row.try_get(0)?, row.try_get::<_, At>(1)?.0.whole_second());
    }
    counts.oldest_due = due.values().min().copied();
    let open: i64 = open.first().map_or(Ok(0), |row| row.try_get(0))?;
    counts.items_open = u64::try_from(open).unwrap_or(0);
    for queue in server.registry().queues.keys() {
        queues.entry(queue.as_str().to_owned()).or_default();
    }
    counts.queues = queues
        .into_iter()
        .map(|(name, [ready, pending, running])| QueueCount {
            oldest_due: due.get(&name).copied(),
            name: QueueName::stored(name.into()),
            ready,
            pending,
            running,
        })
        .collect();
    counts.types = types
        .into_iter()
        .map(|(name, [queued, running, retrying])| TypeCount {
            name: JobType::stored(name.into()),
            queued,
            running,
            retrying,
        })
        .collect();
    counts.due = counts.queues.iter().map(|queue| queue.ready).sum();
    Ok(counts)
}
