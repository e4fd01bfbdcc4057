//! Reads at the end of the stream, shared: streams that wait for the next move all ask for the same
//! page at the same time, and each read has to stamp what is committed first.

use crate::fault::Fault;
use mainspring_store::MovesPage;
use std::collections::VecDeque;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Reads kept: streams that follow the end are at most a page apart.
const LOOKS_MAX: usize = 2;
/// Larger pages are not kept.
const MOVES_MAX: usize = 1_000;

/// The last reads at the end of the stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    looks: StdMutex<VecDeque<Look>>,
    /// Held by the one who reads.
    reading: Mutex<()>,
}

#[derive(Debug)]
struct Look {
    began: Instant,
    after: u64,
    limit: usize,
    page: MovesPage,
}

impl Tail {
    /// The moves after a position, from a read that others made if it began after this one was
    /// asked for: it shows all that was committed by then. Whoever is behind the others reads by
    /// itself and holds nobody up.
    pub(crate) async fn read<F>(
        &self,
        after: u64,
        limit: usize,
        read: impl FnOnce() -> F,
    ) -> Result<MovesPage, Fault>
    where
        F: Future<Output = Result<MovesPage, Fault>>,
    {
        let asked = Instant::now();
        if self.looks().iter().any(|look| after < look.after) {
            return read().await;
        }
        let _reading = self.reading.lock().await;
        if let Some(page) = self.known(after, limit, asked) {
            return Ok(page);
        }
        let began = Instant::now();
        let page = read().await?;
        if after <= page.newest && page.moves.len() <= MOVES_MAX {
            let mut looks = self.looks();
            looks.push_front(Look { began, after, limit, page: page.clone() });
            looks.truncate(LOOKS_MAX);
        }
        Ok(page)
    }

    /// What a read that began since then brought.
    fn known(&self, after: u64, limit: usize, asked: Instant) -> Option<MovesPage> {
        let is_same = |look: &&Look| look.after == after && look.limit == limit;
        let is_good = |look: &&Look| is_same(look) && look.began >= asked;
        self.looks().iter().find(is_good).map(|look| look.page.clone())
    }

    fn looks(&self) -> MutexGuard<'_, VecDeque<Look>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::job::Actor;
    use mainspring_kernel::{
        JobId, JobType, QueueName, StateName, TenantId, Timestamp, Transition, UserId,
    };
    use mainspring_store::LoggedMove;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    const NOTHING: [u64; 0] = [];

    /// A stream that counts its readers and lets them through one permit at a time.
    struct Stream {
        tail: Tail,
        newest: AtomicU64,
        reads: AtomicUsize,
        gate: Semaphore,
    }

    fn logged(position: u64) -> LoggedMove {
        let transition = Transition {
            seq: 1,
            from: None,
            to: StateName::Queued,
            actor: Actor::Reaper,
            reason: None,
            at: Timestamp(1),
            attempt: 1,
        };
        LoggedMove {
            position,
            job: JobId(1),
            tenant: TenantId::new("t").unwrap(),
            user: UserId::new("u").unwrap(),
            job_type: JobType::new("j").unwrap(),
            queue: QueueName::new("q").unwrap(),
            trace_id: "trace".into(),
            created_at: Timestamp(1),
            run_at: Timestamp(1),
            transition,
        }
    }

    impl Stream {
        fn new(newest: u64, permits: usize) -> Arc<Self> {
            Arc::new(Stream {
                tail: Tail::default(),
                newest: AtomicU64::new(newest),
                reads: AtomicUsize::new(0),
                gate: Semaphore::new(permits),
            })
        }

        /// Positions after `after`, as a reader gets them.
        async fn read(&self, after: u64) -> Vec<u64> {
            let read = || async {
                let newest = self.newest.load(Ordering::SeqCst);
                self.reads.fetch_add(1, Ordering::SeqCst);
                self.gate.acquire().await.expect("it stays open").forget();
                let moves = (after + 1..=newest).map(logged).collect();
                Ok(MovesPage { moves, has_gap: false, newest })
            };
            let page = self.tail.read(after, 10, read).await.expect("it reads");
            page.moves.iter().map(|it| it.position).collect()
        }

        fn reads(&self) -> usize {
            self.reads.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn a_hundred_readers_of_the_same_page_cost_two_reads() {
        let stream = Stream::new(5, 0);
        let ask = |_| {
            tokio::spawn({
                let stream = stream.clone();
                async move { stream.read(5).await }
            })
        };
        let asked: Vec<_> = (0..100).map(ask).collect();
        while stream.reads() == 0 {
            tokio::task::yield_now().await;
        }
        stream.gate.add_permits(100);
        for reader in asked {
            assert_eq!(reader.await.expect("no panic"), NOTHING);
        }
        assert_eq!(stream.reads(), 2, "one that was under way, and one for all who came meanwhile");
    }

    #[tokio::test]
    async fn only_a_read_that_began_later_is_shared() {
        let stream = Stream::new(5, 100);
        assert_eq!(stream.read(5).await, NOTHING);
        stream.newest.store(6, Ordering::SeqCst);
        assert_eq!(stream.read(5).await, [6]);
        stream.newest.store(7, Ordering::SeqCst);
        assert_eq!(stream.read(5).await, [6, 7]);
        assert_eq!(stream.reads(), 3);
    }

    #[tokio::test]
    async fn who_is_far_behind_waits_for_nobody_and_is_not_kept() {
        let stream = Stream::new(5, 1);
        assert_eq!(stream.read(4).await, [5]);
        let last = tokio::spawn({
            let stream = stream.clone();
            async move { stream.read(5).await }
        });
        while stream.reads() < 2 {
            tokio::task::yield_now().await;
        }
        let behind = tokio::spawn({
            let stream = stream.clone();
            async move { stream.read(1).await }
        });
        while stream.reads() < 3 {
            tokio::task::yield_now().await;
        }
        stream.gate.add_permits(3);
        assert_eq!(behind.await.expect("no panic"), [2, 3, 4, 5]);
        assert_eq!(last.await.expect("no panic"), NOTHING);
        assert_eq!(stream.read(1).await, [2, 3, 4, 5]);
        assert_eq!(stream.reads(), 4);
    }
}
