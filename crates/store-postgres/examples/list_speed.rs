//! How long lists take among very many jobs, a thousandth of which is somebody's own: a page of
//! twenty and the count behind `total`, by every filter.
//! `cargo run --release --example list_speed [memory|postgres] [jobs]`.

#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use mainspring_engine::{Config, Engine, Pull, SystemClock, SystemEntropy};
use mainspring_kernel::command::{Complete, Fail, Submit};
use mainspring_kernel::{
    Command, Failure, JobType, QueueName, StateName, TenantId, UserId, WorkerId,
};
use mainspring_store::{JobFilter, Scope, Store};
use mainspring_store_memory::disk::RealDisk;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BATCH: usize = 1_000;
const TURNS: usize = 30;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "memory".to_owned());
    let jobs = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let config = Config { are_types_strict: false, ..Config::standard() };
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy::default()));
    match &*kind {
        "memory" => {
            let dir = tempfile::tempdir_in(".").expect("a directory");
            let disk = Arc::new(RealDisk::open(dir.path()).expect("it opens"));
            let now = mainspring_engine::Clock::now(&*clock);
            let store = MemoryStore::open(disk, MemoryConfig::standard(1), now).expect("it opens");
            let store: Arc<dyn Store> = Arc::new(store);
            let engine =
                Engine::start(store.clone(), clock, entropy, config).await.expect("starts");
            for part in 0..2 {
                fill(&engine, jobs / 2).await;
                finish(&engine, if part == 0 { jobs / 2 } else { jobs / 20 }).await;
            }
            measure(&*store, &kind, jobs).await;
        }
        _ => {
            let database = Database::create(shared());
            let now = Arc::new(move || mainspring_engine::Clock::now(&SystemClock::new()));
            let settings = PostgresConfig {
                allows_unsafe: true,
                ..PostgresConfig::standard(&database.url, now)
            };
            let store = PostgresStore::open(settings, 1).await.expect("it opens");
            let store: Arc<dyn Store> = Arc::new(store);
            let engine =
                Engine::start(store.clone(), clock, entropy, config).await.expect("starts");
            fill(&engine, 2 * BATCH).await;
            finish(&engine, BATCH).await;
            database.sql(&FILL.replace("{jobs}", &jobs.to_string()));
            // Both before and after PostgreSQL got round to counting.
            measure(&*store, "postgres, not analysed", jobs).await;
            database.sql("VACUUM ANALYZE");
            measure(&*store, "postgres", jobs).await;
        }
    }
}

/// Copies of what there is, with ids of now, until there are enough.
const FILL: &str = "
    CREATE TABLE public.seed AS SELECT j.*, f.record AS ended
    FROM mainspring.job j LEFT JOIN mainspring.finished f ON f.id = j.id AND f.state = 5;
    CREATE TABLE public.made AS
    SELECT s.*, mainspring.fresh_id(clock_timestamp()) AS fresh
    FROM generate_series(1, {jobs} / (SELECT count(*)::int FROM public.seed)) r, public.seed s
    WHERE s.user_id <> 'ada';
    INSERT INTO mainspring.job (id, lane, priority, max_retries, timeout_ms, created_at, run_at,
        user_id, payload, trace, more)
    SELECT fresh, lane, priority, max_retries, timeout_ms, created_at, run_at, user_id, payload,
        trace, more FROM public.made;
    INSERT INTO mainspring.finished (id, state, finished_at, record)
    SELECT fresh, 5, now(), ended FROM public.made WHERE ended IS NOT NULL;
    INSERT INTO mainspring.ready (lane, key, id, due_at, is_retry)
    SELECT lane, (extract(epoch FROM run_at) * 1000000)::bigint, fresh, run_at, false
    FROM public.made WHERE ended IS NULL;
    DROP TABLE public.made, public.seed";

async fn fill(engine: &Engine, jobs: usize) {
    let payload: Arc<str> = format!("{{\"text\":\"{}\"}}", "x".repeat(189)).into();
    for batch in 0..jobs / BATCH {
        let commands = (0..BATCH).map(|n| {
            let is_own = n == batch % BATCH;
            let pick = |own: &'static str, usual: &'static str| if is_own { own } else { usual };
            let names = (
                TenantId::new(pick("own", "usual")).expect("a name"),
                UserId::new(pick("ada", "bob")).expect("a name"),
                JobType::new(pick("saw", "mill")).expect("a name"),
            );
            Command::Submit(Box::new(Submit {
                payload: payload.clone(),
                queue: Some(QueueName::new(pick("slow", "default")).expect("a name")),
                max_retries: Some(0),
                trace: is_own.then(|| "t1".into()),
                labels: if is_own { vec![("team".into(), "red".into())] } else { Vec::new() },
                ..Submit::plain(names.0, names.1, names.2)
            }))
        });
        engine.execute(commands.collect()).await.expect("submitted");
    }
}

/// Ends jobs, somebody's own badly.
async fn finish(engine: &Engine, jobs: usize) {
    let mut ended = 0;
    while ended < jobs {
        let pull = Pull {
            tenant: None,
            types: None,
            queues: None,
            worker: WorkerId::new("w").expect("a name"),
            token: None,
            limit: BATCH,
            lease_ms: 60_000,
            governed: None,
            wait: Duration::ZERO,
        };
        let grants = engine.pull(pull).await.expect("pulled");
        if grants.is_empty() {
            return;
        }
        ended += grants.len();
        let reports = grants.iter().map(|grant| &grant.job).map(|job| {
            let token = job.lease().expect("it runs").token();
            if job.user.as_str() == "ada" {
                let failure =
                    Failure { code: "NO_PAPER".into(), message: "".into(), retryable: false };
                Command::Fail(Fail {
                    job: job.id,
                    token,
                    failure,
                    retry_delay_ms: None,
                    result: None,
                    snooze_ms: None,
                })
            } else {
                Command::Complete(Complete { job: job.id, token, result: None })
            }
        });
        engine.execute(reports.collect()).await.expect("reported");
    }
}

async fn measure(store: &dyn Store, kind: &str, jobs: usize) {
    let all = || JobFilter::of(Scope::All);
    let (own, usual) = (TenantId::new("own").expect("a name"), TenantId::new("usual").expect("ok"));
    let ada = UserId::new("ada").expect("a name");
    let saw = JobType::new("saw").expect("a name");
    let state = |state| JobFilter { state: Some(state), ..all() };
    let filters = [
        ("everything", all()),
        ("tenant, most jobs", JobFilter::of(Scope::Tenant(usual.clone()))),
        ("tenant, few jobs", JobFilter::of(Scope::Tenant(own.clone()))),
        ("own jobs of a user", JobFilter::of(Scope::User(own.clone(), ada.clone()))),
        ("user, any tenant", JobFilter { user: Some(ada), ..all() }),
        ("type", JobFilter { job_type: Some(saw.clone()), ..all() }),
        ("queue", JobFilter { queue: Some(QueueName::new("slow").expect("a name")), ..all() }),
        ("trace", JobFilter { trace_id: Some("t1".to_owned()), ..all() }),
        ("label", JobFilter { labels: vec![("team".to_owned(), "red".to_owned())], ..all() }),
        ("error code", JobFilter { error_code: Some("NO_PAPER".to_owned()), ..all() }),
        ("queued", state(StateName::Queued)),
        ("running (none)", state(StateName::Running)),
        ("succeeded", state(StateName::Succeeded)),
        ("failed", state(StateName::Failed)),
        (
            "tenant and queued",
            JobFilter { state: Some(StateName::Queued), ..JobFilter::of(Scope::Tenant(own)) },
        ),
        (
            "tenant and a type it has not",
            JobFilter { job_type: Some(saw), ..JobFilter::of(Scope::Tenant(usual)) },
        ),
    ];
    println!("{kind}, {jobs} jobs: milliseconds, middle and worst of {TURNS}");
    println!("{:30} {:>5} {:>6} {:>15} {:>15}", "", "shown", "total", "page of 20", "count");
    for (name, filter) in filters {
        let (mut pages, mut counts) = (Vec::new(), Vec::new());
        let (mut shown, mut total) = (0, 0);
        for _ in 0..TURNS {
            let at = Instant::now();
            shown = store.jobs(&filter, None, 20).await.expect("reads work").items.len();
            pages.push(at.elapsed());
            let at = Instant::now();
            total = store.count_jobs(&filter, 10_001).await.expect("reads work");
            counts.push(at.elapsed());
        }
        let told = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            let millis = |at: usize| times[at].as_secs_f64() * 1_000.0;
            format!("{:.2} / {:.2}", millis(TURNS / 2), millis(TURNS - 1))
        };
        let (pages, counts) = (told(&mut pages), told(&mut counts));
        println!("{name:30} {shown:>5} {total:>6} {pages:>15} {counts:>15}");
    }
}
