//! What the answer to a question comes to: `true` or `yes`, as a result of its own or as the
//! `result` of an object, means yes. Anything else does not.

/// Whether a result says yes.
pub(super) fn is_yes(json: &str) -> bool {
    let json = json.trim();
    if !json.starts_with('{') {
        return says_yes(json);
    }
    // A key inside of another text would have its quotes escaped.
    let Some(at) = json.find("\"result\"") else { return false };
    let rest = json[at + "\"result\"".len()..].trim_start();
    let Some(value) = rest.strip_prefix(':') else { return false };
    let value = value.trim_start();
    let end = match value.strip_prefix('"') {
        Some(text) => text.find('"').map_or(value.len(), |end| end + 2),
        None => value.find([',', '}']).unwrap_or(value.len()),
    };
    says_yes(value[..end].trim())
}

fn says_yes(value: &str) -> bool {
    let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let text = text.unwrap_or(value).trim();
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_true_and_yes_mean_yes() {
        for yes in ["true", "\"Yes\"", " \"TRUE\" ", r#"{"resultType":"text","result":"yes"}"#] {
            assert!(is_yes(yes), "{yes}");
        }
        assert!(is_yes(r#"{"result": true, "more": 1}"#));
        for no in ["", "false", "\"no\"", "1", "{}", r#"{"result":"yes, but"}"#, r#"{"x":"true"}"#]
        {
            assert!(!is_yes(no), "{no}");
        }
    }
}
