//! Idempotency keys and how long they are held.

use super::bench::{Bench, complete, everything, key, submit, tenant, user, wish};
use mainspring_kernel::command::Submit;
use mainspring_kernel::idempotency::{alias, alias_hash};
use mainspring_kernel::view::tasks;
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

/// The wish for a job of that chosen name.
fn named(id: &str) -> Submit {
    Submit { alias: Some(Box::new(alias(&tenant("acme"), "test", id, Some(60)))), ..wish() }
}

async fn of_name(bench: &Bench, id: &str) -> Option<JobId> {
    let hash = alias_hash(&tenant("acme"), "test", id);
    bench.store.holder_of_key(hash).await.expect("reads work").map(|holder| holder.job)
}

pub(super) async fn a_chosen_name_has_one_job_even_in_one_batch(bench: &mut Bench) {
    let outcomes = bench.run(&[submit(named("a")), submit(named("a")), submit(named("b"))]).await;
    let Ok(Receipt::Submitted { job }) = outcomes[0] else { panic!("{outcomes:?}") };
    assert!(matches!(outcomes[1], Ok(Receipt::Existing { job: same, .. }) if same == job));
    let Ok(Receipt::Submitted { job: other }) = outcomes[2] else { panic!("{outcomes:?}") };
    assert_eq!(bench.list(&everything(), 10).await, [other, job]);
    assert_eq!(of_name(bench, "a").await, Some(job));
    assert_eq!((of_name(bench, "b").await, of_name(bench, "c").await), (Some(other), None));
}

/// Both keys are looked up, both are taken, and neither may belong to another job.
pub(super) async fn a_name_and_a_key_must_mean_the_same_job(bench: &mut Bench) {
    let both = |id, k| Submit { idempotency: key(k, Some(60)), ..named(id) };
    let Receipt::Submitted { job } = bench.done(submit(both("a", "k"))).await else {
        panic!("a first submission makes a job")
    };
    bench.done(submit(both("b", "l"))).await;
    for wish in [both("a", "k"), both("a", "m"), both("c", "k")] {
        let receipt = bench.done(submit(wish)).await;
        assert!(matches!(receipt, Receipt::Existing { job: same, .. } if same == job));
    }
    assert_eq!(of_name(bench, "c").await, None, "a hit takes no name");
    assert_eq!(bench.one(submit(both("a", "l"))).await, Err(Rejection::KeysDisagree));
    assert_eq!(bench.list(&everything(), 10).await.len(), 2);
}

/// The key is free after its window, the name as long as the job is kept.
pub(super) async fn a_chosen_name_outlives_the_key(bench: &mut Bench) {
    let wish = || Submit { idempotency: key("k", Some(1)), ..named("a") };
    let Receipt::Submitted { job } = bench.done(submit(wish())).await else {
        panic!("a first submission makes a job")
    };
    let granted = bench.grant().await;
    bench.done(complete(&granted)).await;
    bench.pass(30_000);
    bench.store.maintain(bench.now).await.expect("upkeep works");
    let receipt = bench.done(submit(wish())).await;
    assert!(matches!(receipt, Receipt::Existing { job: same, .. } if same == job));
    assert_eq!(of_name(bench, "a").await, Some(job));
    let other = Submit { alias: None, ..wish() };
    assert!(matches!(bench.done(submit(other)).await, Receipt::Submitted { .. }));
}

/// A waiting job that is made ready by hand is handed out at once, and says so for ever.
pub(super) async fn a_hastened_job_is_ready_at_once(bench: &mut Bench) {
    let delayed = || Submit { delay_ms: Some(3_600_000), ..named("a") };
    let Receipt::Submitted { job } = bench.done(submit(delayed())).await else {
        panic!("a first submission makes a job")
    };
    bench.pass(1_000);
    let hasten = || Command::MoveTask { job, to: tasks::State::Ready, by: user("ada") };
    bench.done(hasten()).await;
    let found = bench.store.job(job).await.expect("reads work").expect("it is kept");
    assert_eq!((found.job.run_at, found.job.updated_at, found.job.seq), (bench.now, bench.now, 2));
    assert_eq!(found.history.len(), 2);
    assert!(bench.one(hasten()).await.is_err(), "a ready task is not pending");
    bench.pass(1_000);
    let granted = bench.grant().await;
    assert_eq!(granted.id, job);
    bench.done(complete(&granted)).await;
    let found = bench.store.job(job).await.expect("reads work").expect("it is kept");
    let steps: Vec<_> = found.history.iter().map(|step| (step.seq, step.to.as_str())).collect();
    assert_eq!(steps, [(1, "queued"), (2, "queued"), (3, "running"), (4, "succeeded")]);
}
