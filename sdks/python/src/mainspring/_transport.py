"""Calls over ``http.client``, for whoever may wait: a few connections that are used again."""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import threading
import time
from typing import Any, Mapping, Optional, Tuple

from ._call import Answer, Call, Settings, pause, read
from ._limits import CONNECT_WAIT, IDLE_CONNECTIONS_MAX, TRIES
from .errors import Error, unreachable


class Transport:
    """Connections to one server; any thread may use them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._tls: Optional[ssl.SSLContext] = None
        if settings.is_tls:
            self._tls = ssl.create_default_context(cafile=settings.ca_file)

    def call(self, call: Call) -> Any:
        """Makes a call and reads its answer, repeating as the call allows."""
        return self.call_with_headers(call)[0]

    def call_with_headers(self, call: Call) -> Tuple[Any, Mapping[str, str]]:
        """The same with the headers of the answer, in lower case."""
        tries = 0
        while True:
            try:
                answer = self.send(call)
                return read(call, answer), answer.headers
            except Error as error:
                tries += 1
                if tries >= TRIES or not call.may_repeat(error):
                    raise
                time.sleep(pause(tries, error))

    def send(self, call: Call) -> Answer:
        """Sends a call once."""
        connection = self._connected()
        try:
            sock = connection.sock
            assert sock is not None, "a connection that is used has a socket"
            sock.settimeout(call.timeout)
            target = self.settings.prefix + call.path
            connection.request(call.method, target, call.body, self.settings.headers_of(call))
            response = connection.getresponse()
            payload = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            unreachable(self.settings.url, True, error)
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, payload)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            # The server has closed it meanwhile.
            connection.close()
        settings = self.settings
        if self._tls is not None:
            connection = http.client.HTTPSConnection(
                settings.host, settings.port, timeout=CONNECT_WAIT, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(
                settings.host, settings.port, timeout=CONNECT_WAIT
            )
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            unreachable(settings.url, False, error)
        return connection

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS_MAX:
                self._idle.append(connection)
                return
        connection.close()


def _is_readable(sock: socket.socket) -> bool:
    """Whether something waits to be read: on a connection without a call that is its end."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])
