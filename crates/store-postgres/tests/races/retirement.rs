//! Days that are past: what goes, what stays, and when. The clock is moved, nobody waits.

use crate::hand::Hand;
use mainspring_kernel::command::{CommitEffect, Submit};
use mainspring_kernel::{Command, Job, JobId, StateName};
use mainspring_store::Store;
use mainspring_store::conformance::{complete, token, wish};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

fn effect(job: &Job) -> Command {
    Command::CommitEffect(CommitEffect {
        job: job.id,
        token: token(job),
        name: "charge".into(),
        value: "17".into(),
    })
}

/// A server that starts at another time and does its upkeep.
async fn upkeep(hand: &Hand, days: u32) -> Hand {
    let later = Hand::on(hand.database.clone(), hand.clock.clone()).await;
    later.pass(DAY * days);
    later.store.maintain(later.now()).await.expect("it is done");
    later
}

fn partitions(hand: &Hand, of: &str) -> usize {
    let sql = format!(
        "SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'mainspring.{of}'::regclass AND c.relname ~ '_[0-9]+$'"
    );
    hand.database.sql(&sql).parse().expect("a number")
}

async fn done(hand: &mut Hand) -> JobId {
    let job = hand.submit(wish()).await;
    let granted = hand.pull(1).await.remove(0);
    hand.run(&[effect(&granted), complete(&granted)]).await;
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_goes_when_it_is_past_keeping_and_takes_only_what_ended() {
    let mut hand = Hand::new().await;
    let ended = done(&mut hand).await;
    let held = hand.submit(wish()).await;
    let granted = hand.pull(1).await.remove(0);
    hand.run(&[effect(&granted)]).await;
    let waiting = hand.submit(Submit { delay_ms: Some(40 * 86_400_000), ..wish() }).await;
    let ready = hand.submit(wish()).await;
    let late = late(&mut hand).await;
    let days = partitions(&hand, "job");

    // Seven days are kept: on the seventh day nothing of this day may go.
    let later = upkeep(&hand, 2).await;
    assert_eq!(partitions(&hand, "job"), days, "no day was retired early");
    assert!(later.found(ended).await.is_some(), "it ended seven days ago to the instant");
    assert!(later.store.effect(ended, "charge").await.expect("it reads").is_some());
    drop(later);

    let mut hand = upkeep(&hand, 1).await;
    assert_eq!(partitions(&hand, "job"), days - 1, "one day is past");
    assert_eq!(partitions(&hand, "finished"), days - 1);
    assert!(hand.found(ended).await.is_none(), "kept for seven days, not eight");
    assert_eq!(hand.store.effects(ended).await.expect("it reads"), []);
    for (job, state) in [
        (held, StateName::Running),
        (waiting, StateName::Queued),
        (ready, StateName::Queued),
        (late, StateName::Succeeded),
    ] {
        assert_eq!(hand.job(job).await.state.name(), state, "it outlives its day");
    }
    let kept = hand.store.effect(held, "charge").await.expect("it reads");
    assert!(kept.is_some(), "with its effects");
    assert_eq!(hand.database.sql("SELECT count(*) FROM mainspring.effect"), "1");
    let reaped = hand.run(&[Command::Reap { job: held }]).await;
    assert!(reaped[0].is_ok(), "and can be moved: {reaped:?}");

    // One of that day ended five days later: it is kept for seven days from there.
    let hand = upkeep(&hand, 3).await;
    assert!(hand.found(late).await.is_some(), "six days are within keeping");
    hand.assert_sound().await;
}

/// A job of this day that ends five days later.
async fn late(hand: &mut Hand) -> JobId {
    let week = 7 * 86_400_000;
    let wish = Submit { priority: Some(255), timeout_ms: Some(week), ..wish() };
    let job = hand.submit(wish).await;
    let granted = hand.pull(1).await.remove(0);
    assert_eq!(granted.id, job);
    hand.run(&[Command::ExtendLease { job, until: hand.now() + DAY * 6 }]).await;
    hand.pass(DAY * 5);
    hand.run(&[complete(&granted)]).await;
    assert_eq!(hand.job(job).await.state.name(), StateName::Succeeded);
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_can_be_resumed_for_a_day_and_tells_of_a_gap_after() {
    let mut hand = Hand::new().await;
    done(&mut hand).await;
    assert!(!hand.store.moves_after(0, 100).await.expect("it reads").moves.is_empty());
    let days = partitions(&hand, "stream");
    let later = upkeep(&hand, 1).await;
    assert_eq!(partitions(&hand, "stream"), days, "no day was dropped early");
    let page = later.store.moves_after(0, 100).await.expect("it reads");
    assert_eq!((page.moves.len(), page.has_gap), (3, false));
    drop(later);
    let later = upkeep(&hand, 1).await;
    assert_eq!(partitions(&hand, "stream"), days - 1);
    let page = later.store.moves_after(0, 100).await.expect("it reads");
    assert_eq!((page.moves.len(), page.has_gap, page.newest), (0, true, 3));
}
