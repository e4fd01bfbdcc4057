"""A worker on the Python SDK that does what the conformance check asks for."""

from mainspring import Failure, Worker

worker = Worker(concurrency=2, lease=3.0, wait=5.0, drain_grace=0.5, stop_grace=0.5)


@worker.task("conformance")
def work(ctx):
    ctx.wait(ctx.payload["work_ms"] / 1000)
    ctx.check()
    if ctx.payload["fail"]:
        raise Failure.permanent(ctx.payload["fail"])
    return ctx.payload["value"]


worker.run()
