//! The command line as people see it: on a terminal of some width, which Python's `pty` plays.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::command::{Background, prepare};
use mainspring_testkit::blackbox::{Options, Ran, Server, Store, eventually, run};
use mainspring_testkit::both_stores;
use serde_json::json;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

both_stores![
    a_line_of_a_table_is_a_line_of_the_screen,
    moves_are_followed_and_taken_up_again,
    waiting_tells_for_what_and_how_it_ended,
    errors_come_with_their_cure_and_page,
    top_shows_what_is_going_on,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// Runs a command on a terminal of so many columns and prints what it drew.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
columns, command = int(sys.argv[1]), sys.argv[2:]
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execvp(command[0], command)
drawn = b""
while True:
    try:
        part = os.read(master, 65536)
    except OSError:
        break
    if not part:
        break
    drawn += part
sys.stdout.buffer.write(drawn)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn on_terminal(server: &Server, columns: usize, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut all = vec![("MAINSPRING_URL", &*server.url), ("MAINSPRING_TOKEN", &*server.admin)];
    all.push(("TERM", "xterm-256color"));
    all.extend(env);
    let columns = columns.to_string();
    let args = [&["-c", TERMINAL, &columns, BINARY], args].concat();
    run("python3", &args, &all, server.directory())
}

/// What is seen of a text: without escapes.
fn seen(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                chars.by_ref().find(|c| c.is_ascii_alphabetic());
            }
            '\r' => {}
            _ => out.push(c),
        }
    }
    out
}

fn a_line_of_a_table_is_a_line_of_the_screen(store: Store) {
    let server = Server::start(store.options(BINARY));
    let admin = server.admin();
    let ids: Vec<String> =
        (0..3).map(|_| admin.submit_plain("a-type-with-quite-a-long-name")).collect();
    let grant = admin.pull_one("a-type-with-quite-a-long-name");
    let code = format!("E_{}", "LONG_".repeat(12));
    admin.report("fail", &grant, json!({ "error_code": code, "message": "m", "retryable": false }));
    for columns in [40, 60, 80, 120, 200] {
        let shown = on_terminal(&server, columns, &[], &["jobs", "list"]).expect(0).stdout;
        let text = seen(&shown);
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        for id in &ids {
            assert!(text.contains(id.as_str()), "{columns}: {id} is not whole in\n{text}");
        }
    }
    eventually("a job of a moment ago", || {
        let shown = seen(&on_terminal(&server, 200, &[], &["jobs", "list"]).stdout);
        (shown.matches("s ago").count() == 3).then_some(())
    });
    // Colours on a terminal only, and not against somebody's will.
    let colourful = on_terminal(&server, 120, &[], &["jobs", "list"]).stdout;
    assert!(colourful.contains("\u{1b}[31m"), "{colourful:?}");
    let plain = on_terminal(&server, 120, &[("NO_COLOR", "1")], &["jobs", "list"]).stdout;
    assert!(!plain.contains("\u{1b}[3"), "{plain:?}");
    let exact = seen(&on_terminal(&server, 200, &[], &["jobs", "list", "--exact"]).stdout);
    assert!(exact.contains('T') && exact.contains('Z') && !exact.contains(" ago"), "{exact}");
    let piped = server.cli(&["jobs", "list"]).stdout;
    assert!(!piped.contains('\u{1b}') && !piped.contains(" ago"), "{piped}");
    assert!(piped.contains(&code[..40]), "{piped}");
}

fn moves_are_followed_and_taken_up_again(store: Store) {
    let mut server = Server::start(store.options(BINARY));
    let first = server.admin().submit_plain("t");
    let out = server.directory().join("tail.out");
    let env = [("MAINSPRING_URL", &*server.url), ("MAINSPRING_TOKEN", &*server.admin)];
    let args = ["jobs", "tail", "--after", "0", "--type", "t", "-o", "json"];
    let tail = prepare(BINARY, &args, &env, server.directory())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _tail = Background(tail);
    let has = |id: &str| std::fs::read_to_string(&out).unwrap().contains(id).then_some(());
    eventually("what was before is told", || has(&first));
    // The server goes away and comes back: nothing is missed, nothing is told twice.
    server.restart();
    let other = server.admin().submit_plain("other");
    let second = server.admin().submit_plain("t");
    eventually("what came after is told", || has(&second));
    let told = std::fs::read_to_string(&out).unwrap();
    assert!(!told.contains(&other));
    let positions: Vec<u64> = told
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["position"].as_u64().unwrap())
        .collect();
    assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    let args = ["jobs", "tail", &second, "--after", "0", "--count", "1", "--to", "queued"];
    let line = server.cli(&args).expect(0).stdout;
    assert!(line.contains(&second) && line.contains("→ queued"), "{line}");
    server.cli_as("nobody", &["jobs", "tail", "--count", "1"]).expect(4);
}

fn waiting_tells_for_what_and_how_it_ended(store: Store) {
    let server = Server::start(store.options(BINARY));
    let admin = server.admin();
    let id = admin.submit_plain("nobody");
    let ran = server.cli(&["jobs", "wait", &id, "--timeout", "2s"]).expect(5);
    assert!(ran.stderr.contains(&format!("waiting for {id}, queued: ")), "{}", ran.stderr);
    assert!(ran.stderr.contains("is still queued after 2s"), "{}", ran.stderr);
    let ran = server.cli(&["jobs", "submit", "nobody", "{}", "--wait", "1s"]).expect(5);
    assert!(ran.stderr.contains("is still queued"), "{}", ran.stderr);
    admin.complete(&admin.pull_one("nobody"));
    server.cli(&["jobs", "wait", &id]).expect(0);
    let failing = admin.submit(&json!({ "job_type": "f", "payload": {}, "max_retries": 0 }));
    admin.fail(&admin.pull_one("f"), "NO_PAPER", false);
    server.cli(&["jobs", "wait", failing["job_id"].as_str().unwrap()]).expect(1);
}

fn errors_come_with_their_cure_and_page(store: Store) {
    let server = Server::start(store.options(BINARY));
    let ran = server.cli(&["jobs", "get", "job_00000000000000000000000000"]).expect(4);
    assert!(ran.stderr.contains("JOB_NOT_FOUND"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cure: Check the id"), "{}", ran.stderr);
    assert!(ran.stderr.contains("mainspring errors JOB_NOT_FOUND"), "{}", ran.stderr);
    let page = server.cli(&["errors", "job_not_found"]).expect(0).stdout;
    assert!(page.starts_with("# JOB_NOT_FOUND"), "{page}");
    let typo = server.cli(&["errors", "JOB_NOT_FUOND"]).expect(2).stderr;
    assert!(typo.contains("did you mean \"JOB_NOT_FOUND\""), "{typo}");
    assert!(server.cli(&["errors", "-o", "json"]).expect(0).json().as_array().unwrap().len() > 100);
    let who = server.cli(&["whoami"]).expect(0).stdout;
    assert!(who.contains("admin") && who.contains("MAINSPRING_TOKEN"), "{who}");
    let env = [("MAINSPRING_URL", "http://127.0.0.1:9")];
    let lost = run(BINARY, &["jobs", "list"], &env, server.directory()).expect(3).stderr;
    assert!(lost.contains("mainspring serve") && lost.contains("MAINSPRING_URL"), "{lost}");
}

fn top_shows_what_is_going_on(store: Store) {
    let server = Server::start(store.options(BINARY));
    server.admin().submit_plain("t");
    let shown = server.cli(&["top", "--once"]).expect(0).stdout;
    assert!(shown.contains("queued 1") && shown.contains("default"), "{shown}");
    let numbers = server.cli(&["top", "-o", "json"]).expect(0).json();
    assert_eq!(numbers["runtime"]["counters"]["jobs"]["queued"], 1, "{numbers}");
}

#[test]
fn a_service_manager_is_told_when_the_server_takes_work_and_when_it_stops() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let hear = || {
        let mut bytes = [0; 256];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let options = Options::new(BINARY).env("NOTIFY_SOCKET", &path.display().to_string());
    let mut server = Server::start(options);
    assert!(hear().starts_with("READY=1"));
    server.terminate();
    assert!(hear().starts_with("STOPPING=1"));
}

/// Other people read a journal, and it is kept: what signs in as an admin must not be in it.
#[test]
fn a_journal_gets_no_secret_of_the_first_start() {
    let place = tempfile::tempdir().unwrap();
    let start = |name: &str, stream: &dyn Fn(&std::fs::Metadata) -> String| {
        let (data, out) = (place.path().join(name), place.path().join(format!("{name}.out")));
        let file = std::fs::File::create(&out).unwrap();
        let stream = stream(&file.metadata().unwrap());
        let data = data.display().to_string();
        let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
        let env = [("JOURNAL_STREAM", &*stream)];
        let mut command = prepare(BINARY, &args, &env, place.path());
        let child = command.stdout(file).stderr(Stdio::null()).spawn().unwrap();
        let _server = Background(child);
        let said = eventually("it says where its dashboard is", || {
            let said = std::fs::read_to_string(&out).ok()?;
            said.contains("\ndashboard ").then_some(said)
        });
        (said, std::fs::read_to_string(place.path().join(name).join("admin.token")).unwrap())
    };
    let (said, token) = start("logged", &|it| format!("{}:{}", it.dev(), it.ino()));
    assert!(!said.contains(token.trim()) && !said.contains("once="), "{said}");
    assert!(said.contains("logged/admin.token"), "{said}");
    // Who was started by a service has the variable, too, and prints elsewhere.
    let (said, token) = start("shown", &|it| format!("{}:{}", it.dev(), it.ino() + 1));
    assert!(said.contains(token.trim()) && said.contains("once="), "{said}");
}

#[test]
fn a_demo_has_a_directory_of_its_own_and_something_to_show() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let child = prepare(BINARY, &["serve", "--demo", "--listen", "127.0.0.1:0"], &[], place.path())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _demo = Background(child);
    let url = eventually("it says where it is", || {
        let said = std::fs::read_to_string(&out).ok()?;
        Some(said.lines().next()?.split_once(" on ")?.1.trim().to_owned())
    });
    // The token is found where the demo has put it.
    let list = |args: &[&str]| run(BINARY, args, &[("MAINSPRING_URL", &*url)], place.path());
    eventually("jobs of the demo", || {
        let jobs = list(&["jobs", "list", "-o", "json"]);
        let jobs = serde_json::from_str::<serde_json::Value>(&jobs.stdout).ok()?;
        let jobs = jobs["items"].as_array()?.clone();
        let is_there = |what: &str| jobs.iter().any(|job| job["payload"]["demo"] == what);
        (is_there("due in an hour") && is_there("no worker asks for it")).then_some(())
    });
    assert!(place.path().join("mainspring-demo").is_dir());
    assert!(!place.path().join("mainspring-data").exists());
}
