//! Disk trouble under the real binary: full, failing, torn, damaged, shared, from the future.
//! Either everything acknowledged is there, or the server refuses and says which file and where.

#[path = "blackbox_disk/mount.rs"]
mod mount;
#[path = "blackbox_disk/raw.rs"]
mod raw;

use mainspring_testkit::blackbox::{Caller, Options, Server, command, eventually};
use mainspring_testkit::load::{Shim, Stopwatch};
use mainspring_testkit::rng::Rng;
use mount::Mount;
use raw::{Raw, contents, write};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Small files, so that little data makes many of them.
const SMALL: &str = "[store]\nsegment_bytes = 262144\nsnapshot_bytes_min = 300000\n\
    finished_bytes_max = 65536\n[types]\nstrict = false\n";

fn is_full() -> bool {
    std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full")
}

fn wish(name: &str, bytes: usize) -> Value {
    let payload = json!({ "n": name, "pad": "x".repeat(bytes) });
    json!({ "job_type": "work", "payload": payload, "idempotency_key": name })
}

fn submit(admin: &Caller, name: &str, bytes: usize) -> Result<String, (u16, String)> {
    let answer = admin.post("/api/v1/jobs", &wish(name, bytes));
    match answer.status {
        201 => Ok(answer.data()["job_id"].as_str().expect("an id").to_owned()),
        _ => Err(answer.refusal()),
    }
}

/// Full, then free again, many times: new work is refused, the rest goes on, it heals by itself.
#[test]
fn o05_a_full_disk_refuses_new_work_only_and_heals_by_itself() {
    let options = Options::new(env!("CARGO_BIN_EXE_mainspring")).config(SMALL);
    let mut server = Server::start(options);
    server.kill9();
    std::fs::remove_dir_all(server.data_dir()).expect("the first, empty data");
    let mount = Mount::tmpfs(&server.data_dir(), 96);
    server.restart();
    let admin = server.admin();
    let episodes = if is_full() { 200 } else { 20 };
    let (mut accepted, mut refused, mut reports) = (Vec::new(), 0, 0);
    let mut slowest = Duration::ZERO;
    for episode in 0..episodes {
        for nth in 0..6 {
            accepted.push(submit(&admin, &format!("{episode}-{nth}"), 50).expect("there is room"));
        }
        let grants = admin.pull("work", 5);
        assert_eq!(grants.len(), 5, "episode {episode}");
        mount.fill();
        let refusal = (0..400).find_map(|nth| {
            match submit(&admin, &format!("{episode}-more-{nth}"), 2_000) {
                Ok(job) => {
                    accepted.push(job);
                    None
                }
                Err(refusal) => Some(refusal),
            }
        });
        assert_eq!(refusal, Some((507, "DISK_FULL".to_owned())), "episode {episode}");
        refused += 1;
        let alert = eventually("somebody is told", || {
            let found = admin.get("/api/v1/alerts?rule=low_on_space&state=open").data();
            found["items"].as_array()?.first().cloned()
        });
        assert_eq!((&alert["severity"], &alert["count"]), (&json!("P1"), &json!(1)), "{alert}");
        // Everything that makes room or tells of work done goes on.
        assert!(admin.complete(&grants[0])["status"] == "succeeded", "episode {episode}");
        assert!(admin.fail(&grants[1], "E", false)["status"].is_string(), "episode {episode}");
        assert!(admin.report("release", &grants[2], json!({}))["status"].is_string());
        let beat = json!({ "worker_id": "w-1", "items": [
            { "job_id": grants[3]["job_id"], "lease_token": grants[3]["lease_token"] }] });
        let beat = admin.post("/api/v1/work/heartbeat", &beat).data();
        assert!(beat["items"][0]["lease_expires_at"].is_string(), "{beat}");
        let running = grants[4]["job_id"].as_str().expect("an id");
        assert_eq!(admin.poke(&format!("/api/v1/jobs/{running}/cancel")).status, 202);
        reports += 5;
        assert_eq!(admin.job(running)["status"], "cancelled");
        assert!(admin.get("/api/v1/runtime").data()["store"]["low_on_space"] == true);
        mount.free();
        let freed = Stopwatch::start();
        let healed = eventually("it takes new work again", || {
            submit(&admin, &format!("{episode}-healed"), 10).ok()
        });
        accepted.push(healed);
        slowest = slowest.max(freed.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "healed only after {slowest:?}");
    server.restart();
    for job in &accepted {
        assert_eq!(server.admin().job(job)["job_id"], **job);
    }
    let names = contents(&server.data_dir());
    assert!(!names.keys().any(|name| name.ends_with(".tmp")), "{:?}", names.keys());
    println!(
        "{episodes} episodes: {refused} refusals, {reports} reports on a full disk, \
         {} jobs accepted and found again, healed within {slowest:?}",
        accepted.len()
    );
    server.kill9();
}

/// The n-th sync fails: the process ends with 70, acknowledges nothing more, and a restart has all
/// that was acknowledged, even though the block whose sync failed is torn.
#[test]
fn o05_a_failed_sync_stops_the_server_and_loses_nothing_acknowledged() {
    let place = tempfile::tempdir().expect("a directory");
    let shim = Shim::build(place.path());
    let mut rng = Rng::new(7, 7);
    let points = if is_full() { 500 } else { 24 };
    let (mut acknowledged, mut died_starting) = (0, 0);
    for point in 1..=points {
        let data = place.path().join(format!("data-{point}"));
        shim.forget();
        let mut server = Raw::start(&data, SMALL, &shim.environment(point));
        let mut known: Vec<(String, String)> = Vec::new();
        match server.admin() {
            None => died_starting += 1,
            Some(admin) => {
                for nth in 0.. {
                    let name = format!("{point}-{nth}");
                    let body = wish(&name, rng.within(10, 3_000) as usize);
                    let request = admin.request("POST", "/api/v1/jobs").json(&body);
                    match request.try_send(admin.address) {
                        Ok(answer) if answer.status == 201 => {
                            known.push((answer.data()["job_id"].as_str().unwrap().into(), name));
                        }
                        Ok(answer) => assert!(answer.status >= 500, "{answer:?}"),
                        Err(_) => break,
                    }
                    assert!(nth < 2_000, "the sync never failed");
                }
            }
        }
        let (status, said) = server.wait();
        let expected = if said.contains("cannot open the store") { 1 } else { 70 };
        assert_eq!(status.code(), Some(expected), "point {point}: {said}");
        assert!(said.contains("journal"), "point {point}: {said}");
        shim.tear(&mut rng);
        let mut again = Raw::start(&data, SMALL, &[]);
        let admin = again.admin().unwrap_or_else(|| panic!("point {point}: {}", again.said()));
        for (job, name) in &known {
            assert_eq!(admin.job(job)["payload"]["n"], **name, "point {point}");
        }
        acknowledged += known.len();
        again.kill9();
    }
    println!("{points} failed syncs ({died_starting} while starting), {acknowledged} acknowledged");
    assert!(acknowledged > 100 && died_starting < points / 2);
}

/// A data directory with several segments, a snapshot, archive runs and a manifest; and its jobs.
/// Every file in it counts: a kill between a new file and the removal of what it replaces leaves
/// files that nobody will read, so another one is tried.
fn grown(place: &Path) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let data = place.join("grown");
    let mut jobs = Vec::new();
    let files = eventually("a kill finds the directory at rest", || {
        grow(&data, &mut jobs);
        Some(contents(&data)).filter(is_at_rest)
    });
    (files, jobs)
}

/// Runs a server until all kinds of files are there, then kills it.
fn grow(data: &Path, jobs: &mut Vec<String>) {
    let mut server = Raw::start(data, SMALL, &[]);
    let admin = server.admin().expect("it starts");
    eventually("all kinds of files are there", || {
        for _ in 0..60 {
            jobs.push(submit(&admin, &name_of(jobs.len()), 600).expect("accepted"));
        }
        for grant in admin.pull("work", 40) {
            admin.complete(&grant);
        }
        let files = contents(data);
        let count = |ending: &str| files.keys().filter(|name| name.ends_with(ending)).count();
        (count(".snap") == 1 && count(".arc") >= 2 && count(".log") >= 3).then_some(())
    });
    // A last block of several sectors, for the tear.
    jobs.push(submit(&admin, &name_of(jobs.len()), 4_000).expect("accepted"));
    server.kill9();
}

/// The name, and key, of the job that is the `nth` of a grown directory.
fn name_of(nth: usize) -> String {
    format!("grown-{nth}")
}

/// Whether the manifest names all that is there. Old segments go before the old snapshot does, so
/// one snapshot means that no segment is left over either.
fn is_at_rest(files: &BTreeMap<String, Vec<u8>>) -> bool {
    let Some(manifest) = files.get("MANIFEST") else { return false };
    let is_named = |name: &str| manifest.windows(name.len()).any(|found| found == name.as_bytes());
    files.keys().all(|name| match name.rsplit_once('.') {
        Some((_, "snap" | "arc")) => is_named(name),
        Some((_, "tmp")) => false,
        _ => true,
    }) && files.keys().any(|name| name.ends_with(".snap"))
}

fn segments(files: &BTreeMap<String, Vec<u8>>) -> Vec<(String, usize)> {
    let logs = files.iter().filter(|(name, _)| name.ends_with(".log"));
    let used = logs.map(|(name, bytes)| {
        (name.clone(), bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1))
    });
    // An unused segment has a header and nothing else.
    used.filter(|(_, end)| *end > 4_096).collect()
}

/// Expects a refusal that names the file, and a directory that is as it was.
fn refuses(place: &Path, files: &BTreeMap<String, Vec<u8>>, file: &str, place_told: &str) {
    let data = place.join("broken");
    write(&data, files);
    let (status, said) = Raw::start(&data, SMALL, &[]).wait();
    assert_eq!(status.code(), Some(1), "{file}: {said}");
    assert!(said.contains(file), "{file}: {said}");
    assert!(said.contains(place_told), "{file}: {said}");
    assert!(contents(&data) == *files, "{file}: the directory was changed");
}

/// One flipped byte anywhere that counts: refused with file and offset, nothing touched.
#[test]
fn o05_damage_is_refused_with_file_and_offset_and_nothing_is_touched() {
    let place = tempfile::tempdir().expect("a directory");
    let (files, jobs) = grown(place.path());
    let flipped = |name: &str, at: usize| {
        let mut files = files.clone();
        files.get_mut(name).expect("the file")[at] ^= 0x10;
        files
    };
    let (middle, end) = segments(&files).first().expect("a segment").clone();
    let mut places = vec![(middle.clone(), 4_096 + 5), (middle, (4_096 + end) / 2)];
    let newest = segments(&files).last().expect("a segment").clone();
    places.push((newest.0, 4_096 + 40));
    for (name, bytes) in &files {
        let length = bytes.len();
        if name.ends_with(".snap") || name == "MANIFEST" {
            places.extend([10, length / 2, length - 2].map(|at| (name.clone(), at)));
        } else if name.ends_with(".arc") {
            // The index at the end is checked when opening; blocks when they are read, see below.
            places.push((name.clone(), length - 20));
        }
    }
    for (name, at) in &places {
        refuses(place.path(), &flipped(name, *at), name, "is damaged at byte");
    }
    println!("{} flipped bytes refused, {} jobs", places.len(), jobs.len());
    truncated(place.path(), &files);
    damaged_archive_block(place.path(), &files, &jobs);
}

/// Files are made in full length before use, so a shorter one is no crash's doing.
fn truncated(place: &Path, files: &BTreeMap<String, Vec<u8>>) {
    // A piece of the stream is no part of the state: one that is damaged is a gap in it.
    let is_state = |name: &&String| !name.ends_with(".token") && !name.ends_with(".moves");
    for name in files.keys().filter(is_state) {
        let mut files = files.clone();
        let bytes = files.get_mut(name).expect("the file");
        bytes.truncate(bytes.len() - 7);
        refuses(place, &files, name, "is damaged at byte");
    }
}

/// A damaged block of the archive: its jobs and their keys are refused, never invented; lists go on
/// past it; the doctor names it; everything else goes on.
fn damaged_archive_block(place: &Path, files: &BTreeMap<String, Vec<u8>>, jobs: &[String]) {
    let mut files = files.clone();
    let run = files.keys().find(|name| name.ends_with(".arc")).expect("a run").clone();
    files.get_mut(&run).expect("the run")[100] ^= 1;
    let data = place.join("broken-run");
    write(&data, &files);
    let mut server = Raw::start(&data, SMALL, &[]);
    let admin = server.admin().expect("it starts");
    let (mut whole, mut broken) = (BTreeSet::new(), Vec::new());
    for (nth, job) in jobs.iter().enumerate() {
        let answer = admin.get(&format!("/api/v1/jobs/{job}"));
        match answer.status {
            200 => assert!(whole.insert(job.clone())),
            500 => broken.push(nth),
            _ => panic!("{answer:?}"),
        }
    }
    let counts = (broken.len(), whole.len());
    assert!(counts.0 > 0 && counts.1 > counts.0, "{counts:?} broken and whole");
    let said = server.said();
    assert!(said.contains(&run) && said.contains("is damaged at byte"), "{said}");
    for nth in &broken {
        let again = submit(&admin, &name_of(*nth), 600);
        assert_eq!(again, Err((500, "JOB_UNREADABLE".to_owned())), "a second job under its key");
    }
    assert_eq!(listed(&admin), whole, "lists go on past the damage");
    let metrics = admin.get("/metrics").text();
    assert!(metrics.contains("mainspring_store_damaged_blocks 1\n"), "{metrics}");
    let folder = data.display().to_string();
    let url = format!("http://{}", admin.address);
    let env = [("MAINSPRING_TOKEN", &*admin.token), ("MAINSPRING_URL", &*url)];
    let args = ["doctor", "--data-dir", &folder];
    let found = command::run(env!("CARGO_BIN_EXE_mainspring"), &args, &env, place).expect(1);
    let told = format!("{run} is damaged at byte 0,");
    assert!(found.stdout.contains(&told), "{found:?}");
    submit(&admin, "goes on", 10).expect("new work is taken");
    server.kill9();
    println!("archive block damaged: {counts:?} jobs refused and read");
}

/// The jobs that the pages of the list tell of, each once.
fn listed(admin: &Caller) -> BTreeSet<String> {
    let (mut found, mut more) = (BTreeSet::new(), String::new());
    loop {
        let page = admin.get(&format!("/api/v1/jobs?limit=7{more}")).data();
        for job in page["items"].as_array().expect("items") {
            assert!(found.insert(job["job_id"].as_str().expect("an id").to_owned()), "{job}");
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => more = format!("&cursor={cursor}"),
            None => return found,
        }
    }
}

/// A user who may not write what others own.
const NOBODY: u32 = 65_534;

/// A directory without the right to write: refused at the start, and when it becomes one under a
/// server, that ends with the reason as soon as it needs a new file. Nothing acknowledged is lost.
#[test]
fn o05_a_directory_that_cannot_be_written_is_refused_and_ends_a_server() {
    let place = tempfile::tempdir().expect("a directory");
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    mode(place.path(), 0o755);
    let data = place.path().join("data");
    std::fs::create_dir(&data).expect("a directory");
    // Root may write anywhere, so the server is somebody else.
    let who = std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY)).is_ok().then_some(NOBODY);
    let start = || Raw::start_as(who, &data, SMALL, &[]);
    let mut server = start();
    let admin = server.admin().unwrap_or_else(|| panic!("{}", server.said()));
    // The one after it has to be made without the right to.
    let next = data.join("journal-0000000000000002.log");
    eventually("the next segment is ready", || next.exists().then_some(()));
    mode(&data, 0o555);
    let mut known = Vec::new();
    for nth in 0.. {
        let request = admin.request("POST", "/api/v1/jobs").json(&wish(&format!("{nth}"), 3_000));
        match request.try_send(admin.address) {
            Ok(answer) if answer.status == 201 => {
                known.push(answer.data()["job_id"].as_str().expect("an id").to_owned());
            }
            Ok(answer) => assert!(answer.status >= 500, "{answer:?}"),
            Err(_) => break,
        }
        assert!(nth < 2_000, "no new file was ever needed");
    }
    let (status, said) = server.wait();
    assert_eq!(status.code(), Some(70), "{said}");
    assert!(said.contains("the journal failed (cannot create journal-"), "{said}");
    assert!(said.contains("ermission denied"), "{said}");
    let (status, said) = start().wait();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write in the data directory"), "{said}");
    assert!(said.contains(&data.display().to_string()), "{said}");
    mode(&data, 0o700);
    let mut server = start();
    let admin = server.admin().unwrap_or_else(|| panic!("{}", server.said()));
    assert!(known.len() > 50, "{} jobs", known.len());
    for job in &known {
        assert_eq!(admin.job(job)["job_id"], **job);
    }
    server.kill9();
}

/// The power failed in the middle of the last write: that write is cut and the cut is told.
#[test]
fn o05_a_torn_tail_is_cut_and_told() {
    let place = tempfile::tempdir().expect("a directory");
    let (files, jobs) = grown(place.path());
    let (last, end) = segments(&files).last().expect("a segment").clone();
    let (gone, kept) = jobs.split_last().expect("jobs");
    let data = place.path().join("torn");
    for sectors in 1..=7 {
        write(&data, &files);
        let from = end.next_multiple_of(512) - sectors * 512;
        let path = data.join(&last);
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("the segment");
        file.write_all_at(&vec![0; end - from], from as u64).expect("writes");
        // Twice: what the first start repaired must hold for the second.
        for start in 0..2 {
            let mut server = Raw::start(&data, SMALL, &[]);
            let admin = server.admin().unwrap_or_else(|| panic!("{sectors}: {}", server.said()));
            let recovery = admin.get("/api/v1/runtime").data()["recovery"].clone();
            let torn = recovery["torn_bytes"].as_u64().expect("a number");
            assert_eq!(torn > 0, start == 0, "{sectors} sectors, start {start}: {recovery}");
            assert_eq!(admin.get(&format!("/api/v1/jobs/{gone}")).status, 404);
            for job in kept {
                assert_eq!(admin.job(job)["job_id"], **job);
            }
            server.kill9();
        }
    }
}

/// Two servers on one directory would destroy each other's work.
#[test]
fn o05_a_second_server_on_the_same_data_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    let mut first = Raw::start(&data, SMALL, &[]);
    let admin = first.admin().expect("it starts");
    let job = submit(&admin, "mine", 10).expect("accepted");
    let before = contents(&data);
    let other = place.path().join("link");
    std::os::unix::fs::symlink(&data, &other).expect("a second name for the same place");
    for path in [&data, &other] {
        let (status, said) = Raw::start(path, SMALL, &[]).wait();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("another process uses this data directory"), "{said}");
    }
    assert!(contents(&data) == before, "the second one wrote something");
    assert_eq!(admin.job(&job)["status"], "queued");
    first.kill9();
    let mut next = Raw::start(&data, SMALL, &[]);
    assert_eq!(next.admin().expect("the lock is free").job(&job)["status"], "queued");
}

/// Data of a later version is refused as such.
#[test]
fn o05_a_newer_format_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let (files, _) = grown(place.path());
    let (journal, _) = segments(&files).first().expect("a segment").clone();
    let snapshot = files.keys().find(|name| name.ends_with(".snap")).expect("one").clone();
    for (name, header) in [(journal, 44), (snapshot, 24)] {
        let mut files = files.clone();
        let bytes = files.get_mut(&name).expect("the file");
        bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let sum = crc32(&bytes[..header - 4]).to_le_bytes();
        bytes[header - 4..header].copy_from_slice(&sum);
        refuses(place.path(), &files, &name, "has format 2 and this version reads 1");
    }
}

/// The checksum of the headers, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1))
        })
    })
}
