"""A worker by hand with one fault: `sinner.py FAULT`, or `none`. One job at a time, one thread for
the work and one for heartbeats."""

import datetime
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

FAULT = sys.argv[1]
URL = os.environ["MAINSPRING_URL"] + "/api/v1/work/"
LEASE_MS = 3000
STOP = threading.Event()


def say(verb, body):
    request = urllib.request.Request(URL + verb, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]


def patiently(verb, body):
    while True:
        try:
            return say(verb, body)
        except urllib.error.HTTPError as error:
            if error.code != 503 or FAULT == "gives-up":
                raise
            time.sleep(0.05)


def report(verb, item):
    try:
        told = patiently(verb, {"items": [item]})
    except urllib.error.HTTPError:
        return
    if FAULT == "insists" and "error" in told["items"][0]:
        say(verb, {"items": [item]})
    if FAULT == "says-it-twice":
        say(verb, {"items": [item]})


def beat(lease, over, lost):
    while not over.wait(LEASE_MS / 3000) and FAULT != "no-heartbeat":
        told = say("heartbeat", {"worker_id": "sinner", "lease_ms": LEASE_MS, "items": [lease]})["items"][0]
        if told.get("lost") or told.get("cancelled"):
            lost.set()
            over.set()


def attempt(job):
    lease = {"job_id": job["job_id"], "lease_token": job["lease_token"]}
    if FAULT == "mixes-up-leases":
        lease["lease_token"] = "1.0"
    over, lost, wish = threading.Event(), threading.Event(), job["payload"]
    if FAULT == "own-clock":
        end = datetime.datetime.fromisoformat(job["lease_expires_at"].replace("Z", "+00:00"))
        if end < datetime.datetime.now(datetime.timezone.utc):
            return report("fail", {**lease, "error_code": "TOO_LATE"})
    threading.Thread(target=beat, args=(lease, over, lost), daemon=True).start()
    end = time.monotonic() + wish["work_ms"] / 1000
    while time.monotonic() < end and not lost.is_set() and not STOP.is_set():
        time.sleep(0.01)
    over.set()
    if lost.is_set():
        if FAULT == "reports-what-it-lost":
            report("fail", {**lease, "error_code": "STOPPED"})
        return None
    if time.monotonic() < end:
        if FAULT != "drops-its-work":
            report("fail" if FAULT == "fails-its-work" else "release", lease)
        return None
    if wish["fail"]:
        code = "FAILED" if FAULT == "own-codes" else wish["fail"]
        return report("fail", {**lease, "error_code": code, "retryable": False})
    return report("complete", {**lease, "result": wish["value"]})


def stop(*_):
    STOP.set()
    if FAULT != "does-not-say-so":
        threading.Thread(target=say, args=("leave", {"worker_id": "sinner"}), daemon=True).start()


if FAULT != "deaf":
    signal.signal(signal.SIGTERM, stop)
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while not STOP.is_set():
    wish = {"worker_id": "sinner", "types": ["conformance"], "wait_ms": 5000, "lease_ms": LEASE_MS}
    if FAULT == "falls-over":
        jobs = say("pull", wish)["jobs"]
    else:
        jobs = patiently("pull", wish)["jobs"]
    for job in jobs:
        attempt(job)
