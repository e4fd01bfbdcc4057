//! Making a schedule: a form, when it would fire, and only then the button that makes it.

use super::blocks::{Block, BlockPage, Form, Head, Input, Look, Tone};
use super::form::Fields;
use super::inside::Inside;
use super::schedules::{self, PAGE};
use super::shell::{self, Frame};
use super::words::{Lang, words};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::PREVIEW_MAX;
use crate::openapi::Doc;
use crate::refusal::{self, Kind, Refusal};
use crate::route::table::{ANYONE, SUBMITTERS, get, page, post};
use crate::route::{Route, Takes};
use mainspring_api as api;
use mainspring_kernel::Principal;
use serde_json::value::RawValue;

/// Where the form is. A word of its own: a schedule may not be called so.
pub(super) const PATH: &str = "/ui/new-schedule";

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(PATH, page!(SUBMITTERS, empty), Doc::hidden()),
        post(PATH, page!(SUBMITTERS, preview), Takes::Form, Doc::hidden()),
        post("/ui/schedules", page!(ANYONE, create), Takes::Form, Doc::hidden()),
    ]
}

words! {
    NewSchedule {
        title: "New schedule", "新建计划任务";
        lead: "Say when, look at the firings, then save.", "填写时间，查看触发预览，再保存。";
        what: "What and when", "内容与时间";
        kind: "Rhythm", "方式";
        cron: "Cron pattern", "Cron 表达式";
        cron_hint: "minute hour day month weekday, such as 0 9 * * 1-5", "分 时 日 月 周，例如 0 9 * * 1-5";
        zone: "Time zone", "时区";
        zone_hint: "such as Asia/Shanghai; UTC if empty", "例如 Asia/Shanghai；留空为 UTC";
        every: "Every so many seconds", "间隔秒数";
        at: "Once, at", "一次，于";
        at_hint: "such as 2026-12-24T18:00:00Z", "例如 2026-12-24T18:00:00Z";
        by_cron: "by a cron pattern", "按 Cron 表达式";
        by_interval: "every so often", "按固定间隔";
        by_once: "once", "只一次";
        name: "Name", "名称";
        job_type: "Type of its jobs", "作业类型";
        payload: "Payload of its jobs, as JSON", "作业载荷（JSON）";
        misfire: "Firings that were missed", "漏掉的触发";
        misfire_one: "one job for all of them", "合并为一个作业";
        misfire_none: "no job", "不补";
        misfire_all: "a job for each", "逐个补上";
        overlap: "While one still runs", "上一个仍在运行时";
        overlap_allow: "start another", "同时运行";
        overlap_skip: "skip it", "跳过";
        overlap_queue: "queue one", "排一个";
        overlap_cancel: "cancel the one that runs", "取消正在运行的";
        preview: "Look when it fires", "预览触发时间";
        save: "Save the schedule", "保存计划任务";
        ready: "Nothing is saved yet.", "尚未保存。";
        saved: "The schedule is made.", "计划任务已创建。";
    }
}

/// The fields that are carried from the preview to the button.
const FIELDS: [&str; 10] = [
    "kind",
    "cron",
    "timezone",
    "interval_seconds",
    "at",
    "name",
    "job_type",
    "payload",
    "misfire",
    "overlap",
];

/// What a form asks for, as native takes it: only the fields of its rhythm.
fn wish(fields: &Fields) -> Result<api::schedule::SetSchedule, Refusal> {
    let text = |name: &str| fields.filled(name).map(str::to_owned);
    let kind = text("kind").unwrap_or_else(|| "cron".to_owned());
    let mut wish =
        api::schedule::SetSchedule::new(text("job_type").unwrap_or_default(), kind.clone());
    match kind.as_str() {
        "cron" => wish.cron = Some(text("cron").unwrap_or_default()),
        "interval" => {
            let seconds = text("interval_seconds").and_then(|text| text.parse().ok());
            let bad = || refusal::invalid("interval_seconds", "is not a number");
            wish.interval_seconds = Some(seconds.ok_or_else(bad)?);
        }
        "at" => wish.at = schedules::time(fields, "at")?,
        _ => {}
    }
    wish.timezone = text("timezone");
    wish.name = text("name");
    wish.misfire = text("misfire");
    wish.overlap = text("overlap");
    let payload = text("payload").map(RawValue::from_string).transpose();
    wish.payload = payload.map_err(|_| refusal::invalid("payload", "is not JSON"))?;
    Ok(wish)
}

async fn empty(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    shown(&ask, &who, &Fields::default(), None).await
}

async fn preview(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let path = format!("/api/v1/schedules/preview?count={PREVIEW_MAX}");
    let seen = match wish(&fields) {
        Ok(wish) => Inside::new(&ask, &who).post::<api::schedule::Preview>(&path, &wish).await,
        Err(no) => Err(no),
    };
    shown(&ask, &who, &fields, Some(seen)).await
}

async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let made = match wish(&fields) {
        Ok(wish) => {
            let inside = Inside::new(&ask, &who);
            inside.post::<api::schedule::Schedule>("/api/v1/schedules", &wish).await
        }
        Err(no) => Err(no),
    };
    match made {
        Ok(made) => {
            let saved = NewSchedule::of(Lang::of(&ask.headers)).saved.to_owned();
            shell::told(&ask, &format!("/ui/schedules/{}", made.schedule_id), Ok(saved))
        }
        Err(no) => shown(&ask, &who, &fields, Some(Err(no))).await,
    }
}

/// The form as it was filled in, and what came of it.
async fn shown(
    ask: &Ask,
    who: &Principal,
    fields: &Fields,
    seen: Option<Result<api::schedule::Preview, Refusal>>,
) -> Result<Reply, Refusal> {
    let lang = Lang::of(&ask.headers);
    let words = NewSchedule::of(lang);
    let frame = Frame::new(ask, who, &PAGE).titled(words.title, PATH.to_owned());
    let title = words.title.to_owned();
    let lead = Some(words.lead.to_owned());
    let mut main = vec![Block::Head(Head { title, lead, ..Head::default() })];
    let zone = fields.filled("timezone").unwrap_or("UTC");
    let mut after = Vec::new();
    match seen {
        Some(Ok(preview)) => {
            main.push(Block::Say(Tone::Plain, format!("{} {}", preview.description, words.ready)));
            after.extend(schedules::coming(&preview.items, zone, lang));
            let save = Form::new("save", "/ui/schedules", words.save).look(Look::Main);
            let carried =
                FIELDS.iter().filter_map(|name| Some(Input::hidden(name, fields.get(name)?)));
            let save = carried.fold(save, Form::with);
            main.push(Block::Forms { name: words.save, forms: vec![save] });
        }
        Some(Err(no)) if matches!(no.kind, Kind::Wrong | Kind::Conflict | Kind::Unknown) => {
            main.push(Block::Say(Tone::Bad, format!("{} ({})", no.message, no.code)));
        }
        Some(Err(no)) => return Err(no),
        None => {}
    }
    main.push(Block::Forms { name: words.what, forms: vec![form(ask, who, fields, words).await?] });
    main.extend(after);
    BlockPage::plain(frame, main).reply()
}

async fn form(
    ask: &Ask,
    who: &Principal,
    fields: &Fields,
    words: &'static NewSchedule,
) -> Result<Form, Refusal> {
    let value = |name: &str| fields.get(name).unwrap_or_default().to_owned();
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(code, name)| ((*code).to_owned(), (*name).to_owned())).collect()
    };
    let types: api::Page<api::registry::Type> = Inside::new(ask, who).get("/api/v1/types").await?;
    let types: Vec<(String, String)> = types
        .items
        .into_iter()
        .filter(|it| it.schedulable)
        .map(|it| (it.job_type.clone(), it.job_type))
        .collect();
    let job_type = match types.len() {
        1..=200 => Input::choice("job_type", words.job_type, value("job_type"), types),
        _ => Input::line("job_type", words.job_type, value("job_type")).needed(),
    };
    let kinds = [("cron", words.by_cron), ("interval", words.by_interval), ("at", words.by_once)];
    let misfire =
        [("coalesce", words.misfire_one), ("skip", words.misfire_none), ("all", words.misfire_all)];
    let overlap = [
        ("allow", words.overlap_allow),
        ("skip", words.overlap_skip),
        ("queue_one", words.overlap_queue),
        ("cancel_running", words.overlap_cancel),
    ];
    let payload = match fields.get("payload") {
        Some(text) => text.replace("\r\n", "\n"),
        None => "{}".to_owned(),
    };
    Ok(Form::new("schedule", PATH, words.preview)
        .look(Look::Main)
        .with(Input::line("name", words.name, value("name")))
        .with(job_type)
        .with(Input::choice("kind", words.kind, value("kind"), pairs(&kinds)))
        .with(Input::line("cron", words.cron, value("cron")).hint(words.cron_hint))
        .with(Input::line("timezone", words.zone, value("timezone")).hint(words.zone_hint))
        .with(Input::line("interval_seconds", words.every, value("interval_seconds")))
        .with(Input::line("at", words.at, value("at")).hint(words.at_hint))
        .with(Input::choice("misfire", words.misfire, value("misfire"), pairs(&misfire)))
        .with(Input::choice("overlap", words.overlap, value("overlap"), pairs(&overlap)))
        .with(Input::area("payload", words.payload, payload)))
}
