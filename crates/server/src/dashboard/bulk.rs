//! Bulk operations: the list, one of them with how far it is, and the form that previews before
//! anything is done. All of it is the native contract's; this page only shows and passes on.

use super::form::Fields;
use super::inside::Inside;
use super::jobs::filled;
use super::parts::{self, When};
use super::shell::{self, Frame, encoded};
use super::words::{Lang, words};
use super::{Group, Page};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::contracts::native::bulk::glanced_at;
use crate::governed::OPERATORS;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{self, Kind, Refusal};
use crate::route::table::{ANYONE, LOOKERS, get, page, post};
use crate::route::{Route, Takes};
use askama::Template;
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::{Principal, Timestamp};

pub(super) static PAGE: Page = Page {
    path: "/ui/bulk",
    name: ["Bulk operations", "批量操作"],
    group: Group::Work,
    roles: LOOKERS,
    routes,
    icon: "M2 5l6-3 6 3-6 3zM2 8l6 3 6-3M2 11l6 3 6-3",
};

fn routes() -> Vec<Route> {
    vec![
        get("/ui/bulk", page!(LOOKERS, list), Doc::hidden()),
        post("/ui/bulk", page!(ANYONE, create), Takes::Form, Doc::hidden()),
        get("/ui/bulk/new", page!(OPERATORS, preview), Doc::hidden()),
        get("/ui/bulk/{bulk_id}", page!(LOOKERS, show), Doc::hidden()),
        post("/ui/bulk/{bulk_id}/stop", page!(ANYONE, stop), Takes::Form, Doc::hidden()),
        post("/ui/bulk/{bulk_id}/approve", page!(ANYONE, approve), Takes::Form, Doc::hidden()),
    ]
}

words! {
    BulkWords {
        action: "What", "操作";
        filter: "To what", "对象";
        status: "State", "状态";
        progress: "Progress", "进度";
        by: "By", "发起人";
        when: "When", "时间";
        reason: "Reason", "原因";
        none: "Nothing was done in bulk yet. Filter the jobs first, then look at the bar below the tabs; or in a terminal:", "还没有批量操作。请先筛选作业，再使用标签下方的操作栏；或在终端中：";
        preview: "Preview", "预览";
        cancel_title: "Cancel all that fit", "取消全部符合条件的作业";
        requeue_title: "Run dead letters again", "重新运行死信";
        matched: "Things that fit now", "当前符合条件的数量";
        needs_approval: "A second person has to agree before anything is done.", "执行之前需要第二个人同意。";
        samples: "The latest of them", "其中最新的";
        reason_hint: "Why? It stands in the audit trail.", "为什么？会写入审计记录。";
        canary: "Begin with", "先试";
        canary_hint: "and go on only if none of these fails; empty for all at once", "个，全部成功才继续；留空则一次完成";
        go: "Do it", "执行";
        back: "Back", "返回";
        refused: "This cannot be done so:", "不能这样执行：";
        started: "The operation has begun.", "操作已开始。";
        stop: "Stop", "停止";
        stopped: "The operation is stopped; what is done stays done.", "操作已停止；已完成的保持不变。";
        approve: "Agree", "同意";
        approved: "Agreed.", "已同意。";
        done: "done", "完成";
        failed: "not possible", "未能执行";
        of: "of", "/";
        outcomes: "What became of each", "每一项的结果";
        outcome: "Outcome", "结果";
        thing: "Thing", "对象";
        more: "Only the latest 50 are shown; the API has all of them.", "只显示 50 项；完整列表见 API。";
        stopped_because: "Ended early", "提前结束";
        agreed_by: "Agreed by", "同意人";
        within: "Within the tenant", "所在租户";
        nothing_fits: "Nothing fits at the moment.", "当前没有符合条件的对象。";
    }
}

/// One operation, as a line or as a page.
struct Operation {
    id: String,
    /// What is done, in the language of the page.
    action: &'static str,
    filter: String,
    reason: String,
    status: String,
    /// The same in the language of the page.
    standing: &'static str,
    by: String,
    at: When,
    done: String,
    failed: String,
    matched: String,
    share: u64,
    approved_by: Option<String>,
    stopped: Option<String>,
    version: u32,
    waits: bool,
    goes_on: bool,
}

#[derive(Template)]
#[template(path = "bulk_list.html")]
struct BulkListPage {
    frame: Frame,
    words: &'static BulkWords,
    operations: Vec<Operation>,
    older: Option<String>,
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    frame: Frame,
    words: &'static BulkWords,
    it: Operation,
    outcomes: Vec<(&'static str, api::bulk::BulkOutcome)>,
    has_more: bool,
    can_stop: bool,
    can_approve: bool,
}

#[derive(Template)]
#[template(path = "bulk_new.html")]
struct BulkNewPage {
    frame: Frame,
    words: &'static BulkWords,
    title: &'static str,
    action: String,
    filter: String,
    fields: Vec<(&'static str, String)>,
    preview: Option<api::bulk::BulkPreview>,
    matched: String,
    problem: Option<(String, &'static str)>,
    is_requeue: bool,
    back: String,
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let query = ask.query(&["cursor"])?;
    let cursor = query.get("cursor").map(|it| format!("&cursor={}", encoded(it)));
    let target = format!("/api/v1/bulk?limit={DASHBOARD_PAGE}{}", cursor.unwrap_or_default());
    let page: api::Page<api::bulk::Bulk> = Inside::new(&ask, &who).get(&target).await?;
    shell::page(&BulkListPage {
        words: BulkWords::of(frame.lang),
        operations: page.items.into_iter().map(|it| operation(it, frame.lang)).collect(),
        older: page.next_cursor.map(|next| format!("/ui/bulk?cursor={}", encoded(&next))),
        frame,
    })
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let inside = Inside::new(&ask, &who);
    let path = format!("/api/v1/bulk/{}", encoded(ask.param()));
    let lang = Lang::of(&ask.headers);
    let it = operation(inside.get(&path).await?, lang);
    let items: api::Page<api::bulk::BulkOutcome> =
        inside.get(&format!("{path}/items?limit={DASHBOARD_PAGE}")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let title = frame.title.clone();
    let frame = frame.titled(title, format!("/ui/bulk/{}", it.id));
    shell::page(&BulkPage {
        words: BulkWords::of(frame.lang),
        has_more: items.next_cursor.is_some(),
        outcomes: items.items.into_iter().map(|it| (word(lang, &it.outcome), it)).collect(),
        can_stop: it.goes_on && inside.may(&Method::POST, "/api/v1/bulk/x/stop"),
        can_approve: it.waits && inside.may(&Method::POST, "/api/v1/bulk/x/approve"),
        it,
        frame,
    })
}

/// The names that a filter of native's has, as they come in an address and in a form.
const FILTERS: [&str; 10] = [
    "status",
    "type",
    "queue",
    "trace_id",
    "user_id",
    "label",
    "error_code",
    "signature",
    "created_after",
    "created_before",
];

/// What a form or an address asks for, as native takes it.
fn wish(get: impl Fn(&str) -> Option<String>) -> Result<api::bulk::CreateBulk, Refusal> {
    let time = |name: &'static str| {
        let parsed = get(name).map(|text| text.parse::<api::Time>()).transpose();
        parsed.map_err(|why| refusal::invalid(name, why))
    };
    let canary = get("canary").map(|text| {
        let first = text.parse().map_err(|_| refusal::invalid("canary", "is not a number"))?;
        Ok::<_, Refusal>(api::bulk::BulkCanary { first, max_failure_ratio: 0.0 })
    });
    Ok(api::bulk::CreateBulk {
        action: get("action").unwrap_or_default(),
        filter: api::bulk::BulkFilter {
            status: get("status"),
            job_type: get("type"),
            queue: get("queue"),
            trace_id: get("trace_id"),
            user_id: get("user_id"),
            label: get("label").map(|label| vec![label]),
            error_code: get("error_code"),
            signature: get("signature"),
            created_after: time("created_after")?,
            created_before: time("created_before")?,
        },
        reason: get("reason").unwrap_or_default(),
        dry_run: None,
        canary: canary.transpose()?,
    })
}

/// How many fit, as far as they were counted.
fn matched(ask: &Ask, count: u64) -> String {
    let most = glanced_at(ask.app.config.bulk_approval_above) as u64;
    match count > most {
        true => format!("{}+", parts::count(most)),
        false => parts::count(count),
    }
}

/// What it would be about; nothing is done.
async fn preview(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let mut known = vec!["action"];
    known.extend(FILTERS);
    let query = Query::read(Some(&filled(&ask)), &known)?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let words = BulkWords::of(frame.lang);
    let wished = wish(|name| query.get(name).map(str::to_owned));
    let outcome = match wished {
        Ok(wish) => {
            // A reason is asked for below; what is only looked at needs none.
            let (dry_run, reason) = (Some(true), "preview".to_owned());
            let wish = api::bulk::CreateBulk { dry_run, reason, ..wish };
            Inside::new(&ask, &who).post::<api::bulk::BulkPreview>("/api/v1/bulk", &wish).await
        }
        Err(no) => Err(no),
    };
    let (preview, problem) = match outcome {
        Ok(preview) => (Some(preview), None),
        Err(no) if matches!(no.kind, Kind::Wrong | Kind::Conflict) => {
            (None, Some((no.message.into_owned(), no.code)))
        }
        Err(no) => return Err(no),
    };
    let fields: Vec<(&'static str, String)> =
        FILTERS.into_iter().filter_map(|name| Some((name, query.get(name)?.to_owned()))).collect();
    let action = query.get("action").unwrap_or_default().to_owned();
    let is_requeue = action == "requeue";
    let back = if is_requeue { "/ui/jobs?status=failed" } else { "/ui/jobs?status=queued" };
    shell::page(&BulkNewPage {
        title: if is_requeue { words.requeue_title } else { words.cancel_title },
        filter: joined(fields.iter().map(|(name, value)| format!("{name}={value}"))),
        matched: preview.as_ref().map(|it| matched(&ask, it.matched)).unwrap_or_default(),
        is_requeue,
        back: back.to_owned(),
        action,
        fields,
        preview,
        problem,
        frame,
        words,
    })
}

async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let words = BulkWords::of(Lang::of(&ask.headers));
    let done = match wish(|name| fields.filled(name).map(str::to_owned)) {
        Ok(wish) => Inside::new(&ask, &who).post::<api::bulk::Bulk>("/api/v1/bulk", &wish).await,
        Err(no) => Err(no),
    };
    let back = match &done {
        Ok(made) => format!("/ui/bulk/{}", made.bulk_id),
        Err(_) => {
            let is_kept = |name: &str| name == "action" || FILTERS.contains(&name);
            let kept = fields.pairs().filter(|(name, _)| is_kept(name));
            let kept = kept.map(|(name, value)| format!("{name}={}", encoded(value)));
            format!("/ui/bulk/new?{}", kept.collect::<Vec<_>>().join("&"))
        }
    };
    shell::told(&ask, &back, done.map(|_| words.started.to_owned()))
}

async fn stop(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let reason = Fields::of(&ask)?.filled("reason").map(str::to_owned);
    let path = format!("/api/v1/bulk/{}/stop", encoded(ask.param()));
    let wish = api::bulk::StopBulk { reason };
    let done = Inside::new(&ask, &who).post::<api::bulk::Bulk>(&path, &wish).await;
    let words = BulkWords::of(Lang::of(&ask.headers));
    let back = format!("/ui/bulk/{}", ask.param());
    shell::told(&ask, &back, done.map(|_| words.stopped.to_owned()))
}

async fn approve(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let version = fields.filled("version").and_then(|text| text.parse().ok());
    let version = version.ok_or_else(|| refusal::invalid("version", "is not a number"))?;
    let path = format!("/api/v1/bulk/{}/approve", encoded(ask.param()));
    let wish = api::bulk::ApproveBulk { version };
    let done = Inside::new(&ask, &who).post::<api::bulk::Bulk>(&path, &wish).await;
    let words = BulkWords::of(Lang::of(&ask.headers));
    let back = format!("/ui/bulk/{}", ask.param());
    shell::told(&ask, &back, done.map(|_| words.approved.to_owned()))
}

/// How an action, a state or an outcome is called.
fn word(lang: Lang, code: &str) -> &'static str {
    lang.of_two(match code {
        "cancel" => ["cancel", "取消"],
        "requeue" => ["requeue", "重新运行"],
        "discard" => ["discard", "丢弃"],
        "pause" => ["pause", "暂停"],
        "resume" => ["resume", "恢复"],
        "awaiting_approval" => ["waits for a second person", "等待第二个人同意"],
        "running" => ["running", "运行中"],
        "canary" => ["first ones", "先试"],
        "stopped" => ["stopped", "已停止"],
        "done" => ["done", "完成"],
        "failed" => ["not possible", "未能执行"],
        _ => ["?", "?"],
    })
}

fn operation(bulk: api::bulk::Bulk, lang: Lang) -> Operation {
    let share = (bulk.done + bulk.failed).saturating_mul(1_000).checked_div(bulk.matched);
    Operation {
        filter: filter_text(&bulk.filter),
        waits: bulk.status == "awaiting_approval",
        goes_on: bulk.ended_at.is_none(),
        share: share.unwrap_or(1_000).min(1_000),
        id: bulk.bulk_id,
        action: word(lang, &bulk.action),
        standing: word(lang, &bulk.status),
        reason: bulk.reason,
        status: bulk.status,
        by: bulk.requested_by,
        at: When(Timestamp(bulk.requested_at.0)),
        done: parts::count(bulk.done),
        failed: parts::count(bulk.failed),
        matched: parts::count(bulk.matched),
        approved_by: bulk.approved_by,
        stopped: bulk.stopped_reason,
        version: bulk.version,
    }
}

fn filter_text(filter: &api::bulk::BulkFilter) -> String {
    let labels = filter.label.iter().flatten().map(|label| ("label", label.clone()));
    let one = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let ones = [
        one("status", &filter.status),
        one("type", &filter.job_type),
        one("queue", &filter.queue),
        one("trace_id", &filter.trace_id),
        one("user_id", &filter.user_id),
        one("error_code", &filter.error_code),
        one("signature", &filter.signature),
        filter.created_after.map(|at| ("created_after", parts::utc(Timestamp(at.0)))),
        filter.created_before.map(|at| ("created_before", parts::utc(Timestamp(at.0)))),
    ];
    joined(ones.into_iter().flatten().chain(labels).map(|(name, value)| format!("{name}={value}")))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::entity::bulk::{BulkAction, BulkStatus};

    #[test]
    fn whatever_is_done_and_wherever_it_stands_has_a_word_in_both_languages() {
        let actions = BulkAction::ALL.iter().map(|it| it.as_str());
        let states = BulkStatus::ALL.iter().map(|it| it.as_str());
        for code in actions.chain(states).chain(["done", "failed"]) {
            let [en, zh] = [Lang::En, Lang::Zh].map(|lang| word(lang, code));
            assert!(en != "?" && zh != "?" && en != zh, "{code}");
        }
    }
}
