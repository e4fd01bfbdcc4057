//! What a lease token, a worker's name and a header prove, and what they do not.

use super::server::{ADMIN, Answer, Server, engine_at, request};
use hyper::{Method, StatusCode};
use mainspring_engine::Clock;
use mainspring_kernel::Timestamp;
use mainspring_kernel::shared_time::Jump;
use mainspring_server::{App, Bounds, Config};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

async fn read_effect(server: &Server, job: &Value, token: &str, header: (&str, &str)) -> Answer {
    let path = format!("/api/v1/work/effects/{}/charge", job["job_id"].as_str().unwrap());
    let mut read = request(Method::GET, &path, token, None);
    if !header.0.is_empty() {
        let name: hyper::header::HeaderName = header.0.parse().unwrap();
        read.headers_mut().insert(name, header.1.parse().unwrap());
    }
    server.ask(read).await
}

/// A job of `t` that runs, with an effect.
async fn charged(server: &Server) -> Value {
    let ann = server.token("t", "ann", &["submitter", "worker"]).await;
    server.submit(&ann, json!({ "job_type": "t", "payload": 0 })).await;
    let job = server.pull(&ann).await;
    let path = format!("/api/v1/work/effects/{}/charge", job["job_id"].as_str().unwrap());
    let value = json!({ "lease_token": job["lease_token"], "value": 17 });
    server.put("", &path, value).await.data();
    job
}

#[tokio::test]
async fn an_effect_is_read_with_the_very_lease_or_by_whoever_may_see_the_job() {
    let server = Server::new().await;
    let job = charged(&server).await;
    let lease = job["lease_token"].as_str().unwrap().to_owned();
    let read = read_effect(&server, &job, "", ("x-lease-token", &lease)).await;
    assert_eq!(read.data()["value"], 17);
    let (fence, secret) = lease.split_once('.').unwrap();
    let other = if secret.starts_with('0') { "1" } else { "0" };
    for forged in [format!("{fence}.{other}{}", &secret[1..]), format!("9{fence}.{secret}")] {
        let told = read_effect(&server, &job, "", ("x-lease-token", &forged)).await;
        assert_eq!((told.status, &*told.code()), (StatusCode::CONFLICT, "LEASE_LOST"), "{forged}");
    }
    let vic = server.token("t", "vic", &["viewer"]).await;
    let eve = server.token("other", "eve", &["viewer"]).await;
    assert_eq!(read_effect(&server, &job, &vic, ("", "")).await.data()["value"], 17);
    assert_eq!(read_effect(&server, &job, &eve, ("", "")).await.status, StatusCode::FORBIDDEN);
    // Whoever names a tenant acts in it, here as everywhere.
    let named = ("x-tenant-id", "other");
    let told = read_effect(&server, &job, ADMIN, named).await;
    assert_eq!(told.status, StatusCode::FORBIDDEN, "the job is not of that tenant");
    assert_eq!(read_effect(&server, &job, &vic, named).await.code(), "TENANT_SCOPE_VIOLATION");
}

/// A clock that is set by hand.
struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Acquire))
    }

    fn jumps(&self) -> Arc<[Jump]> {
        Arc::default()
    }
}

#[tokio::test]
async fn a_lease_that_has_run_out_reads_nothing_even_before_it_is_reaped() {
    let hands = Arc::new(Hands(AtomicI64::new(1_790_000_000_000_000)));
    let engine = engine_at(hands.clone()).await;
    let server = Server { app: App::new(engine.clone(), Config::standard()), engine };
    let job = charged(&server).await;
    let lease = job["lease_token"].as_str().unwrap().to_owned();
    assert_eq!(
        read_effect(&server, &job, "", ("x-lease-token", &lease)).await.status,
        StatusCode::OK
    );
    // The timers sleep for a while yet: nobody has seen to it.
    hands.0.fetch_add(3_600_000_000, Ordering::AcqRel);
    let told = read_effect(&server, &job, "", ("x-lease-token", &lease)).await;
    assert_eq!(told.code(), "LEASE_LOST");
    let shown = server
        .get(ADMIN, &format!("/api/v1/jobs/{}", job["job_id"].as_str().unwrap()))
        .await
        .data();
    assert_eq!(shown["status"], "running", "not reaped yet");
}

#[tokio::test]
async fn a_heartbeat_without_a_lease_is_no_sign_of_life() {
    let server = Server::new().await;
    server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    let job = server.pull(ADMIN).await;
    let seen = async || server.get(ADMIN, "/api/v1/workers").await.data()["items"][0].clone();
    let before = seen().await;
    let beat = |lease: Value| {
        let item = json!({ "job_id": job["job_id"], "lease_token": lease });
        json!({ "worker_id": "w", "items": [item] })
    };
    let forged = format!("1.{}", "0".repeat(32));
    let told = server.post("", "/api/v1/work/heartbeat", beat(forged.into())).await.data();
    assert_eq!(told["items"][0]["lost"], true);
    assert_eq!(seen().await, before, "anybody can say a worker's name");
    let lease = job["lease_token"].clone();
    server.post("", "/api/v1/work/heartbeat", beat(lease)).await.data();
    assert_ne!(seen().await["last_seen_at"], before["last_seen_at"]);
}

#[tokio::test]
async fn a_worker_leaves_for_its_own_tenant_only() {
    let server = Arc::new(Server::new().await);
    let ann = server.token("t", "ann", &["worker"]).await;
    let eve = server.token("other", "eve", &["worker"]).await;
    let pull = {
        let (server, ann) = (server.clone(), ann.clone());
        let body = json!({ "worker_id": "w", "wait_ms": 60_000 });
        tokio::spawn(async move { server.post(&ann, "/api/v1/work/pull", body).await })
    };
    let parked = async {
        while server.engine.status().parked_pulls != 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, parked).await.expect("the pull waits");
    let leave = json!({ "worker_id": "w" });
    server.post(&eve, "/api/v1/work/leave", leave.clone()).await.data();
    assert!(!pull.is_finished(), "a name is worth nothing in another tenant");
    server.post(&ann, "/api/v1/work/leave", leave).await.data();
    let answer = tokio::time::timeout(LIMIT, pull).await.expect("it comes back").unwrap();
    assert_eq!(answer.data()["jobs"], json!([]));
}

#[tokio::test]
async fn a_pull_that_waits_does_not_hold_on_to_its_body() {
    let bodies = Bounds { all: 40 << 10, tenant: 40 << 10, token: 30 << 10 };
    let server = Arc::new(Server::with(Config { bodies, ..Config::standard() }).await);
    let ann = server.token("t", "ann", &["worker"]).await;
    let types: Vec<String> = (0..100).map(|n| format!("{n:0>190}")).collect();
    let park = || {
        let (server, ann) = (server.clone(), ann.clone());
        let body = json!({ "worker_id": "w", "wait_ms": 60_000, "types": types });
        assert!(body.to_string().len() > 18 << 10, "two of them are more than the share");
        tokio::spawn(async move { server.post(&ann, "/api/v1/work/pull", body).await })
    };
    let pulls = [park(), park(), park()];
    let parked = async {
        while server.engine.status().parked_pulls != 3 {
            assert!(pulls.iter().all(|pull| !pull.is_finished()), "one was refused");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, parked).await.expect("all of them wait");
    server.post(&ann, "/api/v1/work/leave", json!({ "worker_id": "w" })).await.data();
}

#[tokio::test]
async fn a_key_is_free_after_the_window_of_the_server_however_it_was_given() {
    let config = Config { key_window_secs: Some(0), ..Config::standard() };
    let server = Server::with(config).await;
    let wish = |key: &str| json!({ "job_type": "t", "payload": 0, "idempotency_key": key });
    let submit = async |path: &str, key: &str| {
        let body = match path.ends_with("batch") {
            true => json!({ "jobs": [wish(key)] }),
            false => wish(key),
        };
        let told = server.post(ADMIN, path, body).await.data();
        let told = if path.ends_with("batch") { told["items"][0].clone() } else { told };
        (told["job_id"].clone(), told["idempotent_hit"].clone())
    };
    for (path, key) in [("/api/v1/jobs", "a"), ("/api/v1/jobs/batch", "b")] {
        let (first, is_hit) = submit(path, key).await;
        assert_eq!(is_hit, false);
        assert_eq!(submit(path, key).await, (first.clone(), json!(true)), "{path}: it runs");
        let job = server.pull(ADMIN).await;
        let item = json!({ "job_id": job["job_id"], "lease_token": job["lease_token"] });
        server.post("", "/api/v1/work/complete", json!({ "items": [item] })).await.data();
        let (second, is_hit) = submit(path, key).await;
        assert_eq!(is_hit, false, "{path}: a window of nothing is over at once");
        assert_ne!(second, first);
        let job = server.pull(ADMIN).await;
        let item = json!({ "job_id": job["job_id"], "lease_token": job["lease_token"] });
        server.post("", "/api/v1/work/complete", json!({ "items": [item] })).await.data();
    }
}

#[tokio::test]
async fn a_given_admin_token_works_again_after_it_was_revoked() {
    let server = Server::new().await;
    let again = || mainspring_server::bootstrap_admin(&server.engine, Some(ADMIN.to_owned()));
    assert_eq!(again().await.unwrap(), None, "it works already");
    let own = server.get(ADMIN, "/api/v1/tokens").await.data()["items"][0].clone();
    let path = format!("/api/v1/tokens/{}", own["token_id"].as_str().unwrap());
    server.ask(request(Method::DELETE, &path, ADMIN, None)).await.data();
    assert_eq!(server.get(ADMIN, "/api/v1/jobs").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(again().await.unwrap().as_deref(), Some(ADMIN));
    assert_eq!(server.get(ADMIN, "/api/v1/jobs").await.status, StatusCode::OK);
}
