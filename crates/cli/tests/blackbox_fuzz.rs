//! Mutated requests from outside.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Request, Server, Store, http};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![o02_o19_two_thousand_mutated_requests_never_get_a_5xx,];

/// What readers trip over.
const NASTY: [&[u8]; 12] = [
    b"\0",
    b"\xff",
    b"\"",
    b"}",
    b"[[[[",
    b"99999999999999999999",
    b"-1",
    b"\\ud800",
    b"null",
    b"\r\n\r\n",
    b"%00",
    b"1e999",
];

/// A small generator with a fixed seed. Ports and tokens differ from run to run, so a failure also
/// shows the bytes that were sent.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Valid requests with a few bytes changed, dropped, doubled or swapped for nasty ones. Whatever
/// comes of it, it is an answer below 500, and the server goes on serving.
fn o02_o19_two_thousand_mutated_requests_never_get_a_5xx(store: Store) {
    const SEED: u64 = 0x6d61_696e_7370_7267;
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).ephemeral());
    let ann = server.caller("fuzz", "ann", &["submitter", "worker", "viewer", "operator"]);
    let address = ann.address;
    let id = "job_0000000000000000000000000z";
    let job = json!({ "job_type": "t", "payload": { "a": [1, 2] }, "priority": 3, "delay_ms": 5,
        "labels": { "a": "b" } });
    let item = json!({ "job_id": id, "lease_token": "x", "result": 1 });
    let beat = json!({ "worker_id": "w", "lease_ms": 500, "items": [item] });
    let post = |path: &str, body: Value| (ann.request("POST", path), body);
    let put = |path: &str, body: Value| (ann.request("PUT", path), body);
    let requests = [
        post("/api/v1/jobs", job.clone()),
        post("/api/v1/jobs/batch", json!({ "jobs": [job, job] })),
        post("/api/v1/work/pull", json!({ "worker_id": "w", "limit": 2 })),
        post("/api/v1/work/complete", json!({ "items": [item] })),
        post("/api/v1/work/fail", json!({ "items": [item] })),
        post("/api/v1/work/heartbeat", beat),
        put(&format!("/api/v1/work/effects/{id}/e"), json!({ "value": 1, "lease_token": "x" })),
        put("/api/v1/types/t", json!({ "max_retries": 2, "priority": 5 })),
        put("/api/v1/queues/q", json!({ "order": "due" })),
        post(&format!("/api/v1/dlq/items/dlq_{id}/discard"), json!({ "reason": "r" })),
        (ann.request("GET", "/api/v1/jobs?limit=5&status=queued&cursor=job_x"), Value::Null),
        (ann.request("GET", &format!("/api/v1/jobs/{id}/events")), Value::Null),
        (Request::new("GET", "/openapi.json"), Value::Null),
    ];
    let mut dice = Dice(SEED);
    let mut statuses = std::collections::BTreeMap::new();
    for round in 0..2_000 {
        let (request, body) = &requests[dice.roll(requests.len())];
        // Two times in three the frame stays whole, so that the mutation gets to the reader of
        // JSON or behind it, and there must be an answer. A broken frame may get none, or several.
        let (shown, answers) = if round % 3 < 2 && !body.is_null() {
            let body = match round % 3 {
                0 => mutated(body.to_string().into_bytes(), &mut dice),
                _ => twisted(body.clone(), &mut dice).to_string().into_bytes(),
            };
            let shown = String::from_utf8_lossy(&body).into_owned();
            let request = request.clone().header("content-type", "application/json").body(body);
            (shown, vec![request.send(address)])
        } else {
            let whole = if body.is_null() { request.clone() } else { request.clone().json(body) };
            let bytes = mutated(whole.bytes(address), &mut dice);
            (String::from_utf8_lossy(&bytes).into_owned(), http::raw(address, &bytes))
        };
        for answer in answers {
            assert!(answer.status < 500, "seed {SEED:#x} round {round}: {answer:?} to {shown}");
            *statuses.entry(answer.status).or_insert(0) += 1;
        }
    }
    for status in [200, 201, 400, 401, 404] {
        assert!(statuses.contains_key(&status), "the mutations reach little: {statuses:?}");
    }
    assert_eq!(ann.get("/readyz").status, 200);
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let made = ann.submit(&json!({ "job_type": "after", "payload": Value::Null }));
    assert_eq!(ann.job(&text(&made, "job_id"))["status"], "queued");
}

/// A few bytes changed, dropped, cut off, doubled or put in.
fn mutated(mut bytes: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(bytes.len());
        match dice.roll(8) {
            0 | 1 => bytes[at] = dice.roll(256) as u8,
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at.max(1)),
            4 | 5 => {
                let nasty = NASTY[dice.roll(NASTY.len())];
                bytes.splice(at..at, nasty.iter().copied());
            }
            _ => {
                let end = (at + dice.roll(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
        bytes.extend(bytes.is_empty().then_some(b'x'));
    }
    bytes
}

/// One value somewhere in the body replaced by another of a kind that is seldom meant.
fn twisted(mut body: Value, dice: &mut Dice) -> Value {
    let odd = [
        json!(null),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(0.5),
        json!(true),
        json!(""),
        json!("\u{0}\u{202e}\u{1f4a5}"),
        json!("x".repeat(5_000)),
        json!([]),
        json!({ "": {} }),
        json!([[[null]]]),
    ];
    let mut place = &mut body;
    loop {
        let inner = match place {
            Value::Object(fields) => fields.len(),
            Value::Array(entries) => entries.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        };
        // One time in four it is the whole list or object that is replaced.
        if inner == 0 || dice.roll(4) == 0 {
            *place = odd[dice.roll(odd.len())].clone();
            return body;
        }
        let at = dice.roll(inner);
        place = match place {
            Value::Object(fields) => fields.values_mut().nth(at).expect("counted"),
            Value::Array(entries) => &mut entries[at],
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return body,
        };
    }
}
