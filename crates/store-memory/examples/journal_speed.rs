//! Measures the journal on a real directory: group-commit appends, then recovery.
//!
//! `cargo run --release -p mainspring-store-memory --example journal_speed -- DIR [FRAMES]
//! [THREADS]`
//! The directory must be empty and is left behind. Must never be a test: its numbers depend on the
//! machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mainspring_store_memory::disk::{Disk, RealDisk};
use mainspring_store_memory::journal::{Config, GroupCommit, Log, Preparation, Start};

const BODY_BYTES: usize = 300;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: journal_speed <dir> [frames] [threads]")?;
    let frames: u64 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let threads: u64 = args.next().map_or(Ok(2), |text| text.parse())?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(&dir)?);
    let config = Config {
        segment_bytes: Config::SEGMENT_BYTES,
        segment_id_seed: u64::from(std::process::id()),
        preparation: Preparation::HelperThread,
    };

    let (log, _) =
        Log::open(Arc::clone(&disk), config.clone(), Start::MayBeNew, &mut |_, _| Ok(()))?;
    let on_fatal = Box::new(|error| panic!("the journal failed: {error}"));
    let journal = GroupCommit::start(log, Arc::clone(&disk), 256 << 20, on_fatal)?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (journal, acknowledged) = (&journal, &acknowledged);
            scope.spawn(move || {
                for nth in 0..frames / threads {
                    let acknowledged = Arc::clone(acknowledged);
                    let body = vec![(nth ^ thread) as u8 | 1; BODY_BYTES];
                    let done = Box::new(move |_| {
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    });
                    journal.append(body, done);
                }
            });
        }
    });
    journal.shutdown().map_err(|error| error.to_string())?;
    let seconds = started.elapsed().as_secs_f64();
    let count = acknowledged.load(Ordering::Relaxed);
    println!(
        "group commit: {count} frames in {seconds:.2} s, {:.0} per second",
        count as f64 / seconds
    );
    drop(journal);

    let started = Instant::now();
    let mut bytes = 0;
    let (mut log, summary) =
        Log::open(Arc::clone(&disk), config, Start::MayBeNew, &mut |_, body| {
            bytes += body.len();
            Ok(())
        })?;
    println!("recovery: {summary:?} in {:?}", started.elapsed());

    for batch in [1u64, 100, 1000] {
        let mut times = Vec::new();
        let started = Instant::now();
        for _ in 0..1000 {
            for _ in 0..batch {
                log.stage(&[7; BODY_BYTES])?;
            }
            let flush = Instant::now();
            log.flush()?;
            times.push(flush.elapsed());
        }
        let rate = (1000 * batch) as f64 / started.elapsed().as_secs_f64();
        times.sort();
        println!(
            "batch {batch}: {rate:.0} per second, flush p50 {:?} p99 {:?} max {:?}",
            times[500], times[990], times[999]
        );
    }
    Ok(())
}
