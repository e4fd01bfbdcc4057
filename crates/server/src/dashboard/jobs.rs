//! The list of jobs: tabs by state, filters in the address, pages by where the last one ended. The
//! parameters are the native list's; nothing is counted for a page.

use super::parts::{Chip, When};
use super::shell::{self, Frame, encoded};
use super::words::{self, Lang, words};
use super::{Group, Page, job};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::auth;
use crate::contracts::native::filters;
use crate::cursor;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{Kind, Refusal};
use crate::route::Route;
use crate::route::table::{ANYONE, get, page};
use askama::Template;
use mainspring_kernel::{Job, JobId, Principal, StateName};

pub(super) static PAGE: Page = Page {
    path: "/ui/jobs",
    name: ["Jobs", "作业"],
    group: Group::Work,
    roles: ANYONE,
    routes,
    icon: "M2 4h2M2 8h2M2 12h2M6 4h8M6 8h8M6 12h8",
};

fn routes() -> Vec<Route> {
    let mut routes = vec![get("/ui/jobs", page!(ANYONE, list), Doc::hidden())];
    routes.extend(job::routes());
    routes
}

words! {
    Jobs {
        all: "all", "全部";
        states: "States", "状态";
        find: "Job id or trace", "作业编号或追踪";
        find_go: "Find", "查找";
        job_type: "Type", "类型";
        queue: "Queue", "队列";
        error_code: "Error code", "错误码";
        user: "User", "用户";
        trace: "Trace", "追踪";
        label: "Label, as name=value", "标签，形如 name=value";
        created_after: "Created after, as 2026-11-18T09:00:00Z", "创建不早于，形如 2026-11-18T09:00:00Z";
        created_before: "Created before", "创建早于";
        filter: "Filter", "筛选";
        more_filters: "More filters", "更多筛选";
        clear: "Clear", "清除";
        state: "State", "状态";
        job: "Job", "作业";
        tries: "Tries", "次数";
        last: "Last change", "最近变化";
        what: "What happened", "情况";
        none: "No job fits.", "没有符合条件的作业。";
        none_at_all: "No job has come yet. In a terminal:", "还没有作业。在终端中：";
        bulk: "All that fit:", "对全部符合条件的：";
        bulk_cancel: "Cancel…", "取消…";
        bulk_requeue: "Requeue dead letters…", "重新运行死信…";
        on: "on", "在";
    }
}

/// A tab.
struct Tab {
    name: &'static str,
    code: &'static str,
    count: Option<String>,
    href: String,
    is_here: bool,
}

/// One line of the table.
struct Row {
    id: String,
    chip: Chip,
    job_type: String,
    queue: String,
    tries: String,
    changed: When,
    what: String,
    code: Option<String>,
    progress: Option<u8>,
}

/// A field of the filter form.
struct Field {
    name: &'static str,
    label: &'static str,
    value: String,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage {
    frame: Frame,
    words: &'static Jobs,
    tabs: Vec<Tab>,
    status: String,
    fields: Vec<Field>,
    more: Vec<Field>,
    has_more_filters: bool,
    is_filtered: bool,
    rows: Vec<Row>,
    older: Option<String>,
    newest: Option<String>,
    problem: Option<String>,
    bulk_cancel: Option<String>,
    bulk_requeue: Option<String>,
}

/// The parameters, those that are empty left out: a form sends all of its fields.
pub(super) fn filled(ask: &Ask) -> String {
    let pairs = ask.query.as_deref().unwrap_or_default().split('&');
    let filled = pairs.filter(|pair| pair.split_once('=').is_some_and(|(_, it)| !it.is_empty()));
    filled.collect::<Vec<_>>().join("&")
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let mut known = filters::job_names().to_vec();
    known.push("find");
    let query = Query::read(Some(&filled(&ask)), &known)?;
    if let Some(wanted) = query.get("find").map(str::trim) {
        return Ok(shell::goes_to(&match wanted.parse::<JobId>() {
            Ok(id) => format!("/ui/jobs/{id}"),
            Err(_) => format!("/ui/jobs?trace_id={}", encoded(wanted)),
        }));
    }
    let frame = Frame::new(&ask, &who, &PAGE);
    let words = Jobs::of(frame.lang);
    let found = found(&ask, &who, &query).await;
    let (rows, next, problem) = match found {
        Ok((jobs, next)) => (jobs, next, None),
        Err(no) if no.kind == Kind::Wrong => (Vec::new(), None, Some(no.message.into_owned())),
        Err(no) => return Err(no),
    };
    let rows = rows.iter().map(|job| row(job, frame.lang, words)).collect();
    let (fields, more) = fields(&query, words);
    let is_filtered = fields.iter().chain(&more).any(|field| !field.value.is_empty());
    let status = query.get("status").unwrap_or_default().to_owned();
    let bulk = bulk(&who, &query, &status);
    shell::page(&JobsPage {
        tabs: tabs(&ask, &who, &query, (frame.lang, is_filtered)).await?,
        has_more_filters: more.iter().any(|field| !field.value.is_empty()),
        is_filtered,
        rows,
        older: next.map(|next| target(&query, Some(&status), Some(&next))),
        newest: query.get("cursor").map(|_| target(&query, Some(&status), None)),
        problem,
        bulk_cancel: bulk.0,
        bulk_requeue: bulk.1,
        fields,
        more,
        status,
        frame,
        words,
    })
}

/// The jobs of the parameters, and where they go on.
async fn found(
    ask: &Ask,
    who: &Principal,
    query: &Query,
) -> Result<(Vec<Job>, Option<String>), Refusal> {
    let filter = filters::jobs(query, auth::scope(who))?;
    let list = filters::job_list(&filter);
    let before = filters::before(query, list)?.map(JobId);
    let page = ask.engine().jobs(&filter, before, DASHBOARD_PAGE).await?;
    Ok((page.items, page.next.map(|next| cursor::write(list, next.0))))
}

async fn tabs(
    ask: &Ask,
    who: &Principal,
    query: &Query,
    (lang, is_filtered): (Lang, bool),
) -> Result<Vec<Tab>, Refusal> {
    // Of a part of the jobs there are no numbers that anybody keeps.
    let tally = match is_filtered {
        true => None,
        false => Some(ask.app.dashboard.tallies.of(ask.engine(), &auth::scope(who)).await),
    };
    let here = query.get("status").unwrap_or_default();
    let all = Tab {
        name: Jobs::of(lang).all,
        code: "all",
        count: None,
        href: target(query, None, None),
        is_here: here.is_empty(),
    };
    let state = |state: StateName| Tab {
        name: words::state(lang, state),
        code: state.as_str(),
        count: tally.map(|tally| tally.text(state)),
        href: target(query, Some(state.as_str()), None),
        is_here: here == state.as_str(),
    };
    Ok(std::iter::once(all).chain(StateName::ALL.into_iter().map(state)).collect())
}

/// The same list in another state, or further on.
fn target(query: &Query, status: Option<&str>, cursor: Option<&str>) -> String {
    let kept = kept(query).map(|(name, value)| (name, value.to_owned()));
    let status = status.filter(|status| !status.is_empty()).map(|it| ("status", it.to_owned()));
    let cursor = cursor.map(|cursor| ("cursor", cursor.to_owned()));
    let pairs = status.into_iter().chain(kept).chain(cursor);
    let pairs: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", encoded(&value))).collect();
    match pairs.is_empty() {
        true => "/ui/jobs".to_owned(),
        false => format!("/ui/jobs?{}", pairs.join("&")),
    }
}

/// The filters beside the state.
fn kept(query: &Query) -> impl Iterator<Item = (&'static str, &str)> {
    const NAMES: [&str; 8] = [
        "type",
        "queue",
        "error_code",
        "user_id",
        "trace_id",
        "label",
        "created_after",
        "created_before",
    ];
    NAMES.into_iter().flat_map(|name| query.all(name).map(move |value| (name, value)))
}

fn fields(query: &Query, words: &'static Jobs) -> (Vec<Field>, Vec<Field>) {
    let field = |(name, label)| Field {
        name,
        label,
        value: query.get(name).unwrap_or_default().to_owned(),
    };
    let first =
        [("type", words.job_type), ("queue", words.queue), ("error_code", words.error_code)];
    let more = [
        ("user_id", words.user),
        ("trace_id", words.trace),
        ("label", words.label),
        ("created_after", words.created_after),
        ("created_before", words.created_before),
    ];
    (first.map(field).into(), more.map(field).into())
}

/// Where the operations on all that fit begin. What they may be about is native's to say.
fn bulk(who: &Principal, query: &Query, status: &str) -> (Option<String>, Option<String>) {
    if !who.roles.any(crate::governed::OPERATORS) {
        return (None, None);
    }
    let filter: String =
        kept(query).map(|(name, value)| format!("&{name}={}", encoded(value))).collect();
    match StateName::parse(status) {
        Some(StateName::Queued | StateName::Running | StateName::Retrying) => {
            (Some(format!("/ui/bulk/new?action=cancel&status={status}{filter}")), None)
        }
        Some(StateName::Failed) => (None, Some(format!("/ui/bulk/new?action=requeue{filter}"))),
        Some(
            StateName::DlqPending
            | StateName::DlqRecorded
            | StateName::Succeeded
            | StateName::Cancelled,
        )
        | None => (None, None),
    }
}

fn row(job: &Job, lang: Lang, words: &'static Jobs) -> Row {
    let failure = job.last_failure.as_ref().map(|last| &last.failure);
    let state = job.state.name();
    let is_over = state == StateName::Succeeded;
    let worker = job.lease().map(|lease| format!("{} {}", words.on, lease.worker));
    let what = match (worker, failure.filter(|_| !is_over)) {
        (Some(worker), _) => worker,
        (None, Some(failure)) => failure.message.to_string(),
        (None, None) => String::new(),
    };
    let shows_code = state != StateName::Running && !is_over;
    Row {
        id: job.id.to_string(),
        chip: Chip(state, lang),
        job_type: job.job_type.to_string(),
        queue: job.queue.to_string(),
        tries: format!("{}/{}", job.attempt(), u32::from(job.max_retries) + 1),
        changed: When(job.updated_at),
        what: what.chars().take(160).collect(),
        code: failure.filter(|_| shows_code).map(|failure| failure.code.to_string()),
        progress: job
            .extras
            .as_ref()
            .and_then(|it| it.progress_pct)
            .filter(|_| state == StateName::Running),
    }
}
