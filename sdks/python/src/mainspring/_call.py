"""One call as values: what is sent, whether it may be repeated, and how its answer is read.
No network here; ``_transport.py`` and ``_aio.py`` carry calls."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional
from urllib.parse import quote, urlencode, urlsplit

from ._limits import ANSWER_WAIT, BACKOFF, BACKOFF_ASKED_MAX, BACKOFF_MAX, URL_DEFAULT
from .errors import Error, Refused, Unreadable


class Repeat(enum.Enum):
    """Whether a call may be made twice."""

    #: A second call changes nothing more.
    SAFE = "safe"
    #: A second call could do it twice.
    UNSAFE = "unsafe"
    #: The caller repeats by itself.
    NEVER = "never"


@dataclass(frozen=True)
class Call:
    """One call."""

    method: str
    path: str
    body: Optional[bytes] = None
    repeat: Repeat = Repeat.SAFE
    #: The server may take this many seconds on purpose.
    wait: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def timeout(self) -> float:
        return ANSWER_WAIT + self.wait

    def may_repeat(self, error: Error) -> bool:
        if self.repeat is Repeat.SAFE:
            return error.is_retryable
        if self.repeat is Repeat.UNSAFE:
            return error.is_certainly_undone
        return False


@dataclass(frozen=True)
class Answer:
    """What came back, not yet read."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Settings:
    """Whom a client speaks to, and as whom."""

    url: str
    host: str
    port: int
    is_tls: bool
    prefix: str
    headers: Mapping[str, str]
    #: Whose certificates are trusted, instead of the system's.
    ca_file: Optional[str] = None

    @classmethod
    def of(
        cls,
        url: Optional[str],
        token: Optional[str],
        trace_id: Optional[str],
        ca_file: Optional[str] = None,
    ) -> Settings:
        """What is not said comes from the environment."""
        url = url or os.environ.get("MAINSPRING_URL") or URL_DEFAULT
        token = token or os.environ.get("MAINSPRING_TOKEN") or _token_file()
        ca_file = ca_file or os.environ.get("MAINSPRING_CA_FILE") or None
        trace_id = trace_id or os.environ.get("MAINSPRING_TRACE_ID")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the server address {url!r} must start with http:// or https://")
        is_tls = parts.scheme == "https"
        headers = {"Accept": "application/json", "User-Agent": "mainspring-python"}
        if token:
            headers["Authorization"] = f"Bearer {header(token, 'the token')}"
        if trace_id:
            headers["X-Trace-Id"] = header(trace_id, "the trace id")
        port = parts.port or (443 if is_tls else 80)
        prefix = parts.path.rstrip("/")
        return cls(url.rstrip("/"), parts.hostname, port, is_tls, prefix, headers, ca_file)

    def __repr__(self) -> str:
        # The token stays out of logs.
        return f"Settings(url={self.url!r})"

    def headers_of(self, call: Call) -> dict[str, str]:
        headers = {**self.headers, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        return headers


def _token_file() -> Optional[str]:
    """The token in the file that the environment names."""
    path = os.environ.get("MAINSPRING_TOKEN_FILE")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return file.read().strip() or None


def header(value: str, name: str) -> str:
    """Text that a header can carry."""
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"{name} has characters that cannot be sent")
    return value


def path(*parts: str, query: Optional[Mapping[str, Any]] = None, base: str = "/api/v1") -> str:
    """A path, its parts written so that no name can leave its place."""
    text = base + "".join("/" + quote(part, safe="") for part in parts)
    asked = [(name, value) for name, value in (query or {}).items() if value is not None]
    return text + ("?" + urlencode(asked, doseq=True, quote_via=quote) if asked else "")


def dumps(value: Any) -> str:
    """JSON text, without what JSON does not have."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def body(value: Any) -> bytes:
    return dumps(value).encode()


def filled(**fields: Any) -> dict[str, Any]:
    """The fields that are not ``None``."""
    return {name: value for name, value in fields.items() if value is not None}


def read(call: Call, answer: Answer) -> Any:
    """The ``data`` of an answer, or the error it tells."""
    try:
        whole = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{call.method} {call.path}", answer.status, str(error)) from None
    if isinstance(whole, dict):
        if whole.get("success") is True and "data" in whole and 200 <= answer.status < 300:
            return whole["data"]
        told = whole.get("error")
        if whole.get("success") is False and isinstance(told, dict) and "code" in told:
            meta = whole.get("meta") or {}
            raise Refused(
                answer.status,
                str(told["code"]),
                str(told.get("message", "")),
                error_class=str(told.get("class", "")),
                retryable=told.get("retryable") is True,
                details=told.get("details"),
                request_id=str(meta.get("request_id", "")),
                retry_after=_seconds(answer.headers.get("retry-after")),
            )
    raise Unreadable(f"{call.method} {call.path}", answer.status, "neither data nor error")


def _seconds(text: Optional[str]) -> Optional[float]:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else None


def backoff(tries: int) -> float:
    """A wait that doubles with every try."""
    return min(BACKOFF * 2.0 ** min(max(tries - 1, 0), 16), BACKOFF_MAX)


def pause(tries: int, error: BaseException) -> float:
    """How long to wait before the next try."""
    asked = getattr(error, "retry_after", None)
    return max(backoff(tries), min(asked or 0.0, BACKOFF_ASKED_MAX))
