"""Records the conversations that every SDK replays: `record.py` rewrites the files beside it from a
live server, `record.py --check` says whether a live server still answers in the same shapes.

MAINSPRING_URL and MAINSPRING_TOKEN name the server and a token with every role. What no server can
be made to say at will (429, 503) is written by hand and marked `made`. README.md has the format.
"""

import http.client
import json
import os
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
URL = urlsplit(os.environ.get("MAINSPRING_URL", "http://127.0.0.1:7070"))
TOKEN = os.environ.get("MAINSPRING_TOKEN", "")
#: Makes keys and types of one recording its own.
RUN = f"{time.time_ns():x}"
WORKER = "replay-worker"
#: The answers of headers that clients act on.
KEPT_HEADERS = ("retry-after",)


def ask(method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=60)
    sent = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
    text = None
    if body is not None:
        text, sent["Content-Type"] = json.dumps(body), "application/json"
    connection.request(method, path, text, sent)
    answer = connection.getresponse()
    data = json.loads(answer.read())
    kept = {name: value for name, value in answer.headers.items() if name.lower() in KEPT_HEADERS}
    connection.close()
    return answer.status, kept, data


class Recording:
    """One conversation: what the SDK is made to do, and what is said."""

    def __init__(self, name, about):
        self.name = name
        self.whole = {"about": about, "exchanges": []}

    def say(self, method, path, body=None, headers=None, **marks):
        """Says something to the server and keeps it with its answer."""
        status, kept, data = ask(method, path, body, headers)
        self.keep(method, path, body, headers, status, kept, data, **marks)
        return data.get("data")

    def keep(self, method, path, body, headers, status, kept, data, **marks):
        request = {"method": method, "path": path}
        if headers:
            request["headers"] = headers
        if body is not None:
            request["body"] = body
        answer = {"status": status, "body": data}
        if kept:
            answer["headers"] = kept
        self.whole["exchanges"].append({"request": request, "answer": answer, **marks})

    def make(self, method, path, body, status, code, message, retry_after=None, **marks):
        """An exchange written by hand."""
        error = {"code": code, "message": message, "class": "transient", "retryable": status >= 429}
        data = {"success": False, "error": error, "meta": {"trace_id": "t", "request_id": "r"}}
        kept = {} if retry_after is None else {"retry-after": str(retry_after)}
        self.keep(method, path, body, None, status, kept, data, made=True, **marks)

    def client(self, call, arguments, gives=None, error=None):
        step = {"call": call, "with": arguments}
        if error is not None:
            step["error"] = error
        else:
            step["gives"] = gives
        self.whole.setdefault("client", []).append(step)

    def worker(self, types, summary, **more):
        options = {"worker_id": WORKER, "concurrency": 1, "lease_ms": 15000, "wait_ms": 20000}
        options.update(more.pop("options", {}))
        self.whole["worker"] = {"options": options, "types": types, "summary": summary, **more}

    def idle_until_stop(self, type_name, given=None, limit=1, lease_ms=5000):
        """The poll that waits until the worker says that it leaves."""
        result = {}
        wish = pull(type_name, limit=limit, lease_ms=lease_ms)

        def poll():
            result["poll"] = ask("POST", "/api/v1/work/pull", wish)

        waiting = threading.Thread(target=poll)
        waiting.start()
        time.sleep(0.2)
        if given is not None:
            given()
        left = ask("POST", "/api/v1/work/leave", {"worker_id": WORKER})
        waiting.join()
        status, kept, data = result["poll"]
        self.keep("POST", "/api/v1/work/pull", wish, None, status, kept, data, hold=True)
        status, kept, data = left
        self.keep("POST", "/api/v1/work/leave", {"worker_id": WORKER}, None, status, kept, data, after_stop=True)
        return result["poll"][2]["data"]["jobs"]


def pull(type_name, limit=1, wait_ms=20000, lease_ms=5000):
    types = [type_name] if isinstance(type_name, str) else sorted(type_name)
    return {"worker_id": WORKER, "types": types, "limit": limit, "wait_ms": wait_ms, "lease_ms": lease_ms}


def submit(type_name, payload, **more):
    wish = {"job_type": type_name, "payload": payload, **more}
    return ask("POST", "/api/v1/jobs", wish)[2]["data"]["job_id"]


def lease(job, **more):
    return {"job_id": job["job_id"], "lease_token": job["lease_token"], **more}


def type_named(name, **spec):
    name = f"{name}-{RUN}"
    ask("PUT", f"/api/v1/types/{name}", spec)
    return name


# The conversations.


def record_submit():
    tape = Recording("submit", "A job is submitted, read, listed and cancelled; a batch; a type.")
    kind, key = type_named(f"{tape.name}-mail"), f"{tape.name}-{RUN}"
    wish = {"job_type": kind, "payload": {"to": "ann"}, "idempotency_key": key, "labels": {"a": "b c"}}
    job = tape.say("POST", "/api/v1/jobs", wish)
    more = {"idempotency_key": key, "labels": {"a": "b c"}}
    tape.client("submit", [kind, {"to": "ann"}, more], {"job_id": job["job_id"], "status": "queued"})
    read = tape.say("GET", f"/api/v1/jobs/{job['job_id']}")
    tape.client("job", [job["job_id"]], {"payload": read["payload"], "labels": {"a": "b c"}})
    page = tape.say("GET", f"/api/v1/jobs?type={kind}&limit=1&label=a%3Db%20c")
    tape.client("jobs", [{"job_type": kind, "limit": 1, "labels": {"a": "b c"}}], {"total": page["total"]})
    events = tape.say("GET", f"/api/v1/jobs/{job['job_id']}/events")
    tape.client("job_events", [job["job_id"]], {"items": events["items"]})
    tape.say("POST", f"/api/v1/jobs/{job['job_id']}/cancel", {"reason": "enough"})
    tape.client("cancel", [job["job_id"], "enough"], {"status": "cancelled"})
    jobs = [{"job_type": kind, "payload": n} for n in range(2)]
    batch = tape.say("POST", "/api/v1/jobs/batch", {"jobs": jobs})
    tape.client("submit_batch", [jobs], {"items": batch["items"]})
    tape.say("GET", f"/api/v1/types/{kind}")
    tape.client("job_type", [kind], {"job_type": kind, "priority": 50})
    return tape


def record_hit():
    tape = Recording("hit", "The same key again is the same job; with another payload it is refused.")
    kind, key = type_named(f"{tape.name}-mail"), f"{tape.name}-{RUN}"
    wish = {"job_type": kind, "payload": {"n": 1}, "idempotency_key": key}
    job = tape.say("POST", "/api/v1/jobs", wish)
    tape.client("submit", [kind, {"n": 1}, {"idempotency_key": key}], {"idempotent_hit": False})
    tape.say("POST", "/api/v1/jobs", wish)
    again = {"job_id": job["job_id"], "idempotent_hit": True}
    tape.client("submit", [kind, {"n": 1}, {"idempotency_key": key}], again)
    tape.say("POST", "/api/v1/jobs", {**wish, "payload": {"n": 2}})
    error = {"status": 409, "code": "IDEMPOTENCY_CONFLICT"}
    tape.client("submit", [kind, {"n": 2}, {"idempotency_key": key}], error=error)
    tape.say("GET", "/api/v1/jobs/job_00000000000000000000000000%2F..")
    status = tape.whole["exchanges"][-1]["answer"]
    error = {"status": status["status"], "code": status["body"]["error"]["code"]}
    tape.client("job", ["job_00000000000000000000000000/.."], error=error)
    return tape


def record_429():
    tape = Recording("429", "A client that is told to wait does, and asks again, key or not.")
    kind = type_named(f"{tape.name}-mail")
    wish = {"job_type": kind, "payload": None}
    told = "this tenant has too many jobs waiting"
    tape.make("POST", "/api/v1/jobs", wish, 429, "TENANT_BACKLOG_FULL", told, 1)
    tape.say("POST", "/api/v1/jobs", wish, not_before_ms=1000)
    tape.client("submit", [kind, None, {}], {"status": "queued"})
    return tape


def record_503():
    tape = Recording("503", "A server that is away is asked again, but only for what may be repeated.")
    kind, key = type_named(f"{tape.name}-mail"), f"{tape.name}-{RUN}"
    wish = {"job_type": kind, "payload": None}
    told = "the store cannot be reached"
    tape.make("POST", "/api/v1/jobs", wish, 503, "STORE_UNAVAILABLE", told, 0)
    tape.client("submit", [kind, None, {}], error={"status": 503, "code": "STORE_UNAVAILABLE"})
    keyed = {**wish, "idempotency_key": key}
    tape.make("POST", "/api/v1/jobs", keyed, 503, "STORE_UNAVAILABLE", told, 1)
    tape.say("POST", "/api/v1/jobs", keyed, not_before_ms=1000)
    tape.client("submit", [kind, None, {"idempotency_key": key}], {"idempotent_hit": False})
    return tape


def record_complete():
    tape = Recording("complete", "A worker pulls, and reports and fetches in one request.")
    kind = type_named(f"{tape.name}-mail")
    for n in range(2):
        submit(kind, {"n": n})
    first = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    more = pull(kind, wait_ms=0)
    done = {"items": [lease(first, result={"sent": 1})], "pull": more}
    second = tape.say("POST", "/api/v1/work/complete", done)["jobs"][0]
    done = {"items": [lease(second, result={"sent": 1})], "pull": more}
    assert tape.say("POST", "/api/v1/work/complete", done)["jobs"] == []
    tape.idle_until_stop(kind)
    tape.worker({kind: {"complete": {"sent": 1}}}, {"completed": 2})
    return tape


def record_fail():
    tape = Recording("fail", "Failures with their own code: one that may pass, one that will not.")
    kind, other = type_named(f"{tape.name}-mail", max_retries=5), type_named(f"{tape.name}-post")
    wish = sorted([kind, other])
    submit(kind, 1)
    first = tape.say("POST", "/api/v1/work/pull", pull(wish))["jobs"][0]
    submit(other, 2)
    passing = {"error_code": "SMTP_BUSY", "message": "later", "retryable": True, "retry_delay_ms": 60000}
    more = pull(wish, wait_ms=0)
    said = {"items": [lease(first, **passing)], "pull": more}
    second = tape.say("POST", "/api/v1/work/fail", said)["jobs"][0]
    lasting = {"error_code": "NO_ADDRESS", "message": "nobody", "retryable": False}
    tape.say("POST", "/api/v1/work/fail", {"items": [lease(second, **lasting)], "pull": more})
    tape.idle_until_stop(wish)
    types = {kind: {"fail": passing}, other: {"fail": lasting}}
    tape.worker(types, {"failed": 2})
    return tape


def record_heartbeat():
    tape = Recording("heartbeat", "One heartbeat for all leases tells who has lost one, and who is cancelled.")
    kind = type_named(f"{tape.name}-mail", max_retries=5)
    ids = [submit(kind, {"n": n}) for n in range(2)]
    jobs = tape.say("POST", "/api/v1/work/pull", pull(kind, limit=2, lease_ms=600))["jobs"]
    cancelled, lost = sorted(jobs, key=lambda job: ids.index(job["job_id"]))
    ask("POST", f"/api/v1/jobs/{cancelled['job_id']}/cancel", {})
    ask("POST", "/api/v1/work/release", {"items": [lease(lost)]})
    items = [lease(job, progress=50) for job in jobs]
    beat = {"worker_id": WORKER, "lease_ms": 600, "items": items}
    answer = tape.say("POST", "/api/v1/work/heartbeat", beat)
    assert [item.get("cancelled") or item.get("lost") for item in answer["items"]] == [True, True], answer
    ask("POST", f"/api/v1/jobs/{lost['job_id']}/cancel", {})
    tape.idle_until_stop(kind, limit=2, lease_ms=600)
    tape.whole["exchanges"][-2]["whatever"] = ["limit"]
    stops = {cancelled["job_id"]: "cancelled", lost["job_id"]: "lease_lost"}
    options = {"concurrency": 2, "lease_ms": 600}
    tape.worker({kind: {"wait_for_stop": 50}}, {"lost": 2}, stops=stops, options=options)
    return tape


def record_effect():
    tape = Recording("effect", "A step is done once: the second try gets the value of the first.")
    kind = type_named(f"{tape.name}-pay", max_retries=5, backoff_base_ms=1, backoff_max_ms=1)
    job_id = submit(kind, {"n": 1})
    path = f"/api/v1/work/effects/{job_id}/charge%20it"
    first = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    tape.say("GET", path, headers={"x-lease-token": first["lease_token"]})
    value = {"receipt": 7}
    told = tape.say("PUT", path, {"lease_token": first["lease_token"], "value": value})
    assert told["is_first"] is True
    failed = {"error_code": "TASK_EXECUTION_FAILED", "message": "first try", "retryable": True}
    more = pull(kind, wait_ms=0)
    jobs = tape.say("POST", "/api/v1/work/fail", {"items": [lease(first, **failed)], "pull": more})["jobs"]
    assert jobs == [], "the retry is not due yet"
    second = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    tape.say("GET", path, headers={"x-lease-token": second["lease_token"]})
    done = {"items": [lease(second, result=value)], "pull": more}
    tape.say("POST", "/api/v1/work/complete", done)
    tape.idle_until_stop(kind)
    does = {"step": "charge it", "value": value, "fails_first": "first try"}
    tape.worker({kind: does}, {"completed": 1, "failed": 1}, steps=1)
    return tape


def record_checkpoint():
    tape = Recording("checkpoint", "What a try leaves is there for the next one; putting a job off uses up no try.")
    kind = type_named(f"{tape.name}-rows", max_retries=0)
    submit(kind, {"n": 1})
    first = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    left = {"row": 7}
    progress = {"checkpoint": left, "percent": 50, "message": "row 7"}
    beat = {"worker_id": WORKER, "lease_ms": 1000, "items": [lease(first, progress=progress)]}
    assert "lease_expires_at" in tape.say("POST", "/api/v1/work/heartbeat", beat)["items"][0]
    said = {"error_code": "TASK_EXECUTION_FAILED", "message": "not yet", "retryable": True, "snooze_ms": 100}
    more = pull(kind, wait_ms=0)
    jobs = tape.say("POST", "/api/v1/work/fail", {"items": [lease(first, **said)], "pull": more})["jobs"]
    assert jobs == [], "it was put off"
    second = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    assert (second["checkpoint"], second["attempt"]) == (left, 1), second
    tape.say("POST", "/api/v1/work/complete", {"items": [lease(second, result=left)], "pull": more})
    tape.idle_until_stop(kind)
    does = {"checkpoint": left, "percent": 50, "message": "row 7", "snooze_ms": 100, "reason": "not yet"}
    tape.worker({kind: does}, {"completed": 1, "failed": 1})
    return tape


def record_drain():
    tape = Recording("drain", "A worker that stops finishes what runs and gives back what came late.")
    kind = type_named(f"{tape.name}-mail")
    submit(kind, 1)
    first = tape.say("POST", "/api/v1/work/pull", pull(kind, limit=2))["jobs"][0]
    late = tape.idle_until_stop(kind, lambda: submit(kind, 2))[0]
    given_back = {"items": [lease(late, reason="the worker is shutting down")]}
    tape.say("POST", "/api/v1/work/release", given_back, after_stop=True)
    done = {"items": [lease(first, result="done")]}
    tape.say("POST", "/api/v1/work/complete", done, after_stop=True)
    options = {"concurrency": 2}
    tape.worker({kind: {"complete_after_stop": "done"}}, {"completed": 1, "released": 1}, options=options)
    return tape


def record_stale():
    tape = Recording("stale", "A report that comes too late is refused, and the worker goes on.")
    kind = type_named(f"{tape.name}-mail", max_retries=5)
    submit(kind, 1)
    first = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    ask("POST", f"/api/v1/jobs/{first['job_id']}/cancel", {})
    done = {"items": [lease(first)], "pull": pull(kind, wait_ms=0)}
    answer = tape.say("POST", "/api/v1/work/complete", done)
    assert answer["items"][0]["error"]["code"] == "LEASE_LOST", answer
    tape.idle_until_stop(kind)
    tape.worker({kind: {"complete": None}}, {"refused": 1})
    return tape


def record_refused():
    tape = Recording("refused", "A result that the server does not take becomes a failure that says so.")
    kind = type_named(f"{tape.name}-mail", max_retries=0)
    submit(kind, 1)
    deep = 1
    for _ in range(140):
        deep = [deep]
    first = tape.say("POST", "/api/v1/work/pull", pull(kind))["jobs"][0]
    done = {"items": [lease(first, result=deep)], "pull": pull(kind, wait_ms=0)}
    tape.say("POST", "/api/v1/work/complete", done)
    answer = tape.whole["exchanges"][-1]["answer"]
    assert answer["status"] == 400, answer
    error = answer["body"]["error"]
    said = {"error_code": "RESULT_REFUSED", "message": f"{error['code']}: {error['message']}", "retryable": False}
    tape.say("POST", "/api/v1/work/fail", {"items": [lease(first, **said)]})
    tape.idle_until_stop(kind)
    tape.worker({kind: {"complete": deep}}, {"failed": 1})
    return tape


def record_away():
    tape = Recording("away", "A worker whose server is away waits as it is told, and asks again.")
    kind = type_named(f"{tape.name}-mail")
    wish = pull(kind)
    tape.make("POST", "/api/v1/work/pull", wish, 503, "SHUTTING_DOWN", "the server is stopping", 1)
    tape.idle_until_stop(kind)
    tape.whole["exchanges"][1]["not_before_ms"] = 1000
    tape.worker({kind: {"complete": None}}, {})
    return tape


ALL = [
    record_submit,
    record_hit,
    record_429,
    record_503,
    record_complete,
    record_fail,
    record_heartbeat,
    record_effect,
    record_checkpoint,
    record_drain,
    record_stale,
    record_refused,
    record_away,
]


def shape(value):
    """What an answer looks like, whatever it says. Where a null may stand, anything may."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    if isinstance(value, bool) or value is None:
        return value
    return type(value).__name__


def shapes(whole):
    told = []
    for exchange in whole["exchanges"]:
        method, path = exchange["request"]["method"], exchange["request"]["path"].split("?")[0]
        names = [part for part in path.split("/") if not any(c.isdigit() for c in part[2:])]
        told.append((method, names, exchange["answer"]["status"], shape(exchange["answer"]["body"])))
    return told


def main():
    is_check = sys.argv[1:] == ["--check"]
    stale = []
    for record in ALL:
        tape = record()
        path = HERE / f"{tape.name}.json"
        if not is_check:
            text = json.dumps(tape.whole, indent=1, ensure_ascii=False)
            if len(text) > 20_000:  # what is nested this deep is no easier to read with spaces
                text = json.dumps(tape.whole, ensure_ascii=False)
            path.write_text(text + "\n")
        elif shapes(json.loads(path.read_text())) != shapes(tape.whole):
            stale.append(tape.name)
            (Path(os.environ.get("TMPDIR", "/tmp")) / f"{tape.name}.fresh.json").write_text(json.dumps(tape.whole, indent=1))
    if stale:
        sys.exit(f"the server answers otherwise than recorded: {', '.join(stale)}; see record.py")
    print(f"{len(ALL)} conversations {'are as recorded' if is_check else 'recorded'}")


if __name__ == "__main__":
    main()
