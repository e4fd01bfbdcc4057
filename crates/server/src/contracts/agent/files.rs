//! Taking over what another system kept in files: records of the document's layout, of version 1 or
//! 2, as they were found. What cannot be read is told and passed over; what is there already stays
//! as it is, so taking over twice changes nothing. `mainspring import agent` reads the files.

use super::wire::{ImportRecords, ImportedRecord, ImportedRecords};
use super::{find, runs, translate, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use crate::limits::IMPORT_MAX;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_api::Time;
use mainspring_engine::store::Scope;
use mainspring_kernel::agent::{Past, Purpose, RunId, RunWish};
use mainspring_kernel::command::{Ended, Submit};
use mainspring_kernel::entity::question::{Asked, QuestionCommand};
use mainspring_kernel::event::TASK_EXECUTION_FAILED;
use mainspring_kernel::job::Failure;
use mainspring_kernel::limits::RUN_PRIORITY_MAX;
use mainspring_kernel::view::agent::{IMPORT_PLACES, RUN_KILLED};
use mainspring_kernel::{JobId, Principal, Receipt, Rejection, StateName, Timestamp};
use serde_json::Value;

/// Where records are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Queue,
    Running,
    Results,
    PlannerQueue,
    PlannerRunning,
    PlannerResults,
    TaskStatus,
}

impl Place {
    const ALL: [Place; 7] = [
        Place::Queue,
        Place::Running,
        Place::Results,
        Place::PlannerQueue,
        Place::PlannerRunning,
        Place::PlannerResults,
        Place::TaskStatus,
    ];

    fn parse(text: &str) -> Option<Place> {
        let at = IMPORT_PLACES.iter().position(|place| *place == text)?;
        Place::ALL.get(at).copied()
    }
}

/// What a record asks for.
#[derive(Debug)]
struct Record {
    wish: RunWish,
    /// What it asks a person, if it waits for that.
    asked: Option<Asked>,
}

pub(super) async fn import(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: ImportRecords = json::read(json::check(&ask.body)?)?;
    ask.let_go_of_body();
    let place = Place::parse(&wire.place).ok_or_else(|| {
        refusal::invalid("place", format_args!("must be one of {}", IMPORT_PLACES.join(", ")))
    })?;
    if wire.items.len() > IMPORT_MAX {
        return Err(refusal::invalid("items", "must have at most 1000 entries"));
    }
    let now = ask.engine().now();
    let mut items = Vec::with_capacity(wire.items.len());
    let mut wishes: Vec<(usize, Submit, Option<Asked>)> = Vec::new();
    for record in &wire.items {
        let id = text(record, "id").map(str::to_owned);
        let outcome = match read(record, place, &ask, now) {
            Ok(read) => match submission(&read, &ask, &who, place).await? {
                Ok(Some(submit)) => {
                    wishes.push((items.len(), submit, read.asked));
                    ("imported", None)
                }
                Ok(None) => ("present", None),
                Err(reason) => ("skipped", Some(reason)),
            },
            Err(reason) => ("skipped", Some(reason)),
        };
        items.push(ImportedRecord { id, outcome: outcome.0, reason: outcome.1 });
    }
    take(&ask, &who, wishes, &mut items).await?;
    Ok(runs::bare(StatusCode::OK, &ImportedRecords { items }))
}

/// The submission that a record stands for; none if there is something of that name, where the name
/// is all that the record tells.
async fn submission(
    record: &Record,
    ask: &Ask,
    who: &Principal,
    place: Place,
) -> Result<Result<Option<Submit>, String>, Refusal> {
    if let (Place::TaskStatus, RunId::Chosen(id)) = (place, &record.wish.id)
        && named(ask, who, id).await?.is_some()
    {
        return Ok(Ok(None));
    }
    let window = ask.app.config.name_window_secs;
    let mut submit = match record.wish.submit(&who.tenant, &who.user, window) {
        Ok(submit) => submit,
        Err(rejection) => return Ok(Err(rejection.to_string())),
    };
    if record.asked.is_some() {
        // It is not to be started before it was asked, nor after that before the answer.
        submit.run_at = Some(ask.engine().now().plus_millis(UNASKED_MS));
    }
    Ok(Ok(Some(submit)))
}

async fn named(
    ask: &Ask,
    who: &Principal,
    id: &str,
) -> Result<Option<mainspring_kernel::Job>, Refusal> {
    let tenant = Scope::Tenant(who.tenant.clone());
    find::job(ask, &who.tenant, &tenant, id, &[Purpose::Run, Purpose::Plan]).await
}

/// Submits what was read, and writes down what became of each.
async fn take(
    ask: &Ask,
    who: &Principal,
    wishes: Vec<(usize, Submit, Option<Asked>)>,
    items: &mut [ImportedRecord],
) -> Result<(), Refusal> {
    let submits = wishes.iter().map(|(_, submit, _)| submit.clone()).collect();
    let (outcomes, untaken) = ask.engine().submit_many(submits).await?;
    if let Some(error) = untaken {
        return Err(error.into());
    }
    for ((at, _, asked), outcome) in wishes.into_iter().zip(outcomes) {
        let job = match outcome {
            Ok(Receipt::Submitted { job }) => job,
            Ok(Receipt::Existing { job, .. }) => {
                items[at].outcome = "present";
                job
            }
            Ok(_) => return Err(refusal::internal()),
            Err(rejection) => {
                items[at].outcome = "skipped";
                items[at].reason = Some(told(&rejection));
                continue;
            }
        };
        if let Some(asked) = asked {
            wait_for_answer(ask, who, job, asked).await?;
        }
    }
    Ok(())
}

/// Has a plan wait for the answer to what it asked elsewhere. One that was taken over before, and
/// not yet asked, is asked now.
async fn wait_for_answer(
    ask: &Ask,
    who: &Principal,
    job: JobId,
    asked: Asked,
) -> Result<(), Refusal> {
    let found = ask.engine().job(job).await?.map(|found| found.job);
    if found.is_none_or(|job| job.state.name() != StateName::Queued) {
        return Ok(());
    }
    let (by, asked) = (who.user.clone(), Box::new(asked));
    let command = QuestionCommand::Ask { job, token: None, by, asked };
    ask.engine().execute_one(command.into()).await??;
    Ok(())
}

fn told(rejection: &Rejection) -> String {
    if *rejection == Rejection::IdempotencyConflict {
        return "there is a run or plan of that id already, and it differs".to_owned();
    }
    rejection.to_string()
}

/// Reads one record; says why it is passed over.
fn read(record: &Value, place: Place, ask: &Ask, now: Timestamp) -> Result<Record, String> {
    if !record.is_object() {
        return Err("is not an object".to_owned());
    }
    match record.get("schemaVersion") {
        None | Some(Value::Null) => {}
        Some(version) if matches!(version.as_u64(), Some(1 | 2)) => {}
        Some(_) => return Err("schemaVersion is not 1 or 2".to_owned()),
    }
    let id = text(record, "id").ok_or("has no id")?;
    let settings = &ask.app.config.agent;
    let (purpose, snapshot) = match place {
        Place::Queue | Place::Running => (Purpose::Run, record),
        Place::Results | Place::TaskStatus => {
            (Purpose::Run, record.get("task").filter(|it| it.is_object()).unwrap_or(record))
        }
        Place::PlannerQueue | Place::PlannerRunning => (Purpose::Plan, record),
        Place::PlannerResults => {
            (Purpose::Plan, record.get("task").filter(|it| it.is_object()).unwrap_or(record))
        }
    };
    let attempts = number(record, "attempts").and_then(|it| u16::try_from(it).ok()).unwrap_or(0);
    let either = |field: &str| {
        let found = text(record, field).or_else(|| text(snapshot, field));
        found.map(Box::<str>::from)
    };
    let is_plan = purpose == Purpose::Plan;
    let max_attempts = if is_plan { 1 } else { settings.max_attempts.max(attempts).max(1) };
    let priority = number(snapshot, "priority").and_then(|it| u8::try_from(it).ok());
    let timeout = number(snapshot, "timeout").and_then(|it| u32::try_from(it).ok());
    let prompt = text(snapshot, "prompt").unwrap_or("");
    let mut wish = RunWish {
        priority: priority.filter(|priority| *priority <= RUN_PRIORITY_MAX),
        trace: either("traceId"),
        parent_task_id: either("parentTaskId"),
        timeout_secs: timeout.filter(|secs| *secs > 0),
        defer_until: instant(snapshot, "deferUntil"),
        max_attempts,
        backoff_ms: if is_plan { 0 } else { settings.backoff_ms },
        source_trigger_id: either("sourceTriggerId"),
        triggered_at: instant(snapshot, "triggeredAt"),
        created_at: instant(snapshot, "createdAt"),
        attempts,
        ..RunWish::plain(purpose, RunId::Chosen(id.into()), prompt)
    };
    let mut asked = None;
    match place {
        Place::Queue | Place::PlannerQueue if prompt.trim().is_empty() => {
            return Err("has no prompt".to_owned());
        }
        Place::Queue | Place::PlannerQueue => {}
        Place::Running => wish.past = Some(killed(record, now, "the worker was killed")),
        Place::PlannerRunning => wish.past = Some(killed(record, now, "planner interrupted")),
        Place::Results => wish.past = Some(ended(record, now, place)?),
        Place::TaskStatus => {
            instant(record, "completedAt").ok_or("has no completedAt")?;
            wish.past = Some(ended(record, now, place)?);
        }
        Place::PlannerResults if text(record, "status") == Some(view::NEEDS_INPUT) => {
            let question = text(record, "question").unwrap_or("");
            if question.trim().is_empty() {
                wish.past = Some(killed(record, now, "needs_input missing question"));
            } else {
                asked = Some(question_of(record, question));
                if prompt.trim().is_empty() {
                    wish.prompt = question.into();
                }
            }
        }
        Place::PlannerResults => wish.past = Some(ended(record, now, place)?),
    }
    Ok(Record { wish, asked })
}

/// How long a plan that is about to wait for an answer is kept from being started: a year.
const UNASKED_MS: u64 = 365 * 24 * 3600 * 1000;

fn question_of(record: &Value, question: &str) -> Asked {
    let options = record.get("options").and_then(Value::as_array);
    Asked {
        text: question.into(),
        options: options.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect(),
        default: text(record, "default").map(Into::into),
        deadline: instant(record, "deadline"),
    }
}

/// A record of something that nobody will go on with.
fn killed(record: &Value, now: Timestamp, message: &str) -> Box<Past> {
    let failure = Failure { code: RUN_KILLED.into(), message: message.into(), retryable: false };
    Box::new(Past {
        started_at: instant(record, "startedAt"),
        completed_at: Some(now),
        duration_ms: None,
        ended: Ended::Badly { failure, result: None },
    })
}

/// How something ended, as its record tells.
fn ended(record: &Value, now: Timestamp, place: Place) -> Result<Box<Past>, String> {
    let result_type = translate::result_type(text(record, "resultType")).unwrap_or("text");
    let told = |result: &Value| translate::wrapped(result_type, &result.to_string());
    let result = match place == Place::PlannerResults {
        true => Some(plan_kept(record).into()),
        false => record.get("result").map(told),
    };
    let ended = match text(record, "status") {
        Some("done") => Ended::Well { result },
        Some("failed") => {
            let error = text(record, "error");
            let failure = translate::failed(text(record, "failureReason"), error);
            let failure = failure.unwrap_or_else(|_| Failure {
                code: TASK_EXECUTION_FAILED.into(),
                message: error.unwrap_or("").into(),
                retryable: false,
            });
            Ended::Badly { failure, result }
        }
        Some(_) => return Err("has a status that is not known".to_owned()),
        None => return Err("has no status".to_owned()),
    };
    Ok(Box::new(Past {
        started_at: instant(record, "startedAt"),
        completed_at: Some(instant(record, "completedAt").unwrap_or(now)),
        duration_ms: number(record, "durationMs"),
        ended,
    }))
}

/// What a plan made, by name, as far as its record tells.
fn plan_kept(record: &Value) -> String {
    let names = |field: &str| {
        let entries = record.get(field).and_then(Value::as_array).into_iter().flatten();
        let name = |entry: &Value| entry.as_str().or_else(|| text(entry, "id")).map(str::to_owned);
        entries.filter_map(name).collect()
    };
    let kept = view::PlanKept { tasks: names("tasks"), triggers: names("triggers"), skipped: 0 };
    serde_json::to_string(&kept).expect("our own shapes are JSON")
}

fn text<'a>(record: &'a Value, field: &str) -> Option<&'a str> {
    record.get(field).and_then(Value::as_str)
}

fn number(record: &Value, field: &str) -> Option<u64> {
    record.get(field).and_then(Value::as_u64)
}

/// An instant in any offset: records are read as they are.
fn instant(record: &Value, field: &str) -> Option<Timestamp> {
    let time = text(record, field)?.parse::<Time>().ok()?;
    Some(Timestamp(time.0))
}
