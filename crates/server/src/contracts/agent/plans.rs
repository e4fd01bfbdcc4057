//! Plans: create, list, read, report, answer. What a plan that is done asks for is made in the same
//! commit as its result is kept: all of it or none.

use super::find::{self, Wanted};
use super::wire::{AgentPlans, AnswerPlan, CreateRun, ReportPlan};
use super::{runs, translate, triggers, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::cursor;
use crate::json;
use crate::limits::PLAN_CHILDREN_MAX;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_engine::store::EntityFilter;
use mainspring_kernel::agent::{Purpose, id_of};
use mainspring_kernel::command::{Complete, Ended, Ending, Fail, RunInternally};
use mainspring_kernel::entity::question::{self, Asked, Question, QuestionCommand};
use mainspring_kernel::entity::trigger::TriggerType;
use mainspring_kernel::entity::{Body, Entity, EntityId, Kind};
use mainspring_kernel::event::TASK_EXECUTION_FAILED;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::job::{Failure, LeaseToken};
use mainspring_kernel::limits::TOTAL_MAX;
use mainspring_kernel::{Command, Job, JobId, Payload, Principal, Rejection, Role, Roles};
use serde_json::Value;

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    runs::make(ask, who, Purpose::Plan).await
}

/// What a job asked last, if it is a plan that may have asked.
pub(super) async fn question(ask: &Ask, job: &Job) -> Result<Option<Question>, Refusal> {
    // Only what was started, or reported without that, can have asked.
    if Purpose::of(&job.job_type) != Some(Purpose::Plan) || job.started_at.is_none() {
        return Ok(None);
    }
    let found = ask.engine().entity(question::of_job(job.id)).await?;
    Ok(found.and_then(of_entity))
}

fn of_entity(entity: Entity) -> Option<Question> {
    if let Body::Question(question) = entity.body { Some(*question) } else { None }
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = find::visible(&ask, &who, &[Purpose::Plan]).await?;
    shown(&ask, &job).await
}

async fn shown(ask: &Ask, job: &Job) -> Result<Reply, Refusal> {
    let question = question(ask, job).await?;
    Ok(runs::bare(StatusCode::OK, &view::plan(job, question.as_ref())))
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&find::LIST.map(|(name, _)| name))?;
    if query.get("status") == Some(view::NEEDS_INPUT) {
        return waiting(&ask, &who).await;
    }
    let states = query.get("status").map(runs::states).transpose()?;
    let wanted = Wanted { purposes: vec![Purpose::Plan], states };
    let found = find::page(&ask, &who, &query, &wanted).await?;
    let mut items = Vec::with_capacity(found.jobs.len());
    for job in &found.jobs {
        items.push(view::plan(job, question(&ask, job).await?.as_ref()));
    }
    let plans = AgentPlans {
        items,
        next_cursor: found.next,
        total: found.total,
        total_at_least: found.total_at_least,
    };
    Ok(runs::bare(StatusCode::OK, &plans))
}

/// Plans that wait for an answer: those that have an open question.
async fn waiting(ask: &Ask, who: &Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["status", "limit", "cursor"])?;
    let state = Some(Question::STATES[0].to_owned());
    let filter = EntityFilter { state, ..EntityFilter::of(Kind::Question, auth::scope(who)) };
    let list = digest(&[b"agent questions", format!("{filter:?}").as_bytes()]);
    let before = match query.get("cursor") {
        Some(text) => Some(cursor::read(list, text).ok_or_else(refusal::cursor_invalid)?),
        None => None,
    };
    let before = before.map(|bits| EntityId { kind: Kind::Question, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let counted = ask.engine().count_entities(&filter, TOTAL_MAX + 1).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for question in page.items.into_iter().filter_map(of_entity) {
        // One whose job was dropped meanwhile is about to be withdrawn.
        if let Some(found) = ask.engine().job(question.job).await? {
            items.push(view::plan(&found.job, Some(&question)));
        }
    }
    let is_exact = counted <= TOTAL_MAX;
    let plans = AgentPlans {
        items,
        next_cursor: page.next.map(|last| cursor::write(list, last.bits)),
        total: is_exact.then_some(counted as u64),
        total_at_least: (!is_exact).then_some(TOTAL_MAX as u64),
    };
    Ok(runs::bare(StatusCode::OK, &plans))
}

pub(super) async fn answer(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: AnswerPlan = json::read(json::check(&ask.body)?)?;
    let job = give(&ask, &who, wire.answer).await?;
    after(&ask, job).await
}

/// Whether somebody may answer what a plan has asked.
pub(crate) fn may_answer(who: &Principal, job: &Job) -> bool {
    who.can_steer(&job.tenant, &job.user) || who.roles.has(Role::Approver)
}

/// Answers what the plan of the path has asked.
pub(crate) async fn give(ask: &Ask, who: &Principal, answer: String) -> Result<JobId, Refusal> {
    let job = find::visible(ask, who, &[Purpose::Plan]).await?;
    if !may_answer(who, &job) {
        return Err(refusal::denied());
    }
    if question(ask, &job).await?.is_none() {
        return Err(Rejection::QuestionConflict { state: "not asked" }.into());
    }
    let (answer, by) = (answer.into(), who.user.clone());
    let command = QuestionCommand::Answer { job: job.id, answer, by, shown: None };
    ask.engine().execute_one(command.into()).await??;
    Ok(job.id)
}

/// The plan as it is after something was done to it.
async fn after(ask: &Ask, id: JobId) -> Result<Reply, Refusal> {
    let job = ask.engine().job(id).await?.ok_or_else(refusal::job_unknown)?.job;
    shown(ask, &job).await
}

/// Takes what came of a plan: from whoever holds its lease, or, while nobody does, from whoever may
/// work or steer it.
pub(super) async fn report(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: ReportPlan = json::read(json::check(&ask.body)?)?;
    translate::version(wire.schema_version)?;
    let token = match wire.lease_token.as_deref() {
        Some(text) => Some(text.parse::<LeaseToken>().map_err(|()| Rejection::LeaseLost)?),
        None => None,
    };
    let job = runs::reportable(&ask, &who, &[Purpose::Plan]).await?;
    let job = match (job, token) {
        (Some(job), Some(_)) => job,
        (None, Some(_)) => return Err(Rejection::LeaseLost.into()),
        (Some(job), None)
            if who.can_steer(&job.tenant, &job.user) || who.roles.has(Role::Worker) =>
        {
            job
        }
        (_, None) => return Err(find::unseen(&who)),
    };
    let reporter = Reporter { job: &job, token, who: &who };
    let command = match wire.status.as_str() {
        "done" => done(&ask, &reporter, wire).await?,
        "needs_input" => needs_input(&reporter, &wire)?,
        "failed" => reporter.failed(wire.error.as_deref().unwrap_or("the planner failed")),
        _ => return Err(refusal::invalid("status", "must be done, needs_input or failed")),
    };
    ask.engine().execute_one(command).await??;
    after(&ask, job.id).await
}

/// Who reports on which plan.
struct Reporter<'a> {
    job: &'a Job,
    /// Under which lease; none while nobody was handed the plan.
    token: Option<LeaseToken>,
    who: &'a Principal,
}

impl Reporter<'_> {
    fn done(&self, result: Payload) -> Command {
        let (job, result) = (self.job.id, Some(result));
        match self.token {
            Some(token) => Command::Complete(Complete { job, token, result }),
            None => self.told(Ended::Well { result }),
        }
    }

    /// A plan that failed is told of, and never tried again.
    fn failed(&self, message: &str) -> Command {
        let code = TASK_EXECUTION_FAILED.into();
        let failure = Failure { code, message: message.into(), retryable: false };
        match self.token {
            Some(token) => {
                let job = self.job.id;
                let (retry_delay_ms, result, snooze_ms) = (None, None, None);
                Command::Fail(Fail { job, token, failure, retry_delay_ms, result, snooze_ms })
            }
            None => self.told(Ended::Badly { failure, result: None }),
        }
    }

    fn told(&self, ended: Ended) -> Command {
        let by = self.who.user.clone();
        let ending = Ending::Told(ended);
        Command::RunInternally(RunInternally { job: self.job.id, by, ending })
    }
}

fn needs_input(reporter: &Reporter<'_>, wire: &ReportPlan) -> Result<Command, Refusal> {
    let question = wire.question.as_deref().filter(|question| !question.trim().is_empty());
    let Some(question) = question else {
        return Ok(reporter.failed("needs_input missing question"));
    };
    let asked = Asked {
        text: question.into(),
        options: wire.options.iter().flatten().map(|option| option.as_str().into()).collect(),
        default: wire.default.as_deref().map(Into::into),
        deadline: translate::instant("deadline", wire.deadline.as_deref())?,
    };
    let (job, by) = (reporter.job.id, reporter.who.user.clone());
    Ok(QuestionCommand::Ask { job, token: reporter.token, by, asked: Box::new(asked) }.into())
}

/// What a plan that is done asks for, and its result, all or none.
async fn done(ask: &Ask, reporter: &Reporter<'_>, wire: ReportPlan) -> Result<Command, Refusal> {
    let tasks = wire.tasks.unwrap_or_default().into_iter().map(|entry| ("tasks", entry));
    let triggers = wire.triggers.unwrap_or_default().into_iter().map(|entry| ("triggers", entry));
    let entries: Vec<(&str, Value)> = tasks.chain(triggers).collect();
    if entries.len() > PLAN_CHILDREN_MAX {
        return Err(refusal::invalid("tasks", "and triggers must be at most 200 in all"));
    }
    let mut kept = view::PlanKept::default();
    let mut commands = Vec::with_capacity(entries.len() + 1);
    for (index, (list, entry)) in entries.into_iter().enumerate() {
        let prompt = entry.get("prompt").and_then(Value::as_str).unwrap_or("");
        if prompt.trim().is_empty() {
            kept.skipped += 1;
            continue;
        }
        let kind = entry.get("type").and_then(Value::as_str).and_then(TriggerType::parse);
        let place = format!("{list}[{index}]");
        let (id, entry) = child(reporter.job, index, entry);
        let told = |refusal| within(&place, refusal);
        if kind.is_some() || list == "triggers" {
            commands.push(trigger(ask, reporter, &entry).await.map_err(told)?);
            kept.triggers.push(id);
        } else {
            commands.push(run(ask, reporter, &entry).map_err(told)?);
            kept.tasks.push(id);
        }
    }
    let result = serde_json::to_string(&kept).expect("our own shapes are JSON");
    let ending = reporter.done(result.into());
    // What ended is told of again, not made again.
    if commands.is_empty() || reporter.job.state.name().is_terminal() {
        return Ok(ending);
    }
    commands.insert(0, ending);
    Ok(Command::Together(commands))
}

/// An entry of a plan with its name, trace and parent. The name follows from the plan and the place
/// of the entry, unless it is chosen: the repeat of a report makes no second one.
fn child(plan: &Job, index: usize, mut entry: Value) -> (String, Value) {
    let place = (index as u64).to_be_bytes();
    let bits = u128::from_be_bytes(digest(&[b"plan child", &plan.id.0.to_be_bytes(), &place]).0);
    let chosen = entry.get("id").and_then(Value::as_str).map(str::to_owned);
    let id = chosen.unwrap_or_else(|| translate::fresh_id(bits));
    if let Value::Object(fields) = &mut entry {
        if fields.get("id").is_none_or(Value::is_null) {
            fields.insert("id".to_owned(), Value::from(id.as_str()));
        }
        fields.insert("traceId".to_owned(), Value::from(plan.trace_id()));
        fields.insert("parentTaskId".to_owned(), Value::from(id_of(plan)));
    }
    (id, entry)
}

/// One run that a plan asks for.
fn run(ask: &Ask, reporter: &Reporter<'_>, entry: &Value) -> Result<Command, Refusal> {
    let text = entry.to_string();
    let wire: CreateRun = json::read(&text)?;
    let config = &ask.app.config;
    let plan = reporter.job;
    let wish = translate::run(&wire, Purpose::Run, plan.id.0, &config.agent)?;
    let submit = wish.submit(&plan.tenant, &plan.user, config.name_window_secs)?;
    Ok(Command::Submit(Box::new(submit)))
}

/// One trigger that a plan asks for. It belongs to whoever the plan belongs to, and sees no more.
async fn trigger(ask: &Ask, reporter: &Reporter<'_>, entry: &Value) -> Result<Command, Refusal> {
    let text = entry.to_string();
    let (tenant, user) = (reporter.job.tenant.clone(), reporter.job.user.clone());
    let roles = Roles::of(&[Role::Submitter]);
    let owner = Principal { tenant, user, roles, ..reporter.who.clone() };
    let wish = triggers::read(ask, &owner, json::read(&text)?)?;
    crate::triggers::room(ask, &owner).await?;
    Ok(crate::triggers::command(ask, &owner, wish).await?.into())
}

/// The refusal of a part, told of the whole.
fn within(place: &str, mut refusal: Refusal) -> Refusal {
    refusal.message = format!("{place}: {}", refusal.message).into();
    let field = refusal.field.as_deref().filter(|field| !field.is_empty());
    let field = field.map_or_else(|| place.to_owned(), |field| format!("{place}.{field}"));
    refusal.rejection = None;
    refusal.at(field)
}
