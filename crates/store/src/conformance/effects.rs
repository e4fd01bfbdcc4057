//! The effect ledger.

use super::bench::{Bench, complete, fail, token, wish};
use mainspring_kernel::command::{CommitEffect, Heartbeat};
use mainspring_kernel::limits::{EFFECT_BYTES_MAX, EFFECTS_BYTES_MAX, EFFECTS_MAX};
use mainspring_kernel::{Command, Job, Receipt, Rejection};

pub(super) fn commit(job: &Job, value: &str) -> Command {
    named(job, "charge", value)
}

fn named(job: &Job, name: &str, value: &str) -> Command {
    let (name, value) = (name.into(), value.into());
    Command::CommitEffect(CommitEffect { job: job.id, token: token(job), name, value })
}

fn answered(value: &str, is_first: bool) -> Receipt {
    Receipt::Effect { value: value.into(), is_first }
}

pub(super) async fn an_effect_is_committed_once(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    let outcomes = bench.run(&[commit(&job, "1"), commit(&job, "2")]).await;
    assert_eq!(outcomes, [Ok(answered("1", true)), Ok(answered("1", false))]);
    assert_eq!(bench.done(commit(&job, "3")).await, answered("1", false));
    let effect = bench.effect(job.id, "charge").await.expect("it is kept");
    assert_eq!((&*effect.value, effect.committed_at), ("1", bench.now));
    assert_eq!(bench.effect(job.id, "other").await, None);
    assert_eq!(bench.job(job.id).await.job.seq, 2, "an effect is not a move");
}

pub(super) async fn effects_survive_a_retry(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(commit(&job, "1")).await;
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    let again = bench.grant().await;
    assert!(bench.effect(again.id, "charge").await.is_some(), "the next worker sees it");
    assert_eq!(bench.done(commit(&again, "2")).await, answered("1", false));
}

pub(super) async fn effects_keep_their_order_through_everything_else(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    let names = ["z", "a", "m", "b", "y"];
    bench.run(&[named(&job, "z", "0"), named(&job, "a", "1")]).await;
    let (job_id, token) = (job.id, token(&job));
    let (lease_ms, progress_pct, note) = (60_000, Some(40), None);
    let beat = Heartbeat { job: job_id, token, lease_ms, progress_pct, note };
    bench.done(Command::Heartbeat(beat)).await;
    // A repeat, a new one and another repeat in one batch.
    let outcomes = bench.run(&[commit(&job, "x"), named(&job, "a", "9")]).await;
    assert_eq!(outcomes, [Ok(answered("x", true)), Ok(answered("1", false))]);
    bench.done(named(&job, "m", "2")).await;
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    let again = bench.grant().await;
    bench.run(&[named(&again, "b", "3"), named(&again, "y", "4"), complete(&again)]).await;
    let kept = bench.store.effects(id).await.expect("reads work");
    let kept: Vec<(&str, &str)> = kept.iter().map(|it| (&*it.name, &*it.value)).collect();
    assert_eq!(kept, [("z", "0"), ("a", "1"), ("charge", "x"), ("m", "2"), ("b", "3"), ("y", "4")]);
    for name in names {
        assert!(bench.effect(id, name).await.is_some(), "{name} outlives the end of the job");
    }
    assert_eq!(bench.job(id).await.job.effect_totals().count, 6);
}

pub(super) async fn the_number_of_effects_is_bounded(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    let names: Vec<String> = (0..EFFECTS_MAX).map(|n| format!("e{n}")).collect();
    for some in names.chunks(250) {
        let commands: Vec<Command> = some.iter().map(|name| named(&job, name, "1")).collect();
        assert!(bench.run(&commands).await.iter().all(Result::is_ok));
    }
    assert_eq!(bench.one(named(&job, "one more", "1")).await, Err(Rejection::EffectsFull));
    assert_eq!(bench.done(named(&job, "e7", "2")).await, answered("1", false), "not a new one");
}

pub(super) async fn the_bytes_of_effects_are_bounded(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    let value = format!("\"{}\"", "v".repeat(EFFECT_BYTES_MAX - 2));
    let fitting = EFFECTS_BYTES_MAX / (EFFECT_BYTES_MAX + 3);
    for n in 0..fitting {
        bench.done(named(&job, &format!("e{n:02}"), &value)).await;
    }
    assert_eq!(bench.one(named(&job, "e99", &value)).await, Err(Rejection::EffectsFull));
    bench.done(named(&job, "small", "1")).await;
    bench.done(complete(&job)).await;
    let kept = bench.store.effects(job.id).await.expect("reads work");
    assert_eq!(kept.len(), fitting + 1);
    assert!(kept[fitting - 1].value.len() == EFFECT_BYTES_MAX && &*kept[fitting].name == "small");
}

pub(super) async fn a_dead_letter_item_does_not_carry_effects(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(commit(&job, "1")).await;
    bench.done(fail(&job, false)).await;
    let item = bench.store.item(id.dlq()).await.expect("reads work").expect("it was opened");
    assert_eq!(item.job.effect_totals().count, 0);
    assert!(bench.effect(id, "charge").await.is_some(), "the job has it still");
}
