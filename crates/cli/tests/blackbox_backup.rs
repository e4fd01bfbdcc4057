//! Backup and restore of the memory store through the real binary: under load, killed in between,
//! and with everything that could be lost counted afterwards.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::command::prepare;
use mainspring_testkit::blackbox::{Caller, Options, Server, eventually, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
/// Segments, snapshots and archive files come and go all the time.
const RESTLESS: &str = "[store]\nsegment_bytes = 65536\nsnapshot_bytes_min = 65536\n\
    finished_bytes_max = 16384\n[types]\nstrict = false\n";

/// Submits jobs and does some of them until told to stop; keeps what was acknowledged.
fn bustle(server: &Server, is_over: &AtomicBool, acknowledged: &Mutex<Vec<String>>) {
    let admin = server.admin();
    while !is_over.load(Ordering::Relaxed) {
        let payload = json!({ "filling": "x".repeat(300) });
        let jobs: Vec<Value> =
            (0..20).map(|_| json!({ "job_type": "t", "payload": payload.clone() })).collect();
        let made = admin.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
        let ids = made["items"].as_array().unwrap().iter();
        let ids = ids.map(|item| item["job_id"].as_str().unwrap().to_owned());
        acknowledged.lock().unwrap().extend(ids);
        let granted = admin.pull_with(json!({ "worker_id": "w", "types": ["t"], "limit": 15 }));
        granted.iter().for_each(|grant| {
            admin.complete(grant);
        });
    }
}

/// Starts a server on a directory that was restored, and looks for jobs in it.
fn holds(directory: &Path, wanted: &[String]) {
    let server = Restored::start(directory);
    for id in wanted {
        let found = server.caller.get(&format!("/api/v1/jobs/{id}"));
        assert_eq!(found.status, 200, "{id} is lost: {}", found.text());
    }
}

/// A server on a directory of the test's own.
struct Restored {
    caller: Caller,
    child: std::process::Child,
}

impl Restored {
    fn start(directory: &Path) -> Self {
        let out = directory.with_extension("stdout");
        let env = [("MAINSPRING_ADMIN_TOKEN", "the-restored-admin-token")];
        let data = directory.display().to_string();
        let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
        let child = prepare(BINARY, &args, &env, directory.parent().unwrap())
            .stdout(std::fs::File::create(&out).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = eventually("it says where it listens", || {
            let said = std::fs::read_to_string(&out).ok()?;
            said.lines().next()?.split_once("://")?.1.trim().parse().ok()
        });
        let token = "the-restored-admin-token".to_owned();
        let caller = Caller { address, token };
        eventually("it is ready", || {
            let ready = caller.request("GET", "/readyz").try_send(address).ok()?;
            (ready.status == 200).then_some(())
        });
        Restored { caller, child }
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_was_acknowledged_before_a_backup_under_load_is_in_what_is_restored() {
    let server = Server::start(Options::new(BINARY).config(RESTLESS));
    let place = tempfile::tempdir().unwrap();
    let (is_over, acknowledged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let data = server.data_dir().display().to_string();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| bustle(&server, &is_over, &acknowledged));
        }
        let rounds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..5 {
                let at_least = 400 * (round + 1);
                eventually("enough jobs", || {
                    (acknowledged.lock().unwrap().len() >= at_least).then_some(())
                });
                let before = acknowledged.lock().unwrap().clone();
                let to = place.path().join(format!("backup-{round}")).display().to_string();
                let back = place.path().join(format!("data-{round}"));
                let ran = run(BINARY, &["backup", &to, "--data-dir", &data], &[], place.path());
                assert!(ran.expect(0).stdout.contains("copied"));
                let new = back.display().to_string();
                let args = ["restore", &to, "--data-dir", &new, "-o", "json"];
                let told = run(BINARY, &args, &[], place.path()).expect(0).json();
                assert!(told["files"].as_u64().unwrap() > 1, "{told}");
                holds(&back, &before);
                println!("round {round}: {} jobs acknowledged, all there; {told}", before.len());
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = rounds {
            std::panic::resume_unwind(panic);
        }
    });
    // The copy is a whole store: the doctor finds nothing wrong with it.
    let last = place.path().join("data-4").display().to_string();
    let restored = Restored::start(Path::new(&last));
    let url = format!("http://{}", restored.caller.address);
    let env = [("MAINSPRING_URL", &*url), ("MAINSPRING_TOKEN", &*restored.caller.token)];
    let doctor = run(BINARY, &["doctor", "--data-dir", &last, "-o", "json"], &env, place.path());
    let checks = doctor.expect(0).json();
    let failed = |check: &&Value| check["verdict"] == "failure";
    assert_eq!(checks.as_array().unwrap().iter().filter(failed).count(), 0, "{checks}");
}

#[test]
fn a_backup_that_is_killed_leaves_nothing_broken() {
    let mut server = Server::start(Options::new(BINARY).config(RESTLESS));
    let admin = server.admin();
    let jobs: Vec<Value> = (0..1_000)
        .map(|_| json!({ "job_type": "t", "payload": { "filling": "x".repeat(3_000) } }))
        .collect();
    let made = admin.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
    let ids = made["items"].as_array().unwrap().iter();
    let ids = ids.map(|item| item["job_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let place = tempfile::tempdir().unwrap();
    let (to, data) = (place.path().join("b"), server.data_dir().display().to_string());
    let shown = to.display().to_string();
    let mut killed = 0;
    for files in 0..12 {
        let mut child =
            prepare(BINARY, &["backup", &shown, "--data-dir", &data], &[], place.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        // Killed as soon as it has made so many files.
        let partial = place.path().join("b.partial");
        let is_far = || std::fs::read_dir(&partial).map_or(0, Iterator::count) >= files;
        while child.try_wait().unwrap().is_none() && !is_far() {
            std::thread::yield_now();
        }
        let _ = child.kill();
        killed += u32::from(!child.wait().unwrap().success());
        if to.exists() {
            // It was quicker: then it is whole.
            std::fs::remove_dir_all(&to).unwrap();
            continue;
        }
        let half = partial.display().to_string();
        let new = place.path().join("new").display().to_string();
        if partial.exists() {
            let ran = run(BINARY, &["restore", &half, "--data-dir", &new], &[], place.path());
            if ran.code == Some(0) {
                // It was whole, and only had to be given its name.
                assert!(ran.stdout.contains("restored 1,000 jobs"), "{}", ran.stdout);
                std::fs::remove_dir_all(&new).unwrap();
                continue;
            }
            assert!(ran.stderr.contains("no whole backup"), "{}", ran.stderr);
        }
        assert!(!Path::new(&new).exists());
    }
    assert!(killed > 0, "none was killed");
    // The server never noticed, and the next backup is whole.
    run(BINARY, &["backup", &shown, "--data-dir", &data], &[], place.path()).expect(0);
    assert!(!place.path().join("b.partial").exists());
    server.restart();
    for id in ids.iter().step_by(50) {
        assert_eq!(server.admin().job(id)["status"], "queued");
    }
    let new = place.path().join("new");
    let told = ["restore", &shown, "--data-dir", &new.display().to_string()];
    let told = run(BINARY, &told, &[], place.path()).expect(0).stdout;
    assert!(told.contains("restored 1,000 jobs"), "{told}");
    holds(&new, &ids);
}

#[test]
fn only_a_whole_backup_goes_only_into_an_empty_directory() {
    let server = Server::start(Options::new(BINARY));
    let id = server.admin().submit_plain("t");
    // A change that the audit trail tells of, and that is noted outside of it.
    server.caller("acme", "ann", &["viewer"]);
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let data = server.data_dir().display().to_string();
    let code = |args: &[&str]| run(BINARY, args, &[], place.path()).code;
    assert_eq!(code(&["backup", &path("b"), "--data-dir", &data]), Some(0));
    assert_eq!(code(&["backup", &path("b"), "--data-dir", &data]), Some(2), "it exists");
    assert_eq!(code(&["backup", &path("c"), "--data-dir", &path("nowhere")]), Some(2));
    std::fs::create_dir(place.path().join("empty")).unwrap();
    assert_eq!(code(&["backup", &path("c"), "--data-dir", &path("empty")]), Some(2));
    assert!(!place.path().join("c").exists() && !place.path().join("c.partial").exists());
    assert!(place.path().join("b/audit.anchor").exists());
    // The secret of the admin is not in it.
    assert!(!place.path().join("b/admin.token").exists());

    assert_eq!(code(&["restore", &path("b"), "--data-dir", &data]), Some(2), "not empty");
    assert_eq!(code(&["restore", &path("empty"), "--data-dir", &path("n")]), Some(1));
    let journal = std::fs::read_dir(place.path().join("b")).unwrap();
    let journal = journal.map(|entry| entry.unwrap().path());
    let journal = journal.into_iter().find(|path| path.to_string_lossy().contains("journal-"));
    let journal = journal.unwrap();
    let whole = std::fs::read(&journal).unwrap();
    let mut bytes = whole.clone();
    bytes[5_000] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    let ran = run(BINARY, &["restore", &path("b"), "--data-dir", &path("n")], &[], place.path());
    assert!(ran.expect(1).stderr.contains("not what was written"));
    assert!(!place.path().join("n").exists() && !place.path().join("n.restoring").exists());
    std::fs::write(&journal, whole).unwrap();
    assert_eq!(code(&["restore", &path("b"), "--data-dir", &path("empty")]), Some(0));
    assert!(place.path().join("empty/audit.anchor").exists());
    let restored = Restored::start(&place.path().join("empty"));
    assert_eq!(restored.caller.get("/api/v1/audit/verify").status, 200);
    drop(restored);
    holds(&place.path().join("empty"), &[id]);
}
