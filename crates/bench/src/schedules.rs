//! What schedules cost, on either store. S1: ten thousand of them are due at the same instant; how
//! long after it the last job is there, and what others feel of it meanwhile. S2: a hundred
//! thousand are due far ahead; what an idle server does for them.

use super::http::Connection;
use super::job::{JOB_TYPE, Requests, number, text_after};
use super::latency::Latency;
use super::neighbours::token;
use super::postgres::cluster::Cluster;
use super::postgres::stand::{Store, warm_up};
use super::report::{Row, Target as Goal};
use super::server::Server;
use super::stopwatch::{Stopwatch, median};
use super::triggers;
use super::workload::Target;
use anyhow::{Context, bail};
use indicatif::HumanCount;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The workloads by name.
pub(crate) const NAMES: [&str; 3] = ["S1", "S2", triggers::NAME];

/// The last job may be there this long after the instant.
const LAST_MS_MAX: f64 = 2_000.0;
/// 99 of 100 requests of others are answered within this meanwhile.
const OTHERS_MS_MAX: f64 = 100.0;
/// Schedules of one tenant: each is counted before the next is made.
const PER_TENANT: usize = 1_000;
/// Connections over which schedules are made.
const CONNECTIONS: usize = 8;
/// How often is looked whether all are there.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The pause of the other client between two jobs.
const OTHERS_EVERY: Duration = Duration::from_millis(5);
/// Far ahead: thirty days.
const FAR_SECS: i64 = 30 * 86_400;
/// How long a server may take beyond the instant before the row is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much is done.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What the server keeps its jobs in.
    pub(crate) store: Store,
    /// Runs per workload.
    pub(crate) runs: usize,
    /// Schedules that are due at once.
    pub(crate) due: usize,
    /// How long after its start such a run has them due: they have to be made by then.
    pub(crate) ahead: Duration,
    /// Schedules that are due far ahead.
    pub(crate) far: usize,
    /// How long an idle server is watched.
    pub(crate) idle: Duration,
    /// Where server and cluster keep their files.
    pub(crate) directory: PathBuf,
}

/// Runs one workload.
pub(crate) fn run(name: &str, plan: &Plan) -> anyhow::Result<Vec<Row>> {
    match name {
        "S1" => due_at_once(plan),
        "S2" => far_ahead(plan),
        triggers::NAME => triggers::run(plan),
        _ => bail!("there is no workload {name:?}"),
    }
    .with_context(|| format!("workload {name}"))
}

/// A warm server on an empty store, both gone at the end.
fn on_fresh_server<T>(
    plan: &Plan,
    work: impl FnOnce(&Server) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    on_fresh_server_with(plan, "", work)
}

/// The same with more configuration.
pub(crate) fn on_fresh_server_with<T>(
    plan: &Plan,
    config: &str,
    work: impl FnOnce(&Server) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let folder = tempfile::tempdir_in(&plan.directory)?;
    let cluster = match plan.store {
        Store::Memory => None,
        Store::Postgres => Some(Cluster::start(&plan.directory, &[])?),
    };
    let database = cluster.as_ref().map(Cluster::database).transpose()?;
    let url = database.as_ref().map(|database| database.url.as_str());
    let server = Server::start_with(folder.path(), url, config)?;
    let target = Target { address: server.address(), requests: server.requests() };
    warm_up(&target, &target)?;
    work(&server)
}

/// Makes `count` schedules that fire once, at `at`.
fn make(server: &Server, count: usize, at: jiff::Timestamp) -> anyhow::Result<()> {
    let (admin, address) = (server.requests(), server.address());
    let tenants = (0..count.div_ceil(PER_TENANT))
        .map(|nth| token(&admin, address, &format!("planner-{nth}"), "ann"))
        .collect::<anyhow::Result<Vec<Requests>>>()?;
    let wish = format!("{{\"job_type\":\"{JOB_TYPE}\",\"kind\":\"at\",\"at\":\"{at}\"}}");
    each(address, count, |connection, nth| {
        let requests = &tenants[nth / PER_TENANT];
        connection.ask_ok(&requests.post("/api/v1/schedules", wish.as_str()))?;
        Ok(())
    })
}

/// Does something `count` times, over several connections at once.
pub(crate) fn each(
    address: SocketAddr,
    count: usize,
    make: impl Fn(&mut Connection, usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let some = |first: usize| {
            let make = &make;
            scope.spawn(move || -> anyhow::Result<()> {
                let mut connection = Connection::open(address)?;
                (first..count).step_by(CONNECTIONS).try_for_each(|nth| make(&mut connection, nth))
            })
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(some).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(_) => bail!("one of several clients panicked"),
        })
    })
}

/// What one run of S1 showed.
struct Rush {
    last_ms: f64,
    others: Latency,
}

fn due_at_once(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let mut rushes = Vec::new();
    for _ in 0..plan.runs.max(1) {
        rushes.push(on_fresh_server(plan, |server| rush(server, plan))?);
    }
    let last_ms = median(rushes.iter().map(|rush| rush.last_ms).collect());
    let others_ms = median(rushes.iter().map(|rush| rush.others.p99_ms).collect());
    let count = HumanCount(plan.due as u64);
    let row = |what: String, figure, goal: f64| Row {
        id: "S1",
        what,
        figure,
        spread: None,
        unit: "ms",
        beside: Some(("goal".to_owned(), goal)),
        target: Goal::AtMost(1.0),
    };
    let last = format!("{count} schedules due at once, until the last job is there");
    let others = format!("requests of others beside {count} schedules due at once, p99");
    Ok(vec![row(last, last_ms, LAST_MS_MAX), row(others, others_ms, OTHERS_MS_MAX)])
}

fn rush(server: &Server, plan: &Plan) -> anyhow::Result<Rush> {
    let others = token(&server.requests(), server.address(), "others", "bob")?;
    let before = submitted(server)?;
    // A whole second, as a cron pattern has it.
    let at = jiff::Timestamp::now().as_second() + i64::try_from(plan.ahead.as_secs())?;
    make(server, plan.due, jiff::Timestamp::from_second(at)?)?;
    let Ok(wait) = u64::try_from((at - 1) * 1_000_000 - micros_now()) else {
        bail!("the schedules were not made within {:?}", plan.ahead);
    };
    std::thread::sleep(Duration::from_micros(wait));
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_meanwhile(&others, server.address(), &is_over, &sent));
        let by_schedules =
            || anyhow::Ok(submitted(server)?.saturating_sub(before + sent.load(Ordering::SeqCst)));
        let last_ms = wait_for(plan.due as u64, at * 1_000_000, by_schedules);
        // What comes right after counts, too.
        std::thread::sleep(Duration::from_secs(1));
        is_over.store(true, Ordering::Relaxed);
        let Ok(nanos) = asking.join() else { bail!("the other client panicked") };
        let rush = Rush { last_ms: last_ms?, others: Latency::of(nanos?) };
        let made = by_schedules()?;
        if made != plan.due as u64 {
            bail!("{} schedules made {made} jobs", plan.due);
        }
        Ok(rush)
    })
}

/// How many jobs were ever submitted.
fn submitted(server: &Server) -> anyhow::Result<u64> {
    number(&server.runtime()?, "submitted").context("the runtime does not say how many")
}

fn micros_now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// Milliseconds from `at` until there are so many jobs.
fn wait_for(
    count: u64,
    at: i64,
    mut there: impl FnMut() -> anyhow::Result<u64>,
) -> anyhow::Result<f64> {
    let patience = Stopwatch::start();
    loop {
        let found = there()?;
        if found >= count {
            return Ok((micros_now() - at) as f64 / 1e3);
        }
        if patience.elapsed() > PATIENCE {
            bail!("{found} of {count} jobs are there after {PATIENCE:?}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Submits a job and reads it, again and again; how long each took, in nanoseconds.
fn ask_meanwhile(
    requests: &Requests,
    address: SocketAddr,
    is_over: &AtomicBool,
    sent: &AtomicU64,
) -> anyhow::Result<Vec<u64>> {
    let mut connection = Connection::open(address)?;
    let mut taken = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        // Counted before it is sent, so that nobody takes it for a schedule's.
        sent.fetch_add(1, Ordering::SeqCst);
        let stopwatch = Stopwatch::start();
        let answer = connection.ask_ok(&requests.submit(0))?;
        taken.push(stopwatch.nanos());
        let job = text_after(answer, b"\"job_id\":\"").map(|(id, _)| id.to_owned());
        let job = job.context("the answer has no job")?;
        let stopwatch = Stopwatch::start();
        connection.ask_ok(&requests.get(&format!("/api/v1/jobs/{job}")))?;
        taken.push(stopwatch.nanos());
        std::thread::sleep(OTHERS_EVERY);
    }
    Ok(taken)
}

fn far_ahead(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let (without, with, bytes) = on_fresh_server(plan, |server| {
        let without = idle_ms_per_second(server, plan.idle)?;
        let empty = server.resident_bytes()?;
        let at = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + FAR_SECS)?;
        make(server, plan.far, at)?;
        // What was begun is done: journal, snapshot, statistics.
        std::thread::sleep(plan.idle.min(Duration::from_secs(5)));
        let with = idle_ms_per_second(server, plan.idle)?;
        let grown = server.resident_bytes()?.saturating_sub(empty);
        Ok((without, with, grown as f64 / plan.far.max(1) as f64))
    })?;
    let count = HumanCount(plan.far as u64);
    let row = |what, figure, unit, beside| Row {
        id: "S2",
        what,
        figure,
        spread: None,
        unit,
        beside,
        target: Goal::Told,
    };
    let processor = format!("processor time of an idle server with {count} schedules far ahead");
    let memory = format!("memory per schedule, {count} of them far ahead");
    Ok(vec![
        row(processor, with, "ms/s", Some(("without".to_owned(), without))),
        row(memory, bytes, "bytes", None),
    ])
}

/// Milliseconds of processor time that a server takes in a second in which nobody asks anything.
pub(crate) fn idle_ms_per_second(server: &Server, span: Duration) -> anyhow::Result<f64> {
    let before = server.processor_time()?;
    std::thread::sleep(span);
    let used = server.processor_time()?.saturating_sub(before);
    Ok(used.as_secs_f64() * 1e3 / span.as_secs_f64())
}
