//! The command line from outside: exit codes, output for scripts, the registry, configuration.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{PerStore, Ran, Server, Store, run};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::path::Path;

both_stores![
    o09_types_live_in_a_registry_that_lists_reads_and_changes,
    o10_types_on_the_command_line_are_structured_and_without_leftovers,
    o24_only_two_stores_are_offered_anywhere,
    o15_o20_submitting_following_and_cancelling_with_commands,
    o02_exit_codes_tell_scripts_what_happened,
    o02_a_public_address_without_a_token_is_refused,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// One server per store with the shipped registry for the whole file.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quant.toml");
        let config = std::fs::read_to_string(shipped).expect("the example ships");
        store.options(BINARY).config(&config)
    })
}

fn alone(args: &[&str], directory: &Path) -> Ran {
    run(BINARY, args, &[], directory)
}

fn o09_types_live_in_a_registry_that_lists_reads_and_changes(store: Store) {
    let admin = server(store).admin();
    let listed = admin.get("/api/v1/types").data();
    assert_eq!(listed["items"].as_array().unwrap().len(), 31, "the shipped types");
    let refused = admin.post("/api/v1/jobs", &json!({ "job_type": "made_up", "payload": 0 }));
    assert_eq!(refused.refusal(), (400, "TYPE_UNKNOWN".into()), "strict: no type, no job");
    assert_eq!(admin.get("/api/v1/types/made_up").refusal(), (404, "TYPE_NOT_FOUND".into()));
    let set = [
        "types",
        "set",
        "made_up",
        "--priority",
        "9",
        "--timeout",
        "90s",
        "--max-retries",
        "2",
        "--domain",
        "tests",
        "-o",
        "json",
    ];
    assert_eq!(server(store).cli(&set).expect(0).json()["timeoutSeconds"], 90);
    let job = admin.submit(&json!({ "job_type": "made_up", "payload": 0 }));
    assert_eq!((&job["priority"], &job["max_retries"]), (&json!(9), &json!(2)));
    assert_eq!(job["timeout_ms"], 90_000);
    let known = admin.get("/api/v1/types/made_up").data();
    assert_eq!((&known["domain"], &known["schedulable"]), (&json!("tests"), &json!(true)));
}

fn o10_types_on_the_command_line_are_structured_and_without_leftovers(store: Store) {
    let rows = server(store).cli(&["types", "-o", "json"]).expect(0).json();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() >= 31);
    let fields = [
        "concurrencyLimit",
        "domain",
        "maxRetries",
        "priority",
        "schedulable",
        "taskType",
        "timeoutSeconds",
    ];
    for row in rows {
        assert_eq!(row.as_object().unwrap().keys().collect::<Vec<_>>(), fields);
        assert!(row["schedulable"].is_boolean() && row["priority"].is_u64());
        assert!(!text(row, "domain").is_empty());
    }
    let domains: std::collections::BTreeSet<_> =
        rows.iter().map(|row| text(row, "domain")).collect();
    assert!(domains.len() >= 5, "{domains:?}");
    let table = server(store).cli(&["types"]).expect(0).stdout;
    for word in ["legacy", "alias", "deprecated", "migrat"] {
        assert!(!table.to_lowercase().contains(word), "{word}");
        assert!(!json!(rows).to_string().to_lowercase().contains(word), "{word}");
    }
    let one =
        server(store).cli(&["types", "get", "market_data_sync", "-o", "json"]).expect(0).json();
    assert_eq!(one["taskType"], "market_data_sync");
}

fn o24_only_two_stores_are_offered_anywhere(store: Store) {
    let directory = tempfile::tempdir().unwrap();
    let mut texts = vec![
        server(store).admin().get("/openapi.json").text(),
        server(store).admin().get("/docs").text(),
        server(store).admin().get("/api/v1/runtime").text(),
    ];
    let commands = [
        "",
        "serve",
        "jobs",
        "types",
        "dlq",
        "queues",
        "workers",
        "tokens",
        "worker",
        "replay",
        "doctor",
        "bench",
        "config",
        "completions",
    ];
    for command in commands {
        let args: Vec<&str> =
            [command, "--help"].into_iter().filter(|arg| !arg.is_empty()).collect();
        texts.push(alone(&args, directory.path()).expect(0).stdout);
    }
    for shell in ["bash", "zsh", "fish"] {
        texts.push(alone(&["completions", shell], directory.path()).expect(0).stdout);
    }
    texts.push(alone(&["config", "show"], directory.path()).expect(0).stdout);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in ["docs", "docs/errors", "examples", "."] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_text = path.extension().is_some_and(|end| end == "md" || end == "toml");
            if is_text && !path.ends_with("deny.toml") {
                texts.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    for text in &texts {
        // Saying that there is none is the only mention allowed.
        let offers = |line: &&str| {
            let rest = line.to_lowercase().replace("no sqlite", "").replace("没有 sqlite", "");
            rest.contains("sqlite")
        };
        assert_eq!(text.lines().find(offers), None);
    }
    let help = alone(&["serve", "--help"], directory.path()).expect(0).stdout;
    for flag in ["--data-dir", "--ephemeral", "--database-url"] {
        assert!(help.contains(flag), "{flag}");
    }
    let url = ["serve", "--database-url", "sqlite://x.db", "--listen", "127.0.0.1:0"];
    let refused = alone(&url, directory.path()).expect(2);
    assert!(refused.stderr.starts_with("error: "), "{}", refused.stderr);
    std::fs::write(directory.path().join("c.toml"), "[store]\nkind = \"sqlite\"\n").unwrap();
    alone(&["config", "check", "--config", "c.toml"], directory.path()).expect(2);
}

fn o15_o20_submitting_following_and_cancelling_with_commands(store: Store) {
    let cli = |args: &[&str]| server(store).cli(args);
    let ids = |args: &[&str]| text(&cli(args).expect(0).json(), "job_id");
    let id = ids(&[
        "jobs",
        "submit",
        "market_data_sync",
        "{\"n\":1}",
        "--key",
        "cli-1",
        "--label",
        "a=b",
        "--delay",
        "1h",
        "-o",
        "json",
    ]);
    let again = cli(&[
        "jobs",
        "submit",
        "market_data_sync",
        "{\"n\":1}",
        "--key",
        "cli-1",
        "--label",
        "a=b",
        "--delay",
        "1h",
        "-o",
        "json",
    ])
    .expect(0)
    .json();
    assert_eq!((&again["job_id"], &again["idempotent_hit"]), (&json!(id), &json!(true)));
    let got = cli(&["jobs", "get", &id, "-o", "json"]).expect(0).json();
    assert_eq!((&got["payload"]["n"], &got["labels"]["a"]), (&json!(1), &json!("b")));
    assert!(cli(&["jobs", "explain", &id]).expect(0).stdout.contains("NOT_DUE"));
    let events = cli(&["jobs", "events", &id, "-o", "json"]).expect(0).json();
    assert_eq!(events[0]["to_state"], "queued");
    let listed = cli(&["jobs", "list", "--status", "queued", "-o", "json"]).expect(0).json();
    assert!(listed["items"].as_array().unwrap().iter().any(|job| job["job_id"] == id.as_str()));
    let waited = cli(&["jobs", "wait", &id, "--timeout", "10ms", "-o", "json"]).expect(5);
    assert_eq!(waited.json()["status"], "queued");
    cli(&["jobs", "cancel", &id, "--reason", "enough"]).expect(0);
    let twice = cli(&["jobs", "cancel", &id]).expect(1);
    assert!(twice.stderr.contains("JOB_CANCEL_CONFLICT"), "{}", twice.stderr);
    cli(&["jobs", "wait", &id]).expect(1);

    let lines = (0..2_500).map(|n| {
        json!({ "job_type": "market_data_sync", "payload": n, "delay_ms": 3_600_000 }).to_string()
    });
    let mut lines: Vec<String> = lines.collect();
    lines[1_234] = json!({ "job_type": "nobody_knows", "payload": 0 }).to_string();
    let path = server(store).directory().join("jobs.ndjson");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let filed = cli(&["jobs", "submit", "--file", path.to_str().unwrap(), "-o", "json"]).expect(1);
    assert!(filed.stderr.contains("1235") || filed.stdout.contains("1235"), "{filed:?}");
    let submitted =
        server(store).admin().get("/api/v1/runtime").data()["counters"]["submitted"].clone();
    assert!(submitted.as_u64().unwrap() >= 2_500);
}

fn o02_exit_codes_tell_scripts_what_happened(store: Store) {
    let directory = tempfile::tempdir().unwrap();
    let viewer = server(store).caller("codes", "ann", &["viewer"]);
    for (code, ran) in [
        (2, alone(&["nonsense"], directory.path())),
        (2, alone(&["jobs", "list", "--status", "done"], directory.path())),
        (2, alone(&["jobs", "list", "--url", "not a url"], directory.path())),
        (3, alone(&["jobs", "list", "--url", "http://127.0.0.1:1"], directory.path())),
        (4, alone(&["jobs", "list", "--url", &server(store).url], directory.path())),
        (4, server(store).cli_as(&viewer.token, &["jobs", "get", "job_x"])),
        (4, server(store).cli_as(&viewer.token, &["tokens", "list"])),
        (4, server(store).cli(&["dlq", "get", "dlq_x"])),
        (1, server(store).cli(&["jobs", "submit", "made-up-type", "{}"])),
        (2, server(store).cli(&["jobs", "submit", "market_data_sync", "{broken"])),
        (0, server(store).cli(&["doctor"])),
        (0, server(store).cli(&["queues", "list", "-o", "json"])),
        (0, server(store).cli(&["workers", "-o", "json"])),
        (0, server(store).cli(&["dlq", "list", "-o", "json"])),
    ] {
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert_eq!(ran.stderr.is_empty(), code == 0, "{ran:#?}");
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
    }
    let made = [
        "tokens", "create", "--tenant", "codes", "--user", "bob", "--role", "viewer", "-o", "json",
    ];
    let made = server(store).cli(&made).expect(0).json();
    let (id, secret) = (text(&made, "token_id"), text(&made, "token"));
    server(store).cli_as(&secret, &["jobs", "list"]).expect(0);
    server(store).cli(&["tokens", "revoke", &id]).expect(0);
    server(store).cli_as(&secret, &["jobs", "list"]).expect(4);
    let verdicts = server(store).cli(&["doctor", "-o", "json"]).expect(0).json();
    assert!(verdicts.as_array().unwrap().iter().all(|check| check["verdict"] != "failure"));
}

#[test]
fn o09_a_wrong_configuration_is_told_whole_and_with_suggestions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.toml");
    let wrong = "[server]\nlisten = 7070\nintrnal_routes = true\n[retention]\nfinished = \"7\"\n\
                 [types.a]\nprioritty = 1\n[serever]\n";
    std::fs::write(&path, wrong).unwrap();
    for command in [&["config", "check"][..], &["serve"][..]] {
        let mut args = command.to_vec();
        args.extend(["--config", "wrong.toml"]);
        let told = alone(&args, directory.path()).expect(2).stderr;
        for part in [
            "intrnal_routes",
            "did you mean \"internal_routes\"",
            "listen",
            "finished",
            "did you mean \"priority\"",
            "did you mean \"server\"",
        ] {
            assert!(told.contains(part), "{part} is missing in {told}");
        }
    }
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quant.toml");
    let fine = ["config", "check", "--config", shipped.to_str().unwrap(), "-o", "json"];
    let fine = alone(&fine, directory.path()).expect(0).json();
    assert_eq!((&fine["ok"], &fine["types"]), (&Value::Bool(true), &json!(31)));
}

fn o02_a_public_address_without_a_token_is_refused(store: Store) {
    let directory = tempfile::tempdir().unwrap();
    let database = store.database();
    let places = match &database {
        None => vec![vec!["--ephemeral"], vec!["--data-dir", "fresh"]],
        Some(database) => vec![vec!["--database-url", &*database.url]],
    };
    for listen in ["0.0.0.0:0", "[::]:0"] {
        for place in &places {
            let mut args = vec!["serve", "--listen", listen];
            args.extend(place);
            let refused = alone(&args, directory.path()).expect(2);
            assert!(refused.stderr.contains("token"), "{}", refused.stderr);
            assert!(!directory.path().join("fresh").exists(), "nothing was made");
        }
    }
    let short = [("MAINSPRING_ADMIN_TOKEN", "short")];
    let args = [&["serve", "--listen", "127.0.0.1:0"], &places[0][..]].concat();
    run(BINARY, &args, &short, directory.path()).expect(2);
    let exposed = ["serve", "--listen", "0.0.0.0:0", "--internal-routes"];
    let exposed = [&exposed, &places[0][..]].concat();
    let given = [("MAINSPRING_ADMIN_TOKEN", "a-long-enough-token-for-a-test")];
    run(BINARY, &exposed, &given, directory.path()).expect(2);
}

/// No password is shown, wherever it stands in an address and whatever is asked with it.
#[test]
fn o05_passwords_of_databases_are_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    for address in [
        "postgres://u:hush@127.0.0.1:1/db",
        "postgres://u@127.0.0.1:1/db?password=hush",
        "postgres://u:hush@x@127.0.0.1:1/db",
        "postgres://u:hush/db",
        "host=127.0.0.1 port=1 user=u password=hush dbname=db",
        "mysql://u:hush@h/db",
    ] {
        let config = folder.path().join("c.toml");
        std::fs::write(&config, format!("[store]\ndatabase_url = \"{address}\"\n")).unwrap();
        let file = config.display().to_string();
        for args in [
            vec!["config", "show", "--database-url", address],
            vec!["config", "show", "--config", &file],
            vec!["config", "check", "--config", &file],
            vec!["serve", "--database-url", address, "--listen", "127.0.0.1:0"],
            vec!["migrate", "status", "--database-url", address],
            vec!["doctor", "--database-url", address],
            vec!["move", "--from", "memory:nowhere", "--to", address],
            vec!["move", "--from", address, "--to", "memory:nowhere"],
        ] {
            let ran = alone(&args, folder.path());
            let told = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!told.contains("hush"), "{args:?} shows it: {told}");
        }
    }
}

/// With PostgreSQL, too, the first admin token is kept where a client of the same directory finds
/// it.
#[test]
fn o02_the_first_admin_token_of_a_database_is_kept_in_a_private_file() {
    use mainspring_testkit::blackbox::command::{Background, prepare};
    use mainspring_testkit::blackbox::eventually;
    use std::os::unix::fs::PermissionsExt;
    let database = {
        use mainspring_testkit::postgres::{Database, shared};
        Database::create(shared())
    };
    let folder = tempfile::tempdir().unwrap();
    let args = ["serve", "--database-url", &database.url, "--listen", "127.0.0.1:0"];
    let mut command = prepare(BINARY, &args, &[], folder.path());
    let log = std::fs::File::create(folder.path().join("out")).unwrap();
    let child = command.stdout(log).stderr(std::process::Stdio::null()).spawn().unwrap();
    let server = Background(child);
    let file = folder.path().join("mainspring-data/admin.token");
    let told = eventually("the server starts", || {
        let told = std::fs::read_to_string(folder.path().join("out")).ok()?;
        told.contains("admin token").then_some(told)
    });
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.starts_with("ms_") && told.contains(kept.trim()), "{told}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let folder_mode = std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(folder_mode & 0o777, 0o700);
    assert_eq!(server.terminate(), Some(0));
}
