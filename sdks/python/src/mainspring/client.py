"""The two clients: one that waits, one for asyncio. Calls that can be repeated without harm are
repeated when the server cannot be reached or says "not now"; others only when they certainly did
not arrive. The calls themselves are in ``_methods.py``."""

from __future__ import annotations

from typing import Any, Optional

from ._aio import AsyncTransport
from ._call import Call, Settings
from ._methods import Methods, wish
from ._transport import Transport

__all__ = ["AsyncClient", "Client", "wish"]


class Client(Methods):
    """A client that waits for its answers. Threads may share it.

    What is not said comes from ``MAINSPRING_URL``, ``MAINSPRING_TOKEN`` (or the file that
    ``MAINSPRING_TOKEN_FILE`` names), ``MAINSPRING_CA_FILE`` and ``MAINSPRING_TRACE_ID``.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        trace_id: Optional[str] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        self.settings = Settings.of(url, token, trace_id, ca_file)
        self._transport = Transport(self.settings)

    def _do(self, call: Call) -> Any:
        return self._transport.call(call)

    def close(self) -> None:
        """Closes the connections; the next call opens others."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Methods):
    """The same for asyncio; it belongs to one event loop."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        trace_id: Optional[str] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        self.settings = Settings.of(url, token, trace_id, ca_file)
        self._transport = AsyncTransport(self.settings)

    def _do(self, call: Call) -> Any:
        return self._transport.call(call)

    async def close(self) -> None:
        """Closes the connections; the next call opens others."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
