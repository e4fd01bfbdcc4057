//! The dashboard in a real Chromium, as a person would use it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::browser::Browser;
use mainspring_testkit::browser::walk::{is_pictured, walk};
use serde_json::json;

both_stores![a_failing_job_is_found_understood_requeued_and_seen_to_succeed];

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

/// A name that fits nowhere.
const LONG_NAME: &str =
    "long-name-long-name-long-name-long-name-long-name-long-name-long-name-long-name";

const EVERYTHING: [&str; 4] = ["submitter", "worker", "operator", "viewer"];

/// Nothing was asked of anybody else, and nothing went wrong in the page.
fn kept_to_itself(browser: &Browser, server: &Server) {
    let asked = browser.asked_for();
    assert!(!asked.is_empty(), "the log has what was asked for");
    let others: Vec<_> = asked.iter().filter(|url| !url.starts_with(&server.url)).collect();
    assert!(others.is_empty(), "{others:?}");
}

fn a_failing_job_is_found_understood_requeued_and_seen_to_succeed(store: Store) {
    let server = server(store);
    let wes = server.caller("b1", "wes", &EVERYTHING);
    let wish = json!({ "job_type": "invoice", "payload": { "number": 42 }, "max_retries": 0 });
    let id = text(&wes.submit(&wish), "job_id");
    let grant = wes.pull_one("invoice");
    let more = json!({ "error_code": "NO_PAPER", "message": "the printer is empty" });
    wes.report("fail", &grant, more);

    let browser = Browser::open();
    browser.sign_in(&server.url, &wes.token);
    // Found by the map of the overview, in the list.
    browser.click(".map-wide .s-failed");
    browser.wait_for("#list", |list| list.contains("NO_PAPER"));
    browser.click(&format!("a[href='/ui/jobs/{id}']"));
    // Understood.
    browser.wait_for("#failure", |why| {
        why.contains("NO_PAPER") && why.contains("the printer is empty")
    });
    assert_eq!(browser.text("#job-state").as_deref(), Some("failed"));
    // Requeued.
    browser.click("#requeue");
    browser.wait_for("#job-state", |state| state == "queued");
    assert!(browser.url() != format!("{}/ui/jobs/{id}", server.url), "a job of its own");
    browser.wait_for("#job-why", |why| !why.is_empty());
    browser
        .run("window.sameDocument = true; document.querySelector('#cancel-reason').focus()", &[]);
    browser.fill("#cancel-reason", "half a sen");
    // Seen to run, and to succeed, without a reload and without losing what was being typed.
    let grant = wes.pull_one("invoice");
    browser.wait_for("#job-state", |state| state == "running");
    wes.report("complete", &grant, json!({ "result": { "printed": true } }));
    browser.wait_for("#job-state", |state| state == "succeeded");
    browser.wait_for("#outcome", |result| result.contains("printed"));
    assert_eq!(browser.run("return window.sameDocument", &[]), json!(true), "no reload");
    let typed = "return document.activeElement.id + '=' + document.activeElement.value";
    assert_eq!(browser.run(typed, &[]), json!("cancel-reason=half a sen"), "the focus stays");
    let local = "return document.querySelector('#facts time').title.endsWith(' UTC')";
    assert_eq!(browser.run(local, &[]), json!(true));
    kept_to_itself(&browser, server);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn who_may_only_look_has_no_buttons_and_keys_reach_everything() {
    let server = server(Store::Memory);
    let op = server.caller("b2", "op", &EVERYTHING);
    let id = op.submit_plain("b2");
    let looker = server.caller("b2", "vi", &["viewer"]);
    let browser = Browser::open();
    browser.sign_in(&server.url, &looker.token);
    browser.go(&format!("{}/ui/jobs/{id}", server.url));
    assert_eq!(browser.count("main form"), 0);
    // What the page does not offer is refused to whoever sends it all the same.
    let sent = browser.run(
        "const form = new URLSearchParams({ form: document.querySelector('[name=form]').value });\
         const request = new XMLHttpRequest();\
         request.open('POST', location.pathname + '/cancel', false);\
         request.send(form); return request.status",
        &[],
    );
    assert_eq!(sent, json!(403));
    assert_eq!(op.job(&id)["status"], "queued");
    browser.go(&format!("{}/ui/jobs", server.url));
    browser.press("\u{e004}");
    let focused = "return document.activeElement.className";
    assert_eq!(browser.run(focused, &[]), json!("skip"), "the first key leads past the navigation");
    browser.press("\u{e007}");
    let place = "return document.activeElement.id";
    eventually("the content has the focus", || {
        (browser.run(place, &[]) == json!("main")).then_some(())
    });
    kept_to_itself(&browser, server);
}

/// Strings that would run if any page took them for something else than text.
fn hostile() -> Vec<String> {
    let mut strings: Vec<String> = [
        "<script>window.owned=1</script>",
        "<img src=x onerror=window.owned=1>",
        "\"><svg onload=window.owned=1>",
        "'><iframe srcdoc='<script>parent.owned=1</script>'>",
        "</textarea><script>owned=1</script>",
        "</title><script>owned=1</script>",
        "javascript:window.owned=1",
        "{{constructor.constructor('owned=1')()}}",
        "${owned=1}",
        "<a href=javascript:owned=1>x</a>",
        "<details open ontoggle=owned=1>",
        "<math><mtext><table><mglyph><style><img src=x onerror=owned=1>",
        "<object data=\"data:text/html,<script>owned=1</script>\">",
        "<meta http-equiv=refresh content='0;url=http://evil.example'>",
        "<link rel=stylesheet href=http://evil.example/x.css>",
        "<form action=http://evil.example><input name=form>",
        "<base href=http://evil.example/>",
        "\u{202e}<script>owned=1</script>",
        "<!--><script>owned=1</script>-->",
        "&lt;script&gt;owned=1&lt;/script&gt;",
    ]
    .map(str::to_owned)
    .into();
    let frames =
        ["{}", "\" {} \"", "' {} '", "`{}`", "]]>{}", "\\u003c{}", "%3Cscript%3E{}", "<{}"];
    let plain = strings.clone();
    let framed = plain.iter().flat_map(|text| frames.iter().map(|it| it.replace("{}", text)));
    strings.extend(framed);
    strings.extend((0..20).map(|n| format!("<x onpointerenter=owned={n} autofocus tabindex=1>")));
    strings
}

#[test]
fn hostile_strings_are_only_text() {
    let server = server(Store::Memory);
    let mal = server.caller("b3", "mal", &EVERYTHING);
    let strings = hostile();
    assert!(strings.len() >= 200, "{}", strings.len());
    let mut ids = Vec::new();
    for (index, text) in strings.iter().enumerate() {
        let wish = json!({
            "job_type": "mal", "payload": { "text": text, text.as_str(): index },
            "labels": { "l": text }, "subject": text, "trace_id": text,
            "idempotency_key": format!("{index} {text}"), "max_retries": 0
        });
        let made = mal.post("/api/v1/jobs", &wish);
        // What cannot be a name is refused, and then there is less to show.
        let made = match made.status {
            201 => made.data(),
            _ => mal.submit(&json!({ "job_type": "mal", "payload": { "text": text } })),
        };
        let grant = mal.pull_one("mal");
        let step = format!("/api/v1/work/effects/{}/step", text_of(&made));
        let effect = json!({ "value": { "text": text }, "lease_token": grant["lease_token"] });
        mal.put(&step, &effect).data();
        match index % 3 {
            0 => mal.report("complete", &grant, json!({ "result": { "text": text } })),
            1 => mal.report("fail", &grant, json!({ "error_code": "BAD", "message": text })),
            _ => mal.report("fail", &grant, json!({ "message": text, "retryable": false })),
        };
        ids.push(text_of(&made));
    }
    let browser = Browser::open();
    browser.sign_in(&server.url, &mal.token);
    let mut pages: Vec<String> = vec![
        "/ui/jobs".into(),
        "/ui/jobs?status=failed".into(),
        "/ui/bulk/new?action=requeue&type=mal".into(),
    ];
    pages.extend(ids.iter().map(|id| format!("/ui/jobs/{id}")));
    let query = strings.iter().take(40).map(|text| format!("/ui/jobs?type={}", encoded(text)));
    pages.extend(query);
    let to = strings.iter().take(20).map(|text| format!("/sign-in?to={}", encoded(text)));
    pages.extend(to);
    for page in &pages {
        browser.go(&format!("{}{page}", server.url));
        let found = browser.run(
            "return [window.owned ?? null, document.querySelectorAll('main script, main iframe, \
             main object, main [onerror], main style').length, location.host, \
             document.querySelector('main') !== null]",
            &[],
        );
        let host = server.address.to_string();
        assert_eq!(found, json!([null, 0, host, true]), "{page}");
    }
    // The script's own way of putting a page in: nothing runs there either.
    browser.go(&format!("{}/ui/jobs?status=failed", server.url));
    let another = mal.submit(&json!({ "job_type": "mal", "payload": {}, "max_retries": 0 }));
    let grant = mal.pull_one("mal");
    mal.report("fail", &grant, json!({ "error_code": "BAD", "message": strings[1] }));
    let link = format!("a[href='/ui/jobs/{}']", text_of(&another));
    browser.wait_for(&link, |_| true);
    assert_eq!(browser.run("return window.owned ?? null", &[]), json!(null));
    kept_to_itself(&browser, server);
    println!("{} hostile strings on {} pages", strings.len(), pages.len());
}

fn text_of(job: &serde_json::Value) -> String {
    text(job, "job_id")
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Work for the pictures: enough that the charts have a course, and something for a person to do.
fn bustle(server: &Server, pat: &Caller) {
    server.caller("b4", "ann", &["approver"]);
    let odd = text(&pat.submit(&json!({ "job_type": "invoice.send", "payload": {} })), "job_id");
    let grant = pat.pull_one("invoice.send");
    pat.report("fail", &grant, json!({ "error_code": "NO_ADDRESS", "retryable": false }));
    let item =
        eventually("the dead letter", || pat.job(&odd)["dlq_id"].as_str().map(str::to_owned));
    let wish = json!({ "reason": "the customer has left" });
    pat.post(&format!("/api/v1/dlq/items/{item}/discard"), &wish).data();
    // Some two minutes, of which there is a sample every ten seconds.
    for round in 0_usize..360 {
        let jobs: Vec<_> = (0..3 + round % 7 + round % 4 * 2)
            .map(|_| json!({ "job_type": "mail.send", "payload": {}, "max_retries": 1 }))
            .collect();
        pat.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
        let rest = std::time::Duration::from_millis(200 + 40 * (round as u64 % 9));
        std::thread::sleep(rest); // paced: jobs wait a little, as they do
        for (nth, grant) in pat.pull("mail.send", 30).iter().enumerate() {
            match (round + nth) % 23 {
                0 => pat.report("fail", grant, json!({ "error_code": "UPSTREAM_BUSY" })),
                _ => pat.report("complete", grant, json!({ "result": {} })),
            };
        }
    }
}

/// Every page, wide and narrow, light and dark, in both languages.
#[test]
fn pages_fit_wide_and_narrow_in_both_languages() {
    let server = server(Store::Memory);
    let pat = server.caller("b4", "pat", &EVERYTHING);
    let long = if is_pictured() { "shop".to_owned() } else { "x".repeat(120) };
    let failed = {
        let payload = json!({ "customer": 42, "from": long, "lines": ["paper", "ink"] });
        let wish = json!({ "job_type": "invoice.print", "payload": payload, "max_retries": 0,
            "labels": { "source": long }, "queue": "invoices" });
        let id = text(&pat.submit(&wish), "job_id");
        let grant = pat.pull_one("invoice.print");
        let message = format!("the printer of the {long} is empty");
        pat.report("fail", &grant, json!({ "error_code": "NO_PAPER", "message": message }));
        id
    };
    for n in 0..30 {
        pat.submit(&json!({ "job_type": format!("report.number-{}", n % 4), "payload": {} }));
    }
    let waiting = pat.submit_plain(if is_pictured() { "letter.write" } else { LONG_NAME });
    let wish = json!({ "job_type": "report.after", "payload": {}, "after": [waiting, failed],
        "after_condition": "end" });
    let around = text(&pat.submit(&wish), "job_id");
    let done = pat.submit_plain("report.done");
    pat.report("complete", &pat.pull_one("report.done"), json!({ "result": { "rows": 7 } }));
    let filter = json!({ "status": "queued", "type": "report.number-3" });
    let wish = json!({ "action": "cancel", "filter": filter, "reason": long });
    let bulk = text(&pat.post("/api/v1/bulk", &wish).data(), "bulk_id");
    let pages = [
        ("overview", "/".to_owned()),
        ("jobs", "/ui/jobs".to_owned()),
        ("jobs-failed", "/ui/jobs?status=failed&type=invoice.print".to_owned()),
        ("job-failed", format!("/ui/jobs/{failed}")),
        ("job-waiting", format!("/ui/jobs/{waiting}")),
        ("job-done", format!("/ui/jobs/{done}")),
        ("job-around", format!("/ui/jobs/{around}")),
        ("bulk", "/ui/bulk".to_owned()),
        ("bulk-one", format!("/ui/bulk/{bulk}")),
        ("bulk-new", "/ui/bulk/new?action=requeue&type=invoice.print".to_owned()),
        ("nothing", "/ui/nothing".to_owned()),
        ("sign-in", "/sign-in".to_owned()),
    ];
    if is_pictured() {
        bustle(server, &pat);
    }
    let browser = Browser::open();
    browser.sign_in(&server.url, &pat.token);
    let walked = walk(&browser, &server.url, &pages);
    // That a page is not there is one, of the page that is not there.
    let complaints = browser.complaints();
    let others: Vec<_> = complaints.iter().filter(|line| !line.contains("/ui/nothing")).collect();
    assert!(others.is_empty(), "{others:?}");
    println!("{} looks, {} by axe-core", walked.looks, walked.examined);
}
