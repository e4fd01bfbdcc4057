//! Words for writing a table of routes down: methods, handlers inside their access rule, and the
//! sets of roles that several contracts use.

use super::{Route, Rule, Takes};
use crate::openapi::Doc;
use hyper::Method;
use mainspring_kernel::Role;
use mainspring_kernel::access::Sight;

/// Whoever has a token.
pub(crate) const ANYONE: &[Role] = &Role::ALL;
/// Whoever may look at the whole tenant.
pub(crate) const LOOKERS: &[Role] = Sight::TENANT_ROLES;
/// Whoever may bring work.
pub(crate) const SUBMITTERS: &[Role] = &[Role::Submitter, Role::Operator];
/// Whoever may take work.
pub(crate) const PULLERS: &[Role] = &[Role::Worker];
/// Whoever runs things for the whole tenant.
pub(crate) const OPERATORS: &[Role] = &[Role::Operator];
/// Nobody but admins, who stand for every role.
pub(crate) const ADMINS: &[Role] = &[Role::Admin];

/// A rule without roles around a handler: `open!(Open, handler)`, `open!(Lease, handler)`.
macro_rules! open {
    ($kind:ident, $handler:path) => {
        $crate::route::Rule::$kind(|ask| Box::pin($handler(ask)))
    };
}
pub(crate) use open;

/// The rule that roles are needed, around a handler.
macro_rules! roles {
    ($roles:expr, $handler:path) => {
        $crate::route::Rule::Roles($roles, |ask, who| Box::pin($handler(ask, who)))
    };
}
pub(crate) use roles;

/// The rule that somebody with such a role is signed in, around a handler.
macro_rules! page {
    ($roles:expr, $handler:path) => {
        $crate::route::Rule::Page($roles, |ask, who| Box::pin($handler(ask, who)))
    };
}
pub(crate) use page;

pub(crate) fn route(
    method: Method,
    path: &'static str,
    rule: Rule,
    takes: Takes,
    doc: Doc,
) -> Route {
    Route { method, path, rule, takes, doc }
}

pub(crate) fn get(path: &'static str, rule: Rule, doc: Doc) -> Route {
    route(Method::GET, path, rule, Takes::Nothing, doc)
}

pub(crate) fn post(path: &'static str, rule: Rule, takes: Takes, doc: Doc) -> Route {
    route(Method::POST, path, rule, takes, doc)
}

pub(crate) fn put(path: &'static str, rule: Rule, doc: Doc) -> Route {
    route(Method::PUT, path, rule, Takes::Json, doc)
}
