//! The metrics of a server: each counts what it says, and the board and the alert rules of `ops/`
//! ask for nothing that a server does not export.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

both_stores![
    d11_the_board_and_the_alert_rules_use_names_that_are_exported,
    d11_metrics_count_what_happens_to_jobs_by_tenant_queue_and_type,
    however_many_types_there_are_the_page_stays_short,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const FIVE: [&str; 5] = [
    "jobs_due_count",
    "jobs_lag_seconds",
    "job_success_rate",
    "job_retry_rate",
    "dead_letter_count",
];

fn ops() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops")
}

/// The metrics that a query asks for.
fn asked(query: &str) -> BTreeSet<String> {
    let mut plain = String::new();
    let mut depth = 0;
    let mut rest = query;
    while let Some(letter) = rest.chars().next() {
        // What stands in braces and brackets, or behind `by`, names labels and times.
        if depth == 0
            && let Some(behind) = rest.strip_prefix("by (")
        {
            rest = behind.split_once(')').map_or("", |(_, behind)| behind);
            continue;
        }
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
        rest = &rest[letter.len_utf8()..];
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut names = BTreeSet::new();
    let mut rest = plain.as_str();
    while let Some(start) = rest.find(|letter: char| is_name(letter)) {
        let word = &rest[start..];
        let end = word.find(|letter: char| !is_name(letter)).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        rest = behind;
        let is_function = behind.trim_start().starts_with('(');
        let is_word = ["and", "or", "unless", "max", "min", "sum"].contains(&word);
        let is_number = word.starts_with(|first: char| first.is_ascii_digit());
        if !is_function && !is_word && !is_number {
            names.insert(word.to_owned());
        }
    }
    names
}

#[test]
fn names_are_found_in_queries() {
    let names = |query: &str| asked(query).into_iter().collect::<Vec<String>>();
    let query = "max by (state) (mainspring_jobs{state!~\"a|b\"}) > 3 and sum(rate(x_total[5m]))";
    assert_eq!(names(query), ["mainspring_jobs", "x_total"]);
    let query = "histogram_quantile(0.99, sum by (le, type) (rate(y_bucket[5m]))) / z";
    assert_eq!(names(query), ["y_bucket", "z"]);
}

/// Every name on a page, with the names of the parts of histograms.
fn exported(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        names.insert(name.to_owned());
        if kind == "histogram" {
            names.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        }
    }
    names
}

/// Has promtool read something; its exit code and what it says.
fn promtool(args: &[&str], input: &str) -> (i32, String) {
    let mut tool = Command::new("promtool")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, of Debian's package prometheus");
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let said = tool.wait_with_output().unwrap();
    let text = [said.stdout, said.stderr].concat();
    (said.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

fn d11_the_board_and_the_alert_rules_use_names_that_are_exported(store: Store) {
    let server = Server::start(store.options(BINARY).config("[types]\nstrict = false"));
    server.admin().submit_plain("t");
    let page = server.admin().get("/metrics").text();
    let exported = exported(&page);
    let board = std::fs::read_to_string(ops().join("grafana.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let targets =
        board["panels"].as_array().unwrap().iter().flat_map(|it| it["targets"].as_array().unwrap());
    let mut queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let of_board = queries.len();
    let rules = std::fs::read_to_string(ops().join("alerts.yml")).unwrap();
    let of_rule = |line: &str| line.trim().strip_prefix("expr: ").map(str::to_owned);
    queries.extend(rules.lines().filter_map(of_rule));
    assert_eq!(queries.len() - of_board, rules.matches("- alert:").count());
    assert!(of_board >= 20 && queries.len() >= of_board + 15, "{of_board} of {}", queries.len());
    for query in &queries {
        let names = asked(query);
        assert!(!names.is_empty(), "{query}");
        let unknown: Vec<_> = names.difference(&exported).collect();
        assert!(unknown.is_empty(), "{query} asks for {unknown:?}, which nobody exports");
    }
    for wanted in FIVE {
        assert!(queries.iter().any(|query| asked(query).contains(wanted)), "{wanted}");
    }
    let (code, said) =
        promtool(&["check", "rules", ops().join("alerts.yml").to_str().unwrap()], "");
    assert_eq!(code, 0, "{said}");
    // Every query of the board as a rule: promtool reads what Grafana sends to Prometheus.
    let mut all = "groups:\n- name: board\n  rules:\n".to_owned();
    for (n, query) in queries[..of_board].iter().enumerate() {
        all += &format!("  - record: q{n}\n    expr: {}\n", serde_json::to_string(query).unwrap());
    }
    let file = server.directory().join("board.yml");
    std::fs::write(&file, all).unwrap();
    let (code, said) = promtool(&["check", "rules", file.to_str().unwrap()], "");
    assert_eq!(code, 0, "{said}");
    // The page itself: well formed, and nothing to complain of but the names that a contract gave.
    let (code, said) = promtool(&["check", "metrics"], &page);
    assert!(code == 0 || code == 3, "{code} {said}");
    for line in said.lines() {
        assert!(FIVE.iter().any(|name| line.starts_with(name)), "{line}");
    }
}

/// The value of the line that begins with `name`, labels and all.
fn value(page: &str, name: &str) -> f64 {
    let found = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} is missing in\n{page}")).parse().unwrap()
}

fn d11_metrics_count_what_happens_to_jobs_by_tenant_queue_and_type(store: Store) {
    let config = "[types]\nstrict = false";
    let mut server = Server::start(store.options(BINARY).config(config));
    let roles = ["submitter", "worker", "operator", "viewer"];
    let acme: Caller = server.caller("acme", "ann", &roles);
    let other: Caller = server.caller("other", "bob", &roles);
    for _ in 0..4 {
        acme.submit(
            &json!({ "job_type": "mill", "payload": {}, "queue": "slow", "max_retries": 1 }),
        );
    }
    other.submit_plain("mill");
    let grants = acme.pull("mill", 4);
    assert_eq!(grants.len(), 4);
    acme.complete(&grants[0]);
    acme.fail(&grants[1], "BROKEN", true);
    acme.fail(&grants[2], "BROKEN", false);
    acme.post(
        &format!("/api/v1/jobs/{}/cancel", grants[3]["job_id"].as_str().unwrap()),
        &json!({}),
    );
    let every =
        json!({ "name": "s", "job_type": "tick", "kind": "interval", "interval_seconds": 1 });
    assert_eq!(acme.post("/api/v1/schedules", &every).status, 201);
    let page = || server.admin().get("/metrics").text();
    let of =
        |what: &str| format!("mainspring_{what}{{tenant=\"acme\",queue=\"slow\",type=\"mill\"}}");
    eventually("a schedule has fired", || {
        let text = page();
        (value(&text, "mainspring_schedule_lateness_seconds_count") > 0.0).then_some(())
    });
    let text = page();
    for (what, count) in [
        ("work_submitted_total", 4.0),
        ("work_started_total", 4.0),
        ("work_succeeded_total", 1.0),
        ("work_retries_total", 1.0),
        ("work_failed_total", 1.0),
        ("work_cancelled_total", 1.0),
        ("work_leases_lost_total", 0.0),
        ("pickup_seconds_count", 4.0),
        ("run_seconds_count", 4.0),
    ] {
        assert_eq!(value(&text, &of(what)), count, "{what}");
    }
    assert_eq!(value(&text, "mainspring_tenant_jobs{tenant=\"other\"}"), 1.0);
    depth_is_kept(&text);
    assert!(value(&text, "mainspring_batch_commands_count") >= 5.0);
    assert!(value(&text, "mainspring_commit_seconds_count") >= 5.0);
    let (syncs, trips) = match store {
        Store::Memory => (1.0, 0.0),
        Store::Postgres => (0.0, 1.0),
    };
    let told = |name: &str| value(&text, &format!("mainspring_{name}_seconds_count")).min(1.0);
    assert_eq!((told("journal_sync"), told("database")), (syncs, trips));
    // Whoever is not an admin sees no name of a stranger; on this machine the sum of all.
    let seen = other.get("/metrics").text();
    assert!(!seen.contains("acme") && !seen.contains("slow"), "{seen}");
    assert!(value(&seen, "mainspring_work_submitted_total") >= 5.0);
    // The longest due job of each queue, by an admin's eyes.
    let oldest = "mainspring_queue_oldest_ready_seconds";
    assert!(value(&text, &format!("{oldest}{{queue=\"default\"}}")) < 3_600.0);
    assert!(!seen.contains("queue_oldest_ready_seconds{queue=\"s"), "{seen}");
    // Entities are counted now and then, and when a server starts.
    server.restart();
    let text = eventually("entities were counted", || {
        let text = server.admin().get("/metrics").text();
        text.contains("mainspring_entities{kind=\"subscription\"}").then_some(text)
    });
    assert_eq!(value(&text, "mainspring_entities{kind=\"schedule\"}"), 1.0);
    depth_is_kept(&text);
    assert_eq!(value(&text, "mainspring_entities{kind=\"bulk\"}"), 0.0);
}

/// Of five jobs one waits for its first try and one for its second, also after a restart.
fn depth_is_kept(page: &str) {
    for (state, count) in [("queued", 1.0), ("running", 0.0), ("retrying", 1.0)] {
        let name = format!("mainspring_type_jobs{{type=\"mill\",state=\"{state}\"}}");
        assert_eq!(value(page, &name), count, "{state}");
    }
}

fn however_many_types_there_are_the_page_stays_short(store: Store) {
    let server = Server::start(store.options(BINARY).config("[types]\nstrict = false"));
    let jobs: Vec<Value> =
        (0..500).map(|n| json!({ "job_type": format!("type-{n}"), "payload": {} })).collect();
    let told = server.admin().post("/api/v1/jobs/batch", &json!({ "jobs": jobs }));
    assert_eq!(told.status, 200, "{}", told.text());
    let page = server.admin().get("/metrics").text();
    let start = "mainspring_work_submitted_total{";
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with(start)).collect();
    assert!(lines.len() <= 65, "{} lines", lines.len());
    let sum: f64 = lines
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap())
        .map(|n| n.parse::<f64>().unwrap())
        .sum();
    assert_eq!(sum, 500.0);
    let start = "mainspring_type_jobs{";
    assert_eq!(page.lines().filter(|line| line.starts_with(start)).count(), 3 * 51);
    assert!(page.len() < 512 << 10, "{} bytes", page.len());
}
