//! The cookies of the dashboard. Browsers send a host's cookies to every port of it, so their names
//! tell the port: two servers on one machine do not sign each other out.

use crate::ask::Ask;
use crate::limits::SESSION_HOURS_MAX;
use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST, HeaderValue};

/// Which cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Who is signed in.
    Session,
    /// What the sign-in form carries, before anybody is.
    Form,
    /// The language.
    Language,
}

/// The session that a request names.
pub(super) fn session(headers: &HeaderMap) -> Option<String> {
    value(headers, Name::Session)
}

/// The value of a cookie, if it comes once.
pub(super) fn value(headers: &HeaderMap, name: Name) -> Option<String> {
    let name = full_name(headers, name);
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(known, _)| known.trim() == name).map(|(_, value)| value.trim());
    let only = values.next().filter(|_| values.next().is_none())?;
    Some(only.to_owned())
}

/// The header that sets a cookie, or takes it away if there is no value.
pub(super) fn set(ask: &Ask, name: Name, value: Option<&str>) -> HeaderValue {
    let is_secure = ask.app.config.tls.is_some() || is_encrypted(&ask.headers);
    line(&ask.headers, is_secure, name, value)
}

fn line(headers: &HeaderMap, is_secure: bool, name: Name, value: Option<&str>) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    let age = match (value, name) {
        (None, _) => "; Max-Age=0".to_owned(),
        (Some(_), Name::Session) => format!("; Max-Age={}", SESSION_HOURS_MAX * 3_600),
        (Some(_), Name::Form) => "; Max-Age=3600".to_owned(),
        (Some(_), Name::Language) => "; Max-Age=31536000".to_owned(),
    };
    let (name, value) = (full_name(headers, name), value.unwrap_or_default());
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether the browser came by an encrypted way, as far as a proxy says so. Whoever lies about it
/// only spoils their own cookie.
fn is_encrypted(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|value| value == "https")
}

fn full_name(headers: &HeaderMap, name: Name) -> String {
    let what = match name {
        Name::Session => "session",
        Name::Form => "form",
        Name::Language => "language",
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("mainspring-{what}-{port}"),
        None => format!("mainspring-{what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_is_of_its_port_and_comes_once() {
        let both = ["mainspring-session-7070=a; mainspring-session-7071=b; x=y"];
        assert_eq!(session(&headers("localhost:7070", &both)).as_deref(), Some("a"));
        assert_eq!(session(&headers("localhost:7071", &both)).as_deref(), Some("b"));
        assert_eq!(session(&headers("localhost", &both)), None);
        let twice = ["mainspring-session-7070=a", "mainspring-session-7070=b"];
        assert_eq!(session(&headers("localhost:7070", &twice)), None);
    }

    #[test]
    fn a_session_is_for_nobody_else() {
        let mut plain = headers("localhost:7070", &[]);
        assert!(!is_encrypted(&plain));
        plain.insert("x-forwarded-proto", HeaderValue::from_static("https"));
        assert!(is_encrypted(&plain));
        let cookie = line(&plain, false, Name::Session, Some("abc"));
        assert_eq!(
            cookie,
            "mainspring-session-7070=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"
        );
        let cookie = line(&plain, true, Name::Session, Some("abc"));
        assert!(cookie.to_str().unwrap().contains("; Secure"), "{cookie:?}");
        let gone = line(&plain, true, Name::Session, None);
        assert!(gone.to_str().unwrap().ends_with("Max-Age=0"), "{gone:?}");
    }
}
