//! The overview: where jobs are, how fast they move, and what needs a person.

use super::needs::{self, NeedList};
use super::parts::{self, Html};
use super::pulse::{self, Course, Pulse};
use super::shell::{self, Frame};
use super::words::{fill, words};
use super::{Group, Page, chart, map};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::openapi::Doc;
use crate::refusal::Refusal;
use crate::route::table::{ANYONE, get, page};
use askama::Template;
use mainspring_kernel::{Principal, StateName, Timestamp};

pub(super) static PAGE: Page = Page {
    path: "/",
    name: ["Overview", "概览"],
    group: Group::Work,
    roles: ANYONE,
    routes: || vec![get("/", page!(ANYONE, show), Doc::hidden())],
    icon: "M2 9h4V2H2zM2 14h4v-3H2zM8 14h6V8H8zM8 2v4h6V2z",
};

words! {
    Overview {
        lifecycle: "Lifecycle", "生命周期";
        lifecycle_hint: "Ended states count since the store was made; the others are now. Numbers at arrows are of the last minute.", "已结束的状态从存储建立起累计；其余为当前数量。箭头上的数字为最近一分钟的速率。";
        lifecycle_own: "Jobs that you may see, counted up to 1,000 by state.", "你可以看到的作业，每种状态最多计到 1,000。";
        needs: "Needs a person", "需要人处理";
        needs_nothing: "Nothing waits for a person.", "没有需要人处理的事。";
        needs_more: "There are more.", "还有更多。";
        throughput: "Throughput", "吞吐";
        throughput_hint: "jobs that ended", "结束的作业";
        pickup: "Pickup", "取走延迟";
        pickup_hint: "due until handed out, median and 99th, this server", "到期至交给 worker，中位数与 99 分位，本服务器";
        oldest: "Oldest ready", "最久未取";
        oldest_hint: "how long the oldest job that is due waits", "最早到期的作业已等待多久";
        most: "most", "最高";
        ago: "{} min ago", "{} 分钟前";
        now: "now", "现在";
        backlog: "Backlog of your tenant", "本租户的积压";
        of: "of", "/";
        jobs: "jobs", "个作业";
        first: "No job has come yet. In a terminal:", "还没有作业。在终端中：";
    }
}

/// One chart with its numbers.
struct Chart {
    name: &'static str,
    hint: &'static str,
    ago: String,
    now: String,
    most: String,
    drawing: Html,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    words: &'static Overview,
    map: Html,
    hint: &'static str,
    charts: Vec<Chart>,
    needs: NeedList,
    backlog_jobs: String,
    backlog_bytes: String,
    backlog_max: String,
    /// In thousandths, for a bar.
    backlog_share: u64,
    is_empty: bool,
}

async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let words = Overview::of(frame.lang);
    let (engine, dashboard) = (ask.engine(), &ask.app.dashboard);
    let tally = dashboard.tallies.of(engine, &auth::scope(&who)).await;
    // What the whole server does is shown to whom `/metrics` shows it.
    let sees_whole = who.is_admin() || !ask.app.config.is_public;
    let rates = who.is_admin().then(|| dashboard.pulse.rates());
    let charts = match sees_whole {
        true => charts(&dashboard.pulse, words, engine.now()),
        false => Vec::new(),
    };
    let held = engine.held_by(&who.tenant).await?;
    let most = engine.backlog_max().0;
    let is_empty = StateName::ALL.into_iter().all(|state| tally.of(state) == Some(0));
    let needs = needs::list(&ask, &who, frame.lang).await?;
    shell::page(&OverviewPage {
        map: map::drawn(&tally, rates.as_ref(), frame.lang),
        hint: if who.is_admin() { words.lifecycle_hint } else { words.lifecycle_own },
        charts,
        needs,
        backlog_jobs: parts::count(held.jobs),
        backlog_bytes: parts::bytes(held.bytes),
        backlog_max: parts::bytes(most),
        backlog_share: held.bytes.saturating_mul(1_000).checked_div(most).unwrap_or(0).min(1_000),
        is_empty,
        frame,
        words,
    })
}

fn charts(pulse: &Pulse, words: &'static Overview, now: Timestamp) -> Vec<Chart> {
    let (ended, oldest) = (pulse.throughput(), pulse.oldest_ready());
    let (half, most) = (pulse.pickup(0.5), pulse.pickup(0.99));
    let minutes = chart::minutes(&ended, now);
    let ago = fill(words.ago, &[&minutes.to_string()]);
    let drawn = |courses: &[&Course], title| chart::lines(courses, (minutes, now), title);
    vec![
        Chart {
            name: words.throughput,
            hint: words.throughput_hint,
            ago: ago.clone(),
            now: ended.now(parts::rate),
            most: parts::rate(ended.most()),
            drawing: drawn(&[&ended], words.throughput),
        },
        Chart {
            name: words.pickup,
            hint: words.pickup_hint,
            ago: ago.clone(),
            now: format!("{} · {}", half.now(pulse::seconds), most.now(pulse::seconds)),
            most: pulse::seconds(most.most()),
            drawing: drawn(&[&half, &most], words.pickup),
        },
        Chart {
            name: words.oldest,
            hint: words.oldest_hint,
            ago,
            now: oldest.now(pulse::seconds),
            most: pulse::seconds(oldest.most()),
            drawing: drawn(&[&oldest], words.oldest),
        },
    ]
}
