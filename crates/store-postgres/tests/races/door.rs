//! What it costs to ask for what one may not see: as much as for what is not there, counted in what
//! the database sends.

use crate::hand::{Hand, user};
use mainspring_kernel::command::Submit;
use mainspring_kernel::{DlqId, JobId, TenantId};
use mainspring_store::conformance::{fail, wish};
use mainspring_store::{Scope, Store};
use mainspring_testkit::postgres::{Database, Proxy, shared};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

/// Bytes that a question brings back at the least: now and then the store asks something itself.
async fn cost<F: Future<Output = bool>>(proxy: &Proxy, ask: impl Fn() -> F) -> (bool, u64) {
    let mut least = u64::MAX;
    let mut is_seen = false;
    for _ in 0..20 {
        let before = proxy.bytes_back();
        is_seen = ask().await;
        least = least.min(proxy.bytes_back() - before);
    }
    (is_seen, least)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strangers_large_job_costs_what_an_unknown_one_does() {
    let database = Arc::new(Database::create(shared()));
    let proxy = tokio::task::spawn_blocking(|| Proxy::start(shared())).await.expect("it starts");
    let now = database.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    let clock = Arc::new(AtomicI64::new(now.parse().expect("a number")));
    let url = proxy.admin().url(&database.name);
    let mut hand = Hand::through(&url, database, clock).await;
    let payload = format!("\"{}\"", "x".repeat(1_000_000));
    let large = Submit { payload: payload.as_str().into(), max_retries: Some(0), ..wish() };
    let job = hand.submit(large).await;
    let own = Scope::User(TenantId::stored("acme".into()), user("ada"));
    let strangers = [
        Scope::User(TenantId::stored("acme".into()), user("bob")),
        Scope::User(TenantId::stored("other".into()), user("ada")),
        Scope::Tenant(TenantId::stored("other".into())),
    ];
    let store = &hand.store;
    let job_cost = async |id: JobId, scope: &Scope| {
        cost(&proxy, || async { store.job_within(id, scope).await.unwrap().is_some() }).await
    };
    let (is_seen, whole) = job_cost(job, &own).await;
    assert!(is_seen && whole > 1_000_000, "the meter counts: {whole}");
    for scope in &strangers {
        let (foreign, unknown) = (job_cost(job, scope).await, job_cost(JobId(7), scope).await);
        println!("a stranger's job of 1 MB: {} bytes, an unknown one: {}", foreign.1, unknown.1);
        assert_eq!(foreign, unknown, "{scope:?}");
        assert!(!foreign.0);
    }
    let held = hand.pull(1).await.remove(0);
    hand.run(&[fail(&held, false)]).await;
    let store = &hand.store;
    let item_cost = async |id: DlqId, scope: &Scope| {
        cost(&proxy, || async { store.item_within(id, scope).await.unwrap().is_some() }).await
    };
    let (is_seen, whole) = item_cost(job.dlq(), &own).await;
    assert!(is_seen && whole > 1_000_000, "the meter counts: {whole}");
    for scope in &strangers {
        assert_eq!(
            item_cost(job.dlq(), scope).await,
            item_cost(DlqId(7), scope).await,
            "{scope:?}"
        );
    }
}
