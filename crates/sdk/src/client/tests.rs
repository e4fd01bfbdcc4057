//! Addresses, paths, answers and the waits between tries.

use super::*;

#[test]
fn names_cannot_leave_their_place_in_a_path() {
    assert_eq!(path(&["types", "a/b ?c"]), "/api/v1/types/a%2Fb%20%3Fc");
    let query = [("status", Some("a&b".to_owned())), ("cursor", None), ("limit", Some("5".into()))];
    assert_eq!(path_with(&["jobs"], &query), "/api/v1/jobs?status=a%26b&limit=5");
}

#[test]
fn addresses_that_cannot_work_are_refused_at_once() {
    for url in ["host:7070", "ftp://host", ""] {
        assert!(matches!(Client::new(url, None), Err(Error::Address { .. })), "{url}");
    }
    assert!(Client::new("http://127.0.0.1:7070", Some("line\nbreak")).is_err());
    assert_eq!(Client::new("http://h:1/", None).unwrap().url(), "http://h:1");
}

fn read(status: u16, body: &str) -> Result<u32, Error> {
    let call = Call::get("/x".into());
    read_answer(&call, StatusCode::from_u16(status).unwrap(), None, body.as_bytes())
}

#[test]
fn answers_are_data_or_refusals_or_unreadable() {
    let meta = r#""meta":{"trace_id":"t","request_id":"r"}"#;
    assert_eq!(read(200, &format!(r#"{{"success":true,"data":7,{meta}}}"#)).unwrap(), 7);
    let refused = format!(
        r#"{{"success":false,"error":{{"code":"LEASE_LOST","message":"gone","class":"business_rule",
        "retryable":false,"details":null}},{meta}}}"#
    );
    let error = read(409, &refused).unwrap_err();
    assert_eq!((error.code(), error.status()), (Some("LEASE_LOST"), Some(409)));
    assert!(!error.is_retryable());
    let error = read(503, "<html>bad gateway</html>").unwrap_err();
    assert!(matches!(error, Error::Unreadable { status: 503, .. }) && error.is_retryable());
}

#[test]
fn waits_grow_up_to_a_limit_and_respect_the_server() {
    let unreadable = |status| Error::Unreadable { call: "x".into(), status, reason: "y".into() };
    let waits: Vec<u128> = (1..9).map(|n| pause(n, &unreadable(503)).as_millis()).collect();
    assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
    let refusal = Refusal { retry_after: Some(Duration::from_secs(3)), ..Refusal::default() };
    assert_eq!(pause(1, &Error::Refused(Box::new(refusal))), Duration::from_secs(3));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::new(&format!("http://{address}"), None).unwrap();
    let error = client.runtime().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { was_sent: false, .. }), "{error:?}");
}
