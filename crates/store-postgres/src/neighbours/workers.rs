//! Workers that servers have heard from, told through the row of each server in `node`: a worker
//! pulls from one server, and every server must know that there is one. Before them stand the moves
//! that the server refused in a row. Only for people; nothing is decided on.

use crate::connections::Value;
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::At;
use mainspring_kernel::Timestamp;
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_store::record::{decode_workers, encode_refusals, encode_workers};
use mainspring_store::{News, WorkerNote};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes that a server tells of its workers, at most: those heard from last.
const WORKERS_BYTES_MAX: usize = 256 * 1024;
/// When somebody was last heard from is told this often; who, and what they ask for, at once.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// What a server told is heard for this long after it was last seen.
const HEARD_FOR: Duration = Duration::from_secs(600);
/// Servers that are heard, at most.
const SERVERS_MAX: i32 = 64;

/// Bytes that a server tells of the moves it refused in a row, at most: the latest.
pub(crate) const REFUSALS_BYTES_MAX: i32 = 16 * 1024;

/// What was told last.
#[derive(Debug, Default)]
pub(crate) struct WorkersTold(Mutex<Option<(Digest, Instant)>>);

impl WorkersTold {
    /// What to tell now; nothing if it is not worth a write.
    pub(crate) fn workers_to_tell(&self, news: Option<&Arc<dyn News>>) -> Option<Vec<u8>> {
        let (notes, refusals) = (news?.workers(), news?.refusals());
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.is_empty() && refusals.is_empty() && told.is_none() {
            return None;
        }
        let mut bytes = Vec::new();
        encode_refusals(&refusals, REFUSALS_BYTES_MAX as usize, &mut bytes);
        let who = digest(&[&bytes[..], &who(&notes).0[..]]);
        if told.is_some_and(|(known, at)| known == who && at.elapsed() < TOLD_EVERY) {
            return None;
        }
        *told = Some((who, Instant::now()));
        encode_workers(&notes, WORKERS_BYTES_MAX, &mut bytes);
        Some(bytes)
    }
}

/// What tells one set of workers and their wishes from another, whenever they were heard.
fn who(notes: &[WorkerNote]) -> Digest {
    let at = Timestamp::EPOCH;
    let timeless = |note: &WorkerNote| {
        let note = WorkerNote { first_seen: at, last_seen: at, granted: 0, ..note.clone() };
        let mut bytes = Vec::new();
        encode_workers(&[note], usize::MAX, &mut bytes);
        bytes
    };
    let mut all: Vec<Vec<u8>> = notes.iter().map(timeless).collect();
    all.sort_unstable();
    digest(&all.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// The workers that other servers have heard from.
pub(crate) async fn workers_elsewhere(server: &ThisServer) -> Result<Vec<WorkerNote>, Fault> {
    let since = At(server.now() - HEARD_FOR);
    let values: Vec<Value> = vec![Box::new(server.id), Box::new(since), Box::new(SERVERS_MAX)];
    let rows = server.connections.read(Query::ReadWorkers, values).await?;
    let mut notes = Vec::new();
    for row in &rows {
        // A newer version may tell more than this one understands.
        notes.extend(decode_workers(row.try_get(0)?).unwrap_or_default());
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::{TenantId, WorkerId};
    use mainspring_store::RefusalNote;
    use mainspring_store::record::decode_refusals;

    #[derive(Default)]
    struct Known(Mutex<Vec<WorkerNote>>, Mutex<Vec<RefusalNote>>);

    impl News for Known {
        fn work(&self) {}
        fn moved(&self) {}
        fn timers(&self) {}
        fn registry(&self) {}
        fn workers(&self) -> Vec<WorkerNote> {
            self.0.lock().unwrap().clone()
        }
        fn refusals(&self) -> Vec<RefusalNote> {
            self.1.lock().unwrap().clone()
        }
    }

    fn note(name: &str, last_seen: i64) -> WorkerNote {
        WorkerNote {
            id: WorkerId::stored(name.into()),
            tenant: None,
            types: None,
            queues: None,
            first_seen: Timestamp(1),
            last_seen: Timestamp(last_seen),
            granted: 0,
        }
    }

    #[test]
    fn only_what_is_new_is_told_at_once() {
        let known = Arc::new(Known::default());
        let news: Arc<dyn News> = known.clone();
        let heard = WorkersTold::default();
        assert_eq!(heard.workers_to_tell(None), None);
        assert_eq!(heard.workers_to_tell(Some(&news)), None, "nobody yet");
        *known.0.lock().unwrap() = vec![note("a", 1)];
        assert!(heard.workers_to_tell(Some(&news)).is_some());
        *known.0.lock().unwrap() = vec![note("a", 2)];
        assert_eq!(heard.workers_to_tell(Some(&news)), None, "the same one, a moment later");
        *known.0.lock().unwrap() = vec![note("b", 3), note("a", 2)];
        assert!(heard.workers_to_tell(Some(&news)).is_some());
        known.0.lock().unwrap().clear();
        assert_eq!(heard.workers_to_tell(Some(&news)), Some(Vec::new()), "they are gone");
        known.1.lock().unwrap().push(RefusalNote {
            tenant: TenantId::stored("t".into()),
            place: "/p".into(),
            count: 1,
            since: Timestamp(1),
            last_at: Timestamp(1),
            taken_at: None,
        });
        let told = heard.workers_to_tell(Some(&news)).expect("a row is told at once");
        assert_eq!(decode_refusals(&told).unwrap(), news.refusals());
        assert_eq!(heard.workers_to_tell(Some(&news)), None, "it is known");
        known.1.lock().unwrap()[0].count = 2;
        assert!(heard.workers_to_tell(Some(&news)).is_some(), "it has grown");
    }
}
