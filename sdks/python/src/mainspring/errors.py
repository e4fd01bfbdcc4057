"""What can go wrong: between here and the server, and in a handler."""

from __future__ import annotations

from typing import Any, NoReturn, Optional

#: The code of failures that do not have their own.
CODE_DEFAULT = "TASK_EXECUTION_FAILED"


class Error(Exception):
    """A call that did not give what was asked for."""

    #: The stable code, when the server gave one.
    code: Optional[str] = None
    #: The HTTP status, when there was an answer.
    status: Optional[int] = None
    #: How many seconds the server asked to be left alone.
    retry_after: Optional[float] = None

    @property
    def is_retryable(self) -> bool:
        """Whether the same call may go better later, given that repeating it does no harm."""
        return False

    @property
    def is_certainly_undone(self) -> bool:
        """Whether the server certainly did nothing."""
        return False


class Unreachable(Error):
    """No answer. Unless ``was_sent`` is false, the server may or may not have acted."""

    def __init__(self, url: str, was_sent: bool, cause: object) -> None:
        super().__init__(f"cannot reach {url}: {cause}")
        self.url = url
        self.was_sent = was_sent

    @property
    def is_retryable(self) -> bool:
        return True

    @property
    def is_certainly_undone(self) -> bool:
        return not self.was_sent


class Refused(Error):
    """The server said no."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        error_class: str = "",
        retryable: bool = False,
        details: Any = None,
        request_id: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.error_class = error_class
        self.retryable = retryable
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after

    @property
    def is_retryable(self) -> bool:
        return self.retryable or self.status in (429, 502, 503, 504)

    @property
    def is_certainly_undone(self) -> bool:
        return self.status == 429


class Unreadable(Error):
    """An answer that this client cannot read; perhaps not from Mainspring at all."""

    def __init__(self, call: str, status: int, reason: str) -> None:
        super().__init__(f"the answer to {call} cannot be read (HTTP {status}): {reason}")
        self.status = status

    @property
    def is_retryable(self) -> bool:
        return self.status in (429, 502, 503, 504)


class Failure(Exception):
    """Raised by a handler: why its attempt did not succeed.

    Any other exception is a failure that may pass; say more when you know more.
    """

    def __init__(
        self,
        code: str = CODE_DEFAULT,
        message: str = "",
        *,
        retryable: bool = True,
        retry_delay: Optional[float] = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable
        #: Your own wish for the next delay, in seconds.
        self.retry_delay = retry_delay
        #: No failure: the job is put off for so many seconds.
        self.snooze_for: Optional[float] = None

    @classmethod
    def snooze(cls, seconds: float, reason: str = "") -> Failure:
        """No failure at all: the job comes back after this long, and no try is used. Only so
        often: after a thousand times it ends."""
        snoozed = cls(CODE_DEFAULT, reason)
        snoozed.snooze_for = seconds
        return snoozed

    @classmethod
    def permanent(cls, code: str, message: str = "") -> Failure:
        """A failure that will not pass: the job goes to the dead letter queue."""
        return cls(code, message, retryable=False)


class Release(Exception):
    """Raised by a handler: no failure at all. The job goes back to its queue, no try is used."""

    def __init__(self, reason: str = "given back by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Stopped(Exception):
    """Raised by ``ctx.check()`` when the handler should stop; let it pass through."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def unreachable(url: str, was_sent: bool, cause: BaseException) -> NoReturn:
    """Raises ``Unreachable`` for what the network said."""
    raise Unreachable(url, was_sent, cause or type(cause).__name__) from cause
