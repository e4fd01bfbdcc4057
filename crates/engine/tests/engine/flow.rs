//! Rates, circuits and what tenants may, when commits are decided twice, fail after they were
//! decided, or count although nobody hears of it: what is remembered is what was committed, no more
//! and no less.

use crate::bench::{Bench, pull, settle, tenant, wish};
use crate::scripted::Fate;
use mainspring_engine::Grant;
use mainspring_kernel::command::{Fail, Submit};
use mainspring_kernel::entity::tenant::{TenantCommand, tenant_id};
use mainspring_kernel::flow::{Circuit, Flow, RateLimit};
use mainspring_kernel::registry::TenantShare;
use mainspring_kernel::{Command, Failure, JobType, TypeSpec, UserId};
use std::time::Duration;

const FATES: [Fate; 3] = [Fate::Twice, Fate::Fails, Fate::Lost];

/// Says what holds jobs of the type back.
async fn set(bench: &Bench, flow: Flow) {
    let name = JobType::new("mill").unwrap();
    let spec = TypeSpec { flow: Box::new(flow), ..TypeSpec::plain(name) };
    bench.engine.execute_one(Command::SetType(Box::new(spec))).await.unwrap().unwrap();
}

/// Jobs that are handed out one after the other, of as many as are asked for.
async fn granted(bench: &Bench, most: usize) -> Vec<Grant> {
    let mut all = Vec::new();
    for _ in 0..most {
        all.extend(bench.engine.pull(pull(0)).await.unwrap());
    }
    all
}

fn failed(grant: &Grant) -> Command {
    let token = grant.job.lease().expect("it runs").token();
    let failure = Failure { code: "X".into(), message: "m".into(), retryable: false };
    Command::Fail(Fail {
        job: grant.job.id,
        token,
        failure,
        retry_delay_ms: None,
        result: None,
        snooze_ms: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_rate_counts_what_was_handed_out_and_nothing_that_was_not() {
    for fate in FATES {
        let bench = Bench::new().await;
        let rate_limit = Some(RateLimit::new(0.001, Some(3), None));
        set(&bench, Flow { rate_limit, ..Flow::default() }).await;
        let waiting = tokio::spawn({
            let engine = bench.engine.clone();
            async move { engine.pull(pull(1_000)).await }
        });
        settle().await;
        // The submission is handed out by the commit that has the fate.
        bench.store.next(&[fate]);
        assert_eq!(bench.submit(wish("acme")).await.is_ok(), fate == Fate::Twice, "{fate:?}");
        let first = waiting.await.unwrap().unwrap_or_default().len();
        assert_eq!(first, usize::from(fate == Fate::Twice), "{fate:?}");
        for _ in 0..5 {
            bench.submit(wish("acme")).await.unwrap();
        }
        let rest = granted(&bench, 5).await.len();
        let used = usize::from(fate != Fate::Fails);
        assert_eq!(rest, 3 - used, "{fate:?}: the bucket had three");
    }
}

#[tokio::test(start_paused = true)]
async fn a_circuit_counts_an_attempt_once_however_often_its_end_is_told() {
    for fate in FATES {
        let bench = Bench::new().await;
        let circuit = Some(Circuit { failure_permille: 1_000, min_calls: 2, open_secs: 10 });
        set(&bench, Flow { circuit, ..Flow::default() }).await;
        for _ in 0..8 {
            bench.submit(Submit { max_retries: Some(0), ..wish("acme") }).await.unwrap();
        }
        let running = granted(&bench, 3).await;
        bench.store.next(&[fate]);
        let told = bench.engine.execute_one(failed(&running[0])).await;
        assert_eq!(told.is_ok(), fate == Fate::Twice, "{fate:?}");
        // Whoever was not answered tells it again.
        bench.engine.execute_one(failed(&running[0])).await.unwrap().unwrap();
        assert_eq!(granted(&bench, 1).await.len(), 1, "{fate:?}: one failure opens nothing");
        bench.engine.execute_one(failed(&running[1])).await.unwrap().unwrap();
        assert!(granted(&bench, 2).await.is_empty(), "{fate:?}: two do");
        // However far the clock goes, one is tried, and how it ends decides.
        tokio::time::advance(Duration::from_secs(365 * 86_400)).await;
        let probe = granted(&bench, 3).await;
        assert_eq!(probe.len(), 1, "{fate:?}");
        bench.complete(&probe[0]).await.unwrap();
        assert_eq!(granted(&bench, 2).await.len(), 2, "{fate:?}: closed again");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_tenant_may_is_what_was_committed() {
    for fate in FATES {
        let bench = Bench::new().await;
        bench.submit(wish("acme")).await.unwrap();
        let command = || TenantCommand::Set {
            tenant: tenant("acme"),
            version: 0,
            share: TenantShare { backlog_max: Some(1), ..TenantShare::PLAIN },
            is_paused: true,
            by: UserId::new("ada").unwrap(),
        };
        bench.store.next(&[fate]);
        let told = bench.engine.execute_one(command().into()).await;
        assert_eq!(told.is_ok(), fate == Fate::Twice, "{fate:?}");
        let is_kept = fate != Fate::Fails;
        let found = bench.engine.entity(tenant_id(&tenant("acme"))).await.unwrap();
        assert_eq!(found.map(|it| it.version), is_kept.then_some(1), "{fate:?}");
        let refused = bench.engine.submit(wish("acme")).await.unwrap().is_err();
        assert_eq!(refused, is_kept, "{fate:?}: the backlog is full if there is a cap");
        assert_eq!(granted(&bench, 1).await.is_empty(), is_kept, "{fate:?}: paused, or not");
        // Another tenant feels nothing of it.
        bench.submit(wish("other")).await.unwrap();
        assert_eq!(
            granted(&bench, 3).await.iter().filter(|it| it.job.tenant == tenant("other")).count(),
            1
        );
    }
}
