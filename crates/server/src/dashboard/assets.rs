//! The style sheet, the script and the picture: parts of the binary. Their addresses tell what is
//! in them, so that browsers may keep them for good.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::Route;
use crate::route::table::{get, open};
use hyper::header::{CACHE_CONTROL, HeaderName};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str =
    concat!(include_str!("../../assets/dashboard.css"), include_str!("../../assets/pages.css"));
const SCRIPT: &str = include_str!("../../assets/dashboard.js");
const ICON: &str = include_str!("../../assets/icon.svg");

static STYLE_PATH: LazyLock<String> = LazyLock::new(|| addressed("/ui/dashboard.css", STYLE));
static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| addressed("/ui/dashboard.js", SCRIPT));

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/ui/dashboard.css", open!(Open, style), Doc::hidden()),
        get("/ui/dashboard.js", open!(Open, script), Doc::hidden()),
        get("/ui/icon.svg", open!(Open, icon), Doc::hidden()),
    ]
}

/// Where pages find the style sheet.
pub(super) fn style_path() -> &'static str {
    &STYLE_PATH
}

/// Where pages find the script.
pub(super) fn script_path() -> &'static str {
    &SCRIPT_PATH
}

fn addressed(path: &str, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let [a, b, c, d, ..] = digest.as_slice() else { return path.to_owned() };
    format!("{path}?v={a:02x}{b:02x}{c:02x}{d:02x}")
}

async fn style(ask: Ask) -> Result<Reply, Refusal> {
    Ok(kept(&ask, Reply::other("text/css; charset=utf-8", STYLE)))
}

async fn script(ask: Ask) -> Result<Reply, Refusal> {
    Ok(kept(&ask, Reply::other("text/javascript; charset=utf-8", SCRIPT)))
}

async fn icon(ask: Ask) -> Result<Reply, Refusal> {
    Ok(kept(&ask, Reply::other("image/svg+xml", ICON)))
}

/// What is asked for by what is in it never changes.
fn kept(ask: &Ask, reply: Reply) -> Reply {
    let age = if ask.query.is_some() { "public, max-age=31536000, immutable" } else { "no-cache" };
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    reply.with(CACHE_CONTROL, age).with(policy, "same-origin")
}
