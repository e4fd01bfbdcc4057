//! Callers that wait for a job's end, and streams: woken when it concerns them, and only then.

use crate::bench::{Bench, complete, pull, settle, tenant, wish};
use futures_util::future::join_all;
use mainspring_engine::Pull;
use mainspring_kernel::{Command, StateName};
use mainspring_store::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_thousand_who_wait_for_their_jobs_cost_nothing_while_strangers_commit() {
    let bench = Bench::new().await;
    let mut jobs = Vec::new();
    for _ in 0..1_000 {
        jobs.push(bench.submit(wish("acme")).await.unwrap().job.id);
    }
    let waiting: Vec<_> = jobs
        .iter()
        .map(|job| {
            let (engine, job) = (bench.engine.clone(), *job);
            tokio::spawn(async move { engine.job_ended(job, Duration::from_secs(30)).await })
        })
        .collect();
    settle().await;
    for _ in 0..500 {
        bench.submit(wish("other")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await; // paced: for five seconds
    }
    let reads = bench.store.job_reads.load(Ordering::Relaxed);
    assert_eq!(reads, 1_000, "one each, when they came");
    let looks = bench.store.ended_reads.load(Ordering::Relaxed);
    assert!(looks <= 4, "{looks} looks in five seconds, each for all of them");
    // One job ends: one caller is woken, at once.
    let wanted = Pull { tenant: Some(tenant("acme")), ..pull(0) };
    let grant = bench.engine.pull(wanted).await.unwrap().remove(0);
    bench.complete(&grant).await.unwrap();
    settle().await;
    assert_eq!(waiting.iter().filter(|task| task.is_finished()).count(), 1);
    assert_eq!(bench.store.job_reads.load(Ordering::Relaxed), 1_001);
    for (job, task) in jobs.iter().zip(waiting) {
        let found = task.await.unwrap().unwrap().unwrap().job;
        let is_it = *job == grant.job.id;
        assert_eq!(found.state.name() == StateName::Succeeded, is_it);
    }
    assert_eq!(bench.store.job_reads.load(Ordering::Relaxed), 2_000, "and one each, at the end");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_told_where_the_job_stands_when_the_wait_is_over() {
    let bench = Bench::new().await;
    let job = bench.submit(wish("acme")).await.unwrap().job.id;
    let engine = bench.engine.clone();
    let waiting = tokio::spawn(async move { engine.job_ended(job, Duration::from_secs(3)).await });
    settle().await;
    bench.engine.pull(pull(0)).await.unwrap();
    let found = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(found.job.state.name(), StateName::Running);
}

/// Another process ends the jobs: nothing is rung here, but the store has news; or not even that.
#[tokio::test(start_paused = true)]
async fn jobs_that_ended_elsewhere_are_found_for_all_who_wait_in_one_read() {
    for is_told in [true, false] {
        let bench = Bench::new().await;
        let wishes = (0..200).map(|_| Command::Submit(Box::new(wish("acme")))).collect();
        bench.engine.execute(wishes).await.unwrap();
        let wanted = Pull { limit: 200, ..pull(0) };
        let grants = bench.engine.pull(wanted).await.unwrap();
        let began = Instant::now();
        let waiting = join_all(grants.iter().map(|grant| {
            let (engine, job) = (bench.engine.clone(), grant.job.id);
            async move {
                engine.job_ended(job, Duration::from_secs(30)).await.unwrap();
                began.elapsed()
            }
        }));
        let elsewhere = async {
            settle().await;
            // By another engine on the same store.
            let other = Bench::on(bench.store.clone()).await;
            let commands: Vec<Command> = grants.iter().map(complete).collect();
            other.engine.execute(commands).await.unwrap();
            for _ in 0..50 {
                if is_told {
                    bench.store.news.get().unwrap().moved();
                }
                settle().await;
            }
        };
        let (took, ()) = tokio::join!(waiting, elsewhere);
        let slowest = took.into_iter().max().unwrap();
        let most = Duration::from_millis(if is_told { 300 } else { 2_500 });
        assert!(slowest < most, "told: {is_told}, {slowest:?}");
        let looks = bench.store.ended_reads.load(Ordering::Relaxed);
        assert!(looks <= 3, "told: {is_told}, {looks} looks for 50 pieces of news");
    }
}

#[tokio::test(start_paused = true)]
async fn a_move_between_the_look_of_a_stream_and_its_sleep_wakes_it() {
    for tenant in [None, Some(tenant("acme"))] {
        let bench = Bench::new().await;
        let engine = bench.engine.clone();
        let meanwhile = async move {
            engine.submit(wish("acme")).await.unwrap().unwrap();
        };
        *bench.store.in_read.lock().unwrap() = Some(Box::pin(meanwhile));
        let began = Instant::now();
        let wait = Duration::from_secs(30);
        let page = bench.engine.moves_for(tenant.as_ref(), 0, 10, wait).await.unwrap();
        assert_eq!(page.moves.len(), 1, "{tenant:?}");
        assert!(began.elapsed() < Duration::from_secs(1), "{tenant:?}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_one_tenant_is_not_woken_by_each_commit_of_others_and_at_once_by_its_own() {
    let bench = Bench::new().await;
    let follow = |tenant: &str| {
        let (engine, tenant) = (bench.engine.clone(), crate::bench::tenant(tenant));
        tokio::spawn(async move {
            let (mut position, mut seen) = (0, Vec::new());
            while seen.len() < 2 {
                let wait = Duration::from_secs(15);
                let page = engine.moves_for(Some(&tenant), position, 1_000, wait).await.unwrap();
                for logged in page.moves {
                    position = logged.position;
                    if logged.tenant == tenant {
                        seen.push((logged.position, Instant::now()));
                    }
                }
            }
            seen
        })
    };
    let streams: Vec<_> = (0..20).map(|_| follow("acme")).collect();
    settle().await;
    let before = bench.store.moves_reads.load(Ordering::Relaxed);
    let began = Instant::now();
    for _ in 0..1_000 {
        bench.submit(wish("other")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await; // paced: for two seconds
    }
    let reads = bench.store.moves_reads.load(Ordering::Relaxed) - before;
    let took = began.elapsed();
    println!("20 streams read {reads} times while others committed 1000 times in {took:?}");
    // Every quarter of a second: one read that finds moves of others, one that finds no more.
    let looks = usize::try_from(took.as_millis() / 250).unwrap() + 1;
    assert!(reads <= 20 * 2 * looks, "{reads} in {took:?}");
    let mut at = Vec::new();
    for _ in 0..2 {
        at.push(Instant::now());
        bench.submit(wish("acme")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await; // paced: two moves apart
    }
    for stream in streams {
        let seen = stream.await.unwrap();
        let late: Vec<_> = seen.iter().zip(&at).map(|((_, seen), at)| *seen - *at).collect();
        assert!(late.iter().all(|late| *late < Duration::from_millis(5)), "{late:?}");
    }
    assert!(bench.store.moves_after(0, 1).await.unwrap().newest == 1_002);
}
