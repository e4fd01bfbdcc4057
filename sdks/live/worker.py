"""A worker for the live tests: `worker.py TYPE WORK_MS`. It uses the installed package."""

import os
import sys
import time
import uuid

from mainspring import Worker

kind, work_ms = sys.argv[1], int(sys.argv[2])
worker = Worker(concurrency=8, lease=1.0, wait=2.0, drain_grace=3.0, stop_grace=0.3)


@worker.task(kind)
def work(ctx):
    once = ctx.step("once", lambda: {"by": os.getpid(), "at": uuid.uuid4().hex})
    if ctx.payload.get("stubborn"):
        ctx.progress(1)
        time.sleep(60)  # paced: it is the handler that does not listen
    ctx.wait(work_ms / 1000)
    ctx.check()
    return {"n": ctx.payload["n"], "once": once}


summary = worker.run()
print(summary, flush=True)
