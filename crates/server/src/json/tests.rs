//! Strictness of bodies, each with its code.

use super::*;
use serde_json::value::RawValue;

fn code(body: &[u8]) -> &'static str {
    check(body).map_or_else(|refusal| refusal.code, |_| "ok")
}

#[test]
fn plain_bodies_pass() {
    for body in [
        r#"{}"#,
        r#"{"a":1,"b":[{"a":1},{"a":2}],"c":{"a":"\"a\":"}}"#,
        r#"["a","a",{"x":{"x":{"x":null}}}]"#,
        r#"{"a\"b":1,"a":2,"b":3}"#,
        "",
        "\"open",
        "}}}",
        "{\"a\":\\",
    ] {
        assert_eq!(code(body.as_bytes()), "ok", "{body}");
    }
}

#[test]
fn repeated_keys_are_refused_at_every_level() {
    for body in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"b":{"c":[{"d":1,"d":1}]}}"#,
        r#"{"job_type":1,"payload":{"x":1,"y":{},"x":2}}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":{"z":1},"b":[],"a":{}}"#,
    ] {
        assert_eq!(code(body.as_bytes()), "JSON_DUPLICATE_KEY", "{body}");
    }
    let many: Vec<_> = (0..500).map(|n| format!("\"k{}\":0", n % 499)).collect();
    assert_eq!(code(format!("{{{}}}", many.join(",")).as_bytes()), "JSON_DUPLICATE_KEY");
    let unique: Vec<_> = (0..500).map(|n| format!("\"k{n}\":{{\"k\":0}}")).collect();
    assert_eq!(code(format!("{{{}}}", unique.join(",")).as_bytes()), "ok");
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(code(nested(JSON_DEPTH_MAX).as_bytes()), "ok");
    assert_eq!(code(nested(JSON_DEPTH_MAX + 1).as_bytes()), "JSON_TOO_DEEP");
    assert_eq!(code("{\"a\":".repeat(100).as_bytes()), "JSON_TOO_DEEP");
    assert_eq!(code(b"\"[[[[\""), "ok");
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    assert_eq!(code(b"{\"a\":\"\xff\"}"), "JSON_NOT_UTF8");
    assert_eq!(code(b"\xed\xa0\x80"), "JSON_NOT_UTF8");
}

#[test]
fn plain_finds_the_first_quote_or_backslash() {
    for length in 0..40 {
        for (stop, byte) in [(b'"', b'"'), (b'\\', b'\\')] {
            let mut bytes = vec![b'x'; length];
            assert_eq!(plain(&bytes), length);
            bytes.push(stop);
            bytes.extend_from_slice(b"\"\\xxxxxxxxxx");
            assert_eq!(plain(&bytes), length, "{}", byte as char);
        }
        // Bytes that differ from a quote in one bit, and letters beyond ASCII, are plain.
        let near = vec![b'#'; length].into_iter().chain([b'!', 0xc3, 0xa9, 0x01]);
        let near: Vec<u8> = near.collect();
        assert_eq!(plain(&near), near.len());
    }
}

#[test]
fn wrong_shapes_tell_the_path() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner<'a> {
        #[expect(dead_code, reason = "only its presence matters")]
        number: u8,
        #[serde(borrow)]
        #[expect(dead_code, reason = "only its presence matters")]
        raw: &'a RawValue,
    }
    #[derive(Debug, Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        items: Bounded<Inner<'a>>,
    }
    let fine: Outer<'_> = read(r#"{"items":[{"number":1,"raw":{"a" : 1}}]}"#).unwrap();
    assert!(!fine.items.is_over);
    let path = |body: &str| {
        let refusal = read::<Outer<'_>>(body).unwrap_err();
        (refusal.code, refusal.field)
    };
    let failed = |path: &str| ("REQ_VALIDATION_FAILED", Some(path.into()));
    assert_eq!(path(r#"{"items":[{"number":999,"raw":0}]}"#), failed("items[0].number"));
    assert_eq!(path(r#"{"items":[{"number":1,"raw":0},{"raw":1}]}"#), failed("items[1]"));
    assert_eq!(path(r#"{"items":[{"number":1,"raw":0,"x":1}]}"#), failed("items[0].x"));
    assert_eq!(path("{\"items\":[").0, "JSON_INVALID");
    assert_eq!(path("{} x").0, "REQ_VALIDATION_FAILED");
}

#[test]
fn lists_stop_at_the_largest_batch() {
    let list = |length: usize| format!("[{}0]", "0,".repeat(length - 1));
    let full: Bounded<u8> = read(&list(BATCH_MAX)).unwrap();
    assert!(full.items.len() == BATCH_MAX && !full.is_over);
    let over: Bounded<u8> = read(&list(BATCH_MAX + 1)).unwrap();
    assert!(over.items.len() == BATCH_MAX && over.is_over);
}

#[test]
fn whole_numbers_are_whole_however_they_are_spelt() {
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Numbers {
        small: u8,
        large: Option<u64>,
        list: Vec<i32>,
    }
    let text = r#"{"small":5.0,"large":4.867e3,"list":[-0,-2.0,3]}"#;
    let read: Numbers = read(text).unwrap();
    assert_eq!(read, Numbers { small: 5, large: Some(4_867), list: vec![0, -2, 3] });
    for wrong in ["5.5", "256.0", "-1.0", "1e400", "\"5\"", "true", "9007199254740992.0", "1e19"] {
        let text = format!(r#"{{"small":{wrong},"list":[]}}"#);
        assert!(super::read::<Numbers>(&text).is_err(), "{wrong}");
        let text = format!(r#"{{"small":1,"large":{wrong},"list":[]}}"#);
        let is_fine = wrong == "256.0";
        assert_eq!(super::read::<Numbers>(&text).is_ok(), is_fine, "{wrong}");
    }
}
