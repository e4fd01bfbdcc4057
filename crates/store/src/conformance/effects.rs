//! The effect ledger.

use super::bench::{Bench, fail, token, wish};
use mainspring_kernel::command::CommitEffect;
use mainspring_kernel::{Command, Job, Receipt};

pub(super) fn commit(job: &Job, value: &str) -> Command {
    let (name, value) = ("charge".into(), value.into());
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
    let kept = bench.snapshot(job.id).await.job;
    let effect = kept.effect("charge").expect("it is kept");
    assert_eq!((&*effect.value, effect.committed_at), ("1", bench.now));
    assert_eq!(kept.seq, 2, "an effect is not a move");
}

pub(super) async fn effects_survive_a_retry(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(commit(&job, "1")).await;
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    let again = bench.grant().await;
    assert!(again.effect("charge").is_some(), "the next worker sees it");
    assert_eq!(bench.done(commit(&again, "2")).await, answered("1", false));
}
