//! Tenants, on the page of tokens: what each gets and may have, what it has waiting, and a form
//! that sets it. Those that nobody has set are plain and not listed.

use super::blocks::{Bit, Block, Cell, Form, Input, Table, cell};
use super::form::Fields;
use super::inside::Inside;
use super::making::{choices, number};
use super::parts;
use super::shell::{self, encoded};
use super::words::{Lang, words};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{self, Refusal};
use crate::route::table::{ADMINS, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Principal;

words! {
    TenantWords {
        title: "Tenants", "租户";
        hint: "Those that somebody has set; any other has one turn in its round and the bounds of the house.", "仅列出设置过的租户；其他租户按默认权重与上限。";
        name: "Tenant", "租户";
        turns: "Weight", "权重";
        waiting: "Not ended", "未结束";
        most: "At most", "上限";
        no_limit: "no limit", "不限";
        state: "State", "状态";
        works: "hands out", "正常派发";
        paused: "paused", "已暂停";
        set_title: "Set a tenant", "设置租户";
        weight: "Weight, 1 to 100", "权重（1 到 100）";
        backlog: "Most jobs that have not ended", "未结束作业上限";
        backlog_hint: "no limit if empty", "留空为不限";
        pause: "Hand out its jobs", "派发其作业";
        yes: "yes", "是";
        no: "no, pause it", "否，暂停";
        go: "Set", "设置";
        done: "The tenant is set.", "租户已设置。";
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![post("/ui/tenants", page!(ADMINS, set), Takes::Form, Doc::hidden())]
}

/// The list, if there is one, and the form.
pub(super) async fn blocks(inside: &Inside<'_>, lang: Lang) -> Result<Vec<Block>, Refusal> {
    let words = TenantWords::of(lang);
    let found: api::Page<api::registry::Tenant> = inside.get("/api/v1/tenants").await?;
    let rows: Vec<_> = found.items.iter().take(DASHBOARD_PAGE).map(|it| row(it, words)).collect();
    let table = Table {
        id: "tenants",
        name: Some(words.title),
        hint: Some(words.hint.to_owned()),
        heads: vec![words.name, words.turns, words.waiting, words.most, words.state],
        rows,
        ..Table::default()
    };
    let handed = choices(&[("yes", words.yes), ("no", words.no)]);
    let form = Form::new("tenant", "/ui/tenants", words.go)
        .with(Input::line("tenant_id", words.name, "").needed())
        .with(Input::line("weight", words.weight, "1"))
        .with(Input::line("backlog_max", words.backlog, "").hint(words.backlog_hint))
        .with(Input::choice("handed", words.pause, "yes", handed));
    Ok(vec![Block::Table(table), Block::Forms { name: words.set_title, forms: vec![form] }])
}

fn row(it: &api::registry::Tenant, words: &'static TenantWords) -> Vec<Cell> {
    let most = it.backlog_max.map_or_else(|| words.no_limit.to_owned(), parts::count);
    let state = if it.paused { words.paused } else { words.works };
    vec![
        cell("c-job", vec![Bit::Strong(it.tenant_id.clone())]),
        cell("num", vec![Bit::Text(it.weight.to_string())]),
        cell("num", vec![Bit::Text(parts::count(it.backlog))]),
        cell("num", vec![Bit::Text(most)]),
        cell("", vec![Bit::Text(state.to_owned())]),
    ]
}

async fn set(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let set = async {
        let inside = Inside::new(&ask, &who);
        let path = format!("/api/v1/tenants/{}", encoded(fields.filled("tenant_id").unwrap_or("")));
        // How much room it may take up is no field of the form, and stays.
        let known: api::registry::Tenant = inside.get(&path).await?;
        let wish = api::registry::SetTenant {
            weight: number(&fields, "weight")?,
            backlog_max: number(&fields, "backlog_max")?,
            backlog_bytes_max: known.backlog_bytes_max,
            paused: Some(fields.get("handed") == Some("no")),
        };
        let body = serde_json::to_vec(&wish).map_err(|_| refusal::internal())?;
        inside.send::<api::registry::Tenant>(&Method::PUT, &path, body.into()).await
    };
    let words = TenantWords::of(Lang::of(&ask.headers));
    shell::told(&ask, "/ui/tokens", set.await.map(|_| words.done.to_owned()))
}
