//! The way over HTTP: the worker against a small server of its own, which answers as the test says
//! and can also lose an answer on the way. What the loop makes of it is tested in its own crate.

use super::*;
use crate::handler::StopReason;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// One request as it came: the last part of the path, and the body.
type Asked = (String, Value);
/// What to answer; `None` closes the connection without a word.
type Script = dyn FnMut(&str, &Value) -> Option<Value> + Send;

struct Fake {
    client: Client,
    asked: mpsc::UnboundedReceiver<Asked>,
}

impl Fake {
    async fn start(script: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let script: Arc<Mutex<Box<Script>>> = Arc::new(Mutex::new(Box::new(script)));
        let (tell, asked) = mpsc::unbounded_channel();
        let left = Arc::new(Notify::new());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, script.clone(), tell.clone(), left.clone()));
            }
        });
        Fake { client: Client::new(&url, Some("t")).unwrap(), asked }
    }

    /// The next request to `route`, skipping others.
    async fn next(&mut self, route: &str) -> Value {
        let wait = Duration::from_secs(20);
        loop {
            let (path, body) =
                tokio::time::timeout(wait, self.asked.recv()).await.unwrap().unwrap();
            if path == route {
                return body;
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    script: Arc<Mutex<Box<Script>>>,
    tell: mpsc::UnboundedSender<Asked>,
    left: Arc<Notify>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while stream.read_line(&mut line).await.unwrap_or(0) > 0 && line != "\r\n" {
            head.push_str(&line.to_lowercase());
            line.clear();
        }
        let Some(path) = head.split_whitespace().nth(1) else { return };
        let route = path.rsplit('/').next().unwrap_or_default().to_owned();
        let length = head.split("content-length: ").nth(1).and_then(|v| v.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let waiting = left.notified();
        let answer = script.lock().unwrap()(&route, &body);
        let _ = tell.send((route.clone(), body));
        let Some(mut data) = answer else { return };
        if data.is_null() {
            // A long poll without work, until its worker leaves.
            waiting.await;
            data = script.lock().unwrap()("left", &Value::Null).unwrap();
        }
        if route == "leave" {
            left.notify_waiters();
        }
        let meta = json!({"trace_id": "t", "request_id": "r"});
        let (status, text) = match data.get("refusal") {
            Some(code) => {
                let error = json!({"code": code, "message": "no", "class": "validation",
                    "retryable": false});
                ("400 Bad Request", json!({"success": false, "error": error, "meta": meta}))
            }
            None => ("200 OK", json!({"success": true, "data": data, "meta": meta})),
        };
        let text = text.to_string();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", text.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
    }
}

fn job(n: u32) -> Value {
    json!({
        "job_id": format!("job-{n}"), "job_type": "t", "payload": {"n": n}, "attempt": 1,
        "retry_count": 0, "lease_token": format!("lease-{n}"),
        "lease_expires_at": "2026-01-01T00:01:00Z", "deadline_at": "2026-01-01T00:15:00Z",
        "execution_key": "k", "trace_id": "t", "labels": {}
    })
}

fn reported(body: &Value) -> Value {
    let items = body["items"].as_array().unwrap();
    let items: Vec<Value> = items.iter().map(|i| json!({"job_id": i["job_id"]})).collect();
    json!({"items": items})
}

/// Hands out jobs 1 to `count` in the first pull, then nothing, and accepts every report.
fn accepting(count: u32) -> impl FnMut(&str, &Value) -> Option<Value> + Send {
    let mut is_first = true;
    move |route, body| match route {
        "pull" if std::mem::take(&mut is_first) => {
            Some(json!({"jobs": (1..=count).map(job).collect::<Vec<_>>()}))
        }
        "pull" => Some(Value::Null),
        "leave" => Some(json!({"worker_id": "w"})),
        "left" => Some(json!({"jobs": []})),
        "heartbeat" => {
            let items = body["items"].as_array().unwrap().iter();
            let item = |i: &Value| json!({"job_id": i["job_id"], "lease_expires_at": "2026-01-01T00:01:00Z"});
            Some(json!({"items": items.map(item).collect::<Vec<_>>()}))
        }
        _ => Some(reported(body)),
    }
}

fn quick(client: Client) -> WorkerBuilder {
    Worker::builder(client).drain_grace(Duration::from_secs(5)).stop_grace(Duration::from_secs(1))
}

#[tokio::test]
async fn a_report_fetches_the_next_job() {
    let mut fetched = 1;
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| {
        let mut answer = base(route, body)?;
        if route == "complete" && !body["pull"].is_null() && fetched < 3 {
            fetched += 1;
            answer["jobs"] = json!([job(fetched)]);
        }
        Some(answer)
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone())
        .concurrency(1)
        .on("t", |ctx| async move { ctx.payload::<Value>() })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    let pull = fake.next("pull").await;
    assert_eq!((&pull["limit"], &pull["types"]), (&json!(1), &json!(["t"])));
    for n in 1..=3 {
        let report = fake.next("complete").await;
        assert_eq!(report["items"][0]["result"], json!({"n": n}));
        assert_eq!(report["pull"]["limit"], 1);
    }
    stop.cancel();
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { completed: 3, ..Summary::default() });
}

#[tokio::test]
async fn a_lost_answer_does_not_lose_the_completion() {
    let mut losses = 2;
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| {
        if route == "complete" && losses > 0 {
            losses -= 1;
            return None;
        }
        base(route, body)
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone()).on("t", |_| async { Ok(1) }).build();
    let running = tokio::spawn(worker.run(stop.clone()));
    assert!(!fake.next("complete").await["pull"].is_null());
    for _ in 0..2 {
        let repeat = fake.next("complete").await;
        assert_eq!(repeat["items"][0]["lease_token"], "lease-1");
        assert!(repeat["pull"].is_null(), "a repeat must not fetch again");
    }
    stop.cancel();
    assert_eq!(running.await.unwrap().unwrap().completed, 1);
}

#[tokio::test]
async fn a_cancelled_job_stops_its_handler_and_is_not_reported() {
    let mut base = accepting(1);
    let fake = Fake::start(move |route, body| match route {
        "heartbeat" => Some(json!({"items": [{"job_id": "job-1", "cancelled": true}]})),
        _ => base(route, body),
    })
    .await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone())
        .lease(Duration::from_millis(150))
        .on("t", move |ctx| {
            let tell = tell.clone();
            async move {
                ctx.stopped().await;
                let _ = tell.send(ctx.stop_reason());
                Err::<(), _>(Failure::retryable("STOPPED", "stopped"))
            }
        })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    assert_eq!(told.recv().await.unwrap(), Some(StopReason::Cancelled));
    stop.cancel();
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { lost: 1, ..Summary::default() });
}

#[tokio::test]
async fn leases_are_renewed_in_one_call_while_handlers_run() {
    let mut fake = Fake::start(accepting(3)).await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone())
        .lease(Duration::from_millis(300))
        .drain_grace(Duration::ZERO)
        .on("t", |ctx| async move {
            ctx.progress(40.0);
            ctx.stopped().await;
            Ok(())
        })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    for _ in 0..3 {
        let beat = fake.next("heartbeat").await;
        assert_eq!((beat["items"].as_array().unwrap().len(), &beat["lease_ms"]), (3, &json!(300)));
        assert_eq!(beat["items"][0]["progress"], json!(40.0));
    }
    stop.cancel();
    assert_eq!(running.await.unwrap().unwrap().completed, 3);
}

#[tokio::test]
async fn a_job_that_arrives_while_the_worker_stops_is_given_back() {
    let mut base = accepting(0);
    let mut fake = Fake::start(move |route, body| match route {
        "pull" => Some(Value::Null),
        "left" => Some(json!({"jobs": [job(9)]})),
        _ => base(route, body),
    })
    .await;
    let stop = CancellationToken::new();
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = quick(fake.client.clone())
        .on("t", move |ctx| {
            let _ = tell.send(ctx.job().job_id.clone());
            std::future::pending::<Result<(), Failure>>()
        })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    fake.next("pull").await;
    stop.cancel();
    assert!(fake.next("leave").await["worker_id"].is_string());
    let given_back = fake.next("release").await;
    assert_eq!(given_back["items"][0]["lease_token"], "lease-9");
    assert!(given_back["pull"].is_null(), "a worker that stops asks for nothing");
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { released: 1, ..Summary::default() });
    assert_eq!(told.recv().await, None, "it was not begun");
}

#[tokio::test]
async fn a_result_that_is_refused_fails_its_job_and_no_neighbour() {
    let mut base = accepting(4);
    let mut fake = Fake::start(move |route, body| {
        let items = body["items"].as_array().cloned().unwrap_or_default();
        let is_bad = |item: &Value| item["result"] == json!({"n": 3});
        if route == "complete" && items.iter().any(is_bad) {
            return Some(json!({"refusal": "JSON_TOO_DEEP"}));
        }
        base(route, body)
    })
    .await;
    let stop = CancellationToken::new();
    let worker =
        quick(fake.client.clone()).on("t", |ctx| async move { ctx.payload::<Value>() }).build();
    let running = tokio::spawn(worker.run(stop.clone()));
    let failed = fake.next("fail").await;
    assert_eq!(failed["items"].as_array().unwrap().len(), 1);
    assert_eq!(failed["items"][0]["lease_token"], "lease-3");
    assert_eq!(failed["items"][0]["error_code"], "RESULT_REFUSED");
    assert_eq!(failed["items"][0]["retryable"], json!(false));
    assert!(failed["items"][0]["message"].as_str().unwrap().contains("JSON_TOO_DEEP"));
    stop.cancel();
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { completed: 3, failed: 1, ..Summary::default() });
}

/// A server whose answers are about other jobs than it was told of.
#[tokio::test]
async fn an_answer_about_other_jobs_is_not_believed() {
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| match route {
        "complete" => Some(json!({"items": [{"job_id": "job-9"}]})),
        _ => base(route, body),
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone()).on("t", |_| async { Ok(1) }).build();
    let running = tokio::spawn(worker.run(stop.clone()));
    fake.next("complete").await;
    stop.cancel();
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { refused: 1, ..Summary::default() });
}

#[tokio::test]
async fn a_server_that_refuses_this_worker_ends_it_with_the_servers_own_reason() {
    let fake = Fake::start(|route, _| match route {
        "pull" => Some(json!({"refusal": "REQ_VALIDATION_FAILED"})),
        _ => None,
    })
    .await;
    let worker = quick(fake.client.clone()).on("t", |_| async { Ok(1) }).build();
    let error = worker.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!((error.code(), error.status()), (Some("REQ_VALIDATION_FAILED"), Some(400)));
}

#[tokio::test]
async fn a_step_asks_the_ledger_and_the_client_is_at_hand() {
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| match route {
        "charge" if body.is_null() => Some(json!({"refusal": "EFFECT_NOT_FOUND"})),
        "charge" => Some(json!({
            "job_id": "job-1", "name": "charge", "value": body["value"], "is_first": true
        })),
        _ => base(route, body),
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone())
        .on("t", |ctx| async move {
            let url = ctx.client().url().to_owned();
            ctx.step("charge", || async { Ok(url) }).await
        })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    assert!(fake.next("charge").await.is_null(), "first it looks");
    let recorded = fake.next("charge").await;
    assert_eq!(
        (&recorded["lease_token"], &recorded["value"]),
        (&json!("lease-1"), &json!(fake.client.url()))
    );
    assert_eq!(fake.next("complete").await["items"][0]["result"], json!(fake.client.url()));
    stop.cancel();
    assert_eq!(running.await.unwrap().unwrap().completed, 1);
}
