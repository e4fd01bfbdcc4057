//! Questions that plans have asked people: what is asked, until when, what counts if nobody
//! answers, and the form for the answer. Who may answer is the agent contract's to say.

use super::blocks::{
    self, Bit, Block, BlockPage, Form, Head, Input, InputKind, Look, Tab, Table, cell, target,
};
use super::form::Fields;
use super::parts::When;
use super::shell::{self, Frame};
use super::words::{Lang, words};
use super::{Group, Page};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::contracts::agent::plans;
use crate::contracts::native::filters;
use crate::cursor;
use crate::limits::DASHBOARD_PAGE;
use crate::openapi::Doc;
use crate::refusal::{self, Refusal};
use crate::route::table::{ANYONE, get, page, post};
use crate::route::{Route, Takes};
use mainspring_engine::store::EntityFilter;
use mainspring_kernel::agent::id_of;
use mainspring_kernel::entity::question::{Question, Standing};
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{Job, Principal};

pub(super) static PAGE: Page = Page {
    path: "/ui/questions",
    name: ["Plans and questions", "规划与提问"],
    group: Group::Work,
    roles: ANYONE,
    routes,
    icon: "M3 3h10v8H8l-3 3v-3H3zM8 9v0M6.5 6a1.5 1.5 0 112 1.4V8",
};

fn routes() -> Vec<Route> {
    vec![
        get("/ui/questions", page!(ANYONE, list), Doc::hidden()),
        post("/ui/questions/{id}/answer", page!(ANYONE, answer), Takes::Form, Doc::hidden()),
    ]
}

words! {
    QuestionWords {
        open: "Waiting for an answer", "等待回答";
        answered: "Answered", "已回答";
        defaulted: "Default taken", "已取默认";
        expired: "Expired", "已过期";
        withdrawn: "Withdrawn", "已撤回";
        views: "States", "状态";
        none: "No plan waits for an answer. A planner asks with status needs_input; to make a plan:", "没有等待回答的规划。规划器以 needs_input 状态提问；创建一个规划：";
        none_fits: "There is none.", "没有。";
        asks: "Questions", "提问";
        of_plan: "asked by the plan", "提问的规划";
        until: "until", "截止";
        or_default: "then counts:", "到时取：";
        or_ends: "then the plan ends", "到时规划结束";
        choose: "Choose", "选择";
        answer: "Your answer", "你的回答";
        go: "Answer", "回答";
        done: "Answered. The plan goes on.", "已回答，规划继续。";
        state: "State", "状态";
        question: "Question", "提问";
        given: "Answer", "回答";
        by: "by", "由";
        not_yours: "Whose plan it is may answer, and approvers.", "规划的所有者和审批人可以回答。";
        missing: "is missing", "不能为空";
    }
}

async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let frame = Frame::new(&ask, &who, &PAGE);
    let (lang, words) = (frame.lang, QuestionWords::of(frame.lang));
    let query = blocks::query(&ask, &["state", "cursor"])?;
    let state = query.get("state").unwrap_or(Question::STATES[0]);
    if !Question::STATES.contains(&state) {
        return Err(refusal::invalid("state", "is not a state of a question"));
    }
    let filter = EntityFilter {
        state: Some(state.to_owned()),
        ..EntityFilter::of(Kind::Question, auth::scope(&who))
    };
    let place = digest(&[b"dashboard questions", format!("{filter:?}").as_bytes()]);
    let before = filters::before(&query, place)?;
    let before = before.map(|bits| EntityId { kind: Kind::Question, bits });
    let page = ask.engine().entities(&filter, before, DASHBOARD_PAGE).await?;
    let next = page.next.map(|next| cursor::write(place, next.bits));
    let mut found: Vec<(Job, Question)> = Vec::with_capacity(page.items.len());
    for entity in page.items {
        let Body::Question(question) = entity.body else { continue };
        // One whose job was dropped meanwhile is about to be withdrawn.
        if let Some(asking) = ask.engine().job(question.job).await? {
            found.push((asking.job, *question));
        }
    }
    let names = [words.open, words.answered, words.defaulted, words.expired, words.withdrawn];
    let tab = |(code, name): (&str, &'static str)| Tab {
        name,
        href: target("/ui/questions", [("state", code)]),
        is_here: code == state,
    };
    let tabs = Question::STATES.into_iter().zip(names).map(tab).collect();
    let head = Head { title: frame.title.clone(), ..Head::default() };
    let mut top = vec![Block::Head(head), Block::Tabs { name: words.views, tabs }];
    if found.is_empty() {
        let is_open = state == Question::STATES[0];
        let (text, commands) = match is_open {
            true => (
                words.none,
                "curl -H \"authorization: Bearer $MAINSPRING_TOKEN\" $MAINSPRING_URL/agent/plans \\\n  \
                 -d '{\"prompt\": \"plan the release\"}'",
            ),
            false => (words.none_fits, ""),
        };
        top.push(Block::Teach { text: text.to_owned(), commands });
    } else if state == Question::STATES[0] {
        let forms = found.iter().map(|(job, it)| form(&who, job, it, words)).collect();
        top.push(Block::Forms { name: words.asks, forms });
    }
    let rows = match state == Question::STATES[0] {
        true => Vec::new(),
        false => found.iter().map(|(job, it)| row(job, it, lang, words)).collect(),
    };
    let (older, newest) = blocks::pages("/ui/questions", &query, &["state"], next.as_deref());
    top.push(Block::Table(Table {
        id: "list",
        heads: vec![words.state, words.question, words.given],
        rows,
        older,
        newest,
        ..Table::default()
    }));
    BlockPage::plain(frame, top).reply()
}

fn plan_link(job: &Job) -> Bit {
    Bit::Link { href: format!("/ui/jobs/{}", job.id), text: id_of(job).to_string() }
}

fn row(job: &Job, it: &Question, lang: Lang, words: &'static QuestionWords) -> Vec<blocks::Cell> {
    let by = match &it.standing {
        Standing::Answered { by, at, .. } => {
            vec![Bit::Soft(format!("{} {by}", words.by)), Bit::At(When(*at))]
        }
        Standing::Defaulted { at } | Standing::Expired { at } | Standing::Withdrawn { at } => {
            vec![Bit::At(When(*at))]
        }
        Standing::Open => Vec::new(),
    };
    let given = it.answer().map(|answer| Bit::Strong(answer.to_owned()));
    vec![
        blocks::state(lang, it.state()),
        cell("c-job", vec![Bit::Text(it.asked.text.to_string()), plan_link(job)]),
        cell("c-what", given.into_iter().chain(by).collect()),
    ]
}

/// A question with its form, or only the question to whoever may not answer.
fn form(who: &Principal, job: &Job, it: &Question, words: &'static QuestionWords) -> Form {
    let mut known = vec![Bit::Soft(words.of_plan.to_owned()), plan_link(job)];
    if let Some(deadline) = it.asked.deadline {
        known.push(Bit::Soft(words.until.to_owned()));
        known.push(Bit::At(When(deadline)));
    }
    match &it.asked.default {
        Some(default) => {
            known.push(Bit::Soft(words.or_default.to_owned()));
            known.push(Bit::Strong(default.to_string()));
        }
        None => known.push(Bit::Soft(words.or_ends.to_owned())),
    }
    let may = plans::may_answer(who, job);
    let button = if may { words.go } else { "" };
    let action = format!("/ui/questions/{}/answer", job.id);
    let form = Form::new(format!("q-{}", job.id), action, button).look(Look::Main);
    let form = form.named(&*it.asked.text).known(known);
    if !may {
        return form.hint(words.not_yours);
    }
    let default = it.asked.default.as_deref().unwrap_or_default();
    if it.asked.options.is_empty() {
        return form.with(Input::line("answer", words.answer, default).needed());
    }
    let options = it.asked.options.iter();
    let options = options.map(|it| (it.to_string(), &**it == default)).collect();
    let choose = Input::line("answer", words.choose, "");
    form.with(Input { kind: InputKind::Options(options), ..choose })
}

async fn answer(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = QuestionWords::of(Lang::of(&ask.headers));
    let fields = Fields::of(&ask)?;
    let given = match fields.filled("answer") {
        Some(answer) => plans::give(&ask, &who, answer.to_owned()).await,
        None => Err(refusal::invalid("answer", words.missing)),
    };
    shell::told(&ask, "/ui/questions", given.map(|_| words.done.to_owned()))
}
