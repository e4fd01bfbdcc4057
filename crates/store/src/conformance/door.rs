//! What comes through the kernel's door is kept as it is, and shown to those who may see it.

use super::bench::{Bench, complete, fail, kind, tenant, token, user, wish};
use crate::Scope;
use mainspring_kernel::command::{Complete, Fail, Submit};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{Command, Failure, Rejection, Timestamp, TypeSpec};

pub(super) async fn a_stranger_sees_no_job_at_any_age(bench: &mut Bench) {
    let job = bench.submit(wish()).await;
    let scopes = [
        (Scope::All, true),
        (Scope::Tenant(tenant("acme")), true),
        (Scope::User(tenant("acme"), user("ada")), true),
        (Scope::User(tenant("acme"), user("bob")), false),
        (Scope::Tenant(tenant("other")), false),
        (Scope::User(tenant("other"), user("ada")), false),
    ];
    let unknown = mainspring_kernel::JobId(7);
    for step in ["waiting", "running", "ended", "of long ago"] {
        for (scope, is_seen) in &scopes {
            let found = bench.store.job_within(job, scope).await.expect("reads work");
            assert_eq!(found.is_some(), *is_seen, "{step}: {scope:?}");
            let whole = bench.job(job).await;
            assert!(found.is_none_or(|found| found == whole), "{step}: {scope:?}");
            assert!(bench.store.job_within(unknown, scope).await.expect("reads work").is_none());
        }
        match step {
            "waiting" => drop(bench.grant().await),
            "running" => {
                let held = bench.job(job).await.job;
                bench.done(complete(&held)).await;
            }
            _ => bench.store.maintain(bench.now).await.expect("upkeep works"),
        }
    }
}

pub(super) async fn a_stranger_sees_no_item(bench: &mut Bench) {
    let job = bench.submit(wish()).await;
    let held = bench.grant().await;
    bench.done(fail(&held, false)).await;
    for (scope, is_seen) in [
        (Scope::All, true),
        (Scope::Tenant(tenant("acme")), true),
        (Scope::User(tenant("acme"), user("ada")), true),
        (Scope::User(tenant("acme"), user("bob")), false),
        (Scope::User(tenant("other"), user("ada")), false),
        (Scope::Tenant(tenant("other")), false),
    ] {
        let found = bench.store.item_within(job.dlq(), &scope).await.expect("reads work");
        assert_eq!(found.is_some(), is_seen, "{scope:?}");
        let unknown = mainspring_kernel::DlqId(7);
        assert!(bench.store.item_within(unknown, &scope).await.expect("reads work").is_none());
    }
}

pub(super) async fn what_json_can_spell_is_kept_to_the_letter(bench: &mut Bench) {
    let odd = r#"{ "a\u0000" : "\ud800\u0000", "é" : 1.0 }"#;
    let id = bench.submit(Submit { payload: odd.into(), ..wish() }).await;
    let job = bench.grant().await;
    assert_eq!(&*job.payload, odd);
    let done = Complete { job: id, token: token(&job), result: Some(odd.into()) };
    bench.done(Command::Complete(done)).await;
    let kept = bench.job(id).await.job;
    let mainspring_kernel::State::Succeeded { result, .. } = kept.state else {
        panic!("it has ended well")
    };
    assert_eq!((&*kept.payload, result.as_deref()), (odd, Some(odd)));
}

pub(super) async fn one_bad_text_spoils_no_neighbour(bench: &mut Bench) {
    let bad = Submit { trace: Some("a\0b".into()), ..wish() };
    let commands = [wish(), bad, wish()].map(|wish| Command::Submit(Box::new(wish)));
    let outcomes = bench.run(&commands).await;
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
    let Err(Rejection::FieldInvalid { field, .. }) = &outcomes[1] else {
        panic!("a NUL is refused, not {:?}", outcomes[1])
    };
    assert_eq!(*field, "trace_id");
}

pub(super) async fn a_workers_last_word_is_kept_without_stray_bytes(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    let failure = Failure { code: "E\0".into(), message: "a\0b\n".into(), retryable: false };
    let (retry_delay_ms, result, snooze_ms) = (None, None, None);
    let report = Fail { job: id, token: token(&job), failure, retry_delay_ms, result, snooze_ms };
    bench.done(Command::Fail(report)).await;
    let last_failure = bench.job(id).await.job.last_failure.expect("it failed");
    assert_eq!(&*last_failure.failure.message, "a\u{fffd}b\n");
    assert_eq!(&*last_failure.failure.code, "E_");
}

pub(super) async fn the_past_gives_no_start(bench: &mut Bench) {
    let first = bench.submit(wish()).await;
    bench.pass(10);
    let past = Some(Timestamp(-62_167_219_200_000_000));
    let second = bench.submit(Submit { run_at: past, ..wish() }).await;
    let counts = bench.store.counts(bench.now).await.expect("reads work");
    let oldest = counts.oldest_due.expect("two jobs are due");
    assert!(oldest >= Timestamp(bench.now.0 - 2_000_000), "{oldest:?} is too long ago");
    assert_eq!(bench.pulled(2).await, [first, second]);
}

pub(super) async fn what_a_file_said_of_a_type_is_kept(bench: &mut Bench) {
    let by_file = TypeSpec { file_entry: Some(Digest([9; 16])), ..TypeSpec::plain(kind("mill")) };
    bench.done(Command::SetType(Box::new(by_file.clone()))).await;
    let by_hand = TypeSpec { priority: 77, ..TypeSpec::plain(kind("mill")) };
    bench.done(Command::SetType(Box::new(by_hand))).await;
    let kept = bench.store.types().await.expect("reads work");
    assert_eq!(kept, [TypeSpec { priority: 77, ..by_file }]);
}
