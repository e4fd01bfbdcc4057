//! What the hot paths cost in instructions, which are the same whatever else the machine does.
//! `cargo xtask instructions` runs this under valgrind, each piece of work for two counts, and
//! compares the difference with the figures in `crates/testkit/instructions.txt`.

use mainspring_engine::{Clock, Config, Engine, Entropy, Pull};
use mainspring_kernel::command::{Claim, Complete, Submit};
use mainspring_kernel::shared_time::Jump;
use mainspring_kernel::{
    Backlog, Command, Event, Facts, Job, JobType, TenantId, Timestamp, TypeSpec, UserId, WorkerId,
    decide, evolve,
};
use mainspring_store::record::{FrameWriter, Names, events_of};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Jobs of one request.
const BATCH: usize = 100;
const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

/// Steps on by a microsecond at each look.
struct Steady(AtomicI64);

impl Clock for Steady {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn jumps(&self) -> Arc<[Jump]> {
        Arc::default()
    }
}

struct Counted(AtomicU64);

impl Entropy for Counted {
    fn bits(&self) -> u128 {
        // Spread like random ones.
        let n = u128::from(self.0.fetch_add(1, Ordering::Relaxed));
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

fn wish() -> Submit {
    let tenant = TenantId::new("default").expect("a name");
    let user = UserId::new("bench").expect("a name");
    let plain = Submit::plain(tenant, user, JobType::new("bench").expect("a name"));
    Submit { payload: format!("{{\"text\":\"{}\"}}", "x".repeat(189)).into(), ..plain }
}

fn facts(nth: u64) -> Facts<'static> {
    let id = (u128::from(nth) << 64) | 1;
    Facts { fresh_id: id, fresh_secret: id, backlog: Backlog::UNBOUNDED, ..Facts::at(NOW) }
}

fn submitted(nth: u64, wish: &Command) -> Job {
    let decision = decide(wish, &facts(nth)).expect("accepted");
    match decision.events.into_iter().next() {
        Some(Event::JobSubmitted(job)) => *job,
        other => panic!("a submission makes a job, not {other:?}"),
    }
}

/// One job from its submission to its end, by the rules alone.
fn rules(nth: u64, wish: &Command) {
    let mut job = submitted(nth, wish);
    let worker = WorkerId::new("w").expect("a name");
    let claim = Command::Claim(Claim { job: job.id, worker, lease_ms: 60_000 });
    step(&mut job, &claim, nth);
    let token = job.lease().expect("leased").token();
    let done = Command::Complete(Complete { job: job.id, token, result: None });
    step(&mut job, &done, nth);
    black_box(&job);
}

fn step(job: &mut Job, command: &Command, nth: u64) {
    let decision = decide(command, &Facts { job: Some(job), ..facts(nth) }).expect("allowed");
    for event in &decision.events {
        if let Event::JobMoved(moved) = event {
            evolve(job, moved).expect("legal");
        }
    }
}

/// A frame of a hundred submissions, written and read.
fn frames(count: u64) {
    let wish = Command::Submit(Box::new(wish()));
    let events: Vec<Event> =
        (0..BATCH as u64).map(|nth| Event::JobSubmitted(Box::new(submitted(nth, &wish)))).collect();
    let (mut out, mut names) = (Vec::new(), Names::shared());
    for _ in 0..count {
        out.clear();
        let frame = FrameWriter::begin(&mut out, NOW);
        events.iter().for_each(|event| frame.push(event, &mut out));
        assert_eq!(events_of(&out, &mut names).count(), BATCH);
    }
}

/// Requests of a hundred jobs through the engine and the memory store without a journal: submitted,
/// and, if `is_drained`, handed out and completed.
async fn engine(count: u64, is_drained: bool) {
    let clock = Arc::new(Steady(AtomicI64::new(NOW.0)));
    let store = MemoryStore::ephemeral(MemoryConfig::standard(7));
    let entropy = Arc::new(Counted(AtomicU64::new(1)));
    let engine = Engine::start(Arc::new(store), clock, entropy, Config::standard()).await;
    let engine = engine.expect("started");
    let spec = TypeSpec::plain(JobType::new("bench").expect("a name"));
    engine.execute(vec![Command::SetType(Box::new(spec))]).await.expect("set");
    let pull = Pull {
        tenant: None,
        worker: WorkerId::new("w").expect("a name"),
        token: None,
        types: None,
        queues: None,
        limit: BATCH,
        wait: Duration::ZERO,
        lease_ms: 60_000,
        governed: None,
    };
    for _ in 0..count {
        let wishes = (0..BATCH).map(|_| Command::Submit(Box::new(wish())));
        engine.execute(wishes.collect()).await.expect("submitted");
        if is_drained {
            let reply = engine.work(Vec::new(), Some(pull.clone())).await.expect("pulled");
            assert_eq!(reply.grants.len(), BATCH);
            let done = reply.grants.iter().map(|grant| {
                let token = grant.job.lease().expect("leased").token();
                Command::Complete(Complete { job: grant.job.id, token, result: None })
            });
            engine.execute(done.collect()).await.expect("completed");
        }
    }
    engine.shutdown().await.expect("closed");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [work, count] = &words[..] else { panic!("instructions WORK COUNT") };
    let count: u64 = count.parse().expect("a number");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    match &**work {
        "rules" => {
            let wish = Command::Submit(Box::new(wish()));
            (0..count).for_each(|nth| rules(nth, &wish));
        }
        "frames" => frames(count),
        "submit" => runtime.block_on(engine(count, false)),
        "drain" => runtime.block_on(engine(count, true)),
        other => panic!("there is no work {other:?}"),
    }
}
