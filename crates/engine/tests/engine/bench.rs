//! What a test works with: an engine on a scripted store, a clock that goes with tokio's paused
//! one, and short words for what callers do.

use crate::scripted::Scripted;
use mainspring_engine::{Clock, Config, Engine, Entropy, Grant, Pull, Submitted};
use mainspring_kernel::command::{Complete, Submit};
use mainspring_kernel::fingerprint::{self, Digest};
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::shared_time::Jump;
use mainspring_kernel::{
    Command, JobId, JobType, Receipt, Rejection, TenantId, Timestamp, UserId, WorkerId,
};
use mainspring_store::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Goes as tokio's clock does.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000) + self.0.elapsed()
    }

    fn jumps(&self) -> Arc<[Jump]> {
        Arc::default()
    }
}

/// One number after the other.
#[derive(Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) struct Bench {
    pub(crate) store: Arc<Scripted>,
    pub(crate) engine: Engine,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Bench::on(Arc::new(Scripted::default())).await
    }

    /// A new engine on a store that may hold something.
    pub(crate) async fn on(store: Arc<Scripted>) -> Self {
        Bench::with(store, Config::standard()).await
    }

    /// The same with settings of its own.
    pub(crate) async fn with(store: Arc<Scripted>, config: Config) -> Self {
        let config = Config { are_types_strict: false, ..config };
        let (clock, entropy) = (PausedClock(store.began()), Counting::default());
        let engine = Engine::start(store.clone(), Arc::new(clock), Arc::new(entropy), config);
        Bench { store, engine: engine.await.unwrap() }
    }

    pub(crate) async fn submit(&self, wish: Submit) -> Result<Submitted, Error> {
        Ok(self.engine.submit(wish).await?.unwrap())
    }

    /// Submits and has a worker take it, for a lease of that long.
    pub(crate) async fn running(&self, lease: Duration) -> Grant {
        self.submit(wish("acme")).await.unwrap();
        let grants = self.engine.pull(Pull { lease_ms: millis(lease), ..pull(0) }).await.unwrap();
        grants.into_iter().next().expect("a job was ready")
    }

    pub(crate) async fn complete(&self, grant: &Grant) -> Result<Receipt, Rejection> {
        self.engine.execute_one(complete(grant)).await.unwrap()
    }

    pub(crate) async fn has_job(&self, id: JobId) -> bool {
        self.engine.job(id).await.unwrap().is_some()
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap()
}

pub(crate) fn complete(grant: &Grant) -> Command {
    let token = grant.job.lease().expect("it runs").token();
    Command::Complete(Complete { job: grant.job.id, token, result: None })
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::new("w").unwrap()
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

/// A wish of some tenant.
pub(crate) fn wish(tenant: &str) -> Submit {
    let (user, job_type) = (UserId::new("ada").unwrap(), JobType::new("mill").unwrap());
    Submit { payload: "1".into(), ..Submit::plain(self::tenant(tenant), user, job_type) }
}

/// A wish of some tenant with a key; the same key is the same wish.
pub(crate) fn keyed(tenant: &str, key: &str) -> Submit {
    let idempotency = Some(Box::new(Idempotency {
        hash: fingerprint::digest(&[tenant.as_bytes(), key.as_bytes()]),
        scope: "".into(),
        key: key.into(),
        fingerprint: Some(fingerprint::digest(&[b"1"])),
        window_secs: None,
    }));
    Submit { idempotency, ..wish(tenant) }
}

pub(crate) fn hash(wish: &Submit) -> Digest {
    wish.idempotency.as_ref().expect("it has a key").hash
}

/// A pull of one job that waits so many milliseconds.
pub(crate) fn pull(wait_ms: u64) -> Pull {
    Pull {
        token: None,
        tenant: None,
        worker: worker(),
        types: None,
        queues: None,
        limit: 1,
        wait: Duration::from_millis(wait_ms),
        lease_ms: 60_000,
        governed: None,
    }
}

/// Lets everything that can go on go on, without time passing.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
