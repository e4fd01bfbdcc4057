//! The desk for dead letters: by failure with how many there are, as a list, and one of them with
//! what may be done about it. Whatever is done is done by the native contract.

pub(super) mod groups;

use super::blocks::{
    self, Bit, Block, BlockPage, Fact, Form, Head, Input, Look, Tab, Table, Tone, cell, instant,
    target, title, when,
};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, fill, words};
use super::{Group, Page, schedules};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::auth;
use crate::contracts::native::{dlq, filters};
use crate::cursor;
use crate::limits::{DASHBOARD_PAGE, SHOWN_BYTES_MAX};
use crate::openapi::Doc;
use crate::refusal::{self, Kind, Refusal};
use crate::route::table::{ANYONE, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::{DlqId, Principal};
use serde_json::value::RawValue;

pub(super) static PAGE: Page = Page {
    path: "/ui/dlq",
    name: ["Dead letters", "死信"],
    group: Group::Work,
    roles: ANYONE,
    routes,
    icon: "M2 4h12v9H2zM2 4l6 5 6-5",
};

fn routes() -> Vec<Route> {
    let form = |path, rule| post(path, rule, Takes::Form, Doc::hidden());
    vec![
        get("/ui/dlq", page!(ANYONE, groups::show), Doc::hidden()),
        get("/ui/dlq/items", page!(ANYONE, list), Doc::hidden()),
        get("/ui/dlq/items/{dlq_id}", page!(ANYONE, show), Doc::hidden()),
        form("/ui/dlq/items/{dlq_id}/requeue", page!(ANYONE, requeue)),
        form("/ui/dlq/items/{dlq_id}/resubmit", page!(ANYONE, resubmit)),
        form("/ui/dlq/items/{dlq_id}/discard", page!(ANYONE, discard)),
        form("/ui/dlq/items/{dlq_id}/approve", page!(ANYONE, approve)),
        form("/ui/dlq/items/{dlq_id}/reject", page!(ANYONE, reject)),
        form("/ui/dlq/items/{dlq_id}/break-glass", page!(ANYONE, break_glass)),
    ]
}

words! {
    DlqWords {
        by_failure: "By failure", "按失败归类";
        open: "Waiting for a decision", "待处理";
        asked: "Discard asked for", "已申请丢弃";
        requeued: "Requeued", "已重新运行";
        discarded: "Discarded", "已丢弃";
        views: "Ways to look", "查看方式";
        failure: "Failure", "失败";
        count: "How many", "数量";
        types: "Types", "类型";
        first: "First", "首次";
        last: "Last", "最近";
        what_next: "All of them", "全部处理";
        requeue_all: "Requeue all…", "全部重新运行…";
        new_in: "Tell what is new in", "标出新出现的";
        hour: "the last hour", "最近一小时";
        day: "the last day", "最近一天";
        week: "the last week", "最近一周";
        show: "Show", "显示";
        cut: "The latest {} dead letters were looked at; there are more.", "只查看了最近 {} 条死信，还有更多。";
        counted: "Counted {} ago.", "{} 前统计。";
        none: "No dead letter waits for a decision. A job ends here when it has failed for good; to see one:", "没有待处理的死信。彻底失败的作业会来到这里；试一试：";
        none_fits: "No dead letter fits.", "没有符合条件的死信。";
        state: "State", "状态";
        job: "Dead letter", "死信";
        error: "Error", "错误";
        when: "When", "时间";
        job_type: "Type", "类型";
        error_code: "Error code", "错误码";
        filter: "Filter", "筛选";
        clear: "Clear", "清除";
        signature: "Failure", "失败归类";
        payload: "Payload", "载荷";
        context: "Circumstances", "背景";
        of_job: "Job", "作业";
        user: "User", "用户";
        worker: "Last worker", "最后的 worker";
        tries: "Tries", "次数";
        tries_text: "{} of {}", "{} / {}";
        queue: "Queue", "队列";
        trace: "Trace", "追踪";
        labels: "Label", "标签";
        subject: "Subject", "主题";
        submitted: "Submitted", "提交";
        started: "Last started", "最近开始";
        failed_at: "Failed", "失败";
        key: "Execution key", "执行键";
        decision: "Decision", "决定";
        reason: "Reason", "原因";
        asked_by: "Asked for by", "申请人";
        agreed_by: "Agreed to by", "同意人";
        requeued_by: "Requeued by", "重新运行者";
        runs_as: "Runs again as", "重新运行为";
        glass: "Dropped by one person alone", "由一人单独丢弃";
        waits: "{} asks to drop this. A second person has to agree.", "{} 申请丢弃此死信，需要另一个人同意。";
        actions: "What to do", "处理";
        requeue: "Run it again", "重新运行";
        requeue_hint: "A new job with the same payload; this one keeps its end.", "以相同载荷创建新作业；原作业保持结局。";
        requeue_done: "It runs again as this new job.", "已作为这个新作业重新运行。";
        edit: "Run it with another payload", "修改载荷后运行";
        edit_hint: "A new job with what you write. The dead letter stays open until it is requeued or discarded.", "以修改后的载荷创建新作业。死信保持未处理，直到重新运行或丢弃。";
        edit_go: "Submit the edited job", "提交修改后的作业";
        edit_done: "The edited job is submitted.", "修改后的作业已提交。";
        discard: "Ask to drop it", "申请丢弃";
        discard_hint: "Somebody else, an approver, has to agree.", "需要另一位审批人同意。";
        discard_done: "The discard is asked for; an approver has to agree.", "已申请丢弃，等待审批人同意。";
        approve: "Agree to drop it", "同意丢弃";
        approve_hint: "You agree as another person than the one who asks. It cannot be undone.", "你以申请人之外的另一个人的身份同意，此操作不可撤销。";
        approve_done: "It is discarded.", "已丢弃。";
        reject: "Keep it", "不同意";
        reject_done: "The discard is refused; the dead letter is open again.", "已拒绝丢弃，死信恢复为未处理。";
        glass_go: "Drop it alone", "单独丢弃";
        glass_hint: "Only in an emergency: the item shows for ever who did it and why.", "仅限紧急情况：此条目会永久显示操作人和原因。";
        glass_done: "It is dropped, with your name on it.", "已丢弃，并记录了你的名字。";
        not_json: "is not JSON", "不是 JSON";
    }
}

/// The parameters of the list, as native has them.
const FILTERS: [&str; 5] = ["status", "type", "error_code", "signature", "queue"];

fn tabs(words: &'static DlqWords, here: &str) -> Block {
    let tab = |(name, code, href): (&'static str, &str, &str)| Tab {
        name,
        href: href.to_owned(),
        is_here: code == here,
    };
    let tabs = [
        (words.by_failure, "groups", "/ui/dlq"),
        (words.open, "open", "/ui/dlq/items?status=open"),
        (words.asked, "discard_requested", "/ui/dlq/items?status=discard_requested"),
        (words.requeued, "requeued", "/ui/dlq/items?status=requeued"),
        (words.discarded, "discarded", "/ui/dlq/items?status=discarded"),
    ];
    Block::Tabs { name: words.views, tabs: tabs.map(tab).into() }
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, DlqWords::of(frame.lang));
    let known = [&FILTERS[..], &["cursor"]].concat();
    let query = blocks::query(&ask, &known)?;
    let (items, next, problem) = match found(&ask, &who, &query).await {
        Ok((items, next)) => (items, next, None),
        Err(no) if no.kind == Kind::Wrong => (Vec::new(), None, Some(no.message.into_owned())),
        Err(no) => return Err(no),
    };
    let status = query.get("status").unwrap_or_default();
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let is_narrow = FILTERS[1..].iter().any(|name| query.get(name).is_some());
    let cleared = target("/ui/dlq/items", [("status", status)]);
    let filters = Block::Filters {
        action: "/ui/dlq/items",
        inputs: vec![
            Input::hidden("status", status),
            Input::line("type", words.job_type, value("type")),
            Input::line("error_code", words.error_code, value("error_code")),
            Input::line("signature", words.signature, value("signature")),
        ],
        go: words.filter,
        clear: is_narrow.then_some((cleared, words.clear)),
    };
    let row = |item: &api::dlq::DlqItem| {
        let href = format!("/ui/dlq/items/{}", item.dlq_id);
        vec![
            blocks::state(lang, &item.status),
            title(href, &item.job_type, &item.dlq_id),
            cell(
                "c-what",
                vec![
                    Bit::Bad(item.error_code.clone()),
                    Bit::Clip(item.error_message.chars().take(200).collect()),
                ],
            ),
            instant(Some(item.updated_at)),
        ]
    };
    let here = format!(
        "/ui/dlq/items{}",
        ask.query.as_deref().map_or(String::new(), |it| format!("?{it}"))
    );
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let titled = frame.title.clone();
    let frame = frame.titled(titled, here);
    let mut top = vec![Block::Head(head), tabs(words, status), filters];
    match problem {
        Some(problem) => top.push(Block::Say(Tone::Bad, problem)),
        None if items.is_empty() => {
            top.push(Block::Teach { text: words.none_fits.to_owned(), commands: "" });
        }
        None => {}
    }
    let (older, newest) = blocks::pages("/ui/dlq/items", &query, &FILTERS, next.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![words.state, words.job, words.error, words.when],
        rows: items.iter().map(row).collect(),
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

/// The items of the parameters, and where they go on; nothing is counted.
async fn found(
    ask: &Ask,
    who: &Principal,
    query: &Query,
) -> Result<(Vec<api::dlq::DlqItem>, Option<String>), Refusal> {
    let filter = filters::items(query, auth::scope(who))?;
    let list = filters::item_list(&filter);
    let before = filters::before(query, list)?.map(DlqId);
    let page = ask.engine().items(&filter, before, DASHBOARD_PAGE).await?;
    let items = page.items.iter().map(dlq::shown).collect();
    Ok((items, page.next.map(|next| cursor::write(list, next.0))))
}

fn native_path(ask: &Ask, step: &str) -> String {
    format!("/api/v1/dlq/items/{}{step}", encoded(ask.param()))
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let inside = Inside::new(&ask, &who);
    let item: api::dlq::DlqItem = inside.get(&native_path(&ask, "")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, DlqWords::of(frame.lang));
    let frame = frame.titled(
        format!("{} · {}", item.job_type, item.dlq_id),
        format!("/ui/dlq/items/{}", item.dlq_id),
    );
    let mut top = vec![Block::Head(Head {
        title: item.job_type.clone(),
        mark: Some(blocks::mark(lang, &item.status)),
        id: Some(item.dlq_id.clone()),
        ..Head::default()
    })];
    if item.status == "discard_requested" {
        let by = item.requested_by.as_deref().unwrap_or_default();
        top.push(Block::Say(Tone::Plain, fill(words.waits, &[by])));
    }
    let alike =
        target("/ui/dlq/items", [("status", "open"), ("signature", item.signature.as_str())]);
    let mut main = vec![Block::Text {
        id: "failure",
        name: words.error,
        class: "failure",
        bits: vec![
            Bit::Bad(item.error_code.clone()),
            Bit::Mark(blocks::mark(lang, &item.error_class)),
            Bit::Link { href: alike, text: item.signature.clone() },
        ],
        text: item.error_message.clone(),
    }];
    let forms = forms(&inside, &who, &item, words);
    if !forms.is_empty() {
        main.push(Block::Forms { name: words.actions, forms });
    }
    if let Some(payload) = &item.payload_snapshot {
        main.push(blocks::json("payload", words.payload, payload.get(), lang));
    }
    let mut side = Vec::new();
    let decision = decision(&item, words);
    if !decision.is_empty() {
        side.push(Block::Facts { id: "decision", name: words.decision, facts: decision });
    }
    side.push(Block::Facts { id: "facts", name: words.context, facts: context(&item, words) });
    BlockPage { frame, top, main, side }.reply()
}

/// What was decided, and by whom.
fn decision(item: &api::dlq::DlqItem, words: &'static DlqWords) -> Vec<Fact> {
    let mut facts = Vec::new();
    let asked = if item.requeued_job_id.is_some() { words.requeued_by } else { words.asked_by };
    if let Some(glass) = &item.break_glass {
        let bits = vec![Bit::Strong(glass.by.clone()), when(glass.at)];
        facts.push(Fact::new(words.glass, bits));
    } else if let Some(by) = &item.requested_by {
        facts.push(Fact::new(asked, vec![Bit::Strong(by.clone())]));
    }
    if let Some(by) = &item.approved_by {
        facts.push(Fact::new(words.agreed_by, vec![Bit::Strong(by.clone())]));
    }
    facts.extend(item.reason.as_ref().map(|reason| Fact::text(words.reason, reason)));
    if let Some(job) = &item.requeued_job_id {
        facts.push(Fact::link(words.runs_as, format!("/ui/jobs/{job}"), job));
    }
    facts
}

fn context(item: &api::dlq::DlqItem, words: &'static DlqWords) -> Vec<Fact> {
    let mut facts =
        vec![Fact::link(words.of_job, format!("/ui/jobs/{}", item.job_id), &item.job_id)];
    let Some(context) = &item.context_snapshot else { return facts };
    let jobs = |name: &str, value: &str| target("/ui/jobs", [(name, value)]);
    let tries = [context.attempt.to_string(), (u32::from(context.max_retries) + 1).to_string()];
    facts.push(Fact::link(words.job_type, jobs("type", &item.job_type), &item.job_type));
    facts.push(Fact::link(words.queue, jobs("queue", &context.queue), &context.queue));
    facts.push(Fact::link(words.user, jobs("user_id", &context.user_id), &context.user_id));
    facts.extend(context.worker_id.as_ref().map(|worker| Fact::text(words.worker, worker)));
    facts.push(Fact::text(words.tries, fill(words.tries_text, &[&tries[0], &tries[1]])));
    facts.push(Fact::text(words.key, &context.execution_key));
    facts.push(Fact::link(words.trace, jobs("trace_id", &context.trace_id), &context.trace_id));
    for (name, value) in &context.labels {
        facts.push(Fact::text(words.labels, format!("{name}={value}")));
    }
    facts.extend(context.subject.as_ref().map(|subject| Fact::text(words.subject, subject)));
    facts.push(Fact::at(words.submitted, context.submitted_at));
    facts.extend(context.started_at.map(|at| Fact::at(words.started, at)));
    facts.extend(context.failed_at.map(|at| Fact::at(words.failed_at, at)));
    facts
}

/// What whoever looks may do about it: by role as the native routes have it, by whose it is as the
/// kernel says. What then happens is decided there, too.
fn forms(
    inside: &Inside<'_>,
    who: &Principal,
    item: &api::dlq::DlqItem,
    words: &'static DlqWords,
) -> Vec<Form> {
    let may = |step: &str| inside.may(&Method::POST, &format!("/api/v1/dlq/items/x/{step}"));
    let action = |step: &str| format!("/ui/dlq/items/{}/{step}", item.dlq_id);
    let reason = || Input::line("reason", words.reason, "").needed();
    let can_steer = item
        .context_snapshot
        .as_ref()
        .is_some_and(|it| schedules::is_steered(who, &item.tenant_id, &it.user_id));
    let mut forms = Vec::new();
    if item.status == "open" && can_steer && may("requeue") {
        let again = Form::new("requeue", action("requeue"), words.requeue);
        forms.push(again.hint(words.requeue_hint).look(Look::Main));
    }
    if item.status == "open" && can_steer && may("discard") {
        let drop = Form::new("discard", action("discard"), words.discard).look(Look::Danger);
        forms.push(drop.hint(words.discard_hint).with(reason()));
    }
    if item.status == "discard_requested" && may("approve") {
        let agree = Form::new("approve", action("approve"), words.approve).look(Look::Danger);
        let version = Input::hidden("version", item.version.to_string());
        forms.push(agree.hint(words.approve_hint).with(version));
        forms.push(Form::new("reject", action("reject"), words.reject));
    }
    let payload = item.payload_snapshot.as_ref().map(|payload| payload.get());
    let payload = payload.filter(|payload| payload.len() <= SHOWN_BYTES_MAX);
    let may_submit = inside.may(&Method::POST, "/api/v1/jobs");
    if let Some(payload) = payload.filter(|_| item.status == "open" && can_steer && may_submit) {
        let (lines, _) = super::json_text::lines(payload, SHOWN_BYTES_MAX);
        let edit = Form::new("edit", action("resubmit"), words.edit_go).named(words.edit);
        let payload = Input::area("payload", words.payload, lines).needed();
        forms.push(edit.hint(words.edit_hint).with(payload));
    }
    let is_over = !matches!(item.status.as_str(), "open" | "discard_requested");
    if !is_over && may("break-glass") {
        let alone = Form::new("glass", action("break-glass"), words.glass_go).look(Look::Danger);
        forms.push(alone.named(words.glass).hint(words.glass_hint).with(reason()));
    }
    forms
}

/// Tells on the page of the item what came of a step.
fn told<T>(ask: &Ask, done: Result<T, Refusal>, text: &str) -> Result<Reply, Refusal> {
    let back = format!("/ui/dlq/items/{}", ask.param());
    shell::told(ask, &back, done.map(|_| text.to_owned()))
}

async fn requeue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = DlqWords::of(Lang::of(&ask.headers));
    let done =
        Inside::new(&ask, &who).poke::<api::dlq::Requeued>(&native_path(&ask, "/requeue")).await;
    match done {
        Ok(again) => {
            let back = format!("/ui/jobs/{}", again.job_id);
            shell::told(&ask, &back, Ok(words.requeue_done.to_owned()))
        }
        Err(no) => told::<()>(&ask, Err(no), ""),
    }
}

/// A new job like the one that failed, with another payload.
async fn resubmit(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = DlqWords::of(Lang::of(&ask.headers));
    let fields = Fields::of(&ask)?;
    let inside = Inside::new(&ask, &who);
    let item: api::dlq::DlqItem = inside.get(&native_path(&ask, "")).await?;
    let given = fields.get("payload").unwrap_or_default().to_owned();
    let Ok(payload) = RawValue::from_string(given) else {
        return told::<()>(&ask, Err(refusal::invalid("payload", words.not_json)), "");
    };
    let mut wish = api::job::Submit::new(&item.job_type, payload);
    if let Some(context) = item.context_snapshot {
        wish.queue = Some(context.queue);
        wish.priority = Some(context.priority);
        wish.timeout_ms = Some(context.timeout_ms);
        wish.max_retries = Some(context.max_retries);
        wish.trace_id = Some(context.trace_id);
        wish.labels = context.labels;
        wish.subject = context.subject;
    }
    match inside.post::<api::job::Job>("/api/v1/jobs", &wish).await {
        Ok(job) => {
            let back = format!("/ui/jobs/{}", job.job_id);
            shell::told(&ask, &back, Ok(words.edit_done.to_owned()))
        }
        Err(no) => told::<()>(&ask, Err(no), ""),
    }
}

async fn discard(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = DlqWords::of(Lang::of(&ask.headers));
    let reason = Fields::of(&ask)?.filled("reason").unwrap_or_default().to_owned();
    let wish = api::dlq::Discard { reason, ..api::dlq::Discard::default() };
    let path = native_path(&ask, "/discard");
    let done = Inside::new(&ask, &who).post::<api::dlq::DlqStanding>(&path, &wish).await;
    told(&ask, done, words.discard_done)
}

async fn approve(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = DlqWords::of(Lang::of(&ask.headers));
    let version = Fields::of(&ask)?.filled("version").and_then(|text| text.parse().ok());
    let version = version.ok_or_else(|| refusal::invalid("version", "is not a number"))?;
    let path = native_path(&ask, "/approve");
    let wish = api::dlq::Approve { version };
    let done = Inside::new(&ask, &who).post::<api::dlq::DlqStanding>(&path, &wish).await;
    told(&ask, done, words.approve_done)
}

async fn reject(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = DlqWords::of(Lang::of(&ask.headers));
    let path = native_path(&ask, "/reject");
    let done = Inside::new(&ask, &who).poke::<api::dlq::DlqStanding>(&path).await;
    told(&ask, done, words.reject_done)
}

async fn break_glass(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = DlqWords::of(Lang::of(&ask.headers));
    let reason = Fields::of(&ask)?.filled("reason").unwrap_or_default().to_owned();
    let path = native_path(&ask, "/break-glass");
    let wish = api::dlq::BreakGlass { reason };
    let done = Inside::new(&ask, &who).post::<api::dlq::DlqStanding>(&path, &wish).await;
    told(&ask, done, words.glass_done)
}
