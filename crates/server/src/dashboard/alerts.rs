//! Alerts: those that stand, those somebody has taken notice of, those that are over; and one of
//! them with the form by which one takes notice.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Fact, Form, Head, Input, Look, Tab, Table, Tone, cell,
    instant, target, title,
};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, words};
use super::{Group, Page};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{Kind, Refusal};
use crate::route::table::{ANYONE, LOOKERS, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Principal;

pub(super) static PAGE: Page = Page {
    path: "/ui/alerts",
    name: ["Alerts", "告警"],
    group: Group::Work,
    roles: LOOKERS,
    routes,
    icon: "M8 2l6 11H2zM8 6v3M8 11v0",
};

fn routes() -> Vec<Route> {
    vec![
        get("/ui/alerts", page!(LOOKERS, list), Doc::hidden()),
        get("/ui/alerts/{alert_id}", page!(LOOKERS, show), Doc::hidden()),
        post(
            "/ui/alerts/{alert_id}/acknowledge",
            page!(ANYONE, acknowledge),
            Takes::Form,
            Doc::hidden(),
        ),
    ]
}

words! {
    AlertWords {
        open: "Open", "未处理";
        acknowledged: "Acknowledged", "已确认";
        cleared: "Cleared", "已解除";
        views: "States", "状态";
        severity: "Severity", "级别";
        alert: "Alert", "告警";
        seen: "What was seen", "情况";
        since: "Since", "开始";
        last_seen: "Last seen", "最近发现";
        rule: "Rule", "规则";
        filter: "Filter", "筛选";
        clear: "Clear", "清除";
        none: "No alert stands. Rules are looked at every few seconds; the ones there are:", "没有告警。规则每隔几秒检查一次；查看现有告警：";
        none_fits: "There is none.", "没有。";
        facts: "Facts", "基本信息";
        subject: "About", "对象";
        value: "Seen", "数值";
        threshold: "Raised at", "阈值";
        count: "Raised", "发生次数";
        by: "Acknowledged by", "确认人";
        note: "Note", "备注";
        over: "Over since", "解除时间";
        actions: "What to do", "处理";
        acknowledge: "Take notice", "确认";
        acknowledge_hint: "It stays until what was seen is over; others see that you look after it.", "告警会保留到情况解除；其他人会看到你在处理。";
        done: "You have taken notice.", "已确认。";
    }
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, AlertWords::of(frame.lang));
    let query = blocks::query(&ask, &["state", "rule", "cursor"])?;
    let state = query.get("state").unwrap_or("open");
    let rule = query.get("rule").unwrap_or_default();
    let cursor = query.get("cursor").unwrap_or_default();
    let limit = DASHBOARD_PAGE.to_string();
    let pairs = [("state", state), ("rule", rule), ("cursor", cursor), ("limit", &*limit)];
    let asked = Inside::new(&ask, &who).get(&target("/api/v1/alerts", pairs)).await;
    let (found, problem): (api::Page<api::alert::Alert>, _) = match asked {
        Ok(found) => (found, None),
        Err(no) if no.kind == Kind::Wrong => {
            (api::Page::whole(Vec::new()), Some(no.message.into_owned()))
        }
        Err(no) => return Err(no),
    };
    let tab = |(name, code): (&'static str, &str)| Tab {
        name,
        href: target("/ui/alerts", [("state", code), ("rule", rule)]),
        is_here: code == state,
    };
    let tabs =
        [(words.open, "open"), (words.acknowledged, "acknowledged"), (words.cleared, "cleared")];
    let cleared = target("/ui/alerts", [("state", state)]);
    let filters = Block::Filters {
        action: "/ui/alerts",
        inputs: vec![Input::hidden("state", state), Input::line("rule", words.rule, rule)],
        go: words.filter,
        clear: (!rule.is_empty()).then_some((cleared, words.clear)),
    };
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let tabs = Block::Tabs { name: words.views, tabs: tabs.map(tab).into() };
    let mut top = vec![Block::Head(head), tabs, filters];
    match problem {
        Some(problem) => top.push(Block::Say(Tone::Bad, problem)),
        None if found.items.is_empty() && state == "open" && rule.is_empty() => {
            let commands = "mainspring alerts list";
            top.push(Block::Teach { text: words.none.to_owned(), commands });
        }
        None if found.items.is_empty() => {
            top.push(Block::Teach { text: words.none_fits.to_owned(), commands: "" });
        }
        None => {}
    }
    let (older, newest) =
        blocks::pages("/ui/alerts", &query, &["state", "rule"], found.next_cursor.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![words.severity, words.alert, words.seen, words.since, words.last_seen],
        rows: found.items.iter().map(|it| row(it, lang)).collect(),
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

fn row(it: &api::alert::Alert, lang: Lang) -> Vec<Cell> {
    vec![
        blocks::state(lang, &it.severity),
        title(format!("/ui/alerts/{}", it.alert_id), &it.rule, &it.alert_id),
        cell("c-what", vec![Bit::Clip(it.message.clone())]),
        instant(Some(it.raised_at)),
        instant(Some(it.seen_at)),
    ]
}

fn native_path(ask: &Ask, step: &str) -> String {
    format!("/api/v1/alerts/{}{step}", encoded(ask.param()))
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let inside = Inside::new(&ask, &who);
    let it: api::alert::Alert = inside.get(&native_path(&ask, "")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, AlertWords::of(frame.lang));
    let here = format!("/ui/alerts/{}", it.alert_id);
    let frame = frame.titled(format!("{} · {}", it.rule, it.alert_id), here);
    let head = Head {
        title: it.rule.clone(),
        mark: Some(blocks::mark(lang, &it.state)),
        id: Some(it.alert_id.clone()),
        ..Head::default()
    };
    let mut main = vec![Block::Text {
        id: "seen",
        name: words.seen,
        class: if it.state == "cleared" { "" } else { "failure" },
        bits: vec![Bit::Mark(blocks::mark(lang, &it.severity))],
        text: it.message.clone(),
    }];
    let may = inside.may(&Method::POST, "/api/v1/alerts/x/acknowledge");
    if it.state == "open" && may {
        let action = format!("/ui/alerts/{}/acknowledge", it.alert_id);
        let form = Form::new("acknowledge", action, words.acknowledge).look(Look::Main);
        let form = form.hint(words.acknowledge_hint).with(Input::line("note", words.note, ""));
        main.push(Block::Forms { name: words.actions, forms: vec![form] });
    }
    let facts = facts(&it, words);
    let side = vec![Block::Facts { id: "facts", name: words.facts, facts }];
    BlockPage { frame, top: vec![Block::Head(head)], main, side }.reply()
}

fn facts(it: &api::alert::Alert, words: &'static AlertWords) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(subject) = &it.subject {
        facts.push(match place(subject) {
            Some(href) => Fact::link(words.subject, href, subject),
            None => Fact::text(words.subject, subject),
        });
    }
    facts.push(Fact::text(words.value, it.value));
    facts.push(Fact::text(words.threshold, it.threshold));
    facts.push(Fact::text(words.count, it.count));
    facts.push(Fact::at(words.since, it.raised_at));
    facts.push(Fact::at(words.last_seen, it.seen_at));
    if let Some(by) = &it.acknowledged_by {
        let at = it.acknowledged_at.map(blocks::when);
        let bits = std::iter::once(Bit::Strong(by.clone())).chain(at).collect();
        facts.push(Fact::new(words.by, bits));
    }
    facts.extend(it.note.as_ref().map(|note| Fact::text(words.note, note)));
    facts.extend(it.cleared_at.map(|at| Fact::at(words.over, at)));
    facts
}

/// Where what an alert is about has a page, as far as its name tells.
fn place(subject: &str) -> Option<String> {
    let page = match subject.split_once('_')?.0 {
        "job" => "/ui/jobs",
        "sch" => "/ui/schedules",
        "dlq" => "/ui/dlq/items",
        _ => return None,
    };
    Some(format!("{page}/{}", encoded(subject)))
}

async fn acknowledge(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = AlertWords::of(Lang::of(&ask.headers));
    let note = Fields::of(&ask)?.filled("note").map(str::to_owned);
    let wish = api::alert::AcknowledgeAlert { note };
    let path = native_path(&ask, "/acknowledge");
    let done = Inside::new(&ask, &who).post::<api::alert::Alert>(&path, &wish).await;
    let back = format!("/ui/alerts/{}", ask.param());
    shell::told(&ask, &back, done.map(|_| words.done.to_owned()))
}
