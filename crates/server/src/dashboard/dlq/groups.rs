//! Dead letters by their failure. A page looks at a few hundred of the latest; where there are
//! more, it shows what a task has come to that looks at thousands of them, every so often, for as
//! long as somebody looks.

use super::{DlqWords, PAGE, tabs};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::contracts::native::filters;
use crate::cursor;
use crate::dashboard::blocks::{
    self, Bit, Block, BlockPage, Head, Input, Table, cell, instant, number, target,
};
use crate::dashboard::parts;
use crate::dashboard::shell::Frame;
use crate::dashboard::watched::Watched;
use crate::dashboard::words::{Lang, fill};
use crate::governed::OPERATORS;
use crate::limits::GROUPED_AT_ONCE_MAX;
use crate::refusal::{self, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mainspring_api::Time;
use mainspring_engine::store::{ItemFilter, JobFilter, Scope};
use mainspring_engine::{Engine, Error, Grouped};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::signature::Group;
use mainspring_kernel::{DlqState, Principal, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// How far back "new" reaches, by the name in the address.
const SINCE: [(&str, u64); 3] = [("1h", 3_600), ("24h", 86_400), ("7d", 604_800)];
/// Failures of a page.
const GROUPS_SHOWN: usize = 20;
/// How often thousands are looked at while somebody looks.
const EVERY: Duration = Duration::from_secs(10);
/// How long a page waits for that.
const PATIENCE: Duration = Duration::from_millis(150);

/// Looks at thousands for whoever looks, until the task ends.
pub(in crate::dashboard) async fn run(watched: &Watched<Arc<Grouped>>, engine: &Engine) {
    watched.run(engine, EVERY, all).await;
}

fn all<'a>(engine: &'a Engine, scope: &'a Scope) -> BoxFuture<'a, Result<Arc<Grouped>, Error>> {
    async move { engine.dlq_groups(&open(scope), usize::MAX).await.map(Arc::new) }.boxed()
}

/// Those that wait for a decision.
fn open(scope: &Scope) -> ItemFilter {
    ItemFilter {
        state: Some(DlqState::Open.as_str().to_owned()),
        job: JobFilter::of(scope.clone()),
        signature: None,
        since: None,
        until: None,
    }
}

/// The latest, if they are all there are; otherwise what was come to last, and when.
async fn found(
    ask: &Ask,
    scope: &Scope,
    filter: &ItemFilter,
) -> Result<(Arc<Grouped>, Option<Timestamp>), Refusal> {
    let engine = ask.engine();
    let latest = engine.dlq_groups(filter, GROUPED_AT_ONCE_MAX).await?;
    if latest.is_whole {
        return Ok((Arc::new(latest), None));
    }
    Ok(match ask.app.dashboard.groups.latest(engine, scope, PATIENCE).await {
        Some((at, all)) => (all, Some(at)),
        None => (Arc::new(latest), None),
    })
}

pub(super) async fn show(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let words = DlqWords::of(frame.lang);
    let query = blocks::query(&ask, &["since", "cursor"])?;
    let since = query.get("since").unwrap_or("24h");
    let reach = SINCE.iter().find(|(name, _)| *name == since);
    let reach = reach.ok_or_else(|| refusal::invalid("since", "must be 1h, 24h or 7d"))?.1;
    let scope = auth::scope(&who);
    let filter = open(&scope);
    let list = digest(&[b"pages of groups", &filters::item_list(&filter).0]);
    let before = filters::before(&query, list)?;
    let (grouped, counted_at) = found(&ask, &scope, &filter).await?;
    let now = ask.engine().now();
    let look = Look {
        lang: frame.lang,
        words,
        new_since: now - Duration::from_secs(reach),
        can_bulk: who.roles.any(OPERATORS),
    };
    let behind = |group: &&Group| before.is_none_or(|before| group.place() < before);
    let mut rest = grouped.groups.iter().filter(behind).peekable();
    let shown: Vec<&Group> = rest.by_ref().take(GROUPS_SHOWN).collect();
    let next = rest.peek().and(shown.last()).map(|last| cursor::write(list, last.place()));
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![Block::Head(head), tabs(words, "groups")];
    if shown.is_empty() && before.is_none() {
        let commands = "mainspring types set fragile --max-retries 0\n\
            mainspring jobs submit fragile '{}'\n\
            mainspring worker --type fragile -- false";
        top.push(Block::Teach { text: words.none.to_owned(), commands });
        return BlockPage::plain(frame, top).reply();
    }
    let mut heads = vec![words.failure, words.count, words.types, words.first, words.last];
    heads.extend(look.can_bulk.then_some(words.what_next));
    let (older, newest) = blocks::pages("/ui/dlq", &query, &["since"], next.as_deref());
    let cut = (!grouped.is_whole).then(|| fill(words.cut, &[&parts::count(grouped.looked_at)]));
    let counted = counted_at.map(|at| fill(words.counted, &[&parts::span(now.since(at))]));
    let hint: Vec<String> = cut.into_iter().chain(counted).collect();
    top.push(filters_of(words, since));
    top.push(Block::Table(Table {
        id: "list",
        hint: (!hint.is_empty()).then(|| hint.join(" ")),
        heads,
        rows: shown.into_iter().map(|group| look.row(group)).collect(),
        older,
        newest,
        // A look goes through hundreds of items: not with every move of a job.
        is_still: true,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

fn filters_of(words: &'static DlqWords, since: &str) -> Block {
    let choices = [("1h", words.hour), ("24h", words.day), ("7d", words.week)];
    let choices = choices.map(|(value, name)| (value.to_owned(), name.to_owned())).into();
    Block::Filters {
        action: "/ui/dlq",
        inputs: vec![Input::choice("since", words.new_in, since, choices)],
        go: words.show,
        clear: None,
    }
}

/// How groups are shown.
struct Look {
    lang: Lang,
    words: &'static DlqWords,
    /// What came first since then is new.
    new_since: Timestamp,
    can_bulk: bool,
}

impl Look {
    fn row(&self, group: &Group) -> Vec<blocks::Cell> {
        let signature = group.signature.to_string();
        let href = target("/ui/dlq/items", [("status", "open"), ("signature", &signature)]);
        let is_new = group.first_at >= self.new_since;
        let mark = is_new.then(|| Bit::Mark(blocks::mark(self.lang, "new")));
        let name = Bit::Link { href, text: group.pattern.to_string() };
        let code = Bit::Bad(group.code.to_string());
        let types: Vec<&str> = group.types.iter().map(|it| it.as_str()).collect();
        let mut cells = vec![
            cell("c-job c-failure", mark.into_iter().chain([code, name]).collect()),
            number(group.count),
            cell("", vec![Bit::Soft(types.join(", "))]),
            instant(Some(Time(group.first_at.0))),
            instant(Some(Time(group.last_at.0))),
        ];
        if self.can_bulk {
            let href = target("/ui/bulk/new", [("action", "requeue"), ("signature", &signature)]);
            let text = self.words.requeue_all.to_owned();
            cells.push(cell("", vec![Bit::Link { href, text }]));
        }
        cells
    }
}
