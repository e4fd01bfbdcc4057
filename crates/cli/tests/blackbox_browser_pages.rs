//! The dashboard's desks in a real Chromium: dead letters, schedules, questions, and every other
//! page, as people with different roles use them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::browser::Browser;
use mainspring_testkit::browser::walk::{is_pictured, walk};
use serde_json::{Value, json};

both_stores![
    a_cron_schedule_is_previewed_and_then_made,
    a_discard_takes_one_who_asks_and_another_who_agrees,
    the_question_of_a_plan_is_answered,
    who_may_only_look_acts_on_no_page,
];

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

const EVERYTHING: [&str; 4] = ["submitter", "worker", "operator", "viewer"];

fn signed_in(server: &Server, who: &Caller) -> Browser {
    let browser = Browser::open();
    browser.sign_in(&server.url, &who.token);
    browser
}

/// Sends a form of this session to a path, and tells the status.
fn sent(browser: &Browser, path: &str) -> u64 {
    let status = browser.run(
        "const form = new URLSearchParams({ form: document.querySelector('[name=form]').value,\
           reason: 'r', version: '1', note: 'n', answer: 'a', gate: 'risk', state: 'block',\
           tenant_id: 't', user_id: 'u', roles: 'viewer', kind: 'cron', cron: '* * * * *',\
           job_type: 'x', payload: '{}', from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' });\
         const request = new XMLHttpRequest();\
         request.open('POST', arguments[0], false);\
         request.send(form); return request.status",
        &[json!(path)],
    );
    status.as_u64().unwrap()
}

fn dead(who: &Caller, job_type: &str, message: &str) -> String {
    let wish = json!({ "job_type": job_type, "payload": { "number": 42 }, "max_retries": 0 });
    let id = text(&who.submit(&wish), "job_id");
    let grant = who.pull_one(job_type);
    who.report("fail", &grant, json!({ "error_code": "NO_PAPER", "message": message }));
    eventually("the dead letter is written", || {
        let found = who.get("/api/v1/dlq/items?limit=100").data();
        let items = found["items"].as_array().unwrap().clone();
        let item = items.into_iter().find(|item| item["job_id"] == json!(id))?;
        Some(text(&item, "dlq_id"))
    })
}

/// A plan of this name that has asked a question.
fn asked(who: &Caller, id: &str, question: &str, options: &[&str]) {
    let made = who.post("/agent/plans", &json!({ "id": id, "prompt": "think" }));
    assert_eq!(made.status, 201, "{}", made.text());
    let body = json!({ "status": "needs_input", "question": question, "options": options,
        "default": options.first() });
    let told = who.post(&format!("/agent/plans/{id}/result"), &body);
    assert_eq!(told.status, 200, "{}", told.text());
}

fn a_cron_schedule_is_previewed_and_then_made(store: Store) {
    let server = server(store);
    let sam = server.caller("p1", "sam", &EVERYTHING);
    server.admin().put("/api/v1/types/greet", &json!({})).data();
    let browser = signed_in(server, &sam);
    browser.go(&format!("{}/ui/schedules", server.url));
    browser.wait_for(".teach", |text| text.contains("mainspring schedules create"));
    browser.click(".head-links a");
    browser.fill("#schedule-name", "morning round");
    browser.run("document.querySelector('#schedule-job_type').value = 'greet'", &[]);
    // What is wrong is told, and what was typed stays.
    browser.fill("#schedule-cron", "0 9 * *");
    browser.click("#schedule-go");
    browser.wait_for(".say-bad", |said| said.contains("cron"));
    let typed = "return document.querySelector('#schedule-name').value";
    assert_eq!(browser.run(typed, &[]), json!("morning round"));
    browser.fill("#schedule-cron", "30 9 * * 1-5");
    browser.fill("#schedule-timezone", "Asia/Shanghai");
    browser.click("#schedule-go");
    browser.wait_for("#firings", |firings| firings.contains("09:30:00+08:00"));
    assert!(browser.count("#coming .fire") >= 5, "the calendar shows the firings");
    let made = sam.get("/api/v1/schedules").data();
    assert_eq!(made["items"], json!([]), "a look makes nothing");
    browser.click("#save-go");
    browser.wait_for("#thing-state", |state| state == "active");
    browser.wait_for("h1", |title| title == "morning round");
    browser.wait_for("#firings", |firings| firings.contains("09:30:00+08:00"));
    let made = sam.get("/api/v1/schedules").data();
    assert_eq!(made["items"][0]["cron"], "30 9 * * 1-5");
    // It rests, says why, and goes on; and it makes a job when asked.
    browser.fill("#pause-note", "the printer is moved");
    browser.click("#pause-go");
    browser.wait_for("#thing-state", |state| state == "paused");
    browser.wait_for("main", |page| page.contains("Paused by sam: the printer is moved"));
    browser.click("#resume-go");
    browser.wait_for("#thing-state", |state| state == "active");
    browser.click("#trigger-go");
    browser.wait_for("#job-state", |state| state == "queued");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn a_discard_takes_one_who_asks_and_another_who_agrees(store: Store) {
    let server = server(store);
    let ann = server.caller("p2", "ann", &EVERYTHING);
    let bob = server.caller("p2", "bob", &["approver", "viewer"]);
    let item = dead(&ann, "p2", "the printer 17 is empty");
    let kept = dead(&ann, "p2", "the printer 18 is empty");
    let (asks, agrees) = (signed_in(server, &ann), signed_in(server, &bob));
    // Both have the same failure: one line, two of them.
    asks.go(&format!("{}/ui/dlq", server.url));
    asks.wait_for("#list", |list| list.contains("NO_PAPER") && list.contains("new"));
    assert_eq!(asks.count("#list tbody tr"), 1);
    asks.wait_for("#list td.num", |count| count == "2");
    asks.click("#list .c-failure a");
    asks.wait_for("#list", |list| list.contains("printer 17") && list.contains("printer 18"));
    asks.go(&format!("{}/ui/dlq/items/{item}", server.url));
    asks.wait_for("#payload", |payload| payload.contains("42"));
    assert_eq!(asks.count("#approve"), 0, "who asks does not agree");
    asks.fill("#discard-reason", "nobody wants it");
    asks.click("#discard-go");
    asks.wait_for("#thing-state", |state| state == "discard asked for");
    // The other person sees who asks and why, refuses one and agrees to one.
    agrees.go(&format!("{}/ui/dlq/items?status=discard_requested", server.url));
    agrees.click(&format!("a[href='/ui/dlq/items/{item}']"));
    agrees.wait_for("#decision", |it| it.contains("ann") && it.contains("nobody wants it"));
    assert_eq!(agrees.count("#requeue"), 0, "an approver runs nothing");
    agrees.click("#reject-go");
    agrees.wait_for("#thing-state", |state| state == "open");
    asks.go(&format!("{}/ui/dlq/items/{item}", server.url));
    asks.fill("#discard-reason", "really");
    asks.click("#discard-go");
    asks.wait_for("#thing-state", |state| state == "discard asked for");
    agrees.go(&format!("{}/ui/dlq/items/{item}", server.url));
    agrees.click("#approve-go");
    agrees.wait_for("#thing-state", |state| state == "discarded");
    agrees.wait_for("#decision", |it| it.contains("ann") && it.contains("bob"));
    let read = ann.get(&format!("/api/v1/dlq/items/{item}")).data();
    assert_eq!((&read["requested_by"], &read["approved_by"]), (&json!("ann"), &json!("bob")));
    // The other one is run again with another payload.
    asks.go(&format!("{}/ui/dlq/items/{kept}", server.url));
    asks.fill("#edit-payload", "{\"number\": 43");
    asks.click("#edit-go");
    asks.wait_for(".say-bad", |said| said.contains("JSON"));
    asks.fill("#edit-payload", "{\"number\": 12345678901234567890}");
    asks.click("#edit-go");
    asks.wait_for("#job-state", |state| state == "queued");
    asks.wait_for(".json", |payload| payload.contains("12345678901234567890"));
    assert_eq!(ann.get(&format!("/api/v1/dlq/items/{kept}")).data()["status"], "open");
    asks.go(&format!("{}/ui/dlq/items/{kept}", server.url));
    asks.click("#requeue-go");
    asks.wait_for("#job-state", |state| state == "queued");
    assert_eq!(ann.get(&format!("/api/v1/dlq/items/{kept}")).data()["status"], "requeued");
}

fn the_question_of_a_plan_is_answered(store: Store) {
    let server = server(store);
    let ann = server.caller("p3", "ann", &EVERYTHING);
    let vi = server.caller("p3", "vi", &["viewer"]);
    asked(&ann, "p3-colour", "which colour?", &["blue", "green"]);
    let looks = signed_in(server, &vi);
    looks.go(&format!("{}/ui/questions", server.url));
    looks.wait_for("main", |page| page.contains("which colour?"));
    assert_eq!(looks.count("main form"), 0, "who may not answer has no form");
    let browser = signed_in(server, &ann);
    browser.go(&format!("{}/ui/questions", server.url));
    browser.wait_for("main", |page| page.contains("which colour?") && page.contains("p3-colour"));
    let chosen = "return document.querySelector('[name=answer]:checked').value";
    assert_eq!(browser.run(chosen, &[]), json!("blue"), "the default is chosen");
    browser.click("[name=answer][value=green]");
    browser.click(".desk-form button");
    browser.wait_for(".say-good", |said| said.contains("Answered"));
    let plan = ann.get("/agent/plans/p3-colour");
    let plan: Value = serde_json::from_str(&plan.text()).unwrap();
    assert_eq!(plan["answer"], "green", "{plan}");
    browser.go(&format!("{}/ui/questions?state=answered", server.url));
    browser.wait_for("#list", |list| list.contains("green") && list.contains("by ann"));
}

/// Something of everything, and the pages it is on.
fn house(server: &Server, who: &Caller, tenant: &str, words: &str) -> Vec<(&'static str, String)> {
    let admin = server.admin();
    let job_type = format!("{tenant}.job");
    admin.put(&format!("/api/v1/types/{job_type}"), &json!({ "timeout_seconds": 90 })).data();
    let item = dead(who, &job_type, words);
    // Schedules make jobs of another type: what one of them fires is nobody's here.
    let rounds = format!("{tenant}.rounds");
    admin.put(&format!("/api/v1/types/{rounds}"), &json!({})).data();
    let wish = json!({ "name": words, "job_type": rounds, "kind": "cron", "cron": "0 9 * * 1-5",
        "timezone": "Asia/Shanghai", "payload": { "text": words } });
    let schedule = text(&who.post("/api/v1/schedules", &wish).data(), "schedule_id");
    let paused = text(&who.post("/api/v1/schedules", &wish).data(), "schedule_id");
    let note = json!({ "note": words });
    who.post(&format!("/api/v1/schedules/{paused}/pause"), &note).data();
    let wish = json!({ "id": format!("{tenant}-t"), "type": "recurring", "prompt": words,
        "schedule": { "interval": 3600 } });
    let trigger = text(&who.post("/api/v1/triggers", &wish).data(), "id");
    asked(who, &format!("{tenant}-plan"), words, &[words, "other"]);
    let wish = json!({ "name": words, "url": "https://hooks.example.com/billing" });
    let told = who.post("/api/v1/subscriptions", &wish);
    let subscription = text(&told.data(), "subscription_id");
    let risk = json!({ "risk_tier": "high" });
    who.put(&format!("/api/v1/objects/memory/{tenant}-m"), &risk).data();
    let gate = json!({ "state": "pass", "reason": words });
    who.put("/api/v1/gates/risk", &gate).data();
    who.pull("nothing-of-this-type", 1);
    vec![
        ("dlq", "/ui/dlq".into()),
        ("dlq-items", "/ui/dlq/items?status=open".into()),
        ("dlq-item", format!("/ui/dlq/items/{item}")),
        ("schedules", "/ui/schedules".into()),
        ("schedule", format!("/ui/schedules/{schedule}")),
        ("schedule-paused", format!("/ui/schedules/{paused}")),
        ("questions", "/ui/questions".into()),
        ("alerts", "/ui/alerts".into()),
        ("triggers", "/ui/triggers".into()),
        ("trigger", format!("/ui/triggers/{trigger}")),
        ("types", "/ui/types".into()),
        ("type", format!("/ui/types/{job_type}")),
        ("workers", "/ui/workers".into()),
        ("objects", "/ui/objects".into()),
        ("object", format!("/ui/objects/memory/{tenant}-m")),
        ("audit", "/ui/audit".into()),
        ("subscriptions", "/ui/subscriptions".into()),
        ("subscription", format!("/ui/subscriptions/{subscription}")),
        ("health", "/ui/health".into()),
    ]
}

fn who_may_only_look_acts_on_no_page(store: Store) {
    let server = server(store);
    let op = server.caller("p4", "op", &EVERYTHING);
    let pages = house(server, &op, "p4", "words of p4");
    let vi = server.caller("p4", "vi", &["viewer"]);
    let browser = signed_in(server, &vi);
    for (name, path) in &pages {
        browser.go(&format!("{}{path}", server.url));
        // Filters look; the audit trail may be verified by whoever may read it.
        let forms = browser.count("main form[method=post]:not([action='/ui/audit/verify'])");
        assert_eq!(forms, 0, "{name}");
    }
    let of = |name: &str| pages.iter().find(|(known, _)| *known == name).unwrap().1.clone();
    let (item, schedule, trigger) = (of("dlq-item"), of("schedule"), of("trigger"));
    let subscription = of("subscription");
    let mut steps: Vec<String> = Vec::new();
    for step in ["requeue", "resubmit", "discard", "approve", "reject", "break-glass"] {
        steps.push(format!("{item}/{step}"));
    }
    for step in ["pause", "resume", "stop", "trigger", "backfill"] {
        steps.push(format!("{schedule}/{step}"));
    }
    steps.extend(["pause", "resume"].map(|step| format!("{trigger}/{step}")));
    steps.extend(["pause", "resume"].map(|step| format!("{subscription}/{step}")));
    steps.extend(
        [
            "/ui/schedules",
            "/ui/new-schedule",
            "/ui/types",
            "/ui/subscriptions",
            "/ui/triggers",
            "/ui/queues/default/pause",
            "/ui/queues/default/resume",
            "/ui/gates/set",
            "/ui/tokens",
            "/ui/tenants",
            "/ui/tokens/tok_1/revoke",
            "/ui/questions/p4-plan/answer",
            "/ui/alerts/alr_1/acknowledge",
        ]
        .map(str::to_owned),
    );
    for step in &steps {
        assert_eq!(sent(&browser, step), 403, "{step}");
    }
    for page in ["/ui/tokens", "/ui/queues", "/ui/new-schedule"] {
        browser.go(&format!("{}{page}", server.url));
        browser.wait_for("h1", |title| title.contains("not yours"));
    }
    assert_eq!(op.get(&item.replace("/ui/", "/api/v1/")).data()["status"], "open");
    assert_eq!(op.get(&schedule.replace("/ui/", "/api/v1/")).data()["status"], "active");
}

#[test]
fn an_admin_makes_and_ends_tokens_and_pauses_a_queue() {
    let server = server(Store::Memory);
    let admin = server.admin();
    let browser = signed_in(server, &admin);
    browser.go(&format!("{}/ui/tokens", server.url));
    browser.fill("#issue-tenant_id", "p5");
    browser.fill("#issue-user_id", "new-hire");
    browser.click("[name=roles][value=viewer]");
    browser.click("[name=roles][value=submitter]");
    browser.click("#issue-go");
    let secret = browser.wait_for("#secret pre", |secret| !secret.is_empty());
    let hire = Caller { address: server.address, token: secret.clone() };
    let me = hire.get("/api/v1/whoami").data();
    assert_eq!((&me["user_id"], &me["tenant_id"]), (&json!("new-hire"), &json!("p5")));
    browser.go(&format!("{}/ui/tokens", server.url));
    let page = browser.text("main").unwrap();
    assert!(!page.contains(&secret), "the secret is shown once");
    hire.submit_plain("p5");
    browser.go(&format!("{}/ui/queues", server.url));
    browser.click("#pause-default");
    browser.wait_for("#list", |list| list.contains("paused"));
    browser.click("#resume-default");
    browser.wait_for("#list", |list| !list.contains("paused"));
    browser.go(&format!("{}/ui/audit", server.url));
    browser.wait_for("#list", |list| list.contains("queue.pause"));
    browser.click("#verify-go");
    browser.wait_for(".say-good", |said| said.contains("whole"));
}

/// 200 strings that would run if a page took them for anything but text, in every text that these
/// pages show.
#[test]
fn hostile_strings_are_only_text_on_every_desk() {
    let server = server(Store::Memory);
    let mal = server.caller("p6", "mal", &EVERYTHING);
    let made = house(server, &mal, "p6", "<script>window.owned=1</script>");
    let tags = [
        "<script>window.owned=1</script>",
        "<img src=x onerror=window.owned=1>",
        "<svg onload=window.owned=1>",
        "<iframe srcdoc='<script>parent.owned=1</script>'>",
        "<details open ontoggle=owned=1>",
        "<form action=http://evil.example><input autofocus onfocus=owned=1>",
        "javascript:window.owned=1",
        "{{constructor.constructor('owned=1')()}}",
        "<style>*{background:url(http://evil.example)}</style>",
        "<x-made onclick=owned=1>",
    ];
    let frames = [
        "{}",
        "\">{}",
        "'>{}",
        "</textarea>{}",
        "</title>{}",
        "</pre>{}",
        "--> {}",
        "]]>{}",
        "\\u003c{}",
        "%3C{}",
        "</option>{}",
        "</select>{}",
        "</script>{}",
        "</style>{}",
        "`{}`",
        "&lt;{}",
        "{}<!--",
        "<{}",
        "a {} b",
        "\" autofocus onfocus=owned=1 x=\"{}",
    ];
    let mut pages: Vec<String> = made.into_iter().map(|(_, path)| path).collect();
    let mut count = 0;
    for tag in tags {
        for frame in frames {
            let text_of = frame.replace("{}", tag);
            count += 1;
            let wish = json!({ "name": text_of, "job_type": "p6.rounds", "kind": "interval",
                "interval_seconds": 3600, "payload": { "text": text_of },
                "labels": { "l": text_of } });
            let schedule = mal.post("/api/v1/schedules", &wish);
            if schedule.status == 201 {
                pages.push(format!("/ui/schedules/{}", text(&schedule.data(), "schedule_id")));
            }
            if count % 5 == 0 {
                pages.push(format!("/ui/dlq/items/{}", dead(&mal, "p6.job", &text_of)));
                let query = text_of.bytes().map(|byte| format!("%{byte:02x}"));
                let query: String = query.collect();
                pages.push(format!("/ui/audit?actor={query}"));
                pages.push(format!("/ui/dlq/items?type={query}"));
                let reason = json!({ "state": "pass", "reason": text_of });
                mal.put("/api/v1/gates/risk", &reason);
                let wish = json!({ "tenant_id": text_of, "user_id": text_of, "roles": ["viewer"] });
                server.admin().post("/api/v1/tokens", &wish);
                server.admin().put(&format!("/api/v1/types/{query}"), &json!({}));
            }
        }
    }
    assert_eq!(count, 200);
    let look = |browser: &Browser, page: &str| {
        browser.go(&format!("{}{page}", server.url));
        let found = browser.run(
            "return [window.owned ?? null, document.querySelectorAll('main script, main iframe, \
             main object, main img, main style, main x-made, main [onerror], main [onload], \
             main [onfocus], main [ontoggle], main [onclick], main form[action^=http]').length, \
             location.host, document.querySelector('main') !== null]",
            &[],
        );
        assert_eq!(found, json!([null, 0, server.address.to_string(), true]), "{page}");
    };
    let browser = signed_in(server, &mal);
    for page in &pages {
        look(&browser, page);
    }
    let browser = signed_in(server, &server.admin());
    for page in ["/ui/tokens", "/ui/types", "/ui/queues", "/ui/audit", "/ui/workers"] {
        look(&browser, page);
    }
    let asked = browser.asked_for();
    let others: Vec<_> = asked.iter().filter(|url| url.contains("evil.example")).collect();
    assert!(others.is_empty(), "{others:?}");
    println!("{count} hostile strings on {} pages", pages.len());
}

/// Every desk, wide and narrow, light and dark, in both languages.
#[test]
fn desks_fit_wide_and_narrow_in_both_languages() {
    let server = server(Store::Memory);
    let pat = server.caller("p7", "pat", &["submitter", "worker", "operator", "approver", "admin"]);
    let long = if is_pictured() { String::new() } else { "z".repeat(90) };
    let words = format!("the printer on floor 7 is out of paper {long}").trim_end().to_owned();
    let mut pages = house(server, &pat, "p7", &words);
    pages.push(("schedule-new", "/ui/new-schedule".into()));
    pages.push(("type-new", "/ui/new-type?name=p7.job".into()));
    pages.push(("subscription-new", "/ui/new-subscription".into()));
    pages.push(("trigger-new", "/ui/new-trigger".into()));
    pages.push(("queues", "/ui/queues".into()));
    pages.push(("tokens", "/ui/tokens".into()));
    let browser = signed_in(server, &pat);
    let walked = walk(&browser, &server.url, &pages);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    println!("{} looks, {} by axe-core", walked.looks, walked.examined);
}
