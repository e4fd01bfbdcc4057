//! Failing from outside: the seven states, retries and their delays, effects.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

both_stores![
    g02_g03_every_pair_of_states_moves_as_written_or_is_refused_and_changes_nothing,
    g03_g05_g07_the_fourth_failure_of_a_worker_goes_through_the_dlq_to_failed,
    g04_only_retryable_failures_retry,
    g06_g17_the_delay_is_the_formula_and_its_jitter_can_be_foretold,
    g08_d08_an_effect_is_committed_once_over_all_tries_and_a_key_runs_once,
];

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

const EVERYTHING: [&str; 5] = ["submitter", "worker", "operator", "viewer", "internal"];

fn internally(caller: &Caller, path: &str, body: &Value) -> Response {
    let path = format!("/api/v1/internal/jobs/{path}");
    let request = caller.request("POST", &path).header("x-internal-debug", "true");
    request.json(body).send(caller.address)
}

fn move_to(caller: &Caller, id: &str, state: &str) -> Response {
    internally(caller, &format!("{id}/transition"), &json!({ "new_status": state }))
}

fn run(caller: &Caller, id: &str, switch: &str) -> Value {
    internally(caller, &format!("{id}/run{switch}"), &json!({})).data()
}

/// The seven states of the contract, and for each the moves that bring a fresh job there.
const STATES: [(&str, &[&str]); 7] = [
    ("queued", &[]),
    ("running", &["running"]),
    ("retrying", &["running", "retrying"]),
    ("succeeded", &["running", "succeeded"]),
    ("dlq_pending", &["running", "dlq_pending"]),
    ("dlq_recorded", &["running", "dlq_pending", "dlq_recorded"]),
    ("failed", &["running", "dlq_pending", "dlq_recorded", "failed"]),
];

/// The moves of the contract, and nothing else.
const LEGAL: [(&str, &str); 8] = [
    ("queued", "running"),
    ("running", "succeeded"),
    ("running", "retrying"),
    ("running", "dlq_pending"),
    ("retrying", "running"),
    ("retrying", "dlq_pending"),
    ("dlq_pending", "dlq_recorded"),
    ("dlq_recorded", "failed"),
];

fn g02_g03_every_pair_of_states_moves_as_written_or_is_refused_and_changes_nothing(store: Store) {
    let ann = server(store).caller("g02", "ann", &EVERYTHING);
    let mut accepted = Vec::new();
    for (from, way) in STATES {
        for to in STATES.map(|(state, _)| state).into_iter().chain(["cancelled"]) {
            let id = ann.submit_plain("g02");
            for step in way {
                assert_eq!(move_to(&ann, &id, step).data()["status"], *step);
            }
            let before = (ann.job(&id), ann.events(&id));
            assert_eq!(before.0["status"], from);
            let answer = move_to(&ann, &id, to);
            if answer.status == 200 {
                accepted.push((from, to));
                let moved = answer.data();
                assert_eq!((&moved["job_id"], &moved["status"]), (&json!(id), &json!(to)));
                let path = ann.path(&id);
                assert_eq!(path.len(), before.1.len() + 1, "one move, one event");
                assert_eq!(path.last().unwrap(), to);
                continue;
            }
            let refused = (409, "WF_STATE_TRANSITION_INVALID".to_owned());
            assert_eq!(answer.refusal(), refused, "{from} -> {to}");
            let after = (ann.job(&id), ann.events(&id));
            assert_eq!(after, before, "{from} -> {to} was refused and changed something");
        }
    }
    accepted.sort_unstable();
    let mut legal = LEGAL.to_vec();
    legal.sort_unstable();
    assert_eq!(accepted, legal);
    let nonsense = ann.submit_plain("g02");
    for word in ["pending", "QUEUED", "", "needs_manual_decision", "running "] {
        let refused = move_to(&ann, &nonsense, word).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{word:?}");
    }
}

/// Pulls and fails the only job of a type.
fn fail_next(caller: &Caller, job_type: &str, more: Value) -> (Value, Value) {
    let grant = caller.pull_one(job_type);
    let answer = caller.report("fail", &grant, more);
    (grant, answer)
}

fn g03_g05_g07_the_fourth_failure_of_a_worker_goes_through_the_dlq_to_failed(store: Store) {
    let bob = server(store).caller("g05", "bob", &EVERYTHING);
    // Nothing is said about retries: three are the default.
    let id = bob.submit_plain("g05");
    let failure = json!({ "error_code": "UPSTREAM", "message": "no", "retryable": true,
        "retry_delay_ms": 1 });
    for try_ in 0..4 {
        let (grant, answer) = fail_next(&bob, "g05", failure.clone());
        assert_eq!(grant["job_id"], id.as_str(), "a retry is the same job");
        assert_eq!(grant["execution_key"], format!("{id}:{try_}"));
        assert_eq!((&grant["retry_count"], &grant["attempt"]), (&json!(try_), &json!(try_ + 1)));
        let expected = if try_ < 3 { "retrying" } else { "failed" };
        assert_eq!(answer, json!({ "job_id": id, "status": expected }));
    }
    let job = bob.job(&id);
    assert_eq!((&job["retry_count"], &job["status"]), (&json!(3), &json!("failed")));
    assert_eq!(
        (&job["last_error"]["exhausted"], &job["error_code"]),
        (&json!(true), &json!("UPSTREAM"))
    );
    let cycle = [
        "queued",
        "running",
        "retrying",
        "running",
        "retrying",
        "running",
        "retrying",
        "running",
        "dlq_pending",
        "dlq_recorded",
        "failed",
    ];
    assert_eq!(bob.path(&id), cycle);
    let seqs: Vec<_> = bob.events(&id).iter().map(|event| event["seq"].clone()).collect();
    assert_eq!(seqs, (1..=11).map(Value::from).collect::<Vec<_>>());
    assert!(bob.pull("g05", 10).is_empty(), "nothing is left to run");
}

fn g04_only_retryable_failures_retry(store: Store) {
    let cat = server(store).caller("g04", "cat", &EVERYTHING);
    let id = cat.submit_plain("g04");
    let grant = cat.pull_one("g04");
    assert_eq!(cat.fail(&grant, "BAD_INPUT", false)["status"], "failed");
    let job = cat.job(&id);
    assert_eq!((&job["retry_count"], &job["error_code"]), (&json!(0), &json!("BAD_INPUT")));
    assert_eq!(cat.path(&id), ["queued", "running", "dlq_pending", "dlq_recorded", "failed"]);
    let once = json!({ "job_type": "g04", "payload": {}, "max_retries": 0 });
    let id = text(&cat.submit(&once), "job_id");
    let grant = cat.pull_one("g04");
    assert_eq!(cat.fail(&grant, "UPSTREAM", true)["status"], "failed");
    assert_eq!(cat.job(&id)["last_error"]["exhausted"], true);
}

/// The documented jitter, written down a second time: SHA-256 over "jitter", the 128 bits of the id
/// and the retry count, each preceded by its length; the first eight bytes modulo 301.
fn jitter_ms(id: &str, retry_count: u16) -> i64 {
    const LETTERS: &str = "0123456789abcdefghjkmnpqrstvwxyz";
    let letters = id.strip_prefix("job_").unwrap();
    let bits = letters
        .chars()
        .fold(0u128, |bits, letter| (bits << 5) | LETTERS.find(letter).unwrap() as u128);
    let mut hasher = Sha256::new();
    for part in [&b"jitter"[..], &bits.to_be_bytes(), &retry_count.to_be_bytes()] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let first: [u8; 8] = hasher.finalize()[..8].try_into().unwrap();
    (u64::from_le_bytes(first) % 301) as i64
}

fn micros(value: &Value) -> i64 {
    value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_microsecond()
}

fn g06_g17_the_delay_is_the_formula_and_its_jitter_can_be_foretold(store: Store) {
    let dan = server(store).caller("g06", "dan", &EVERYTHING);
    let long = json!({ "job_type": "g06", "payload": {}, "max_retries": 9 });
    let id = text(&dan.submit(&long), "job_id");
    let bases = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000];
    for (retry, base) in (1u16..).zip(bases) {
        let ran = run(&dan, &id, "?transient_fail=true");
        assert_eq!(
            (&ran["final_status"], &ran["retry_count"]),
            (&json!("retrying"), &json!(retry))
        );
        let foretold = base + jitter_ms(&id, retry);
        assert!((base..=base + 300).contains(&foretold));
        let job = dan.job(&id);
        let failed_at = micros(&dan.events(&id).last().unwrap()["occurred_at"]);
        assert_eq!(micros(&job["next_retry_at"]) - failed_at, foretold * 1_000, "retry {retry}");
        assert_eq!(job["next_retry_at"], ran["retry_at"]);
    }
    // A worker's failure follows the same rule, and the job is not handed out before its time.
    let id = dan.submit_plain("g06-pulled");
    let (_, answer) = fail_next(&dan, "g06-pulled", json!({ "error_code": "X" }));
    assert_eq!(answer["status"], "retrying");
    assert!(dan.pull("g06-pulled", 1).is_empty());
    let due = micros(&dan.job(&id)["next_retry_at"]);
    let failed_at = micros(&dan.events(&id).last().unwrap()["occurred_at"]);
    assert_eq!(due - failed_at, (1_000 + jitter_ms(&id, 1)) * 1_000);
    let grant = dan.pull_one("g06-pulled");
    let started_at = micros(&dan.events(&id).last().unwrap()["occurred_at"]);
    assert!(started_at >= due, "started {} early", due - started_at);
    dan.complete(&grant);
}

fn g08_d08_an_effect_is_committed_once_over_all_tries_and_a_key_runs_once(store: Store) {
    let eve = server(store).caller("g08", "eve", &EVERYTHING);
    let wish = json!({ "job_type": "g08", "payload": {}, "idempotency_key": "once" });
    let id = text(&eve.submit(&wish), "job_id");
    let commit = |grant: &Value, value: Value| {
        let body = json!({ "lease_token": grant["lease_token"], "value": value });
        eve.put(&format!("/api/v1/work/effects/{id}/charge-card"), &body)
    };
    let first = eve.pull_one("g08");
    let committed = commit(&first, json!({ "receipt": 1 })).data();
    let expected = json!({
        "job_id": id, "name": "charge-card", "value": { "receipt": 1 }, "is_first": true
    });
    assert_eq!(committed, expected);
    assert_eq!(commit(&first, json!({ "receipt": 2 })).data()["value"], json!({ "receipt": 1 }));
    let failure = json!({ "error_code": "AFTERWARDS", "retryable": true, "retry_delay_ms": 1 });
    eve.report("fail", &first, failure);
    assert_eq!(commit(&first, json!(3)).refusal(), (409, "LEASE_LOST".into()));

    let second = eve.pull_one("g08");
    let again = commit(&second, json!({ "receipt": 4 })).data();
    assert_eq!((&again["value"], &again["is_first"]), (&json!({ "receipt": 1 }), &json!(false)));
    let path = format!("/api/v1/work/effects/{id}/charge-card");
    assert_eq!(eve.get(&path).data()["value"], json!({ "receipt": 1 }));
    assert_eq!(eve.complete(&second)["status"], "succeeded");
    // The same report again is answered again; another one is refused; the key is used up.
    assert_eq!(eve.complete(&second)["status"], "succeeded");
    let other = eve.report("complete", &second, json!({ "result": "else" }));
    assert_eq!(other["error"]["code"], "REPORT_CONFLICT");
    let repeated = eve.submit(&wish);
    assert_eq!((&repeated["job_id"], &repeated["status"]), (&json!(id), &json!("succeeded")));
    assert!(eve.pull("g08", 1).is_empty(), "nothing runs a second time");
    assert_eq!(eve.path(&id).iter().filter(|state| *state == "succeeded").count(), 1);
}
