"""What a handler sees of its job."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Awaitable, Callable, Mapping, Optional, TypeVar, Union

from ._aio import AsyncTransport
from ._call import Call, Repeat, body, path, pause
from ._limits import CHECKPOINT_BYTES_MAX, EFFECT_TRIES_MAX
from ._methods import commit_effect, effect
from ._transport import Transport
from .errors import Error, Failure, Refused, Stopped

T = TypeVar("T")

#: Why a handler should stop: somebody cancelled the job,
CANCELLED = "cancelled"
#: the lease is no longer ours, so the job may run elsewhere already,
LEASE_LOST = "lease_lost"
#: the time of the attempt is over,
TIMED_OUT = "timed_out"
#: or the worker is shutting down and its grace is over.
DRAINING = "draining"


@dataclass(frozen=True)
class Attempt:
    """A job as its worker gets it: one attempt."""

    job_id: str
    job_type: str
    payload: Any
    #: Which attempt this is, from 1.
    attempt: int
    #: Retries scheduled so far.
    retry_count: int
    lease_token: str
    #: Names this attempt in other systems.
    execution_key: str
    trace_id: str
    labels: Mapping[str, str]
    #: How many seconds the attempt may take. Clocks may differ; this does not depend on them.
    time_allowed: float
    #: What an earlier try left with ``ctx.checkpoint``, the last of it.
    checkpoint: Any = None


class _Context:
    """A running attempt, as its handler sees it."""

    def __init__(self, job: Attempt) -> None:
        #: The job as it was handed out.
        self.job = job
        self._reason: Optional[str] = None
        self._stop = threading.Event()
        self._progress: Optional[float] = None
        self._message: Optional[str] = None
        self._worker_id = "worker"
        self._on_stop: Optional[Callable[[], None]] = None

    @property
    def payload(self) -> Any:
        """What to work on."""
        return self.job.payload

    @property
    def stop_reason(self) -> Optional[str]:
        """Why the handler should stop, once it should."""
        return self._reason

    @property
    def is_stopped(self) -> bool:
        """Whether the handler should stop. One that does not is given up after a while."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raises ``Stopped`` if the handler should stop."""
        if self._reason is not None:
            raise Stopped(self._reason)

    def progress(self, percent: float, message: Optional[str] = None) -> None:
        """Tells how far the work is, in percent and for people; sent with the next heartbeat."""
        value = float(percent)
        self._progress = min(max(value, 0.0), 100.0) if math.isfinite(value) else None
        if message is not None:
            self._message = message

    def _said(self, **more: Any) -> Any:
        """How far the work is, as a heartbeat says it; ``None`` is nothing to say."""
        if self._message is None and not more:
            return self._progress
        said: dict[str, Any] = dict(more)
        if self._progress is not None:
            said["percent"] = self._progress
        if self._message is not None:
            said["message"] = self._message
        return said

    def _checkpoint(self, value: Any) -> Call:
        text = None
        try:
            text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise Failure.permanent("CHECKPOINT_INVALID", str(error)) from error
        if len(text) > CHECKPOINT_BYTES_MAX:
            raise Failure.permanent("CHECKPOINT_INVALID", "it is over 64 KiB of JSON")
        job = self.job
        item = {"job_id": job.job_id, "lease_token": job.lease_token}
        item["progress"] = self._said(checkpoint=value)
        # What was promised is never shortened.
        beat = {"worker_id": self._worker_id, "lease_ms": 1000, "items": [item]}
        return Call("POST", path("work", "heartbeat"), body(beat), Repeat.NEVER)

    def _kept(self, answer: Any) -> None:
        item = answer["items"][0]
        if item.get("cancelled"):
            raise Failure.permanent("JOB_CANCELLED", "cancelled")
        if "lease_expires_at" not in item:
            raise Failure("LEASE_LOST", "the checkpoint was not kept")

    def _tell_to_stop(self, reason: str) -> bool:
        """The first reason stands; answers whether this was it."""
        if self._reason is not None:
            return False
        self._reason = reason
        self._stop.set()
        if self._on_stop is not None:
            self._on_stop()
        return True


class Context(_Context):
    """What a handler that runs in a thread of its own sees."""

    def __init__(self, job: Attempt, transport: Transport) -> None:
        super().__init__(job)
        self._transport = transport

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits until the handler should stop, at most that long; answers whether it should."""
        return self._stop.wait(seconds)

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Does something once per job, however often the job is tried: the first value that is
        recorded under ``name`` is what every later try gets, without running ``work`` again.

        If the worker dies between the work and its record, the next try runs the work again; pass
        ``ctx.job.execution_key`` or the job id to systems that can tell repeats apart.
        """
        look, record = _ledger_calls(self.job, name)
        known = self._patiently(look)
        if known is not None:
            value: T = known["value"]
            return value
        value = work()
        told = self._patiently(record(value))
        if told is None or told["is_first"]:
            return value
        first: T = told["value"]
        return first

    def checkpoint(self, value: Any) -> None:
        """Leaves a value for the next try, in place of what was left before; at most 64 KiB of
        JSON. It is kept once this returns; the next try has it as ``ctx.job.checkpoint``."""
        self._kept(self._patiently(self._checkpoint(value)))

    def _patiently(self, call: Call) -> Any:
        tries = 0
        while True:
            try:
                return self._transport.call(call)
            except Error as error:
                tries += 1
                if _is_absent(call, error):
                    return None
                if not error.is_retryable or tries >= EFFECT_TRIES_MAX:
                    raise _ledger_failure(error) from error
                time.sleep(pause(tries, error))


class AsyncContext(_Context):
    """What an ``async`` handler sees."""

    def __init__(self, job: Attempt, transport: AsyncTransport) -> None:
        super().__init__(job)
        self._transport = transport
        self._stopped = asyncio.Event()

    async def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits until the handler should stop, at most that long; answers whether it should."""
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        return self.is_stopped

    async def step(self, name: str, work: Callable[[], Union[T, Awaitable[T]]]) -> T:
        """As ``Context.step``; ``work`` may be ``async``."""
        look, record = _ledger_calls(self.job, name)
        known = await self._patiently(look)
        if known is not None:
            value: T = known["value"]
            return value
        done = work()
        value = await done if inspect.isawaitable(done) else done
        told = await self._patiently(record(value))
        if told is None or told["is_first"]:
            return value
        first: T = told["value"]
        return first

    async def checkpoint(self, value: Any) -> None:
        """As ``Context.checkpoint``."""
        self._kept(await self._patiently(self._checkpoint(value)))

    async def _patiently(self, call: Call) -> Any:
        tries = 0
        while True:
            try:
                return await self._transport.call(call)
            except Error as error:
                tries += 1
                if _is_absent(call, error):
                    return None
                if not error.is_retryable or tries >= EFFECT_TRIES_MAX:
                    raise _ledger_failure(error) from error
                await asyncio.sleep(pause(tries, error))


def _ledger_calls(job: Attempt, name: str) -> tuple[Call, Callable[[Any], Call]]:
    def record(value: Any) -> Call:
        try:
            call = commit_effect(job.job_id, name, job.lease_token, value)
        except (TypeError, ValueError, RecursionError) as error:
            raise Failure.permanent("EFFECT_INVALID", str(error)) from error
        return replace(call, repeat=Repeat.NEVER)

    look = replace(effect(job.job_id, name, job.lease_token), repeat=Repeat.NEVER)
    return look, record


def _is_absent(call: Call, error: Error) -> bool:
    return call.method == "GET" and error.code == "EFFECT_NOT_FOUND"


def _ledger_failure(error: Error) -> Failure:
    """Only what the ledger refuses for itself is the handler's own fault."""
    if isinstance(error, Refused) and not error.is_retryable and error.code != "LEASE_LOST":
        return Failure.permanent("EFFECT_REFUSED", str(error))
    return Failure("EFFECT_LEDGER_UNREACHABLE", str(error))


def result_text(value: Any) -> Optional[str]:
    """A handler's answer as the result of a job; ``None`` is no result."""
    from ._limits import RESULT_BYTES_MAX

    if value is None:
        return None
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise Failure.permanent("RESULT_INVALID", str(error)) from error
    if len(text) > RESULT_BYTES_MAX:
        raise Failure.permanent("RESULT_TOO_LARGE", "the result is over 1 MiB of JSON")
    return text
