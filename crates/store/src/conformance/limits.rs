//! Concurrency limits, counted from live leases, and pauses.

use super::bench::{Bench, any, complete, fail, kind, submit, tenant, token, user, wish};
use mainspring_kernel::command::{Release, Submit};
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{Command, QueueSpec, StateName, TypeSpec};

fn limited(limit: Option<u32>, scope: ConcurrencyScope) -> Command {
    Command::SetType(Box::new(TypeSpec {
        concurrency_limit: limit,
        concurrency_scope: scope,
        ..TypeSpec::plain(kind("mill"))
    }))
}

async fn crowd(bench: &mut Bench, names: &[(&str, &str)]) {
    for (of, by) in names {
        for _ in 0..3 {
            bench.submit(Submit { tenant: tenant(of), user: user(by), ..wish() }).await;
        }
    }
}

pub(super) async fn a_global_limit_holds(bench: &mut Bench) {
    bench.done(limited(Some(2), ConcurrencyScope::Global)).await;
    crowd(bench, &[("a", "x"), ("b", "y")]).await;
    assert_eq!(bench.pulled(1).await.len(), 1);
    assert_eq!(bench.pulled(10).await.len(), 1);
    assert_eq!(bench.pulled(10).await.len(), 0);
}

pub(super) async fn a_tenant_limit_counts_each_tenant(bench: &mut Bench) {
    bench.done(limited(Some(1), ConcurrencyScope::Tenant)).await;
    crowd(bench, &[("a", "x"), ("a", "y"), ("b", "x")]).await;
    let granted = bench.pull(any(10)).await;
    let mut tenants: Vec<_> = granted.iter().map(|job| job.tenant.as_str()).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, ["a", "b"]);
    assert!(bench.pulled(10).await.is_empty());
}

pub(super) async fn a_user_limit_counts_each_user(bench: &mut Bench) {
    bench.done(limited(Some(1), ConcurrencyScope::User)).await;
    crowd(bench, &[("a", "x"), ("a", "y"), ("b", "x")]).await;
    assert_eq!(bench.pulled(10).await.len(), 3);
    assert!(bench.pulled(10).await.is_empty());
}

/// Success, retry, release, dead letter, cancellation, lease expiry, a move by hand.
pub(super) async fn every_way_out_frees_the_place(bench: &mut Bench) {
    bench.done(limited(Some(1), ConcurrencyScope::Global)).await;
    for way in 0..7 {
        bench.submit(Submit { max_retries: Some(1), ..wish() }).await;
        let job = bench.grant().await;
        bench.submit(Submit { priority: Some(255), ..wish() }).await;
        assert!(bench.pulled(1).await.is_empty(), "the limit holds before way {way}");
        let out = match way {
            0 => complete(&job),
            1 => fail(&job, true),
            2 => Command::Release(Release { job: job.id, token: token(&job), reason: None }),
            3 => fail(&job, false),
            4 => Command::Cancel { job: job.id, by: user("ada"), reason: None },
            5 => {
                bench.pass(60_000);
                Command::Reap { job: job.id }
            }
            _ => {
                let to = StateName::Succeeded;
                Command::Transition { job: job.id, to, by: user("ada") }
            }
        };
        bench.done(out).await;
        let next = bench.pull(any(5)).await;
        assert_eq!(next.len(), 1, "way {way} frees exactly one place");
        bench.done(complete(&next[0])).await;
        // Whatever waits for a retry must not disturb the next round.
        let by = user("ada");
        let _ = bench.one(Command::Cancel { job: job.id, by, reason: None }).await;
    }
}

pub(super) async fn a_limit_of_zero_holds_all(bench: &mut Bench) {
    bench.done(limited(Some(0), ConcurrencyScope::Global)).await;
    bench.submit(wish()).await;
    assert!(bench.pulled(5).await.is_empty());
}

pub(super) async fn a_changed_limit_counts_at_once(bench: &mut Bench) {
    crowd(bench, &[("a", "x"), ("b", "x")]).await;
    assert_eq!(bench.pulled(2).await.len(), 2, "no limit yet");
    bench.done(limited(Some(3), ConcurrencyScope::Global)).await;
    assert_eq!(bench.pulled(9).await.len(), 1, "leases from before the limit count");
    bench.done(limited(Some(2), ConcurrencyScope::User)).await;
    let after = bench.pulled(9).await.len();
    assert_eq!(after, 1, "three run: one user has two, the other has one and room for one more");
    bench.done(limited(None, ConcurrencyScope::Global)).await;
    assert_eq!(bench.pulled(9).await.len(), 2);
}

pub(super) async fn untaken_jobs_free_their_place(bench: &mut Bench) {
    bench.done(limited(Some(1), ConcurrencyScope::Global)).await;
    bench.submit(wish()).await;
    bench.submit(wish()).await;
    for _ in 0..3 {
        assert_eq!(bench.look(5).await.len(), 1, "a job that is only taken counts for its batch");
    }
    assert_eq!(bench.pulled(5).await.len(), 1);
}

pub(super) async fn a_full_type_does_not_block_another(bench: &mut Bench) {
    bench.done(limited(Some(1), ConcurrencyScope::Global)).await;
    bench.submit(Submit { priority: Some(200), ..wish() }).await;
    bench.submit(Submit { priority: Some(200), ..wish() }).await;
    let saw = Submit { job_type: kind("saw"), priority: Some(1), ..wish() };
    let (_, granted) = bench.batch(&[submit(saw)], Some(any(5))).await;
    let types: Vec<_> = granted.iter().map(|job| job.job_type.as_str()).collect();
    assert_eq!(types, ["mill", "saw"]);
}

pub(super) async fn a_paused_queue_hands_out_nothing(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let plain = QueueSpec::plain(QueueSpec::default_name());
    let pause = Command::SetQueue(QueueSpec { is_paused: true, ..plain.clone() });
    let (_, granted) = bench.batch(&[pause], Some(any(5))).await;
    assert!(granted.is_empty(), "a pause counts within its own batch");
    assert!(bench.pulled(5).await.is_empty());
    bench.submit(wish()).await;
    assert!(bench.pulled(5).await.is_empty());
    bench.done(Command::SetQueue(plain)).await;
    assert_eq!(bench.pulled(1).await, [id]);
}

/// Found by the differential test: a store that starts a batch over, to count what runs, must not
/// take the first try for a turn.
pub(super) async fn a_batch_that_starts_over_takes_no_turn(bench: &mut Bench) {
    bench.done(limited(Some(5), ConcurrencyScope::Tenant)).await;
    for name in ["a", "b"] {
        bench.submit(Submit { tenant: tenant(name), ..wish() }).await;
    }
    for name in ["a", "b"] {
        let granted = bench.pull(any(1)).await;
        assert_eq!(granted.iter().map(|job| job.tenant.as_str()).collect::<Vec<_>>(), [name]);
    }
}

/// Found by the differential test: jobs that change lanes are ready there at once.
pub(super) async fn a_pull_sees_the_limit_its_batch_sets(bench: &mut Bench) {
    for name in ["ada", "ada", "bob"] {
        bench.submit(Submit { user: user(name), ..wish() }).await;
    }
    let per_user = limited(Some(1), ConcurrencyScope::User);
    let (_, granted) = bench.batch(&[per_user], Some(any(5))).await;
    let mut users: Vec<&str> = granted.iter().map(|job| job.user.as_str()).collect();
    users.sort_unstable();
    assert_eq!(users, ["ada", "bob"]);
}
