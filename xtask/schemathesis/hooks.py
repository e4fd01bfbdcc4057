"""What a run is spared, and what JSON Schema has no words for. Nothing else is kept from it.

Spared. Schemathesis finds the ids of tokens in answers and tries them all, so it would revoke or
rotate the token it asks with and get nothing but 401 from then on. And it asks servers to wait for a minute:
each such case is answered as it should, but a run of thousands would take days.

No words. JSON Schema counts characters where the server counts bytes (`x-max-bytes` has the bound),
and cannot compare two values with one another, or an instant with now, or know a cursor that the
server gave. A case that was generated as right is bent until it keeps such a rule; a wrong one stays
as it is. Tests in Rust hold what is bent here: look for the names beside each rule.
"""

import os
import re
import unicodedata
from datetime import datetime, timedelta, timezone

import schemathesis

# Tokens that were there before the run.
OWN = set(os.environ["SCHEMATHESIS_KEPT_TOKENS"].split(","))

# Longest wait that is asked for, in milliseconds. What is out of bounds stays as it is.
WAIT_MS = 20
WAIT_MS_BOUND = 60_000

# Instants far enough ahead for an end, and near enough for a beginning.
SOON = datetime.now(timezone.utc) + timedelta(days=1)
DURING = "2500-01-01T00:00:00Z"
LATER = "2999-12-31T00:00:00Z"

# Patterns and zones in place of texts that are none.
CRONS = ["0 3 * * *", "*/15 9-17 * * MON-FRI", "0 0 L * ?", "@hourly", "30 0 12 1 1,7 *"]
ZONES = ["UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"]


@schemathesis.hook
def before_call(context, case, kwargs):
    spare(case)
    if case.meta is not None and case.meta.generation.mode.is_positive:
        bend(case, bounds(context.operation.schema.raw_schema))


def spare(case):
    if (case.path_parameters or {}).get("token_id") in OWN:
        case.path_parameters["token_id"] = "tok_00000000000000000000000000"
    change(case, "body", shortened(case.body))
    query = dict(case.query or {})
    if str(query.get("wait_ms", "")).isdecimal():
        query["wait_ms"] = wait(int(query["wait_ms"]))
        change(case, "query", query)


def change(case, part, value):
    """Only what differs is put in place: schemathesis judges anew what was touched."""
    if value != getattr(case, part):
        setattr(case, part, value)


def shortened(value):
    """The value with every valid wait in it cut short."""
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: wait(item) if name == "wait_ms" else shortened(item) for name, item in value.items()}


def wait(value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return WAIT_MS if is_number and WAIT_MS < value <= WAIT_MS_BOUND else value


def bend(case, most):
    query = {name: within(value, most.get(name)) for name, value in (case.query or {}).items()}
    # a_cursor_holds_for_its_caller_and_its_filters_only
    query.pop("cursor", None)
    # permanent_codes_are_never_retried
    if str(query.get("force_fail")).lower() == "true":
        query.pop("transient_fail", None)
    # a12_a13_a_question_waits_for_its_answer_and_is_in_no_index
    if query.get("status") == "needs_input":
        query = {name: query[name] for name in ("status", "limit") if name in query}
    # d10_the_moves_of_a_job_are_told_with_who_and_why
    if ("object_type" in query) != ("object_id" in query) and "/scheduler/audits" in case.path:
        query = {name: query[name] for name in query if not name.startswith("object_")}
    if case.query:
        change(case, "query", query)
    path = {name: within(value, most.get(name)) for name, value in (case.path_parameters or {}).items()}
    # Who may review is in the store, not in the document: the form is tried on an item that is not
    # there. the_form_with_two_reviewers_is_for_the_internal_role
    if isinstance(case.body, dict) and case.body.get("reviewer_id") is not None:
        path["dlq_id"] = "dlq_00000000000000000000000000"
    if case.path_parameters:
        change(case, "path_parameters", path)
    if isinstance(case.body, dict):
        bent = body(case.body, case.headers or {}, most)
        if bent.get("type") in ("recurring", "scheduled", "conditional"):
            bent = trigger(bent, "task_id" if case.path.startswith("/api/") else "taskId")
        if case.path == "/api/v1/subscriptions":
            bent = subscription(bent)
        # a_message_is_a_job_that_is_taken_acknowledged_and_refused
        if case.path.endswith("/enqueue"):
            bent.pop("queue", None)
        change(case, "body", bent)


def body(value, headers, most):
    """A body that keeps the rules about several values."""
    value = {name: fitted(name, item, most) for name, item in value.items()}
    # one_key_is_named_in_one_way
    key = next((headers[name] for name in headers if name.lower() == "idempotency-key"), None)
    if key is not None and value.get("idempotency_key") is not None:
        value["idempotency_key"] = key
    # a_beginning_is_near_and_an_end_lies_behind_it
    run_at = value.get("run_at")
    if isinstance(run_at, str) and not is_past(run_at):
        value["run_at"] = SOON.isoformat()
    if value.get("expires_at") is not None:
        value["expires_at"] = LATER
    if value.get("deadline_at") is not None:
        value["deadline_at"] = LATER
    # foreign_jobs_cannot_be_waited_for
    value.pop("after", None)
    if isinstance(value.get("jobs"), list):
        value["jobs"] = [without_after(job) for job in value["jobs"]]
    if isinstance(value.get("then"), dict):
        # o11_a_batch_is_followed_by_one_job_and_taken_whole
        value.pop("then")
    # a_snooze_uses_no_try
    value.pop("snooze_ms", None)
    # bounds_are_kept
    base, longest = value.get("backoff_base_ms"), value.get("backoff_max_ms")
    if base is not None and longest is not None and base > longest:
        value["backoff_base_ms"], value["backoff_max_ms"] = longest, base
    if "kind" in value and "job_type" in value:
        value = schedule(value)
    if "prompt" in value and value.get("type") not in ("recurring", "scheduled", "conditional"):
        value = wish(value)
    # d03_a_time_in_the_past_is_refused_and_this_second_is_not
    if "object_id" in value and "action" in value and "run_at" in value:
        value["run_at"] = SOON.isoformat()
    # o13_what_makes_no_schedule_is_told
    if isinstance(value.get("cronExpr"), str):
        value["cronExpr"] = CRONS[len(value["cronExpr"]) % len(CRONS)]
    if "taskType" in value and ("cronExpr" in value or "everySeconds" in value):
        value["taskType"] = f"planned-{len(value['taskType'])}"
    if isinstance(value.get("executor"), dict):
        value["executor"] = executor(value["executor"])
    if "task_id" in value and "schedule_type" in value:
        value = task(value)
    # a_trigger_makes_a_job_and_a_backfill_what_was_missing
    if "from" in value and "to" in value:
        value["from"], value["to"] = "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"
    # the_form_with_two_reviewers_is_for_the_internal_role
    one, two = value.get("reviewer_id"), value.get("reviewer_id_2")
    if isinstance(one, str) and isinstance(two, str) and person(one) == person(two):
        value["reviewer_id_2"] = "the second reviewer"
    return value


def executor(value):
    """How a type is executed: by what this server may start, and at nobody's address."""
    # o14_o22_a_type_has_a_mode_of_its_own_that_can_be_changed
    if value.get("command") is not None:
        value["command"], value["shell"] = "/bin/true", False
    if sum(len(text.encode()) + 1 for text in (value.get("args") or []) + (value.get("env") or [])) > 8_000:
        value["args"], value["env"] = [], []
    if isinstance(value.get("cwd"), str):
        value["cwd"] = value["cwd"][:1_000]
    if value.get("url") is not None:
        value["url"] = "https://127.0.0.1:9/"
    return value


def subscription(value):
    """The wish for a subscription: to nobody's address, from a position that there is."""
    # d18_what_is_wrong_foreign_or_too_much_is_refused
    value.pop("after", None)
    value.pop("nats_subject", None)
    value["url"] = "https://127.0.0.1:9/"
    return value


def schedule(value):
    """The wish for a schedule: its pattern is one, and its instants follow one another."""
    # nonsense_is_refused_where_it_stands
    value["job_type"] = f"planned-{len(value['job_type'])}"
    if isinstance(value.get("cron"), str):
        value["cron"] = CRONS[len(value["cron"]) % len(CRONS)]
    if isinstance(value.get("timezone"), str):
        value["timezone"] = ZONES[len(value["timezone"]) % len(ZONES)]
    phase, interval = value.get("phase_seconds"), value.get("interval_seconds")
    if is_number(phase) and is_number(interval) and phase >= interval:
        value["phase_seconds"] = 0
    for name, instant in (("start_at", SOON.isoformat()), ("at", DURING), ("end_at", LATER)):
        if value.get(name) is not None:
            value[name] = instant
    for index, dates in enumerate(value.get("exclude") or []):
        if isinstance(dates, dict) and dates["from"] > dates["to"]:
            value["exclude"][index] = {"from": dates["to"], "to": dates["from"]}
    return value


def task(value):
    """The wish for a task: its pattern is one, and its name is no other thing's."""
    # m10_what_makes_no_sense_is_refused_by_the_name_of_its_field
    for name, known in (("cron_expr", CRONS), ("timezone", ZONES)):
        if isinstance(value.get(name), str):
            value[name] = known[len(value[name]) % len(known)]
    for name in ("scheduled_at", "next_run_at", "last_run_at", "fire_time"):
        if isinstance(value.get(name), str):
            value[name] = re.sub(r"[+-][0-9]{2}:[0-9]{2}$", "Z", value[name])
    if isinstance(value.get("scheduled_at"), str) and not is_past(value["scheduled_at"]):
        value["scheduled_at"] = SOON.strftime("%Y-%m-%dT%H:%M:%SZ")
    if value["task_id"] in (".", "..", "events"):
        value["task_id"] = "task"
    return value


def wish(value):
    """The wish for a run or a plan: in UTC, and near enough."""
    for name in ("createdAt", "deferUntil", "triggeredAt"):
        if isinstance(value.get(name), str):
            value[name] = re.sub(r"[+-][0-9]{2}:[0-9]{2}$", "Z", value[name])
    if isinstance(value.get("deferUntil"), str) and not is_past(value["deferUntil"]):
        value["deferUntil"] = SOON.strftime("%Y-%m-%dT%H:%M:%SZ")
    # Only version 2 has the field.
    if value.get("schemaVersion") == 2:
        value.pop("type", None)
    return value


def trigger(value, task_id):
    """The wish for a trigger: on a condition that is one, with a past that lies in the past."""
    # a05_nonsense_is_refused_where_it_stands
    if value.get("condition") is not None:
        done = {"type": "task_done", "params": {task_id: "task"}}
        asks = {"type": "llm_eval", "params": {"prompt": "is it time?"}}
        both = {"type": "and", "params": {"conditions": [done, {"type": "or", "params": {"conditions": [asks]}}]}}
        value["condition"] = (done, asks, both)[len(str(value["condition"])) % 3]
    for part in (value, value.get("schedule") or {}, value.get("state") or {}):
        for name in [name for name, item in part.items() if isinstance(item, str)]:
            snake = re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
            if snake in ("created_at", "last_run_at", "last_triggered_at", "last_eval_at", "running_at"):
                part[name] = "2020-01-01T00:00:00Z"
            if snake in ("run_at", "next_run_at"):
                part[name] = SOON.isoformat()
        for name in ("last_mtime", "lastMtime"):
            if part.get(name) is not None:
                part[name] = 1_600_000_000_000
    return value


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def person(name):
    return unicodedata.normalize("NFKC", name).strip().casefold()


def is_past(instant):
    return instant[:4].isdecimal() and int(instant[:4]) < SOON.year - 1


def without_after(job):
    """A job of a batch that waits for no other."""
    return {name: job[name] for name in job if name != "after"} if isinstance(job, dict) else job


def fitted(name, value, most):
    """A field that keeps its bound in bytes, and so do the fields and names in it."""
    if name == "labels" and isinstance(value, dict):
        bound = most["labels"]
        return {within(key, bound): within(item, bound) for key, item in value.items()}
    if isinstance(value, dict):
        return {key: fitted(key, item, most) for key, item in value.items()}
    if isinstance(value, list):
        return [fitted(name, item, most) for item in value]
    return within(value, most.get(name))


def within(value, most):
    """Text of at most so many characters, cut to so many bytes."""
    if isinstance(value, list):
        return [within(item, most) for item in value]
    if most is None or not isinstance(value, str) or len(value) > most:
        return value
    if len(value.encode()) <= most:
        return value
    if "=" in value:
        return "name=value"
    return value.encode()[:most].decode(errors="ignore").strip()


BOUNDS = {}


def bounds(document):
    """The bounds in bytes by the name of the field or parameter: a name has one on every route."""
    if not BOUNDS:
        collect(document, None)
    return BOUNDS


def collect(part, name):
    if isinstance(part, list):
        for item in part:
            collect(item, name)
    elif isinstance(part, dict):
        if "in" in part and "schema" in part:
            name = part["name"]
        if "x-max-bytes" in part and name is not None:
            BOUNDS[name] = min(part["x-max-bytes"], BOUNDS.get(name, part["x-max-bytes"]))
        for key, item in part.items():
            if key == "properties" and isinstance(item, dict):
                for field, schema in item.items():
                    collect(schema, field)
            else:
                collect(item, name)
