//! Loads that last: submit and drain for a span of time, and workers that wait for nothing.

use crate::http::Connection;
use crate::job::leased;
use crate::stopwatch::Stopwatch;
use crate::workload::{BATCH, Target};
use anyhow::bail;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Jobs that may wait at once: enough that a drain never starves, few enough that the figure is
/// that of both sides.
const BACKLOG_MAX: usize = 20_000;
/// How often it is looked whether a load has broken off.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a waiting worker waits.
const WAIT_MS: u64 = 30_000;

/// Submits and drains for `span`; answers with the jobs per second of each of the `stretches`.
pub(crate) fn sustained(
    target: &Target,
    span: Duration,
    stretches: u32,
) -> anyhow::Result<Vec<f64>> {
    let (sent, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sent, done, is_over) = (&sent, &done, &is_over);
        let running = [
            scope.spawn(move || ending(is_over, || submit(target, sent, done, is_over))),
            scope.spawn(move || ending(is_over, || drain(target, done, is_over))),
        ];
        let mut rates = Vec::new();
        for _ in 0..stretches {
            let before = done.load(Ordering::Relaxed);
            let stopwatch = Stopwatch::start();
            while stopwatch.elapsed() < span / stretches && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(GLANCE);
            }
            rates.push(stopwatch.rate(done.load(Ordering::Relaxed) - before));
        }
        is_over.store(true, Ordering::Relaxed);
        for thread in running {
            match thread.join() {
                Ok(ended) => ended?,
                Err(_) => bail!("a thread of the load generator panicked"),
            }
        }
        Ok(rates)
    })
}

/// Runs one side of the load; when it ends, for whatever reason, so does the other.
fn ending(is_over: &AtomicBool, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let ended = work();
    is_over.store(true, Ordering::Relaxed);
    ended
}

fn submit(
    target: &Target,
    sent: &AtomicUsize,
    done: &AtomicUsize,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let request = target.requests.submit_batch(BATCH, None);
    let mut connection = Connection::open(target.address)?;
    while !is_over.load(Ordering::Relaxed) {
        let waiting = sent.load(Ordering::Relaxed).saturating_sub(done.load(Ordering::Relaxed));
        if waiting >= BACKLOG_MAX {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        connection.ask_ok(&request)?;
        sent.fetch_add(BATCH, Ordering::Relaxed);
    }
    Ok(())
}

fn drain(target: &Target, done: &AtomicUsize, is_over: &AtomicBool) -> anyhow::Result<()> {
    let mut connection = Connection::open(target.address)?;
    let mut jobs = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let request = match jobs.is_empty() {
            true => target.requests.pull(0, BATCH, 100),
            false => target.requests.complete(&jobs, Some((0, BATCH, 100))),
        };
        let finished = jobs.len();
        jobs = leased(connection.ask_ok(&request)?);
        done.fetch_add(finished, Ordering::Relaxed);
    }
    Ok(())
}

/// Keeps `each` workers waiting at every target while `work` runs, then lets go of them.
pub(crate) fn while_waiting<T>(
    targets: &[Target],
    each: usize,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut workers = Vec::new();
    for target in targets {
        for worker in 0..each {
            let mut connection = Connection::open(target.address)?;
            let request = target.requests.pull(worker, 1, WAIT_MS);
            connection.send(&request)?;
            workers.push((connection, request));
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let waiting = scope.spawn(move || -> anyhow::Result<()> {
            // They all began to wait together, so they are answered together.
            while !is_over.load(Ordering::Relaxed) {
                for (connection, request) in &mut workers {
                    connection.answer_ok()?;
                    if !is_over.load(Ordering::Relaxed) {
                        connection.send(request)?;
                    }
                }
            }
            Ok(())
        });
        let found = work();
        is_over.store(true, Ordering::Relaxed);
        match waiting.join() {
            Ok(ended) => ended?,
            Err(_) => bail!("a thread of the load generator panicked"),
        }
        found
    })
}
