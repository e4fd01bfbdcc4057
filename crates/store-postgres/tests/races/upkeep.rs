//! What upkeep forgets, and not a moment before its time. The clock is moved, nobody waits.

use crate::hand::Hand;
use mainspring_kernel::Receipt;
use mainspring_kernel::command::Submit;
use mainspring_store::conformance::{complete, fail, submit, wish};
use mainspring_store::{JobFilter, Scope, Store};
use mainspring_testkit::drive;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Another server, after a while, that does its upkeep.
async fn upkeep_after(hand: &Hand, span: Duration) -> Hand {
    let later = Hand::on(hand.database.clone(), hand.clock.clone()).await;
    later.pass(span);
    later.store.maintain(later.now()).await.expect("it is done");
    later
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_remembered_through_upkeep_until_its_window_is_over() {
    let mut hand = Hand::new().await;
    let key = || drive::key("acme", "k", "{}", Some(3_600));
    let keyed = || Submit { idempotency: Some(key()), ..wish() };
    let job = hand.submit(keyed()).await;
    let granted = hand.pull(1).await.remove(0);
    hand.run(&[complete(&granted)]).await;
    let mut later = upkeep_after(&hand, 30 * MINUTE).await;
    let again = later.run(&[submit(keyed())]).await.remove(0);
    assert!(matches!(again, Ok(Receipt::Existing { job: found, .. }) if found == job), "{again:?}");
    let mut later = upkeep_after(&later, 31 * MINUTE).await;
    assert_eq!(later.database.sql("SELECT count(*) FROM mainspring.held_key"), "0");
    assert_ne!(later.submit(keyed()).await, job);
    later.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_kept_for_its_ninety_days_and_no_longer() {
    let mut hand = Hand::new().await;
    let job = hand.submit(wish()).await;
    let granted = hand.pull(1).await.remove(0);
    hand.run(&[fail(&granted, false)]).await;
    let later = upkeep_after(&hand, 89 * DAY).await;
    assert_eq!(later.item_state(job.dlq()).await, "open");
    let later = upkeep_after(&later, 2 * DAY).await;
    assert!(later.store.item(job.dlq()).await.expect("it reads").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_outlives_its_day_is_still_found_by_its_labels() {
    let mut hand = Hand::new().await;
    let labels = vec![("team".into(), "red".into())];
    let month = Some(40 * 86_400_000);
    let waits = hand.submit(Submit { labels: labels.clone(), delay_ms: month, ..wish() }).await;
    hand.submit(Submit { labels, ..wish() }).await;
    let granted = hand.pull(1).await.remove(0);
    hand.run(&[complete(&granted)]).await;
    let later = upkeep_after(&hand, 9 * DAY).await;
    // Once more: facts about jobs go after the jobs.
    let later = upkeep_after(&later, DAY).await;
    let labels = vec![("team".to_owned(), "red".to_owned())];
    let filter = JobFilter { labels, ..JobFilter::of(Scope::All) };
    let page = later.store.jobs(&filter, None, 10).await.expect("it lists");
    assert_eq!(page.items.iter().map(|job| job.id).collect::<Vec<_>>(), [waits]);
    assert_eq!(later.store.count_jobs(&filter, 10).await.expect("it counts"), 1);
    assert_eq!(later.database.sql("SELECT count(DISTINCT id) FROM mainspring.term"), "1");
}
