//! Ways around the second person and around the gates, one after the other: none leads anywhere,
//! and each leaves its line in the audit trail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_scheduler/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use support::{EVERYTHING, enqueued, gate, job, pulled, put, report, wish};

both_stores![d10_d12_g11_no_way_leads_around_the_second_person_or_the_gates_and_each_is_told];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const CONFIG: &str = "[scheduler]\nallow_client_clock = true\n[types]\nstrict = false\n\
                      [bulk]\napproval_above = 0\n";
/// How many ways there are at least.
const WAYS_MIN: usize = 40;

/// Who tries, in which tenant, and who reads the trail there.
struct Ways<'a> {
    server: &'a Server,
    tried: Vec<String>,
}

impl Ways<'_> {
    /// Somebody tries something: it is refused so, and there is one more line, which says who tried
    /// what and why not. Whoever reads the trail is of the tenant of whoever tries.
    #[track_caller]
    fn try_it(
        &mut self,
        (way, who): (&str, &str),
        reader: &Caller,
        refused: (u16, &str),
        attempt: impl FnOnce() -> Response,
    ) {
        let before = denials(reader);
        let told = attempt();
        let code = text(&told.json()["error"], "code");
        assert_eq!((told.status, code.as_str()), refused, "{way}: {}", told.text());
        let after = denials(reader);
        let new = &after[..after.len() - before.len()];
        assert_eq!(new.len(), 1, "{way}: {new:#?}");
        assert_eq!(new[0]["outcome"], "denied", "{way}");
        assert_eq!(new[0]["actor"]["user_id"], who, "{way}");
        assert!(text(&new[0]["actor"], "token_id").starts_with("tok_"), "{way}");
        let why = text(&new[0], "reason");
        assert!(why.contains(": ") && !why.starts_with(": "), "{way}: {why}");
        assert!(!self.tried.iter().any(|tried| tried == way), "{way} is one way");
        self.tried.push(way.to_owned());
    }
}

/// The lines of refused attempts in the tenant of `reader`, the latest first.
fn denials(reader: &Caller) -> Vec<Value> {
    let (mut all, mut place) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/audit?action=access.denied&limit=100{place}");
        let page = reader.get(&path).data();
        let next = page["next_cursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
        all.extend(items(page));
        match next {
            Some(next) => place = next,
            None => return all,
        }
    }
}

/// A token that `issuer` makes for `user`.
fn mint(issuer: &Caller, tenant: &str, user: &str, roles: &[&str]) -> Caller {
    let wish = json!({ "tenant_id": tenant, "user_id": user, "roles": roles });
    let made = issuer.post("/api/v1/tokens", &wish).data();
    Caller { address: issuer.address, token: text(&made, "token") }
}

/// A dead letter, as its path.
fn dead_letter(who: &Caller, job_type: &str) -> String {
    let id = who.submit_plain(job_type);
    who.fail(&who.pull_one(job_type), "BAD", false);
    format!("/api/v1/dlq/items/{}", text(&who.job(&id), "dlq_id"))
}

fn ask(who: &Caller, item: &str) -> Value {
    who.post(&format!("{item}/discard"), &json!({ "reason": "r" })).data()
}

fn approve(who: &Caller, reader: &Caller, item: &str) -> Response {
    let version = reader.get(item).data()["version"].clone();
    who.post(&format!("{item}/approve"), &json!({ "version": version }))
}

fn d10_d12_g11_no_way_leads_around_the_second_person_or_the_gates_and_each_is_told(store: Store) {
    let options = store.options(BINARY).config(CONFIG).arg("--internal-routes");
    let server = Server::start(options);
    let mut ways = Ways { server: &server, tried: Vec::new() };
    with_nobody(&mut ways);
    by_one_person(&mut ways);
    by_other_tokens(&mut ways);
    by_named_reviewers(&mut ways);
    by_the_wrong_moment(&mut ways);
    by_many_at_once(&mut ways);
    by_the_gates(&mut ways);
    assert!(ways.tried.len() >= WAYS_MIN, "{} ways: {:#?}", ways.tried.len(), ways.tried);
    let whole = server.caller("people", "vic", &["viewer"]).get("/api/v1/audit/verify");
    assert_eq!(whole.status, 200, "{}", whole.text());
}

/// Whoever asked, under other tokens, roles and spellings.
fn by_one_person(ways: &mut Ways<'_>) {
    let server = ways.server;
    let vic = server.caller("people", "vic", &["viewer"]);
    let ann = server.caller("people", "ann", &["submitter", "worker", "operator", "approver"]);
    server.caller("people", "bob", &["approver"]);
    let item = dead_letter(&ann, "one");
    ask(&ann, &item);
    let same = (409, "APPROVAL_SAME_PERSON");
    let other = server.caller("people", "ann", &["approver"]);
    let admin = server.caller("people", "ann", &["admin"]);
    for (way, own) in [
        ("the same token", &ann),
        ("another token of the same person", &other),
        ("the same person as an admin", &admin),
    ] {
        ways.try_it((way, "ann"), &vic, same, || approve(own, &vic, &item));
    }
    let doubles = [
        ("in capitals", "ANN"),
        ("a capital", "Ann"),
        ("full-width letters", "\u{ff41}\u{ff4e}\u{ff4e}"),
        ("a full-width capital", "\u{ff21}NN"),
        ("a space of no width", "a\u{200b}nn"),
        ("a soft hyphen", "an\u{ad}n"),
        ("a letter of another alphabet", "\u{430}nn"),
    ];
    for (way, name) in doubles {
        let double = server.caller("people", name, &["approver"]);
        ways.try_it((way, name), &vic, same, || approve(&double, &vic, &item));
    }
    assert_eq!(vic.get(&item).data()["status"], "discard_requested");
}

/// People who are none of their own, or may not.
fn by_other_tokens(ways: &mut Ways<'_>) {
    let server = ways.server;
    let root = server.admin();
    let vic = server.caller("tokens", "vic", &["viewer"]);
    let zoe = mint(&root, "tokens", "zoe", &["admin", "submitter", "worker"]);
    let bob = mint(&root, "tokens", "bob", &["approver"]);
    let wes = mint(&root, "tokens", "wes", &["worker", "submitter"]);
    let made = (409, "APPROVAL_NOT_INDEPENDENT");
    let invented = mint(&zoe, "tokens", "invented", &["approver"]);
    let second = mint(&zoe, "tokens", "second", &["admin"]);
    let child = mint(&second, "tokens", "child", &["operator", "approver"]);
    let item = dead_letter(&zoe, "tokens");
    ask(&zoe, &item);
    for (way, who, own) in [
        ("an invented person", "invented", &invented),
        ("an admin of her own", "second", &second),
        ("whom her own admin made", "child", &child),
    ] {
        ways.try_it((way, who), &vic, made, || approve(own, &vic, &item));
    }
    let late = mint(&root, "tokens", "late", &["approver"]);
    let new = (409, "APPROVAL_TOKEN_TOO_NEW");
    ways.try_it(("a token made for the purpose", "late"), &vic, new, || {
        approve(&late, &vic, &item)
    });
    zoe.poke(&format!("{item}/reject")).data();
    ask(&zoe, &item);
    ways.try_it(("the same after asking again", "late"), &vic, new, || approve(&late, &vic, &item));
    let no = (403, "AUTH_FORBIDDEN");
    ways.try_it(("without the role", "wes"), &vic, no, || approve(&wes, &vic, &item));
    ways.try_it(("rejecting without the role", "wes"), &vic, no, || {
        wes.poke(&format!("{item}/reject"))
    });
    ways.try_it(("asking without the role", "wes"), &vic, no, || {
        wes.post(&format!("{item}/discard"), &json!({ "reason": "r" }))
    });
    ways.try_it(("breaking the glass without the role", "bob"), &vic, no, || {
        bob.post(&format!("{item}/break-glass"), &json!({ "reason": "r" }))
    });
    ways.try_it(
        ("breaking the glass without a reason", "zoe"),
        &vic,
        (400, "APPROVAL_REQUIRED"),
        || zoe.post(&format!("{item}/break-glass"), &json!({ "reason": " " })),
    );
    ways.try_it(("minting without the role", "bob"), &vic, no, || {
        let wish = json!({ "tenant_id": "tokens", "user_id": "eve", "roles": ["approver"] });
        bob.post("/api/v1/tokens", &wish)
    });
    let eva = server.caller("elsewhere", "eva", &["viewer"]);
    let stranger = server.caller("elsewhere", "eve", &["approver"]);
    ways.try_it(("from another tenant", "eve"), &eva, no, || approve(&stranger, &vic, &item));
    // Her creature asks, and she agrees.
    zoe.poke(&format!("{item}/reject")).data();
    ask(&child, &item);
    for (way, who, own) in
        [("the creature asks, she agrees", "zoe", &zoe), ("or her admin", "second", &second)]
    {
        ways.try_it((way, who), &vic, made, || approve(own, &vic, &item));
    }
    assert_eq!(vic.get(&item).data()["status"], "discard_requested");
    assert_eq!(approve(&bob, &vic, &item).data()["status"], "discarded", "bob is somebody else");
}

/// Two reviewers in one call, named by somebody.
fn by_named_reviewers(ways: &mut Ways<'_>) {
    let server = ways.server;
    let root = server.admin();
    let vic = server.caller("named", "vic", &["viewer"]);
    let zoe = mint(&root, "named", "zoe", &["admin", "submitter", "worker"]);
    mint(&root, "named", "bob", &["approver"]);
    mint(&zoe, "named", "child", &["operator", "approver"]);
    let internal = mint(&zoe, "named", "replay", &["internal"]);
    let ann = server.caller("named", "ann", &["operator", "approver"]);
    let item = dead_letter(&zoe, "named");
    let path = format!("{item}/discard");
    let by =
        |one: &str, two: &str| json!({ "reason": "r", "reviewer_id": one, "reviewer_id_2": two });
    let missing = (400, "APPROVAL_REQUIRED");
    for (way, one, two) in [
        ("two invented reviewers", "x", "y"),
        ("one invented reviewer", "bob", "y"),
        ("the caller as a reviewer", "bob", "replay"),
        ("herself and her creature", "zoe", "child"),
        ("who made the caller", "bob", "zoe"),
        ("one reviewer twice", "bob", "bob"),
        ("one reviewer in two spellings", " bob", "BOB "),
        ("one reviewer and nobody", "bob", " "),
    ] {
        ways.try_it((way, "replay"), &vic, missing, || internal.post(&path, &by(one, two)));
    }
    ways.try_it(
        ("naming reviewers without the role", "ann"),
        &vic,
        (403, "AUTH_FORBIDDEN"),
        || ann.post(&path, &by("bob", "zoe")),
    );
    assert_eq!(vic.get(&item).data()["status"], "open");
}

/// Too early, too late, or about something else by now.
fn by_the_wrong_moment(ways: &mut Ways<'_>) {
    let server = ways.server;
    let vic = server.caller("moment", "vic", &["viewer"]);
    let ann = server.caller("moment", "ann", &["submitter", "worker", "operator"]);
    let bob = server.caller("moment", "bob", &["approver"]);
    let item = dead_letter(&ann, "moment");
    let path = |verb: &str| format!("{item}/{verb}");
    for (way, reason) in [("without a reason", ""), ("with a blank reason", " \t\n")] {
        ways.try_it((way, "ann"), &vic, (400, "APPROVAL_REQUIRED"), || {
            ann.post(&path("discard"), &json!({ "reason": reason }))
        });
    }
    let not_now = (409, "DLQ_DISCARD_CONFLICT");
    ways.try_it(("before anybody asked", "bob"), &vic, not_now, || approve(&bob, &vic, &item));
    ask(&ann, &item);
    let seen = vic.get(&item).data()["version"].clone();
    ways.try_it(("requeueing what is to go", "ann"), &vic, (409, "DLQ_REQUEUE_CONFLICT"), || {
        ann.poke(&path("requeue"))
    });
    bob.poke(&path("reject")).data();
    ann.post(&path("discard"), &json!({ "reason": "another" })).data();
    ways.try_it(("what was read before it changed", "bob"), &vic, (409, "DLQ_VERSION_CONFLICT"), {
        || bob.post(&path("approve"), &json!({ "version": seen }))
    });
    let version = vic.get(&item).data()["version"].clone();
    assert_eq!(approve(&bob, &vic, &item).data()["status"], "discarded");
    ways.try_it(("the approval once more", "bob"), &vic, not_now, || {
        bob.post(&path("approve"), &json!({ "version": version }))
    });
    ways.try_it(("rejecting what is gone", "bob"), &vic, not_now, || bob.poke(&path("reject")));
    ways.try_it(("requeueing what is gone", "ann"), &vic, (409, "DLQ_REQUEUE_CONFLICT"), || {
        ann.poke(&path("requeue"))
    });
    let again = dead_letter(&ann, "moment");
    ann.poke(&format!("{again}/requeue")).data();
    ways.try_it(("dropping what runs again", "ann"), &vic, not_now, || {
        ann.post(&format!("{again}/discard"), &json!({ "reason": "r" }))
    });
}

/// Where nobody else could approve, asking is refused. The first admin is nobody else: it made them
/// all.
fn with_nobody(ways: &mut Ways<'_>) {
    let root = ways.server.admin();
    let una = mint(&root, "lonely", "una", &["submitter", "worker", "operator"]);
    let liv = mint(&root, "lonely", "liv", &["viewer"]);
    let item = dead_letter(&una, "lonely");
    let nobody = (409, "APPROVAL_NO_SECOND_PERSON");
    ways.try_it(("with nobody to agree", "una"), &liv, nobody, || {
        una.post(&format!("{item}/discard"), &json!({ "reason": "r" }))
    });
    let wish = json!({ "action": "requeue", "filter": { "type": "lonely" }, "reason": "r" });
    ways.try_it(("many with nobody to agree", "una"), &liv, nobody, || {
        una.post("/api/v1/bulk", &wish)
    });
}

/// The same thing to many, which takes a second person, too.
fn by_many_at_once(ways: &mut Ways<'_>) {
    let server = ways.server;
    let vic = server.caller("many", "vic", &["viewer"]);
    let ann = server.caller("many", "ann", &["submitter", "worker", "operator", "approver"]);
    let wish = json!({ "action": "requeue", "filter": { "type": "many" }, "reason": "r" });
    dead_letter(&ann, "many");
    let bob = server.caller("many", "bob", &["approver"]);
    let double = server.caller("many", "ANN", &["approver"]);
    let made = ann.post("/api/v1/bulk", &wish).data();
    assert_eq!(made["status"], "awaiting_approval");
    let path = format!("/api/v1/bulk/{}", text(&made, "bulk_id"));
    let agree = |who: &Caller, version: &Value| {
        who.post(&format!("{path}/approve"), &json!({ "version": version }))
    };
    let version = &made["version"];
    let same = (409, "APPROVAL_SAME_PERSON");
    ways.try_it(("many by herself", "ann"), &vic, same, || agree(&ann, version));
    ways.try_it(("many by a double", "ANN"), &vic, same, || agree(&double, version));
    let late = server.caller("many", "late", &["approver"]);
    let new = (409, "APPROVAL_TOKEN_TOO_NEW");
    ways.try_it(("many by a token for the purpose", "late"), &vic, new, || agree(&late, version));
    ways.try_it(("many as they were", "bob"), &vic, (409, "ENTITY_CHANGED"), || {
        agree(&bob, &json!(9))
    });
    ways.try_it(("many without the role", "vic"), &vic, (403, "AUTH_FORBIDDEN"), || {
        agree(&vic, version)
    });
    let agreed = agree(&bob, version).data();
    ways.try_it(("agreeing to many twice", "bob"), &vic, (409, "BULK_CONFLICT"), || {
        agree(&bob, &agreed["version"])
    });
}

/// A job on a high-risk object whose gate is closed.
fn by_the_gates(ways: &mut Ways<'_>) {
    let server = ways.server;
    let vic = server.caller("gates", "vic", &["viewer"]);
    let ann = server.caller("gates", "ann", &EVERYTHING);
    let ivy = server.caller("gates", "ivy", &["internal", "worker", "submitter"]);
    let wes = server.caller("gates", "wes", &["worker", "submitter"]);
    put(&ann, "m1", &json!({ "risk_tier": "high" }));
    gate(&ann, "risk", "block");
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let internal = |path: &str, body: &Value| {
        let request = ivy.request("POST", path).header("x-internal-debug", "true");
        request.json(body).send(ivy.address)
    };
    let governed = (409, "JOB_GOVERNED");
    let base = format!("/api/v1/internal/jobs/{id}");
    ways.try_it(("moving it by hand", "ivy"), &vic, governed, || {
        internal(&format!("{base}/transition"), &json!({ "new_status": "running" }))
    });
    ways.try_it(("running it by hand", "ivy"), &vic, governed, || {
        internal(&format!("{base}/run"), &json!({}))
    });
    ways.try_it(("having it wait for a person", "ivy"), &vic, governed, || {
        internal(&format!("{base}/interrupt"), &json!({ "question": "may it go?" }))
    });
    let no = (403, "AUTH_FORBIDDEN");
    ways.try_it(("moving it by hand without the role", "wes"), &vic, no, || {
        let path = format!("{base}/transition");
        let request = wes.request("POST", &path).header("x-internal-debug", "true");
        request.json(&json!({ "new_status": "running" })).send(wes.address)
    });
    let open = json!({ "state": "pass" });
    let low = json!({ "risk_tier": "low" });
    ways.try_it(("opening the gate as a worker", "wes"), &vic, no, || {
        wes.put("/scheduler/gates/risk", &open)
    });
    ways.try_it(("opening the gate natively", "ivy"), &vic, no, || {
        ivy.put("/api/v1/gates/risk", &open)
    });
    ways.try_it(("calling the object harmless", "wes"), &vic, no, || {
        wes.put("/scheduler/objects/memory/m1", &low)
    });
    ways.try_it(("calling it harmless natively", "ivy"), &vic, no, || {
        ivy.put("/api/v1/objects/memory/m1", &low)
    });
    // The queue behind a gate is nobody's, not even an admin's.
    let boss = server.caller("gates", "boss", &["admin"]);
    ways.try_it(("setting the queue behind the gate", "boss"), &vic, no, || {
        boss.put("/api/v1/queues/gate:risk", &json!({ "order": "aged" }))
    });
    ways.try_it(("resuming the queue behind the gate", "boss"), &vic, no, || {
        boss.poke("/api/v1/queues/gate:risk/resume")
    });
    assert_eq!(ann.path(&id), ["queued"], "nothing of it has moved the job");
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new(), "and it is held");
    // Handed out while the gate was open, which closes before the report.
    for (way, verb) in [("reporting after the gate closed", "ack"), ("renewing then", "renew")] {
        gate(&ann, "risk", "pass");
        let grant = eventually("it is handed out", || pulled(&ann, json!({})).pop());
        gate(&ann, "risk", "block");
        let body = json!({ "lease_token": grant["lease_token"] });
        ways.try_it((way, "ann"), &vic, (409, "GATE_CLOSED"), || report(&ann, verb, &id, &body));
    }
    gate(&ann, "risk", "pass");
    let grant = eventually("it is handed out", || pulled(&ann, json!({})).pop());
    // Natively it is told item by item.
    let before = denials(&vic).len();
    let told = ann.complete(&grant);
    assert_eq!(told["error"]["code"], "JOB_GOVERNED", "{told}");
    let after = denials(&vic);
    assert_eq!(after.len(), before + 1, "reporting it natively is told");
    assert_eq!((&after[0]["object_type"], &after[0]["object_id"]), (&json!("job"), &json!(id)));
    assert_eq!(job(&ann, &id)["status"], "running");
    assert_eq!(report(&ann, "ack", &id, &json!({})).status, 200, "its own way is open");
    ways.tried.push("reporting it natively".to_owned());
}
