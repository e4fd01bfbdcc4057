"""One attempt as the loop holds it, and what is made of what comes and goes."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, Optional, Tuple, Union

from .context import AsyncContext, Attempt, Context
from .errors import CODE_DEFAULT, Failure, Release

#: What a handler gave: a result as JSON text (or none), or why not.
Outcome = Tuple[Optional[str], Union[None, Failure, Release]]


@dataclass(eq=False)
class Held:
    """A job this worker holds: running, or finished and not yet reported."""

    ctx: Union[Context, AsyncContext]
    #: When the lease ends as far as we know.
    ends_at: float
    #: The handler was given up; its slot stays taken until it returns.
    is_dropped: bool = False
    has_ended: bool = False
    task: Optional[Future[None]] = None
    timers: Tuple[asyncio.TimerHandle, ...] = ()

    def disarm(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers = ()


def attempt(pulled: Dict[str, Any], lease: float) -> Attempt:
    # The server's clock may differ from ours, so only the difference of two of its own instants
    # counts: the deadline, and the grant, which is one lease before the lease's end.
    granted_at = _instant(pulled["lease_expires_at"]) - lease
    return Attempt(
        job_id=pulled["job_id"],
        job_type=pulled["job_type"],
        payload=pulled.get("payload"),
        attempt=pulled["attempt"],
        retry_count=pulled["retry_count"],
        lease_token=pulled["lease_token"],
        execution_key=pulled["execution_key"],
        trace_id=pulled["trace_id"],
        labels=pulled.get("labels") or {},
        checkpoint=pulled.get("checkpoint"),
        time_allowed=max(_instant(pulled["deadline_at"]) - granted_at, 0.0),
    )


def _instant(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def failure(error: BaseException) -> Union[Failure, Release]:
    if isinstance(error, (Failure, Release)):
        return error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, Exception):
        return Failure(CODE_DEFAULT, text)
    return Failure("HANDLER_PANICKED", text)
