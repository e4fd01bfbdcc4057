//! Secrets as operators handle them: tokens in files, an admin token from a file, and tokens that
//! are replaced with and without an overlap.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually, run};
use mainspring_testkit::both_stores;
use serde_json::json;

both_stores![
    a_token_is_replaced_at_once_or_after_an_overlap,
    a_token_that_is_over_cannot_be_replaced,
    tokens_come_from_files,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// Somebody with a token, and its public id.
fn issued(server: &Server, user: &str, more: serde_json::Value) -> (Caller, String) {
    let mut wish = json!({ "tenant_id": "acme", "user_id": user, "roles": ["viewer"] });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = server.admin().post("/api/v1/tokens", &wish).data();
    (Caller { address: server.address, token: text(&made, "token") }, text(&made, "token_id"))
}

fn works(caller: &Caller) -> bool {
    match caller.get("/api/v1/whoami").status {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

fn a_token_is_replaced_at_once_or_after_an_overlap(store: Store) {
    let server = Server::start(store.options(BINARY));
    let (old, id) = issued(&server, "ann", json!({}));
    let rotate = |id: &str, wish: serde_json::Value| {
        let made = server.admin().post(&format!("/api/v1/tokens/{id}/rotate"), &wish).data();
        let caller = Caller { address: server.address, token: text(&made, "token") };
        (caller, text(&made, "token_id"))
    };
    // At once.
    let (new, new_id) = rotate(&id, json!({}));
    assert!(!works(&old) && works(&new));
    assert_ne!(id, new_id);
    assert_eq!(old.get("/api/v1/whoami").status, 401);
    let who = new.get("/api/v1/whoami").data();
    assert_eq!(who, json!({ "tenant_id": "acme", "user_id": "ann", "roles": ["viewer"] }));
    // With an overlap that ends by itself.
    let (newer, newer_id) = rotate(&new_id, json!({ "overlap_seconds": 2 }));
    assert!(works(&new) && works(&newer));
    eventually("the old one ends", || (!works(&new)).then_some(()));
    assert!(works(&newer));
    // With an overlap that is cut short.
    let (newest, _) = rotate(&newer_id, json!({ "overlap_seconds": 86_400 }));
    assert!(works(&newer) && works(&newest));
    server.admin().delete(&format!("/api/v1/tokens/{newer_id}")).data();
    assert!(!works(&newer) && works(&newest));
    // From the command line, and who did it is written down.
    let (by_hand, by_hand_id) = issued(&server, "bob", json!({}));
    let ran = server.cli(&["tokens", "rotate", &by_hand_id, "--overlap", "1h", "-o", "json"]);
    let made = ran.expect(0).json();
    let fresh = Caller { address: server.address, token: text(&made, "token") };
    assert!(works(&by_hand) && works(&fresh));
    let lines = server.admin().get("/api/v1/audit?limit=100").text();
    assert_eq!(lines.matches("token.rotate").count(), 4, "{lines}");
    for secret in [&new.token, &newest.token, &fresh.token] {
        assert!(!lines.contains(secret.as_str()), "a secret in the audit trail");
        assert!(!server.log().contains(secret.as_str()), "a secret in the log");
    }
}

fn a_token_that_is_over_cannot_be_replaced(store: Store) {
    let server = Server::start(store.options(BINARY));
    let admin = server.admin();
    let rotate =
        |id: &str, wish| admin.post(&format!("/api/v1/tokens/{id}/rotate"), &wish).refusal();
    let unknown = (404, "TOKEN_NOT_FOUND".to_owned());
    let (_, id) = issued(&server, "ann", json!({}));
    admin.delete(&format!("/api/v1/tokens/{id}")).data();
    assert_eq!(rotate(&id, json!({})), unknown);
    assert_eq!(rotate("tok_00000000000000000000000000", json!({})), unknown);
    assert_eq!(rotate("rubbish", json!({})), unknown);
    let (ann, id) = issued(&server, "ann", json!({ "expires_at": "2999-01-01T00:00:00Z" }));
    assert_eq!(rotate(&id, json!({ "overlap_seconds": 30 * 86_400 + 1 })).0, 400);
    assert_eq!(rotate(&id, json!({ "overlap_seconds": -1 })).0, 400);
    assert_eq!(ann.post(&format!("/api/v1/tokens/{id}/rotate"), &json!({})).status, 403);
    assert!(works(&ann), "a refusal changes nothing");
    // The new one ends when the old one would have.
    let made = admin.poke(&format!("/api/v1/tokens/{id}/rotate")).data();
    assert!(text(&made, "expires_at").starts_with("2999-01-01T00:00:00"), "{made}");
}

fn tokens_come_from_files(store: Store) {
    let server = Server::start(store.options(BINARY));
    let (ann, _) = issued(&server, "ann", json!({}));
    let path = server.directory().join("ann.token");
    std::fs::write(&path, format!("  {}\n\n", ann.token)).unwrap();
    let file = path.display().to_string();
    let list = |env: &[(&str, &str)]| {
        let env = [&[("MAINSPRING_URL", &*server.url)], env].concat();
        run(BINARY, &["jobs", "list"], &env, server.directory())
    };
    list(&[("MAINSPRING_TOKEN_FILE", &file)]).expect(0);
    // The variable itself counts more than the file it could name.
    list(&[("MAINSPRING_TOKEN_FILE", &file), ("MAINSPRING_TOKEN", "wrong")]).expect(4);
    let missing = list(&[("MAINSPRING_TOKEN_FILE", "/nowhere")]).expect(2);
    assert!(missing.stderr.contains("MAINSPRING_TOKEN_FILE"), "{}", missing.stderr);
    std::fs::write(&path, "\n").unwrap();
    list(&[("MAINSPRING_TOKEN_FILE", &file)]).expect(2);

    // The admin's, for a server that nobody reads the output of.
    let secret = "from-a-file-that-is-mounted";
    let admin_file = server.directory().join("admin-secret");
    std::fs::write(&admin_file, format!("{secret}\n")).unwrap();
    let admin_file = admin_file.display().to_string();
    let options = store.options(BINARY).env("MAINSPRING_ADMIN_TOKEN", "");
    let other = Server::start(options.env("MAINSPRING_ADMIN_TOKEN_FILE", &admin_file));
    let admin = Caller { address: other.address, token: secret.to_owned() };
    assert!(works(&admin) && !works(&other.admin()));
    assert!(!other.log().contains(secret));
}
