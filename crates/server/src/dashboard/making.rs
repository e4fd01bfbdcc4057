//! Making a type, a subscription or a trigger by a form. What was typed stays when it is refused;
//! what may be asked for, and by whom, is the native contract's to say.

use super::blocks::{Bit, Block, BlockPage, Form, Head, Input, Look, Tone};
use super::form::Fields;
use super::inside::Inside;
use super::shell::{self, Frame, encoded};
use super::words::{Lang, words};
use super::{Page, schedules, subscriptions, triggers, types};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::openapi::Doc;
use crate::refusal::{self, Kind, Refusal};
use crate::route::table::{ADMINS, OPERATORS, SUBMITTERS, get, page, post};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Principal;
use std::str::FromStr;

/// Where the forms are. Words of their own: a thing may be called anything.
pub(super) const NEW_TYPE: &str = "/ui/new-type";
pub(super) const NEW_SUBSCRIPTION: &str = "/ui/new-subscription";
pub(super) const NEW_TRIGGER: &str = "/ui/new-trigger";

pub(super) fn routes() -> Vec<Route> {
    let form = |path, rule| post(path, rule, Takes::Form, Doc::hidden());
    vec![
        get(NEW_TYPE, page!(ADMINS, type_form), Doc::hidden()),
        form("/ui/types", page!(ADMINS, set_type)),
        get(NEW_SUBSCRIPTION, page!(OPERATORS, subscription_form), Doc::hidden()),
        form("/ui/subscriptions", page!(OPERATORS, make_subscription)),
        get(NEW_TRIGGER, page!(SUBMITTERS, trigger_form), Doc::hidden()),
        form("/ui/triggers", page!(SUBMITTERS, make_trigger)),
    ]
}

words! {
    MakingWords {
        type_title: "A type of jobs", "作业类型";
        type_lead: "What is promised for its jobs. Empty fields are the house's defaults; jobs that are there keep what they were given.", "该类型作业的约定。留空则用默认值；已有作业保持原样。";
        type_go: "Save the type", "保存类型";
        type_done: "The type is saved.", "类型已保存。";
        name: "Name", "名称";
        domain: "Domain", "领域";
        queue: "Queue", "队列";
        priority: "Priority", "优先级";
        timeout: "Timeout of a try, in seconds", "单次超时（秒）";
        retries: "Retries after the first try", "首次之后的重试次数";
        limit: "At most at a time", "最大并发";
        limit_hint: "no limit if empty", "留空为不限";
        scope: "Counted over", "并发范围";
        scope_global: "the whole server", "整个服务器";
        scope_tenant: "a tenant", "每个租户";
        scope_user: "a user", "每个用户";
        backoff_base: "First delay of retries, in ms", "首次重试延迟（毫秒）";
        backoff_max: "Longest delay, in ms", "最长延迟（毫秒）";
        start_within: "Alert if one starts so much later than due, in ms", "开始晚于到期多久则告警（毫秒）";
        finish_within: "Alert if one ends so much later than due, in ms", "结束晚于到期多久则告警（毫秒）";
        within_hint: "never if empty", "留空则不告警";
        schedulable: "Schedules may make them", "可由计划任务创建";
        yes: "yes", "是";
        no: "no", "否";
        subscription_title: "New subscription", "新建订阅";
        subscription_lead: "Each event is a signed request to a URL, in order and until it is taken.", "每个事件都是发往 URL 的签名请求，按顺序发送直到被接收。";
        subscription_go: "Subscribe", "订阅";
        url: "URL", "URL";
        events: "Only these events", "只发送这些事件";
        of_types: "Only jobs of these types", "只针对这些类型的作业";
        in_queues: "Only jobs in these queues", "只针对这些队列的作业";
        list_hint: "with commas between; all if empty", "用逗号分隔；留空为全部";
        secret: "Secret", "密钥";
        secret_once: "The subscription is made. Requests are signed with this secret; it is shown only now.", "订阅已创建。请求用此密钥签名；密钥只显示这一次。";
        to_it: "Go to the subscription", "查看订阅";
        trigger_title: "New trigger", "新建触发器";
        trigger_lead: "It makes agent runs every so often, once, or when a condition holds.", "它会按周期、定时或在条件成立时创建 agent 运行。";
        trigger_go: "Make the trigger", "创建触发器";
        trigger_done: "The trigger is made.", "触发器已创建。";
        prompt: "What its runs are to do", "运行内容";
        kind: "When it fires", "触发方式";
        recurring: "every so often", "按周期";
        scheduled: "once", "只一次";
        conditional: "when a condition holds", "条件成立时";
        interval: "Every so many seconds", "间隔秒数";
        at: "Once, at", "一次，于";
        at_hint: "such as 2026-12-24T18:00:00Z", "例如 2026-12-24T18:00:00Z";
        condition: "Condition, as JSON", "条件（JSON）";
        cooldown: "Seconds between two runs", "两次运行之间的秒数";
        name_hint: "one is made up if empty", "留空则自动生成";
    }
}

/// A page with one form: what it is for, the form, and why it was refused.
fn asking(
    ask: &Ask,
    who: &Principal,
    (page, path): (&'static Page, &str),
    (title, lead): (&'static str, &'static str),
    (form, problem): (Form, Option<Refusal>),
) -> Result<Reply, Refusal> {
    let frame = Frame::new(ask, who, page).titled(title, path.to_owned());
    let head = Head { title: title.to_owned(), lead: Some(lead.to_owned()), ..Head::default() };
    let mut top = vec![Block::Head(head)];
    if let Some(no) = problem {
        if !no.is_for_the_form() {
            return Err(no);
        }
        top.push(Block::Say(Tone::Bad, format!("{} ({})", no.message, no.code)));
    }
    top.push(Block::Forms { name: title, forms: vec![form.look(Look::Main)] });
    BlockPage::plain(frame, top).reply()
}

/// What a form came to: the page of what it made says so, or the form again says why not.
fn settled(
    ask: &Ask,
    (page, said): (Result<String, Refusal>, &'static str),
    again: impl FnOnce(Refusal) -> Result<Reply, Refusal>,
) -> Result<Reply, Refusal> {
    match page {
        Ok(page) => shell::told(ask, &page, Ok(said.to_owned())),
        Err(no) => again(no),
    }
}

/// A field that is a number, if there is something in it.
pub(super) fn number<T: FromStr>(
    fields: &Fields,
    name: &'static str,
) -> Result<Option<T>, Refusal> {
    let read =
        |text: &str| text.parse().map_err(|_| refusal::invalid(name, "is not such a number"));
    fields.filled(name).map(read).transpose()
}

/// Names with commas between them.
fn names(fields: &Fields, name: &str) -> Vec<String> {
    let parts = fields.filled(name).unwrap_or_default().split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

pub(super) fn choices(pairs: &[(&str, &'static str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(code, name)| ((*code).to_owned(), (*name).to_owned())).collect()
}

/// The form of a type that is there already has what it is now.
async fn type_form(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = super::blocks::query(&ask, &["name"])?;
    let fields = match query.get("name") {
        Some(name) => known(&ask, &who, name).await?.map(|it| of_type(&it)),
        None => None,
    };
    type_asked(&ask, &who, &fields.unwrap_or_default(), None)
}

/// A type as it is, if it is.
async fn known(
    ask: &Ask,
    who: &Principal,
    name: &str,
) -> Result<Option<api::registry::Type>, Refusal> {
    let path = format!("/api/v1/types/{}", encoded(name));
    match Inside::new(ask, who).get(&path).await {
        Ok(it) => Ok(Some(it)),
        Err(no) if no.kind == Kind::Unknown => Ok(None),
        Err(no) => Err(no),
    }
}

fn of_type(it: &api::registry::Type) -> Fields {
    let shown = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    let sla = it.sla.unwrap_or_default();
    Fields::known([
        ("name", it.job_type.clone()),
        ("domain", it.domain.clone()),
        ("queue", it.queue.clone()),
        ("priority", it.priority.to_string()),
        ("timeout_seconds", it.timeout_seconds.to_string()),
        ("max_retries", it.max_retries.to_string()),
        ("concurrency_limit", shown(it.concurrency_limit)),
        ("concurrency_scope", it.concurrency_scope.clone()),
        ("backoff_base_ms", it.backoff_base_ms.to_string()),
        ("backoff_max_ms", it.backoff_max_ms.to_string()),
        ("start_within_ms", shown(sla.start_within_ms)),
        ("finish_within_ms", shown(sla.finish_within_ms)),
        ("schedulable", if it.schedulable { "yes" } else { "no" }.to_owned()),
    ])
}

fn type_asked(
    ask: &Ask,
    who: &Principal,
    fields: &Fields,
    problem: Option<Refusal>,
) -> Result<Reply, Refusal> {
    let words = MakingWords::of(Lang::of(&ask.headers));
    let value = |name: &str| fields.get(name).unwrap_or_default().to_owned();
    let line = |name: &'static str, label: &'static str| Input::line(name, label, value(name));
    let scopes = [
        ("global", words.scope_global),
        ("tenant", words.scope_tenant),
        ("user", words.scope_user),
    ];
    let may = [("yes", words.yes), ("no", words.no)];
    let scope = value("concurrency_scope");
    let schedulable = value("schedulable");
    let form = Form::new("type", "/ui/types", words.type_go)
        .with(line("name", words.name).needed())
        .with(line("queue", words.queue))
        .with(line("timeout_seconds", words.timeout))
        .with(line("max_retries", words.retries))
        .with(line("priority", words.priority))
        .with(line("concurrency_limit", words.limit).hint(words.limit_hint))
        .with(Input::choice("concurrency_scope", words.scope, scope, choices(&scopes)))
        .with(line("backoff_base_ms", words.backoff_base))
        .with(line("backoff_max_ms", words.backoff_max))
        .with(line("start_within_ms", words.start_within).hint(words.within_hint))
        .with(line("finish_within_ms", words.finish_within).hint(words.within_hint))
        .with(line("domain", words.domain))
        .with(Input::choice("schedulable", words.schedulable, schedulable, choices(&may)));
    let texts = (words.type_title, words.type_lead);
    asking(ask, who, (&types::TYPES, NEW_TYPE), texts, (form, problem))
}

async fn set_type(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let name = fields.filled("name").unwrap_or_default();
    let set = async {
        let mut wish = type_wish(&fields)?;
        // How its jobs are executed and held back is no field of the form, and stays.
        if let Some(known) = known(&ask, &who, name).await? {
            wish.executor = known.executor;
            wish.concurrency_key = known.concurrency_key;
            wish.rate_limit = known.rate_limit;
            wish.circuit = known.circuit;
        }
        let body = serde_json::to_vec(&wish).map_err(|_| refusal::internal())?;
        let path = format!("/api/v1/types/{}", encoded(name));
        let inside = Inside::new(&ask, &who);
        let it: api::registry::Type = inside.send(&Method::PUT, &path, body.into()).await?;
        Ok(format!("/ui/types/{}", encoded(&it.job_type)))
    };
    let said = MakingWords::of(Lang::of(&ask.headers)).type_done;
    settled(&ask, (set.await, said), |no| type_asked(&ask, &who, &fields, Some(no)))
}

fn type_wish(fields: &Fields) -> Result<api::registry::SetType, Refusal> {
    let text = |name: &str| fields.filled(name).map(str::to_owned);
    if fields.filled("name").is_none() {
        return Err(refusal::invalid("name", "is missing"));
    }
    let sla = api::registry::TypeSla {
        start_within_ms: number(fields, "start_within_ms")?,
        finish_within_ms: number(fields, "finish_within_ms")?,
    };
    Ok(api::registry::SetType {
        domain: text("domain"),
        schedulable: text("schedulable").map(|may| may == "yes"),
        priority: number(fields, "priority")?,
        timeout_seconds: number(fields, "timeout_seconds")?,
        max_retries: number(fields, "max_retries")?,
        concurrency_limit: number(fields, "concurrency_limit")?,
        concurrency_scope: text("concurrency_scope"),
        queue: text("queue"),
        backoff_base_ms: number(fields, "backoff_base_ms")?,
        backoff_max_ms: number(fields, "backoff_max_ms")?,
        executor: None,
        concurrency_key: None,
        rate_limit: None,
        circuit: None,
        sla: (sla != api::registry::TypeSla::default()).then_some(sla),
    })
}

async fn subscription_form(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    subscription_asked(&ask, &who, &Fields::default(), None)
}

fn subscription_asked(
    ask: &Ask,
    who: &Principal,
    fields: &Fields,
    problem: Option<Refusal>,
) -> Result<Reply, Refusal> {
    let words = MakingWords::of(Lang::of(&ask.headers));
    let value = |name: &str| fields.get(name).unwrap_or_default().to_owned();
    let line = |name: &'static str, label: &'static str| Input::line(name, label, value(name));
    let form = Form::new("subscription", "/ui/subscriptions", words.subscription_go)
        .with(line("name", words.name).needed())
        .with(line("url", words.url).needed().hint("https://example.com/hook"))
        .with(line("events", words.events).hint(words.list_hint))
        .with(line("types", words.of_types).hint(words.list_hint))
        .with(line("queues", words.in_queues).hint(words.list_hint));
    let texts = (words.subscription_title, words.subscription_lead);
    asking(ask, who, (&subscriptions::PAGE, NEW_SUBSCRIPTION), texts, (form, problem))
}

async fn make_subscription(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let (events, types, queues) =
        (names(&fields, "events"), names(&fields, "types"), names(&fields, "queues"));
    let filter = api::subscription::SubscriptionFilter { types, queues, all_tenants: false };
    let is_narrow = !filter.types.is_empty() || !filter.queues.is_empty();
    let wish = api::subscription::CreateSubscription {
        name: fields.filled("name").unwrap_or_default().to_owned(),
        url: Some(fields.filled("url").unwrap_or_default().to_owned()),
        events: (!events.is_empty()).then_some(events),
        filter: is_narrow.then_some(filter),
        ..api::subscription::CreateSubscription::default()
    };
    let inside = Inside::new(&ask, &who);
    let made = inside.post::<api::subscription::Subscription>("/api/v1/subscriptions", &wish).await;
    let made = match made {
        Ok(made) => made,
        Err(no) => return subscription_asked(&ask, &who, &fields, Some(no)),
    };
    let words = MakingWords::of(Lang::of(&ask.headers));
    let href = format!("/ui/subscriptions/{}", made.subscription_id);
    let frame = Frame::new(&ask, &who, &subscriptions::PAGE).titled(&made.name, href.clone());
    let head = Head { title: made.name.clone(), ..Head::default() };
    let top = vec![
        Block::Head(head),
        Block::Say(Tone::Good, words.secret_once.to_owned()),
        Block::Text {
            id: "secret",
            name: words.secret,
            class: "",
            bits: vec![Bit::Link { href, text: words.to_it.to_owned() }],
            text: made.secret.unwrap_or_default(),
        },
    ];
    BlockPage::plain(frame, top).reply()
}

async fn trigger_form(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    trigger_asked(&ask, &who, &Fields::default(), None)
}

fn trigger_asked(
    ask: &Ask,
    who: &Principal,
    fields: &Fields,
    problem: Option<Refusal>,
) -> Result<Reply, Refusal> {
    let words = MakingWords::of(Lang::of(&ask.headers));
    let value = |name: &str| fields.get(name).unwrap_or_default().replace("\r\n", "\n");
    let line = |name: &'static str, label: &'static str| Input::line(name, label, value(name));
    let kinds = [
        ("recurring", words.recurring),
        ("scheduled", words.scheduled),
        ("conditional", words.conditional),
    ];
    let form = Form::new("trigger", "/ui/triggers", words.trigger_go)
        .with(line("id", words.name).hint(words.name_hint))
        .with(Input::choice("kind", words.kind, value("kind"), choices(&kinds)))
        .with(line("interval", words.interval))
        .with(line("at", words.at).hint(words.at_hint))
        .with(line("cooldown", words.cooldown))
        .with(Input::area("condition", words.condition, value("condition")))
        .with(Input::area("prompt", words.prompt, value("prompt")).needed());
    let texts = (words.trigger_title, words.trigger_lead);
    asking(ask, who, (&triggers::PAGE, NEW_TRIGGER), texts, (form, problem))
}

async fn make_trigger(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let fields = Fields::of(&ask)?;
    let make = async {
        let wish = trigger_wish(&fields)?;
        let inside = Inside::new(&ask, &who);
        let it: api::trigger::Trigger = inside.post("/api/v1/triggers", &wish).await?;
        Ok(format!("/ui/triggers/{}", encoded(&it.id)))
    };
    let said = MakingWords::of(Lang::of(&ask.headers)).trigger_done;
    settled(&ask, (make.await, said), |no| trigger_asked(&ask, &who, &fields, Some(no)))
}

/// What a form asks for, as native takes it: only the fields of its kind.
fn trigger_wish(fields: &Fields) -> Result<api::trigger::SetTrigger, Refusal> {
    let kind = fields.filled("kind").unwrap_or("recurring").to_owned();
    let mut wish = api::trigger::SetTrigger {
        id: fields.filled("id").map(str::to_owned),
        prompt: fields.filled("prompt").unwrap_or_default().to_owned(),
        ..api::trigger::SetTrigger::default()
    };
    let schedule = api::trigger::TriggerSchedule::default();
    match kind.as_str() {
        "conditional" => {
            let condition = fields.filled("condition").map(serde_json::from_str).transpose();
            wish.condition = condition.map_err(|_| refusal::invalid("condition", "is not JSON"))?;
            wish.cooldown = number(fields, "cooldown")?;
        }
        "scheduled" => {
            let run_at = schedules::time(fields, "at")?;
            wish.schedule = Some(api::trigger::TriggerSchedule { run_at, ..schedule });
        }
        _ => {
            let interval = number(fields, "interval")?;
            wish.schedule = Some(api::trigger::TriggerSchedule { interval, ..schedule });
        }
    }
    wish.kind = kind;
    Ok(wish)
}
