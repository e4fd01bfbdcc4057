//! The same for the engine above it: its tasks die, and its pulls are bounded by bytes.

use super::{LONG, config, listening, submit};
use mainspring_engine::limits::PULL_BYTES_MAX;
use mainspring_engine::{Clock, Config, Engine, Entropy, Pull};
use mainspring_kernel::Timestamp;
use mainspring_kernel::limits::PAYLOAD_BYTES_MAX;
use mainspring_kernel::shared_time::Jump;
use mainspring_store::Error;
use mainspring_store_memory::MemoryStore;
use mainspring_testkit::drive::{self, BEGINNING};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A clock and a source of chance in which somebody falls over once it is set.
#[derive(Clone, Default)]
struct Pit(Arc<AtomicBool>);

impl Pit {
    fn step(&self) {
        assert!(!self.0.load(Ordering::Acquire), "fell into a pit");
    }
}

impl Clock for Pit {
    fn now(&self) -> Timestamp {
        self.step();
        BEGINNING
    }

    fn jumps(&self) -> Arc<[Jump]> {
        Arc::default()
    }
}

impl Entropy for Pit {
    fn bits(&self) -> u128 {
        self.step();
        7
    }
}

/// Runs an engine until its `dug` part falls into a pit; what the engine says of itself then.
fn engine_falls(clock: Pit, entropy: Pit, dug: &Pit, push: bool) -> String {
    let (fatal, told) = listening();
    let store = Arc::new(MemoryStore::ephemeral(config()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("it works");
    runtime.block_on(async {
        let config = Config {
            fatal,
            are_types_strict: false,
            maintain_every: Duration::from_millis(1),
            ..Config::standard()
        };
        let engine = Engine::start(store, Arc::new(clock), Arc::new(entropy), config)
            .await
            .expect("it works");
        assert_eq!(engine.health().broken, None);
        dug.0.store(true, Ordering::Release);
        if push {
            let answer = engine.execute(vec![submit("{}")]).await;
            assert!(matches!(answer, Err(Error::Stopped)), "{answer:?}");
        }
        let why =
            tokio::task::spawn_blocking(move || told.recv_timeout(LONG)).await.expect("it works");
        let why = why.expect("it is told");
        assert_eq!(engine.health().broken.as_ref(), Some(&why));
        why
    })
}

#[test]
fn a_commit_loop_that_dies_is_told_and_the_engine_is_not_healthy() {
    let pit = Pit::default();
    let why = engine_falls(Pit::default(), pit.clone(), &pit, true);
    assert_eq!(why, "the commit loop died: fell into a pit");
}

#[test]
fn timers_that_die_are_told_and_the_engine_is_not_healthy() {
    let pit = Pit::default();
    let why = engine_falls(pit.clone(), Pit::default(), &pit, false);
    assert_eq!(why, "the timers died: fell into a pit");
}

/// Forty jobs of a megabyte: no pull gets them all at once, every pull gets some, none is lost, and
/// a pull that waits beside the first is served from what that left over.
#[test]
fn a_pull_is_bounded_by_bytes_and_leaves_the_rest_ready() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it works");
    let ask = |worker: &str| Pull {
        worker: drive::worker(worker),
        token: None,
        tenant: None,
        types: None,
        queues: None,
        limit: 100,
        lease_ms: 30_000,
        governed: None,
        wait: LONG,
    };
    runtime.block_on(async {
        let store = Arc::new(MemoryStore::ephemeral(config()));
        let config = Config { are_types_strict: false, ..Config::standard() };
        let pits = (Arc::new(Pit::default()), Arc::new(Counting::default()));
        let engine = Engine::start(store, pits.0, pits.1, config).await.expect("it works");
        let wishes = vec![submit(&"x".repeat(PAYLOAD_BYTES_MAX)); 40];
        let (first, second, done) =
            tokio::join!(engine.pull(ask("w1")), engine.pull(ask("w2")), engine.execute(wishes),);
        assert_eq!(done.expect("it works").len(), 40);
        let (first, second) = (first.expect("it works").len(), second.expect("it works").len());
        let bound = PULL_BYTES_MAX / PAYLOAD_BYTES_MAX;
        assert_eq!((first, second), (bound, 40 - bound));
    });
}

/// Ids that differ.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicU64);

impl Entropy for Counting {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
