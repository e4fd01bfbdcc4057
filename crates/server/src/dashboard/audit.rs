//! The audit trail: who did what to what and why, the latest first; one button sees whether it is
//! whole.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Form, Head, Input, Table, Tone, cell, instant, target,
};
use super::inside::Inside;
use super::shell::{self, Frame};
use super::words::{Lang, fill, words};
use super::{Group, Page, parts};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{Kind, Refusal};
use crate::route::table::{LOOKERS, get, page, post};
use crate::route::{Route, Takes};
use mainspring_api as api;
use mainspring_kernel::Principal;

pub(super) static PAGE: Page = Page {
    path: "/ui/audit",
    name: ["Audit trail", "审计"],
    group: Group::People,
    roles: LOOKERS,
    routes,
    icon: "M3 2h10v12H3zM5 5h6M5 8h6M5 11h4",
};

fn routes() -> Vec<Route> {
    vec![
        get("/ui/audit", page!(LOOKERS, list), Doc::hidden()),
        post("/ui/audit/verify", page!(LOOKERS, verify), Takes::Form, Doc::hidden()),
    ]
}

words! {
    AuditWords {
        seq: "No.", "序号";
        when: "When", "时间";
        who: "Who", "操作人";
        action: "Did what", "操作";
        object: "To what", "对象";
        object_type: "Kind of thing", "对象类别";
        object_id: "Thing", "对象";
        why: "Why, and what it was", "原因与内容";
        filter: "Filter", "筛选";
        clear: "Clear", "清除";
        none: "Nothing was changed by anybody yet; what people do is written down here:", "还没有任何人做过改动；人的操作都会记录在这里：";
        none_fits: "No line fits.", "没有符合条件的记录。";
        whole: "Is the trail whole?", "审计链是否完整？";
        whole_hint: "Each line carries the hash of the one before. Verifying reads all of them.", "每一行都带有上一行的哈希。校验会读取全部记录。";
        verify: "Verify", "校验";
        verified: "The trail is whole: {} lines were checked.", "审计链完整：已检查 {} 行。";
        was: "was", "原为";
        asked: "asked for", "请求";
    }
}

const FILTERS: [&str; 4] = ["actor", "action", "object_type", "object_id"];
/// How much of what a line tells is shown in the list.
const TOLD: usize = 400;

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, AuditWords::of(frame.lang));
    let known = [&FILTERS[..], &["cursor"]].concat();
    let query = blocks::query(&ask, &known)?;
    let limit = DASHBOARD_PAGE.to_string();
    let kept = blocks::kept(&query, &known);
    let path = target("/api/v1/audit", kept.into_iter().chain([("limit", &*limit)]));
    let (found, problem): (api::Page<api::audit::AuditLine>, _) =
        match Inside::new(&ask, &who).get(&path).await {
            Ok(found) => (found, None),
            Err(no) if no.kind == Kind::Wrong => {
                (api::Page::whole(Vec::new()), Some(no.message.into_owned()))
            }
            Err(no) => return Err(no),
        };
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let is_narrow = FILTERS.iter().any(|name| query.get(name).is_some());
    let filters = Block::Filters {
        action: "/ui/audit",
        inputs: vec![
            Input::line("actor", words.who, value("actor")),
            Input::line("action", words.action, value("action")),
            Input::line("object_type", words.object_type, value("object_type")),
            Input::line("object_id", words.object_id, value("object_id")),
        ],
        go: words.filter,
        clear: is_narrow.then(|| ("/ui/audit".to_owned(), words.clear)),
    };
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![Block::Head(head), filters];
    match problem {
        Some(problem) => top.push(Block::Say(Tone::Bad, problem)),
        None if found.items.is_empty() && !is_narrow && query.get("cursor").is_none() => {
            let commands = "mainspring audit list";
            top.push(Block::Teach { text: words.none.to_owned(), commands });
        }
        None if found.items.is_empty() => {
            top.push(Block::Teach { text: words.none_fits.to_owned(), commands: "" });
        }
        None => {}
    }
    let (older, newest) =
        blocks::pages("/ui/audit", &query, &FILTERS, found.next_cursor.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![words.seq, words.when, words.who, words.action, words.object, words.why],
        rows: found.items.iter().map(|it| row(it, lang)).collect(),
        older,
        newest,
        ..Table::default()
    }));
    let verify = Form::new("verify", "/ui/audit/verify", words.verify).hint(words.whole_hint);
    top.push(Block::Forms { name: words.whole, forms: vec![verify] });
    BlockPage::plain(frame, top).reply()
}

fn row(it: &api::audit::AuditLine, lang: Lang) -> Vec<Cell> {
    let words = AuditWords::of(lang);
    let of_thing = target("/ui/audit", [("object_id", it.object_id.as_str())]);
    let of_person = target("/ui/audit", [("actor", it.actor.user_id.as_str())]);
    let told = |name: &str, json: &api::Json| {
        let text: String = json.get().chars().take(TOLD).collect();
        Bit::Clip(format!("{name} {text}"))
    };
    let reason = it.reason.clone().map(Bit::Text);
    let before = it.before.as_ref().map(|json| told(words.was, json));
    let after = it.after.as_ref().map(|json| told(words.asked, json));
    let denied = (it.outcome != "done").then(|| Bit::Mark(blocks::mark(lang, &it.outcome)));
    vec![
        cell("num", vec![Bit::Text(parts::count(it.seq))]),
        instant(Some(it.at)),
        cell("", vec![Bit::Link { href: of_person, text: it.actor.user_id.clone() }]),
        cell("c-code", std::iter::once(Bit::Code(it.action.clone())).chain(denied).collect()),
        cell(
            "",
            vec![
                Bit::Soft(it.object_type.clone()),
                Bit::Link { href: of_thing, text: it.object_id.clone() },
            ],
        ),
        cell("c-what", reason.into_iter().chain(before).chain(after).collect()),
    ]
}

async fn verify(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = AuditWords::of(Lang::of(&ask.headers));
    let inside = Inside::new(&ask, &who);
    let done = inside.get::<api::audit::AuditVerdict>("/api/v1/audit/verify").await;
    let told = done.map(|it| fill(words.verified, &[&parts::count(it.checked)]));
    shell::told(&ask, "/ui/audit", told)
}
