//! `mainspring mcp`, driven as an agent's client drives it: over stdin and stdout, one JSON-RPC
//! message per line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::command::prepare;
use mainspring_testkit::blackbox::{Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

both_stores![
    an_agent_finds_out_what_is_wrong,
    an_agent_changes_something_only_if_it_is_allowed_to,
    every_tool_does_what_its_description_says,
    nonsense_is_answered_as_such_and_ends_nothing,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// A client of the protocol.
struct Agent {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
}

impl Agent {
    fn start(server: &Server, token: &str, args: &[&str]) -> Self {
        let env = [("MAINSPRING_URL", &*server.url), ("MAINSPRING_TOKEN", token)];
        let args = [&["mcp"], args].concat();
        let mut child = prepare(BINARY, &args, &env, server.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut agent = Agent { child, to, from: BufReader::new(from), next: 1 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let told = agent.ask("initialize", hello);
        assert_eq!(told["result"]["protocolVersion"], "2025-06-18", "{told}");
        assert_eq!(told["result"]["serverInfo"]["name"], "mainspring");
        assert!(told["result"]["capabilities"]["tools"].is_object());
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        agent
    }

    fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.say(&ask.to_string());
        let told = self.hear();
        assert_eq!((&told["id"], &told["jsonrpc"]), (&json!(id), &json!("2.0")), "{told}");
        told
    }

    /// What a tool says, and whether that is an error.
    fn call(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let told = self.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        let result = &told["result"];
        assert!(result.is_object(), "{told}");
        assert_eq!(result["content"][0]["type"], "text");
        (text(&result["content"][0], "text"), result["isError"].as_bool().unwrap())
    }

    /// What a tool says that works.
    fn read(&mut self, name: &str, arguments: Value) -> Value {
        let (text, is_error) = self.call(name, arguments);
        assert!(!is_error, "{name}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn tools(&mut self) -> Vec<String> {
        let told = self.ask("tools/list", json!({}));
        let tools = told["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| {
                assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
                assert!(tool["description"].is_string(), "{tool}");
                text(tool, "name")
            })
            .collect()
    }

    /// Ends as its client does, by closing its input.
    fn end(self) {
        let Agent { mut child, to, .. } = self;
        drop(to);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

fn an_agent_finds_out_what_is_wrong(store: Store) {
    let server = Server::start(store.options(BINARY));
    let ann = server.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let waiting = ann.submit_plain("nobody-does-it");
    let failing = ann.submit(&json!({ "job_type": "t", "payload": {}, "max_retries": 0 }));
    let failing = text(&failing, "job_id");
    ann.fail(&ann.pull_one("t"), "NO_PAPER", false);
    let mut agent = Agent::start(&server, &ann.token, &[]);
    assert!(agent.tools().contains(&"explain_job".to_owned()));
    assert_eq!(agent.read("whoami", json!({}))["user_id"], "ann");
    assert!(agent.read("get_runtime", json!({}))["version"].is_string());
    let failed = agent.read("list_jobs", json!({ "status": "failed", "limit": 5 }));
    assert_eq!(failed["items"].as_array().unwrap().len(), 1, "{failed}");
    assert_eq!(text(&failed["items"][0], "job_id"), failing);
    let job = agent.read("get_job", json!({ "job_id": failing }));
    assert_eq!(job["last_error"]["code"], "NO_PAPER");
    let why = agent.read("explain_job", json!({ "job_id": waiting }));
    assert!(why["summary"].is_string(), "{why}");
    let events = agent.read("list_job_events", json!({ "job_id": failing }));
    assert!(events["items"].as_array().unwrap().len() > 2, "{events}");
    let groups = agent.read("list_dead_letter_groups", json!({}));
    assert_eq!(groups["items"].as_array().unwrap().len(), 1, "{groups}");
    for tool in ["list_alerts", "list_types", "list_schedules"] {
        agent.read(tool, json!({}));
    }
    let mut operator = Agent::start(&server, &server.admin, &[]);
    for tool in ["list_queues", "list_workers"] {
        operator.read(tool, json!({}));
    }
    operator.end();
    let firings = agent.read(
        "preview_cron",
        json!({ "job_type": "t", "cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin" }),
    );
    assert!(firings["items"].as_array().is_some_and(|items| !items.is_empty()), "{firings}");
    let (page, is_error) = agent.call("explain_error", json!({ "code": "lease_lost" }));
    assert!(!is_error && page.contains("LEASE_LOST"), "{page}");
    // What is somebody else's stays so, and is told with a cure.
    let hidden = server.admin().submit_plain("t");
    let (told, is_error) = agent.call("get_job", json!({ "job_id": hidden }));
    assert!(is_error && told.contains("AUTH_FORBIDDEN") && told.contains("cure"), "{told}");
    agent.end();
}

fn an_agent_changes_something_only_if_it_is_allowed_to(store: Store) {
    let server = Server::start(store.options(BINARY));
    let ann = server.caller("acme", "ann", &["submitter", "worker", "operator"]);
    let wish = json!({ "job_type": "t", "payload": { "n": 1 }, "idempotency_key": "k" });
    let mut reader = Agent::start(&server, &ann.token, &[]);
    let writes = ["submit_job", "cancel_job", "requeue_dead_letter", "pause_queue"];
    let offered = reader.tools();
    for name in writes {
        assert!(!offered.contains(&name.to_owned()));
        let told = reader.ask("tools/call", json!({ "name": name, "arguments": wish }));
        assert_eq!(told["error"]["code"], -32_602, "{told}");
        assert!(text(&told["error"], "message").contains("--allow-writes"), "{told}");
    }
    assert_eq!(ann.get("/api/v1/jobs").data()["items"], json!([]));

    let mut writer = Agent::start(&server, &ann.token, &["--allow-writes"]);
    let offered = writer.tools();
    assert!(writes.iter().all(|name| offered.contains(&(*name).to_owned())), "{offered:?}");
    let first = text(&writer.read("submit_job", wish.clone()), "job_id");
    assert_eq!(text(&writer.read("submit_job", wish), "job_id"), first);
    assert_eq!(ann.job(&first)["payload"], json!({ "n": 1 }));
    let mut admin = Agent::start(&server, &server.admin, &["--allow-writes"]);
    assert_eq!(admin.read("pause_queue", json!({ "queue_name": "default" }))["paused"], true);
    assert_eq!(admin.read("resume_queue", json!({ "queue_name": "default" }))["paused"], false);
    let why = json!({ "job_id": first, "reason": "not needed" });
    assert_eq!(writer.read("cancel_job", why)["status"], "cancelled");
    let failing = ann.submit(&json!({ "job_type": "f", "payload": {}, "max_retries": 0 }));
    ann.fail(&ann.pull_one("f"), "NO_PAPER", false);
    let dlq_id = text(&ann.job(&text(&failing, "job_id")), "dlq_id");
    let again = writer.read("requeue_dead_letter", json!({ "dlq_id": dlq_id }));
    assert!(again["job_id"].is_string(), "{again}");
    // A viewer's agent may no more than the viewer, whatever it was started with.
    let viewer = server.caller("acme", "vera", &["viewer"]);
    let mut bound = Agent::start(&server, &viewer.token, &["--allow-writes"]);
    let (told, is_error) = bound.call("submit_job", json!({ "job_type": "t", "payload": {} }));
    assert!(is_error && told.contains("AUTH_FORBIDDEN"), "{told}");
    for agent in [reader, writer, admin, bound] {
        agent.end();
    }
}

/// Every tool is called with every parameter that it says it has: none is refused for its path, its
/// names or its values.
fn every_tool_does_what_its_description_says(store: Store) {
    let server = Server::start(store.options(BINARY));
    let admin = server.admin();
    let (job, failing) = (admin.submit_plain("t"), json!({ "job_type": "f", "payload": {} }));
    let failing = text(&admin.submit(&failing), "job_id");
    admin.fail(&admin.pull_one("f"), "NO_PAPER", false);
    let wish = json!({ "job_type": "t", "kind": "cron", "cron": "@daily" });
    let schedule = text(&admin.post("/api/v1/schedules", &wish).data(), "schedule_id");
    let item = text(&admin.job(&failing), "dlq_id");
    let known = json!({
        "job_id": job, "parent_id": job, "dlq_id": item, "schedule_id": schedule, "queue_name": "default",
        "status": "failed", "state": "open", "type": "f", "queue": "default", "trace_id": "x",
        "error_code": "NO_PAPER", "signature": "0123456789abcdef", "code": "LEASE_LOST",
        "job_type": "t", "cron": "@daily", "timezone": "Asia/Tokyo", "reason": "r",
        "idempotency_key": "k", "payload": {}, "limit": 5,
        "count": 5, "priority": 7, "delay_ms": 5,
        // A real one takes minutes to come about; that nobody has it is said by its own route.
        "alert_id": "alt_00000000000000000000000000",
    });
    let mut agent = Agent::start(&server, &server.admin, &["--allow-writes"]);
    let told = agent.ask("tools/list", json!({}));
    let tools = told["result"]["tools"].as_array().unwrap().clone();
    assert!(tools.len() >= 25, "{}", tools.len());
    for tool in &tools {
        let name = text(tool, "name");
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        // A cursor is of a page before; a delay and an instant are two ways to say the same.
        let is_left_out = |name: &str| matches!(name, "cursor" | "run_at");
        let arguments = properties.keys().filter(|name| !is_left_out(name)).map(|name| {
            assert!(known.get(name).is_some(), "what is a {name}?");
            (name.clone(), known[name].clone())
        });
        let arguments: serde_json::Map<_, _> = arguments.collect();
        let (said, is_error) = agent.call(&name, arguments.into());
        match name.as_str() {
            "acknowledge_alert" => assert!(said.contains("ENTITY_NOT_FOUND"), "{said}"),
            _ => assert!(!is_error, "{name}: {said}"),
        }
    }
    agent.end();
}

fn nonsense_is_answered_as_such_and_ends_nothing(store: Store) {
    let server = Server::start(store.options(BINARY).ephemeral());
    let mut agent = Agent::start(&server, &server.admin, &[]);
    for (line, code) in [
        ("{", -32_700),
        ("[1,2]", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"resources/list\"}", -32_601),
        ("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}", -32_602),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":7}}",
            -32_602,
        ),
    ] {
        agent.say(line);
        assert_eq!(agent.hear()["error"]["code"], code, "{line}");
    }
    // Nobody is answered who did not ask.
    agent.say("");
    agent.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}");
    agent.say("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
    // A message that is too long is refused, and the next one is read as ever.
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(5 << 20));
    agent.say(&long);
    assert_eq!(agent.hear()["error"]["code"], -32_600);
    assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
    for arguments in [json!({}), json!({ "job_id": ".." }), json!({ "job_id": 1 }), json!([])] {
        let (told, is_error) = agent.call("get_job", arguments.clone());
        assert!(is_error, "{arguments}: {told}");
    }
    let (told, is_error) = agent.call("get_job", json!({ "job_id": "../tokens" }));
    assert!(is_error && told.contains("JOB_NOT_FOUND"), "{told}");
    agent.end();
}
