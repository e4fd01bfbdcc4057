//! Dead letters by their failure, from outside.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    g09_dead_letters_are_grouped_by_failure_and_found_by_it,
    g09_groups_have_pages_and_belong_to_their_tenant,
];

const EVERYTHING: [&str; 4] = ["submitter", "worker", "operator", "viewer"];

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

/// Has a job fail for good so; its item.
fn dead(who: &Caller, job_type: &str, code: &str, message: &str) -> String {
    who.submit_plain(job_type);
    let grant = who.pull_one(job_type);
    let more = json!({ "error_code": code, "message": message, "retryable": false });
    who.report("fail", &grant, more);
    // It may be one that was waiting before.
    text(&who.job(&text(&grant, "job_id")), "dlq_id")
}

fn groups(who: &Caller, query: &str) -> Value {
    who.get(&format!("/api/v1/dlq/groups{query}")).data()
}

fn g09_dead_letters_are_grouped_by_failure_and_found_by_it(store: Store) {
    let ann = server(store).caller("groups", "ann", &EVERYTHING);
    assert_eq!(groups(&ann, "")["items"], json!([]));
    let mut rows = Vec::new();
    for n in [1, 22, 333] {
        rows.push(dead(&ann, "db", "DB", &format!("no row {n} at 10.0.0.{n}:5432")));
    }
    let quoted = dead(&ann, "db", "DB", "no row \"x\" at host-7");
    let other = dead(&ann, "mail", "MAIL", "mailbox of ann@example.org is full");
    let found = groups(&ann, "");
    assert_eq!((&found["total"], &found["looked_at"]), (&json!(2), &json!(5)));
    assert_eq!(found["complete"], true);
    let [large, small] = <[Value; 2]>::try_from(items(found)).unwrap();
    assert_eq!((&large["count"], &large["error_code"]), (&json!(4), &json!("DB")));
    assert_eq!((&large["pattern"], &large["job_types"]), (&json!("no row # at #"), &json!(["db"])));
    assert_eq!((&small["count"], &small["pattern"]), (&json!(1), &json!("mailbox of # is full")));
    assert_eq!(small["sample_message"], "mailbox of ann@example.org is full");
    assert_eq!((&small["first_at"], &small["new_since"]), (&small["last_at"], &Value::Null));
    let last = ann.get(&format!("/api/v1/dlq/items/{quoted}")).data();
    assert_eq!((&large["last_at"], &large["signature"]), (&last["created_at"], &last["signature"]));
    assert_eq!(large["sample_message"], last["error_message"]);
    let first = ann.get(&format!("/api/v1/dlq/items/{}", rows[0])).data();
    assert_eq!(large["first_at"], first["created_at"]);
    // What came after the last of the first failure is new.
    let since = text(&small, "first_at");
    let told = items(groups(&ann, &format!("?new_since={since}")));
    let told: Vec<_> = told.iter().map(|group| group["new_since"].clone()).collect();
    assert_eq!(told, [json!(false), json!(true)]);
    // The items of a failure, and no others.
    let of = |query: &str| -> Vec<String> {
        let listed = ann.get(&format!("/api/v1/dlq/items?{query}")).data();
        items(listed).iter().map(|item| text(item, "dlq_id")).collect()
    };
    let signature = text(&large, "signature");
    rows.push(quoted.clone());
    rows.reverse();
    assert_eq!(of(&format!("signature={signature}")), rows);
    assert_eq!(of(&format!("signature={signature}&limit=1")), vec![quoted.clone()]);
    assert_eq!(of(&format!("signature={}", text(&small, "signature"))), [other]);
    assert_eq!(of("signature=0123456789abcdef"), Vec::<String>::new());
    // One that is done with is not in an open group any more.
    let requeue = format!("/api/v1/dlq/items/{quoted}/requeue");
    assert_eq!(ann.poke(&requeue).status, 202);
    assert_eq!(items(groups(&ann, ""))[0]["count"], 3);
    let requeued = items(groups(&ann, "?status=requeued"));
    assert_eq!((requeued.len(), &requeued[0]["signature"]), (1, &json!(signature)));
    assert_eq!(of(&format!("signature={signature}&status=requeued")), [quoted]);
    assert_eq!(items(groups(&ann, "?type=mail")).len(), 1);
    assert_eq!(items(groups(&ann, "?error_code=DB")).len(), 1);
    let cli = server(store).cli_as(&ann.token, &["dlq", "groups", "-o", "json"]).expect(0).json();
    assert_eq!(items(cli).len(), 2);
    let cli = server(store).cli_as(&ann.token, &["dlq", "list", "--signature", &signature]);
    assert!(cli.expect(0).stdout.contains("no row 22 at"));
    // One that comes again is no new failure.
    dead(&ann, "db", "DB", "no row 4444 at 10.0.0.4:5432");
    let told = items(groups(&ann, &format!("?new_since={since}")));
    let told: Vec<_> = told.iter().map(|group| group["new_since"].clone()).collect();
    assert_eq!(told, [json!(false), json!(true)]);
}

fn g09_groups_have_pages_and_belong_to_their_tenant(store: Store) {
    let ann = server(store).caller("pages", "ann", &EVERYTHING);
    let sub = server(store).caller("pages", "sub", &["submitter", "worker"]);
    let eve = server(store).caller("pages-eve", "eve", &EVERYTHING);
    for (name, times) in [("a", 3), ("b", 2), ("c", 1), ("d", 1)] {
        for _ in 0..times {
            dead(&ann, "t", name, "m");
        }
    }
    dead(&sub, "t", "a", "m");
    let codes = |data: Value| -> Vec<String> {
        items(data).iter().map(|group| text(group, "error_code")).collect()
    };
    let first = groups(&ann, "?limit=3");
    let cursor = text(&first, "next_cursor");
    let rest = groups(&ann, &format!("?limit=3&cursor={cursor}"));
    assert_eq!((codes(first.clone()).len(), &first["total"]), (3, &json!(4)));
    assert_eq!(items(first.clone())[0]["count"], 4, "the whole tenant's");
    let mut all = [codes(first), codes(rest.clone())].concat();
    assert_eq!(all[..2], ["a", "b"]);
    all.sort();
    assert_eq!(
        (all, &rest["next_cursor"]),
        (["a", "b", "c", "d"].map(str::to_owned).into(), &Value::Null)
    );
    // Somebody sees what they may see, and nothing of another tenant.
    let own = items(groups(&sub, ""));
    assert_eq!((own.len(), &own[0]["count"]), (1, &json!(1)));
    assert_eq!(groups(&eve, "")["items"], json!([]));
    let foreign = eve.get(&format!("/api/v1/dlq/groups?limit=3&cursor={cursor}"));
    assert_eq!(foreign.refusal(), (400, "CURSOR_INVALID".into()));
    for bad in ["new_since=x", "status=odd", "signature=0123456789abcdef", "limit=0", "type="] {
        let refused = ann.get(&format!("/api/v1/dlq/groups?{bad}")).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
    for bad in ["0", "0123456789abcdeF", "0123456789abcdef0", "%00", ""] {
        let refused = ann.get(&format!("/api/v1/dlq/items?signature={bad}")).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
}
