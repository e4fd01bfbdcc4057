"""Workers in Python and TypeScript against a live server: killed at random, and told to stop.

`live.py --jobs N --node DIR`: MAINSPRING_URL and MAINSPRING_TOKEN name the server and a token with
every role; the package `mainspring` of this Python is used, and the one in DIR/node_modules.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from mainspring import Client, wish

HERE = Path(__file__).resolve().parent
#: Nothing here takes longer, however slow the machine is.
PATIENCE = 600.0
WORKERS = 3
#: Jobs that are under way when a worker is told to stop.
STOPPED_JOBS = 120


class Language:
    """How workers of a language are started."""

    def __init__(self, name, program):
        self.name = name
        self.program = program
        self.client = Client()
        self.random = random.Random(name)

    def start(self, kind, work_ms):
        command = [*self.program, kind, str(work_ms)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def kind(self, purpose):
        name = f"live-{self.name}-{purpose}-{time.time_ns():x}"
        self.client.set_type(name, max_retries=1000, backoff_base_ms=1, backoff_max_ms=1)
        return name

    def submit(self, kind, count, **payload):
        ids = []
        for first in range(0, count, 1000):
            jobs = [wish(kind, {"n": n, **payload}) for n in range(first, min(first + 1000, count))]
            ids += [item["job_id"] for item in self.client.submit_batch(jobs)["items"]]
        return ids

    def count(self, kind, status):
        return self.client.jobs(job_type=kind, status=status, limit=1)["total"]

    def until(self, what, probe):
        end = time.monotonic() + PATIENCE
        while not probe():
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: waited in vain until {what}")
            time.sleep(0.02)  # paced: the server has no way to tell that all of a type have ended

    def check(self, ids):
        """Every job succeeded, and exactly one success was accepted. Answers who needed more."""
        again = 0
        for n, job_id in enumerate(ids):
            job, history = self.client.job(job_id), self.client.job_events(job_id)["items"]
            accepted = [event for event in history if event["to_state"] == "succeeded"]
            assert job["status"] == "succeeded" and len(accepted) == 1, (job, history)
            assert job["result"]["n"] == n, job
            again += job["retry_count"] > 0
        return again

    def killed(self, count):
        """Workers are killed at random; every job ends exactly once accepted."""
        kind = self.kind("killed")
        ids = self.submit(kind, count)
        workers, kills = [self.start(kind, 10) for _ in range(WORKERS)], 0
        try:
            kills_wanted = 8 if count <= 1000 else 200
            done = 0
            while done < count:
                if kills < kills_wanted:
                    # A worker needs a moment to get hold of something.
                    mark = done + self.random.randrange(1, max(2, count // kills_wanted))
                    self.until("some are done", lambda: self.count(kind, "succeeded") >= min(mark, count))
                    victim = self.random.randrange(len(workers))
                    workers[victim].kill()
                    workers[victim].wait()
                    workers[victim] = self.start(kind, 10)
                    kills += 1
                else:
                    self.until("all are done", lambda: self.count(kind, "succeeded") == count)
                done = self.count(kind, "succeeded")
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        again = self.check(ids)
        assert again > 0, "no kill hit a running job, so nothing was shown"
        told = f"{count} jobs, {kills} kills, {again} jobs tried again, each accepted once"
        print(f"{self.name}: {told}", flush=True)

    def stopped(self):
        """SIGTERM under load: what runs is finished, the rest given back; no try is used up."""
        kind = self.kind("stopped")
        ids = self.submit(kind, STOPPED_JOBS)
        stops = 0
        while True:
            worker = self.start(kind, 30)
            already = self.count(kind, "succeeded")
            least = min(already + STOPPED_JOBS // 4, STOPPED_JOBS)
            self.until("some are done", lambda: self.count(kind, "succeeded") >= least)
            told_at = time.monotonic()
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE) == 0, worker.stdout.read()
            took = time.monotonic() - told_at
            assert took < 6.5, f"{self.name}: it took {took:.1f} s to stop"
            stops += 1
            assert self.count(kind, "running") == 0, "nothing is left in its hands"
            if self.count(kind, "succeeded") == STOPPED_JOBS:
                break
        assert self.check(ids) == 0, "a try was used up"
        assert stops > 1, "it was stopped under load"
        print(f"{self.name}: {STOPPED_JOBS} jobs, {stops} stops, no try used up", flush=True)

    def stubborn(self):
        """A handler that does not listen: the worker ends in time and gives its job back."""
        kind = self.kind("stubborn")
        (job_id,) = self.submit(kind, 1, stubborn=True)
        worker = self.start(kind, 0)
        self.until("it runs", lambda: self.client.job(job_id)["progress_pct"] == 1)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        job = self.client.job(job_id)
        assert job["status"] == "retrying" and job["retry_count"] == 0, job
        assert self.client.job_events(job_id)["items"][-1]["reason_code"] == "RELEASED", job
        self.client.cancel(job_id)

    def run(self, count, problems):
        try:
            side = threading.Thread(target=self.guard, args=(self.stubborn, problems))
            side.start()
            self.stopped()
            self.killed(count)
            side.join()
        except BaseException as error:
            problems.append(f"{self.name}: {error!r}")

    def guard(self, do, problems):
        try:
            do()
        except BaseException as error:
            problems.append(f"{self.name}: {error!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--node", required=True, help="where node_modules/mainspring is")
    asked = parser.parse_args()
    script = shutil.copy(HERE / "worker.mjs", asked.node)
    languages = [
        Language("python", [sys.executable, str(HERE / "worker.py")]),
        Language("typescript", ["node", str(script)]),
    ]
    problems = []
    threads = [threading.Thread(target=it.run, args=(asked.jobs, problems)) for it in languages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
