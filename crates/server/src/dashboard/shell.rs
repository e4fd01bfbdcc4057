//! What every page has around it: navigation, who is signed in, what there is to say, and the
//! headers that keep a page to itself.

use super::cookies;
use super::session::Flash;
use super::words::{Lang, Shell};
use super::{Group, PAGES, Page, assets};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::refusal::{self, Refusal};
use askama::Template;
use hyper::StatusCode;
use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use mainspring_kernel::Principal;

/// Nothing but what this server serves, no script or style inside of a page, no frame around it.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types mainspring";

/// Headers that every page has, beside those of every answer.
pub(super) const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "same-origin"),
    (X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A link of the navigation.
pub(super) struct Link {
    pub(super) path: &'static str,
    pub(super) name: &'static str,
    pub(super) icon: &'static str,
    pub(super) is_here: bool,
}

/// What is around a page.
pub(super) struct Frame {
    pub(super) lang: Lang,
    pub(super) shell: &'static Shell,
    pub(super) title: String,
    pub(super) groups: Vec<(&'static str, Vec<Link>)>,
    pub(super) tenant: String,
    pub(super) user: String,
    pub(super) roles: String,
    /// What forms of this page carry.
    pub(super) form: String,
    /// Where this page is, to come back to.
    pub(super) here: String,
    pub(super) flash: Option<Flash>,
    pub(super) is_low_on_space: bool,
    pub(super) style: &'static str,
    pub(super) script: &'static str,
    pub(super) version: &'static str,
}

impl Frame {
    /// Around `page`, for `who`.
    pub(super) fn new(ask: &Ask, who: &Principal, page: &'static Page) -> Self {
        let lang = Lang::of(&ask.headers);
        let session = cookies::session(&ask.headers).unwrap_or_default();
        let sessions = &ask.app.dashboard.sessions;
        // The script looks again and again; what is said is for eyes.
        let flash = (!is_live_look(ask)).then(|| sessions.said(&session)).flatten();
        let roles: Vec<&str> = who.roles.iter().map(|role| role.as_str()).collect();
        Frame {
            lang,
            shell: Shell::of(lang),
            title: lang.of_two(page.name).to_owned(),
            groups: groups(lang, who, page),
            tenant: who.tenant.to_string(),
            user: who.user.to_string(),
            roles: roles.join(", "),
            form: sessions.form(&session).unwrap_or_default(),
            here: here(page.path, ask.query.as_deref()),
            flash,
            is_low_on_space: ask.engine().health().is_low_on_space,
            style: assets::style_path(),
            script: assets::script_path(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// With a title of its own, and its own place.
    pub(super) fn titled(mut self, title: impl Into<String>, here: String) -> Self {
        self.title = title.into();
        self.here = here;
        self
    }

    /// Where the switch of languages leads.
    pub(super) fn language_path(&self) -> String {
        format!("/ui/language?to={}&back={}", self.shell.language_other_code, encoded(&self.here))
    }
}

/// A path with what stands behind its `?`.
fn here(path: &str, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

fn groups(lang: Lang, who: &Principal, here: &'static Page) -> Vec<(&'static str, Vec<Link>)> {
    let links = |group: Group| {
        let pages = PAGES.iter().filter(|page| page.group == group && who.roles.any(page.roles));
        let link = |page: &&Page| Link {
            path: page.path,
            name: lang.of_two(page.name),
            icon: page.icon,
            is_here: page.path == here.path,
        };
        pages.map(link).collect::<Vec<_>>()
    };
    let groups = Group::ALL.into_iter().map(|(group, name)| (lang.of_two(name), links(group)));
    groups.filter(|(_, links)| !links.is_empty()).collect()
}

/// Whether it is the script that asks.
pub(super) fn is_live_look(ask: &Ask) -> bool {
    ask.headers.contains_key("x-live")
}

/// A page as an answer.
pub(super) fn page(template: &impl Template) -> Result<Reply, Refusal> {
    let html = template.render().map_err(|error| {
        tracing::error!(%error, "a page could not be rendered");
        refusal::internal()
    })?;
    Ok(dressed(Reply::other("text/html; charset=utf-8", html)))
}

/// With the headers of a page.
pub(super) fn dressed(reply: Reply) -> Reply {
    HEADERS.into_iter().fold(reply, |reply, (name, value)| reply.with(name, value))
}

/// Sends the browser on to a path of this server; any other is taken for `/`.
pub(super) fn goes_to(path: &str) -> Reply {
    let own = HeaderValue::from_str(if is_own(path) { path } else { "/" });
    let own = own.unwrap_or_else(|_| HeaderValue::from_static("/"));
    let reply = Reply::other("text/plain; charset=utf-8", "go on\n");
    dressed(reply.with_status(StatusCode::SEE_OTHER).with_value(LOCATION, own))
}

/// Whether a browser takes this for a path of the same server.
fn is_own(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// What a form came to: said on the page `back`, whether it went well or was refused by the rules.
/// What is nobody's to do, and what broke, has a page of its own.
pub(super) fn told(
    ask: &Ask,
    back: &str,
    outcome: Result<String, Refusal>,
) -> Result<Reply, Refusal> {
    let flash = match outcome {
        Ok(text) => Flash { is_good: true, text, code: None },
        Err(no) if no.is_for_the_form() => {
            Flash { is_good: false, text: no.message.into_owned(), code: Some(no.code) }
        }
        Err(no) => return Err(no),
    };
    if let Some(session) = cookies::session(&ask.headers) {
        ask.app.dashboard.sessions.say(&session, flash);
    }
    Ok(goes_to(back))
}

/// A text as a part of a query.
pub(super) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        for own in ["/", "/ui/jobs?status=failed", "/ui/jobs/job_1"] {
            assert!(is_own(own), "{own}");
        }
        for other in
            ["", "ui", "//evil.example", "/\\evil.example", "http://evil.example", "/a b", "/\n"]
        {
            assert!(!is_own(other), "{other:?}");
        }
    }

    #[test]
    fn what_goes_into_a_query_cannot_leave_it() {
        assert_eq!(encoded("a&b=c#d"), "a%26b%3Dc%23d");
    }
}
