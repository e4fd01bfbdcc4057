//! What an agent can do: each tool is a route of the native contract, or a page of the manual. A
//! tool has its parameters in the path, in the query or in the body; what it answers is what the
//! route answers.

use crate::pages;
use mainspring_sdk::{Client, Error};
use serde_json::{Map, Value, json};

/// One tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    about: &'static str,
    does: Does,
    /// The path below `/api/v1`; `{name}` stands for a parameter.
    path: &'static str,
    parameters: &'static [Parameter],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    /// Asks with a body, and changes nothing.
    Ask,
    Write,
    /// Reads a page that is part of the program.
    Page,
}

/// A parameter: name, type in JSON Schema, whether it has to be there, and what it is.
struct Parameter(&'static str, &'static str, bool, &'static str);

const JOB: Parameter = Parameter("job_id", "string", true, "The job, as job_…");
const LIMIT: Parameter = Parameter("limit", "integer", false, "At most this many, 1 to 100");
const CURSOR: Parameter =
    Parameter("cursor", "string", false, "next_cursor of the page before, with the same filters");
const STATUS: Parameter = Parameter(
    "status",
    "string",
    false,
    "queued, running, retrying, dlq_pending, dlq_recorded, succeeded, failed or cancelled",
);
const TYPE: Parameter = Parameter("type", "string", false, "Only those of this job type");
const QUEUE: Parameter = Parameter("queue_name", "string", true, "The queue");
const ITEM: Parameter = Parameter("dlq_id", "string", true, "The dead letter, as dlq_…");
const REASON: Parameter = Parameter("reason", "string", false, "Why; it is kept");

const TOOLS: &[Tool] = &[
    read(
        "get_runtime",
        "Version, health of the store, and numbers of jobs by state",
        "runtime",
        &[],
    ),
    read("whoami", "Whose token is used, and its roles", "whoami", &[]),
    read(
        "list_alerts",
        "What the server thinks a person should look at",
        "alerts",
        &[Parameter("state", "string", false, "open, acknowledged or cleared"), LIMIT, CURSOR],
    ),
    read(
        "list_jobs",
        "Jobs, newest first",
        "jobs",
        &[
            STATUS,
            TYPE,
            Parameter("queue", "string", false, "Only those of this queue"),
            Parameter("trace_id", "string", false, "Only those of this trace"),
            Parameter("error_code", "string", false, "Only those whose last failure said this"),
            Parameter("parent_id", "string", false, "Only those made from this job"),
            LIMIT,
            CURSOR,
        ],
    ),
    read("get_job", "One job with its payload, result and last error", "jobs/{job_id}", &[JOB]),
    read("explain_job", "Why a job is not running yet", "jobs/{job_id}/explain", &[JOB]),
    read("list_job_events", "What happened to a job", "jobs/{job_id}/events", &[JOB]),
    read(
        "list_dead_letter_groups",
        "Dead letters by their failure, with counts",
        "dlq/groups",
        &[TYPE, LIMIT],
    ),
    read(
        "list_dead_letters",
        "Dead letters one by one",
        "dlq/items",
        &[
            TYPE,
            Parameter("signature", "string", false, "Only those with this failure"),
            LIMIT,
            CURSOR,
        ],
    ),
    read("get_dead_letter", "One dead letter", "dlq/items/{dlq_id}", &[ITEM]),
    read("list_queues", "Queues with their numbers", "queues", &[]),
    read("list_workers", "Workers heard of lately", "workers", &[LIMIT, CURSOR]),
    read("list_types", "Job types and their rules", "types", &[]),
    read("list_schedules", "Rules that make jobs at set times", "schedules", &[LIMIT, CURSOR]),
    read(
        "preview_schedule",
        "When a schedule will fire next",
        "schedules/{schedule_id}/preview",
        &[
            Parameter("schedule_id", "string", true, "The schedule"),
            Parameter("count", "integer", false, "How many firings, 1 to 100"),
        ],
    ),
    read(
        "get_schedule_history",
        "What became of a schedule's latest firings",
        "schedules/{schedule_id}/history",
        &[Parameter("schedule_id", "string", true, "The schedule")],
    ),
    tool(
        "preview_cron",
        "When a cron pattern would fire, without making a schedule",
        Does::Ask,
        "schedules/preview",
        &[
            Parameter("job_type", "string", true, "A job type that exists"),
            Parameter("cron", "string", true, "Five or six fields, as 0 9 * * MON-FRI"),
            Parameter("timezone", "string", false, "IANA time zone; UTC if left out"),
        ],
    ),
    tool(
        "explain_error",
        "What an error code means, why it comes and what to do",
        Does::Page,
        "",
        &[Parameter("code", "string", true, "The code, as LEASE_LOST")],
    ),
    write(
        "submit_job",
        "Submit a job",
        "jobs",
        &[
            Parameter("job_type", "string", true, "The type"),
            Parameter("payload", "object", true, "What the worker gets"),
            Parameter("idempotency_key", "string", false, "The same key again is the same job"),
            Parameter("queue", "string", false, "The queue; the type's if left out"),
            Parameter("priority", "integer", false, "0 to 255; higher is sooner"),
            Parameter("delay_ms", "integer", false, "Not before so many milliseconds"),
            Parameter("run_at", "string", false, "Not before this instant (RFC 3339)"),
        ],
    ),
    write("cancel_job", "End a job that has not ended", "jobs/{job_id}/cancel", &[JOB, REASON]),
    write(
        "requeue_dead_letter",
        "Have a dead letter done again, as a new job",
        "dlq/items/{dlq_id}/requeue",
        &[ITEM],
    ),
    write("pause_queue", "Stop handing out a queue's jobs", "queues/{queue_name}/pause", &[QUEUE]),
    write("resume_queue", "Hand them out again", "queues/{queue_name}/resume", &[QUEUE]),
    write(
        "trigger_schedule",
        "Have a schedule fire now",
        "schedules/{schedule_id}/trigger",
        &[Parameter("schedule_id", "string", true, "The schedule")],
    ),
    write(
        "acknowledge_alert",
        "Say that somebody looks after an alert",
        "alerts/{alert_id}/ack",
        &[Parameter("alert_id", "string", true, "The alert")],
    ),
];

const fn tool(
    name: &'static str,
    about: &'static str,
    does: Does,
    path: &'static str,
    parameters: &'static [Parameter],
) -> Tool {
    Tool { name, about, does, path, parameters }
}

const fn read(
    name: &'static str,
    about: &'static str,
    path: &'static str,
    parameters: &'static [Parameter],
) -> Tool {
    tool(name, about, Does::Read, path, parameters)
}

const fn write(
    name: &'static str,
    about: &'static str,
    path: &'static str,
    parameters: &'static [Parameter],
) -> Tool {
    tool(name, about, Does::Write, path, parameters)
}

/// The tools that an agent is shown.
pub(super) fn offered(may_write: bool) -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(move |tool| may_write || tool.does != Does::Write)
}

/// A call, ready to be made.
pub(super) enum Asked {
    Get(Vec<String>, Vec<(&'static str, Option<String>)>),
    Post(Vec<String>, Option<Value>),
    Told(String),
}

impl Tool {
    /// The tool as the protocol describes it.
    pub(super) fn described(&self) -> Value {
        let properties: Map<String, Value> = self.parameters.iter().map(described).collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|it| it.2).map(|Parameter(name, ..)| *name).collect();
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": {
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            },
            "annotations": {
                "readOnlyHint": self.does != Does::Write,
                "destructiveHint": self.name == "cancel_job",
                "openWorldHint": false,
            },
        })
    }

    /// The call that these arguments ask for.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn asked(&self, arguments: &Value) -> Result<Asked, String> {
        let given = arguments.as_object().ok_or("the arguments must be an object")?;
        let is_known = |name: &String| self.parameters.iter().any(|it| it.0 == name);
        if let Some(strange) = given.keys().find(|name| !is_known(name)) {
            return Err(format!("{} takes no {strange:?}", self.name));
        }
        for Parameter(name, kind, is_required, _) in self.parameters {
            match given.get(*name) {
                None if *is_required => return Err(format!("{name} is missing")),
                // A path would be shortened by them.
                Some(Value::String(text)) if matches!(text.as_str(), "." | ".." | "") => {
                    return Err(format!("{name} is {text:?}"));
                }
                Some(value) if !is_of(value, kind) => {
                    return Err(format!("{name} must be of type {kind}"));
                }
                Some(_) | None => {}
            }
        }
        let text = |name: &str| match given.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
            None => None,
        };
        let in_path = |name: &str| self.path.contains(&format!("{{{name}}}"));
        let parts = self.path.split('/').map(|part| {
            let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
            name.map_or_else(|| part.to_owned(), |name| text(name).unwrap_or_default())
        });
        let rest = || self.parameters.iter().map(|it| it.0).filter(|name| !in_path(name));
        let body = || {
            let body: Map<String, Value> = rest()
                .filter_map(|name| Some((name.to_owned(), given.get(name)?.clone())))
                .collect();
            (rest().next().is_some()).then_some(Value::Object(body))
        };
        Ok(match self.does {
            Does::Read => {
                Asked::Get(parts.collect(), rest().map(|name| (name, text(name))).collect())
            }
            Does::Write => Asked::Post(parts.collect(), body()),
            Does::Ask => {
                let mut body = body().unwrap_or_default();
                body["kind"] = Value::from("cron");
                Asked::Post(parts.collect(), Some(body))
            }
            Does::Page => {
                let code = text("code").unwrap_or_default().to_ascii_uppercase();
                let page = pages::page(&code).ok_or_else(|| format!("there is no code {code}"))?;
                Asked::Told(page.to_owned())
            }
        })
    }
}

fn described(Parameter(name, kind, _, about): &Parameter) -> (String, Value) {
    ((*name).to_owned(), json!({ "type": kind, "description": about }))
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "object" => value.is_object(),
        _ => false,
    }
}

impl Asked {
    /// Makes the call.
    pub(super) async fn send(self, client: &Client) -> Result<String, Error> {
        match self {
            Asked::Get(parts, query) => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                Ok(client.get_json(&parts, &query).await?.get().to_owned())
            }
            Asked::Post(parts, body) => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                Ok(client.post_json(&parts, body.as_ref()).await?.get().to_owned())
            }
            Asked::Told(page) => Ok(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_writes_is_offered_only_when_allowed() {
        let names = |may_write| offered(may_write).map(|tool| tool.name).collect::<Vec<_>>();
        assert!(names(false).contains(&"list_jobs") && !names(false).contains(&"submit_job"));
        assert!(names(true).contains(&"submit_job"));
        for tool in offered(true) {
            let hint = tool.described()["annotations"]["readOnlyHint"].as_bool().unwrap();
            assert_eq!(hint, tool.does != Does::Write, "{}", tool.name);
        }
    }

    #[test]
    fn no_argument_can_leave_its_place() {
        let get_job = offered(false).find(|tool| tool.name == "get_job").unwrap();
        assert!(get_job.asked(&json!({})).is_err());
        assert!(get_job.asked(&json!({ "job_id": 7 })).is_err());
        assert!(get_job.asked(&json!({ "job_id": "x", "more": 1 })).is_err());
        assert!(get_job.asked(&json!([])).is_err());
        assert!(get_job.asked(&json!({ "job_id": ".." })).is_err());
        let Ok(Asked::Get(parts, _)) = get_job.asked(&json!({ "job_id": "../tokens" })) else {
            panic!()
        };
        // One part, which the client writes so that it stays one.
        assert_eq!(parts, ["jobs", "../tokens"]);
    }
}
