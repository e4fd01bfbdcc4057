//! The real binary is killed again and again under load, restarted at once on the same data, and
//! the checker judges everything that clients and workers saw. With the memory store each kill is a
//! power cut as well: journal sectors that were not synced are taken back. What PostgreSQL does in
//! a power cut is its own promise; here it lives on while the server dies. `MAINSPRING_TEST=full`
//! does ten rounds.

use mainspring_kernel::StateName;
use mainspring_testkit::blackbox::command::{self, Background};
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::checker::{self, Coverage};
use mainspring_testkit::history::{History, JobDump};
use mainspring_testkit::load::{Fleet, Shim, Stopwatch, Temper, config};
use mainspring_testkit::rng::Rng;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

both_stores![
    d17_g08_o06_nothing_acknowledged_is_lost_or_done_twice_in_forty_crashes,
    d17_the_job_of_a_killed_worker_comes_back_and_is_finished_elsewhere,
    o15_server_and_worker_killed_together_lose_nothing,
];

/// Crashes of one round.
const CYCLES: u64 = 44;
/// Acknowledged changes that make a cycle count.
const ACKNOWLEDGED_MIN: u64 = 60;

/// One round, ten of them, or the one of `MAINSPRING_SEED`.
fn seeds() -> RangeInclusive<u64> {
    let wanted = std::env::var("MAINSPRING_SEED").ok().and_then(|seed| seed.parse().ok());
    let is_full = std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full");
    wanted.map_or(if is_full { 1..=10 } else { 1..=1 }, |seed| seed..=seed)
}

/// Sums over the lives of a server.
#[derive(Debug, Default)]
struct Seen {
    cycles: u64,
    recovered_jobs: u64,
    recovered_running: u64,
    replayed_frames: u64,
    torn_tails: u64,
    torn_bytes: u64,
    unsynced_bytes_cut: u64,
    recovery_ms_max: u64,
    acknowledged_least: u64,
    snapshots: u64,
    archive_runs: u64,
    archive_merges: u64,
}

impl Seen {
    fn restarted(&mut self, server: &Server) {
        let runtime = server.admin().get("/api/v1/runtime").data();
        let recovery = |field: &str| runtime["recovery"][field].as_u64().expect("a number");
        self.recovered_jobs += recovery("jobs");
        self.recovered_running += recovery("running");
        self.replayed_frames += recovery("frames");
        self.torn_bytes += recovery("torn_bytes");
        self.torn_tails += u64::from(recovery("torn_bytes") > 0);
        self.recovery_ms_max = self.recovery_ms_max.max(recovery("took_ms"));
    }

    fn looked_at(&mut self, directory: &Path, last_snapshot: &mut String) {
        let names = std::fs::read_dir(directory).expect("the data directory");
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names: Vec<String> = names.collect();
        let newest = names.iter().filter(|name| name.ends_with(".snap")).max();
        if let Some(newest) = newest.filter(|newest| *newest != last_snapshot) {
            self.snapshots += 1;
            last_snapshot.clone_from(newest);
        }
        let runs = names.iter().filter(|name| name.ends_with(".arc")).count() as u64;
        self.archive_merges += u64::from(runs < self.archive_runs);
        self.archive_runs = runs;
    }
}

/// Kills and restarts the server under load, lets everything drain, and has the record judged.
fn round(store: Store, seed: u64, cycles: u64) {
    let tools = tempfile::tempdir().expect("a directory");
    // Only a journal of ours can be torn by us.
    let shim = (store == Store::Memory).then(|| Shim::build(tools.path()));
    let mut options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(&config());
    options.env = shim.as_ref().map(|shim| shim.environment(0)).unwrap_or_default();
    let mut server = Server::start(options);
    let fleet = Fleet::start(&server, seed, Temper::Rough);
    let mut rng = Rng::new(seed, 99);
    let mut seen = Seen { acknowledged_least: u64::MAX, ..Seen::default() };
    let (started, mut last_snapshot) = (Stopwatch::start(), String::new());
    for _ in 0..cycles {
        let before = fleet.recorder.acknowledged();
        // Half of the lives end before the first upkeep, half during or after it.
        let life = match rng.chance(50) {
            true => rng.within(150, 900),
            false => rng.within(990, 1_500),
        };
        std::thread::sleep(Duration::from_millis(life)); // paced: the load runs meanwhile
        let gained = eventually("the load gets on", || {
            let gained = fleet.recorder.acknowledged() - before;
            (gained >= ACKNOWLEDGED_MIN).then_some(gained)
        });
        seen.cycles += 1;
        seen.acknowledged_least = seen.acknowledged_least.min(gained);
        fleet.recorder.fault("crash");
        server.kill9();
        if let Some(shim) = &shim {
            seen.unsynced_bytes_cut += shim.tear(&mut rng);
            seen.looked_at(&server.data_dir(), &mut last_snapshot);
        }
        server.restart();
        fleet.recorder.fault("restart");
        seen.restarted(&server);
    }
    let acknowledged = fleet.recorder.acknowledged();
    let history = fleet.finish();
    let violations = checker::check(&history);
    let judged_in = started.elapsed();
    let mut coverage = Coverage::default();
    coverage.add(&history);
    println!("{store:?}, seed {seed}: {seen:?}");
    println!(
        "{store:?}, seed {seed}: {} kill -9 cycles, {acknowledged} acknowledged changes under fire, \
         {} calls of which {} accepted and {} unknown, {} jobs, {} dead letters, {} violations, {:?}",
        seen.cycles,
        coverage.operations,
        coverage.successes,
        coverage.unknown,
        history.dump.jobs.len(),
        history.dump.items.len(),
        violations.len(),
        judged_in,
    );
    println!("{store:?}, seed {seed}: moves {:?}", coverage.moves);
    println!("{store:?}, seed {seed}: refusals {:?}", coverage.refusals);
    if !violations.is_empty() {
        let path = std::env::temp_dir().join(format!("mainspring-crash-{store:?}-{seed}.history"));
        let text = mainspring_testkit::history::lines::write(&history);
        std::fs::write(&path, text).expect("the record is kept");
        for violation in violations.iter().take(30) {
            println!("{violation}");
        }
        panic!("{} violations; the record is in {}", violations.len(), path.display());
    }
    is_valid(&seen, &coverage, acknowledged, cycles);
    if store == Store::Memory {
        has_worn_the_journal(&seen);
    }
    has_teeth(history);
}

/// The same record with three things changed must not pass, for three reasons.
fn has_teeth(mut history: History) {
    let ended = |job: &JobDump| job.state == StateName::Succeeded && job.key.is_some();
    let (mut keyed, others): (Vec<_>, Vec<_>) = history.dump.jobs.into_iter().partition(ended);
    keyed.pop().expect("a job to lose");
    let mut twin = keyed.first().expect("a job to double").clone();
    twin.id = "job_twin".to_owned();
    let undone = keyed.last_mut().expect("a job to undo");
    undone.events.pop();
    undone.state = StateName::Running;
    keyed.push(twin);
    history.dump.jobs = [keyed, others].concat();
    let found = checker::check(&history).into_iter().map(|violation| violation.rule);
    let found: BTreeSet<&str> = found.collect();
    for (rule, why) in [("D1", "lost"), ("I1", "doubled"), ("V2", "undone")] {
        assert!(found.contains(rule), "{why} jobs are not noticed: {found:?}");
    }
}

/// A run that did too little proves nothing.
fn is_valid(seen: &Seen, coverage: &Coverage, acknowledged: u64, cycles: u64) {
    assert_eq!(seen.cycles, cycles);
    assert!(acknowledged >= cycles * ACKNOWLEDGED_MIN, "{acknowledged}");
    assert!(seen.acknowledged_least >= ACKNOWLEDGED_MIN);
    assert!(seen.recovered_running > 0, "{seen:?}");
    assert!(!coverage.refusals.contains_key("INTERNAL_ERROR"), "{:?}", coverage.refusals);
    for refusal in ["LEASE_LOST", "IDEMPOTENCY_CONFLICT", "REPORT_CONFLICT", "APPROVAL_SAME_PERSON"]
    {
        assert!(coverage.refusals.contains_key(refusal), "{:?}", coverage.refusals);
    }
    for path in [
        ("queued", "running"),
        ("queued", "cancelled"),
        ("running", "cancelled"),
        ("running", "succeeded"),
        ("running", "retrying"),
        ("retrying", "running"),
        ("running", "dlq_pending"),
        ("dlq_pending", "dlq_recorded"),
        ("dlq_recorded", "failed"),
    ] {
        let count = coverage.moves.get(&path).copied().unwrap_or(0);
        assert!(count >= 10, "{path:?} happened {count} times");
    }
}

/// The same for the files of the memory store.
fn has_worn_the_journal(seen: &Seen) {
    assert!(seen.unsynced_bytes_cut > 0 && seen.replayed_frames > 0, "{seen:?}");
    assert!(seen.snapshots >= 2 && seen.archive_merges >= 1, "{seen:?}");
}

/// Everything acknowledged survives, leases and keys hold, over more than forty crashes.
fn d17_g08_o06_nothing_acknowledged_is_lost_or_done_twice_in_forty_crashes(store: Store) {
    for seed in seeds() {
        round(store, seed, CYCLES);
    }
}

/// A worker with a command that takes its time on the first attempt only.
fn worker(server: &Server, id: &str, script: &str) -> Background {
    let args = ["worker", "--type", "slow", "--lease-ms", "1000", "--id", id, "--", "sh", "-c"];
    let args = [&args[..], &[script]].concat();
    let env = [("MAINSPRING_URL", &*server.url), ("MAINSPRING_TOKEN", &*server.admin)];
    let binary = env!("CARGO_BIN_EXE_mainspring");
    let mut command = command::prepare(binary, &args, &env, server.directory());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Background(command.spawn().expect("the worker starts"))
}

const SLOW: &str = "[scheduler]\nrestart_grace = \"500ms\"\n[types.slow]\nmax_retries = 3\n\
    backoff_base_ms = 10\nbackoff_max_ms = 50\n";

fn wait_for(caller: &Caller, job: &str, status: &str) -> Value {
    eventually(&format!("{job} is {status}"), || {
        Some(caller.job(job)).filter(|found| found["status"] == status)
    })
}

/// The worker process dies in the middle of a job: the lease runs out, another finishes it.
fn d17_the_job_of_a_killed_worker_comes_back_and_is_finished_elsewhere(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).config(SLOW));
    let admin = server.admin();
    let first = worker(&server, "first", "sleep 60");
    let job = admin.submit_plain("slow");
    wait_for(&admin, &job, "running");
    let killed = Stopwatch::start();
    drop(first);
    let _second = worker(&server, "second", "cat");
    let done = wait_for(&admin, &job, "succeeded");
    let took = killed.elapsed();
    assert!(took < Duration::from_millis(1_000 + 2_000 + 2_000), "re-granted after {took:?}");
    assert_eq!(done["attempt"], 2, "{done}");
    let events = admin.events(&job);
    assert_eq!(events[2]["reason_code"], "TASK_LEASE_LOST", "{events:?}");
}

/// Server and worker die in the same moment, again and again; the job still ends once.
fn o15_server_and_worker_killed_together_lose_nothing(store: Store) {
    let mut server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).config(SLOW));
    for round in 0..3 {
        let worker_before = worker(&server, "before", "sleep 60");
        let wish = json!({ "job_type": "slow", "payload": { "round": round } });
        let job = server.admin().submit(&wish)["job_id"].as_str().expect("an id").to_owned();
        wait_for(&server.admin(), &job, "running");
        server.kill9();
        drop(worker_before);
        server.restart();
        let worker_after = worker(&server, "after", "cat");
        let done = wait_for(&server.admin(), &job, "succeeded");
        assert_eq!(done["result"]["round"], round, "{done}");
        assert_eq!(done["attempt"], 2, "the lost lease used one try: {done}");
        assert_eq!(worker_after.terminate(), Some(0));
    }
}
