//! Idempotency keys and how long they are held.

use super::bench::{Bench, complete, everything, key, submit, user, wish};
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, JobId, Receipt, Rejection, fingerprint};

fn keyed(window_secs: Option<u32>) -> Submit {
    Submit { idempotency: key("k", window_secs), ..wish() }
}

/// The job that a submission under the key is answered with, and whether it is a new one.
async fn again(bench: &mut Bench, window_secs: Option<u32>) -> (JobId, bool) {
    let receipt = bench.done(submit(keyed(window_secs))).await;
    if let Receipt::Submitted { job } = receipt {
        return (job, true);
    }
    let Receipt::Existing { job, state } = receipt else { panic!("answered with {receipt:?}") };
    assert_eq!(state, Some(bench.state(job).await), "the holder can be seen");
    (job, false)
}

pub(super) async fn a_key_has_one_job_even_in_one_batch(bench: &mut Bench) {
    let outcomes = bench.run(&[submit(keyed(Some(60))), submit(keyed(Some(60)))]).await;
    let Ok(Receipt::Submitted { job }) = outcomes[0] else { panic!("{outcomes:?}") };
    assert!(matches!(outcomes[1], Ok(Receipt::Existing { job: same, .. }) if same == job));
    assert_eq!(bench.list(&everything(), 10).await, [job]);
}

pub(super) async fn a_key_is_held_while_the_job_lives(bench: &mut Bench) {
    let (id, _) = again(bench, Some(1)).await;
    bench.pass(3_600_000);
    assert_eq!(again(bench, Some(1)).await, (id, false));
    bench.grant().await;
    assert_eq!(again(bench, Some(1)).await, (id, false));
}

pub(super) async fn a_key_is_free_after_its_window(bench: &mut Bench) {
    let (id, _) = again(bench, Some(60)).await;
    let job = bench.grant().await;
    bench.pass(1_000);
    bench.done(complete(&job)).await;
    bench.pass(59_999);
    bench.store.maintain(bench.now).await.expect("upkeep works");
    assert_eq!(again(bench, Some(60)).await, (id, false));
    bench.pass(1);
    bench.store.maintain(bench.now).await.expect("upkeep works");
    let (next, is_new) = again(bench, Some(60)).await;
    assert!(is_new && next != id);
    assert_eq!(again(bench, Some(60)).await, (next, false));
}

pub(super) async fn a_key_without_window_is_held_for_ever(bench: &mut Bench) {
    let (id, _) = again(bench, None).await;
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    bench.pass(1_000 * 3_600 * 24 * 3);
    bench.store.maintain(bench.now).await.expect("upkeep works");
    assert_eq!(again(bench, None).await, (id, false));
}

pub(super) async fn a_conflict_is_noticed(bench: &mut Bench) {
    again(bench, Some(60)).await;
    let mut other = keyed(Some(60));
    if let Some(key) = &mut other.idempotency {
        key.fingerprint = Some(fingerprint::digest(&[b"another"]));
    }
    assert_eq!(bench.one(submit(other)).await, Err(Rejection::IdempotencyConflict));
}

/// The key passes from one finished job to the next; what happens to the first changes nothing.
pub(super) async fn a_new_holder_is_not_freed_by_the_old_job(bench: &mut Bench) {
    let (first, _) = again(bench, Some(1)).await;
    bench.done(Command::Cancel { job: first, by: user("ada"), reason: None }).await;
    bench.pass(1_000);
    let (second, is_new) = again(bench, Some(1)).await;
    assert!(is_new);
    bench.pass(3_600_000);
    bench.store.maintain(bench.now).await.expect("upkeep works");
    assert_eq!(again(bench, Some(1)).await, (second, false));
}
