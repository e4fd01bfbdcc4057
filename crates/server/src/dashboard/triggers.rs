//! Triggers: the list, and one of them with its condition, what it knows, why it has not fired,
//! what was decided about it lately, and what may be done.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Fact, Form, Head, Input, Look, Tab, Table, Tone, cell,
    instant, number, target, title, when,
};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, fill, words};
use super::{Group, Page, making, parts, schedules};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{Kind, Refusal};
use crate::route::table::{ANYONE, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Principal;
use std::time::Duration;

pub(super) static PAGE: Page = Page {
    path: "/ui/triggers",
    name: ["Triggers", "触发器"],
    group: Group::Time,
    roles: ANYONE,
    routes,
    icon: "M9 2L4 9h4l-1 5 5-7H8z",
};

fn routes() -> Vec<Route> {
    let form = |path, rule| post(path, rule, Takes::Form, Doc::hidden());
    vec![
        get("/ui/triggers", page!(ANYONE, list), Doc::hidden()),
        get("/ui/triggers/{trigger_id}", page!(ANYONE, show), Doc::hidden()),
        form("/ui/triggers/{trigger_id}/pause", page!(ANYONE, pause)),
        form("/ui/triggers/{trigger_id}/resume", page!(ANYONE, resume)),
        form("/ui/triggers/{trigger_id}/dry-run", page!(ANYONE, dry_run)),
    ]
}

words! {
    TriggerWords {
        all: "all", "全部";
        active: "active", "启用";
        paused: "paused", "已暂停";
        views: "States", "状态";
        new: "New trigger", "新建触发器";
        state: "State", "状态";
        trigger: "Trigger", "触发器";
        kind: "Kind", "方式";
        any: "any", "任意";
        recurring: "recurring", "周期";
        scheduled: "scheduled", "定时";
        conditional: "conditional", "条件";
        prompt: "What its runs are to do", "运行内容";
        fired: "Fired", "已触发";
        last: "Last fired", "最近触发";
        next: "Next by the clock", "按时钟下次";
        filter: "Filter", "筛选";
        none: "No trigger yet. It makes agent runs every so often, once, or when a condition holds:", "还没有触发器。它会按周期、定时或在条件成立时创建 agent 运行：";
        none_fits: "No trigger fits.", "没有符合条件的触发器。";
        condition: "Condition", "条件";
        now: "If it were its turn now", "假如现在轮到它";
        would: "it would fire", "会触发";
        would_not: "it would not fire", "不会触发";
        leaves: "What the condition comes to, part by part", "条件各部分的结果";
        leaf: "Part", "部分";
        holds: "Holds", "是否成立";
        why: "Why", "原因";
        log: "What was decided lately", "最近的判断记录";
        log_none: "Nothing was decided yet.", "还没有判断记录。";
        when: "When", "时间";
        outcome: "Outcome", "结果";
        run: "Run", "运行";
        facts: "Facts", "基本信息";
        every: "Every", "间隔";
        at: "At", "时刻";
        cooldown: "Cooldown", "冷却";
        cooldown_until: "Cools down until", "冷却至";
        priority: "Priority", "优先级";
        timeout: "Timeout", "超时";
        owner: "Owner", "所有者";
        trace: "Trace", "追踪";
        parent: "Parent", "父任务";
        running: "Running since", "运行开始";
        last_status: "Last run", "上次运行";
        last_error: "Its error", "错误";
        last_took: "Took", "用时";
        last_eval: "Last looked at", "上次判断";
        created: "Made", "创建";
        changed: "Last change", "最近变化";
        paused_by: "Paused by {}", "由 {} 暂停";
        paused_itself: "It paused itself", "已自行暂停";
        actions: "What to do", "操作";
        pause: "Pause", "暂停";
        pause_done: "The trigger rests until it is resumed.", "触发器已暂停，直到恢复。";
        resume: "Resume", "恢复";
        resume_done: "The trigger goes on.", "触发器已恢复。";
        dry_run: "Dry run", "试运行";
        dry_run_hint: "Looks at it as if it were its turn, and changes nothing.", "像轮到它一样判断一次，不做任何改变。";
        dry_run_said: "Dry run: {}", "试运行：{}";
        note: "Why", "原因";
    }
}

const FILTERS: [&str; 2] = ["status", "type"];

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, TriggerWords::of(frame.lang));
    let known = [&FILTERS[..], &["cursor"]].concat();
    let query = blocks::query(&ask, &known)?;
    let limit = DASHBOARD_PAGE.to_string();
    let kept = blocks::kept(&query, &known);
    let path = target("/api/v1/triggers", kept.into_iter().chain([("limit", &*limit)]));
    let inside = Inside::new(&ask, &who);
    let asked = inside.get(&path).await;
    let (found, problem): (api::Page<api::trigger::Trigger>, _) = match asked {
        Ok(found) => (found, None),
        Err(no) if no.kind == Kind::Wrong => {
            (api::Page::whole(Vec::new()), Some(no.message.into_owned()))
        }
        Err(no) => return Err(no),
    };
    let status = query.get("status").unwrap_or_default();
    let kind = query.get("type").unwrap_or_default();
    let tab = |(name, code): (&'static str, &str)| Tab {
        name,
        href: target("/ui/triggers", [("status", code), ("type", kind)]),
        is_here: code == status,
    };
    let tabs = [(words.all, ""), (words.active, "active"), (words.paused, "paused")];
    let kinds = [
        ("", words.any),
        ("recurring", words.recurring),
        ("scheduled", words.scheduled),
        ("conditional", words.conditional),
    ];
    let kinds = kinds.map(|(code, name)| (code.to_owned(), name.to_owned())).into();
    let filters = Block::Filters {
        action: "/ui/triggers",
        inputs: vec![
            Input::hidden("status", status),
            Input::choice("type", words.kind, kind, kinds),
        ],
        go: words.filter,
        clear: None,
    };
    let may_make = inside.may(&Method::POST, "/api/v1/triggers");
    let new = may_make.then(|| (making::NEW_TRIGGER.to_owned(), words.new));
    let links = new.into_iter().collect();
    let head = Head { title: frame.title.clone(), links, ..Head::default() };
    let tabs = Block::Tabs { name: words.views, tabs: tabs.map(tab).into() };
    let mut top = vec![Block::Head(head), tabs, filters];
    let is_all = status.is_empty() && kind.is_empty() && query.get("cursor").is_none();
    match problem {
        Some(problem) => top.push(Block::Say(Tone::Bad, problem)),
        None if found.items.is_empty() && is_all => top.push(Block::Teach {
            text: words.none.to_owned(),
            commands: "mainspring triggers create 'summarise what changed' --every 1h",
        }),
        None if found.items.is_empty() => {
            top.push(Block::Teach { text: words.none_fits.to_owned(), commands: "" });
        }
        None => {}
    }
    let (older, newest) =
        blocks::pages("/ui/triggers", &query, &FILTERS, found.next_cursor.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.state,
            words.trigger,
            words.kind,
            words.prompt,
            words.fired,
            words.last,
            words.next,
        ],
        rows: found.items.iter().map(|it| row(it, lang)).collect(),
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

fn here(id: &str) -> String {
    format!("/ui/triggers/{}", encoded(id))
}

fn row(it: &api::trigger::Trigger, lang: Lang) -> Vec<Cell> {
    vec![
        blocks::state(lang, &it.status),
        title(here(&it.id), &it.id, ""),
        cell("", vec![Bit::Mark(blocks::mark(lang, &it.kind))]),
        cell("c-what", vec![Bit::Clip(it.prompt.chars().take(200).collect())]),
        number(it.fired_count.into()),
        instant(it.state.last_triggered_at),
        instant(it.state.next_run_at),
    ]
}

fn native_path(ask: &Ask, step: &str) -> String {
    format!("/api/v1/triggers/{}{step}", encoded(ask.param()))
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let inside = Inside::new(&ask, &who);
    let it: api::trigger::Trigger = inside.get(&native_path(&ask, "")).await?;
    let look: api::trigger::TriggerExplanation = inside.get(&native_path(&ask, "/explain")).await?;
    let log: api::trigger::TriggerEvaluations =
        inside.get(&native_path(&ask, "/evaluations")).await?;
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, TriggerWords::of(frame.lang));
    let frame = frame.titled(it.id.clone(), here(&it.id));
    let mut top = vec![Block::Head(Head {
        title: it.id.clone(),
        mark: Some(blocks::mark(lang, &it.status)),
        lead: Some(it.prompt.chars().take(2_000).collect()),
        ..Head::default()
    })];
    if let Some(pause) = &it.paused {
        let by = match &pause.by {
            Some(by) => fill(words.paused_by, &[by]),
            None => words.paused_itself.to_owned(),
        };
        let note = pause.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
        top.push(Block::Say(Tone::Plain, format!("{by}{note}")));
    }
    let verdict = if look.would_fire { words.would } else { words.would_not };
    let mut main = vec![Block::Text {
        id: "look",
        name: words.now,
        class: "why",
        bits: vec![
            Bit::Mark(blocks::mark(lang, &look.outcome)),
            Bit::Strong(verdict.to_owned()),
            Bit::Text(look.reason.clone()),
        ],
        text: String::new(),
    }];
    if !look.leaves.is_empty() {
        let row = |leaf: &api::trigger::TriggerLeaf| {
            let why = Bit::Soft(leaf.reason.clone());
            vec![
                blocks::state(lang, &leaf.truth),
                cell("c-job", vec![Bit::Code(leaf.kind.clone()), Bit::Text(leaf.about.clone())]),
                cell("c-what", std::iter::once(why).chain(leaf.at.map(when)).collect()),
            ]
        };
        main.push(Block::Table(Table {
            id: "leaves",
            name: Some(words.leaves),
            heads: vec![words.holds, words.leaf, words.why],
            rows: look.leaves.iter().map(row).collect(),
            ..Table::default()
        }));
    }
    main.push(evaluations(&log, lang, words));
    let forms = forms(&inside, &who, &it, words);
    if !forms.is_empty() {
        main.push(Block::Forms { name: words.actions, forms });
    }
    if let Some(condition) = &it.condition {
        main.push(blocks::json("condition", words.condition, &condition.to_string(), lang));
    }
    let facts = facts(&it, &look, words);
    let side = vec![Block::Facts { id: "facts", name: words.facts, facts }];
    BlockPage { frame, top, main, side }.reply()
}

fn evaluations(
    log: &api::trigger::TriggerEvaluations,
    lang: Lang,
    words: &'static TriggerWords,
) -> Block {
    let row = |it: &api::trigger::TriggerEvaluation| {
        let job = it
            .job_id
            .as_ref()
            .map(|job| Bit::Link { href: format!("/ui/jobs/{}", encoded(job)), text: job.clone() });
        let leaves = it.leaves.iter().map(|leaf| {
            let truth = blocks::mark(lang, &leaf.truth).text;
            Bit::Code(format!("{} {}: {truth}", leaf.kind, leaf.about))
        });
        let why = Bit::Soft(it.reason.clone());
        vec![
            blocks::state(lang, &it.outcome),
            instant(Some(it.at)),
            cell("c-what", std::iter::once(why).chain(leaves).chain(job).collect()),
        ]
    };
    Block::Table(Table {
        id: "log",
        name: Some(words.log),
        hint: log.items.is_empty().then(|| words.log_none.to_owned()),
        heads: vec![words.outcome, words.when, words.why],
        rows: log.items.iter().map(row).collect(),
        ..Table::default()
    })
}

fn facts(
    it: &api::trigger::Trigger,
    look: &api::trigger::TriggerExplanation,
    words: &'static TriggerWords,
) -> Vec<Fact> {
    let seconds = |secs: u64| parts::span(Duration::from_secs(secs));
    let mut facts = vec![Fact::text(words.kind, &it.kind)];
    if let Some(rhythm) = &it.schedule {
        facts.extend(rhythm.interval.map(|secs| Fact::text(words.every, seconds(secs))));
        facts.extend(rhythm.run_at.map(|at| Fact::at(words.at, at)));
    }
    facts.extend(look.next_run_at.map(|at| Fact::at(words.next, at)));
    if it.cooldown > 0 {
        facts.push(Fact::text(words.cooldown, seconds(it.cooldown)));
    }
    facts.extend(look.cooldown_until.map(|at| Fact::at(words.cooldown_until, at)));
    facts.push(Fact::text(words.fired, it.fired_count));
    facts.extend(it.state.last_triggered_at.map(|at| Fact::at(words.last, at)));
    facts.extend(it.state.last_eval_at.map(|at| Fact::at(words.last_eval, at)));
    facts.extend(look.running_at.map(|at| Fact::at(words.running, at)));
    if let Some(job) = &look.running_job_id {
        facts.push(Fact::link(words.run, format!("/ui/jobs/{}", encoded(job)), job));
    }
    facts.extend(it.state.last_status.as_ref().map(|last| Fact::text(words.last_status, last)));
    facts.extend(it.state.last_error.as_ref().map(|last| Fact::text(words.last_error, last)));
    let took = it.state.last_duration_ms.map(Duration::from_millis).map(parts::span);
    facts.extend(took.map(|took| Fact::text(words.last_took, took)));
    facts.push(Fact::text(words.priority, it.priority));
    facts.extend(it.timeout.map(|secs| Fact::text(words.timeout, seconds(secs.into()))));
    facts.push(Fact::text(words.owner, &it.user_id));
    facts.extend(it.trace_id.as_ref().map(|trace| Fact::text(words.trace, trace)));
    facts.extend(it.parent_task_id.as_ref().map(|parent| Fact::text(words.parent, parent)));
    facts.push(Fact::at(words.created, it.created_at));
    facts.push(Fact::at(words.changed, it.updated_at));
    facts
}

fn forms(
    inside: &Inside<'_>,
    who: &Principal,
    it: &api::trigger::Trigger,
    words: &'static TriggerWords,
) -> Vec<Form> {
    // A trigger tells whose it is, not of which tenant: what is seen is of one's own, or one is an
    // admin.
    let is_steered = schedules::is_steered(who, who.tenant.as_str(), &it.user_id);
    let may =
        |step: &str| is_steered && inside.may(&Method::POST, &format!("/api/v1/triggers/x/{step}"));
    let form =
        |step: &'static str, button| Form::new(step, format!("{}/{step}", here(&it.id)), button);
    let mut forms = Vec::new();
    if it.status == "paused" && may("resume") {
        forms.push(form("resume", words.resume).look(Look::Main));
    }
    if may("dry-run") {
        forms.push(form("dry-run", words.dry_run).hint(words.dry_run_hint));
    }
    if it.status == "active" && may("pause") {
        forms.push(form("pause", words.pause).with(Input::line("note", words.note, "")));
    }
    forms
}

fn told<T>(ask: &Ask, done: Result<T, Refusal>, text: &str) -> Result<Reply, Refusal> {
    shell::told(ask, &here(ask.param()), done.map(|_| text.to_owned()))
}

async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = TriggerWords::of(Lang::of(&ask.headers));
    let note = Fields::of(&ask)?.filled("note").map(str::to_owned);
    let wish = api::trigger::PauseTrigger { note };
    let path = native_path(&ask, "/pause");
    let done = Inside::new(&ask, &who).post::<api::trigger::Trigger>(&path, &wish).await;
    told(&ask, done, words.pause_done)
}

async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = TriggerWords::of(Lang::of(&ask.headers));
    let path = native_path(&ask, "/resume");
    let done = Inside::new(&ask, &who).poke::<api::trigger::Trigger>(&path).await;
    told(&ask, done, words.resume_done)
}

async fn dry_run(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = TriggerWords::of(Lang::of(&ask.headers));
    let path = native_path(&ask, "/dry-run");
    let done = Inside::new(&ask, &who).poke::<api::trigger::TriggerExplanation>(&path).await;
    let text = done.as_ref().map_or(String::new(), |look| {
        let verdict = if look.would_fire { words.would } else { words.would_not };
        fill(words.dry_run_said, &[&format!("{verdict}: {}", look.reason)])
    });
    told(&ask, done, &text)
}
