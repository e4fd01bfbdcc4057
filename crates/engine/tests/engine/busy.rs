//! Something is held by somebody outside: whoever needs it waits beside, and nobody else.

use crate::bench::{Bench, hash, keyed, pull, settle, wish};
use crate::scripted::WAITS;
use futures_util::future::join_all;
use mainspring_store::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

fn hold(bench: &Bench, wish: &mainspring_kernel::command::Submit) {
    bench.store.held_keys.lock().unwrap().insert(hash(wish));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_becomes_free_in_time_is_had_by_all_who_wait_in_their_order() {
    let bench = Bench::new().await;
    let wish = keyed("acme", "k");
    hold(&bench, &wish);
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let (engine, wish) = (bench.engine.clone(), wish.clone());
        waiting.push(tokio::spawn(async move { engine.submit(wish).await.unwrap().unwrap() }));
        settle().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await; // paced: it is held for a second
    assert!(waiting.iter().all(|task| !task.is_finished()));
    bench.store.held_keys.lock().unwrap().clear();
    let freed_at = Instant::now();
    let mut got = Vec::new();
    for task in waiting {
        got.push(task.await.unwrap());
    }
    assert!(freed_at.elapsed() < Duration::from_millis(500), "{:?}", freed_at.elapsed());
    assert_eq!(got.iter().map(|it| it.is_hit).collect::<Vec<_>>(), [false, true, true]);
    assert!(got.iter().all(|it| it.job.id == got[0].job.id));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_stays_held_is_refused_as_busy_and_leaves_nothing() {
    let bench = Bench::new().await;
    let wish = keyed("acme", "k");
    hold(&bench, &wish);
    let began = Instant::now();
    assert!(matches!(bench.submit(wish.clone()).await, Err(Error::Busy)));
    assert!(began.elapsed() <= Duration::from_millis(2_200), "{:?}", began.elapsed());
    bench.store.held_keys.lock().unwrap().clear();
    assert!(!bench.submit(wish).await.unwrap().is_hit, "the refused one does not count");
}

/// Time is that of the test's clock: only waiting for locks takes any.
#[tokio::test(start_paused = true)]
async fn neighbours_of_a_held_key_are_not_slowed() {
    let bench = Bench::new().await;
    let held = keyed("acme", "held");
    hold(&bench, &held);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    // Four clients that try again and again, each refused after it has waited.
    let hostile = join_all((0..4).map(|_| async {
        let mut refused = 0;
        while !is_over.load(Ordering::Relaxed) {
            let (engine, wish) = (bench.engine.clone(), held.clone());
            assert!(matches!(engine.submit(wish).await, Err(Error::Busy)));
            refused += 1;
        }
        refused
    }));
    let neighbour = async {
        let mut slowest = Duration::ZERO;
        for n in 0..500 {
            let began = Instant::now();
            let made = match n % 2 {
                0 => bench.submit(wish("other")).await,
                _ => bench.submit(keyed("other", &n.to_string())).await,
            };
            made.expect("nobody holds anything of it");
            slowest = slowest.max(began.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await; // paced: for five seconds
        }
        is_over.store(true, Ordering::Relaxed);
        slowest
    };
    let began = Instant::now();
    let (slowest, refused) = tokio::join!(
        async {
            let slowest = neighbour.await;
            (slowest, began.elapsed())
        },
        hostile
    );
    let (slowest, took) = slowest;
    let busy = bench.store.busy.load(Ordering::Relaxed);
    println!(
        "500 submissions took {took:?}, the slowest {slowest:?}; {busy} attempts were in vain"
    );
    assert!(refused.iter().sum::<usize>() >= 4);
    assert!(took < Duration::from_millis(5_000 + 1_000), "{took:?}");
    assert!(slowest <= WAITS + Duration::from_millis(50), "{slowest:?}");
    assert!(busy < 100, "{busy} attempts at one key in five seconds");
}

/// Every submission of one tenant runs into another held key.
#[tokio::test(start_paused = true)]
async fn a_tenant_whose_every_key_is_held_slows_only_itself() {
    let bench = Bench::new().await;
    let hostile: Vec<_> = (0..400).map(|n| keyed("acme", &format!("held-{n}"))).collect();
    hostile.iter().for_each(|wish| hold(&bench, wish));
    let attack = join_all(hostile.into_iter().enumerate().map(|(n, wish)| {
        let engine = bench.engine.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(10 * n as u64)).await; // paced: 100 a second
            assert!(matches!(engine.submit(wish).await, Err(Error::Busy)));
        }
    }));
    let neighbour = async {
        let mut done = 0;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            bench.submit(keyed("other", &done.to_string())).await.expect("it holds nothing");
            done += 1;
            tokio::time::sleep(Duration::from_millis(5)).await; // paced: at most 200 a second
        }
        done
    };
    let (_, done) = tokio::join!(attack, neighbour);
    println!("{done} of 800 submissions beside 400 held keys");
    assert!(done >= 400, "{done} of 800");
}

#[tokio::test(start_paused = true)]
async fn one_held_key_in_a_large_batch_is_found_and_the_others_go_on() {
    let bench = Bench::new().await;
    let held = keyed("acme", "17");
    hold(&bench, &held);
    let began = Instant::now();
    let all = join_all((0..64).map(|n| {
        let (engine, wish) = (bench.engine.clone(), keyed("acme", &n.to_string()));
        async move { (n, engine.submit(wish).await, Instant::now()) }
    }));
    for (n, outcome, at) in all.await {
        match outcome {
            Err(Error::Busy) => assert_eq!(n, 17),
            Ok(made) => {
                assert!(!made.unwrap().is_hit);
                let took = at - began;
                assert!(took < Duration::from_millis(500), "{n} took {took:?}");
            }
            Err(other) => panic!("{n}: {other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn more_than_can_wait_are_refused_at_once() {
    let bench = Bench::new().await;
    let held = keyed("acme", "k");
    hold(&bench, &held);
    let began = Instant::now();
    let all = join_all((0..1_500).map(|_| {
        let (engine, wish) = (bench.engine.clone(), held.clone());
        async move {
            assert!(matches!(engine.submit(wish).await, Err(Error::Busy)));
            began.elapsed()
        }
    }));
    let took = all.await;
    let at_once = took.iter().filter(|took| **took < Duration::from_secs(1)).count();
    println!("{at_once} of 1500 were refused at once");
    assert!((400..=500).contains(&at_once), "{at_once}");
    assert!(took.iter().all(|took| *took < Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn pulls_that_cannot_be_served_delay_no_submission_and_are_served_when_they_can_be() {
    let bench = Bench::new().await;
    let waiting = tokio::spawn({
        let engine = bench.engine.clone();
        async move { (engine.pull(pull(60_000)).await, Instant::now()) }
    });
    settle().await;
    bench.store.holds_pulls.store(true, Ordering::Relaxed);
    let (first, mut slowest) = (Instant::now(), Duration::ZERO);
    for _ in 0..100 {
        let began = Instant::now();
        bench.submit(wish("acme")).await.expect("it needs nothing that is held");
        slowest = slowest.max(began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await; // paced: for two seconds
    }
    let took = first.elapsed();
    println!("100 submissions took {took:?}, the slowest {slowest:?}, beside a pull in vain");
    assert!(slowest <= 2 * WAITS, "{slowest:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(!waiting.is_finished());
    bench.store.holds_pulls.store(false, Ordering::Relaxed);
    let freed_at = Instant::now();
    let (grants, at) = waiting.await.unwrap();
    assert_eq!(grants.unwrap().len(), 1);
    assert!(at - freed_at < Duration::from_millis(500), "{:?}", at - freed_at);
}
