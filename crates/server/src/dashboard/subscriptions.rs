//! Subscriptions: who outside is told of what happens to jobs, how far each is, and what went
//! wrong with its deliveries.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Fact, Form, Head, Input, Look, Tab, Table, cell, instant,
    number, target, title, when,
};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, fill, words};
use super::{Group, Page, making, parts};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::table::{ANYONE, LOOKERS, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Principal;

pub(super) static PAGE: Page = Page {
    path: "/ui/subscriptions",
    name: ["Subscriptions", "订阅"],
    group: Group::People,
    roles: LOOKERS,
    routes,
    icon: "M2 11h3l2-7 3 9 2-5h2",
};

fn routes() -> Vec<Route> {
    let form = |path, rule| post(path, rule, Takes::Form, Doc::hidden());
    vec![
        get("/ui/subscriptions", page!(LOOKERS, list), Doc::hidden()),
        get("/ui/subscriptions/{subscription_id}", page!(LOOKERS, show), Doc::hidden()),
        form("/ui/subscriptions/{subscription_id}/pause", page!(ANYONE, pause)),
        form("/ui/subscriptions/{subscription_id}/resume", page!(ANYONE, resume)),
    ]
}

words! {
    SubscriptionWords {
        all: "all", "全部";
        active: "active", "启用";
        failing: "failing", "投递失败";
        paused: "paused", "已暂停";
        views: "States", "状态";
        new: "New subscription", "新建订阅";
        state: "State", "状态";
        name: "Subscription", "订阅";
        target: "To", "目标";
        delivered: "Delivered", "已投递";
        failed: "Failed tries", "失败次数";
        lag: "Events behind", "落后事件";
        last: "Last delivery", "最近投递";
        none: "Nobody outside is told of anything. To have events sent to a webhook:", "还没有订阅。把事件发送到 webhook：";
        none_fits: "There is none.", "没有。";
        deliveries: "Deliveries", "投递情况";
        position: "Settled up to", "已处理到";
        in_a_row: "Failed in a row", "连续失败";
        last_error: "What went wrong last", "最近的错误";
        missed: "Missed events", "错过的事件";
        gaps: "Gaps: events that were no longer kept", "缺口：已不再保留的事件";
        from: "From", "从";
        to: "To", "至";
        found: "Found", "发现";
        facts: "Facts", "基本信息";
        events: "Events", "事件";
        types: "Types", "类型";
        queues: "Queues", "队列";
        every: "all of them", "全部";
        owner: "Made by", "创建人";
        created: "Made", "创建";
        changed: "Last change", "最近变化";
        secret_until: "Former secret works until", "旧密钥有效至";
        paused_by: "Paused by {}", "由 {} 暂停";
        actions: "What to do", "操作";
        pause: "Pause", "暂停";
        pause_hint: "Events wait meanwhile, for as long as the stream keeps them.", "暂停期间事件会等待，直到超过流的保留期。";
        pause_done: "The subscription rests until it is resumed.", "订阅已暂停，直到恢复。";
        resume: "Resume", "恢复";
        resume_hint: "It goes on where it was, at once.", "立即从原来的位置继续。";
        resume_done: "The subscription goes on.", "订阅已恢复。";
        note: "Why", "原因";
    }
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, SubscriptionWords::of(frame.lang));
    let query = blocks::query(&ask, &["status", "cursor"])?;
    let status = query.get("status").unwrap_or_default();
    let (cursor, limit) = (query.get("cursor").unwrap_or_default(), DASHBOARD_PAGE.to_string());
    let pairs = [("status", status), ("cursor", cursor), ("limit", &*limit)];
    let inside = Inside::new(&ask, &who);
    let found: api::Page<api::subscription::Subscription> =
        inside.get(&target("/api/v1/subscriptions", pairs)).await?;
    let tab = |(name, code): (&'static str, &str)| Tab {
        name,
        href: target("/ui/subscriptions", [("status", code)]),
        is_here: code == status,
    };
    let tabs = [
        (words.all, ""),
        (words.active, "active"),
        (words.failing, "failing"),
        (words.paused, "paused"),
    ];
    let may_make = inside.may(&Method::POST, "/api/v1/subscriptions");
    let new = may_make.then(|| (making::NEW_SUBSCRIPTION.to_owned(), words.new));
    let links = new.into_iter().collect();
    let head = Head { title: frame.title.clone(), links, ..Head::default() };
    let tabs = Block::Tabs { name: words.views, tabs: tabs.map(tab).into() };
    let mut top = vec![Block::Head(head), tabs];
    if found.items.is_empty() {
        let is_all = status.is_empty() && cursor.is_empty();
        let (text, commands) = match is_all {
            true => (
                words.none,
                "mainspring subscriptions create billing --webhook https://example.com/hook",
            ),
            false => (words.none_fits, ""),
        };
        top.push(Block::Teach { text: text.to_owned(), commands });
    }
    let (older, newest) =
        blocks::pages("/ui/subscriptions", &query, &["status"], found.next_cursor.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.state,
            words.name,
            words.target,
            words.delivered,
            words.failed,
            words.lag,
            words.last,
        ],
        rows: found.items.iter().map(|it| row(it, lang)).collect(),
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

/// Where its events go.
fn goal(it: &api::subscription::Subscription) -> String {
    it.url.clone().or_else(|| it.nats_subject.clone()).unwrap_or_default()
}

fn row(it: &api::subscription::Subscription, lang: Lang) -> Vec<Cell> {
    vec![
        blocks::state(lang, &it.status),
        title(format!("/ui/subscriptions/{}", it.subscription_id), &it.name, &it.subscription_id),
        cell("c-what", vec![Bit::Code(it.target.clone()), Bit::Soft(goal(it))]),
        number(it.delivered_count),
        number(it.failed_count),
        number(it.lag),
        instant(it.last_delivered_at),
    ]
}

fn native_path(ask: &Ask, step: &str) -> String {
    format!("/api/v1/subscriptions/{}{step}", encoded(ask.param()))
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let inside = Inside::new(&ask, &who);
    let it: api::subscription::Subscription = inside.get(&native_path(&ask, "")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, SubscriptionWords::of(frame.lang));
    let here = format!("/ui/subscriptions/{}", it.subscription_id);
    let frame = frame.titled(format!("{} · {}", it.name, it.subscription_id), here);
    let mut top = vec![Block::Head(Head {
        title: it.name.clone(),
        mark: Some(blocks::mark(lang, &it.status)),
        id: Some(it.subscription_id.clone()),
        lead: Some(goal(&it)),
        links: Vec::new(),
    })];
    if let Some(by) = &it.paused_by {
        let note = it.pause_note.as_ref().map_or(String::new(), |note| format!(": {note}"));
        let text = format!("{}{note}", fill(words.paused_by, &[by]));
        top.push(Block::Say(blocks::Tone::Plain, text));
    }
    let mut main = Vec::new();
    if let Some(error) = &it.last_error {
        let bits = it.last_error_at.map(when).into_iter().collect();
        let (id, name, text) = ("error", words.last_error, error.clone());
        main.push(Block::Text { id, name, class: "failure", bits, text });
    }
    let mut deliveries = vec![
        Fact::text(words.delivered, parts::count(it.delivered_count)),
        Fact::text(words.failed, parts::count(it.failed_count)),
        Fact::text(words.in_a_row, it.consecutive_failures),
        Fact::text(words.position, parts::count(it.position)),
        Fact::text(words.lag, parts::count(it.lag)),
        Fact::text(words.missed, parts::count(it.missed_count)),
    ];
    deliveries.extend(it.last_delivered_at.map(|at| Fact::at(words.last, at)));
    main.push(Block::Facts { id: "deliveries", name: words.deliveries, facts: deliveries });
    if !it.gaps.is_empty() {
        let row = |gap: &api::subscription::SubscriptionGap| {
            vec![number(gap.from), number(gap.to), instant(Some(gap.at))]
        };
        main.push(Block::Table(Table {
            id: "gaps",
            name: Some(words.gaps),
            heads: vec![words.from, words.to, words.found],
            rows: it.gaps.iter().rev().map(row).collect(),
            ..Table::default()
        }));
    }
    let forms = forms(&inside, &it, words);
    if !forms.is_empty() {
        main.push(Block::Forms { name: words.actions, forms });
    }
    let names = |names: &[String]| match names.is_empty() {
        true => words.every.to_owned(),
        false => names.join(", "),
    };
    let mut facts = vec![
        Fact::text(words.events, names(&it.events)),
        Fact::text(words.types, names(&it.filter.types)),
        Fact::text(words.queues, names(&it.filter.queues)),
        Fact::text(words.owner, &it.user_id),
        Fact::at(words.created, it.created_at),
        Fact::at(words.changed, it.updated_at),
    ];
    facts.extend(it.former_secret_until.map(|at| Fact::at(words.secret_until, at)));
    let side = vec![Block::Facts { id: "facts", name: words.facts, facts }];
    BlockPage { frame, top, main, side }.reply()
}

fn forms(
    inside: &Inside<'_>,
    it: &api::subscription::Subscription,
    words: &'static SubscriptionWords,
) -> Vec<Form> {
    let action = |step: &str| format!("/ui/subscriptions/{}/{step}", it.subscription_id);
    if !inside.may(&Method::POST, "/api/v1/subscriptions/x/pause") {
        return Vec::new();
    }
    let again = Form::new("resume", action("resume"), words.resume).hint(words.resume_hint);
    let rest = Form::new("pause", action("pause"), words.pause).hint(words.pause_hint);
    match it.status.as_str() {
        "paused" => vec![again.look(Look::Main)],
        _ => vec![rest.with(Input::line("note", words.note, ""))],
    }
}

async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = SubscriptionWords::of(Lang::of(&ask.headers));
    let note = Fields::of(&ask)?.filled("note").map(str::to_owned);
    let wish = api::subscription::PauseSubscription { note };
    let path = native_path(&ask, "/pause");
    let inside = Inside::new(&ask, &who);
    let done = inside.post::<api::subscription::Subscription>(&path, &wish).await;
    let back = format!("/ui/subscriptions/{}", ask.param());
    shell::told(&ask, &back, done.map(|_| words.pause_done.to_owned()))
}

async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = SubscriptionWords::of(Lang::of(&ask.headers));
    let inside = Inside::new(&ask, &who);
    let path = native_path(&ask, "/resume");
    let done = inside.poke::<api::subscription::Subscription>(&path).await;
    let back = format!("/ui/subscriptions/{}", ask.param());
    shell::told(&ask, &back, done.map(|_| words.resume_done.to_owned()))
}
