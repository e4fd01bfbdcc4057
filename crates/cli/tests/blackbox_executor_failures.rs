//! What goes wrong with a command of the server ends in `failed`, with a stable code, a message and
//! all that leads to the cause; and stays within bounds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_executor/steps.rs"]
mod steps;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::json;
use std::fmt::Write as _;
use steps::{ANALYZE, NOTIFY, QUANT, done, failed, odd, sleepers};

both_stores![
    o16_o21_what_goes_wrong_with_a_command_is_told_by_code_and_context,
    o16_a_flood_of_output_is_bounded_and_a_clear_failure,
    o16_o21_the_code_is_the_same_in_every_domain_and_contract,
    o05_a_command_gets_the_variables_that_were_named_and_no_others,
];

/// A server with a type per entry, executed as it says.
fn server(store: Store, types: &[(&str, String)]) -> Server {
    let mut config = QUANT.to_owned();
    for (name, executor) in types {
        write!(config, "\n[types.{name}]\ndomain = \"d\"\nmax_retries = 0\n").unwrap();
        writeln!(config, "executor = {{ mode = \"process\", {executor} }}").unwrap();
    }
    Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).config(&config))
}

fn shell(script: &str) -> String {
    format!("shell = true, command = {script:?}")
}

fn o16_o21_what_goes_wrong_with_a_command_is_told_by_code_and_context(store: Store) {
    let own =
        r#"echo '{"error_code":"MARKET_DATA_SYNC_FAILED","message":"the feed is closed"}'; exit 4"#;
    let cases = [
        ("exits", shell("echo no luck >&2; exit 3"), "EXECUTION_FAILED", "no luck"),
        ("silent", shell("exit 3"), "EXECUTION_FAILED", "the command exited with 3"),
        ("signal", shell("kill -9 $$"), "EXECUTION_FAILED", "the command was ended by signal 9"),
        ("own", shell(own), "MARKET_DATA_SYNC_FAILED", "the feed is closed"),
        (
            "absent",
            "command = \"/no/such/program\"".to_owned(),
            "EXECUTOR_DISPATCH_FAILED",
            "cannot run /no/such/program: No such file or directory",
        ),
        (
            "nowhere",
            "command = \"cat\", cwd = \"/no/such/place\"".to_owned(),
            "EXECUTOR_DISPATCH_FAILED",
            "/no/such/place is no directory here",
        ),
    ];
    let types: Vec<_> = cases.iter().map(|(name, how, ..)| (*name, how.clone())).collect();
    let server = server(store, &types);
    let ann = server.caller("wrong", "ann", &["submitter", "operator"]);
    for (name, _, code, message) in &cases {
        let task = done(&ann, name, name, json!({}));
        assert_eq!(failed(&ann, &task, "process"), *code, "{task}");
        let told = text(&task["error"], "message");
        assert!(told.starts_with(message), "{name}: {told}");
    }
    let last = server.admin().get("/jobs/runtime").data();
    assert_eq!(last["execution"]["lastErrorCode"], "EXECUTOR_DISPATCH_FAILED", "{last}");
}

fn o16_a_flood_of_output_is_bounded_and_a_clear_failure(store: Store) {
    let name = odd(store, "91234.25");
    let stubborn = format!("trap '' TERM; sleep {name} & head -c 1G /dev/zero; sleep {name}");
    let kill = ", kill_grace_ms = 200";
    let server = server(
        store,
        &[
            ("flood", shell("head -c 1G /dev/zero")),
            ("stubborn", shell(&stubborn) + kill),
            ("endless", shell("yes")),
            ("complaint", shell("head -c 100M /dev/zero | tr '\\0' x >&2; exit 1")),
            ("fits", shell("head -c 1000000 /dev/zero | tr '\\0' x")),
        ],
    );
    let ann = server.caller("flood", "ann", &["submitter", "operator"]);
    for kind in ["flood", "stubborn", "endless"] {
        let task = done(&ann, kind, kind, json!({}));
        assert_eq!(failed(&ann, &task, "process"), "OUTPUT_TOO_LARGE", "{task}");
        assert_eq!(task["error"]["message"], "the command wrote more than 1000000 bytes");
    }
    assert_eq!(sleepers(&name), 0, "the stubborn one and all it started are gone");
    let task = done(&ann, "complaint", "complaint", json!({}));
    assert_eq!(failed(&ann, &task, "process"), "EXECUTION_FAILED");
    assert!(text(&task["error"], "message").len() <= 2_048);
    let task = done(&ann, "fits", "fits", json!({}));
    assert_eq!(task["result"].as_str().map(str::len), Some(1_000_000));
    let pid = server.pid().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 512 * 1024, "2 GB came in, {kib} KiB were kept");
    println!("2 GB of output, {kib} KiB at most");
}

fn o16_o21_the_code_is_the_same_in_every_domain_and_contract(store: Store) {
    let mut config = QUANT.to_owned();
    config.push_str("[executor]\nmode = \"process\"\ncommand = \"/no/such/program\"\n");
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(&config);
    let server = Server::start(options);
    let ann = server.caller("same", "ann", &["submitter", "operator"]);
    for kind in [ANALYZE, NOTIFY] {
        let task = done(&ann, kind, kind, json!({}));
        assert_eq!(failed(&ann, &task, "process"), "EXECUTOR_DISPATCH_FAILED");
        let job = ann.job(&text(&task, "taskId"));
        assert_eq!(job["error_code"], "EXECUTOR_DISPATCH_FAILED", "{job}");
        assert_eq!(job["last_error"]["message"], task["error"]["message"]);
    }
    // A task of the task contract goes the same way.
    let wish = json!({
        "task_id": "t-1", "schedule_type": "at", "scheduled_at": "2020-01-01T00:00:00Z",
        "timeout_ms": 1000, "max_retries": 0, "payload": {},
    });
    assert!(ann.post("/tasks", &wish).status < 300);
    let task = eventually("the task ends", || {
        let task = ann.get("/tasks/t-1").json();
        (task["state"] == "failed").then_some(task)
    });
    assert!(task.to_string().contains("No such file"), "{task}");
}

fn o05_a_command_gets_the_variables_that_were_named_and_no_others(store: Store) {
    let script = "env | cut -d= -f1 | grep -vE '^(_|PWD|SHLVL|OLDPWD)$' | sort | tr '\\n' ' '; \
                  echo \"$SHOWN $SAID $1\"";
    let executor = format!(
        "{}, env = [\"SHOWN\", \"SAID=b c\"], args = [\"$(id)\"], cwd = \"/\"",
        shell(script)
    );
    let mut config = QUANT.to_owned();
    write!(
        config,
        "\n[types.env]\ndomain = \"d\"\nexecutor = {{ mode = \"process\", {executor} }}\n"
    )
    .unwrap();
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(&config);
    let options =
        options.env("SHOWN", "on purpose").env("HIDDEN", "hush").env("PGPASSWORD", "hush");
    let server = Server::start(options);
    let ann = server.caller("env", "ann", &["submitter", "operator"]);
    let seen = text(&done(&ann, "env", "env", json!({ "x": "$(id); `id`" })), "result");
    let own = [
        "ATTEMPT",
        "DISPATCH_ID",
        "EXECUTION_KEY",
        "JOB_ID",
        "JOB_TYPE",
        "LEASE_TOKEN",
        "RETRY_COUNT",
        "TRACE_ID",
        "URL",
    ];
    let own = own.map(|name| format!("MAINSPRING_{name} ")).concat();
    assert_eq!(seen, format!("{own}PATH SAID SHOWN on purpose b c $(id)"));
}
