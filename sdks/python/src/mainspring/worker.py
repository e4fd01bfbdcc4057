"""A worker as it is described: for whom, which handlers, within which bounds. The loop that runs
it is in ``_run.py``, on a thread of its own: no handler can keep heartbeats from going out."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, Iterable, List, Optional, TypeVar, Union

from ._aio import AsyncTransport
from ._limits import CONCURRENCY_MAX, FIRST_LEASE_MAX, GRACE_MAX, LEASE_MAX, LEASE_MIN, WAIT_MAX
from ._transport import Transport
from .client import Client
from .context import AsyncContext, Context

Handler = Union[Callable[[Context], Any], Callable[[AsyncContext], Awaitable[Any]]]
H = TypeVar("H", bound=Callable[..., Any])


@dataclass
class Summary:
    """What a worker did."""

    #: Attempts reported as successes,
    completed: int = 0
    #: as failures,
    failed: int = 0
    #: or given back unused.
    released: int = 0
    #: Attempts whose lease was lost or whose job was cancelled.
    lost: int = 0
    #: Reports the server did not take, or was not heard to take.
    refused: int = 0


class Worker:
    """Runs handlers for jobs of a server.

    ::

        worker = Worker()

        @worker.task("send_mail")
        def send_mail(ctx):
            receipt = ctx.step("send", lambda: send(ctx.payload["to"]))
            return {"receipt": receipt}

        worker.run()

    A plain function runs in a thread of its own, an ``async`` one on the event loop of ``run``.
    ``SIGTERM`` and ``SIGINT`` drain the worker: what was not started is given back, what runs may
    finish within ``drain_grace`` seconds, no try is used up.
    """

    def __init__(
        self,
        client: Optional[Client] = None,
        *,
        worker_id: Optional[str] = None,
        queues: Optional[Iterable[str]] = None,
        concurrency: int = 4,
        lease: float = 15.0,
        wait: float = 20.0,
        drain_grace: float = 25.0,
        stop_grace: float = 5.0,
    ) -> None:
        """``lease`` is how many seconds a job stays ours without a heartbeat; heartbeats go out
        three times as often. The first lease of a job is at most five seconds long: the first
        heartbeat makes it whole. ``wait`` is how long one long poll waits for work, ``stop_grace``
        how long a handler that was told to stop has before it is given up."""
        self.client = client or Client()
        self.worker_id = worker_id or f"{socket.gethostname() or 'worker'}-{os.getpid()}"
        self.queues = list(queues) if queues else None
        self.concurrency = min(max(int(concurrency), 1), CONCURRENCY_MAX)
        self.lease = min(max(float(lease), LEASE_MIN), LEASE_MAX)
        self.wait = min(max(float(wait), 0.0), WAIT_MAX)
        self.drain_grace = min(max(float(drain_grace), 0.0), GRACE_MAX)
        self.stop_grace = min(max(float(stop_grace), 0.0), GRACE_MAX)
        self.handlers: Dict[str, Callable[..., Any]] = {}
        self._stopping = threading.Event()
        self._on_stop: List[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def first_lease(self) -> float:
        """The lease a pull asks for: short, until the worker has shown that it got the job."""
        return min(self.lease, FIRST_LEASE_MAX)

    def on(self, job_type: str, handler: Handler) -> Worker:
        """Runs ``handler`` for jobs of ``job_type``. What it answers becomes the job's result."""
        self.handlers[job_type] = handler
        return self

    def task(self, job_type: str) -> Callable[[H], H]:
        """The same as a decorator."""

        def register(handler: H) -> H:
            self.on(job_type, handler)
            return handler

        return register

    def stop(self) -> None:
        """Drains the worker; any thread and any signal handler may call it."""
        with self._lock:
            self._stopping.set()
            told, self._on_stop = self._on_stop, []
        for tell in told:
            tell()

    def run(self) -> Summary:
        """Runs until ``stop`` or a signal, and everything is reported, given back or given up.

        Raises ``Refused`` if the server does not hand out jobs to this worker for good.
        """
        return asyncio.run(self.run_async())

    async def run_async(self) -> Summary:
        """The same within an event loop, which runs the ``async`` handlers. Signals drain the
        worker if this is the main thread."""
        from ._run import Run

        loop = asyncio.get_running_loop()
        signals = self._listen(loop)
        ended: asyncio.Future[Summary] = loop.create_future()
        aio = AsyncTransport(self.client.settings)
        transport = Transport(self.client.settings)
        run = Run(self, loop, transport, aio)

        def close(set_it: Callable[[Any], None], value: Any) -> None:
            if not ended.done():
                set_it(value)

        def control() -> None:
            try:
                summary = asyncio.run(run.until())
            except BaseException as error:  # noqa: B902 - whatever it is, run() tells
                loop.call_soon_threadsafe(close, ended.set_exception, error)
            else:
                loop.call_soon_threadsafe(close, ended.set_result, summary)

        thread = threading.Thread(target=control, name="mainspring-worker", daemon=True)
        thread.start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            self.stop()
            await ended
            raise
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
            transport.close()
            await aio.close()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> List[int]:
        if threading.current_thread() is not threading.main_thread():
            return []
        heard: List[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, self.stop)
                heard.append(number)
            except (NotImplementedError, RuntimeError):
                pass  # not on this platform
        return heard

    def _when_stopping(self, tell: Callable[[], None]) -> None:
        with self._lock:
            if not self._stopping.is_set():
                self._on_stop.append(tell)
                return
        tell()

    def _is_async(self, handler: Callable[..., Any]) -> bool:
        return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)
        )
