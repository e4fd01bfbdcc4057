//! Concurrency limits, counted from live leases, and pauses.

use super::bench::{Bench, any, complete, fail, kind, submit, tenant, token, user, wish};
use crate::{JobFilter, Scope};
use mainspring_kernel::command::{Release, Submit, TypeChange};
use mainspring_kernel::entity::tenant::TenantCommand;
use mainspring_kernel::flow::{Circuit, Flow, KeySource, RateLimit};
use mainspring_kernel::limits::RETRY_EVERY;
use mainspring_kernel::registry::{ConcurrencyScope, TenantShare};
use mainspring_kernel::{Command, Job, QueueOrder, QueueSpec, Rejection, StateName, TypeSpec};

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

fn rated(per_second: f64, burst: u32, key: Option<&str>) -> Command {
    let limit = RateLimit::new(per_second, Some(burst), key.map(KeySource::new));
    let flow = Box::new(Flow { rate_limit: Some(limit), ..Flow::default() });
    Command::SetType(Box::new(TypeSpec { flow, ..TypeSpec::plain(kind("mill")) }))
}

pub(super) async fn a_bucket_gives_its_burst_and_then_its_rate(bench: &mut Bench) {
    bench.done(rated(2.0, 3, None)).await;
    crowd(bench, &[("a", "x"), ("b", "y"), ("c", "z")]).await;
    assert_eq!(bench.pulled(2).await.len(), 2);
    let saw = bench.submit(Submit { job_type: kind("saw"), priority: Some(0), ..wish() }).await;
    let rest = bench.pulled(10).await;
    assert_eq!((rest.len(), rest.contains(&saw)), (2, true), "another type goes past it");
    assert!(bench.pulled(10).await.is_empty());
    let wake = bench.store.wake(bench.now).await.expect("reads work");
    let next = bench.now.plus_millis(500);
    assert!(wake.next.is_some_and(|at| at <= next), "then there is room for one");
    bench.pass(499);
    assert!(bench.pulled(10).await.is_empty());
    bench.pass(1);
    let wake = bench.store.wake(bench.now).await.expect("reads work");
    assert!(wake.is_work_due, "whoever waits is served");
    assert_eq!(bench.pulled(10).await.len(), 1);
    bench.pass(60_000);
    assert_eq!(bench.pulled(10).await.len(), 3, "never more than the burst");
}

pub(super) async fn each_key_has_a_bucket_of_its_own(bench: &mut Bench) {
    bench.done(rated(1.0, 1, Some("/of"))).await;
    for of in ["1", "1", "1", "2", "null"] {
        bench.submit(Submit { payload: format!("{{\"of\":{of}}}").into(), ..wish() }).await;
    }
    assert_eq!(bench.pulled(10).await.len(), 3, "one of each, and one without");
    assert!(bench.pulled(10).await.is_empty());
    let (_, granted) = bench
        .batch(&[submit(Submit { payload: r#"{"of":3}"#.into(), ..wish() })], Some(any(9)))
        .await;
    assert_eq!(granted.len(), 1, "those that wait hide nobody");
    bench.pass(1_000);
    assert_eq!(bench.pulled(10).await.len(), 1);
}

/// What was handed out in a batch is known to the next pull of the same batch, and what was only
/// taken is not spent.
pub(super) async fn a_token_is_spent_by_the_claim(bench: &mut Bench) {
    bench.done(rated(0.1, 1, None)).await;
    bench.submit(wish()).await;
    bench.submit(wish()).await;
    for _ in 0..3 {
        assert_eq!(bench.look(5).await.len(), 1);
    }
    let job = bench.grant().await;
    let (_, granted) = bench.batch(&[complete(&job)], Some(any(5))).await;
    assert!(granted.is_empty(), "an end gives nothing back");
}

fn keyed(limit: u32, scope: ConcurrencyScope, key: Option<&str>) -> Command {
    let flow = Flow { concurrency_key: key.map(KeySource::new), ..Flow::default() };
    Command::SetType(Box::new(TypeSpec {
        concurrency_limit: Some(limit),
        concurrency_scope: scope,
        flow: Box::new(flow),
        ..TypeSpec::plain(kind("mill"))
    }))
}

fn labelled(customer: &str) -> Submit {
    Submit { labels: vec![("customer".into(), customer.into())], ..wish() }
}

pub(super) async fn a_limit_counts_each_key(bench: &mut Bench) {
    bench.done(keyed(2, ConcurrencyScope::Global, Some("customer"))).await;
    for customer in ["x", "x", "x", "x", "y"] {
        bench.submit(labelled(customer)).await;
    }
    bench.submit(wish()).await;
    bench.submit(Submit { concurrency_key: Some("y".into()), ..labelled("x") }).await;
    let granted = bench.pull(any(10)).await;
    let mut keys: Vec<Option<&str>> = granted
        .iter()
        .map(|job| job.limit_keys().and_then(|keys| keys.concurrency.as_deref()))
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, [None, Some("x"), Some("x"), Some("y"), Some("y")]);
    assert!(bench.pulled(10).await.is_empty());
    let of_x =
        |job: &&Job| job.limit_keys().is_some_and(|it| it.concurrency.as_deref() == Some("x"));
    let done = granted.iter().find(of_x).expect("one of them");
    let (_, next) = bench.batch(&[complete(done)], Some(any(10))).await;
    assert_eq!(next.len(), 1, "a place is free in the very batch that frees it");
    assert!(bench.pulled(10).await.is_empty());
}

/// However many wait under a key that is full, the next key is served.
pub(super) async fn a_full_key_hides_nobody_behind_it(bench: &mut Bench) {
    bench.done(keyed(1, ConcurrencyScope::Tenant, Some("customer"))).await;
    let many: Vec<Command> =
        (0..600).map(|_| submit(Submit { priority: Some(200), ..labelled("big") })).collect();
    bench.batch(&many, None).await;
    let small = bench.submit(Submit { priority: Some(0), ..labelled("small") }).await;
    let granted = bench.pulled(10).await;
    assert_eq!((granted.len(), granted.contains(&small)), (2, true));
    assert!(bench.pulled(10).await.is_empty());
    let waits = bench.submit(labelled("big")).await;
    let standing = bench.store.standing(waits, bench.now).await.expect("reads work");
    assert_eq!(standing.and_then(|standing| standing.limit), Some((1, 1)));
}

pub(super) async fn who_holds_a_limit_is_told(bench: &mut Bench) {
    bench.done(keyed(1, ConcurrencyScope::Global, Some("customer"))).await;
    let first = bench.submit(labelled("x")).await;
    let second = bench.submit(labelled("x")).await;
    let standing = bench.store.standing(second, bench.now).await.expect("reads work");
    assert_eq!(standing.map(|it| it.holders), Some(Vec::new()), "there is room");
    assert_eq!(bench.pulled(10).await, [first]);
    let standing = bench.store.standing(second, bench.now).await.expect("reads work");
    assert_eq!(standing.map(|it| (it.limit, it.holders)), Some((Some((1, 1)), vec![first])));
}

/// Jobs keep the keys that they were submitted with; what they are for is the type's business.
pub(super) async fn keys_count_when_a_limit_is_set_later(bench: &mut Bench) {
    bench.done(keyed(9, ConcurrencyScope::Global, Some("customer"))).await;
    for customer in ["x", "x", "x", "y"] {
        bench.submit(labelled(customer)).await;
    }
    assert_eq!(bench.pulled(1).await.len(), 1);
    bench.done(keyed(1, ConcurrencyScope::User, Some("customer"))).await;
    assert_eq!(bench.pulled(9).await.len(), 1, "of x one runs already");
    bench.done(limited(None, ConcurrencyScope::Global)).await;
    assert_eq!(bench.pulled(9).await.len(), 2);
}

pub(super) async fn a_paused_type_hands_out_nothing(bench: &mut Bench) {
    bench.done(Command::SetType(Box::new(TypeSpec::plain(kind("mill"))))).await;
    let id = bench.submit(wish()).await;
    let pause = TypeChange::Pause { by: user("eve") };
    let pause = Command::ChangeType { name: kind("mill"), change: pause };
    let (_, granted) = bench.batch(&[pause], Some(any(5))).await;
    assert!(granted.is_empty(), "a pause counts within its own batch");
    // Whoever sets the type does not resume it.
    bench.done(Command::SetType(Box::new(TypeSpec::plain(kind("mill"))))).await;
    let standing = bench.store.standing(id, bench.now).await.expect("reads work");
    let paused = standing.and_then(|standing| standing.type_paused);
    assert_eq!(paused.map(|pause| pause.by), Some(user("eve")));
    assert!(bench.pulled(5).await.is_empty());
    bench.done(Command::ChangeType { name: kind("mill"), change: TypeChange::Resume }).await;
    assert_eq!(bench.pulled(5).await, [id]);
}

fn breaking() -> Command {
    let circuit = Circuit { failure_permille: 500, min_calls: 2, open_secs: 10 };
    let flow = Box::new(Flow { circuit: Some(circuit), ..Flow::default() });
    Command::SetType(Box::new(TypeSpec { flow, ..TypeSpec::plain(kind("mill")) }))
}

pub(super) async fn a_circuit_opens_tries_one_and_closes(bench: &mut Bench) {
    bench.done(breaking()).await;
    for _ in 0..8 {
        bench.submit(Submit { max_retries: Some(0), ..wish() }).await;
    }
    let running = bench.pull(any(4)).await;
    bench.batch(&[complete(&running[0]), fail(&running[1], false)], None).await;
    assert!(bench.pulled(5).await.is_empty(), "half of them failed");
    bench.done(complete(&running[2])).await;
    assert!(bench.pulled(5).await.is_empty(), "what was handed out before says nothing");
    let waits = bench.submit(wish()).await;
    let standing = bench.store.standing(waits, bench.now).await.expect("reads work");
    let until = standing.and_then(|standing| standing.held).and_then(|held| held.until);
    assert_eq!(until, Some(bench.now.plus_millis(10_000)));
    bench.pass(10_000);
    let probe = bench.pull(any(5)).await;
    assert_eq!(probe.len(), 1, "one is tried");
    assert!(bench.pulled(5).await.is_empty(), "and no other");
    bench.done(fail(&probe[0], false)).await;
    assert!(bench.pulled(5).await.is_empty(), "it is open again");
    bench.pass(10_000);
    let probe = bench.pull(any(5)).await;
    let (_, granted) = bench.batch(&[complete(&probe[0])], Some(any(5))).await;
    assert_eq!((probe.len(), granted.len()), (1, 3), "closed again, at once");
    bench.batch(&[fail(&granted[0], false), fail(&granted[1], false)], None).await;
    bench.submit(wish()).await;
    assert!(bench.pulled(5).await.is_empty());
    bench.done(Command::ChangeType { name: kind("mill"), change: TypeChange::ResetCircuit }).await;
    assert_eq!(bench.pulled(5).await.len(), 1, "an operator has it closed");
}

/// However many jobs fail over and over, one of [`RETRY_EVERY`] that are handed out is a retry, as
/// long as there are others; and what was only given back is none.
pub(super) async fn a_storm_of_retries_leaves_fresh_jobs_most_turns(bench: &mut Bench) {
    for _ in 0..30 {
        bench.submit(Submit { max_retries: Some(9), priority: Some(99), ..wish() }).await;
    }
    let storm = bench.pull(any(30)).await;
    let failed: Vec<Command> = storm.iter().map(|job| fail(job, true)).collect();
    bench.batch(&failed, None).await;
    bench.pass(120_000);
    let turn = RETRY_EVERY as usize;
    for number in 0..2 * (turn - 1) {
        let job_type = kind(if number % 2 == 0 { "mill" } else { "saw" });
        bench.submit(Submit { job_type, priority: Some(1), ..wish() }).await;
    }
    let waits = bench.store.standing(storm[9].id, bench.now).await.expect("reads work");
    assert!(waits.is_some_and(|it| it.is_fresh_first), "it is known why it waits");
    let mut order = Vec::new();
    for limit in [1, turn - 3, turn - 3, 5] {
        let granted = bench.pull(any(limit)).await;
        order.extend(granted.iter().map(|job| job.retry_count > 0));
    }
    let expected: Vec<bool> = (0..2 * turn).map(|nth| nth % turn == 0).collect();
    assert_eq!(order, expected);
    let rest = bench.pull(any(5)).await;
    assert_eq!(rest.len(), 5, "with nothing else to do, they go at once");
    let waits = bench.store.standing(storm[9].id, bench.now).await.expect("reads work");
    assert!(waits.is_none_or(|it| !it.is_fresh_first));
    // One that is cancelled leaves the line of retries, and one that is given back is no retry.
    let left = bench.list(&JobFilter::of(Scope::All), 100).await;
    for id in left {
        let by = user("ada");
        let _ = bench.one(Command::Cancel { job: id, by, reason: None }).await;
    }
    let given_back = bench.submit(wish()).await;
    let job = bench.grant().await;
    assert_eq!(job.id, given_back);
    bench.done(Command::Release(Release { job: job.id, token: token(&job), reason: None })).await;
    bench.pass(1_000);
    bench.submit(wish()).await;
    assert_eq!(bench.pulled(1).await, [given_back], "it stands where it stood");
}

/// The same in one pull, whose fresh jobs are far more than are looked at of one lane, uneven
/// among theirs, and beside retries of many lanes.
pub(super) async fn a_wide_storm_of_retries_leaves_fresh_jobs_most_turns(bench: &mut Bench) {
    for number in 0..120 {
        let job_type = kind(&format!("storm{}", number % 12));
        bench.submit(Submit { job_type, max_retries: Some(9), ..wish() }).await;
    }
    let storm = bench.pull(any(120)).await;
    let failed: Vec<Command> = storm.iter().map(|job| fail(job, true)).collect();
    bench.batch(&failed, None).await;
    bench.pass(120_000);
    for number in 0..90 {
        let job_type = kind(if number < 86 { "mill" } else { ["saw", "axe"][number % 2] });
        bench.submit(Submit { job_type, ..wish() }).await;
    }
    let (mut fresh, mut retries) = (0, 0);
    while fresh < 90 {
        let granted = bench.pull(any(60)).await;
        assert!(!granted.is_empty(), "after {fresh} and {retries}");
        for job in granted {
            *(if job.retry_count > 0 { &mut retries } else { &mut fresh }) += 1;
            assert!(
                fresh == 90 || retries <= 1 + fresh / (RETRY_EVERY - 1),
                "{retries} beside {fresh}"
            );
        }
    }
}

/// Where the order is a promise, retries do not give way to others, and explain does not say so.
pub(super) async fn retries_keep_their_place_in_due_order(bench: &mut Bench) {
    let order = QueueOrder::Due;
    bench
        .done(Command::SetQueue(QueueSpec { order, ..QueueSpec::plain(QueueSpec::default_name()) }))
        .await;
    for _ in 0..3 {
        bench.submit(Submit { max_retries: Some(9), ..wish() }).await;
    }
    let first = bench.pull(any(3)).await;
    let failed: Vec<Command> = first.iter().map(|job| fail(job, true)).collect();
    bench.batch(&failed, None).await;
    bench.pass(120_000);
    let mut fresh = Vec::new();
    for _ in 0..3 {
        fresh.push(bench.submit(wish()).await);
    }
    let waits = bench.store.standing(first[0].id, bench.now).await.expect("reads work");
    assert!(waits.is_some_and(|it| !it.is_fresh_first));
    let pulled = bench.pull(any(6)).await;
    let order: Vec<bool> = pulled.iter().map(|job| job.retry_count > 0).collect();
    assert_eq!(order, [true, true, true, false, false, false]);
    assert_eq!(pulled[3..].iter().map(|job| job.id).collect::<Vec<_>>(), fresh);
}

fn share(
    of: &str,
    weight: u16,
    backlog_max: Option<u64>,
    version: u32,
    is_paused: bool,
) -> Command {
    let share = TenantShare { weight, backlog_max, backlog_bytes_max: None };
    let by = user("eve");
    TenantCommand::Set { tenant: tenant(of), version, share, is_paused, by }.into()
}

pub(super) async fn tenants_take_turns_by_their_weight(bench: &mut Bench) {
    bench.done(share("a", 3, None, 0, false)).await;
    crowd(bench, &[("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]).await;
    let mut turns = Vec::new();
    for limit in [1, 1, 3, 3] {
        turns.extend(bench.pull(any(limit)).await.into_iter().map(|job| job.tenant.to_string()));
    }
    assert_eq!(turns, ["a", "a", "a", "b", "a", "a", "a", "b"]);
}

pub(super) async fn a_paused_tenant_gets_nothing_and_others_all(bench: &mut Bench) {
    bench.done(share("a", 1, None, 0, false)).await;
    crowd(bench, &[("a", "x"), ("b", "x")]).await;
    let (_, granted) = bench.batch(&[share("a", 1, None, 1, true)], Some(any(9))).await;
    assert_eq!(granted.len(), 3, "a pause counts within its own batch");
    assert!(granted.iter().all(|job| job.tenant.as_str() == "b"));
    assert!(bench.pulled(9).await.is_empty());
    let stale = bench.one(share("a", 1, None, 1, false)).await;
    assert!(stale.is_err(), "it was set on another version");
    bench.done(share("a", 1, None, 2, false)).await;
    assert_eq!(bench.pulled(9).await.len(), 3);
}

pub(super) async fn a_tenant_may_have_so_many_and_no_more(bench: &mut Bench) {
    bench.done(share("a", 1, Some(2), 0, false)).await;
    let wish = |of: &str| submit(Submit { tenant: tenant(of), ..wish() });
    let (outcomes, _) = bench.batch(&[wish("a"), wish("a"), wish("a"), wish("b")], None).await;
    let is_taken: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(is_taken, [true, true, false, true]);
    assert_eq!(outcomes[2], Err(Rejection::TenantBacklogFull));
    let both = Command::Together(vec![wish("b"), wish("a")]);
    assert!(bench.one(both).await.is_err(), "all or none");
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    assert!(bench.one(wish(job.tenant.as_str())).await.is_ok(), "one ended");
}
