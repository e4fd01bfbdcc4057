"""Calls over asyncio streams: as much HTTP/1.1 as a Mainspring server speaks, no more."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Mapping, Optional, Tuple

from ._call import Answer, Call, Settings, pause, read
from ._limits import CONNECT_WAIT, IDLE_CONNECTIONS_MAX, TRIES
from .errors import Error, Unreachable, unreachable

_Connection = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncTransport:
    """Connections to one server; all within one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._idle: list[_Connection] = []
        self._tls: Optional[ssl.SSLContext] = None
        if settings.is_tls:
            self._tls = ssl.create_default_context(cafile=settings.ca_file)

    async def call(self, call: Call) -> Any:
        """Makes a call and reads its answer, repeating as the call allows."""
        tries = 0
        while True:
            try:
                return read(call, await self.send(call))
            except Error as error:
                tries += 1
                if tries >= TRIES or not call.may_repeat(error):
                    raise
                await asyncio.sleep(pause(tries, error))

    async def send(self, call: Call) -> Answer:
        """Sends a call once."""
        connection = await self._connected()
        try:
            answer, may_keep = await asyncio.wait_for(
                _exchange(connection, self.settings, call), call.timeout
            )
        except asyncio.TimeoutError:
            connection[1].close()
            raise Unreachable(self.settings.url, True, "no answer in time") from None
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            connection[1].close()
            unreachable(self.settings.url, True, error)
        except BaseException:
            connection[1].close()
            raise
        if may_keep and len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(connection)
        else:
            connection[1].close()
        return answer

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()

    async def _connected(self) -> _Connection:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        opening = asyncio.open_connection(
            self.settings.host, self.settings.port, ssl=self._tls, limit=256 * 1024
        )
        try:
            return await asyncio.wait_for(opening, CONNECT_WAIT)
        except asyncio.TimeoutError:
            raise Unreachable(self.settings.url, False, "no connection in time") from None
        except OSError as error:
            unreachable(self.settings.url, False, error)


async def _exchange(
    connection: _Connection, settings: Settings, call: Call
) -> Tuple[Answer, bool]:
    reader, writer = connection
    writer.write(_request(settings, call))
    await writer.drain()
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        status, headers = _head(head)
        if status >= 200:
            break
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body, may_keep = await _chunks(reader), True
    elif "content-length" in headers:
        body, may_keep = await reader.readexactly(int(headers["content-length"])), True
    elif status in (204, 304):
        body, may_keep = b"", True
    else:
        body, may_keep = await reader.read(), False
    may_keep = may_keep and headers.get("connection", "").lower() != "close"
    return Answer(status, headers, body), may_keep


def _request(settings: Settings, call: Call) -> bytes:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    lines = [f"{call.method} {settings.prefix}{call.path} HTTP/1.1", f"Host: {host}:{settings.port}"]
    lines += [f"{name}: {value}" for name, value in settings.headers_of(call).items()]
    if call.body is not None or call.method != "GET":
        lines.append(f"Content-Length: {len(call.body or b'')}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (call.body or b"")


def _head(head: bytes) -> Tuple[int, Mapping[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise ValueError(f"not HTTP: {first[:80]!r}")
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return int(words[1]), {name.strip().lower(): value.strip() for name, value in pairs}


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";", 1)[0], 16)
        if size == 0:
            break
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return b"".join(parts)
