//! The switch between languages: a cookie, and back to the page.

use super::cookies::{self, Name};
use super::shell;
use super::words::Lang;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::openapi::Doc;
use crate::refusal::{self, Refusal};
use crate::route::Route;
use crate::route::table::{get, open};
use hyper::header::SET_COOKIE;

/// Where the switch is.
pub(super) const PATH: &str = "/ui/language";

pub(super) fn routes() -> Vec<Route> {
    vec![get(PATH, open!(Open, switch), Doc::hidden())]
}

/// Changes nothing but how pages look to this browser.
async fn switch(ask: Ask) -> Result<Reply, Refusal> {
    let query = ask.query(&["to", "back"])?;
    let lang = query.get("to").and_then(Lang::parse);
    let lang = lang.ok_or_else(|| refusal::invalid("to", "must be en or zh-CN"))?;
    let cookie = cookies::set(&ask, Name::Language, Some(lang.as_str()));
    Ok(shell::goes_to(query.get("back").unwrap_or("/")).with_value(SET_COOKIE, cookie))
}
