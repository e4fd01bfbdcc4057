//! What limits are for, on either store. L1: one tenant floods the server with jobs; how much
//! longer nine quiet ones wait for theirs to be picked up than alone. L2: all jobs of one type fail
//! over and over; how much of their throughput jobs of another type keep. The workers are
//! everybody's.

use super::http::Connection;
use super::job::{JOB_TYPE, Leased, Requests, find, leased, payload, stamps};
use super::latency::Latency;
use super::neighbours::token;
use super::report::{Row, Target as Goal};
use super::schedules::{Plan, on_fresh_server_with};
use super::server::Server;
use super::stopwatch::{Stopwatch, median};
use anyhow::{Context, bail};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The workloads by name.
pub(crate) const NAMES: [&str; 2] = ["L1", "L2"];

/// How much longer than alone a quiet tenant may wait.
const P99_RATIO_MAX: f64 = 3.0;
/// What jobs of another type keep of their throughput.
const KEPT_MIN: f64 = 0.9;
/// Tenants that submit a job now and then.
const QUIET: usize = 9;
/// The pause of each of them between two jobs.
const QUIET_EVERY: Duration = Duration::from_millis(50);
/// Workers.
const WORKERS: usize = 4;
/// Jobs in one request of the flood.
const FLOOD_BATCH: usize = 1_000;
/// Jobs that fail over and over.
const STORM: usize = 5_000;
/// Their type.
const STORM_TYPE: &str = "storm";

/// Runs one workload; `flood` is how many jobs the noisy tenant has.
pub(crate) fn run(name: &str, plan: &Plan, flood: usize) -> anyhow::Result<Vec<Row>> {
    match name {
        "L1" => noisy_tenant(plan, flood),
        "L2" => retry_storm(plan),
        _ => bail!("there is no workload {name:?}"),
    }
    .with_context(|| format!("workload {name}"))
}

fn noisy_tenant(plan: &Plan, flood: usize) -> anyhow::Result<Vec<Row>> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        on_fresh_server_with(plan, "", |server| {
            alone.push(quiet_p99(server, plan.idle)?);
            flood_with(server, flood)?;
            beside.push(quiet_p99(server, plan.idle)?);
            Ok(())
        })?;
    }
    Ok(vec![Row {
        id: "L1",
        what: format!("nine quiet tenants, submit to pickup, p99, beside one with {flood} jobs"),
        figure: median(beside),
        spread: None,
        unit: "ms",
        beside: Some(("alone".to_owned(), median(alone))),
        target: Goal::AtMost(P99_RATIO_MAX),
    }])
}

/// One tenant submits so many jobs.
fn flood_with(server: &Server, flood: usize) -> anyhow::Result<()> {
    let requests = token(&server.requests(), server.address(), "noisy", "ann")?;
    let mut connection = Connection::open(server.address())?;
    for _ in 0..flood.div_ceil(FLOOD_BATCH) {
        connection.ask_ok(&requests.submit_batch(FLOOD_BATCH, None))?;
    }
    Ok(())
}

/// The p99 from submit to pickup of the quiet tenants' jobs.
fn quiet_p99(server: &Server, span: Duration) -> anyhow::Result<f64> {
    let (admin, address) = (server.requests(), server.address());
    let tenants = (0..QUIET)
        .map(|nth| token(&admin, address, &format!("quiet-{nth}"), "ann"))
        .collect::<anyhow::Result<Vec<Requests>>>()?;
    let clock = Stopwatch::start();
    let (seen, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (admin, seen, is_over) = (&admin, &seen, &is_over);
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut connection = Connection::open(address)?;
                    let mut request = admin.pull(worker, 1, 200);
                    while !is_over.load(Ordering::Relaxed) {
                        let body = connection.ask_ok(&request)?;
                        let now = clock.nanos();
                        // Jobs of the flood have no stamp.
                        let picked = stamps(body).into_iter().filter(|stamp| *stamp > 0);
                        let waited: Vec<u64> =
                            picked.map(|stamp| now.saturating_sub(stamp)).collect();
                        let jobs = leased(body);
                        seen.lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .extend(waited);
                        request = match jobs.is_empty() {
                            true => admin.pull(worker, 1, 200),
                            false => admin.complete(&jobs, Some((worker, 1, 200))),
                        };
                    }
                    Ok(())
                })
            })
            .collect();
        let submitters: Vec<_> = tenants
            .iter()
            .map(|requests| {
                let sent = &sent;
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut connection = Connection::open(address)?;
                    let own = Stopwatch::start();
                    while own.elapsed() < span {
                        connection.ask_ok(&requests.submit(clock.nanos().max(1)))?;
                        sent.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(QUIET_EVERY);
                    }
                    Ok(())
                })
            })
            .collect();
        let mut ended = Ok(());
        for thread in submitters {
            ended = ended.and(thread.join().unwrap_or_else(|_| bail!("a submitter panicked")));
        }
        let patience = Stopwatch::start();
        let picked =
            || seen.lock().map_or(0, |seen: std::sync::MutexGuard<'_, Vec<u64>>| seen.len());
        while (picked() as u64) < sent.load(Ordering::Relaxed)
            && patience.elapsed() < Duration::from_secs(10)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        for thread in workers {
            ended = ended.and(thread.join().unwrap_or_else(|_| bail!("a worker panicked")));
        }
        ended
    })?;
    let seen = seen.into_inner().unwrap_or_default();
    if (seen.len() as u64) < sent.load(Ordering::Relaxed) {
        bail!("{} of {} jobs were never picked up", seen.len(), sent.load(Ordering::Relaxed));
    }
    Ok(Latency::of(seen).p99_ms)
}

fn retry_storm(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        on_fresh_server_with(plan, "", |server| {
            alone.push(others_per_second(server, plan.idle)?);
            let spec = "{\"max_retries\":1000,\"backoff_base_ms\":1000,\"backoff_max_ms\":1000}";
            let (admin, address) = (server.requests(), server.address());
            let mut connection = Connection::open(address)?;
            connection.ask_ok(&admin.put(&format!("/api/v1/types/{STORM_TYPE}"), spec))?;
            let one = format!("{{\"job_type\":\"{STORM_TYPE}\",\"payload\":{}}}", payload(0));
            for _ in 0..STORM.div_ceil(FLOOD_BATCH) {
                let many = vec![one.as_str(); FLOOD_BATCH].join(",");
                let body = format!("{{\"jobs\":[{many}]}}");
                connection.ask_ok(&admin.post("/api/v1/jobs/batch", body))?;
            }
            beside.push(others_per_second(server, plan.idle)?);
            Ok(())
        })?;
    }
    Ok(vec![Row {
        id: "L2",
        what: format!("jobs a second of one type beside {STORM} of another that fail every second"),
        figure: median(beside),
        spread: None,
        unit: "jobs/s",
        beside: Some(("alone".to_owned(), median(alone))),
        target: Goal::AtLeast(KEPT_MIN),
    }])
}

/// How many jobs of the usual type are done in a second while there are always some, by workers
/// that take any type and fail the jobs of the storm.
fn others_per_second(server: &Server, span: Duration) -> anyhow::Result<f64> {
    let (admin, address) = (server.requests(), server.address());
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let feeder = scope.spawn(|| -> anyhow::Result<()> {
            let mut connection = Connection::open(address)?;
            let mut fed = 0;
            while !is_over.load(Ordering::Relaxed) {
                // Enough for everybody, and no more than can be drained.
                if fed < done.load(Ordering::Relaxed) + 5_000 {
                    connection.ask_ok(&admin.submit_batch(FLOOD_BATCH, None))?;
                    fed += FLOOD_BATCH as u64;
                } else {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (admin, done, is_over) = (&admin, &done, &is_over);
                scope.spawn(move || work(admin, server, worker, done, is_over))
            })
            .collect();
        let clock = Stopwatch::start();
        while clock.elapsed() < span {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
        let mut ended = feeder.join().unwrap_or_else(|_| bail!("the feeder panicked"));
        for thread in workers {
            ended = ended.and(thread.join().unwrap_or_else(|_| bail!("a worker panicked")));
        }
        ended
    })?;
    Ok(done.load(Ordering::Relaxed) as f64 / span.as_secs_f64())
}

/// Takes jobs of any type until it is over.
fn work(
    admin: &Requests,
    server: &Server,
    worker: usize,
    done: &AtomicU64,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(server.address())?;
    let wish = format!(
        "{{\"worker_id\":\"bench-{worker}\",\"types\":[\"{JOB_TYPE}\",\"{STORM_TYPE}\"],\
         \"limit\":50,\"wait_ms\":200,\"lease_ms\":600000}}"
    );
    while !is_over.load(Ordering::Relaxed) {
        let body = connection.ask_ok(&admin.post("/api/v1/work/pull", wish.as_str()))?;
        let (fine, storm) = parted(body);
        if !fine.is_empty() {
            connection.ask_ok(&admin.complete(&fine, None))?;
            done.fetch_add(fine.len() as u64, Ordering::Relaxed);
        }
        if !storm.is_empty() {
            let item = |job: &Leased| {
                format!(
                    "{{\"job_id\":\"{}\",\"lease_token\":\"{}\",\"error_code\":\"DOWN\",\
                     \"message\":\"down\",\"retryable\":true}}",
                    job.id, job.token
                )
            };
            let items: Vec<String> = storm.iter().map(item).collect();
            let body = format!("{{\"items\":[{}]}}", items.join(","));
            connection.ask_ok(&admin.post("/api/v1/work/fail", body))?;
        }
    }
    Ok(())
}

/// The jobs of a pull: the usual ones, and those of the storm.
fn parted(body: &[u8]) -> (Vec<Leased>, Vec<Leased>) {
    let (mut fine, mut storm) = (Vec::new(), Vec::new());
    let mark = format!("\"job_type\":\"{STORM_TYPE}\"");
    let mut rest = body;
    for job in leased(body) {
        let Some(at) = find(rest, job.id.as_bytes()) else { continue };
        rest = &rest[at..];
        let end = find(&rest[1..], b"\"job_id\"").map_or(rest.len(), |end| end + 1);
        let is_storm = find(&rest[..end], mark.as_bytes()).is_some();
        if is_storm {
            storm.push(job)
        } else {
            fine.push(job)
        }
        rest = &rest[end..];
    }
    (fine, storm)
}
