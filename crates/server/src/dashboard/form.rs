//! Forms: their fields, and the proof that one is ours. A form that changes something carries what
//! its session gave it, and comes from a page of this server as far as the browser says where it
//! comes from. Either alone would do; a mistake in one is caught by the other.

use super::cookies;
use crate::ask::{Ask, decoded};
use crate::refusal::{self, Refusal};
use crate::route::Route;
use hyper::header::{HOST, ORIGIN};
use hyper::{HeaderMap, Method};

/// The field that proves a form.
pub(super) const PROOF: &str = "form";

/// The fields of a form, in order.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of the body.
    pub(super) fn of(ask: &Ask) -> Result<Self, Refusal> {
        let broken = || refusal::invalid("form", "is not properly encoded");
        let text = std::str::from_utf8(&ask.body).map_err(|_| broken())?;
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let read = |text: &str| decoded(&text.replace('+', " ")).ok_or_else(broken);
        let fields = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((read(name)?, read(value)?))
        });
        fields.collect::<Result<_, _>>().map(Fields)
    }

    /// As if somebody had filled them in.
    pub(super) fn known(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Fields(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The first field of that name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The same, if there is something in it.
    pub(super) fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// All of them, but for the proof.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pairs.filter(|(name, _)| *name != PROOF)
    }
}

/// Refuses a form that is not one of ours; what only looks needs no proof.
pub(crate) fn check(ask: &Ask, route: &Route) -> Result<(), Refusal> {
    if route.method == Method::GET {
        return Ok(());
    }
    check_origin(&ask.headers)?;
    let id = cookies::session(&ask.headers).ok_or_else(refusal::unauthorized)?;
    let given = Fields::of(ask)?;
    match ask.app.dashboard.sessions.is_ours(&id, given.get(PROOF).unwrap_or_default()) {
        true => Ok(()),
        false => Err(refusal::form_foreign()),
    }
}

/// Refuses what a browser says comes from elsewhere. What says nothing of it is no browser of our
/// time, and carries no cookie that it was not given on purpose.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    if let Some(site) = headers.get("sec-fetch-site") {
        return match site.as_bytes() {
            b"same-origin" | b"none" => Ok(()),
            _ => Err(refusal::form_foreign()),
        };
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok().and_then(|text| text.split_once("://"));
    match (origin, host) {
        (Some((_, origin)), Some(host)) if origin == host => Ok(()),
        _ => Err(refusal::form_foreign()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn only_pages_of_this_server_send_forms() {
        let told = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            check_origin(&headers).is_ok()
        };
        let host = ("host", "box:7070");
        assert!(told(&[host]));
        assert!(told(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(told(&[host, ("origin", "http://box:7070")]));
        for (name, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "http://box:7071"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
        ] {
            assert!(!told(&[host, (name, value)]), "{name}: {value}");
        }
        let both = [host, ("origin", "http://box:7070"), ("sec-fetch-site", "cross-site")];
        assert!(!told(&both), "what the browser says of the site counts");
    }
}
