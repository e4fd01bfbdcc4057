//! Signing in with a token or with the link of the start, and signing out.

use super::cookies::{self, Name};
use super::form::{Fields, PROOF, check_origin};
use super::shell::{self, goes_to};
use super::words::{Lang, Shell, words};
use super::{assets, language};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::contracts::errors;
use crate::openapi::Doc;
use crate::refusal::{self, Kind, Refusal};
use crate::route::table::{ANYONE, get, open, page, post};
use crate::route::{Route, Takes};
use askama::Template;
use hyper::StatusCode;
use hyper::header::SET_COOKIE;
use mainspring_kernel::{Principal, TokenId};
use subtle::ConstantTimeEq;

words! {
    SignIn {
        title: "Sign in", "登录";
        lead: "Durable work, to the second.", "持久可靠，准时执行。";
        token: "Access token", "访问令牌";
        token_hint: "The first start of the server prints one and keeps it here:", "服务器首次启动时会打印一个令牌，并保存在：";
        go: "Sign in", "登录";
        once: "You followed the sign-in link of this server.", "你打开了本服务器的一次性登录链接。";
        once_go: "Continue", "继续";
        refused: "This token does not work: it is unknown, revoked or expired.", "令牌无效：不存在、已撤销或已过期。";
        once_over: "This link was used already, or is too old. Sign in with a token.", "该链接已被使用或已过期。请使用令牌登录。";
        form_old: "The form was too old. Please try again.", "表单已过期，请重试。";
        private: "The token stays on the server; this browser gets a session that ends after 12 hours, when you sign out, or when the token is revoked.", "令牌只留在服务器上；浏览器得到的会话在 12 小时后、退出时或令牌被撤销时结束。";
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/sign-in", open!(Open, form), Doc::hidden()),
        post("/sign-in", open!(Open, enter), Takes::Form, Doc::hidden()),
        post("/sign-out", page!(ANYONE, leave), Takes::Form, Doc::hidden()),
    ]
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    lang: Lang,
    shell: &'static Shell,
    words: &'static SignIn,
    /// What the form carries, and a cookie beside it.
    form: String,
    once: Option<String>,
    to: String,
    problem: Option<&'static str>,
    language_path: String,
    style: &'static str,
    script: &'static str,
}

async fn form(ask: Ask) -> Result<Reply, Refusal> {
    let query = ask.query(&["to", "once"])?;
    let (to, once) = (query.get("to").unwrap_or("/"), query.get("once"));
    asking(&ask, to.to_owned(), once.map(str::to_owned), None)
}

fn asking(
    ask: &Ask,
    to: String,
    once: Option<String>,
    problem: Option<&'static str>,
) -> Result<Reply, Refusal> {
    let lang = Lang::of(&ask.headers);
    let form = format!("{:032x}", ask.engine().fresh_bits());
    let cookie = cookies::set(ask, Name::Form, Some(&form));
    let shell = Shell::of(lang);
    let back = format!("/sign-in?to={}", shell::encoded(&to));
    let page = SignInPage {
        lang,
        shell,
        words: SignIn::of(lang),
        form,
        once,
        to,
        problem,
        language_path: format!(
            "{}?to={}&back={}",
            language::PATH,
            shell.language_other_code,
            shell::encoded(&back)
        ),
        style: assets::style_path(),
        script: assets::script_path(),
    };
    let status = if problem.is_some() { errors::status(Kind::Denied) } else { StatusCode::OK };
    Ok(shell::page(&page)?.with_value(SET_COOKIE, cookie).with_status(status))
}

/// Signs in whoever proves a token, or brings the link; anybody else is asked again.
async fn enter(ask: Ask) -> Result<Reply, Refusal> {
    check_origin(&ask.headers)?;
    let fields = Fields::of(&ask)?;
    let words = SignIn::of(Lang::of(&ask.headers));
    let to = fields.get("to").unwrap_or("/").to_owned();
    let carried = cookies::value(&ask.headers, Name::Form).unwrap_or_default();
    let given = fields.get(PROOF).unwrap_or_default();
    let is_ours = !given.is_empty() && bool::from(given.as_bytes().ct_eq(carried.as_bytes()));
    if !is_ours {
        return asking(&ask, to, None, Some(words.form_old));
    }
    let token = match fields.filled("once") {
        Some(once) => match linked(&ask, once).await? {
            Some(token) => token,
            None => return asking(&ask, to, None, Some(words.once_over)),
        },
        None => {
            match auth::proven(ask.engine(), fields.filled("token").unwrap_or_default()).await {
                Ok(who) => who.token,
                Err(no) if no.kind == Kind::Unproven => {
                    return asking(&ask, to, None, Some(words.refused));
                }
                Err(no) => return Err(no),
            }
        }
    };
    // A new id: one that somebody else put into the browser before leads nowhere.
    let fresh = || format!("{:032x}{:032x}", ask.engine().fresh_bits(), ask.engine().fresh_bits());
    let (id, form) = (fresh(), fresh());
    ask.app.dashboard.sessions.begin((&id, form), token, ask.engine().now());
    let session = cookies::set(&ask, Name::Session, Some(&id));
    let form = cookies::set(&ask, Name::Form, None);
    Ok(goes_to(&to).with_value(SET_COOKIE, session).with_value(SET_COOKIE, form))
}

/// The token of a link that holds, if that token works.
async fn linked(ask: &Ask, once: &str) -> Result<Option<TokenId>, Refusal> {
    let now = ask.engine().now();
    let Some(token) = ask.app.dashboard.once.take(once, now) else { return Ok(None) };
    let token = ask.engine().token(token).await?;
    Ok(token.filter(|token| token.is_live(now)).map(|token| token.id))
}

async fn leave(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    let id = cookies::session(&ask.headers).ok_or_else(refusal::unauthorized)?;
    ask.app.dashboard.sessions.end(&id);
    let gone = cookies::set(&ask, Name::Session, None);
    Ok(goes_to("/sign-in").with_value(SET_COOKIE, gone))
}
