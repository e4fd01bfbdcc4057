//! How fast the engine is without HTTP: batches of 1000 submitted, then pulled and completed, on a
//! journaled store in a temporary directory. `cargo run --release --example engine_speed [jobs]`.

use mainspring_engine::{Config, Engine, Pull, SystemClock, SystemEntropy};
use mainspring_kernel::command::{Complete, Submit};
use mainspring_kernel::{Command, JobType, TenantId, TypeSpec, UserId, WorkerId};
use mainspring_store_memory::disk::RealDisk;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 1_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let jobs: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let delay_ms: Option<u64> = std::env::args().nth(2).and_then(|n| n.parse().ok());
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let (engine, _) = open(dir.path()).await;
    let spec = TypeSpec::plain(JobType::new("bench").expect("a name"));
    engine.execute(vec![Command::SetType(Box::new(spec))]).await.expect("set").pop();
    let at = engine.now();
    let mut lanes = Vec::new();
    for _ in 0..2 {
        let engine = engine.clone();
        lanes.push(tokio::spawn(async move {
            let payload: Arc<str> = format!("{{\"text\":\"{}\"}}", "x".repeat(189)).into();
            let tenant = TenantId::new("default").expect("a name");
            let user = UserId::new("bench").expect("a name");
            let job_type = JobType::new("bench").expect("a name");
            for _ in 0..jobs / BATCH / 2 {
                let batch = (0..BATCH).map(|_| {
                    let plain = Submit::plain(tenant.clone(), user.clone(), job_type.clone());
                    let payload = Arc::from(&*payload);
                    Command::Submit(Box::new(Submit { payload, delay_ms, ..plain }))
                });
                engine.execute(batch.collect()).await.expect("submitted");
            }
        }));
    }
    for lane in lanes {
        lane.await.expect("a lane");
    }
    report("submit", jobs, engine.now().since(at));
    println!("rss {} MB, {} bytes a job", rss() >> 20, rss() / jobs);
    if delay_ms.is_none() {
        let at = engine.now();
        let mut lanes = Vec::new();
        for lane in 0..2 {
            let engine = engine.clone();
            lanes.push(tokio::spawn(async move { drain(&engine, lane).await }));
        }
        for lane in lanes {
            lane.await.expect("a lane");
        }
        report("drain", jobs, engine.now().since(at));
    }
    println!("rss {} MB", rss() >> 20);
    engine.shutdown().await.expect("closed");
    drop(engine);
    let (engine, took) = open(dir.path()).await;
    report("recovery", jobs, took);
    engine.shutdown().await.expect("closed");
}

async fn drain(engine: &Engine, lane: usize) {
    let worker = WorkerId::new(&format!("w{lane}")).expect("a name");
    let pull = Pull {
        tenant: None,
        worker,
        token: None,
        types: None,
        queues: None,
        limit: BATCH,
        wait: Duration::ZERO,
        lease_ms: 60_000,
        governed: None,
    };
    let mut reports = Vec::new();
    loop {
        let reply = engine.work(reports, Some(pull.clone())).await.expect("pulled");
        if reply.grants.is_empty() {
            break;
        }
        reports = reply
            .grants
            .iter()
            .map(|grant| {
                let token = grant.job.lease().expect("leased").token();
                Command::Complete(Complete { job: grant.job.id, token, result: None })
            })
            .collect();
    }
}

async fn open(dir: &std::path::Path) -> (Engine, Duration) {
    use mainspring_engine::Clock;
    let clock = Arc::new(SystemClock::new());
    let at = clock.now();
    let disk = Arc::new(RealDisk::open(dir).expect("a directory"));
    let store = MemoryStore::open(disk, MemoryConfig::standard(7), clock.now()).expect("opened");
    let took = clock.now().since(at);
    let entropy = Arc::new(SystemEntropy::default());
    let engine = Engine::start(Arc::new(store), clock, entropy, Config::standard()).await;
    (engine.expect("started"), took)
}

fn report(what: &str, jobs: usize, took: Duration) {
    let rate = jobs as f64 / took.as_secs_f64();
    println!("{what}: {jobs} jobs in {took:.2?}, {rate:.0}/s");
}

fn rss() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
