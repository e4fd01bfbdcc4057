//! Workers: leases are proof enough, and stale ones change nothing.

use super::server::{ADMIN, Server, request};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

fn item(job: &Value) -> Value {
    json!({ "job_id": job["job_id"], "lease_token": job["lease_token"] })
}

#[tokio::test]
async fn a_worker_pulls_its_own_tenant_and_reports_without_a_token() {
    let server = Server::new().await;
    let submitter = server.token("t1", "ann", &["submitter"]).await;
    let foreign = server.token("t2", "wim", &["worker"]).await;
    let worker = server.token("t1", "wim", &["worker"]).await;
    let id = server.submit(&submitter, json!({ "job_type": "t", "payload": { "n": 1 } })).await;
    assert_eq!(server.pull(&foreign).await, Value::Null);
    let job = server.pull(&worker).await;
    assert_eq!(job["job_id"], json!(id));
    assert_eq!(job["execution_key"], json!(format!("{id}:0")));
    let beat = json!({ "worker_id": "w", "items": [
        { "job_id": id, "lease_token": job["lease_token"], "progress": 40 },
        { "job_id": "nonsense", "lease_token": "nonsense" },
    ]});
    let beaten = server.post("", "/api/v1/work/heartbeat", beat).await.data();
    assert!(beaten["items"][0]["lease_expires_at"].is_string());
    assert_eq!(beaten["items"][1], json!({ "job_id": "nonsense", "lost": true }));
    let report = json!({ "items": [item(&job)] });
    let done = server.post("", "/api/v1/work/complete", report.clone()).await.data();
    assert_eq!(done["items"][0], json!({ "job_id": id, "status": "succeeded" }));
    // The repeat of an accepted report is answered again.
    let again = server.post("", "/api/v1/work/complete", report).await.data();
    assert_eq!(again["items"][0]["status"], json!("succeeded"));
}

#[tokio::test]
async fn stale_foreign_and_unknown_leases_are_one_answer() {
    let server = Server::new().await;
    server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    let job = server.pull(ADMIN).await;
    let forged = format!("1.{}", "0".repeat(32));
    let report = json!({ "items": [
        { "job_id": job["job_id"], "lease_token": forged },
        { "job_id": "job_00000000000000000000000000", "lease_token": forged },
        { "job_id": "nonsense", "lease_token": job["lease_token"] },
        { "job_id": job["job_id"], "lease_token": "nonsense" },
        { "job_id": job["job_id"] },
        { "job_id": job["job_id"], "lease_token": job["lease_token"] },
    ]});
    let items = server.post("", "/api/v1/work/release", report).await.data()["items"].clone();
    let lost = &items[0]["error"];
    assert_eq!(lost["code"], json!("LEASE_LOST"));
    for index in 1..4 {
        assert_eq!(&items[index]["error"], lost, "{index}");
    }
    assert_eq!(items[4]["error"]["code"], json!("REQ_VALIDATION_FAILED"));
    assert_eq!(items[5]["status"], json!("retrying"));
}

#[tokio::test]
async fn a_report_may_fetch_the_next_job() {
    let server = Server::new().await;
    for _ in 0..2 {
        server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    }
    let job = server.pull(ADMIN).await;
    let body = json!({ "items": [item(&job)], "pull": { "worker_id": "w", "limit": 5 } });
    let unsigned = server.post("", "/api/v1/work/complete", body.clone()).await;
    assert_eq!(unsigned.status, StatusCode::UNAUTHORIZED);
    let viewer = server.token("default", "vi", &["viewer"]).await;
    let denied = server.post(&viewer, "/api/v1/work/complete", body.clone()).await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
    let done = server.post(ADMIN, "/api/v1/work/complete", body).await.data();
    assert_eq!(done["items"][0]["status"], json!("succeeded"));
    assert_eq!(done["jobs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_effect_is_committed_once() {
    let server = Server::new().await;
    let id = server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    let job = server.pull(ADMIN).await;
    let path = format!("/api/v1/work/effects/{id}/send%20mail");
    let with = |value: u8| json!({ "lease_token": job["lease_token"], "value": value });
    let missing = server.get(ADMIN, &path).await;
    assert_eq!((missing.status, &*missing.code()), (StatusCode::NOT_FOUND, "EFFECT_NOT_FOUND"));
    let first = server.put("", &path, with(1)).await.data();
    assert_eq!((&first["name"], &first["is_first"]), (&json!("send mail"), &json!(true)));
    let second = server.put("", &path, with(2)).await.data();
    assert_eq!((&second["value"], &second["is_first"]), (&json!(1), &json!(false)));
    let mut read = request(Method::GET, &path, "", None);
    let token = job["lease_token"].as_str().unwrap();
    read.headers_mut().insert("x-lease-token", token.parse().unwrap());
    assert_eq!(server.ask(read).await.data()["value"], json!(1));
    let unproven = server.put("", &path, json!({ "value": 3 })).await;
    assert_eq!((unproven.status, &*unproven.code()), (StatusCode::CONFLICT, "LEASE_LOST"));
}

#[tokio::test]
async fn a_cancelled_job_is_told_by_the_heartbeat() {
    let server = Server::new().await;
    let id = server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    let job = server.pull(ADMIN).await;
    server.post(ADMIN, &format!("/api/v1/jobs/{id}/cancel"), json!({})).await.data();
    let beat = json!({ "worker_id": "w", "items": [item(&job)] });
    let beaten = server.post("", "/api/v1/work/heartbeat", beat).await.data();
    assert_eq!(beaten["items"][0], json!({ "job_id": id, "cancelled": true }));
}

#[tokio::test]
async fn queues_pause_and_types_rule() {
    let server = Server::new().await;
    let wish = json!({ "max_retries": 0, "queue": "slow", "timeout_seconds": 7 });
    let set = server.put(ADMIN, "/api/v1/types/t", wish).await.data();
    assert_eq!((&set["queue"], &set["concurrency_limit"]), (&json!("slow"), &Value::Null));
    let missing = server.get(ADMIN, "/api/v1/types/other").await;
    assert_eq!(missing.code(), "TYPE_NOT_FOUND");
    let pause = request(Method::POST, "/api/v1/queues/slow/pause", ADMIN, None);
    assert_eq!(server.ask(pause).await.data()["paused"], json!(true));
    server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    assert_eq!(server.pull(ADMIN).await, Value::Null);
    let queues = server.get(ADMIN, "/api/v1/queues").await.data();
    assert_eq!(queues["items"][0]["ready"], json!(1));
    let resume = request(Method::POST, "/api/v1/queues/slow/resume", ADMIN, None);
    server.ask(resume).await.data();
    let job = server.pull(ADMIN).await;
    let report = json!({ "items": [{ "job_id": job["job_id"], "lease_token": job["lease_token"],
        "error_code": "lower case" }] });
    let failed = server.post("", "/api/v1/work/fail", report).await.data();
    assert_eq!(failed["items"][0]["status"], json!("failed"), "any code is taken");
    let path = format!("/api/v1/jobs/{}", job["job_id"].as_str().unwrap());
    let found = server.get(ADMIN, &path).await.data();
    assert_eq!(found["error_code"], json!("lower_case"), "as far as it is plain");
    let workers = server.get(ADMIN, "/api/v1/workers").await.data();
    assert_eq!(workers["items"][0]["worker_id"], json!("w"));
    let runtime = server.get(ADMIN, "/api/v1/runtime").await.data();
    assert_eq!(runtime["counters"]["jobs"]["failed"], json!(1));
    let metrics = server.get("", "/metrics").await.text;
    assert!(metrics.contains("\ndead_letter_count 1\n"), "{metrics}");
}

#[tokio::test]
async fn workers_are_listed_in_pages_and_each_tenant_sees_its_own() {
    let server = Server::new().await;
    let ann = server.token("t", "ann", &["worker", "viewer"]).await;
    let eve = server.token("other", "eve", &["worker", "viewer"]).await;
    for n in 0..25 {
        let pull = json!({ "worker_id": format!("w{n:02}"), "types": ["a"] });
        server.post(&ann, "/api/v1/work/pull", pull).await.data();
    }
    // The same name in another tenant is another worker.
    server.post(&eve, "/api/v1/work/pull", json!({ "worker_id": "w10" })).await.data();
    let all = async |token: &str| {
        let (mut seen, mut path) = (Vec::new(), "/api/v1/workers?limit=10".to_owned());
        loop {
            let page = server.get(token, &path).await.data();
            let items = page["items"].as_array().unwrap().clone();
            assert!(items.len() == 10 || page["next_cursor"].is_null(), "a page is full: {page}");
            seen.extend(
                items.iter().map(|it| {
                    (it["worker_id"].as_str().unwrap().to_owned(), it["tenant_id"].clone())
                }),
            );
            match page["next_cursor"].as_str() {
                Some(next) => path = format!("/api/v1/workers?limit=10&cursor={next}"),
                None => return seen,
            }
        }
    };
    let own = all(&ann).await;
    let expected: Vec<_> = (0..25).map(|n| (format!("w{n:02}"), json!("t"))).collect();
    assert_eq!(own, expected);
    assert_eq!(all(&eve).await, [("w10".to_owned(), json!("other"))]);
    assert_eq!(all(ADMIN).await.len(), 26);
    for bad in ["x", "0", "zz", "6131", "ff00"] {
        let answer = server.get(&ann, &format!("/api/v1/workers?cursor={bad}")).await;
        assert_eq!(answer.code(), "CURSOR_INVALID", "{bad}");
    }
    let names: Vec<String> = (0..101).map(|n| format!("t{n}")).collect();
    let pull = json!({ "worker_id": "w", "types": names });
    assert_eq!(server.post(&ann, "/api/v1/work/pull", pull).await.code(), "REQ_VALIDATION_FAILED");
}
