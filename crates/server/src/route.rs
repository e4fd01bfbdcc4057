//! What a route is: where, who may, what comes in. A route without an access rule cannot be
//! written down, because its handler sits inside the rule.

pub(crate) mod table;

use crate::answer::Reply;
use crate::ask::{Ask, decoded};
use crate::openapi::Doc;
use crate::refusal::{self, Refusal};
use futures_util::future::BoxFuture;
use hyper::Method;
use mainspring_kernel::{Principal, Role};
use std::collections::HashMap;

/// What a handler comes to.
pub(crate) type Answering = BoxFuture<'static, Result<Reply, Refusal>>;

/// Who may use a route, and what then happens.
pub(crate) enum Rule {
    /// Anyone.
    Open(fn(Ask) -> Answering),
    /// Whoever holds the lease tokens in the request; a principal is looked up only if needed.
    Lease(fn(Ask) -> Answering),
    /// Whoever has one of these roles, or is admin.
    Roles(&'static [Role], fn(Ask, Principal) -> Answering),
    /// Whoever has the internal role itself and says so in `x-internal-debug`.
    Internal(fn(Ask, Principal) -> Answering),
    /// Anyone where only this machine can ask; elsewhere whoever has one of these roles.
    Local(&'static [Role], fn(Ask) -> Answering),
    /// Whoever is signed in to the dashboard with one of these roles, or is admin. What changes
    /// something is asked for by a form of ours, or not at all.
    Page(&'static [Role], fn(Ask, Principal) -> Answering),
}

/// Which body a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// None; one that is sent is not looked at.
    Nothing,
    /// JSON about one thing.
    Json,
    /// JSON about one thing, or nothing.
    MaybeJson,
    /// JSON about many things.
    Batch,
    /// The fields of a form.
    Form,
}

/// One line of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Literal parts and `{...}` parts.
    pub(crate) path: &'static str,
    pub(crate) rule: Rule,
    pub(crate) takes: Takes,
    pub(crate) doc: Doc,
}

/// Finds routes: literal paths by a map, the others by looking.
pub(crate) struct Router {
    routes: Vec<Route>,
    literal: HashMap<&'static str, Vec<usize>, foldhash::fast::FixedState>,
    /// Paths with `{...}`, in parts.
    patterns: Vec<(Vec<&'static str>, Vec<usize>)>,
}

impl Router {
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let mut literal: HashMap<_, Vec<usize>, _> = HashMap::default();
        let mut patterns: Vec<(Vec<&'static str>, Vec<usize>)> = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            if !route.path.contains('{') {
                literal.entry(route.path).or_default().push(index);
                continue;
            }
            let parts: Vec<_> = route.path.split('/').collect();
            match patterns.iter_mut().find(|(known, _)| *known == parts) {
                Some((_, same)) => same.push(index),
                None => patterns.push((parts, vec![index])),
            }
        }
        Router { routes, literal, patterns }
    }

    /// The route for a request and the values of its `{...}` parts.
    pub(crate) fn find(
        &self,
        method: &Method,
        path: &str,
    ) -> Result<(&Route, Vec<String>), Refusal> {
        let (candidates, params) = match self.literal.get(path) {
            Some(candidates) => (candidates, Vec::new()),
            None => {
                let mut asked = Vec::with_capacity(8);
                asked.extend(path.split('/'));
                let mut patterns = self.patterns.iter();
                let found =
                    patterns.find_map(|(parts, routes)| Some((routes, matched(parts, &asked)?)));
                found.ok_or_else(refusal::path_unknown)?
            }
        };
        let wanted = if *method == Method::HEAD { &Method::GET } else { method };
        let found = candidates.iter().map(|index| &self.routes[*index]);
        match found.clone().find(|route| route.method == *wanted) {
            Some(route) => Ok((route, params)),
            None => {
                let allow: Vec<_> = found.map(|route| route.method.as_str()).collect();
                Err(refusal::method_not_allowed(allow.join(", ")))
            }
        }
    }

    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }
}

/// The values of the `{...}` parts, if the path is of this pattern. Most patterns are not the one,
/// so nothing is decoded before the literal parts agree.
fn matched(parts: &[&str], asked: &[&str]) -> Option<Vec<String>> {
    let is_open = |part: &str| part.starts_with('{');
    let mut pairs = parts.iter().zip(asked);
    let is_like = parts.len() == asked.len()
        && pairs.all(|(part, given)| if is_open(part) { !given.is_empty() } else { part == given });
    if !is_like {
        return None;
    }
    let open = parts.iter().zip(asked).filter(|(part, _)| is_open(part));
    open.map(|(_, given)| decoded(given)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_part_by_part() {
        let parts = ["", "jobs", "{id}", "events"];
        let matched = |path: &str| matched(&parts, &path.split('/').collect::<Vec<_>>());
        assert_eq!(matched("/jobs/a%20b/events"), Some(vec!["a b".to_owned()]));
        for other in ["/jobs//events", "/jobs/a", "/jobs/a/events/", "/jobs/%zz/events"] {
            assert_eq!(matched(other), None, "{other}");
        }
    }
}
