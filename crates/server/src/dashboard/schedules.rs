//! Schedules: the list with when each fires next, and one of them with its firings to come, what
//! became of the latest ones, and what may be done.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Fact, Form, Head, Input, Look, Tab, Table, Tone, cell,
    instant, number, target, text, title, when,
};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, fill, words};
use super::{Group, Page, parts, schedule_new, strip};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::{DASHBOARD_PAGE, PREVIEW_MAX};
use crate::openapi::Doc;
use crate::refusal::{self, Kind, Refusal};
use crate::route::table::{ANYONE, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_api::Time;
use mainspring_kernel::Principal;
use mainspring_kernel::entity::schedule::Status;
use std::time::Duration;

pub(super) static PAGE: Page = Page {
    path: "/ui/schedules",
    name: ["Schedules", "计划任务"],
    group: Group::Time,
    roles: ANYONE,
    routes,
    icon: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 5v3l2 2",
};

fn routes() -> Vec<Route> {
    let form = |path, rule| post(path, rule, Takes::Form, Doc::hidden());
    let mut routes = vec![
        get("/ui/schedules", page!(ANYONE, list), Doc::hidden()),
        get("/ui/schedules/{schedule_id}", page!(ANYONE, show), Doc::hidden()),
        form("/ui/schedules/{schedule_id}/pause", page!(ANYONE, pause)),
        form("/ui/schedules/{schedule_id}/resume", page!(ANYONE, resume)),
        form("/ui/schedules/{schedule_id}/stop", page!(ANYONE, stop)),
        form("/ui/schedules/{schedule_id}/trigger", page!(ANYONE, trigger)),
        form("/ui/schedules/{schedule_id}/backfill", page!(ANYONE, backfill)),
    ];
    routes.extend(schedule_new::routes());
    routes
}

words! {
    ScheduleWords {
        all: "all", "全部";
        views: "States", "状态";
        new: "New schedule", "新建计划任务";
        state: "State", "状态";
        name: "Schedule", "计划任务";
        rhythm: "When", "触发时间";
        next: "Next", "下次触发";
        makes: "Makes", "创建";
        fired: "Fired", "已触发";
        skipped: "Skipped", "已跳过";
        job_type: "Type", "类型";
        owner: "Owner", "所有者";
        filter: "Filter", "筛选";
        clear: "Clear", "清除";
        none: "No schedule yet. It makes jobs at set times; make one above, or in a terminal:", "还没有计划任务。它会在设定的时间创建作业；可在上方新建，或在终端中：";
        none_fits: "No schedule fits.", "没有符合条件的计划任务。";
        coming: "Firings to come", "即将触发";
        coming_hint: "as the clocks of {} show it", "按 {} 的时钟显示";
        coming_none: "It will not fire by itself.", "不会再自动触发。";
        here: "Your clock", "本地时间";
        there: "Clock of the zone", "时区时间";
        remark: "Worth a word", "备注";
        history: "What became of the latest firings", "最近的触发结果";
        history_none: "It has not been due yet.", "还没有到过触发时间。";
        outcome: "Outcome", "结果";
        due_at: "Due", "应触发";
        late: "Late by", "延迟";
        count: "How many", "数量";
        job: "Job", "作业";
        facts: "Facts", "基本信息";
        cron: "Cron", "Cron";
        every: "Every", "间隔";
        at: "At", "时刻";
        zone: "Time zone", "时区";
        misfire: "Missed firings", "漏掉的触发";
        overlap: "While one still runs", "上一个仍在运行时";
        jitter: "Jitter", "抖动";
        start: "Not before", "不早于";
        end: "Not after", "不晚于";
        max_runs: "Ends after", "触发几次后结束";
        pause_after: "Pauses after failures", "连续失败几次后暂停";
        failures: "Failures in a row", "连续失败";
        queue: "Queue", "队列";
        template: "Template", "模板";
        created: "Made", "创建";
        changed: "Last change", "最近变化";
        last: "Last fired for", "最近触发";
        excluded: "Not on", "排除日期";
        labels: "Label", "标签";
        payload: "Payload of its jobs", "作业载荷";
        paused_by: "Paused by {}", "由 {} 暂停";
        paused_itself: "It paused itself", "已自行暂停";
        actions: "What to do", "操作";
        pause: "Pause", "暂停";
        pause_done: "The schedule rests until it is resumed.", "计划任务已暂停，直到恢复。";
        resume: "Resume", "恢复";
        resume_hint: "It goes on with what is due from now on.", "从现在起继续按时触发。";
        resume_done: "The schedule goes on.", "计划任务已恢复。";
        stop: "End for good", "永久停止";
        stop_hint: "It can still be read, but never fires again.", "仍可查看，但不会再触发。";
        stop_done: "The schedule has ended.", "计划任务已停止。";
        trigger: "Make a job now", "立即创建作业";
        trigger_done: "This job was made now.", "已创建此作业。";
        backfill: "Make up for firings of the past", "补做过去的触发";
        backfill_hint: "No firing ever has two jobs, so it can be asked again.", "每次触发只会有一个作业，可以重复执行。";
        backfill_go: "Backfill", "补做";
        backfill_done: "{} of {} firings got the job that they lacked.", "{} 个触发已补上作业（共查看 {} 个）。";
        from: "From, as 2026-11-18T00:00:00Z", "从（形如 2026-11-18T00:00:00Z）";
        to: "Up to", "至";
        limit: "At most", "最多";
        note: "Why", "原因";
        jobs: "Its jobs", "它的作业";
        show_jobs: "show them", "查看";
    }
}

const FILTERS: [&str; 3] = ["status", "job_type", "owner"];
/// Firings that stand in the table; the drawing has more.
const FIRINGS_SHOWN: usize = 10;

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, ScheduleWords::of(frame.lang));
    let known = [&FILTERS[..], &["cursor"]].concat();
    let query = blocks::query(&ask, &known)?;
    let inside = Inside::new(&ask, &who);
    let limit = DASHBOARD_PAGE.to_string();
    let kept = blocks::kept(&query, &known);
    let path = target("/api/v1/schedules", kept.into_iter().chain([("limit", &*limit)]));
    let (found, problem) = match inside.get::<api::Page<api::schedule::Schedule>>(&path).await {
        Ok(found) => (found, None),
        Err(no) if no.kind == Kind::Wrong => {
            (api::Page::whole(Vec::new()), Some(no.message.into_owned()))
        }
        Err(no) => return Err(no),
    };
    let status = query.get("status").unwrap_or_default();
    let tab = |(name, code): (&'static str, &str)| Tab {
        name,
        href: target("/ui/schedules", [("status", code)]),
        is_here: code == status,
    };
    let states = Status::NAMES.map(|code| (state_name(lang, code), code));
    let tabs = std::iter::once((words.all, "")).chain(states).map(tab).collect();
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let is_narrow = FILTERS[1..].iter().any(|name| query.get(name).is_some());
    let cleared = target("/ui/schedules", [("status", status)]);
    let can_make = inside.may(&Method::POST, "/api/v1/schedules");
    let new = can_make.then(|| (schedule_new::PATH.to_owned(), words.new));
    let head =
        Head { title: frame.title.clone(), links: new.into_iter().collect(), ..Head::default() };
    let filters = Block::Filters {
        action: "/ui/schedules",
        inputs: vec![
            Input::hidden("status", status),
            Input::line("job_type", words.job_type, value("job_type")),
            Input::line("owner", words.owner, value("owner")),
        ],
        go: words.filter,
        clear: is_narrow.then_some((cleared, words.clear)),
    };
    let mut top = vec![Block::Head(head), Block::Tabs { name: words.views, tabs }, filters];
    let is_all = !is_narrow && status.is_empty() && query.get("cursor").is_none();
    match problem {
        Some(problem) => top.push(Block::Say(Tone::Bad, problem)),
        None if found.items.is_empty() && is_all => top.push(Block::Teach {
            text: words.none.to_owned(),
            commands: "mainspring types set hello\n\
                mainspring schedules create hello '{}' --cron '0 9 * * 1-5' --timezone Asia/Shanghai",
        }),
        None if found.items.is_empty() => {
            top.push(Block::Teach { text: words.none_fits.to_owned(), commands: "" });
        }
        None => {}
    }
    let (older, newest) =
        blocks::pages("/ui/schedules", &query, &FILTERS, found.next_cursor.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.state,
            words.name,
            words.rhythm,
            words.next,
            words.makes,
            words.fired,
            words.skipped,
        ],
        rows: found.items.iter().map(|it| row(it, lang)).collect(),
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

fn state_name(lang: Lang, code: &str) -> &'static str {
    lang.of_two(match code {
        "active" => ["active", "启用"],
        "paused" => ["paused", "已暂停"],
        "stopped" => ["stopped", "已停止"],
        _ => ["ended", "已结束"],
    })
}

/// What people call it; its rhythm if nobody gave it a name.
fn name(it: &api::schedule::Schedule) -> String {
    it.name.clone().unwrap_or_else(|| it.job_type.clone())
}

fn row(it: &api::schedule::Schedule, lang: Lang) -> Vec<Cell> {
    vec![
        blocks::state(lang, &it.status),
        title(format!("/ui/schedules/{}", it.schedule_id), name(it), &it.schedule_id),
        cell("c-what", vec![Bit::Text(it.description.clone())]),
        instant(it.next_fire_at.filter(|_| it.status == "active")),
        cell("c-named", vec![Bit::Text(it.job_type.clone())]),
        number(it.fired_count),
        number(it.skipped_count),
    ]
}

fn native_path(ask: &Ask, step: &str) -> String {
    format!("/api/v1/schedules/{}{step}", encoded(ask.param()))
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let inside = Inside::new(&ask, &who);
    let it: api::schedule::Schedule = inside.get(&native_path(&ask, "")).await?;
    let preview: api::schedule::Preview =
        inside.get(&native_path(&ask, &format!("/preview?count={PREVIEW_MAX}"))).await?;
    let history: api::schedule::ScheduleHistory =
        inside.get(&native_path(&ask, "/history")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, ScheduleWords::of(frame.lang));
    let here = format!("/ui/schedules/{}", it.schedule_id);
    let frame = frame.titled(format!("{} · {}", name(&it), it.schedule_id), here);
    let label = format!("schedule_id={}", it.schedule_id);
    let head = Head {
        title: name(&it),
        mark: Some(blocks::mark(lang, &it.status)),
        id: Some(it.schedule_id.clone()),
        lead: Some(it.description.clone()),
        links: Vec::new(),
    };
    let mut top = vec![Block::Head(head)];
    if it.status == "paused" {
        let by = match &it.paused_by {
            Some(by) => fill(words.paused_by, &[by]),
            None => words.paused_itself.to_owned(),
        };
        let note = it.pause_note.as_ref().map_or(String::new(), |note| format!(": {note}"));
        top.push(Block::Say(Tone::Plain, format!("{by}{note}")));
    }
    let items = if it.status == "active" { &preview.items[..] } else { &[] };
    let mut main = coming(items, &it.timezone, lang);
    main.push(past(&history, lang, words));
    let forms = forms(&inside, &who, &it, words);
    if !forms.is_empty() {
        main.push(Block::Forms { name: words.actions, forms });
    }
    main.push(blocks::json("payload", words.payload, it.payload.get(), lang));
    let mut facts = facts(&it, words);
    let jobs = target("/ui/jobs", [("label", label.as_str())]);
    facts.push(Fact::link(words.jobs, jobs, words.show_jobs));
    let side = vec![Block::Facts { id: "facts", name: words.facts, facts }];
    BlockPage { frame, top, main, side }.reply()
}

/// The firings to come: drawn, and the first of them in words.
pub(super) fn coming(items: &[api::schedule::PreviewItem], zone: &str, lang: Lang) -> Vec<Block> {
    let words = ScheduleWords::of(lang);
    if items.is_empty() {
        let text = words.coming_none.to_owned();
        let (id, name) = ("coming", words.coming);
        return vec![Block::Text {
            id,
            name,
            class: "",
            bits: vec![Bit::Soft(text)],
            text: String::new(),
        }];
    }
    let row = |item: &api::schedule::PreviewItem| {
        let there = item.local_time.replacen('T', " ", 1);
        vec![
            instant(Some(item.fire_at)),
            cell("c-named", vec![Bit::Text(there)]),
            text(item.note.as_deref().unwrap_or_default()),
        ]
    };
    vec![
        Block::Drawing {
            id: "coming",
            name: words.coming,
            hint: fill(words.coming_hint, &[zone]),
            html: strip::days(items, words.coming, lang),
        },
        Block::Table(Table {
            id: "firings",
            name: Some(words.next),
            heads: vec![words.here, words.there, words.remark],
            rows: items.iter().take(FIRINGS_SHOWN).map(row).collect(),
            ..Table::default()
        }),
    ]
}

fn past(
    history: &api::schedule::ScheduleHistory,
    lang: Lang,
    words: &'static ScheduleWords,
) -> Block {
    let row = |it: &api::schedule::ScheduleOutcome| {
        let late = it.late_ms.map(Duration::from_millis).map(parts::span).unwrap_or_default();
        let late = Some(late).filter(|late| !late.is_empty()).map(Bit::Text);
        let due = match it.until == it.fire_at {
            true => vec![when(it.fire_at)],
            false => vec![when(it.fire_at), Bit::Text("–".to_owned()), when(it.until)],
        };
        let job = it
            .job_id
            .as_ref()
            .map(|job| Bit::Link { href: format!("/ui/jobs/{}", encoded(job)), text: job.clone() });
        vec![
            blocks::state(lang, &it.outcome),
            cell("c-when", due),
            cell("num", late.into_iter().collect()),
            number(it.count),
            cell("c-what", it.reason.clone().map(Bit::Soft).into_iter().chain(job).collect()),
        ]
    };
    Block::Table(Table {
        id: "history",
        name: Some(words.history),
        hint: history.items.is_empty().then(|| words.history_none.to_owned()),
        heads: vec![words.outcome, words.due_at, words.late, words.count, words.job],
        rows: history.items.iter().map(row).collect(),
        ..Table::default()
    })
}

fn facts(it: &api::schedule::Schedule, words: &'static ScheduleWords) -> Vec<Fact> {
    let seconds = |secs: u64| parts::span(Duration::from_secs(secs));
    let mut facts = Vec::new();
    let types = format!("/ui/types/{}", encoded(&it.job_type));
    facts.push(Fact::link(words.job_type, types, &it.job_type));
    facts.extend(it.cron.as_ref().map(|cron| Fact::new(words.cron, vec![Bit::Code(cron.clone())])));
    facts.extend(it.interval_seconds.map(|secs| Fact::text(words.every, seconds(secs))));
    facts.extend(it.at.map(|at| Fact::at(words.at, at)));
    facts.push(Fact::text(words.zone, &it.timezone));
    facts.push(Fact::text(words.misfire, &it.misfire));
    facts.push(Fact::text(words.overlap, &it.overlap));
    if it.jitter_seconds > 0 {
        facts.push(Fact::text(words.jitter, seconds(it.jitter_seconds.into())));
    }
    facts.extend(it.start_at.map(|at| Fact::at(words.start, at)));
    facts.extend(it.end_at.map(|at| Fact::at(words.end, at)));
    facts.extend(it.max_runs.map(|most| Fact::text(words.max_runs, most)));
    for range in &it.exclude {
        let dates = match range.from == range.to {
            true => range.from.clone(),
            false => format!("{} – {}", range.from, range.to),
        };
        facts.push(Fact::text(words.excluded, dates));
    }
    facts.extend(it.pause_after_failures.map(|most| Fact::text(words.pause_after, most)));
    if it.failures_in_a_row > 0 {
        facts.push(Fact::text(words.failures, it.failures_in_a_row));
    }
    facts.extend(it.queue.as_ref().map(|queue| Fact::text(words.queue, queue)));
    for (name, value) in &it.labels {
        facts.push(Fact::text(words.labels, format!("{name}={value}")));
    }
    facts.push(Fact::text(words.owner, &it.user_id));
    facts.extend(it.template.as_ref().map(|name| Fact::text(words.template, name)));
    facts.push(Fact::text(words.fired, parts::count(it.fired_count)));
    facts.push(Fact::text(words.skipped, parts::count(it.skipped_count)));
    facts.extend(it.last_fire_at.map(|at| Fact::at(words.last, at)));
    facts.push(Fact::at(words.created, it.created_at));
    facts.push(Fact::at(words.changed, it.updated_at));
    facts
}

/// Whether the thing is somebody's to steer, by the names that native tells.
pub(super) fn is_steered(who: &Principal, tenant: &str, user: &str) -> bool {
    let names = mainspring_kernel::TenantId::new(tenant).ok();
    let names = names.zip(mainspring_kernel::UserId::new(user).ok());
    names.is_some_and(|(tenant, user)| who.can_steer(&tenant, &user))
}

fn forms(
    inside: &Inside<'_>,
    who: &Principal,
    it: &api::schedule::Schedule,
    words: &'static ScheduleWords,
) -> Vec<Form> {
    let is_over = matches!(it.status.as_str(), "stopped" | "ended");
    let may = |step: &str| {
        is_steered(who, &it.tenant_id, &it.user_id)
            && inside.may(&Method::POST, &format!("/api/v1/schedules/x/{step}"))
    };
    let form = |step: &'static str, button| {
        Form::new(step, format!("/ui/schedules/{}/{step}", it.schedule_id), button)
    };
    let mut forms = Vec::new();
    if it.status == "paused" && may("resume") {
        forms.push(form("resume", words.resume).hint(words.resume_hint).look(Look::Main));
    }
    if !is_over && may("trigger") {
        forms.push(form("trigger", words.trigger));
    }
    if it.status == "active" && may("pause") {
        forms.push(form("pause", words.pause).with(Input::line("note", words.note, "")));
    }
    if may("backfill") && it.kind != "at" {
        let fill_in = form("backfill", words.backfill_go).named(words.backfill);
        forms.push(
            fill_in
                .hint(words.backfill_hint)
                .with(Input::line("from", words.from, "").needed())
                .with(Input::line("to", words.to, "").needed())
                .with(Input::line("limit", words.limit, "100")),
        );
    }
    if !is_over && may("stop") {
        forms.push(form("stop", words.stop).hint(words.stop_hint).look(Look::Danger));
    }
    forms
}

fn told<T>(ask: &Ask, done: Result<T, Refusal>, text: &str) -> Result<Reply, Refusal> {
    let back = format!("/ui/schedules/{}", ask.param());
    shell::told(ask, &back, done.map(|_| text.to_owned()))
}

async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = ScheduleWords::of(Lang::of(&ask.headers));
    let note = Fields::of(&ask)?.filled("note").map(str::to_owned);
    let wish = api::schedule::PauseSchedule { note };
    let path = native_path(&ask, "/pause");
    let done = Inside::new(&ask, &who).post::<api::schedule::Schedule>(&path, &wish).await;
    told(&ask, done, words.pause_done)
}

async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = ScheduleWords::of(Lang::of(&ask.headers));
    let path = native_path(&ask, "/resume");
    let done = Inside::new(&ask, &who).poke::<api::schedule::Schedule>(&path).await;
    told(&ask, done, words.resume_done)
}

async fn stop(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = ScheduleWords::of(Lang::of(&ask.headers));
    let path = native_path(&ask, "/stop");
    let done = Inside::new(&ask, &who).poke::<api::schedule::Schedule>(&path).await;
    told(&ask, done, words.stop_done)
}

async fn trigger(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = ScheduleWords::of(Lang::of(&ask.headers));
    let path = native_path(&ask, "/trigger");
    match Inside::new(&ask, &who).poke::<api::schedule::Triggered>(&path).await {
        Ok(made) => {
            let back = format!("/ui/jobs/{}", made.job_id);
            shell::told(&ask, &back, Ok(words.trigger_done.to_owned()))
        }
        Err(no) => told::<()>(&ask, Err(no), ""),
    }
}

async fn backfill(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = ScheduleWords::of(Lang::of(&ask.headers));
    let fields = Fields::of(&ask)?;
    let wish = match wanted(&fields) {
        Ok(wish) => wish,
        Err(no) => return told::<()>(&ask, Err(no), ""),
    };
    let path = native_path(&ask, "/backfill");
    let done = Inside::new(&ask, &who).post::<api::schedule::Backfilled>(&path, &wish).await;
    let text = done.as_ref().map_or(String::new(), |done| {
        let numbers = [done.fired.to_string(), done.items.len().to_string()];
        fill(words.backfill_done, &[&numbers[0], &numbers[1]])
    });
    told(&ask, done, &text)
}

fn wanted(fields: &Fields) -> Result<api::schedule::Backfill, Refusal> {
    let limit = fields
        .filled("limit")
        .map(|text| text.parse::<u32>().map_err(|_| refusal::invalid("limit", "is not a number")));
    Ok(api::schedule::Backfill {
        from: time(fields, "from")?.ok_or_else(|| refusal::invalid("from", "is missing"))?,
        to: time(fields, "to")?.ok_or_else(|| refusal::invalid("to", "is missing"))?,
        limit: limit.transpose()?,
    })
}

/// An instant of a form, if there is one.
pub(super) fn time(fields: &Fields, name: &'static str) -> Result<Option<Time>, Refusal> {
    let parsed = fields.filled(name).map(|text| text.parse::<Time>()).transpose();
    parsed.map_err(|why| refusal::invalid(name, why))
}
