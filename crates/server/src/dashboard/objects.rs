//! Governed objects, and the gates that stand before the risky ones.

use super::blocks::{
    self, Bit, Block, BlockPage, Fact, Form, Head, Input, Look, Table, cell, target, title,
};
use super::form::Fields;
use super::inside::Inside;
use super::parts::When;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, words};
use super::{Group, Page};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::contracts::native::filters;
use crate::cursor;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::table::{ANYONE, LOOKERS, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::Principal;
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::fingerprint::digest;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) static PAGE: Page = Page {
    path: "/ui/objects",
    name: ["Objects and gates", "对象与闸门"],
    group: Group::House,
    roles: LOOKERS,
    routes,
    icon: "M2 14V6l6-4 6 4v8M6 14V9h4v5",
};

fn routes() -> Vec<Route> {
    vec![
        get("/ui/objects", page!(LOOKERS, list), Doc::hidden()),
        get("/ui/objects/{object_type}/{object_id}", page!(LOOKERS, show), Doc::hidden()),
        post("/ui/gates/set", page!(ANYONE, set_gate), Takes::Form, Doc::hidden()),
    ]
}

words! {
    ObjectWords {
        gates: "Gates", "闸门";
        gates_hint: "A closed gate holds every job on a high-risk object of this tenant.", "关闭的闸门会拦住本租户高风险对象的全部作业。";
        gate: "Gate", "闸门";
        state: "State", "状态";
        by: "Set by", "设置人";
        reason: "Reason", "原因";
        set: "Open or close a gate", "打开或关闭闸门";
        set_go: "Set the gate", "设置闸门";
        pass: "open", "放行";
        block: "closed", "拦截";
        set_done: "The gate is set.", "闸门已设置。";
        object: "Object", "对象";
        risk: "Risk", "风险";
        known: "Understood", "认知";
        status: "Status", "状态";
        held: "Held jobs", "被拦作业";
        next: "Next action", "下次动作";
        changed: "Last change", "最近变化";
        none: "Nothing is known of any object yet. Whoever governs objects says it:", "还没有对象信息。由治理方写入：";
        facts: "What is known", "已知信息";
        jobs: "Its jobs", "它的作业";
    }
}

/// A gate, as native tells it.
#[derive(Deserialize)]
struct ShownGate {
    name: String,
    state: String,
    set_by: Option<String>,
    reason: Option<String>,
    updated_at: Option<api::Time>,
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, ObjectWords::of(frame.lang));
    let query = blocks::query(&ask, &["cursor"])?;
    let inside = Inside::new(&ask, &who);
    let gates: api::Page<ShownGate> = inside.get("/api/v1/gates").await?;
    let gate_row = |it: &ShownGate| {
        let by = it.set_by.clone().map(Bit::Strong).into_iter();
        let reason = it.reason.clone().map(Bit::Soft).into_iter().collect();
        vec![
            blocks::state(lang, &it.state),
            cell("c-job", vec![Bit::Strong(it.name.clone())]),
            cell("", by.chain(it.updated_at.map(blocks::when)).collect()),
            cell("c-what", reason),
        ]
    };
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![
        Block::Head(head),
        Block::Table(Table {
            id: "gates",
            name: Some(words.gates),
            hint: Some(words.gates_hint.to_owned()),
            heads: vec![words.state, words.gate, words.by, words.reason],
            rows: gates.items.iter().map(gate_row).collect(),
            ..Table::default()
        }),
    ];
    if inside.may(&Method::PUT, "/api/v1/gates/x") {
        let names = gates.items.iter().map(|it| (it.name.clone(), it.name.clone())).collect();
        let states = [("block", words.block), ("pass", words.pass)];
        let states = states.map(|(code, name)| (code.to_owned(), name.to_owned())).into();
        let form = Form::new("gate", "/ui/gates/set", words.set_go).look(Look::Danger);
        let form = form
            .with(Input::choice("gate", words.gate, "", names))
            .with(Input::choice("state", words.state, "block", states))
            .with(Input::line("reason", words.reason, "").needed());
        top.push(Block::Forms { name: words.set, forms: vec![form] });
    }
    let filter = EntityFilter::of(Kind::Object, Scope::Tenant(who.tenant.clone()));
    let place = digest(&[b"dashboard objects", who.tenant.as_str().as_bytes()]);
    let before = filters::before(&query, place)?;
    let before = before.map(|bits| EntityId { kind: Kind::Object, bits });
    let page = ask.engine().entities(&filter, before, DASHBOARD_PAGE).await?;
    let next = page.next.map(|next| cursor::write(place, next.bits));
    let mut rows = Vec::with_capacity(page.items.len());
    for entity in &page.items {
        let Body::Object(it) = &entity.body else { continue };
        let kind = it.object_type.as_str();
        let href = format!("/ui/objects/{kind}/{}", encoded(&it.object_id));
        let next = it.next_action.map(|action| Bit::Text(action.as_str().to_owned()));
        let at = it.next_action_at.map(|at| Bit::At(When(at)));
        let status = it.status.map(|status| Bit::Text(status.as_str().to_owned()));
        rows.push(vec![
            title(href, &*it.object_id, kind),
            cell("c-state", vec![Bit::Mark(blocks::mark(lang, it.risk_tier.as_str()))]),
            cell("c-state", vec![Bit::Mark(blocks::mark(lang, it.epistemic.as_str()))]),
            cell("c-named", status.into_iter().collect()),
            blocks::number(it.parked.len() as u64),
            cell("c-named", next.into_iter().chain(at).collect()),
            cell("c-when", vec![Bit::At(When(entity.updated_at))]),
        ]);
    }
    if rows.is_empty() {
        let commands = "curl -X PUT -H \"authorization: Bearer $MAINSPRING_TOKEN\" \\\n  \
            $MAINSPRING_URL/api/v1/objects/memory/m-1 -d '{\"risk_tier\": \"high\"}'";
        top.push(Block::Teach { text: words.none.to_owned(), commands });
    }
    let (older, newest) = blocks::pages("/ui/objects", &query, &[], next.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.object,
            words.risk,
            words.known,
            words.status,
            words.held,
            words.next,
            words.changed,
        ],
        rows,
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let name = ask.params.get(1).map_or("", String::as_str);
    let (kind, id) = (encoded(ask.param()), encoded(name));
    let it: Value = Inside::new(&ask, &who).get(&format!("/api/v1/objects/{kind}/{id}")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let words = ObjectWords::of(frame.lang);
    let frame = frame.titled(name, format!("/ui/objects/{kind}/{id}"));
    let fields = it.as_object().into_iter().flatten();
    let fact = |(name, value): (&String, &Value)| {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.to_string()
            }
        };
        Some(Fact::new(name.clone(), vec![Bit::Text(text)]))
    };
    let mut facts: Vec<Fact> = fields.filter_map(fact).collect();
    let label = format!("object={}:{name}", ask.param());
    let jobs = target("/ui/jobs", [("label", label.as_str())]);
    facts.push(Fact::link(words.jobs, jobs, &label));
    let head = Head { title: name.to_owned(), id: Some(label.clone()), ..Head::default() };
    let top = vec![Block::Head(head), Block::Facts { id: "facts", name: words.facts, facts }];
    BlockPage::plain(frame, top).reply()
}

async fn set_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = ObjectWords::of(Lang::of(&ask.headers));
    let fields = Fields::of(&ask)?;
    let gate = encoded(fields.filled("gate").unwrap_or_default());
    let wish = json!({
        "state": fields.filled("state").unwrap_or_default(),
        "reason": fields.filled("reason"),
    });
    let path = format!("/api/v1/gates/{gate}");
    let body = wish.to_string().into();
    let done = Inside::new(&ask, &who).send::<ShownGate>(&Method::PUT, &path, body).await;
    shell::told(&ask, "/ui/objects", done.map(|_| words.set_done.to_owned()))
}
