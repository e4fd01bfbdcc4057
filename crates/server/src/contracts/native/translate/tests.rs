//! Words in, commands out.

use super::*;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{Role, Roles, TenantId, TokenId, UserId};

fn who(roles: &[Role]) -> Principal {
    Principal {
        tenant: TenantId::new("t1").unwrap(),
        user: UserId::new("ann").unwrap(),
        roles: Roles::of(roles),
        token: TokenId(1),
        token_issued_at: Timestamp(0),
        token_issued_by: UserId::new("root").unwrap(),
        token_issued_with: None,
    }
}

fn submit(text: &str, key: Option<&str>) -> Result<Submit, Rejection> {
    let wish: wire::Submit<'_> = serde_json::from_str(text).unwrap();
    let who = who(&[Role::Submitter]);
    Submitter::new(&who, Some("trace-of-request"), Some(60)).submit(&wish, key)
}

#[test]
fn the_payload_keeps_its_bytes() {
    let wish = submit(r#"{"job_type":"a","payload":{ "b":1.50,"a":"\u00e9"  }}"#, None).unwrap();
    assert_eq!(&*wish.payload, r#"{ "b":1.50,"a":"\u00e9"  }"#);
    assert_eq!(wish.trace.as_deref(), Some("trace-of-request"));
}

#[test]
fn the_key_may_come_in_the_header_or_the_body_but_not_differ() {
    let body = r#"{"job_type":"a","payload":1,"idempotency_key":"k"}"#;
    let plain = r#"{"job_type":"a","payload":1}"#;
    let from_body = submit(body, None).unwrap().idempotency;
    assert_eq!(from_body, submit(plain, Some("k")).unwrap().idempotency);
    assert_eq!(from_body, submit(body, Some("k")).unwrap().idempotency);
    assert!(submit(body, Some("other")).is_err());
    let key = from_body.unwrap();
    assert_eq!((&*key.scope, key.window_secs), ("user:ann", Some(60)));
    assert_eq!(key.hash, digest(&[b"key", b"t1", b"user:ann", b"k"]));
    assert_eq!(key.fingerprint, Some(digest(&[b"native-2", b"a", b"1"])));
    let scoped = r#"{"job_type":"a","payload":1,"idempotency_key":"k","idempotency_scope":"s"}"#;
    assert_eq!(&*submit(scoped, None).unwrap().idempotency.unwrap().scope, "scope:s");
}

#[test]
fn wrong_values_name_their_field() {
    for (text, wrong) in [
        (r#"{"job_type":"","payload":1}"#, "job_type"),
        (r#"{"job_type":"a","payload":1,"queue":" q"}"#, "queue"),
        (r#"{"job_type":"a","payload":1,"run_at":"soon"}"#, "run_at"),
        (r#"{"job_type":"a","payload":1,"expires_at":"2026-01-01"}"#, "expires_at"),
        (r#"{"job_type":"a","payload":1,"parent_id":"job_1"}"#, "parent_id"),
    ] {
        let Err(Rejection::FieldInvalid { field, .. }) = submit(text, None) else {
            panic!("{text} was accepted");
        };
        assert_eq!(field, wrong);
    }
}

#[test]
fn only_an_admin_pulls_over_all_tenants() {
    let wish: wire::Pull<'_> = serde_json::from_str(r#"{"worker_id":"w"}"#).unwrap();
    let own = pull(&wish, &who(&[Role::Worker])).unwrap();
    assert_eq!(own.tenant.unwrap().as_str(), "t1");
    assert_eq!((own.limit, own.lease_ms, own.wait), (1, LEASE_MS_DEFAULT, Duration::ZERO));
    assert_eq!(pull(&wish, &who(&[Role::Admin])).unwrap().tenant, None);
    for wrong in [
        r#"{"worker_id":"w","limit":0}"#,
        r#"{"worker_id":"w","limit":10001}"#,
        r#"{"worker_id":"w","wait_ms":60001}"#,
        r#"{"worker_id":""}"#,
        r#"{"worker_id":"w","lease_ms":0}"#,
    ] {
        let wish: wire::Pull<'_> = serde_json::from_str(wrong).unwrap();
        assert!(pull(&wish, &who(&[Role::Worker])).is_err(), "{wrong}");
    }
}

#[test]
fn reports_have_defaults_and_nonsense_names_no_lease() {
    let job = JobId(7).to_string();
    let token = LeaseToken { fence: 1, secret: 2 }.to_string();
    let text = format!(r#"{{"job_id":"{job}","lease_token":"{token}"}}"#);
    let report: wire::Fail<'_> = serde_json::from_str(&text).unwrap();
    let Ok(Command::Fail(fail)) = report.command() else { panic!("not a failure") };
    assert_eq!((&*fail.failure.code, fail.failure.retryable), (TASK_EXECUTION_FAILED, true));
    for (job, token) in [("x", &*token), (&*job, "1.2"), ("", "")] {
        assert_eq!(attempt(job, token), Err(Rejection::LeaseLost));
    }
    assert!(is_code("DOC_PARSE_2") && !is_code("") && !is_code("lower") && !is_code("A B"));
}
