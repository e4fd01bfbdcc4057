//! `mainspring conformance`: workers that do everything right pass every scene, whatever language
//! they are in; every fault is found by the scene that is there for it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::Ran;
use mainspring_testkit::blackbox::command::prepare;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blackbox_conformance");
const SDKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdks");

fn conformance(args: &[&str], worker: &[&str]) -> Ran {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("node_modules")).unwrap();
    let package = std::fs::canonicalize(format!("{SDKS}/typescript")).unwrap();
    std::os::unix::fs::symlink(package, place.path().join("node_modules/mainspring")).unwrap();
    std::fs::copy(format!("{HERE}/good.mjs"), place.path().join("good.mjs")).unwrap();
    let source = format!("{SDKS}/python/src");
    let env = [("PYTHONPATH", &*source), ("PYTHONDONTWRITEBYTECODE", "1")];
    let args = [&["conformance", "--output", "json"], args, &["--"], worker].concat();
    // It takes its time, all of it bounded by its own patience.
    let ran = prepare(BINARY, &args, &env, place.path()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: ran.status.code(), stdout: text(&ran.stdout), stderr: text(&ran.stderr) }
}

/// The problem of each scene, in order.
fn problems(ran: &Ran) -> Vec<(String, Option<String>)> {
    let scenes = ran.json()["scenes"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    scenes.iter().map(|it| (text(&it["scene"]).unwrap(), text(&it["problem"]))).collect()
}

fn passes(worker: &[&str]) {
    let ran = conformance(&[], worker);
    let found = problems(&ran);
    assert!(found.len() == 10 && found.iter().all(|(_, it)| it.is_none()), "{worker:?}: {found:?}");
    assert_eq!(ran.code, Some(0));
}

#[test]
fn workers_on_the_python_sdk_pass_every_scene() {
    passes(&["python3", &format!("{HERE}/good.py")]);
}

#[test]
fn workers_on_the_typescript_sdk_pass_every_scene() {
    passes(&["node", "good.mjs"]);
}

#[test]
fn the_worker_of_the_command_line_passes_every_scene() {
    let work = "import json, sys, time; it = json.load(sys.stdin); time.sleep(it['work_ms'] / 1000)\n\
                if it['fail']: sys.exit(65)\n\
                print(json.dumps(it['value']))";
    let worker = [
        BINARY,
        "worker",
        "--type",
        "conformance",
        "--lease-ms",
        "3000",
        "--grace",
        "500ms",
        "--kill-grace",
        "300ms",
        "--concurrency",
        "2",
        "--",
        "python3",
        "-c",
        work,
    ];
    let ran = conformance(&[], &worker);
    for (scene, problem) in problems(&ran) {
        // A command has an exit code, and no code of its own.
        assert!(problem.is_none() || scene == "fail", "{scene}: {problem:?}");
    }
}

#[test]
fn a_worker_by_hand_passes_and_every_fault_is_found() {
    let sinner = format!("{HERE}/sinner.py");
    passes(&["python3", &sinner, "none"]);
    let faults = [
        ("mixes-up-leases", "complete"),
        ("says-it-twice", "complete"),
        ("own-codes", "fail"),
        ("gives-up", "double-ack"),
        ("insists", "stale-ack"),
        ("no-heartbeat", "heartbeat"),
        ("reports-what-it-lost", "lost-lease"),
        ("reports-what-it-lost", "cancel"),
        ("own-clock", "skew"),
        ("falls-over", "away"),
        ("drops-its-work", "drain"),
        ("fails-its-work", "drain"),
        ("deaf", "drain"),
    ];
    // Most of it is waiting.
    std::thread::scope(|scope| {
        for (fault, scene) in faults {
            let sinner = &sinner;
            scope.spawn(move || {
                let args = ["--scene", scene, "--patience", "5s"];
                let ran = conformance(&args, &["python3", sinner, fault]);
                let found = problems(&ran);
                let is_found = found.len() == 1 && found[0].1.is_some();
                assert!(is_found, "{fault} is not found: {found:?}");
                assert_eq!(ran.code, Some(1), "{fault}");
            });
        }
    });
    println!("{} faults, each found", faults.len());
}

#[test]
fn a_scene_that_is_not_there_is_wrong_usage() {
    let ran = conformance(&["--scene", "nonsense"], &["true"]).expect(2);
    assert!(ran.stderr.contains("double-ack"), "{ran:?}");
}
