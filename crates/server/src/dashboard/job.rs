//! One job: what it is, what happened to it and when, why it waits, and what can be done about it.

use super::inside::Inside;
use super::jobs::PAGE;
use super::parts::{self, Chip, Html, When};
use super::shell::{self, Frame};
use super::words::{self, Lang, fill, words};
use super::{json_text, kin};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::contracts::native::jobs as native;
use crate::limits::{SHOWN_BYTES_MAX, SHOWN_MOVES_MAX};
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::table::{ANYONE, get, page, post};
use crate::route::{Route, Takes};
use askama::Template;
use hyper::Method;
use mainspring_api as api;
use mainspring_engine::ExpectedStart;
use mainspring_engine::store::JobWithHistory;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::view;
use mainspring_kernel::{DlqItem, DlqState, Job, JobId, Principal, StateName, Timestamp};
use serde::de::IgnoredAny;
use std::fmt::Write;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/ui/jobs/{job_id}", page!(ANYONE, show), Doc::hidden()),
        post("/ui/jobs/{job_id}/cancel", page!(ANYONE, cancel), Takes::Form, Doc::hidden()),
        post("/ui/jobs/{job_id}/requeue", page!(ANYONE, requeue), Takes::Form, Doc::hidden()),
    ]
}

words! {
    JobWords {
        why: "Why is it waiting?", "为什么在等待？";
        earliest: "Earliest", "最早";
        estimate: "Expected", "预计开始";
        estimate_unknown: "nobody knows", "未知";
        failure: "Why it failed", "失败原因";
        retryable: "trying again could help", "重试可能有用";
        permanent: "trying again cannot help", "重试没有用";
        exhausted: "no try was left", "次数已用尽";
        kin: "Jobs around this one", "相关作业";
        timeline: "Timeline", "时间线";
        timeline_cut: "Only the latest 200 moves are shown.", "只显示最近 200 次变化。";
        attempt: "Try", "第几次";
        state: "State", "状态";
        when: "When", "时间";
        took: "Took", "用时";
        who: "Who", "执行者";
        reason: "Why", "原因";
        payload: "Payload", "载荷";
        result: "Result", "结果";
        effects: "Effects", "副作用";
        effects_hint: "Committed once; a second try gets these values back.", "只提交一次；再次尝试会得到这些值。";
        cut: "{} more bytes; the API has all of it.", "还有 {} 字节；完整内容见 API。";
        views: "As each contract sees it", "各契约看到的状态";
        contract: "Contract", "契约";
        counter: "Counter", "计数";
        facts: "Facts", "基本信息";
        job_type: "Type", "类型";
        queue: "Queue", "队列";
        tenant: "Tenant", "租户";
        user: "User", "用户";
        tries: "Tries", "次数";
        tries_text: "{} of {}", "{} / {}";
        priority: "Priority", "优先级";
        timeout: "Timeout", "超时";
        created: "Created", "创建";
        run_at: "Not before", "不早于";
        started: "Last started", "最近开始";
        finished: "Ended", "结束";
        expires: "Expires", "过期";
        lease: "Lease", "租约";
        lease_text: "{} until", "{} 至";
        trace: "Trace", "追踪";
        key: "Idempotency key", "幂等键";
        labels: "Labels", "标签";
        subject: "Subject", "主题";
        parent: "Parent", "父作业";
        requeued_from: "Requeued from", "重新运行自";
        requeued_as: "Runs again as", "重新运行为";
        dead_letter: "Dead letter", "死信";
        progress: "Progress", "进度";
        actions: "Actions", "操作";
        cancel: "Cancel this job", "取消此作业";
        cancel_done: "The job is cancelled.", "作业已取消。";
        requeue: "Run it again", "重新运行";
        requeue_hint: "A new job with the same payload; this one keeps its end.", "以相同载荷创建新作业；此作业保持原有结局。";
        requeue_done: "It runs again as this new job.", "已作为这个新作业重新运行。";
        item_open: "open", "未处理";
        item_requeued: "requeued", "已重新运行";
        item_asked: "a discard is asked for", "已申请丢弃";
        item_gone: "discarded", "已丢弃";
    }
}

/// A named value; some lead somewhere.
struct Fact {
    name: &'static str,
    value: String,
    when: Option<When>,
    href: Option<String>,
    /// What is said behind it.
    note: Option<&'static str>,
}

impl Fact {
    /// Whether it is an id, which is to stand on one line.
    fn is_id(&self) -> bool {
        parts::is_id(&self.value)
    }
}

/// One line of the timeline.
struct Step {
    chip: Chip,
    attempt: u32,
    at: When,
    took: String,
    who: String,
    code: String,
    message: String,
}

/// JSON to be shown.
struct Shown {
    name: String,
    text: String,
    note: Option<String>,
    at: Option<When>,
}

/// Why it failed.
struct Failed {
    code: String,
    message: String,
    judgement: &'static str,
    is_exhausted: bool,
    at: When,
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    frame: Frame,
    words: &'static JobWords,
    id: String,
    job_type: String,
    chip: Chip,
    progress: Option<u8>,
    summary: String,
    reasons: Vec<(&'static str, String)>,
    earliest: Option<When>,
    estimate: Option<Guess>,
    failed: Option<Failed>,
    strip: Html,
    kin: Option<Html>,
    steps: Vec<Step>,
    is_cut: bool,
    facts: Vec<Fact>,
    payload: Shown,
    result: Option<Shown>,
    effects: Vec<Shown>,
    views: Vec<(&'static str, &'static str, String)>,
    can_cancel: bool,
    can_requeue: bool,
}

/// When a job may be expected to start.
struct Guess {
    at: Option<When>,
    basis: &'static str,
    message: String,
}

fn guess(start: ExpectedStart, lang: Lang) -> Guess {
    let ExpectedStart { at, basis, message } = start;
    let text = match basis {
        _ if lang == Lang::En => None,
        "due" => Some("到执行时间时"),
        "refill" => Some("速率限制有余量时"),
        "circuit" => Some("熔断放行时"),
        "next_pull" => Some("下一个 worker 来领取时"),
        "pace" => Some("按它的位置和最近的启动速度估计"),
        _ => Some("先要解决上面的原因，或最近没有同类作业启动"),
    };
    Guess { at: at.map(When), basis, message: text.map_or(message, str::to_owned) }
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let found = native::visible(&ask, &who).await?;
    let id = found.job.id;
    let lang = Lang::of(&ask.headers);
    let words = JobWords::of(lang);
    let now = ask.engine().now();
    let told = ask.engine().explain(id).await?.ok_or_else(|| native::unseen(&who))?;
    let effects = ask.engine().effects(id).await?;
    let item = ask.engine().item_within(id.dlq(), &auth::scope(&who)).await?;
    let JobWithHistory { job, history } = &found;
    let is_waiting = matches!(job.state.name(), StateName::Queued | StateName::Retrying);
    let may = Actions::of(&Inside::new(&ask, &who), &who, job, item.as_ref());
    let here = format!("/ui/jobs/{id}");
    let frame = Frame::new(&ask, &who, &PAGE).titled(format!("{} · {id}", job.job_type), here);
    let effect_shown = |effect: &mainspring_kernel::job::Effect| Shown {
        at: Some(When(effect.committed_at)),
        ..shown(&effect.name, &effect.value, words)
    };
    shell::page(&JobPage {
        id: id.to_string(),
        job_type: job.job_type.to_string(),
        chip: Chip(job.state.name(), lang),
        progress: job.extras.as_ref().and_then(|extras| extras.progress_pct),
        summary: summary(job, told.summary, told.reasons.first().map(|why| why.code), lang),
        reasons: match is_waiting {
            true => {
                let told = told.reasons.into_iter();
                told.map(|why| (why.code, worded(why.code, lang).unwrap_or(why.message))).collect()
            }
            false => Vec::new(),
        },
        earliest: told.earliest.filter(|_| is_waiting).map(When),
        estimate: told.start.filter(|_| is_waiting).map(|start| guess(start, lang)),
        failed: failed(job, words),
        strip: strip(history, job, now, lang),
        kin: kin::drawn(&ask, &who, (job, item.as_ref()), lang).await?,
        is_cut: history.len() > SHOWN_MOVES_MAX,
        steps: steps(history, lang, now),
        facts: facts(job, item.as_ref(), words),
        payload: shown(words.payload, &job.payload, words),
        result: job.result().map(|result| shown(words.result, result, words)),
        effects: effects.iter().map(effect_shown).collect(),
        views: views(job, now),
        can_cancel: may.cancel,
        can_requeue: may.requeue,
        frame,
        words,
    })
}

/// What whoever looks may do about a job: by role as the native routes have it, by whose it is and
/// where it stands as the kernel says. What then happens is decided there, too.
struct Actions {
    cancel: bool,
    requeue: bool,
}

impl Actions {
    fn of(inside: &Inside<'_>, who: &Principal, job: &Job, item: Option<&DlqItem>) -> Self {
        let can_steer = who.can_steer(&job.tenant, &job.user);
        let is_open = item.is_some_and(|item| matches!(item.state, DlqState::Open));
        let state = job.state.name();
        Actions {
            cancel: can_steer
                && state.may_become(StateName::Cancelled)
                && inside.may(&Method::POST, "/api/v1/jobs/x/cancel"),
            requeue: can_steer
                && is_open
                && inside.may(&Method::POST, "/api/v1/dlq/items/x/requeue"),
        }
    }
}

async fn cancel(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = super::form::Fields::of(&ask)?;
    let wish = api::job::Cancel { reason: fields.filled("reason").map(str::to_owned) };
    let path = format!("/api/v1/jobs/{}/cancel", shell::encoded(ask.param()));
    let done = Inside::new(&ask, &who).post::<IgnoredAny>(&path, &wish).await;
    let words = JobWords::of(Lang::of(&ask.headers));
    let back = format!("/ui/jobs/{}", ask.param());
    shell::told(&ask, &back, done.map(|_| words.cancel_done.to_owned()))
}

async fn requeue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = native::visible(&ask, &who).await?.job.id;
    let path = format!("/api/v1/dlq/items/{}/requeue", id.dlq());
    let done = Inside::new(&ask, &who).poke::<api::dlq::Requeued>(&path).await;
    let words = JobWords::of(Lang::of(&ask.headers));
    let back = match &done {
        Ok(requeued) => format!("/ui/jobs/{}", requeued.job_id),
        Err(_) => format!("/ui/jobs/{id}"),
    };
    shell::told(&ask, &back, done.map(|_| words.requeue_done.to_owned()))
}

/// Where the job stands in a sentence: the engine's own, or the same in Chinese.
fn summary(job: &Job, told: String, code: Option<&'static str>, lang: Lang) -> String {
    if lang == Lang::En {
        return told;
    }
    let failed = job.last_failure.as_ref().map(|last| &*last.failure.code);
    match (job.state.name(), job.lease()) {
        (StateName::Queued | StateName::Retrying, _) => {
            code.and_then(|code| worded(code, lang)).unwrap_or(told)
        }
        (StateName::Running, Some(lease)) => {
            let attempt = job.attempt().to_string();
            fill("正在 {} 上运行，第 {} 次尝试", &[lease.worker.as_str(), &attempt])
        }
        (StateName::Failed, _) => {
            let attempts = job.attempt().to_string();
            fill("尝试 {} 次后失败：{}", &[&attempts, failed.unwrap_or_default()])
        }
        (state, _) => words::state(lang, state).to_owned(),
    }
}

/// What a reason to wait means, in a language that the engine does not speak.
fn worded(code: &str, lang: Lang) -> Option<String> {
    let text = match code {
        _ if lang == Lang::En => return None,
        "NOT_DUE" => "还没有到执行时间",
        "RETRY_BACKOFF" => "等待下一次重试的时间",
        "QUEUE_PAUSED" => "所在队列已暂停",
        "TYPE_PAUSED" => "此类型已暂停",
        "TENANT_PAUSED" => "所在租户已暂停",
        "PAUSED" => "已被人暂停",
        "RATE_LIMITED" => "此类型的速率已达上限",
        "CIRCUIT_OPEN" => "此类型的作业失败过多，暂缓分发",
        "GATE_CLOSED" => "闸门已关闭",
        "OBJECT_UNCERTAIN" => "对象状态不确定且风险高，只有核实作业可以运行",
        "AUTO_VERIFY_BUDGET" => "对象的自动核实次数已用完",
        "SNOOZED" => "worker 推迟了它",
        "CONCURRENCY_LIMIT_EXCEEDED" => "同类型的作业已达到并发上限",
        "RETRY_BUDGET" => "这是一次重试，新作业优先",
        "JOBS_AHEAD" => "前面还有其他作业",
        "WAITS_FOR" => "等待其他作业先结束",
        "NO_WORKER" => "最近没有 worker 领取这种类型的作业",
        "READY" => "将交给下一个来领取的 worker",
        _ => return None,
    };
    Some(text.to_owned())
}

fn failed(job: &Job, words: &'static JobWords) -> Option<Failed> {
    let last = job.last_failure.as_ref().filter(|_| job.state.name() != StateName::Succeeded)?;
    Some(Failed {
        code: last.failure.code.to_string(),
        message: last.failure.message.to_string(),
        judgement: if last.failure.retryable { words.retryable } else { words.permanent },
        is_exhausted: last.is_exhausted,
        at: When(last.at),
    })
}

fn shown(name: &str, json: &str, words: &'static JobWords) -> Shown {
    let (text, rest) = json_text::lines(json, SHOWN_BYTES_MAX);
    let note = (rest > 0).then(|| fill(words.cut, &[&parts::count(rest as u64)]));
    Shown { name: name.to_owned(), text, note, at: None }
}

/// When each state began and for how long it lasted.
fn steps(history: &[Transition], lang: Lang, now: Timestamp) -> Vec<Step> {
    let skipped = history.len().saturating_sub(SHOWN_MOVES_MAX);
    let step = |(index, step): (usize, &Transition)| {
        let until = history.get(index + 1).map(|next| next.at);
        let until = until.or_else(|| (!step.to.is_terminal()).then_some(now));
        Step {
            chip: Chip(step.to, lang),
            attempt: step.attempt,
            at: When(step.at),
            // What happened in one instant took no time.
            took: until
                .map(|until| until.since(step.at))
                .filter(|took| !took.is_zero())
                .map_or_else(String::new, parts::span),
            who: step.actor.to_string(),
            code: step.reason.as_ref().map_or_else(String::new, |why| why.code.to_string()),
            message: step.reason.as_ref().map_or_else(String::new, |why| why.message.to_string()),
        }
    };
    history.iter().enumerate().skip(skipped).map(step).collect()
}

/// The life of the job as a strip, from its submission until its end or until now.
fn strip(history: &[Transition], job: &Job, now: Timestamp, lang: Lang) -> Html {
    const WIDTH: f64 = 1_000.0;
    let (start, end) = (job.created_at, job.finished_at().unwrap_or(now));
    let whole = end.since(start).as_secs_f64().max(0.000_001);
    let name = lang.of_two(["States over time", "状态随时间的变化"]);
    let mut svg = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} 20\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"{name}\">"
    );
    let skipped = history.len().saturating_sub(SHOWN_MOVES_MAX);
    for (index, step) in history.iter().enumerate().skip(skipped) {
        let until = history.get(index + 1).map_or(end, |next| next.at);
        let x = WIDTH * step.at.since(start).as_secs_f64() / whole;
        let wide = (WIDTH * until.since(step.at).as_secs_f64() / whole).max(3.0);
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<rect class=\"s-{}\" x=\"{:.1}\" y=\"0\" width=\"{wide:.1}\" height=\"20\"/>",
            step.to,
            x.min(WIDTH - 3.0),
        );
    }
    svg.push_str("</svg>");
    Html(svg)
}

fn facts(job: &Job, item: Option<&DlqItem>, words: &'static JobWords) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut text = |name, value: String, href: Option<String>| {
        facts.push(Fact { name, value, when: None, href, note: None });
    };
    let list = |name: &str, value: &str| Some(format!("/ui/jobs?{name}={}", shell::encoded(value)));
    let job_link = |id: JobId| Some(format!("/ui/jobs/{id}"));
    text(words.job_type, job.job_type.to_string(), list("type", job.job_type.as_str()));
    text(words.queue, job.queue.to_string(), list("queue", job.queue.as_str()));
    text(words.tenant, job.tenant.to_string(), None);
    text(words.user, job.user.to_string(), list("user_id", job.user.as_str()));
    let most = (u32::from(job.max_retries) + 1).to_string();
    text(words.tries, fill(words.tries_text, &[&job.attempt().to_string(), &most]), None);
    text(words.priority, job.priority.to_string(), None);
    let timeout = std::time::Duration::from_millis(job.timeout_ms.into());
    text(words.timeout, parts::span(timeout), None);
    let trace = job.trace_id();
    text(words.trace, trace.clone(), list("trace_id", &trace));
    if let Some(key) = &job.idempotency {
        text(words.key, key.key.to_string(), None);
    }
    if let Some(extras) = job.extras.as_deref() {
        for (name, value) in &extras.labels {
            let label = format!("{name}={value}");
            text(words.labels, label.clone(), list("label", &label));
        }
        if let Some(subject) = &extras.subject {
            text(words.subject, subject.to_string(), None);
        }
        if let Some(parent) = extras.parent {
            text(words.parent, parent.to_string(), job_link(parent));
        }
        if let Some(from) = extras.source_dlq.map(|item| JobId(item.0)) {
            text(words.requeued_from, from.to_string(), job_link(from));
        }
    }
    if let Some(item) = item {
        let (standing, again) = match &item.state {
            DlqState::Open => (words.item_open, None),
            DlqState::Requeued { job, .. } => (words.item_requeued, Some(*job)),
            DlqState::DiscardRequested(_) => (words.item_asked, None),
            DlqState::Discarded { .. } | DlqState::GlassBroken(_) => (words.item_gone, None),
        };
        let href = Some(format!("/ui/dlq/items/{}", item.id));
        let value = item.id.to_string();
        facts.push(Fact { name: words.dead_letter, value, when: None, href, note: Some(standing) });
        let mut text = |name, value: String, href: Option<String>| {
            facts.push(Fact { name, value, when: None, href, note: None });
        };
        if let Some(again) = again {
            text(words.requeued_as, again.to_string(), job_link(again));
        }
    }
    let lease = job.lease().map(|lease| (fill(words.lease_text, &[lease.worker.as_str()]), lease));
    if let Some((value, lease)) = lease {
        let when = Some(When(lease.expires_at));
        facts.push(Fact { name: words.lease, value, when, href: None, note: None });
    }
    let times = [
        (words.created, Some(job.created_at)),
        (words.run_at, Some(job.run_at).filter(|at| is_told(*at) && *at > job.created_at)),
        (words.started, job.started_at),
        (words.finished, job.finished_at()),
        (words.expires, job.expires_at()),
    ];
    for (name, at) in times {
        if let Some(at) = at {
            let when = Some(When(at));
            facts.push(Fact { name, value: String::new(), when, href: None, note: None });
        }
    }
    facts
}

/// A job that waits for something else than time has no instant of its own.
fn is_told(at: Timestamp) -> bool {
    at != Timestamp::NEVER
}

/// The same job in the words of each contract.
fn views(job: &Job, now: Timestamp) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("/api/v1", view::native::state(job).as_str(), view::native::retry_count(job).to_string()),
        ("/tasks", view::tasks::state(job, now).as_str(), view::tasks::attempt(job).to_string()),
        ("/jobs", view::jobs::state(job).as_str(), "–".to_owned()),
        ("/agent", view::agent::state(job).as_str(), view::agent::attempts(job).to_string()),
        (
            "/scheduler",
            view::scheduler::state(job).as_str(),
            view::scheduler::attempt(job).to_string(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::event::HoldCode;

    #[test]
    fn every_reason_to_wait_is_told_in_chinese() {
        let codes = [
            "NOT_DUE",
            "RETRY_BACKOFF",
            "QUEUE_PAUSED",
            "TYPE_PAUSED",
            "TENANT_PAUSED",
            "CONCURRENCY_LIMIT_EXCEEDED",
            "RATE_LIMITED",
            "CIRCUIT_OPEN",
            "JOBS_AHEAD",
            "WAITS_FOR",
            "NO_WORKER",
            "READY",
        ];
        for code in codes.into_iter().chain(HoldCode::ALL.iter().map(|it| it.as_str())) {
            assert!(worded(code, Lang::Zh).is_some(), "{code}");
            assert_eq!(worded(code, Lang::En), None);
        }
    }
}
