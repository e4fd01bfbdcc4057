//! From the wire's words to the loop's and back.

use super::*;
use mainspring_api::Time;

#[test]
fn the_time_of_an_attempt_does_not_depend_on_our_clock() {
    let job = |expires: &str, deadline: &str| PulledJob {
        job_id: "j".into(),
        job_type: "t".into(),
        payload: serde_json::value::to_raw_value(&1).unwrap(),
        attempt: 1,
        retry_count: 0,
        lease_token: "l".into(),
        lease_expires_at: expires.parse().unwrap(),
        deadline_at: deadline.parse().unwrap(),
        execution_key: "k".into(),
        trace_id: "t".into(),
        traceparent: None,
        labels: std::collections::BTreeMap::new(),
        checkpoint: None,
    };
    let lease = Duration::from_secs(5);
    let allowed = |job| job_of(job, lease).time_allowed;
    // Granted at 55, whatever our clock says.
    let short = job("2026-01-01T00:01:00Z", "2026-01-01T00:00:55.200Z");
    assert_eq!(allowed(short), Duration::from_millis(200));
    let past = job("2026-01-01T00:01:00Z", "2020-01-01T00:00:00Z");
    assert_eq!(allowed(past), Duration::ZERO);
    let absurd = PulledJob {
        lease_expires_at: Time(i64::MIN),
        deadline_at: Time(i64::MAX),
        ..job("2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z")
    };
    assert_eq!(allowed(absurd), Duration::from_micros(i64::MAX as u64));
}

#[test]
fn a_lease_is_renewed_only_if_the_answer_says_so() {
    let item = |text: &str| renewal(&serde_json::from_str(text).unwrap());
    let renewed = r#"{"job_id":"j","lease_expires_at":"2026-01-01T00:01:00Z"}"#;
    assert_eq!(item(renewed), Renewal::Renewed);
    assert_eq!(item(r#"{"job_id":"j","lost":true}"#), Renewal::Lost);
    assert_eq!(item(r#"{"job_id":"j","cancelled":true}"#), Renewal::Cancelled);
    assert_eq!(item(r#"{"job_id":"j","error":{"code":"X","message":"y"}}"#), Renewal::Unknown);
}

#[test]
fn an_answer_has_to_be_about_the_same_jobs_in_order() {
    let same =
        |told: &[&str]| same_jobs("report", ["a", "b"].into_iter(), told.iter().copied()).is_ok();
    assert!(same(&["a", "b"]) && same(&["a", ""]));
    assert!(!same(&["b", "a"]) && !same(&["a"]) && !same(&["a", "b", "c"]) && !same(&[]));
}

#[test]
fn a_refusal_comes_back_as_it_was() {
    let refusal =
        crate::Refusal { status: 413, code: "BODY_TOO_LARGE".into(), ..Default::default() };
    let error = loops::Error::from(Error::Refused(Box::new(refusal)));
    assert_eq!(error.code(), Some("BODY_TOO_LARGE"));
    assert!(!error.is_retryable());
    let loops::Error::Refused { about: About::Content, .. } = &error else { panic!("{error:?}") };
    assert_eq!(Error::from(error).status(), Some(413));
    let busy = crate::Refusal { status: 503, retryable: true, ..Default::default() };
    assert!(loops::Error::from(Error::Refused(Box::new(busy))).is_retryable());
    let own = Error::from(loops::Error::Late { call: "pull" });
    assert!(own.to_string().contains("no answer to pull in time"), "{own}");
}
