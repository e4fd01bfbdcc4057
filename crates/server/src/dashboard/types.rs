//! Types of jobs with what is promised for each, queues with who paused them, and workers: what
//! jobs are made of and where they run.

use super::blocks::{
    self, Bit, Block, BlockPage, Cell, Fact, Head, Table, cell, instant, number, target, text,
    title, when,
};
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, words};
use super::{Group, Page, making, parts};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::table::{ADMINS, ANYONE, LOOKERS, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Principal;
use std::time::Duration;

pub(super) static TYPES: Page = Page {
    path: "/ui/types",
    name: ["Types", "类型"],
    group: Group::House,
    roles: ANYONE,
    routes: type_routes,
    icon: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
};

pub(super) static QUEUES: Page = Page {
    path: "/ui/queues",
    name: ["Queues", "队列"],
    group: Group::House,
    roles: ADMINS,
    routes: queue_routes,
    icon: "M2 4h12M2 8h12M2 12h7",
};

pub(super) static WORKERS: Page = Page {
    path: "/ui/workers",
    name: ["Workers", "Worker"],
    group: Group::House,
    roles: LOOKERS,
    routes: worker_routes,
    icon: "M8 8a3 3 0 100-6 3 3 0 000 6zM2 14c0-3 3-4 6-4s6 1 6 4",
};

fn type_routes() -> Vec<Route> {
    vec![
        get("/ui/types", page!(ANYONE, types), Doc::hidden()),
        get("/ui/types/{name}", page!(ANYONE, one_type), Doc::hidden()),
    ]
}

fn queue_routes() -> Vec<Route> {
    vec![
        get("/ui/queues", page!(ADMINS, queues), Doc::hidden()),
        post("/ui/queues/{name}/pause", page!(ANYONE, pause), Takes::Form, Doc::hidden()),
        post("/ui/queues/{name}/resume", page!(ANYONE, resume), Takes::Form, Doc::hidden()),
    ]
}

fn worker_routes() -> Vec<Route> {
    vec![get("/ui/workers", page!(LOOKERS, workers), Doc::hidden())]
}

words! {
    HouseWords {
        type_name: "Type", "类型";
        domain: "Domain", "领域";
        queue: "Queue", "队列";
        priority: "Priority", "优先级";
        timeout: "Timeout", "超时";
        tries: "Tries", "次数";
        limit: "At a time", "并发";
        no_limit: "no limit", "不限";
        executor: "Executed", "执行方式";
        as_deployed: "as the deployment says", "按部署设置";
        backoff: "Delay of retries", "重试延迟";
        schedulable: "Schedules may make them", "可由计划任务创建";
        yes: "yes", "是";
        no: "no", "否";
        promised: "What is promised", "约定";
        start_within: "Starts within", "应在此内开始";
        finish_within: "Ends within", "应在此内结束";
        nothing: "not promised", "未承诺";
        sla: "Starts / ends within", "开始／结束期限";
        see: "See also", "另见";
        jobs: "Its jobs", "它的作业";
        failed: "Its failed jobs", "失败的作业";
        dead: "Its dead letters", "它的死信";
        schedules: "Its schedules", "它的计划任务";
        command: "Command", "命令";
        url: "URL", "URL";
        no_types: "No type is registered yet. A job needs one:", "还没有注册类型。作业需要类型：";
        new: "New type", "新建类型";
        edit: "Change it", "修改";
        state: "State", "状态";
        ready: "Ready", "就绪";
        pending: "Not due yet", "未到期";
        running: "Running", "运行中";
        order: "Order", "顺序";
        aged: "priority first, waiting counts", "优先级优先，等待计入";
        due: "by due time", "按到期时间";
        who: "By", "操作人";
        pause: "Pause", "暂停";
        resume: "Resume", "恢复";
        what: "Action", "操作";
        pause_done: "The queue hands out nothing until it is resumed.", "队列已暂停派发，直到恢复。";
        resume_done: "The queue hands out jobs again.", "队列已恢复派发。";
        no_queues: "No queue has jobs yet. The first job makes one:", "还没有队列。提交第一个作业即可：";
        worker: "Worker", "Worker";
        tenant: "Tenant", "租户";
        every: "every tenant", "所有租户";
        wants_types: "Types", "类型";
        wants_queues: "Queues", "队列";
        any: "any", "任意";
        granted: "Jobs", "作业数";
        first_seen: "First heard of", "首次出现";
        last_seen: "Last heard of", "最近出现";
        no_workers: "No worker was heard of lately. Start one:", "最近没有 worker。启动一个：";
    }
}

async fn types(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &TYPES);
    let words = HouseWords::of(frame.lang);
    let inside = Inside::new(&ask, &who);
    let found: api::Page<api::registry::Type> = inside.get("/api/v1/types").await?;
    let row = |it: &api::registry::Type| {
        vec![
            title(format!("/ui/types/{}", encoded(&it.job_type)), &it.job_type, ""),
            text(&it.domain),
            cell("c-named", vec![Bit::Text(it.queue.clone())]),
            number(it.priority.into()),
            cell("num", vec![Bit::Text(seconds(it.timeout_seconds))]),
            number(u64::from(it.max_retries) + 1),
            cell("num", vec![Bit::Text(limit(it, words))]),
            cell("num", vec![Bit::Text(sla(it))]),
            cell("c-named", vec![Bit::Text(mode(it, words))]),
        ]
    };
    let may_set = inside.may(&Method::PUT, "/api/v1/types/x");
    let new = may_set.then(|| (making::NEW_TYPE.to_owned(), words.new));
    let links = new.into_iter().collect();
    let head = Head { title: frame.title.clone(), links, ..Head::default() };
    let mut top = vec![Block::Head(head)];
    if found.items.is_empty() {
        let commands = "mainspring types set hello --timeout 60s --max-retries 3";
        top.push(Block::Teach { text: words.no_types.to_owned(), commands });
    }
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.type_name,
            words.domain,
            words.queue,
            words.priority,
            words.timeout,
            words.tries,
            words.limit,
            words.sla,
            words.executor,
        ],
        rows: found.items.iter().map(row).collect(),
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

fn seconds(seconds: u32) -> String {
    parts::span(Duration::from_secs(seconds.into()))
}

fn limit(it: &api::registry::Type, words: &'static HouseWords) -> String {
    match it.concurrency_limit {
        Some(most) => format!("{} / {}", parts::count(most.into()), it.concurrency_scope),
        None => words.no_limit.to_owned(),
    }
}

/// What is promised, in short: how soon they start, and how soon they end.
fn sla(it: &api::registry::Type) -> String {
    let Some(sla) = it.sla else { return "–".to_owned() };
    [sla.start_within_ms, sla.finish_within_ms]
        .map(|within| within.map_or("–".into(), millis))
        .join(" / ")
}

fn millis(ms: u32) -> String {
    parts::span(Duration::from_millis(ms.into()))
}

fn mode(it: &api::registry::Type, words: &'static HouseWords) -> String {
    let mode = it.executor.as_ref().map(|executor| executor.mode.clone());
    mode.unwrap_or_else(|| words.as_deployed.to_owned())
}

async fn one_type(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let path = format!("/api/v1/types/{}", encoded(ask.param()));
    let inside = Inside::new(&ask, &who);
    let it: api::registry::Type = inside.get(&path).await?;
    let frame = Frame::new(&ask, &who, &TYPES);
    let words = HouseWords::of(frame.lang);
    let frame = frame.titled(&it.job_type, format!("/ui/types/{}", encoded(&it.job_type)));
    let name = it.job_type.as_str();
    let within = |within: Option<u32>| within.map_or_else(|| words.nothing.to_owned(), millis);
    let sla = it.sla.unwrap_or_default();
    let yes = |is_so| if is_so { words.yes } else { words.no };
    let mut facts = vec![
        Fact::text(words.domain, &it.domain),
        Fact::text(words.queue, &it.queue),
        Fact::text(words.priority, it.priority),
        Fact::text(words.timeout, seconds(it.timeout_seconds)),
        Fact::text(words.tries, u32::from(it.max_retries) + 1),
        Fact::text(
            words.backoff,
            format!("{} – {}", millis(it.backoff_base_ms), millis(it.backoff_max_ms)),
        ),
        Fact::text(words.limit, limit(&it, words)),
        Fact::text(words.start_within, within(sla.start_within_ms)),
        Fact::text(words.finish_within, within(sla.finish_within_ms)),
        Fact::text(words.schedulable, yes(it.schedulable)),
        Fact::text(words.executor, mode(&it, words)),
    ];
    if let Some(executor) = &it.executor {
        let command = executor.command.clone().map(|command| {
            let args = executor.args.iter().flatten().cloned();
            std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ")
        });
        facts.extend(command.map(|it| Fact::new(words.command, vec![Bit::Code(it)])));
        facts.extend(executor.url.as_ref().map(|url| Fact::text(words.url, url)));
    }
    let leads = [
        (words.jobs, target("/ui/jobs", [("type", name)])),
        (words.failed, target("/ui/jobs", [("status", "failed"), ("type", name)])),
        (words.dead, target("/ui/dlq/items", [("status", "open"), ("type", name)])),
        (words.schedules, target("/ui/schedules", [("job_type", name)])),
    ];
    let leads = leads.map(|(name, href)| Bit::Link { href, text: name.to_owned() });
    facts.push(Fact::new(words.see, separated(leads.into())));
    let may_set = inside.may(&Method::PUT, "/api/v1/types/x");
    let edit = may_set.then(|| (target(making::NEW_TYPE, [("name", name)]), words.edit));
    let links = edit.into_iter().collect();
    let head = Head { title: it.job_type.clone(), links, ..Head::default() };
    let top = vec![Block::Head(head), Block::Facts { id: "facts", name: words.promised, facts }];
    BlockPage::plain(frame, top).reply()
}

/// Links in a line.
fn separated(bits: Vec<Bit>) -> Vec<Bit> {
    let dot = || Bit::Soft("·".to_owned());
    let pairs = bits.into_iter().enumerate();
    pairs.flat_map(|(at, bit)| (at > 0).then(dot).into_iter().chain([bit])).collect()
}

async fn queues(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &QUEUES);
    let (lang, words) = (frame.lang, HouseWords::of(frame.lang));
    let inside = Inside::new(&ask, &who);
    let found: api::Page<api::registry::Queue> = inside.get("/api/v1/queues").await?;
    let mut rows = Vec::with_capacity(found.items.len());
    for it in &found.items {
        let by = match it.paused {
            true => paused_by(&inside, &it.name).await?,
            false => Vec::new(),
        };
        rows.push(queue_row(it, by, lang));
    }
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![Block::Head(head)];
    if rows.is_empty() {
        let commands = "mainspring types set hello\nmainspring jobs submit hello '{}'";
        top.push(Block::Teach { text: words.no_queues.to_owned(), commands });
    }
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.state,
            words.queue,
            words.ready,
            words.pending,
            words.running,
            words.order,
            words.who,
            words.what,
        ],
        rows,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

/// Who paused a queue, and when: the audit trail knows.
async fn paused_by(inside: &Inside<'_>, name: &str) -> Result<Vec<Bit>, Refusal> {
    let pairs = [("object_id", name), ("action", "queue.pause"), ("limit", "1")];
    let lines: api::Page<api::audit::AuditLine> =
        inside.get(&target("/api/v1/audit", pairs)).await?;
    let line = lines.items.into_iter().next();
    Ok(line.map_or_else(Vec::new, |it| vec![Bit::Strong(it.actor.user_id), when(it.at)]))
}

fn queue_row(it: &api::registry::Queue, by: Vec<Bit>, lang: Lang) -> Vec<Cell> {
    let words = HouseWords::of(lang);
    let (step, button) = match it.paused {
        true => ("resume", words.resume),
        false => ("pause", words.pause),
    };
    let button = Bit::Button {
        action: format!("/ui/queues/{}/{step}", encoded(&it.name)),
        text: button,
        id: format!("{step}-{}", it.name),
    };
    let jobs = target("/ui/jobs", [("queue", it.name.as_str())]);
    vec![
        blocks::state(lang, if it.paused { "paused" } else { "serving" }),
        title(jobs, &it.name, ""),
        number(it.ready),
        number(it.pending),
        number(it.running),
        cell(
            "",
            vec![Bit::Soft(if it.order == "due" { words.due } else { words.aged }.to_owned())],
        ),
        cell("", by),
        cell("", vec![button]),
    ]
}

async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = HouseWords::of(Lang::of(&ask.headers));
    step(&ask, &who, "pause", words.pause_done).await
}

async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = HouseWords::of(Lang::of(&ask.headers));
    step(&ask, &who, "resume", words.resume_done).await
}

async fn step(ask: &Ask, who: &Principal, step: &str, text: &str) -> Result<Reply, Refusal> {
    let path = format!("/api/v1/queues/{}/{step}", encoded(ask.param()));
    let done = Inside::new(ask, who).poke::<api::registry::Queue>(&path).await;
    shell::told(ask, "/ui/queues", done.map(|_| text.to_owned()))
}

async fn workers(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &WORKERS);
    let words = HouseWords::of(frame.lang);
    let query = blocks::query(&ask, &["cursor"])?;
    let (cursor, limit) = (query.get("cursor").unwrap_or_default(), DASHBOARD_PAGE.to_string());
    let path = target("/api/v1/workers", [("limit", &*limit), ("cursor", cursor)]);
    let found: api::Page<api::registry::Worker> = Inside::new(&ask, &who).get(&path).await?;
    let wants = |names: &Option<Vec<String>>| match names {
        Some(names) => Bit::Text(names.join(", ")),
        None => Bit::Soft(words.any.to_owned()),
    };
    let row = |it: &api::registry::Worker| {
        let tenant = match &it.tenant_id {
            Some(tenant) => Bit::Text(tenant.clone()),
            None => Bit::Soft(words.every.to_owned()),
        };
        vec![
            cell("c-job", vec![Bit::Strong(it.worker_id.clone())]),
            cell("c-named", vec![tenant]),
            cell("c-named", vec![wants(&it.types)]),
            cell("c-named", vec![wants(&it.queues)]),
            number(it.granted),
            instant(Some(it.first_seen_at)),
            instant(Some(it.last_seen_at)),
        ]
    };
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![Block::Head(head)];
    if found.items.is_empty() {
        let commands = "mainspring worker --type hello -- cat";
        top.push(Block::Teach { text: words.no_workers.to_owned(), commands });
    }
    let (older, newest) = blocks::pages("/ui/workers", &query, &[], found.next_cursor.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![
            words.worker,
            words.tenant,
            words.wants_types,
            words.wants_queues,
            words.granted,
            words.first_seen,
            words.last_seen,
        ],
        rows: found.items.iter().map(row).collect(),
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}
