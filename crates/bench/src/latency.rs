//! From submit to the start of the handler, at a steady two hundred jobs a second: the stamp of the
//! submission travels in the payload and is read when the pull that was waiting gets it.

use super::http::Connection;
use super::job::{leased, stamps};
use super::stopwatch::{Stopwatch, quantile};
use super::workload::Target;
use anyhow::bail;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Jobs a second.
pub(crate) const RATE: u32 = 200;
/// Workers that wait.
const WORKERS: usize = 2;

/// Milliseconds from submit to handler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Latency {
    /// From single measurements in nanoseconds.
    pub(crate) fn of(nanos: Vec<u64>) -> Self {
        let mut millis: Vec<f64> = nanos.into_iter().map(|nanos| nanos as f64 / 1e6).collect();
        millis.sort_by(f64::total_cmp);
        Latency { p50_ms: quantile(&millis, 0.5), p99_ms: quantile(&millis, 0.99) }
    }
}

/// Sends at the rate for `span`, calling `send` with a stamp each time.
pub(crate) fn at_rate(
    clock: Stopwatch,
    span: Duration,
    mut send: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<usize> {
    let step = Duration::from_secs(1) / RATE;
    let start = clock.elapsed();
    let count = (span.as_secs_f64() * f64::from(RATE)) as u32;
    for n in 0..count {
        let due = start + step * n;
        let now = clock.elapsed();
        if due > now {
            std::thread::sleep(due - now);
        }
        send(clock.nanos())?;
    }
    Ok(count as usize)
}

/// Measures for `span`.
pub(crate) fn measure(target: &Target, span: Duration) -> anyhow::Result<Latency> {
    let clock = Stopwatch::start();
    let seen = Mutex::new(Vec::new());
    let count = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (seen, count, is_over) = (&seen, &count, &is_over);
                scope.spawn(move || wait_for_jobs(target, worker, clock, seen, count, is_over))
            })
            .collect();
        let mut connection = Connection::open(target.address)?;
        let sent = at_rate(clock, span, |stamp| {
            connection.ask_ok(&target.requests.submit(stamp)).map(|_| ())
        })?;
        let patience = Stopwatch::start();
        while count.load(Ordering::Relaxed) < sent && patience.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        for thread in waiting {
            match thread.join() {
                Ok(ended) => ended?,
                Err(_) => bail!("a worker of the load generator panicked"),
            }
        }
        Ok(sent)
    })?;
    let seen = seen.into_inner().unwrap_or_default();
    if seen.len() < sent {
        bail!("{} of {sent} jobs never started", sent - seen.len());
    }
    Ok(Latency::of(seen))
}

fn wait_for_jobs(
    target: &Target,
    worker: usize,
    clock: Stopwatch,
    seen: &Mutex<Vec<u64>>,
    count: &AtomicUsize,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(target.address)?;
    let mut request = target.requests.pull(worker, 1, 200);
    while !is_over.load(Ordering::Relaxed) {
        let body = connection.ask_ok(&request)?;
        let now = clock.nanos();
        let (jobs, stamps) = (leased(body), stamps(body));
        if !jobs.is_empty() {
            let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            seen.extend(stamps.iter().map(|stamp| now.saturating_sub(*stamp)));
            count.store(seen.len(), Ordering::Relaxed);
        }
        request = match jobs.is_empty() {
            true => target.requests.pull(worker, 1, 200),
            false => target.requests.complete(&jobs, Some((worker, 1, 200))),
        };
    }
    Ok(())
}
