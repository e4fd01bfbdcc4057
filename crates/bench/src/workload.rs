//! What is done to a server: submit, drain, both at once. Every function answers with jobs per
//! second. A thread drives several connections in step: it writes a round of requests, then reads
//! the round of answers, which keeps many in flight for little work.

use super::http::Connection;
use super::job::{Leased, Requests, find, leased};
use super::stopwatch::Stopwatch;
use anyhow::{Context, bail};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Jobs per batch.
pub(crate) const BATCH: usize = 1_000;
/// Threads that drive connections; the machine is small.
const THREADS: usize = 2;
/// Tomorrow.
pub(crate) const TOMORROW_MS: u64 = 24 * 3600 * 1000;

/// Where requests go.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
}

/// Runs `work` once per thread, beside each other, and waits for all.
pub(crate) fn together(
    threads: usize,
    work: impl Fn(usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        for thread in running {
            match thread.join() {
                Ok(ended) => ended?,
                Err(_) => bail!("a thread of the load generator panicked"),
            }
        }
        Ok(())
    })
}

/// Submits `count` jobs in batches of 1000 over two connections.
pub(crate) fn submit_batches(
    target: &Target,
    count: usize,
    delay_ms: Option<u64>,
) -> anyhow::Result<f64> {
    submit_batches_over(target, count, delay_ms, THREADS)
}

/// As [`submit_batches`], over so many connections.
pub(crate) fn submit_batches_over(
    target: &Target,
    count: usize,
    delay_ms: Option<u64>,
    connections: usize,
) -> anyhow::Result<f64> {
    let request = target.requests.submit_batch(BATCH, delay_ms);
    let left = AtomicUsize::new(count / BATCH);
    let stopwatch = Stopwatch::start();
    together(connections, |_| {
        let mut connection = Connection::open(target.address)?;
        while take(&left) {
            let body = connection.ask_ok(&request)?;
            if find(&body[..body.len().min(400)], b"\"error\":{").is_some() {
                bail!("jobs were refused: {}", String::from_utf8_lossy(&body[..400]));
            }
        }
        Ok(())
    })?;
    Ok(stopwatch.rate(count / BATCH * BATCH))
}

/// Takes one from what is left.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

/// Submits `count` jobs one request each over `connections` connections.
pub(crate) fn submit_single(
    target: &Target,
    count: usize,
    connections: usize,
) -> anyhow::Result<f64> {
    let request = target.requests.submit(0);
    let threads = THREADS.min(connections);
    let each = connections / threads;
    let rounds = count / connections;
    let stopwatch = Stopwatch::start();
    together(threads, |_| {
        let mut mine = open(target.address, each)?;
        for _ in 0..rounds {
            mine.iter_mut().try_for_each(|connection| connection.send(&request))?;
            mine.iter_mut().try_for_each(|connection| connection.answer_ok().map(|_| ()))?;
        }
        Ok(())
    })?;
    Ok(stopwatch.rate(rounds * each * threads))
}

fn open(address: SocketAddr, count: usize) -> anyhow::Result<Vec<Connection>> {
    (0..count).map(|_| Connection::open(address)).collect()
}

/// Pulls and completes until `count` jobs are done: 1000 at a time, report and fetch in one
/// request, two connections.
pub(crate) fn drain_batches(target: &Target, count: usize) -> anyhow::Result<f64> {
    let done = AtomicUsize::new(0);
    let stopwatch = Stopwatch::start();
    together(THREADS, |worker| drain(target, worker, BATCH, count, &done))?;
    Ok(stopwatch.rate(done.load(Ordering::Relaxed)))
}

/// One worker's part of a drain.
fn drain(
    target: &Target,
    worker: usize,
    limit: usize,
    count: usize,
    done: &AtomicUsize,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(target.address)?;
    let mut jobs = leased(connection.ask_ok(&target.requests.pull(worker, limit, 100))?);
    loop {
        if jobs.is_empty() {
            if done.load(Ordering::Relaxed) >= count {
                return Ok(());
            }
            jobs = leased(connection.ask_ok(&target.requests.pull(worker, limit, 100))?);
            continue;
        }
        let total = done.fetch_add(jobs.len(), Ordering::Relaxed) + jobs.len();
        let more = (total < count).then_some((worker, limit, 0));
        let request = target.requests.complete(&jobs, more);
        jobs = leased(connection.ask_ok(&request)?);
    }
}

/// As [`drain_batches`], one job per request over `connections` connections: every request
/// completes a job and fetches the next.
pub(crate) fn drain_single(
    target: &Target,
    count: usize,
    connections: usize,
) -> anyhow::Result<f64> {
    let each = connections / THREADS;
    let left = AtomicUsize::new(count);
    let stopwatch = Stopwatch::start();
    together(THREADS, |thread| {
        let mut mine = Vec::new();
        for (index, mut connection) in open(target.address, each)?.into_iter().enumerate() {
            let worker = thread * each + index;
            let pull = target.requests.pull(worker, 1, 1_000);
            let jobs = leased(connection.ask_ok(&pull)?);
            mine.push((worker, connection, jobs));
        }
        drain_round_by_round(target, &mut mine, &left)
    })?;
    Ok(stopwatch.rate(count))
}

type Lane = (usize, Connection, Vec<Leased>);

fn drain_round_by_round(
    target: &Target,
    lanes: &mut [Lane],
    left: &AtomicUsize,
) -> anyhow::Result<()> {
    loop {
        for (worker, connection, jobs) in lanes.iter_mut() {
            let request = match jobs.is_empty() {
                true => target.requests.pull(*worker, 1, 0),
                false => target.requests.complete(jobs, Some((*worker, 1, 0))),
            };
            connection.send(&request)?;
        }
        for (_, connection, jobs) in lanes.iter_mut() {
            let finished = jobs.len();
            *jobs = leased(connection.answer_ok()?);
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                Some(n.saturating_sub(finished))
            });
        }
        if left.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
    }
}

/// Submits and drains `count` jobs at the same time, one connection each way.
pub(crate) fn submit_while_draining(target: &Target, count: usize) -> anyhow::Result<f64> {
    submit_here_drain_there(target, target, count)
}

/// Submits to one node while another is drained.
pub(crate) fn submit_here_drain_there(
    here: &Target,
    there: &Target,
    count: usize,
) -> anyhow::Result<f64> {
    let request = here.requests.submit_batch(BATCH, None);
    let done = AtomicUsize::new(0);
    let stopwatch = Stopwatch::start();
    together(2, |thread| match thread {
        0 => {
            let mut connection = Connection::open(here.address)?;
            for _ in 0..count / BATCH {
                connection.ask_ok(&request)?;
            }
            Ok(())
        }
        worker => drain(there, worker, BATCH, count / BATCH * BATCH, &done),
    })
    .context("submitting while draining")?;
    Ok(stopwatch.rate(done.load(Ordering::Relaxed)))
}
