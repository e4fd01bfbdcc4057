//! How the server is: the store, what was found when it was opened, what the process has done.

use super::blocks::{self, Block, BlockPage, Fact, Head, Tone};
use super::inside::Inside;
use super::shell::Frame;
use super::words::{self, words};
use super::{Group, Page, parts};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::Route;
use crate::route::table::{LOOKERS, get, page};
use mainspring_api as api;
use mainspring_kernel::{Principal, StateName};
use std::time::Duration;

pub(super) static PAGE: Page = Page {
    path: "/ui/health",
    name: ["Health", "运行状况"],
    group: Group::House,
    roles: LOOKERS,
    routes,
    icon: "M8 14S2 10 2 6a3 3 0 016-1 3 3 0 016 1c0 4-6 8-6 8z",
};

fn routes() -> Vec<Route> {
    vec![get("/ui/health", page!(LOOKERS, show), Doc::hidden())]
}

words! {
    HealthWords {
        store: "Store", "存储";
        kind: "Kind", "类型";
        version: "Version", "版本";
        executor: "Jobs are executed", "作业执行方式";
        space: "Room on the disk", "磁盘空间";
        space_low: "almost none: new work is refused", "将满：拒绝新作业";
        space_enough: "enough", "充足";
        damaged: "Damaged blocks", "损坏的数据块";
        broken: "The store does not serve", "存储无法服务";
        recovery: "What was found at the start", "启动时的恢复";
        live: "Live jobs", "未结束的作业";
        running: "Of these running", "其中运行中";
        frames: "Journal frames replayed", "重放的日志帧";
        torn: "Torn bytes that were cut", "截掉的残缺字节";
        took: "Took", "用时";
        process: "This process", "本进程";
        since: "Running since", "启动于";
        commits: "Commits", "提交次数";
        commands: "Commands decided", "已裁决命令";
        illegal: "Illegal moves refused", "拒绝的非法变化";
        stale: "Stale leases refused", "拒绝的过期租约";
        hits: "Repeats told by their key", "幂等命中";
        parked: "Pulls that wait", "等待中的拉取";
        jobs: "Jobs", "作业";
        due: "Due now", "当前到期";
        submitted: "Accepted since the store was made", "建库以来接受";
        claims: "Attempts started", "已开始的尝试";
        retries: "Retries scheduled", "已安排的重试";
        dlq: "Dead letters that wait", "待处理死信";
        tenant: "Your tenant", "你的租户";
        backlog: "Jobs that have not ended", "未结束的作业";
        bytes: "They take up", "占用";
        of: "of", "/";
        for_admins: "The numbers of the whole server are for admins.", "整个服务器的数字仅管理员可见。";
    }
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, HealthWords::of(frame.lang));
    let it: api::runtime::Runtime = Inside::new(&ask, &who).get("/api/v1/runtime").await?;
    let state = if it.store.healthy { "healthy" } else { "broken" };
    let mark = Some(blocks::mark(lang, state));
    let mut top = vec![Block::Head(Head { title: frame.title.clone(), mark, ..Head::default() })];
    if !it.store.healthy {
        let why = it.store.broken.as_deref().unwrap_or_default();
        top.push(Block::Say(Tone::Bad, format!("{}: {why}", words.broken)));
    }
    let is_low = it.store.low_on_space;
    let space = if is_low { words.space_low } else { words.space_enough };
    let store = vec![
        Fact::text(words.kind, &it.store.kind),
        Fact::text(words.space, space),
        Fact::text(words.damaged, parts::count(it.store.damaged_blocks)),
        Fact::text(words.version, &it.version),
        Fact::text(words.executor, &it.executor.mode),
    ];
    let mut main = vec![Block::Facts { id: "store", name: words.store, facts: store }];
    if let Some(found) = &it.recovery {
        let facts = vec![
            Fact::text(words.live, parts::count(found.jobs)),
            Fact::text(words.running, parts::count(found.running)),
            Fact::text(words.frames, parts::count(found.frames)),
            Fact::text(words.torn, parts::count(found.torn_bytes)),
            Fact::text(words.took, parts::span(Duration::from_millis(found.took_ms))),
        ];
        main.push(Block::Facts { id: "recovery", name: words.recovery, facts });
    }
    let mut side = Vec::new();
    if let Some(tenant) = &it.tenant {
        let (taken, most) = (tenant.backlog_bytes, tenant.backlog_bytes_max);
        let room = format!("{} {} {}", parts::bytes(taken), words.of, parts::bytes(most));
        let facts = vec![
            Fact::text(words.tenant, &tenant.tenant_id),
            Fact::text(words.backlog, parts::count(tenant.jobs)),
            Fact::text(words.bytes, room),
        ];
        side.push(Block::Facts { id: "tenant", name: words.tenant, facts });
    }
    match &it.counters {
        Some(counters) => {
            let (process, jobs) = (process(counters, words), jobs(counters, words, lang));
            main.push(Block::Facts { id: "process", name: words.process, facts: process });
            side.push(Block::Facts { id: "jobs", name: words.jobs, facts: jobs });
        }
        None => main.push(Block::Teach { text: words.for_admins.to_owned(), commands: "" }),
    }
    BlockPage { frame, top, main, side }.reply()
}

fn process(it: &api::runtime::Counters, words: &'static HealthWords) -> Vec<Fact> {
    let numbers = [
        (words.commits, it.commits),
        (words.commands, it.commands),
        (words.illegal, it.illegal_moves),
        (words.stale, it.stale_leases),
        (words.hits, it.idempotent_hits),
        (words.parked, it.parked_pulls),
    ];
    let numbers = numbers.map(|(name, number)| Fact::text(name, parts::count(number)));
    std::iter::once(Fact::at(words.since, it.started_at)).chain(numbers).collect()
}

fn jobs(it: &api::runtime::Counters, words: &'static HealthWords, lang: words::Lang) -> Vec<Fact> {
    let state = |state: StateName| {
        let count = it.jobs.get(state.as_str()).copied().unwrap_or(0);
        Fact::text(words::state(lang, state), parts::count(count))
    };
    let numbers = [
        (words.due, it.due),
        (words.submitted, it.submitted),
        (words.claims, it.claims),
        (words.retries, it.retries),
        (words.dlq, it.dlq_open),
    ];
    let numbers = numbers.map(|(name, number)| Fact::text(name, parts::count(number)));
    StateName::ALL.into_iter().map(state).chain(numbers).collect()
}
