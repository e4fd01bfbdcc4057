//! Pages for what went wrong: not signed in, not allowed, not there, the store in trouble. They
//! stand alone, because whatever is wrong may be what the rest of a page needs.

use super::cookies;
use super::shell::{HEADERS, encoded};
use super::words::{Lang, words};
use super::{assets, language};
use crate::answer::{self, Body};
use crate::app::Ids;
use crate::contracts::errors;
use crate::refusal::{Kind, Refusal};
use askama::Template;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

words! {
    Refused {
        denied: "This is not yours to see or do", "你无权查看或执行此操作";
        denied_cure: "Sign in with a token that has the role, or ask somebody who does. If you followed a link, the thing may not exist.", "请使用具有相应角色的令牌登录，或请有权限的人处理。如果是通过链接进入的，该对象也可能不存在。";
        unknown: "There is nothing here", "这里什么也没有";
        unknown_cure: "The thing may be past keeping, or the address has a mistake in it.", "该对象可能已超过保留期，或者地址有误。";
        away: "The store is in trouble", "存储出现故障";
        away_cure: "Nothing is lost: what was accepted is durable, and workers go on once the store is back. This page tries again by itself.", "没有任何丢失：已接受的作业都已持久化，存储恢复后 worker 会继续工作。本页会自动重试。";
        wrong: "This request makes no sense", "请求有误";
        wrong_cure: "Go back and change what the message names.", "请返回并修改消息中指出的内容。";
        busy: "Too much at once", "请求过多";
        busy_cure: "Wait a moment and try again.", "请稍候再试。";
        broken: "Something broke", "出现内部错误";
        broken_cure: "The server's log has the cause under the request id below.", "服务器日志中以下方的请求编号记录了原因。";
        overview: "Overview", "概览";
        jobs: "Jobs", "作业";
        other_token: "Use another token", "换一个令牌";
        request: "Request", "请求";
    }
}

/// How a refusal at a page of the dashboard is told, if the request is for one.
pub(crate) struct Wording {
    lang: Lang,
    target: String,
    is_get: bool,
    /// Whether the script asks, to look again.
    is_live: bool,
    /// Whether another site led here and the browser kept the cookie back.
    is_led_here: bool,
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage<'a> {
    lang: Lang,
    words: &'static Refused,
    title: &'static str,
    cure: &'static str,
    status: u16,
    code: &'a str,
    message: &'a str,
    request: &'a str,
    retry_secs: Option<u64>,
    style: &'static str,
}

#[derive(Template)]
#[template(path = "led_here.html")]
struct LedHere<'a> {
    target: &'a str,
}

impl Wording {
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        let path = request.uri().path();
        let is_ours = matches!(path, "/" | "/ui" | "/sign-in" | "/sign-out" | language::PATH)
            || path.starts_with("/ui/");
        if !is_ours {
            return None;
        }
        let headers = request.headers();
        let is_cross = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        Some(Wording {
            lang: Lang::of(headers),
            target: request.uri().path_and_query().map_or("/", |it| it.as_str()).to_owned(),
            is_get: request.method() == Method::GET,
            is_live: headers.contains_key("x-live"),
            is_led_here: is_cross && cookies::session(headers).is_none(),
        })
    }

    pub(crate) fn refused(&self, refusal: &Refusal, ids: &Ids) -> Response<Body> {
        if refusal.kind == Kind::Unproven && !self.is_live {
            return self.sign_in(refusal, ids);
        }
        let status = errors::status(refusal.kind);
        let words = Refused::of(self.lang);
        let (title, cure) = told(words, refusal.kind);
        let page = RefusedPage {
            lang: self.lang,
            words,
            title,
            cure,
            status: status.as_u16(),
            code: refusal.code,
            message: &refusal.message,
            request: &ids.request,
            retry_secs: (refusal.kind == Kind::Away && self.is_get).then_some(5),
            style: assets::style_path(),
        };
        html(status, page.render(), refusal, ids)
    }

    /// Whoever is not signed in is asked to; whoever another site led here may well be, and the
    /// page below asks again from this site.
    fn sign_in(&self, refusal: &Refusal, ids: &Ids) -> Response<Body> {
        if self.is_led_here && self.is_get {
            let page = LedHere { target: &self.target };
            return html(StatusCode::OK, page.render(), refusal, ids);
        }
        let to = if self.is_get && self.target != "/" {
            format!("/sign-in?to={}", encoded(&self.target))
        } else {
            "/sign-in".to_owned()
        };
        let mut response =
            html(StatusCode::SEE_OTHER, Ok("sign in first\n".to_owned()), refusal, ids);
        let to = HeaderValue::from_str(&to);
        response
            .headers_mut()
            .insert(LOCATION, to.unwrap_or_else(|_| HeaderValue::from_static("/sign-in")));
        response
    }
}

fn told(words: &'static Refused, kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Denied | Kind::Unproven => (words.denied, words.denied_cure),
        Kind::Unknown => (words.unknown, words.unknown_cure),
        Kind::Away | Kind::Room => (words.away, words.away_cure),
        Kind::Share | Kind::Slow => (words.busy, words.busy_cure),
        Kind::Wrong
        | Kind::Method
        | Kind::Conflict
        | Kind::Large
        | Kind::Form
        | Kind::Elsewhere => (words.wrong, words.wrong_cure),
        Kind::Broken => (words.broken, words.broken_cure),
    }
}

fn html(
    status: StatusCode,
    rendered: askama::Result<String>,
    refusal: &Refusal,
    ids: &Ids,
) -> Response<Body> {
    let body = rendered.unwrap_or_else(|_| refusal.message.to_string());
    let mut response = answer::refused(status, body, refusal, ids);
    let headers = response.headers_mut();
    headers.remove(WWW_AUTHENTICATE);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
