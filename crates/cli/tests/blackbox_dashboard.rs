//! The dashboard's doors from outside, without a browser: who gets in, for how long, what a form
//! needs, what a page may load, and what whoever may only look can do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::visitor::hidden;
use mainspring_testkit::blackbox::{
    Caller, Nodes, PerStore, Request, Server, Store, Visitor, eventually, run,
};
use mainspring_testkit::both_stores;
use mainspring_testkit::postgres::{Cluster, ClusterOptions};
use serde_json::json;

both_stores![
    a_token_signs_in_and_its_revocation_signs_out_at_once,
    a_form_of_another_page_changes_nothing,
    who_may_only_look_is_shown_no_button_and_is_refused,
    every_page_keeps_to_itself,
    the_link_of_the_start_signs_in_once,
    lists_are_pages_of_what_one_may_see,
    a_dead_letter_runs_again_and_a_job_is_cancelled,
    many_are_cancelled_after_a_look,
    what_is_not_there_or_not_allowed_has_a_page,
    types_subscriptions_and_triggers_are_made_by_forms,
    tenants_are_shown_and_set_beside_tokens,
    the_jobs_around_a_job_are_drawn,
    what_needs_a_person_leads_to_where_it_is_dealt_with,
    the_commands_that_empty_pages_teach_are_understood,
];

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

const EVERYTHING: [&str; 4] = ["submitter", "worker", "operator", "viewer"];

fn dead(who: &Caller, job_type: &str) -> String {
    let id = who.submit_plain(job_type);
    who.fail(&who.pull_one(job_type), "NO_PAPER", false);
    id
}

fn a_token_signs_in_and_its_revocation_signs_out_at_once(store: Store) {
    let server = server(store);
    let asked = server.send(&Request::new("GET", "/ui/jobs?status=failed"));
    let to = asked.header("location").unwrap().to_owned();
    assert_eq!((asked.status, &*to), (303, "/sign-in?to=%2Fui%2Fjobs%3Fstatus%3Dfailed"));
    let mut stranger = Visitor::new(server);
    for wrong in ["", "nonsense", "ms_blackbox_0123456789abcdef"] {
        let refused = stranger.enter(&[("token", wrong)]);
        assert_eq!(refused.status, 403, "{wrong}");
        assert_eq!(stranger.get("/").status, 303, "{wrong}");
    }
    let elsewhere = stranger.enter(&[("token", &server.admin), ("to", "//evil.example")]);
    assert_eq!(elsewhere.header("location"), Some("/"), "nobody is sent elsewhere");

    let made = json!({ "tenant_id": "d1", "user_id": "dora", "roles": EVERYTHING });
    let made = server.admin().post("/api/v1/tokens", &made).data();
    let dora = Caller { address: server.address, token: text(&made, "token") };
    let visitor = Visitor::signed_in(server, &dora);
    let cookie = visitor.cookies.iter().find(|(name, _)| name.contains("session")).unwrap();
    assert!(!dora.token.contains(&cookie.1) && !cookie.1.contains("ms_"), "no part of the token");
    let page = visitor.get("/").text();
    assert!(page.contains("<b>dora</b>") && page.contains("@ d1"), "{page}");
    let bearer = Request::new("GET", "/api/v1/jobs").token(&cookie.1);
    assert_eq!(server.send(&bearer).status, 401, "a session is no token");

    let revoke = format!("/api/v1/tokens/{}", text(&made, "token_id"));
    assert!(server.admin().delete(&revoke).status < 300);
    assert_eq!(visitor.get("/").status, 303, "at once");
    assert_eq!(visitor.get("/ui/live").status, 303);

    let ada = server.caller("d1", "ada", &EVERYTHING);
    let (one, other) = (Visitor::signed_in(server, &ada), Visitor::signed_in(server, &ada));
    assert_eq!(one.send("/sign-out", &[]).status, 303);
    assert_eq!(one.get("/").status, 303, "signed out");
    assert_eq!(other.get("/").status, 200, "the other browser stays");
}

fn a_form_of_another_page_changes_nothing(store: Store) {
    let server = server(store);
    let eve = server.caller("d2", "eve", &EVERYTHING);
    let visitor = Visitor::signed_in(server, &eve);
    let id = eve.submit_plain("d2");
    let path = format!("/ui/jobs/{id}/cancel");
    let others = Visitor::signed_in(server, &server.caller("d2", "eve", &EVERYTHING));
    let forged = [
        visitor.post(&path, &[]),
        visitor.post(&path, &[("form", "")]),
        visitor.post(&path, &[("form", "0123456789abcdef")]),
        visitor.post(&path, &[("form", &others.form)]),
    ];
    for (index, refused) in forged.into_iter().enumerate() {
        assert_eq!(refused.status, 403, "{index}");
        assert!(refused.text().contains("FORM_FOREIGN"), "{index}");
    }
    // The right form, sent from elsewhere.
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
    ] {
        let body = format!("form={}", visitor.form);
        let request = visitor.request("POST", &path).header(name, value).body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(server.send(&request).status, 403, "{name}: {value}");
    }
    // As text or as JSON, which a foreign page could send without being asked.
    for kind in ["text/plain", "application/json"] {
        let body = format!("form={}", visitor.form);
        let request = visitor.request("POST", &path).header("content-type", kind).body(body);
        assert_eq!(server.send(&request).status, 415, "{kind}");
    }
    assert_eq!(visitor.get(&path).status, 405, "looking changes nothing");
    assert_eq!(eve.job(&id)["status"], "queued");
    let mut fresh = Visitor::new(server);
    let page = fresh.get("/sign-in");
    let form = hidden(&page.text(), "form");
    let alone = fresh.post("/sign-in", &[("form", &form), ("token", &eve.token)]);
    assert_eq!(alone.status, 403, "the sign-in form needs its cookie");
    fresh.take_cookies(&page);
    assert_eq!(visitor.send(&path, &[]).status, 303);
    assert_eq!(eve.job(&id)["status"], "cancelled");
}

fn who_may_only_look_is_shown_no_button_and_is_refused(store: Store) {
    let server = server(store);
    let op = server.caller("d3", "op", &EVERYTHING);
    let failed = dead(&op, "d3");
    let waiting = op.submit_plain("d3-waits");
    let looker = Visitor::signed_in(server, &server.caller("d3", "vi", &["viewer"]));
    let may = Visitor::signed_in(server, &op);
    for (id, button) in [(&failed, "id=\"requeue\""), (&waiting, "id=\"cancel\"")] {
        let path = format!("/ui/jobs/{id}");
        assert!(may.get(&path).text().contains(button), "{button}");
        assert!(!looker.get(&path).text().contains(button), "{button}");
    }
    assert!(may.get("/ui/jobs?status=queued").text().contains("bulk-cancel"));
    assert!(!looker.get("/ui/jobs?status=queued").text().contains("bulk-cancel"));
    for path in [
        format!("/ui/jobs/{failed}/requeue"),
        format!("/ui/jobs/{waiting}/cancel"),
        "/ui/bulk".to_owned(),
    ] {
        let fields = [("action", "cancel"), ("status", "queued"), ("type", "d3-waits")];
        let fields = [&fields[..], &[("reason", "because")]].concat();
        let refused = looker.send(&path, &fields);
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        assert!(refused.text().contains("AUTH_FORBIDDEN"), "{path}");
    }
    assert_eq!(looker.get("/ui/bulk/new?action=cancel&status=queued&type=d3").status, 403);
    assert_eq!(op.job(&waiting)["status"], "queued");
    assert_eq!(op.job(&failed)["status"], "failed");
    // Of another tenant nothing is there, for whoever may do anything in their own.
    let stranger = Visitor::signed_in(server, &server.caller("d3b", "op", &EVERYTHING));
    assert_eq!(stranger.get(&format!("/ui/jobs/{waiting}")).status, 403);
    assert_eq!(stranger.send(&format!("/ui/jobs/{waiting}/cancel"), &[]).status, 403);
    assert_eq!(stranger.send(&format!("/ui/jobs/{failed}/requeue"), &[]).status, 403);
    assert!(!stranger.get("/ui/jobs").text().contains(&waiting));
}

fn every_page_keeps_to_itself(store: Store) {
    let server = server(store);
    let pia = server.caller("d4", "pia", &EVERYTHING);
    let id = dead(&pia, "d4");
    let visitor = Visitor::signed_in(server, &pia);
    let job = format!("/ui/jobs/{id}");
    for path in ["/", "/ui/jobs", &job, "/ui/bulk", "/sign-in", "/ui/nothing", "/ui/jobs/x"] {
        let page = visitor.get(path);
        let policy = page.header("content-security-policy").unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        for part in ["script-src 'self'", "style-src 'self'", "connect-src 'self'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{path}");
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(page.header(name), Some(value), "{path}");
        }
        let html = page.text();
        assert!(!html.contains("<style") && !html.contains(" style="), "{path}");
        assert!(!html.contains("<script>") && !html.contains(" onclick"), "{path}");
        assert!(!html.contains("http://") && !html.contains("https://"), "{path}: {html}");
    }
    for asset in ["/ui/dashboard.css", "/ui/dashboard.js", "/ui/icon.svg"] {
        let kept = server.send(&Request::new("GET", &format!("{asset}?v=1")));
        assert!(kept.header("cache-control").unwrap().contains("immutable"), "{asset}");
        assert_eq!((kept.status, kept.header("x-content-type-options")), (200, Some("nosniff")));
    }
    let session = visitor.request("GET", "/").header("x-forwarded-proto", "https");
    assert_eq!(server.send(&session).status, 200);
    let page = Request::new("GET", "/sign-in").header("x-forwarded-proto", "https");
    let cookie = server.send(&page).header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let chinese = visitor.request("GET", "/").header("accept-language", "zh-CN,en;q=0.5");
    let page = server.send(&chinese).text();
    assert!(page.contains("lang=\"zh-CN\"") && page.contains("生命周期"), "{page}");
    let switched = visitor.get("/ui/language?to=zh-CN&back=/ui/jobs");
    assert_eq!((switched.status, switched.header("location")), (303, Some("/ui/jobs")));
    assert!(switched.header("set-cookie").unwrap().contains("=zh-CN;"));
    let led = Request::new("GET", &job).header("sec-fetch-site", "cross-site");
    let led = server.send(&led);
    assert!(led.status == 200 && led.text().contains("http-equiv=\"refresh\""), "{}", led.text());
}

fn the_link_of_the_start_signs_in_once(store: Store) {
    let mut own = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let link = |server: &Server| {
        let said = std::fs::read_to_string(server.directory().join("stdout")).unwrap();
        let line = said.lines().find(|line| line.starts_with("dashboard ")).unwrap().to_owned();
        line.split_once("?once=").unwrap().1.split_once(' ').unwrap().0.to_owned()
    };
    let first = link(&own);
    own.restart();
    let second = link(&own);
    assert_ne!(first, second);
    let own = &own;
    let page = Visitor::new(own).get(&format!("/sign-in?once={second}"));
    assert!(page.text().contains(&second), "looking at the link does not use it");
    let mut late = Visitor::new(own);
    assert_eq!(late.enter(&[("once", &first)]).status, 403, "the start before had another");
    let mut visitor = Visitor::new(own);
    assert_eq!(visitor.enter(&[("once", &second)]).status, 303);
    assert!(visitor.get("/").text().contains("<b>admin</b>"));
    assert_eq!(Visitor::new(own).enter(&[("once", &second)]).status, 403, "it was used");
}

fn lists_are_pages_of_what_one_may_see(store: Store) {
    let server = server(store);
    let li = server.caller("d5", "li", &EVERYTHING);
    let wishes: Vec<_> = (0..55)
        .map(|n| json!({ "job_type": "d5", "payload": { "n": n }, "queue": "q5" }))
        .collect();
    li.post("/api/v1/jobs/batch", &json!({ "jobs": wishes })).data();
    li.submit_plain("d5-other");
    let visitor = Visitor::signed_in(server, &li);
    let rows = |page: &str| page.matches("class=\"c-job\"").count();
    let first = visitor.get("/ui/jobs?status=queued&type=d5&queue=&error_code=").text();
    assert_eq!(rows(&first), 50, "empty fields of the form are no filters");
    let (_, rest) = first.split_once("rel=\"next\" href=\"").unwrap();
    let next = rest.split_once('"').unwrap().0.replace("&#38;", "&").replace("&amp;", "&");
    let second = visitor.get(&next).text();
    assert_eq!(rows(&second), 5, "{next}");
    assert!(!second.contains("rel=\"next\"") && second.contains("rel=\"first\""));
    let wrong = visitor.get("/ui/jobs?status=nonsense");
    assert!(wrong.status == 200 && wrong.text().contains("is not a state"), "{}", wrong.text());
    let id = li.submit_plain("d5-other");
    let found = visitor.get(&format!("/ui/jobs?find={id}"));
    assert_eq!(found.header("location"), Some(&*format!("/ui/jobs/{id}")));
    // The task that counts comes by soon.
    eventually("the tabs have numbers", || {
        let page = visitor.get("/ui/jobs").text();
        page.contains("id=\"tab-queued\"").then_some(())?;
        let (_, rest) = page.split_once("id=\"tab-queued\"")?;
        rest.split_once("</a>")?.0.contains("<b>57</b>").then_some(())
    });
    let stranger = Visitor::signed_in(server, &server.caller("d5b", "li", &EVERYTHING));
    assert_eq!(rows(&stranger.get("/ui/jobs").text()), 0);
    let own = Visitor::signed_in(server, &server.caller("d5", "other", &["submitter"]));
    assert_eq!(rows(&own.get("/ui/jobs").text()), 0, "a submitter sees their own");
}

fn a_dead_letter_runs_again_and_a_job_is_cancelled(store: Store) {
    let server = server(store);
    let rex = server.caller("d6", "rex", &EVERYTHING);
    let payload = r#"{"big":12345678901234567890,"exact":1.10}"#;
    let wish = json!({ "job_type": "d6", "payload": {}, "labels": { "a": "b" } });
    let wish = wish.to_string().replace("{}", payload);
    let made = rex.request("POST", "/api/v1/jobs").header("content-type", "application/json");
    let id = text(&made.body(wish).send(server.address).data(), "job_id");
    rex.fail(&rex.pull_one("d6"), "NO_PAPER", false);
    let visitor = Visitor::signed_in(server, &rex);
    let path = format!("/ui/jobs/{id}");
    let page = visitor.get(&path).text();
    for part in
        ["NO_PAPER", "as told", "12345678901234567890", "1.10", "dead_letter", "dlq_recorded"]
    {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let requeued = visitor.send(&format!("{path}/requeue"), &[]);
    let new = requeued.header("location").unwrap().to_owned();
    assert_eq!(requeued.status, 303);
    assert_ne!(new, path);
    let page = visitor.get(&new).text();
    assert!(page.contains("say-good") && page.contains(&id), "it tells, and leads back: {page}");
    assert!(!visitor.get(&new).text().contains("say-good"), "once");
    let again = visitor.send(&format!("{path}/requeue"), &[]);
    assert_eq!((again.status, again.header("location")), (303, Some(&*path)));
    assert!(visitor.get(&path).text().contains("DLQ_REQUEUE_CONFLICT"), "a no is told on the page");
    let cancelled = visitor.send(&format!("{new}/cancel"), &[("reason", "<b>no</b>")]);
    assert_eq!(cancelled.status, 303);
    let page = visitor.get(&new).text();
    assert!(page.contains("&#60;b&#62;no&#60;") || page.contains("&lt;b&gt;no&lt;"), "{page}");
    let trail = server.caller("d6", "aud", &["viewer"]).get("/api/v1/audit").data();
    assert!(trail.to_string().contains("requeue"), "the native trail has it: {trail}");
}

fn many_are_cancelled_after_a_look(store: Store) {
    let server = server(store);
    let bob = server.caller("d7", "bob", &EVERYTHING);
    let ids: Vec<String> = (0..5).map(|_| bob.submit_plain("d7")).collect();
    let other = bob.submit_plain("d7-other");
    let visitor = Visitor::signed_in(server, &bob);
    let bare = visitor.get("/ui/bulk/new?action=cancel&status=queued").text();
    assert!(bare.contains("say-bad") && !bare.contains("bulk-go"), "native wants a filter: {bare}");
    let page = visitor.get("/ui/bulk/new?action=cancel&status=queued&type=d7").text();
    assert!(page.contains("id=\"matched\">5 "), "{page}");
    assert!(ids.iter().all(|id| bob.job(id)["status"] == "queued"), "looking does nothing");
    let fields = [("action", "cancel"), ("status", "queued"), ("type", "d7")];
    let without = visitor.send("/ui/bulk", &fields);
    let back = without.header("location").unwrap().to_owned();
    assert!(back.starts_with("/ui/bulk/new?action=cancel"), "{back}");
    assert!(visitor.get(&back).text().contains("say-bad"), "a reason is needed");
    let made = visitor.send("/ui/bulk", &[&fields[..], &[("reason", "a test")]].concat());
    let shown = made.header("location").unwrap().to_owned();
    assert!(shown.starts_with("/ui/bulk/blk_"), "{shown}");
    eventually("all five are cancelled", || {
        ids.iter().all(|id| bob.job(id)["status"] == "cancelled").then_some(())
    });
    assert_eq!(bob.job(&other)["status"], "queued");
    eventually("the page says so", || {
        let page = visitor.get(&shown).text();
        page.contains("<b class=\"num\">5</b> done").then_some(())
    });
    assert!(visitor.get("/ui/bulk").text().contains(&shown));
}

fn what_is_not_there_or_not_allowed_has_a_page(store: Store) {
    let server = server(store);
    let ann = server.caller("d8", "ann", &["submitter"]);
    let visitor = Visitor::signed_in(server, &ann);
    let admin = Visitor::signed_in(server, &server.admin());
    let gone = "/ui/jobs/job_01h00000000000000000000000";
    for (who, path, status) in [
        (&visitor, "/ui/nothing", 404),
        (&visitor, gone, 403),
        (&visitor, "/ui/bulk", 403),
        (&admin, gone, 404),
        (&admin, "/ui/bulk/nonsense", 404),
        (&admin, "/ui/jobs?nonsense=1", 400),
    ] {
        let page = who.get(path);
        assert_eq!(page.status, status, "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(page.text().contains("<main"), "{path}");
    }
    let empty = Visitor::signed_in(server, &server.caller("d8-empty", "ann", &EVERYTHING));
    for (path, command) in
        [("/ui/jobs", "mainspring jobs submit"), ("/ui/bulk", "mainspring bulk preview")]
    {
        assert!(empty.get(path).text().contains(command), "{path} teaches what to type");
    }
    let live = visitor.request("GET", "/ui/jobs").header("x-live", "1");
    assert_eq!(server.send(&live).status, 200);
    let nobody = Request::new("GET", "/ui/jobs").header("x-live", "1");
    assert_eq!(server.send(&nobody).status, 401, "the script is told, not sent on");
}

fn types_subscriptions_and_triggers_are_made_by_forms(store: Store) {
    let server = server(store);
    let op = server.caller("d10", "op", &EVERYTHING);
    let (visitor, admin) =
        (Visitor::signed_in(server, &op), Visitor::signed_in(server, &server.admin()));
    // A type: only what an admin may, with what was typed kept when it is refused.
    assert_eq!(visitor.get("/ui/new-type").status, 403);
    assert_eq!(visitor.send("/ui/types", &[("name", "d10.made")]).status, 403);
    let long = [("name", "d10.made"), ("timeout_seconds", "604801"), ("queue", "q10")];
    let refused = admin.send("/ui/types", &long).text();
    assert!(refused.contains("say-bad") && refused.contains("value=\"604801\""), "{refused}");
    let wrong = admin.send("/ui/types", &[("name", "d10.made"), ("max_retries", "many")]).text();
    assert!(wrong.contains("max_retries"), "{wrong}");
    let path = "/api/v1/types/d10.made";
    assert_eq!(op.get(path).status, 404, "nothing was made of it");
    let executor = json!({ "mode": "pull" });
    server.admin().put(path, &json!({ "executor": executor, "max_retries": 7 })).data();
    let form = admin.get("/ui/new-type?name=d10.made").text();
    assert!(form.contains("value=\"7\""), "the form has what is: {form}");
    let wish = [("name", "d10.made"), ("timeout_seconds", "61"), ("queue", "q10")];
    let wish = [&wish[..], &[("finish_within_ms", "90000")]].concat();
    let made = admin.send("/ui/types", &wish);
    assert_eq!(made.header("location"), Some("/ui/types/d10%2Emade"));
    let it = op.get(path).data();
    assert_eq!((&it["timeout_seconds"], &it["queue"]), (&json!(61), &json!("q10")));
    assert_eq!(it["executor"]["mode"], "pull", "what the form does not show stays");
    assert_eq!(it["sla"], json!({ "finish_within_ms": 90_000 }));
    for page in ["/ui/types", "/ui/types/d10.made"] {
        assert!(visitor.get(page).text().contains("1 min 30 s"), "{page} shows what is promised");
    }
    let form = admin.get("/ui/new-type?name=d10.made").text();
    assert!(form.contains("value=\"90000\""), "{form}");
    // A subscription: its secret is shown once.
    let wish = [("name", "hook"), ("url", "nonsense"), ("types", "a, b")];
    assert!(visitor.send("/ui/subscriptions", &wish).text().contains("say-bad"));
    let wish = [("name", "hook"), ("url", "https://hooks.example.com/d10"), ("types", "a, b")];
    let page = visitor.send("/ui/subscriptions", &wish).text();
    let made = op.get("/api/v1/subscriptions").data()["items"][0].clone();
    assert_eq!(made["filter"]["types"], json!(["a", "b"]), "{made}");
    assert!(page.contains("id=\"secret\"") && page.contains(&text(&made, "subscription_id")));
    // A trigger: only the fields of its kind count.
    let wish = [("id", "d10-t"), ("kind", "recurring"), ("prompt", "look"), ("interval", "soon")];
    assert!(visitor.send("/ui/triggers", &wish).text().contains("interval"));
    let wish = [("id", "d10-t"), ("kind", "recurring"), ("prompt", "look"), ("interval", "3600")];
    let wish = [&wish[..], &[("condition", "nonsense")]].concat();
    let made = visitor.send("/ui/triggers", &wish);
    assert_eq!(made.header("location"), Some("/ui/triggers/d10%2Dt"), "{}", made.text());
    assert_eq!(op.get("/api/v1/triggers/d10-t").data()["schedule"]["interval"], 3600);
    let looker = Visitor::signed_in(server, &server.caller("d10", "vi", &["viewer"]));
    for (list, form) in [
        ("/ui/types", "/ui/new-type"),
        ("/ui/subscriptions", "/ui/new-subscription"),
        ("/ui/triggers", "/ui/new-trigger"),
    ] {
        assert!(!looker.get(list).text().contains(form), "{form}");
        assert!(admin.get(list).text().contains(form), "{form}");
        assert_eq!((looker.get(form).status, looker.send(list, &wish).status), (403, 403));
    }
}

fn tenants_are_shown_and_set_beside_tokens(store: Store) {
    let server = server(store);
    let admin = server.admin();
    let visitor = Visitor::signed_in(server, &admin);
    let tenant = || admin.get("/api/v1/tenants/d-ten").data();
    admin.put("/api/v1/tenants/d-ten", &json!({ "backlog_bytes_max": 5_000_000 })).data();
    let wish = [("tenant_id", "d-ten"), ("weight", "7"), ("backlog_max", "1234")];
    let sent = visitor.send("/ui/tenants", &[&wish[..], &[("handed", "no")]].concat());
    assert_eq!((sent.status, sent.header("location")), (303, Some("/ui/tokens")));
    let page = visitor.get("/ui/tokens").text();
    assert!(page.contains("The tenant is set.") && page.contains("id=\"tenants\""), "{page}");
    assert!(page.contains("1,234") && page.contains("paused"), "{page}");
    let now = tenant();
    assert_eq!((&now["weight"], &now["paused"]), (&json!(7), &json!(true)));
    assert_eq!(now["backlog_bytes_max"], 5_000_000, "what the form has no field for stays");
    visitor.send("/ui/tenants", &[&wish[..], &[("handed", "yes")]].concat());
    assert_eq!(tenant()["paused"], false);
    let wrong = [("tenant_id", "d-ten"), ("weight", "many")];
    visitor.send("/ui/tenants", &wrong);
    assert!(visitor.get("/ui/tokens").text().contains("weight is not such a number"));
    let op = server.caller("d-ten", "olga", &EVERYTHING);
    assert_eq!(Visitor::signed_in(server, &op).send("/ui/tenants", &wish).status, 403);
}

fn the_jobs_around_a_job_are_drawn(store: Store) {
    let server = server(store);
    let kim = server.caller("d11", "kim", &EVERYTHING);
    let visitor = Visitor::signed_in(server, &kim);
    let alone = kim.submit_plain("d11");
    let page = visitor.get(&format!("/ui/jobs/{alone}")).text();
    assert!(!page.contains("map kin"), "a job alone has no drawing");
    let made = |wish: serde_json::Value| text(&kim.submit(&wish), "job_id");
    let first = made(json!({ "job_type": "d11<b>", "payload": {}, "trace_id": "t11" }));
    let wish = json!({ "job_type": "d11", "payload": {}, "trace_id": "t11", "parent_id": first });
    let child = made(wish);
    let wish = json!({ "job_type": "d11", "payload": {}, "after": [first] });
    let waiter = made(wish);
    let link = |page: &str, id: &str| {
        page.matches(&format!("class=\"node s-queued\" href=\"/ui/jobs/{id}\"")).count()
    };
    let page = visitor.get(&format!("/ui/jobs/{first}")).text();
    for id in [&first, &child, &waiter] {
        assert_eq!(link(&page, id), 2, "wide and tall: {page}");
    }
    assert!(!page.contains("d11<b>"), "a name is text");
    let page = visitor.get(&format!("/ui/jobs/{child}")).text();
    assert_eq!((link(&page, &first), link(&page, &waiter)), (2, 0), "the parent alone");
    let page = visitor.get(&format!("/ui/jobs/{waiter}")).text();
    assert_eq!((link(&page, &first), link(&page, &child)), (2, 0), "what it waits for");
    // Whoever sees only their own is not shown the job of another before or behind it.
    let other = server.caller("d11", "lee", &["submitter"]);
    let wish = json!({ "job_type": "d11", "payload": {}, "trace_id": "t11", "parent_id": first });
    let own = text(&other.submit(&wish), "job_id");
    let page = Visitor::signed_in(server, &other).get(&format!("/ui/jobs/{own}")).text();
    assert_eq!(link(&page, &first), 0, "{page}");
}

fn what_needs_a_person_leads_to_where_it_is_dealt_with(store: Store) {
    let server = server(store);
    let ada = server.caller("d12", "ada", &EVERYTHING);
    server.caller("d12", "bob", &["approver"]);
    let id = dead(&ada, "d12");
    let item = eventually("the dead letter is written", || {
        let found = ada.get("/api/v1/dlq/items?type=d12").data();
        found["items"][0]["dlq_id"].as_str().map(str::to_owned)
    });
    let wish = json!({ "reason": "nobody wants it" });
    ada.post(&format!("/api/v1/dlq/items/{item}/discard"), &wish).data();
    let page = Visitor::signed_in(server, &ada).get("/").text();
    assert!(page.contains(&format!("href=\"/ui/dlq/items/{item}\"")), "{id}: {page}");
}

/// Only a store that is elsewhere can be away while the server is there.
fn the_commands_that_empty_pages_teach_are_understood(store: Store) {
    let fresh = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let visitor = Visitor::signed_in(&fresh, &fresh.admin());
    let mut taught = 0;
    for page in [
        "/",
        "/ui/jobs",
        "/ui/dlq",
        "/ui/questions",
        "/ui/alerts",
        "/ui/bulk",
        "/ui/schedules",
        "/ui/triggers",
        "/ui/types",
        "/ui/queues",
        "/ui/workers",
        "/ui/objects",
        "/ui/audit",
        "/ui/subscriptions",
    ] {
        let html = visitor.get(page).text();
        for block in html.split("<pre><code>").skip(1) {
            let text = block.split("</code>").next().unwrap();
            let text = text.replace("&#39;", "'").replace("&quot;", "\"").replace("&#34;", "\"");
            for line in text.lines().filter(|line| line.starts_with("mainspring ")) {
                // Help is given for what is understood, and for nothing else.
                let line = line.trim_start_matches("mainspring ");
                let asked = match line.split_once(" -- ") {
                    Some((own, rest)) => format!("{own} --help -- {rest}"),
                    None => format!("{line} --help"),
                };
                let script = format!("\"$0\" {asked}");
                let binary = env!("CARGO_BIN_EXE_mainspring");
                let ran = run("sh", &["-c", &script, binary], &[], fresh.directory());
                assert_eq!(ran.code, Some(0), "{page}: {line}: {}", ran.stderr);
                taught += 1;
            }
        }
    }
    assert!(taught >= 12, "{taught}");
}

#[test]
fn the_store_in_trouble_has_a_page_that_tries_again() {
    let binary = env!("CARGO_BIN_EXE_mainspring");
    let config = "[types]\nstrict = false\n";
    let mut nodes = Nodes::start(binary, 1, &ClusterOptions::durable(), config);
    let admin = nodes.admin(0);
    let id = admin.submit_plain("d9");
    let cookies = {
        let visitor = Visitor::signed_in(&nodes.servers[0], &admin);
        assert_eq!(visitor.get(&format!("/ui/jobs/{id}")).status, 200);
        visitor.cookies
    };
    Cluster::stop_immediate(&mut nodes.cluster);
    let form = String::new();
    let mut visitor = Visitor { server: &nodes.servers[0], cookies, form };
    for path in [format!("/ui/jobs/{id}"), "/ui/jobs".to_owned(), "/".to_owned()] {
        let page = visitor.get(&path);
        assert_eq!(page.status, 503, "{path}");
        assert!(page.header("retry-after").is_some(), "{path}");
        let html = page.text();
        assert!(html.contains("STORE_UNAVAILABLE"), "{path}: {html}");
        assert!(html.contains("http-equiv=\"refresh\""), "{path} tries again");
    }
    let cookies = std::mem::take(&mut visitor.cookies);
    Cluster::start_again(&mut nodes.cluster);
    let visitor = Visitor { server: &nodes.servers[0], cookies, form: String::new() };
    eventually("the page is back, and the session with it", || {
        (visitor.get(&format!("/ui/jobs/{id}")).status == 200).then_some(())
    });
}
