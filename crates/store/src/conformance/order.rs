//! Who goes next.

use super::bench::{Bench, Pull, any, kind, queue, tenant, user, wish};
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, JobId, QueueOrder, QueueSpec, Timestamp};

async fn urgent(bench: &mut Bench, priority: u8) -> JobId {
    bench.submit(Submit { priority: Some(priority), ..wish() }).await
}

fn ordered(order: QueueOrder) -> Command {
    Command::SetQueue(QueueSpec { order, ..QueueSpec::plain(QueueSpec::default_name()) })
}

pub(super) async fn old_jobs_outrank_urgent_ones_when_aged(bench: &mut Bench) {
    let old = urgent(bench, 0).await;
    bench.pass(50_000);
    let middle = urgent(bench, 49).await;
    let first = urgent(bench, 60).await;
    // Fifty seconds are worth fifty points: 0 + 50 beats 49, and 60 beats both.
    assert_eq!(bench.pulled(5).await, [first, old, middle]);
}

pub(super) async fn due_order_goes_by_time_then_priority(bench: &mut Bench) {
    bench.done(ordered(QueueOrder::Due)).await;
    let early = urgent(bench, 0).await;
    bench.pass(1);
    let low = urgent(bench, 10).await;
    let high = urgent(bench, 90).await;
    assert_eq!(bench.pulled(5).await, [early, high, low]);
}

pub(super) async fn equal_jobs_go_in_arrival_order(bench: &mut Bench) {
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(urgent(bench, 50).await);
    }
    let mut seen = bench.pulled(4).await;
    seen.extend(bench.pulled(10).await);
    assert_eq!(seen, ids);
}

pub(super) async fn tenants_take_turns(bench: &mut Bench) {
    for name in ["a", "a", "a", "a", "b", "c"] {
        bench.submit(Submit { tenant: tenant(name), ..wish() }).await;
    }
    let served: Vec<String> =
        bench.pull(any(6)).await.iter().map(|job| job.tenant.to_string()).collect();
    assert_eq!(served[3..], ["a", "a", "a"], "each tenant had a turn first: {served:?}");
    let mut first: Vec<&str> = served[..3].iter().map(String::as_str).collect();
    first.sort_unstable();
    assert_eq!(first, ["a", "b", "c"]);
}

pub(super) async fn a_pull_may_name_a_tenant(bench: &mut Bench) {
    bench.submit(wish()).await;
    let theirs = bench.submit(Submit { tenant: tenant("other"), ..wish() }).await;
    let granted = bench.pull(Pull { tenant: Some("other"), ..any(5) }).await;
    assert_eq!(granted.iter().map(|job| job.id).collect::<Vec<_>>(), [theirs]);
}

pub(super) async fn types_and_queues_filter(bench: &mut Bench) {
    let mill = bench.submit(wish()).await;
    let saw = bench.submit(Submit { job_type: kind("saw"), ..wish() }).await;
    let slow = bench.submit(Submit { queue: Some(queue("slow")), ..wish() }).await;
    let none = Pull { types: Some(Vec::new()), ..any(5) };
    assert!(bench.pull(none).await.is_empty(), "no types are no jobs");
    let both = Pull { types: Some(vec![kind("saw")]), queues: Some(vec![queue("slow")]), ..any(5) };
    assert!(bench.pull(both).await.is_empty());
    let in_slow = bench.pull(Pull { queues: Some(vec![queue("slow")]), ..any(5) }).await;
    assert_eq!(in_slow.iter().map(|job| job.id).collect::<Vec<_>>(), [slow]);
    let of_saw = Pull { types: Some(vec![kind("saw"), kind("axe")]), ..any(5) };
    let of_saw = bench.pull(of_saw).await;
    assert_eq!(of_saw.iter().map(|job| job.id).collect::<Vec<_>>(), [saw]);
    assert_eq!(bench.pulled(5).await, [mill]);
}

pub(super) async fn a_change_of_order_reorders_what_waits(bench: &mut Bench) {
    let early = urgent(bench, 0).await;
    bench.pass(1);
    let high = urgent(bench, 90).await;
    assert_eq!(bench.look(5).await, [high, early]);
    bench.done(ordered(QueueOrder::Due)).await;
    assert_eq!(bench.look(5).await, [early, high]);
    bench.done(ordered(QueueOrder::Aged)).await;
    assert_eq!(bench.pulled(5).await, [high, early]);
}

pub(super) async fn untaken_jobs_are_ready_again(bench: &mut Bench) {
    let first = urgent(bench, 60).await;
    let second = urgent(bench, 50).await;
    for _ in 0..3 {
        assert_eq!(bench.look(5).await, [first, second]);
    }
    assert_eq!(bench.pulled(5).await, [first, second]);
}

/// Found by the differential test: a store that looks at no more ready jobs than are asked for
/// comes up short.
pub(super) async fn a_pull_goes_on_behind_a_job_its_batch_cancels(bench: &mut Bench) {
    let first = bench.submit(wish()).await;
    let second = bench.submit(wish()).await;
    let third = bench.submit(wish()).await;
    let cancel = Command::Cancel { job: first, by: user("ada"), reason: None };
    let (_, granted) = bench.batch(&[cancel], Some(any(2))).await;
    assert_eq!(granted.iter().map(|job| job.id).collect::<Vec<_>>(), [second, third]);
}

/// Found by the differential test: the order key of an instant of long ago overflowed. Today such
/// an instant counts as that of the submission, so that it is no way to the front.
pub(super) async fn a_job_of_long_ago_counts_as_of_now(bench: &mut Bench) {
    let long_ago = Some(Timestamp(-60_000_000_000_000_000));
    let old = bench.submit(Submit { run_at: long_ago, ..wish() }).await;
    let new = urgent(bench, 99).await;
    bench.done(ordered(QueueOrder::Due)).await;
    assert_eq!(bench.pulled(5).await, [new, old]);
}
