//! `mainspring worker` from outside: real commands, real exit codes, real processes left behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::command::{Background, prepare};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::process::Stdio;

both_stores![
    o15_o16_a_command_per_job_and_its_exit_code_decides,
    o15_d17_a_timeout_or_a_cancel_ends_the_whole_process_group,
    o21_d17_a_worker_process_that_dies_leaves_a_failed_job_with_its_context,
    o16_o21_a_command_that_cannot_start_fails_with_its_own_code,
    o15_a_worker_that_is_told_to_stop_gives_its_job_back,
    o15_a_killed_worker_takes_everything_its_command_started_along,
    o16_output_the_server_refuses_is_a_clear_failure,
    o16_any_error_code_is_taken,
    o05_a_command_does_not_inherit_the_secrets_of_its_worker,
    d17_a_grant_nobody_heard_of_comes_back_in_seconds,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(BINARY))
}

fn ann(store: Store, tenant: &str) -> Caller {
    server(store).caller(tenant, "ann", &["submitter", "worker", "operator"])
}

/// A worker of `caller` that runs a shell script for every job of a type.
fn worker(
    store: Store,
    caller: &Caller,
    job_type: &str,
    flags: &[&str],
    script: &str,
) -> Background {
    let mut args = vec!["worker", "--type", job_type, "--id", "w-cli"];
    args.extend(flags);
    args.extend(["--", "sh", "-c", script]);
    let env = [("MAINSPRING_URL", &*server(store).url), ("MAINSPRING_TOKEN", &*caller.token)];
    let mut command = prepare(BINARY, &args, &env, server(store).directory());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Background(child.expect("the worker starts"))
}

#[track_caller]
fn ended(caller: &Caller, id: &str) -> Value {
    eventually("the job ends", || {
        let job = caller.job(id);
        let is_over = |state: &Value| {
            ["succeeded", "failed", "cancelled"].contains(&state.as_str()?).then_some(())
        };
        is_over(&job["status"]).map(|()| job)
    })
}

fn o15_o16_a_command_per_job_and_its_exit_code_decides(store: Store) {
    let ann = ann(store, "exit");
    let script = r#"read -r line
case "$line" in
  *fine*) printf '{"got":%s,"key":"%s"}' "$line" "$MAINSPRING_EXECUTION_KEY" ;;
  *text*) echo plain words ;;
  *bad*) echo "row 7 is wrong" >&2; exit 65 ;;
  *) echo "no luck" >&2; exit 3 ;;
esac"#;
    let submit = |payload: &str, retries: u16| {
        let wish = json!({ "job_type": "exit", "payload": payload, "max_retries": retries });
        text(&ann.submit(&wish), "job_id")
    };
    let (fine, plain) = (submit("fine", 0), submit("text", 0));
    let (bad, luck) = (submit("bad", 3), submit("other", 0));
    let worker = worker(store, &ann, "exit", &["--concurrency", "4"], script);
    let job = ended(&ann, &fine);
    assert_eq!(job["result"], json!({ "got": "fine", "key": format!("{fine}:0") }));
    assert_eq!(ended(&ann, &plain)["result"], "plain words");
    let job = ended(&ann, &bad);
    assert_eq!((&job["status"], &job["retry_count"]), (&json!("failed"), &json!(0)));
    assert_eq!(job["last_error"]["code"], "EXIT_65");
    assert_eq!(job["last_error"]["message"], "row 7 is wrong");
    let job = ended(&ann, &luck);
    assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("EXIT_3")));
    assert_eq!(job["last_error"]["message"], "no luck");
    assert_eq!(ann.events(&luck)[1]["actor"], "worker:w-cli");
    assert_eq!(worker.terminate(), Some(0), "a worker that is told to stop stops well");
}

/// How long something sleeps on this store, which is odd enough to be a name: both stores are
/// tested at the same time, and each looks only for its own.
fn odd(store: Store, seconds: &str) -> String {
    // And of this run: what an earlier one left behind must not count.
    let run = std::process::id();
    match store {
        Store::Memory => format!("{seconds}{run}1"),
        Store::Postgres => format!("{seconds}{run}2"),
    }
}

/// Processes `sleep` with this argument.
fn sleepers(name: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line == format!("sleep\0{name}\0").as_bytes()
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_it).collect()
}

fn is_running(name: &str) -> bool {
    !sleepers(name).is_empty()
}

fn o15_d17_a_timeout_or_a_cancel_ends_the_whole_process_group(store: Store) {
    let ann = ann(store, "group");
    // A grandchild that nobody waits for: it must go, too. The odd number is its name.
    let name = odd(store, "98765.25");
    let script = format!("sleep {name} & sleep {name}");
    let timed = json!({ "job_type": "group", "payload": 0, "timeout_ms": 700, "max_retries": 0 });
    let id = text(&ann.submit(&timed), "job_id");
    let worker =
        worker(store, &ann, "group", &["--lease-ms", "1000", "--kill-grace", "100ms"], &script);
    eventually("the command runs", || is_running(&name).then_some(()));
    let job = ended(&ann, &id);
    assert_eq!(job["last_error"]["code"], "TASK_TIMEOUT", "{job}");
    eventually("all of it is gone", || (!is_running(&name)).then_some(()));

    let id = ann.submit_plain("group");
    eventually("the command runs", || is_running(&name).then_some(()));
    ann.poke(&format!("/api/v1/jobs/{id}/cancel")).data();
    eventually("all of it is gone", || (!is_running(&name)).then_some(()));
    assert_eq!(ann.job(&id)["status"], "cancelled");
    assert_eq!(worker.terminate(), Some(0));
}

fn o21_d17_a_worker_process_that_dies_leaves_a_failed_job_with_its_context(store: Store) {
    let ann = ann(store, "dies");
    let wish = json!({
        "job_type": "dies", "payload": 0, "max_retries": 0, "trace_id": "trace-of-a-death"
    });
    let id = text(&ann.submit(&wish), "job_id");
    let name = odd(store, "43210.75");
    let script = format!("exec sleep {name}");
    let worker = worker(store, &ann, "dies", &["--lease-ms", "500"], &script);
    eventually("the command runs", || is_running(&name).then_some(()));
    drop(worker); // kill -9
    eventually("the command is gone", || (!is_running(&name)).then_some(()));
    let job = ended(&ann, &id);
    assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("TASK_LEASE_LOST")));
    let item = ann.get(&format!("/api/v1/dlq/items/{}", text(&job, "dlq_id"))).data();
    let context = &item["context_snapshot"];
    assert_eq!(context["worker_id"], "w-cli");
    assert_eq!(context["execution_key"], format!("{id}:0"));
    assert_eq!(context["trace_id"], "trace-of-a-death");
}

fn o16_o21_a_command_that_cannot_start_fails_with_its_own_code(store: Store) {
    let ann = ann(store, "absent");
    let wish = json!({ "job_type": "absent", "payload": 0, "max_retries": 0 });
    let id = text(&ann.submit(&wish), "job_id");
    let args = ["worker", "--type", "absent", "--id", "w-cli", "--", "/no/such/program"];
    let env = [("MAINSPRING_URL", &*server(store).url), ("MAINSPRING_TOKEN", &*ann.token)];
    let mut command = prepare(BINARY, &args, &env, server(store).directory());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let worker = Background(child);
    let job = ended(&ann, &id);
    assert_eq!(
        (&job["status"], &job["error_code"]),
        (&json!("failed"), &json!("COMMAND_NOT_STARTED"))
    );
    assert_eq!(worker.terminate(), Some(0));
}

fn o15_a_worker_that_is_told_to_stop_gives_its_job_back(store: Store) {
    let ann = ann(store, "stop");
    let id = ann.submit_plain("stop");
    let flags = ["--grace", "100ms", "--kill-grace", "100ms"];
    let name = odd(store, "55555.5");
    let worker = worker(store, &ann, "stop", &flags, &format!("sleep {name}"));
    eventually("the command runs", || is_running(&name).then_some(()));
    assert_eq!(worker.terminate(), Some(0));
    eventually("the command is gone", || (!is_running(&name)).then_some(()));
    let job = ann.job(&id);
    assert_eq!((&job["status"], &job["retry_count"]), (&json!("retrying"), &json!(0)));
    assert_eq!(ann.pull_one("stop")["job_id"], id.as_str());
}

/// Killed with -9, the worker cannot tidy up; what its command started goes all the same, also what
/// forked twice and began a session of its own.
fn o15_a_killed_worker_takes_everything_its_command_started_along(store: Store) {
    let ann = ann(store, "orphans");
    ann.submit_plain("orphans");
    let name = odd(store, "76543.25");
    // In a session of its own and with its parent gone: no group and no parent leads to it.
    let script = format!("(setsid sh -c 'sleep {name} & sleep {name}' &); sleep {name}");
    let worker = worker(store, &ann, "orphans", &[], &script);
    eventually("all three run", || (sleepers(&name).len() == 3).then_some(()));
    drop(worker); // kill -9
    eventually("all of it is gone", || (!is_running(&name)).then_some(()));

    // A command that ends well leaves nothing behind either.
    let id = ann.submit_plain("daemon");
    let script = format!("setsid sleep {name} >/dev/null 2>&1 & sleep 0.2; echo done");
    let worker = self::worker(store, &ann, "daemon", &[], &script);
    assert_eq!(ended(&ann, &id)["result"], "done");
    eventually("the daemon is gone", || (!is_running(&name)).then_some(()));
    assert_eq!(worker.terminate(), Some(0));
}

fn o16_output_the_server_refuses_is_a_clear_failure(store: Store) {
    let ann = ann(store, "refused");
    let deep = format!("printf '%s' '{}{}'", "[".repeat(300), "]".repeat(300));
    let repeated = r#"printf '%s' '{"a":1,"a":2}'"#.to_owned();
    for (job_type, script) in [("deep", deep), ("repeated", repeated)] {
        let wish = json!({ "job_type": job_type, "payload": 0, "max_retries": 3 });
        let id = text(&ann.submit(&wish), "job_id");
        let worker = worker(store, &ann, job_type, &[], &script);
        let job = ended(&ann, &id);
        assert_eq!((&job["status"], &job["retry_count"]), (&json!("failed"), &json!(0)), "{job}");
        assert_eq!(job["last_error"]["code"], "RESULT_REFUSED", "{job}");
        let message = text(&job["last_error"], "message");
        assert!(message.starts_with("JSON_"), "it says why: {message}");
        assert_eq!(worker.terminate(), Some(0));
    }
}

/// What a worker says about a failure is never a reason to refuse the report.
fn o16_any_error_code_is_taken(store: Store) {
    let ann = ann(store, "codes");
    let long = "x".repeat(300);
    for (said, kept) in [
        ("TimeoutError", "TimeoutError"),
        ("java.net.SocketTimeoutException", "java.net.SocketTimeoutException"),
        ("HTTP 503!", "HTTP_503_"),
        ("", "TASK_EXECUTION_FAILED"),
        (&*long, &long[..100]),
    ] {
        let wish = json!({ "job_type": "codes", "payload": 0, "max_retries": 0 });
        let id = text(&ann.submit(&wish), "job_id");
        let grant = ann.pull_one("codes");
        let answer = ann.fail(&grant, said, true);
        assert_eq!((&answer["job_id"], &answer["status"]), (&json!(id), &json!("failed")));
        assert_eq!(ann.job(&id)["last_error"]["code"], kept, "{said:?}");
    }
}

fn o05_a_command_does_not_inherit_the_secrets_of_its_worker(store: Store) {
    let ann = ann(store, "secrets");
    let id = ann.submit_plain("secrets");
    let flags = ["--env", "MAINSPRING_SHOWN"];
    let script = "env | grep -E 'MAINSPRING|DATABASE|PG' | sort";
    let mut args = vec!["worker", "--type", "secrets", "--id", "w-cli"];
    args.extend(flags);
    args.extend(["--", "sh", "-c", script]);
    let env = [
        ("MAINSPRING_URL", &*server(store).url),
        ("MAINSPRING_TOKEN", &*ann.token),
        ("MAINSPRING_ADMIN_TOKEN", "hush-hush-hush-hush"),
        ("MAINSPRING_DATABASE_URL", "postgres://u:hush@h/d"),
        ("DATABASE_URL", "postgres://u:hush@h/d"),
        ("PGPASSWORD", "hush"),
        ("MAINSPRING_SHOWN", "on purpose"),
    ];
    let mut command = prepare(BINARY, &args, &env, server(store).directory());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let worker = Background(child);
    let seen = text(&ended(&ann, &id), "result");
    assert!(!seen.contains("hush") && !seen.contains(&*ann.token), "{seen}");
    assert!(seen.contains("MAINSPRING_SHOWN=on purpose"), "{seen}");
    assert!(seen.contains("MAINSPRING_LEASE_TOKEN=") && seen.contains("MAINSPRING_URL="), "{seen}");
    assert_eq!(worker.terminate(), Some(0));
}

/// The worker is gone before it can show that it has the job. Its lease is long, but the first one
/// is not.
fn d17_a_grant_nobody_heard_of_comes_back_in_seconds(store: Store) {
    let ann = ann(store, "unheard");
    let id = ann.submit_plain("unheard");
    let worker = worker(store, &ann, "unheard", &["--lease-ms", "600000"], "sleep 60");
    let job =
        eventually("the job runs", || Some(ann.job(&id)).filter(|job| job["status"] == "running"));
    drop(worker); // kill -9
    let lease = ann.job(&id)["lease_expires_at"].clone();
    let back = eventually("the job is back", || {
        Some(ann.job(&id)).filter(|job| job["status"] == "retrying")
    });
    assert_eq!(back["last_error"]["code"], "TASK_LEASE_LOST", "{job} {lease}");
}
