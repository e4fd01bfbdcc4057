//! Pages that are put together from blocks: a head, tables, facts, JSON, forms. One template shows
//! all of them, so that every list and every thing looks alike; a page only says what there is.
//! Whatever goes in is text and is escaped by the template; drawings are of our own making.

use super::json_text;
use super::parts::{self, Html, When};
use super::shell::{self, Frame, encoded};
use super::words::{Lang, fill};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::limits::SHOWN_BYTES_MAX;
use crate::refusal::Refusal;
use askama::Template;
use mainspring_api::Time;
use mainspring_kernel::Timestamp;

/// A page of blocks: above, and below in one column or two.
#[derive(Template)]
#[template(path = "blocks.html")]
pub(super) struct BlockPage {
    pub(super) frame: Frame,
    pub(super) top: Vec<Block>,
    pub(super) main: Vec<Block>,
    pub(super) side: Vec<Block>,
}

impl BlockPage {
    /// In one column.
    pub(super) fn plain(frame: Frame, top: Vec<Block>) -> Self {
        BlockPage { frame, top, main: Vec::new(), side: Vec::new() }
    }

    pub(super) fn reply(&self) -> Result<Reply, Refusal> {
        shell::page(self)
    }
}

/// A part of a page.
pub(super) enum Block {
    /// The title, with what stands beside it and the buttons that lead on.
    Head(Head),
    /// Something to know first.
    Say(Tone, String),
    /// What to type when there is nothing yet.
    Teach { text: String, commands: &'static str },
    /// Ways to look at the same list.
    Tabs { name: &'static str, tabs: Vec<Tab> },
    /// The fields by which a list is narrowed.
    Filters {
        action: &'static str,
        inputs: Vec<Input>,
        go: &'static str,
        clear: Option<(String, &'static str)>,
    },
    /// A list, or a table of a thing; `name` puts it on a card.
    Table(Table),
    /// Named values.
    Facts { id: &'static str, name: &'static str, facts: Vec<Fact> },
    /// JSON in lines.
    Json { id: &'static str, name: String, text: String, note: Option<String> },
    /// A text as it was written.
    Text {
        id: &'static str,
        name: &'static str,
        class: &'static str,
        /// What is said of it.
        bits: Vec<Bit>,
        text: String,
    },
    /// A drawing.
    Drawing { id: &'static str, name: &'static str, hint: String, html: Html },
    /// Forms that change something.
    Forms { name: &'static str, forms: Vec<Form> },
}

/// How something is said.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
}

impl Tone {
    fn class(&self) -> &'static str {
        match self {
            Tone::Plain => "say",
            Tone::Good => "say say-good",
            Tone::Bad => "say say-bad",
        }
    }
}

/// The title of a page.
#[derive(Default)]
pub(super) struct Head {
    pub(super) title: String,
    pub(super) mark: Option<Mark>,
    pub(super) id: Option<String>,
    pub(super) lead: Option<String>,
    /// Where to go from here; the first is the main one.
    pub(super) links: Vec<(String, &'static str)>,
}

/// A way to look at a list.
pub(super) struct Tab {
    pub(super) name: &'static str,
    pub(super) href: String,
    pub(super) is_here: bool,
}

/// A table with its heads; a head of numbers stands to the right.
#[derive(Default)]
pub(super) struct Table {
    pub(super) id: &'static str,
    pub(super) name: Option<&'static str>,
    pub(super) hint: Option<String>,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<Cell>>,
    pub(super) older: Option<String>,
    pub(super) newest: Option<String>,
    /// Whether it should not move by itself.
    pub(super) is_still: bool,
}

impl Table {
    /// The heads, and whether numbers stand below.
    fn columns(&self) -> Vec<(&'static str, bool)> {
        let first = self.rows.first();
        let is_number =
            |at: usize| first.and_then(|row| row.get(at)).is_some_and(|cell| cell.class == "num");
        self.heads.iter().enumerate().map(|(at, head)| (*head, is_number(at))).collect()
    }

    /// Cells with what each is called where there is no head above it; most speak for themselves.
    fn named<'a>(&self, row: &'a [Cell]) -> Vec<(&'static str, &'a Cell)> {
        let heads = self.heads.iter().copied().chain(std::iter::repeat(""));
        let named = heads.zip(row).map(|(head, cell)| match cell.class {
            "num" | "c-named" | "c-when" => (head, cell),
            _ => ("", cell),
        });
        named.collect()
    }
}

/// What stands in a place of a table.
pub(super) struct Cell {
    pub(super) class: &'static str,
    pub(super) bits: Vec<Bit>,
}

/// A piece of a line.
pub(super) enum Bit {
    Text(String),
    Strong(String),
    Soft(String),
    Code(String),
    Bad(String),
    Id(String),
    Clip(String),
    Link {
        href: String,
        text: String,
    },
    /// A name that leads to the thing, with its id below.
    Title {
        href: String,
        name: String,
        id: String,
    },
    At(When),
    Mark(Mark),
    /// A button alone, as a form of its own.
    Button {
        action: String,
        text: &'static str,
        id: String,
    },
}

impl Bit {
    /// Whether it is an id and nothing else, which is to stand on one line.
    fn is_id(&self) -> bool {
        matches!(self, Bit::Text(text) | Bit::Link { text, .. } if parts::is_id(text))
    }
}

/// A state, by colour and by word.
#[derive(Clone)]
pub(super) struct Mark {
    pub(super) class: &'static str,
    pub(super) text: String,
    pub(super) code: String,
}

/// A named value.
pub(super) struct Fact {
    pub(super) name: String,
    pub(super) bits: Vec<Bit>,
}

/// A form that changes something.
pub(super) struct Form {
    pub(super) id: String,
    pub(super) action: String,
    pub(super) name: Option<String>,
    pub(super) hint: Option<String>,
    /// What there is to know of it.
    pub(super) bits: Vec<Bit>,
    pub(super) inputs: Vec<Input>,
    pub(super) button: &'static str,
    pub(super) look: Look,
}

/// How a form's button looks.
#[derive(Clone, Copy)]
pub(super) enum Look {
    Main,
    Plain,
    Danger,
}

impl Look {
    fn class(&self) -> &'static str {
        match self {
            Look::Main => "button main",
            Look::Plain => "button",
            Look::Danger => "button danger",
        }
    }
}

/// A field of a form.
pub(super) struct Input {
    /// The form it is in.
    pub(super) form: String,
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) hint: &'static str,
    pub(super) kind: InputKind,
    pub(super) is_needed: bool,
}

/// What a field takes.
pub(super) enum InputKind {
    Hidden,
    Line,
    /// A text in lines, such as JSON.
    Area,
    /// One of these values, with how each is called.
    Choice(Vec<(String, String)>),
    /// Any of these.
    Checks(Vec<(String, bool)>),
    /// One of these, all in sight.
    Options(Vec<(String, bool)>),
}

impl Input {
    pub(super) fn hidden(name: &'static str, value: impl Into<String>) -> Self {
        Input { kind: InputKind::Hidden, ..Input::line(name, "", value) }
    }

    pub(super) fn line(name: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        let (form, kind) = ("f".to_owned(), InputKind::Line);
        Input { form, name, label, value, hint: "", kind, is_needed: false }
    }

    pub(super) fn area(name: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        Input { kind: InputKind::Area, ..Input::line(name, label, value) }
    }

    pub(super) fn choice(
        name: &'static str,
        label: &'static str,
        value: impl Into<String>,
        choices: Vec<(String, String)>,
    ) -> Self {
        Input { kind: InputKind::Choice(choices), ..Input::line(name, label, value) }
    }

    /// As many lines as the text has, within reason.
    fn rows(&self) -> usize {
        self.value.lines().count().clamp(3, 16)
    }

    pub(super) fn needed(mut self) -> Self {
        self.is_needed = true;
        self
    }

    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }
}

impl Form {
    pub(super) fn new(
        id: impl Into<String>,
        action: impl Into<String>,
        button: &'static str,
    ) -> Self {
        Form {
            id: id.into(),
            action: action.into(),
            name: None,
            hint: None,
            bits: Vec::new(),
            inputs: Vec::new(),
            button,
            look: Look::Plain,
        }
    }

    pub(super) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn known(mut self, bits: Vec<Bit>) -> Self {
        self.bits = bits;
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn with(mut self, input: Input) -> Self {
        self.inputs.push(Input { form: self.id.clone(), ..input });
        self
    }

    pub(super) fn look(mut self, look: Look) -> Self {
        self.look = look;
        self
    }
}

impl Fact {
    pub(super) fn new(name: impl Into<String>, bits: Vec<Bit>) -> Self {
        Fact { name: name.into(), bits }
    }

    pub(super) fn text(name: &'static str, value: impl ToString) -> Self {
        Fact::new(name, vec![Bit::Text(value.to_string())])
    }

    pub(super) fn link(name: &'static str, href: String, text: impl ToString) -> Self {
        Fact::new(name, vec![Bit::Link { href, text: text.to_string() }])
    }

    pub(super) fn at(name: &'static str, at: Time) -> Self {
        Fact::new(name, vec![when(at)])
    }
}

/// A cell of any class.
pub(super) fn cell(class: &'static str, bits: Vec<Bit>) -> Cell {
    Cell { class, bits }
}

/// A cell with a text.
pub(super) fn text(value: impl ToString) -> Cell {
    let value = value.to_string();
    let bits = if value.is_empty() { Vec::new() } else { vec![Bit::Text(value)] };
    Cell { class: "", bits }
}

/// A cell with a number.
pub(super) fn number(value: u64) -> Cell {
    Cell { class: "num", bits: vec![Bit::Text(parts::count(value))] }
}

/// A cell with an instant, if there is one.
pub(super) fn instant(at: Option<Time>) -> Cell {
    Cell { class: "c-when", bits: at.map(when).into_iter().collect() }
}

/// A cell with a state.
pub(super) fn state(lang: Lang, code: &str) -> Cell {
    Cell { class: "c-state", bits: vec![Bit::Mark(mark(lang, code))] }
}

/// A cell that leads to the thing of the row.
pub(super) fn title(href: String, name: impl Into<String>, id: impl Into<String>) -> Cell {
    let (name, id) = (name.into(), id.into());
    Cell { class: "c-job", bits: vec![Bit::Title { href, name, id }] }
}

pub(super) fn when(at: Time) -> Bit {
    Bit::At(When(Timestamp(at.0)))
}

/// JSON to be shown, in lines.
pub(super) fn json(id: &'static str, name: impl Into<String>, json: &str, lang: Lang) -> Block {
    let (text, rest) = json_text::lines(json, SHOWN_BYTES_MAX);
    let cut =
        lang.of_two(["{} more bytes; the API has all of it.", "还有 {} 字节；完整内容见 API。"]);
    let note = (rest > 0).then(|| fill(cut, &[&parts::count(rest as u64)]));
    Block::Json { id, name: name.into(), text, note }
}

/// The parameters that are there, with a value.
pub(super) fn kept<'a>(query: &'a Query, names: &[&'static str]) -> Vec<(&'static str, &'a str)> {
    names.iter().filter_map(|name| Some((*name, query.get(name)?))).collect()
}

/// A path with parameters.
pub(super) fn target<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let pairs: Vec<String> = pairs
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

/// The parameters of a list of the dashboard, empty ones left out.
pub(super) fn query(ask: &Ask, known: &[&'static str]) -> Result<Query, Refusal> {
    Query::read(Some(&super::jobs::filled(ask)), known)
}

/// Where a list goes on, and where it begins, with the filters that hold.
pub(super) fn pages(
    path: &str,
    query: &Query,
    names: &[&'static str],
    next: Option<&str>,
) -> (Option<String>, Option<String>) {
    let kept = || kept(query, names).into_iter();
    let older = next.map(|next| target(path, kept().chain([("cursor", next)])));
    (older, query.get("cursor").map(|_| target(path, kept())))
}

/// What a state is called, and its colour. What is not known here is told as it is.
pub(super) fn mark(lang: Lang, code: &str) -> Mark {
    let (class, names) = match code {
        "open" => ("k-warn", ["open", "未处理"]),
        "requeued" => ("k-good", ["requeued", "已重新运行"]),
        "discard_requested" => ("k-look", ["discard asked for", "已申请丢弃"]),
        "discarded" => ("k-calm", ["discarded", "已丢弃"]),
        "active" => ("k-good", ["active", "启用"]),
        "paused" => ("k-warn", ["paused", "已暂停"]),
        "stopped" => ("k-calm", ["stopped", "已停止"]),
        "ended" => ("k-calm", ["ended", "已结束"]),
        "failing" => ("k-bad", ["failing", "投递失败"]),
        "acknowledged" => ("k-look", ["acknowledged", "已确认"]),
        "cleared" => ("k-good", ["cleared", "已解除"]),
        "answered" => ("k-good", ["answered", "已回答"]),
        "defaulted" => ("k-look", ["default taken", "已取默认"]),
        "expired" => ("k-bad", ["expired", "已过期"]),
        "withdrawn" => ("k-calm", ["withdrawn", "已撤回"]),
        "P1" => ("k-bad", ["P1 now", "P1 立即"]),
        "P2" => ("k-warn", ["P2 today", "P2 今天"]),
        "P3" => ("k-calm", ["P3 in time", "P3 择机"]),
        "fired" => ("k-good", ["fired", "已触发"]),
        "late" => ("k-warn", ["late", "延迟"]),
        "skipped" => ("k-bad", ["skipped", "已跳过"]),
        "coalesced" => ("k-look", ["coalesced", "已合并"]),
        "backfilled" => ("k-look", ["backfilled", "已补做"]),
        "due" => ("k-look", ["due", "到期"]),
        "asked" => ("k-look", ["asked", "已提问"]),
        "cooldown" => ("k-calm", ["cooling down", "冷却中"]),
        "running" => ("k-look", ["running", "运行中"]),
        "not_yet" => ("k-calm", ["not yet", "尚未满足"]),
        "undecided" => ("k-warn", ["undecided", "未定"]),
        "refused" => ("k-bad", ["refused", "被拒绝"]),
        "stuck" => ("k-bad", ["stuck", "卡住"]),
        "true" => ("k-good", ["holds", "成立"]),
        "false" => ("k-calm", ["does not hold", "不成立"]),
        "recurring" => ("k-look", ["recurring", "周期"]),
        "scheduled" => ("k-look", ["scheduled", "定时"]),
        "conditional" => ("k-look", ["conditional", "条件"]),
        "pass" => ("k-good", ["open", "放行"]),
        "block" => ("k-bad", ["closed", "拦截"]),
        "done" => ("k-good", ["done", "完成"]),
        "denied" => ("k-bad", ["denied", "被拒绝"]),
        "low" => ("k-calm", ["low", "低"]),
        "medium" => ("k-warn", ["medium", "中"]),
        "high" => ("k-bad", ["high", "高"]),
        "certain" => ("k-good", ["certain", "确定"]),
        "uncertain" => ("k-warn", ["uncertain", "不确定"]),
        "live" => ("k-good", ["live", "有效"]),
        "revoked" => ("k-calm", ["revoked", "已吊销"]),
        "new" => ("k-bad", ["new", "新"]),
        "healthy" => ("k-good", ["healthy", "正常"]),
        "broken" => ("k-bad", ["in trouble", "故障"]),
        "serving" => ("k-good", ["hands out", "派发中"]),
        "transient" => ("k-warn", ["tries used up", "次数用尽"]),
        "permanent" => ("k-bad", ["permanent", "永久失败"]),
        other => return Mark { class: "k-calm", text: other.to_owned(), code: other.to_owned() },
    };
    Mark { class, text: lang.of_two(names).to_owned(), code: code.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_what_it_is_given_apart() {
        assert_eq!(target("/ui/x", []), "/ui/x");
        assert_eq!(target("/ui/x", [("a", "1&b=2"), ("c", "")]), "/ui/x?a=1%26b%3D2");
    }

    #[test]
    fn a_state_that_is_not_known_is_told_as_it_is() {
        assert_eq!(mark(Lang::Zh, "paused").text, "已暂停");
        let strange = mark(Lang::Zh, "<b>");
        assert_eq!((strange.class, strange.text.as_str()), ("k-calm", "<b>"));
    }
}
