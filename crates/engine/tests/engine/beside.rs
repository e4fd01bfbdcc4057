//! A commit that only makes jobs, on its way beside another one. The store lets it end when the
//! test says so.

use crate::bench::{Bench, complete, hash, keyed, pull, settle, wish};
use crate::scripted::Fate;
use mainspring_engine::Submitted;
use mainspring_kernel::command::Submit;
use mainspring_store::Error;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;

async fn bench() -> Bench {
    let bench = Bench::new().await;
    bench.store.commits_beside.store(true, Ordering::Relaxed);
    bench
}

/// Submits, and does not wait for the answer.
async fn begin(bench: &Bench, wish: Submit) -> JoinHandle<Result<Submitted, Error>> {
    let engine = bench.engine.clone();
    let answer = tokio::spawn(async move { Ok(engine.submit(wish).await?.unwrap()) });
    settle().await;
    answer
}

fn begun(bench: &Bench) -> usize {
    bench.store.begun_beside.load(Ordering::Relaxed)
}

fn let_end(bench: &Bench, count: usize) {
    bench.store.may_end_beside.0.add_permits(count);
}

#[tokio::test(start_paused = true)]
async fn a_commit_does_not_wait_for_the_one_beside_it() {
    let bench = bench().await;
    let first = begin(&bench, wish("acme")).await;
    assert_eq!(begun(&bench), 1);
    // One is beside already: this one is the loop's own.
    let second = bench.submit(wish("acme")).await.unwrap();
    assert!(!first.is_finished() && bench.has_job(second.job.id).await);
    assert_eq!(begun(&bench), 1);
    let_end(&bench, 1);
    let first = first.await.unwrap().unwrap();
    assert!(bench.has_job(first.job.id).await);
    let third = begin(&bench, wish("acme")).await;
    assert_eq!(begun(&bench), 2, "there is room again");
    let_end(&bench, 1);
    third.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_comes_together_is_parted() {
    let bench = bench().await;
    let many: Vec<_> = (0..7)
        .map(|_| {
            let engine = bench.engine.clone();
            tokio::spawn(async move { engine.submit(wish("acme")).await.unwrap().unwrap() })
        })
        .collect();
    settle().await;
    assert_eq!(begun(&bench), 1);
    let ended = many.iter().filter(|one| one.is_finished()).count();
    assert_eq!(ended, 3, "four are beside");
    let_end(&bench, 1);
    for one in many {
        one.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_names_the_same_key_waits_for_it() {
    let bench = bench().await;
    let first = begin(&bench, keyed("acme", "k")).await;
    let same = begin(&bench, keyed("acme", "k")).await;
    assert!(!same.is_finished(), "it would have made a second job");
    let_end(&bench, 9);
    let (first, same) = (first.await.unwrap().unwrap(), same.await.unwrap().unwrap());
    assert_eq!((first.is_hit, same.is_hit), (false, true));
    assert_eq!(first.job.id, same.job.id);
}

/// Of the same batch, too.
#[tokio::test(start_paused = true)]
async fn the_same_key_twice_at_once_is_one_job() {
    let bench = bench().await;
    let answers: Vec<_> = (0..4)
        .map(|_| {
            let engine = bench.engine.clone();
            tokio::spawn(async move { engine.submit(keyed("acme", "k")).await.unwrap().unwrap() })
        })
        .collect();
    settle().await;
    let_end(&bench, 9);
    let mut ids = Vec::new();
    for answer in answers {
        ids.push(answer.await.unwrap().job.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(bench.engine.counts().await.unwrap().submitted, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_began_to_wait_meanwhile_gets_the_job() {
    let bench = bench().await;
    let made = begin(&bench, wish("acme")).await;
    let engine = bench.engine.clone();
    let waiting = tokio::spawn(async move { engine.pull(pull(3_600_000)).await.unwrap() });
    settle().await;
    assert!(!waiting.is_finished(), "nothing that is not committed is handed out");
    let_end(&bench, 1);
    let made = made.await.unwrap().unwrap();
    settle().await;
    assert!(waiting.is_finished(), "it was rung for");
    assert_eq!(waiting.await.unwrap()[0].job.id, made.job.id);
}

#[tokio::test(start_paused = true)]
async fn with_a_pull_that_waits_the_job_is_handed_out_in_its_own_commit() {
    let bench = bench().await;
    let engine = bench.engine.clone();
    let waiting = tokio::spawn(async move { engine.pull(pull(3_600_000)).await.unwrap() });
    settle().await;
    let made = bench.submit(wish("acme")).await.unwrap();
    assert_eq!((begun(&bench), waiting.await.unwrap()[0].job.id), (0, made.job.id));
}

#[tokio::test(start_paused = true)]
async fn only_what_makes_jobs_goes_beside() {
    let bench = bench().await;
    let_end(&bench, 1);
    let grant = bench.running(std::time::Duration::from_secs(60)).await;
    assert_eq!(begun(&bench), 1, "the submission");
    let outcome = bench.engine.execute_one(complete(&grant)).await.unwrap();
    assert!(outcome.is_ok() && begun(&bench) == 1);
}

#[tokio::test(start_paused = true)]
async fn what_fails_beside_is_told_and_leaves_nothing() {
    let bench = bench().await;
    let_end(&bench, 9);
    bench.store.next(&[Fate::Fails]);
    let error = bench.submit(wish("acme")).await.unwrap_err();
    assert_eq!(error.to_string(), "it was cut off");
    assert_eq!(bench.engine.counts().await.unwrap().submitted, 0);
    let held = keyed("acme", "held");
    bench.store.held_keys.lock().unwrap().insert(hash(&held));
    let waiting = begin(&bench, held).await;
    let free = bench.submit(keyed("acme", "free")).await.unwrap();
    assert!(!waiting.is_finished() && bench.has_job(free.job.id).await);
    bench.store.held_keys.lock().unwrap().clear();
    assert!(!waiting.await.unwrap().unwrap().is_hit, "it was tried again");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stops_ends_the_commit_beside() {
    let bench = bench().await;
    let made = begin(&bench, wish("acme")).await;
    let engine = bench.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown().await });
    settle().await;
    assert!(!stopping.is_finished(), "it was accepted");
    let_end(&bench, 1);
    made.await.unwrap().unwrap();
    stopping.await.unwrap().unwrap();
}
