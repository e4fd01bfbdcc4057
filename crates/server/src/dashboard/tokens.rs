//! Access tokens, for admins: whose they are, what they allow, making one (its secret is shown
//! once, on the page that answers the form and nowhere else), ending one. `tenants.rs` is the rest
//! of the page.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Form, Head, Input, InputKind, Look, Table, Tone, cell,
    instant, target,
};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, words};
use super::{Group, Page, schedules, tenants};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::table::{ADMINS, ANYONE, get, page, post};
use crate::route::{Route, Takes};
use hyper::{Method, body::Bytes};
use mainspring_api as api;
use mainspring_kernel::{Principal, Role, Timestamp};

pub(super) static PAGE: Page = Page {
    path: "/ui/tokens",
    name: ["Tokens and tenants", "令牌与租户"],
    group: Group::People,
    roles: ADMINS,
    routes,
    icon: "M6 10a4 4 0 114-4l4 4v3h-3v-2H9L8 10z",
};

fn routes() -> Vec<Route> {
    let form = |path, rule| post(path, rule, Takes::Form, Doc::hidden());
    let mut routes = vec![
        get("/ui/tokens", page!(ADMINS, list), Doc::hidden()),
        form("/ui/tokens", page!(ADMINS, issue)),
        form("/ui/tokens/{token_id}/revoke", page!(ANYONE, revoke)),
    ];
    routes.extend(tenants::routes());
    routes
}

words! {
    TokenWords {
        state: "State", "状态";
        whose: "Whose", "所属";
        roles: "Roles", "角色";
        issued: "Issued", "签发";
        expires: "Expires", "过期";
        what: "Action", "操作";
        revoke: "Revoke", "吊销";
        revoke_done: "The token has ended, and every session of it.", "令牌已吊销，其会话全部结束。";
        new: "Issue a token", "签发令牌";
        tenant: "Tenant", "租户";
        user: "Person or service", "人或服务";
        expires_at: "Ends by itself at, or never", "到期时间，留空为永不";
        expires_hint: "such as 2027-01-01T00:00:00Z", "例如 2027-01-01T00:00:00Z";
        go: "Issue", "签发";
        once: "This is the only time the secret is shown. Copy it now.", "密钥只显示这一次，请立即复制。";
        secret: "Secret", "密钥";
        by: "by", "由";
        yours: "yours", "你的";
    }
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    shown(&ask, &who, &Fields::default(), None).await
}

async fn issue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let text = |name: &str| fields.filled(name).unwrap_or_default().to_owned();
    let roles = fields.pairs().filter(|(name, _)| *name == "roles");
    let wish = schedules::time(&fields, "expires_at").map(|expires_at| api::token::IssueToken {
        tenant_id: text("tenant_id"),
        user_id: text("user_id"),
        roles: roles.map(|(_, role)| role.to_owned()).collect(),
        expires_at,
    });
    let made = match wish {
        Ok(wish) => {
            Inside::new(&ask, &who).post::<api::token::Token>("/api/v1/tokens", &wish).await
        }
        Err(no) => Err(no),
    };
    match made {
        Ok(token) => shown(&ask, &who, &Fields::default(), Some(token)).await,
        Err(no) => shell::told(&ask, "/ui/tokens", Err(no)),
    }
}

/// The list, and a token that was just made.
async fn shown(
    ask: &Ask,
    who: &Principal,
    fields: &Fields,
    made: Option<api::token::Token>,
) -> Result<Reply, Refusal> {
    let lang = Lang::of(&ask.headers);
    let words = TokenWords::of(lang);
    // The form's own page has no parameters.
    let query = match made.is_some() {
        true => crate::ask::Query::read(None, &[])?,
        false => blocks::query(ask, &["cursor"])?,
    };
    let inside = Inside::new(ask, who);
    let (cursor, limit) = (query.get("cursor").unwrap_or_default(), DASHBOARD_PAGE.to_string());
    let path = target("/api/v1/tokens", [("limit", &*limit), ("cursor", cursor)]);
    let found: api::Page<api::token::Token> = inside.get(&path).await?;
    let frame = Frame::new(ask, who, &PAGE);
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![Block::Head(head)];
    if let Some(token) = &made {
        top.push(Block::Say(Tone::Good, words.once.to_owned()));
        top.push(Block::Text {
            id: "secret",
            name: words.secret,
            class: "",
            bits: vec![
                Bit::Strong(format!("{} @ {}", token.user_id, token.tenant_id)),
                Bit::Soft(token.roles.join(", ")),
            ],
            text: token.token.clone().unwrap_or_default(),
        });
    }
    let may_revoke = inside.may(&Method::DELETE, "/api/v1/tokens/x");
    let (own, now) = (who.token.to_string(), ask.engine().now());
    let rows = found.items.iter().map(|it| row(it, (&own, now), may_revoke, lang)).collect();
    let (older, newest) = blocks::pages("/ui/tokens", &query, &[], found.next_cursor.as_deref());
    let table = Block::Table(Table {
        id: "list",
        heads: vec![words.state, words.whose, words.roles, words.issued, words.expires, words.what],
        rows,
        older,
        newest,
        ..Table::default()
    });
    top.push(Block::Forms { name: words.new, forms: vec![form(fields, words)] });
    top.push(table);
    top.extend(tenants::blocks(&inside, lang).await?);
    BlockPage::plain(frame, top).reply()
}

fn form(fields: &Fields, words: &'static TokenWords) -> Form {
    let value = |name: &str| fields.get(name).unwrap_or_default().to_owned();
    let roles = Role::ALL.map(|role| (role.as_str().to_owned(), false)).into();
    let roles = Input { kind: InputKind::Checks(roles), ..Input::line("roles", words.roles, "") };
    let tenant = Input::line("tenant_id", words.tenant, value("tenant_id")).needed();
    let end = Input::line("expires_at", words.expires_at, "").hint(words.expires_hint);
    Form::new("issue", "/ui/tokens", words.go)
        .look(Look::Main)
        .with(tenant)
        .with(Input::line("user_id", words.user, value("user_id")).needed())
        .with(end)
        .with(roles)
}

fn row(
    it: &api::token::Token,
    (own, now): (&str, Timestamp),
    may_revoke: bool,
    lang: Lang,
) -> Vec<Cell> {
    let words = TokenWords::of(lang);
    let is_over = it.expires_at.is_some_and(|end| end.0 <= now.0);
    let state = match (it.revoked_at, is_over) {
        (Some(_), _) => "revoked",
        (None, true) => "expired",
        (None, false) => "live",
    };
    let yours = (it.token_id == own).then(|| Bit::Soft(words.yours.to_owned()));
    let who = vec![
        Bit::Strong(format!("{} @ {}", it.user_id, it.tenant_id)),
        Bit::Id(it.token_id.clone()),
    ];
    let button = (state == "live" && may_revoke).then(|| Bit::Button {
        action: format!("/ui/tokens/{}/revoke", encoded(&it.token_id)),
        text: words.revoke,
        id: format!("revoke-{}", it.token_id),
    });
    let issued =
        vec![blocks::when(it.issued_at), Bit::Soft(format!("{} {}", words.by, it.issued_by))];
    vec![
        blocks::state(lang, state),
        cell("c-job", who.into_iter().chain(yours).collect()),
        cell("", vec![Bit::Text(it.roles.join(", "))]),
        cell("", issued),
        instant(it.expires_at),
        cell("", button.into_iter().collect()),
    ]
}

async fn revoke(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = TokenWords::of(Lang::of(&ask.headers));
    let path = format!("/api/v1/tokens/{}", encoded(ask.param()));
    let inside = Inside::new(&ask, &who);
    let done = inside.send::<api::token::Token>(&Method::DELETE, &path, Bytes::new()).await;
    shell::told(&ask, "/ui/tokens", done.map(|_| words.revoke_done.to_owned()))
}
