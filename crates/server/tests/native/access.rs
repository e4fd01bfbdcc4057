//! Who may do what, and what nobody learns.

use super::server::{ADMIN, Server, request};
use hyper::{Method, StatusCode};
use mainspring_server::Config;
use serde_json::json;

#[tokio::test]
async fn every_token_that_does_not_work_gets_one_answer() {
    let server = Server::new().await;
    let token = server.token("t", "u", &["viewer"]).await;
    let list = server.get(ADMIN, "/api/v1/tokens").await;
    assert!(!list.text.contains(&token), "a secret is listed");
    let items = list.data()["items"].clone();
    let mine = items.as_array().unwrap().iter().find(|one| one["user_id"] == "u").unwrap().clone();
    let path = format!("/api/v1/tokens/{}", mine["token_id"].as_str().unwrap());
    assert_eq!(server.get(&token, "/api/v1/jobs").await.status, StatusCode::OK);
    let revoked = server.ask(request(Method::DELETE, &path, ADMIN, None)).await;
    assert!(revoked.data()["revoked_at"].is_string());
    let wrong_secret = format!("{}{}", &token[..token.len() - 1], "z");
    let expected = server.get("", "/api/v1/jobs").await;
    assert_eq!(
        (expected.status, &*expected.code()),
        (StatusCode::UNAUTHORIZED, "AUTH_UNAUTHORIZED")
    );
    for bad in [&*token, &*wrong_secret, "ms_", "nobody", "ms_x_y"] {
        let answer = server.get(bad, "/api/v1/jobs").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{bad}");
        assert_eq!(answer.without_ids(), expected.without_ids(), "{bad}");
    }
}

#[tokio::test]
async fn unknown_foreign_and_nonsense_ids_are_one_answer() {
    let server = Server::new().await;
    let ann = server.token("t1", "ann", &["submitter"]).await;
    let bob = server.token("t1", "bob", &["submitter"]).await;
    let eve = server.token("t2", "eve", &["operator"]).await;
    let job = server.submit(&ann, json!({ "job_type": "t", "payload": 0 })).await;
    let unknown = "job_00000000000000000000000000";
    for step in ["", "/events", "/explain"] {
        let expected = server.get(&bob, &format!("/api/v1/jobs/{unknown}{step}")).await;
        assert_eq!((expected.status, &*expected.code()), (StatusCode::FORBIDDEN, "AUTH_FORBIDDEN"));
        for token in [&bob, &eve] {
            for id in [&*job, unknown, "nonsense"] {
                let answer = server.get(token, &format!("/api/v1/jobs/{id}{step}")).await;
                assert_eq!(answer.without_ids(), expected.without_ids(), "{id}{step}");
            }
        }
        let own = server.get(&ann, &format!("/api/v1/jobs/{job}{step}")).await;
        assert_eq!(own.status, StatusCode::OK);
        let admin = server.get(ADMIN, &format!("/api/v1/jobs/{unknown}{step}")).await;
        assert_eq!((admin.status, &*admin.code()), (StatusCode::NOT_FOUND, "JOB_NOT_FOUND"));
    }
    let item = server.get(ADMIN, "/api/v1/dlq/items/dlq_00000000000000000000000000").await;
    assert_eq!((item.status, &*item.code()), (StatusCode::NOT_FOUND, "DLQ_ITEM_NOT_FOUND"));
    let cancel = format!("/api/v1/jobs/{job}/cancel");
    for token in [&bob, &eve] {
        assert_eq!(server.post(token, &cancel, json!({})).await.code(), "AUTH_FORBIDDEN");
    }
    let seen = server.get(&bob, "/api/v1/jobs").await.data();
    assert_eq!(seen["items"], json!([]));
}

#[tokio::test]
async fn roles_are_needed() {
    let server = Server::new().await;
    let viewer = server.token("t", "v", &["viewer"]).await;
    let job = json!({ "job_type": "t", "payload": 0 });
    assert_eq!(server.post(&viewer, "/api/v1/jobs", job).await.code(), "AUTH_FORBIDDEN");
    let pull = json!({ "worker_id": "w" });
    assert_eq!(server.post(&viewer, "/api/v1/work/pull", pull).await.code(), "AUTH_FORBIDDEN");
    assert_eq!(server.get(&viewer, "/api/v1/tokens").await.code(), "AUTH_FORBIDDEN");
    assert_eq!(server.put(&viewer, "/api/v1/types/t", json!({})).await.code(), "AUTH_FORBIDDEN");
    assert_eq!(server.get(&viewer, "/api/v1/runtime").await.status, StatusCode::OK);
}

#[tokio::test]
async fn ids_are_on_every_answer() {
    let server = Server::new().await;
    for path in ["/api/v1/jobs", "/nowhere", "/healthz", "/docs", "/openapi.json"] {
        let mut request = request(Method::GET, path, "", None);
        request.headers_mut().insert("x-trace-id", "my-trace".parse().unwrap());
        let answer = server.ask(request).await;
        assert_eq!(answer.headers["x-trace-id"], "my-trace", "{path}");
        assert!(answer.headers.contains_key("x-request-id"), "{path}");
    }
}

#[tokio::test]
async fn a_public_server_keeps_its_metrics_and_takes_any_host() {
    let server = Server::with(Config { is_public: true, ..Config::standard() }).await;
    let mut metrics = request(Method::GET, "/metrics", "", None);
    metrics.headers_mut().insert("host", "example.org".parse().unwrap());
    assert_eq!(server.ask(metrics).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.get(ADMIN, "/metrics").await.status, StatusCode::OK);
    // Internal routes are not there unless asked for.
    let path = "/api/v1/internal/jobs/job_00000000000000000000000000/run";
    assert_eq!(server.post(ADMIN, path, json!({})).await.code(), "REQ_NOT_FOUND");
}

/// Seeing a job is not the right to end it: a matrix of every role, alone and beside `submitter`,
/// and every distance from the job's owner.
#[tokio::test]
async fn a_cancel_needs_the_right_to_steer_that_job() {
    let server = Server::new().await;
    let ann = server.token("t", "ann", &["submitter"]).await;
    let mut tried = 0;
    for role in ["submitter", "worker", "viewer", "operator", "approver", "internal", "admin"] {
        for roles in [vec![role], vec![role, "submitter"]] {
            for (tenant, user) in [("t", "ann"), ("t", "bob"), ("other", "ann"), ("other", "eve")] {
                let job = server.submit(&ann, json!({ "job_type": "t", "payload": 0 })).await;
                let token = server.token(tenant, user, &roles).await;
                let answer =
                    server.post(&token, &format!("/api/v1/jobs/{job}/cancel"), json!({})).await;
                let may = match role {
                    "admin" => true,
                    "operator" => tenant == "t",
                    _ => (tenant, user) == ("t", "ann") && roles.contains(&"submitter"),
                };
                let shown = server.get(ADMIN, &format!("/api/v1/jobs/{job}")).await.data();
                let (status, state) = match may {
                    true => (StatusCode::ACCEPTED, "cancelled"),
                    false => (StatusCode::FORBIDDEN, "queued"),
                };
                assert_eq!(answer.status, status, "{roles:?} {tenant}/{user}: {}", answer.text);
                assert_eq!(shown["status"], state, "{roles:?} {tenant}/{user}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 56);
}

#[tokio::test]
async fn numbers_and_names_of_others_are_not_shown() {
    let server = Server::new().await;
    let public = Server::with(Config { is_public: true, ..Config::standard() }).await;
    for (server, is_public) in [(&server, false), (&public, true)] {
        let ann = server.token("t", "ann", &["submitter", "viewer"]).await;
        let eve = server.token("other", "eve", &["submitter", "viewer"]).await;
        let job = json!({ "job_type": "t", "payload": 0, "queue": "secret-queue" });
        server.submit(&ann, job).await;
        let seen = server.get(&eve, "/api/v1/runtime").await.data();
        let shown = (&seen["counters"], &seen["recovery"], &seen["tenant"]["jobs"]);
        assert_eq!(shown, (&json!(null), &json!(null), &json!(0)), "{seen}");
        let own = server.get(&ann, "/api/v1/runtime").await.data();
        assert_eq!((&own["tenant"]["jobs"], &own["tenant"]["tenant_id"]), (&json!(1), &json!("t")));
        assert!(own["tenant"]["backlog_bytes"].as_u64().unwrap() > 512, "{own}");
        let admin = server.get(ADMIN, "/api/v1/runtime").await.data();
        assert_eq!(admin["counters"]["submitted"], 1);

        let admin = server.get(ADMIN, "/metrics").await.text;
        assert!(admin.contains("mainspring_queue_ready{queue=\"secret-queue\"} 1"), "{admin}");
        for token in [&*eve, &*ann] {
            let text = server.get(token, "/metrics").await.text;
            // Of their own tenant they see names, where everybody sees only their own.
            assert_eq!(text.contains("secret-queue"), is_public && token == ann, "{text}");
            assert!(text.contains("\nmainspring_store_up 1\n"), "{text}");
            let jobs = format!("\nmainspring_tenant_jobs {}\n", u8::from(token == ann));
            assert!(text.contains(&jobs), "{text}");
            assert_eq!(text.contains("jobs_due_count"), !is_public, "{text}");
        }
        if !is_public {
            let text = server.get("", "/metrics").await.text;
            assert!(text.contains("\njobs_due_count 1\n"), "{text}");
            assert!(!text.contains("secret-queue") && !text.contains("tenant_jobs"), "{text}");
            assert!(text.contains("mainspring_queue_ready{queue=\"\"} 1"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_stream_shows_the_moves_of_nobody_else() {
    use http_body_util::BodyExt;
    let server = Server::new().await;
    let ann = server.token("t", "ann", &["submitter", "viewer"]).await;
    let bob = server.token("t", "bob", &["submitter"]).await;
    let eve = server.token("other", "eve", &["submitter", "viewer"]).await;
    let mut jobs = Vec::new();
    for token in [&ann, &bob, &eve] {
        jobs.push(server.submit(token, json!({ "job_type": "t", "payload": 0 })).await);
    }
    // Whose is the last move of each, so that all before it were passed over or shown by then.
    for (token, is_shown) in [(&ann, [true, true, false]), (&bob, [false, true, false])] {
        let end = server.submit(token, json!({ "job_type": "t", "payload": 0 })).await;
        let follow = request(Method::GET, "/api/v1/events?after=0", token, None);
        let mut body = server.send(follow).await.into_body();
        let mut text = String::new();
        while !text.contains(&end) {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            text.push_str(std::str::from_utf8(&frame).unwrap());
        }
        let found: Vec<bool> = jobs.iter().map(|job| text.contains(job)).collect();
        assert_eq!(found, is_shown, "{text}");
    }
}

#[tokio::test]
async fn a_token_says_with_which_token_it_was_made() {
    let server = Server::new().await;
    let wish = |user: &str| json!({ "tenant_id": "t", "user_id": user, "roles": ["admin"] });
    let first = server.post(ADMIN, "/api/v1/tokens", wish("ann")).await.data();
    let token = first["token"].as_str().unwrap();
    let second = server.post(token, "/api/v1/tokens", wish("bob")).await.data();
    assert_eq!(second["issued_with"], first["token_id"]);
    assert_eq!(second["issued_by"], "ann");
    let listed = server.get(ADMIN, "/api/v1/tokens").await.data()["items"].clone();
    let listed = listed.as_array().unwrap().iter();
    let of_bob = listed.clone().find(|one| one["user_id"] == "bob").unwrap();
    assert_eq!(of_bob["issued_with"], first["token_id"]);
}
