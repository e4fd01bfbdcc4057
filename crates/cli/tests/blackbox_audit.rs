//! What the audit trail covers besides its own lines: the history of jobs by its digest, acks of
//! governed jobs, and what was so before a change.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_audit/forger.rs"]
mod forger;
#[path = "blackbox_scheduler/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{
    Caller, Nodes, Options, PerStore, Server, Store, eventually, run,
};
use mainspring_testkit::both_stores;
use mainspring_testkit::postgres::{ClusterOptions, Database, shared};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use support::{EVERYTHING, enqueued, no, pulled, put, report, server, wish};

both_stores![
    d10_whatever_is_done_to_the_history_of_a_job_is_found,
    d10_seals_leave_no_move_out_however_often_the_server_is_killed,
    d06_d10_an_ack_is_a_line_with_its_links,
    d10_what_a_line_says_was_before_is_what_was_before,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
static SERVERS: PerStore = PerStore::new();

fn verify(who: &Caller) -> (u16, Value) {
    let told = who.get("/api/v1/audit/verify");
    (told.status, told.json())
}

/// Waits until the moves up to one have been sealed; several servers may have sealed some twice.
fn sealed(who: &Caller, moves: u64) -> Value {
    eventually("the history is sealed", || {
        let (status, told) = verify(who);
        assert_eq!(status, 200, "{told}");
        let history = told["data"]["history"].clone();
        (history["to"].as_u64()? >= moves).then_some(history)
    })
}

fn d10_whatever_is_done_to_the_history_of_a_job_is_found(store: Store) {
    let outside = tempfile::tempdir().unwrap();
    let anchor = outside.path().join("anchor");
    let config = format!(
        "[audit]\nanchor = {:?}\nhistory_every = \"500ms\"\n[types]\nstrict = false\n",
        anchor.to_str().unwrap()
    );
    let mut server = Server::start(store.options(BINARY).config(&config));
    let ann = server.caller("t", "ann", &EVERYTHING);
    let id = ann.submit_plain("sealed");
    let pull = json!({ "worker_id": "worker-one", "types": ["sealed"], "limit": 1 });
    ann.complete(&ann.pull_with(pull)[0]);
    assert_eq!(ann.path(&id), ["queued", "running", "succeeded"]);
    let history = sealed(&ann, 3);
    assert_eq!((&history["from"], &history["next"]), (&json!(1), &json!(null)), "{history}");
    // A seal is a line of the server's own trail, and the command line compares, too.
    let seals = items(server.admin().get("/api/v1/audit?action=history.seal").data());
    let first = seals.last().unwrap();
    assert_eq!(
        (&first["object_type"], &first["actor"]["token_id"]),
        (&json!("history"), &Value::Null)
    );
    assert_eq!(text(&first["after"], "digest").len(), 64, "{first}");
    server.cli(&["audit", "verify"]).expect(0);
    match store {
        Store::Memory => {
            server.kill9();
            assert!(forger::forge(&server.data_dir(), "worker-one", "worker-two") > 0);
            server.restart();
            let ann = Caller { address: server.address, token: ann.token };
            let events = ann.events(&id);
            assert_eq!(events[1]["actor"], "worker:worker-two", "the store believes it");
            is_broken(&ann, "another worker");
            server.cli(&["audit", "verify"]).expect(1);
        }
        Store::Postgres => {
            let database = server.database().unwrap();
            let tampered = |what: &str, change: &str, undo: &str| {
                database.sql(change);
                is_broken(&ann, what);
                database.sql(undo);
                let (status, told) = verify(&ann);
                assert_eq!(status, 200, "{what} was undone: {told}");
            };
            // Another worker, in the stream and in what the job shows.
            for (table, column) in [("stream", "steps"), ("finished", "record")] {
                let swap = |from: &str, to: &str| {
                    format!(
                        "UPDATE mainspring.{table} SET {column} = decode(replace(
                            encode({column}, 'hex'), encode('{from}', 'hex'),
                            encode('{to}', 'hex')), 'hex')"
                    )
                };
                let (there, back) =
                    (swap("worker-one", "worker-two"), swap("worker-two", "worker-one"));
                tampered(table, &there, &back);
            }
            // A commit taken away, and two in each other's place.
            let away = "CREATE TABLE public.taken AS SELECT * FROM mainspring.stream
                WHERE last = (SELECT max(last) FROM mainspring.stream WHERE last <= 3);
                DELETE FROM mainspring.stream WHERE last IN (SELECT last FROM public.taken)";
            let back = "INSERT INTO mainspring.stream SELECT * FROM public.taken;
                DROP TABLE public.taken";
            tampered("a commit taken away", away, back);
            let swap = "UPDATE mainspring.stream s SET steps = o.steps FROM mainspring.stream o
                WHERE s.last IN (1, 2) AND o.last IN (1, 2) AND o.last <> s.last";
            tampered("two commits in each other's place", swap, swap);
            server.cli(&["audit", "verify"]).expect(0);
        }
    }
}

/// Killed between a seal that is decided and one that is heard of, or while moves gather for one:
/// the next server goes on from what is durable.
fn d10_seals_leave_no_move_out_however_often_the_server_is_killed(store: Store) {
    let config = "[audit]\nhistory_every = \"100ms\"\n[types]\nstrict = false\n";
    let mut server = Server::start(store.options(BINARY).config(config));
    let ann = server.caller("t", "ann", &EVERYTHING);
    let mut moves = 0;
    for round in 0..6 {
        let ann = Caller { address: server.address, token: ann.token.clone() };
        for _ in 0..3 {
            ann.submit_plain("sealed");
            ann.complete(&ann.pull_one("sealed"));
            moves += 3;
        }
        // In every other round before anything of it can be sealed.
        if round % 2 == 0 {
            sealed(&ann, moves);
        }
        server.kill9();
        server.restart();
    }
    let ann = Caller { address: server.address, token: ann.token };
    let history = sealed(&ann, moves);
    assert_eq!(history["from"], 1, "{history}");
    assert!(are_a_row(&server.admin(), moves) >= 3);
    server.cli(&["audit", "verify"]).expect(0);
}

/// Whether the seals leave no move out, up to one; how many there are.
#[track_caller]
fn are_a_row(admin: &Caller, moves: u64) -> usize {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let mut path = "/api/v1/audit?action=history.seal&limit=100".to_owned();
    loop {
        let page = admin.get(&path).data();
        let number = |seal: &Value, field: &str| seal["after"][field].as_u64().unwrap();
        let seals = items(page.clone());
        stretches.extend(seals.iter().map(|seal| (number(seal, "after"), number(seal, "to"))));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/audit?action=history.seal&limit=100&cursor={cursor}");
    }
    stretches.sort_unstable();
    let mut end = 0;
    for (after, to) in &stretches {
        assert!(*after <= end && *to > *after, "{stretches:?}");
        end = end.max(*to);
    }
    assert!(end >= moves, "{stretches:?}");
    stretches.len()
}

/// Three moves for each of so many jobs.
fn worked(who: &Caller, jobs: usize) -> u64 {
    for _ in 0..jobs {
        who.submit_plain("sealed");
        who.complete(&who.pull_one("sealed"));
    }
    3 * jobs as u64
}

/// The database dies while two servers seal, again and again: whatever became of the line that was
/// just being written, no move is left out.
fn d10_seals_leave_no_move_out_however_often_the_database_dies() {
    let config = "[audit]\nhistory_every = \"100ms\"\n[types]\nstrict = false\n";
    let mut nodes = Nodes::start(BINARY, 2, &ClusterOptions::durable(), config);
    let people: Vec<Caller> = (0..2).map(|nth| nodes.admin(nth)).collect();
    let mut moves = 0;
    for round in 0..3 {
        moves += worked(&people[round % 2], 3);
        if round == 1 {
            sealed(&people[0], moves);
        }
        nodes.cluster.kill9();
        nodes.cluster.start_again();
        eventually("the database is back", || {
            let ready = people.iter().all(|who| who.get("/readyz").status == 200);
            ready.then_some(())
        });
    }
    moves += worked(&people[1], 1);
    for who in &people {
        assert_eq!(sealed(who, moves)["from"], 1);
    }
    are_a_row(&people[0], moves);
}

/// A restart out of a snapshot, another store, and back: what was sealed is still what there is,
/// and the next seal begins where the last one ended.
#[test]
fn d10_seals_go_on_through_a_restart_and_at_a_new_place() {
    let config = "[audit]\nhistory_every = \"100ms\"\n[types]\nstrict = false\n";
    let mut old = Server::start(Store::Memory.options(BINARY).config(config));
    let roles = ["submitter", "worker", "operator", "viewer"];
    let ann = old.caller("t", "ann", &roles);
    let mut moves = worked(&ann, 3);
    sealed(&ann, moves);
    moves += worked(&ann, 1);
    assert!(old.terminate().success());
    old.restart();
    let ann = Caller { address: old.address, token: ann.token };
    assert_eq!(sealed(&ann, moves)["from"], 1);
    // Some of it not sealed yet.
    moves += worked(&ann, 1);
    assert!(old.terminate().success());
    let database = Arc::new(Database::create(shared()));
    let from = format!("memory:{}", old.data_dir().display());
    let moved = |from: &str, to: &str| {
        run(BINARY, &["move", "--from", from, "--to", to], &[], Path::new("/"))
    };
    moved(&from, &database.url).expect(0);
    let mut options = Options::new(BINARY).config(config);
    options.database = Some(database.clone());
    let mut new = Server::start(options);
    let ann = new.caller("t", "ann", &roles);
    moves += worked(&ann, 1);
    assert_eq!(sealed(&ann, moves)["from"], 1);
    are_a_row(&new.admin(), moves);
    new.cli(&["audit", "verify"]).expect(0);
    assert!(new.terminate().success());
    let folder = tempfile::tempdir().unwrap();
    let back = folder.path().join("back");
    eventually("the database is free", || {
        let ran = moved(&database.url, &format!("memory:{}", back.display()));
        (ran.code == Some(0)).then_some(())
    });
    let mut last = Server::start(Options::new(BINARY).config(config));
    last.kill9();
    std::fs::remove_dir_all(last.data_dir()).unwrap();
    std::fs::rename(&back, last.data_dir()).unwrap();
    last.restart();
    let ann = last.caller("t", "ann", &roles);
    moves += worked(&ann, 1);
    assert_eq!(sealed(&ann, moves)["from"], 1);
    are_a_row(&last.admin(), moves);
    last.cli(&["audit", "verify"]).expect(0);
}

#[track_caller]
fn is_broken(who: &Caller, what: &str) {
    let (status, told) = verify(who);
    assert_eq!(status, 409, "{what} was not found: {told}");
    let error = &told["error"];
    assert_eq!(text(error, "code"), "AUDIT_INTEGRITY_BROKEN");
    assert_eq!(error["details"]["first_bad_seq"], Value::Null, "the trail itself is whole");
    let from = error["details"]["history"]["from"].as_u64();
    assert!(from.is_some_and(|from| (1..=3).contains(&from)), "{told}");
}

fn d06_d10_an_ack_is_a_line_with_its_links(store: Store) {
    let ann = server(&SERVERS, store).caller("d06-line", "ann", &EVERYTHING);
    let lines = || items(ann.get("/api/v1/audit?action=job.ack").data());
    put(&ann, "m1", &json!({ "risk_tier": "high", "status": "candidate" }));
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let grant = pulled(&ann, json!({})).pop().unwrap();
    let body = json!({
        "result": { "ok": true }, "audit_event_id": "ext-1",
        "next_action_at": "2031-01-01T00:00:00Z",
    });
    assert_eq!(report(&ann, "ack", &id, &body).status, 200);
    let line = &lines()[0];
    let about = (&line["object_type"], &line["object_id"], &line["outcome"]);
    assert_eq!(about, (&json!("object"), &json!("memory:m1"), &json!("done")));
    assert_eq!(line["before"]["status"], "candidate");
    assert_eq!(line["after"]["next_action_at"], "2031-01-01T00:00:00Z");
    assert_eq!(line["evidence_refs"], json!([id, "ext-1"]));
    assert_eq!(line["risk_tier"], "high");
    assert_eq!(line["decision_trace_id"], grant["decision_trace_id"]);
    assert_eq!(line["actor"]["user_id"], "ann");
    // A repeat is answered again and is no second line; another word is refused, and none either.
    assert_eq!(report(&ann, "ack", &id, &body).status, 200);
    let other = report(&ann, "ack", &id, &json!({ "audit_event_id": "ext-2" }));
    assert_eq!(no(&other).0, 409);
    assert_eq!(lines().len(), 1);
    // An object that nobody has spoken of was nothing before.
    let id = enqueued(&ann, &wish("m2", "verify", "00:00:01"));
    assert_eq!(pulled(&ann, json!({})).len(), 1);
    assert_eq!(report(&ann, "ack", &id, &json!({})).status, 200);
    let told = lines();
    assert_eq!(told.len(), 2);
    assert_eq!((&told[0]["before"], &told[0]["evidence_refs"]), (&Value::Null, &json!([id])));
    assert_eq!(verify(&ann).0, 200);
}

/// Several people change the same thing at once: what each line says was before is what the line
/// before it made of it.
fn d10_what_a_line_says_was_before_is_what_was_before(store: Store) {
    const PEOPLE: usize = 4;
    const CHANGES: usize = 12;
    let admin = server(&SERVERS, store).admin();
    let change = |kind: &str, person: usize, n: usize| match kind {
        "type" => {
            let wish = json!({ "priority": person * CHANGES + n });
            admin.put("/api/v1/types/contested", &wish).status
        }
        "gate" => {
            let wish = json!({ "state": "pass", "reason": format!("{person}-{n}") });
            admin.put("/api/v1/gates/risk", &wish).status
        }
        "object" => {
            let wish = json!({ "auto_verify_budget": person * CHANGES + n });
            admin.put("/api/v1/objects/memory/contested", &wish).status
        }
        _ => {
            let verb = if (person + n).is_multiple_of(2) { "pause" } else { "resume" };
            admin.poke(&format!("/api/v1/queues/default/{verb}")).status
        }
    };
    for (kind, name, field) in [
        ("type", "contested", ""),
        ("queue", "default", ""),
        ("gate", "risk", "/reason"),
        ("object", "memory:contested", "/auto_verify_budget"),
    ] {
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let change = &change;
            let person = |person| {
                scope.spawn(move || {
                    (0..CHANGES).map(|n| change(kind, person, n)).collect::<Vec<u16>>()
                })
            };
            let all: Vec<_> = (0..PEOPLE).map(person).collect();
            all.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        let path = format!("/api/v1/audit?object_type={kind}&object_id={name}&limit=100");
        let lines = items(admin.get(&path).data());
        let done = statuses.iter().filter(|status| **status == 200).count();
        assert!(done > 0 && statuses.iter().all(|it| [200, 409].contains(it)), "{statuses:?}");
        assert_eq!(lines.len(), done, "{kind}: a line for each change");
        for (later, earlier) in lines.iter().zip(&lines[1..]) {
            let (before, after) = (later["before"].pointer(field), earlier["after"].pointer(field));
            assert_eq!(before, after, "{kind}: {later:#}");
            assert!(before.is_some(), "{kind}: {later:#}");
        }
    }
    assert_eq!(admin.poke("/api/v1/queues/default/resume").status, 200);
}

/// What only a database can do to its servers.
mod several_servers {
    mod postgres {
        #[test]
        fn d10_seals_leave_no_move_out_however_often_the_database_dies() {
            crate::d10_seals_leave_no_move_out_however_often_the_database_dies();
        }
    }
}
