"""The recorded conversations, with both clients and with both kinds of handlers."""

import asyncio
import dataclasses
import threading
import unittest

from mainspring import AsyncClient, Client, Error, Failure, Worker
from replay_server import ReplayServer, transcripts

ALL = transcripts()
TOKEN = "replayed"


def holds(case, got, wanted):
    """Whether an answer holds at least what is wanted."""
    for name, value in wanted.items():
        case.assertEqual(got[name], value, name)


def arguments(step):
    """The last object after the fixed arguments is options."""
    given = list(step["with"])
    fixed = {"submit": 2, "jobs": 0}.get(step["call"], len(given))
    options = given.pop() if len(given) > fixed else {}
    return given, options


class ClientReplay(unittest.TestCase):
    def replay(self, transcript, call):
        server = ReplayServer(transcript)
        try:
            for step in transcript["client"]:
                given, options = arguments(step)
                try:
                    got = call(server.url, step["call"], given, options)
                except Error as error:
                    wanted = step.get("error")
                    self.assertEqual(wanted, {"status": error.status, "code": error.code}, error)
                else:
                    self.assertNotIn("error", step, got)
                    holds(self, got, step["gives"])
            self.assertEqual((server.unexpected, server.left), ([], []))
        finally:
            server.close()

    def test_client(self):
        def call(url, name, given, options):
            with Client(url, TOKEN) as client:
                return getattr(client, name)(*given, **options)

        for name in [name for name in ALL if "client" in ALL[name]]:
            with self.subTest(name):
                self.replay(ALL[name], call)

    def test_async_client(self):
        def call(url, name, given, options):
            async def once():
                async with AsyncClient(url, TOKEN) as client:
                    return await getattr(client, name)(*given, **options)

            return asyncio.run(once())

        for name in [name for name in ALL if "client" in ALL[name]]:
            with self.subTest(name):
                self.replay(ALL[name], call)


class Handlers:
    """What the handlers of a transcript do, and what was seen of it."""

    def __init__(self, stopping):
        self.stopping = stopping
        self.stops = {}
        self.steps = 0

    def work(self, does):
        def count():
            self.steps += 1
            return does["value"]

        return count

    def fail(self, does):
        failed = does["fail"]
        delay = failed.get("retry_delay_ms")
        return Failure(
            failed["error_code"],
            failed["message"],
            retryable=failed["retryable"],
            retry_delay=None if delay is None else delay / 1000,
        )

    def plain(self, does):
        def handler(ctx):
            if "fail" in does:
                raise self.fail(does)
            if "step" in does:
                value = ctx.step(does["step"], self.work(does))
                if ctx.job.attempt == 1:
                    raise Failure(message=does["fails_first"])
                return value
            if "checkpoint" in does:
                if ctx.job.checkpoint is not None:
                    return ctx.job.checkpoint
                ctx.progress(does["percent"], does["message"])
                ctx.checkpoint(does["checkpoint"])
                raise Failure.snooze(does["snooze_ms"] / 1000, does["reason"])
            if "wait_for_stop" in does:
                ctx.progress(does["wait_for_stop"])
                ctx.wait()
                self.stops[ctx.job.job_id] = ctx.stop_reason
                ctx.check()
            if "complete_after_stop" in does:
                self.stopping.wait(20)
                return does["complete_after_stop"]
            return does["complete"]

        return handler

    def asynchronous(self, does):
        async def handler(ctx):
            if "fail" in does:
                raise self.fail(does)
            if "step" in does:
                value = await ctx.step(does["step"], self.work(does))
                if ctx.job.attempt == 1:
                    raise Failure(message=does["fails_first"])
                return value
            if "checkpoint" in does:
                if ctx.job.checkpoint is not None:
                    return ctx.job.checkpoint
                ctx.progress(does["percent"], does["message"])
                await ctx.checkpoint(does["checkpoint"])
                raise Failure.snooze(does["snooze_ms"] / 1000, does["reason"])
            if "wait_for_stop" in does:
                ctx.progress(does["wait_for_stop"])
                await ctx.wait()
                self.stops[ctx.job.job_id] = ctx.stop_reason
                ctx.check()
            if "complete_after_stop" in does:
                while not self.stopping.is_set():
                    await asyncio.sleep(0.005)
                return does["complete_after_stop"]
            return does["complete"]

        return handler


class WorkerReplay(unittest.TestCase):
    def replay(self, transcript, kind):
        server = ReplayServer(transcript)
        wanted = transcript["worker"]
        options = wanted["options"]
        worker = Worker(
            Client(server.url, TOKEN),
            worker_id=options["worker_id"],
            concurrency=options["concurrency"],
            lease=options["lease_ms"] / 1000,
            wait=options["wait_ms"] / 1000,
        )
        # What came late is given back before what runs may end.
        late = any(e["request"]["path"].endswith("/release") for e in transcript["exchanges"])
        stopping = threading.Event()
        handlers = Handlers(stopping)
        for job_type, does in wanted["types"].items():
            worker.on(job_type, getattr(handlers, kind)(does))

        def stop():
            server.wait_until_said()
            worker.stop()
            if late:
                with server.changed:
                    server.changed.wait_for(lambda: len(server.left) <= 1, 20)
            stopping.set()

        threading.Thread(target=stop, daemon=True).start()
        try:
            summary = dataclasses.asdict(worker.run())
            self.assertEqual((server.unexpected, server.left), ([], []))
            self.assertEqual({k: v for k, v in summary.items() if v}, wanted["summary"])
            self.assertEqual(handlers.stops, wanted.get("stops", {}))
            self.assertEqual(handlers.steps, wanted.get("steps", 0))
        finally:
            server.close()

    def test_worker(self):
        for name in [name for name in ALL if "worker" in ALL[name]]:
            for kind in ("plain", "asynchronous"):
                with self.subTest(name, kind=kind):
                    self.replay(ALL[name], kind)


if __name__ == "__main__":
    unittest.main()
