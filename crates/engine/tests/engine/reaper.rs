//! What happens by itself, while somebody outside holds a part of it.

use crate::bench::{Bench, pull, wish};
use mainspring_engine::Pull;
use mainspring_kernel::{Command, JobId, StateName};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Jobs that run, each under a lease of two seconds.
async fn running(bench: &Bench, count: usize) -> Vec<JobId> {
    let wishes = (0..count).map(|_| Command::Submit(Box::new(wish("acme")))).collect();
    bench.engine.execute(wishes).await.unwrap();
    let wanted = Pull { limit: count, lease_ms: 2_000, ..pull(0) };
    let grants = bench.engine.pull(wanted).await.unwrap();
    assert_eq!(grants.len(), count);
    grants.iter().map(|grant| grant.job.id).collect()
}

async fn states(bench: &Bench, jobs: &[JobId]) -> Vec<StateName> {
    let mut states = Vec::new();
    for job in jobs {
        states.push(bench.engine.job(*job).await.unwrap().unwrap().job.state.name());
    }
    states
}

async fn until_reaped(bench: &Bench, jobs: &[JobId]) -> Duration {
    let began = Instant::now();
    while states(bench, jobs).await.contains(&StateName::Running) {
        assert!(began.elapsed() < Duration::from_secs(60), "they are never rescued");
        tokio::time::sleep(Duration::from_millis(10)).await; // paced: until it is so
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn one_held_job_delays_no_other_rescue() {
    for is_told in [false, true] {
        let bench = Bench::new().await;
        bench.store.tells_held.store(is_told, Ordering::Relaxed);
        let jobs = running(&bench, 1_000).await;
        bench.store.held_jobs.lock().unwrap().insert(jobs[500]);
        let others: Vec<_> = jobs.iter().copied().filter(|job| *job != jobs[500]).collect();
        let took = until_reaped(&bench, &others).await;
        println!("999 rescued {took:?} after their leases of 2 s were given (told: {is_told})");
        assert!(took < Duration::from_millis(3_000), "told: {is_told}, {took:?}");
        assert_eq!(states(&bench, &jobs[500..=500]).await, [StateName::Running]);
        bench.store.held_jobs.lock().unwrap().clear();
        let took = until_reaped(&bench, &jobs).await;
        assert!(took < Duration::from_secs(1), "told: {is_told}, {took:?} after it was let go");
    }
}

#[tokio::test(start_paused = true)]
async fn more_held_jobs_than_are_reaped_at_once_do_not_hide_the_next() {
    let bench = Bench::new().await;
    bench.store.tells_held.store(true, Ordering::Relaxed);
    let jobs = running(&bench, 1_500).await;
    bench.store.held_jobs.lock().unwrap().extend(&jobs[..1_400]);
    let took = until_reaped(&bench, &jobs[1_400..]).await;
    assert!(took < Duration::from_secs(4), "{took:?}");
    // And while they are held, the reaper does not spin.
    let before = bench.store.commits.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await; // paced: ten seconds of trying again
    let more = bench.store.commits.load(Ordering::Relaxed) - before;
    println!("{more} commits in ten seconds with 1400 overdue jobs held");
    assert!(more < 500, "{more}");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_leases_that_ran_out_get_their_grace_though_one_job_is_held() {
    let bench = Bench::new().await;
    let jobs = running(&bench, 3).await;
    bench.engine.shutdown().await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await; // paced: the server is away
    bench.store.held_jobs.lock().unwrap().insert(jobs[0]);
    let store = bench.store.clone();
    let restarted = Instant::now();
    let bench = Bench::on(store.clone()).await;
    assert!(restarted.elapsed() < Duration::from_secs(1), "starting waits for nobody");
    tokio::time::sleep(Duration::from_millis(500)).await; // paced: then it is let go
    store.held_jobs.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(2)).await; // paced: within the grace
    assert_eq!(states(&bench, &jobs).await, [StateName::Running; 3]);
    until_reaped(&bench, &jobs).await;
    let took = restarted.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
}

/// A store that acknowledges and forgets, or a rule that never comes to an end: the reaper tries
/// again and again, at its own pace.
#[tokio::test(start_paused = true)]
async fn what_does_not_last_is_tried_at_a_pace_and_holds_nobody_up() {
    let bench = Bench::new().await;
    let jobs = running(&bench, 10).await;
    bench.store.forgotten.lock().unwrap().extend(&jobs);
    tokio::time::sleep(Duration::from_secs(3)).await; // paced: until their leases have run out
    let before = bench.store.forgets.load(Ordering::Relaxed);
    assert!(before > 0, "they were reaped for nothing");
    tokio::time::sleep(Duration::from_secs(10)).await; // paced: ten seconds of trying again
    let more = bench.store.forgets.load(Ordering::Relaxed) - before;
    println!("{more} commits in ten seconds for ten jobs that nothing helps");
    assert!((10..=100).contains(&more), "{more}");
    bench.store.forgotten.lock().unwrap().clear();
    let took = until_reaped(&bench, &jobs).await;
    assert!(took < Duration::from_secs(1), "{took:?} after it was mended");
}
