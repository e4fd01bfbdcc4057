"""The loop that owns everything a worker knows. It runs on one thread with an event loop of its
own; calls and handlers run beside it and come back as values. The same loop as in Rust."""

from __future__ import annotations

import asyncio
import logging
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Coroutine, Dict, List, Optional, Set, Tuple, Union

from . import _report
from ._aio import AsyncTransport
from ._call import Call, Repeat, backoff, body, path, pause
from ._held import Held, Outcome, attempt, failure
from ._limits import (
    ANSWER_WAIT,
    BEAT_AGAIN_MAX,
    BEAT_ITEMS_MAX,
    BEAT_PARTS_MAX,
    BEAT_WAIT_MAX,
    LAST_POLL_MAX,
    REPORT_BYTES_MAX,
    REPORT_FRESH,
    REPORTS_OUT_MAX,
    REST_MAX,
)
from ._report import Report, Told, is_about, tell
from ._transport import Transport
from .context import (
    CANCELLED,
    DRAINING,
    LEASE_LOST,
    TIMED_OUT,
    AsyncContext,
    Context,
    result_text,
)
from .errors import Error, Failure, Release

if TYPE_CHECKING:
    from .worker import Summary, Worker

log = logging.getLogger("mainspring")

_SHUTTING_DOWN = "the worker is shutting down"


class Run:
    """One run of a worker."""

    def __init__(
        self,
        worker: Worker,
        handlers_loop: asyncio.AbstractEventLoop,
        transport: Transport,
        handlers_aio: AsyncTransport,
    ) -> None:
        from .worker import Summary

        self.worker = worker
        self.handlers_loop = handlers_loop
        self.transport = transport
        self.handlers_aio = handlers_aio
        self.types = sorted(worker.handlers)
        self.summary: Summary = Summary()
        self.fatal: Optional[Error] = None
        #: By lease token.
        self.held: Dict[str, Held] = {}
        #: Handlers that have not ended, the dropped ones included.
        self.busy = 0
        self.running = 0
        self.ready: List[Report] = []
        #: Slots kept for jobs that calls on the way may bring.
        self.reserved = 0
        self.is_polling = False
        self.beats_out = 0
        self.beat_items = BEAT_ITEMS_MAX
        self.has_beat_failed = False
        self.reports_out = 0
        now = monotonic()
        self.reported_at = now
        self.failed_polls = 0
        self.idle_polls = 0
        self.wish_not_before = now
        self.next_beat = now + worker.lease / 3
        self.leases_end: Optional[float] = None
        self.drain_ends: Optional[float] = None
        self.poll_ends: Optional[float] = None
        self.give_up: Optional[float] = None
        self.calls: Set[asyncio.Task[None]] = set()

    async def until(self) -> Summary:
        self.loop = asyncio.get_running_loop()
        self.wake = asyncio.Event()
        self.aio = AsyncTransport(self.worker.client.settings)
        self.worker._when_stopping(lambda: self._soon(self._drain))
        while True:
            self._send_reports()
            self._poll()
            if self._is_finished():
                break
            try:
                await asyncio.wait_for(self.wake.wait(), max(self._next_wake() - monotonic(), 0.0))
            except asyncio.TimeoutError:
                pass
            self.wake.clear()
            self._on_time()
        for call in self.calls:
            call.cancel()
        await self.aio.close()
        # Whatever is still held was given up: nobody said that its report was taken.
        self.summary.refused += len(self.held)
        if self.fatal is not None:
            raise self.fatal
        return self.summary

    def _soon(self, do: Any, *values: Any) -> None:
        """Has the loop do something; any thread may ask, also when it has ended."""

        def done() -> None:
            do(*values)
            self.wake.set()

        try:
            self.loop.call_soon_threadsafe(done)
        except RuntimeError:
            pass  # the loop has ended; nobody waits for this any more

    def _spawn(self, call: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(call)
        self.calls.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self.calls.discard(task)
            self.wake.set()

        task.add_done_callback(ended)

    def _is_finished(self) -> bool:
        now = monotonic()
        if self.give_up is not None and self.give_up <= now:
            return True
        # A poll on its way may hold jobs; nobody else would give them back.
        is_poll_over = not self.is_polling or (self.poll_ends is not None and self.poll_ends <= now)
        return (
            self.drain_ends is not None
            and is_poll_over
            and not self.held
            and not self.ready
            and self.reports_out == 0
        )

    def _room(self) -> int:
        """How many more jobs may be asked for now."""
        if self.drain_ends is not None or monotonic() < self.wish_not_before:
            return 0
        return max(self.worker.concurrency - self.busy - self.reserved, 0)

    def _next_wake(self) -> float:
        now, wake = monotonic(), self.next_beat
        ends = [self.leases_end, self.give_up]
        if self.is_polling and self.poll_ends is not None and self.poll_ends > now:
            ends.append(self.poll_ends)
        if not self.is_polling and self.drain_ends is None:
            ends += [at for at in (self.wish_not_before, self.reported_at + REPORT_FRESH) if at > now]
        if self.drain_ends is not None and self.drain_ends > now and self.running:
            ends.append(self.drain_ends)
        return min([wake, *(end for end in ends if end is not None)])

    def _on_time(self) -> None:
        now = monotonic()
        if self.drain_ends is not None and self.drain_ends <= now:
            self._tell_all_to_drain()
        if self.leases_end is not None and self.leases_end <= now:
            for held in list(self.held.values()):
                if held.ends_at <= now:
                    # Nobody renewed it: by now the job may be somebody else's.
                    self._tell_to_stop(held, LEASE_LOST)
            untold = [held.ends_at for held in self.held.values() if not held.ctx.is_stopped]
            self.leases_end = min(untold, default=None)
        if now >= self.next_beat:
            self.next_beat = now + self.worker.lease / 3
            self._beat(now)

    def _drain(self) -> None:
        if self.drain_ends is not None:
            return
        now, worker = monotonic(), self.worker
        self.drain_ends = now + worker.drain_grace
        self.give_up = self.drain_ends + worker.stop_grace + worker.lease
        if self.is_polling:
            self.poll_ends = now + LAST_POLL_MAX
            self._spawn(self._leave())
        if worker.drain_grace <= 0:
            self._tell_all_to_drain()

    async def _leave(self) -> None:
        call = Call("POST", path("work", "leave"), body({"worker_id": self.worker.worker_id}))
        try:
            await asyncio.wait_for(self.aio.call(call), LAST_POLL_MAX)
        except (Error, asyncio.TimeoutError) as error:
            log.warning("could not say that this worker leaves: %s", error)

    # Asking for jobs.

    def _wish(self, limit: int, wait: float) -> Dict[str, Any]:
        worker = self.worker
        wish: Dict[str, Any] = {"worker_id": worker.worker_id, "types": self.types}
        if worker.queues:
            wish["queues"] = worker.queues
        wish.update(limit=limit, wait_ms=int(wait * 1000), lease_ms=int(worker.first_lease * 1000))
        return wish

    def _poll(self) -> None:
        """Keeps one long poll open as long as there is room."""
        room = self._room()
        if self.is_polling or room == 0 or self.ready:
            return
        # Reports on their way bring jobs along, and more cheaply. One that gets nowhere must not
        # keep everybody else waiting.
        if self.reports_out > 0 and monotonic() < self.reported_at + REPORT_FRESH:
            return
        self.is_polling = True
        self.reserved += room
        self._spawn(self._pull(room))

    async def _pull(self, room: int) -> None:
        wait, sent_at = self.worker.wait, monotonic()
        call = Call(
            "POST", path("work", "pull"), body(self._wish(room, wait)), Repeat.NEVER, wait
        )
        try:
            answer = await self.aio.call(call)
        except Error as error:
            self._poll_failed(error, room)
            return
        self.is_polling = False
        self.reserved -= room
        jobs = answer.get("jobs") if isinstance(answer, dict) else None
        self.failed_polls = 0
        # Sent home long before its time: a worker that came again at once would spin.
        is_early = not jobs and (wait == 0 or monotonic() - sent_at < wait / 2)
        if self._take_in(jobs or [], room) and not is_early:
            self.idle_polls = 0
        else:
            self._rest()

    def _poll_failed(self, error: Error, room: int) -> None:
        self.is_polling = False
        self.reserved -= room
        if error.is_retryable:
            self.failed_polls += 1
            wait = pause(self.failed_polls, error)
            self.wish_not_before = monotonic() + wait
            log.warning("no jobs could be fetched; trying again in %.2f s: %s", wait, error)
            return
        self.fatal = self.fatal or error
        self._drain()

    def _rest(self) -> None:
        """Asks for nothing for a while, ever longer."""
        self.idle_polls += 1
        self.wish_not_before = monotonic() + min(backoff(self.idle_polls), REST_MAX)

    def _take_in(self, jobs: List[Any], asked_for: int) -> bool:
        """Takes in what was asked for; what is more, or of no use here, is given back. Answers
        whether all were welcome."""
        is_all_welcome = True
        for count, job in enumerate(jobs):
            try:
                is_all_welcome &= self._start(job, count < asked_for)
            except (KeyError, TypeError, ValueError) as error:
                # Whatever that was, its lease runs out.
                log.warning("a job came that cannot be read: %r", error)
                is_all_welcome = False
        if not is_all_welcome:
            log.warning("jobs came that were not asked for")
        return is_all_welcome

    def _start(self, pulled: Dict[str, Any], has_room: bool) -> bool:
        """Starts a job, or gives it back; answers whether it was one to start."""
        token = pulled["lease_token"]
        if token in self.held:
            return False  # the same attempt once more: one is enough
        now, lease = monotonic(), self.worker.first_lease
        job = attempt(pulled, lease)
        handler = self.worker.handlers.get(job.job_type)
        ctx: Union[Context, AsyncContext]
        if handler is not None and self.worker._is_async(handler):
            ctx = AsyncContext(job, self.handlers_aio)
            stopped = ctx._stopped
            ctx._on_stop = lambda: self._to_handlers(stopped.set)
        else:
            ctx = Context(job, self.transport)
        ctx._worker_id = self.worker.worker_id
        held = Held(ctx, now + lease)
        self.next_beat = now + lease / 3 if not self.held else min(self.next_beat, now + lease / 3)
        ends = [held.ends_at] if self.leases_end is None else [held.ends_at, self.leases_end]
        self.leases_end = min(ends)
        self.held[token] = held
        if self.drain_ends is not None:
            given_back = _SHUTTING_DOWN
        elif handler is None:
            given_back = "this worker has no handler for it"
        elif not has_room:
            given_back = "this worker has no room for it"
        else:
            self._launch(held, handler)
            return True
        self.ready.append(_report.release(job.job_id, token, given_back))
        return self.drain_ends is not None

    # Handlers.

    def _launch(self, held: Held, handler: Any) -> None:
        self.busy += 1
        self.running += 1
        allowed = held.ctx.job.time_allowed
        held.timers = (self.loop.call_later(allowed, self._tell_to_stop, held, TIMED_OUT),)
        if isinstance(held.ctx, AsyncContext):
            held.task = asyncio.run_coroutine_threadsafe(
                self._handle_async(held, handler), self.handlers_loop
            )
        else:
            threading.Thread(target=self._handle, args=(held, handler), daemon=True).start()

    def _handle(self, held: Held, handler: Any) -> None:
        """In a thread of the handler's own."""
        outcome: Outcome
        try:
            outcome = (result_text(handler(held.ctx)), None)
        except BaseException as error:
            outcome = (None, failure(error))
        self._soon(self._ended, held, outcome)

    async def _handle_async(self, held: Held, handler: Any) -> None:
        """On the event loop of the handlers."""
        outcome: Outcome
        try:
            outcome = (result_text(await handler(held.ctx)), None)
        except BaseException as error:
            outcome = (None, failure(error))
        self._soon(self._ended, held, outcome)

    def _to_handlers(self, do: Any) -> None:
        try:
            self.handlers_loop.call_soon_threadsafe(do)
        except RuntimeError:
            pass  # it has ended

    def _tell_to_stop(self, held: Held, reason: str) -> None:
        if held.ctx._tell_to_stop(reason) and not held.has_ended:
            grace = self.loop.call_later(self.worker.stop_grace, self._drop, held)
            held.timers += (grace,)

    def _tell_all_to_drain(self) -> None:
        for held in list(self.held.values()):
            self._tell_to_stop(held, DRAINING)

    def _drop(self, held: Held) -> None:
        """Gives up on a handler that did not stop in time."""
        if held.has_ended:
            return
        held.is_dropped = held.has_ended = True
        self.running -= 1
        if held.task is not None:
            held.task.cancel()
        self._settle(held, None)
        self.wake.set()

    def _ended(self, held: Held, outcome: Outcome) -> None:
        self.busy -= 1
        if held.is_dropped:
            return
        held.has_ended = True
        self.running -= 1
        self._settle(held, outcome)

    def _settle(self, held: Held, outcome: Optional[Outcome]) -> None:
        held.disarm()
        job, reason = held.ctx.job, held.ctx.stop_reason
        job_id, token = job.job_id, job.lease_token
        if self.held.get(token) is not held:
            return
        why = outcome[1] if outcome is not None else None
        if outcome is not None and why is None:
            # Work that was finished counts, whoever asked to stop meanwhile; the server decides.
            self.ready.append(_report.complete(job_id, token, outcome[0]))
        elif reason == DRAINING:
            self.ready.append(_report.release(job_id, token, _SHUTTING_DOWN))
        elif reason is None and isinstance(why, Release):
            self.ready.append(_report.release(job_id, token, why.reason))
        elif reason is None and isinstance(why, Failure):
            self.ready.append(_report.fail(job_id, token, why))
        else:
            self.summary.lost += 1
            del self.held[token]

    # Reports.

    def _send_reports(self) -> None:
        while self.ready and self.reports_out < REPORTS_OUT_MAX:
            reports = self._take_reports()
            room = self._room()
            self.reserved += room
            self.reports_out += 1
            self.reported_at = monotonic()
            self._spawn(self._tell(reports, room, 0.0))

    def _take_reports(self) -> List[Report]:
        """The next batch: reports of one kind, within the size of a call."""
        kind = self.ready[0].kind
        taken: List[Report] = []
        left: List[Report] = []
        size = 0
        for report in self.ready:
            fits = not taken or size + len(report.text) <= REPORT_BYTES_MAX
            if report.kind == kind and fits:
                size += len(report.text)
                taken.append(report)
            else:
                left.append(report)
        self.ready = left
        return taken

    async def _tell(self, reports: List[Report], room: int, wait: float) -> None:
        await asyncio.sleep(wait)
        told = await tell(self.aio, reports, self._wish(room, 0.0) if room else None)
        self.reports_out -= 1
        self.reserved -= room
        self._told(told)

    def _told(self, told: Told) -> None:
        for report, refusal in told.reports:
            self.held.pop(report.lease_token, None)
            if refusal is not None:
                self.summary.refused += 1
                log.warning("a report about %s was refused: %s", report.job_id, refusal)
            elif report.kind == "complete":
                self.summary.completed += 1
            elif report.kind == "fail":
                self.summary.failed += 1
            else:
                self.summary.released += 1
        if told.later is not None:
            reports, wait = told.later
            self.reports_out += 1
            self._spawn(self._tell(reports, 0, wait))
        # Without a wish there is nothing to give back: a server that answered each release with
        # more jobs would be told of releases for ever. Their leases run out.
        if told.reserved > 0 and not self._take_in(told.jobs, told.reserved):
            self._rest()

    # Heartbeats.

    def _beat(self, now: float) -> None:
        if self.beats_out > 0:
            return
        # If one of many cannot be renewed at present, the call fails for all of them. So they go
        # apart after a failure, and together again, by and by, when there was none.
        if self.has_beat_failed:
            self.beat_items = max(-(-len(self.held) // BEAT_PARTS_MAX), 1)
        else:
            self.beat_items = min(self.beat_items * 2, BEAT_ITEMS_MAX)
        self.has_beat_failed = False
        all_held = list(self.held.items())
        for first in range(0, len(all_held), self.beat_items):
            self.beats_out += 1
            self._spawn(self._beat_part(all_held[first : first + self.beat_items], now))

    async def _beat_part(self, part: List[Tuple[str, Held]], sent_at: float) -> None:
        worker = self.worker
        items = []
        for token, held in part:
            item: Dict[str, Any] = {"job_id": held.ctx.job.job_id, "lease_token": token}
            said = held.ctx._said()
            if said is not None:
                item["progress"] = said
            items.append(item)
        beat = {"worker_id": worker.worker_id, "lease_ms": int(worker.lease * 1000), "items": items}
        call = Call("POST", path("work", "heartbeat"), body(beat), Repeat.NEVER)
        try:
            # A heartbeat that hangs must not keep the next one from going out.
            patience = min(worker.lease / 3, BEAT_WAIT_MAX, ANSWER_WAIT)
            answer = await asyncio.wait_for(self.aio.call(call), patience)
        except (Error, asyncio.TimeoutError) as error:
            self._beat_soon(error)
        else:
            if is_about(answer, [held.ctx.job.job_id for _, held in part]):
                self._beaten(answer["items"], part, sent_at)
            else:
                self._beat_soon("it is not answered lease by lease")
        finally:
            self.beats_out -= 1

    def _beaten(self, items: List[Any], part: List[Tuple[str, Held]], sent_at: float) -> None:
        for (token, held), item in zip(part, items):
            if self.held.get(token) is not held:
                continue
            if item.get("cancelled"):
                self._tell_to_stop(held, CANCELLED)
            elif item.get("lost"):
                self._tell_to_stop(held, LEASE_LOST)
            elif item.get("lease_expires_at"):
                held.ends_at = sent_at + self.worker.lease

    def _beat_soon(self, why: object) -> None:
        log.warning("a heartbeat failed; trying again soon: %s", why)
        self.has_beat_failed = True
        soon = min(self.worker.lease / 10, BEAT_AGAIN_MAX)
        self.next_beat = min(self.next_beat, monotonic() + soon)
