"""Listens: on the Unix socket of this machine and, when asked to, at an address of the network.

uvicorn's parser and cycle of requests are used as they are; what is around them (who is there, how
long we wait for them, how it ends) is ours, and an idle server sleeps.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from bough.errors import InputError
from bough.server import auth
from bough.server.limits import Limits, Places
from bough.server.problems import HttpError, problem_of

BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that is bound, and how those who come by it are spoken to."""

    socket: socket.socket
    tls: ssl.SSLContext | None = None


def unix_socket(path: Path, *, system: bool) -> socket.socket:
    """For its owner alone, or for everybody; what an earlier daemon left there is taken away."""
    path.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(found.fileno(), 0o600)  # Linux binds with it: nobody can come in between
        found.bind(os.fspath(path))
        path.chmod(0o666 if system else 0o600)
    except BaseException:
        found.close()
        raise
    return found


def network_socket(listen: str) -> socket.socket:
    """At HOST:PORT; port 0 is any that is free."""
    host, port = address_of(listen)
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.create_server(kind[4][:2], family=kind[0])
    except OSError as error:
        raise InputError(f"cannot be listened at: {error.strerror}", field=listen) from None
    return found


def address_of(listen: str) -> tuple[str, int]:
    """The two parts of HOST:PORT."""
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{listen!r} is no HOST:PORT", field="listen", hint="like 127.0.0.1:8470")
    return host, int(port)


class Serving:
    """One application behind some listeners, in the event loop that starts it."""

    def __init__(self, app: ASGIApp, limits: Limits, on_connections: Callable[[int], None]) -> None:
        self.limits = limits
        self.places = Places(limits)
        self.on_connections = on_connections
        self.state = ServerState()
        self.config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(limits.idle_seconds),
        )
        self.config.load()
        self._servers: list[asyncio.Server] = []
        self._second = 0

    async def start(self, listeners: list[Listener]) -> None:
        """From now on, whoever connects is served."""
        loop = asyncio.get_running_loop()
        for each in listeners:
            timeout = self.limits.header_seconds if each.tls else None
            server = await loop.create_server(
                lambda: Protocol(self),
                sock=each.socket,
                ssl=each.tls,
                backlog=BACKLOG,
                ssl_handshake_timeout=timeout,
            )
            self._servers.append(server)

    async def stop(self) -> None:
        """Nobody new comes in; what is under way may finish, for a while."""
        for server in self._servers:
            server.close()
        for connection in list(self.state.connections):
            connection.shutdown()
        tasks = set(self.state.tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.limits.farewell_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection in list(self.state.connections):
            connection.transport.close()

    def date(self) -> None:
        """Answers carry the time of day."""
        now = int(time.time())
        if now != self._second:
            self._second = now
            self.state.default_headers = [(b"date", formatdate(now, usegmt=True).encode())]


class Protocol(HttpToolsProtocol):
    """One connection, with a Peer for everything that comes by it."""

    def __init__(self, serving: Serving) -> None:
        super().__init__(serving.config, serving.state, {})
        self.serving = serving
        self.peer = auth.Peer()
        self._welcome = False
        self._header_bytes = 0
        self._in_headers = True
        self._timer: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ coming and going

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        try:
            self.peer = auth.peer_of(transport.get_extra_info("socket"))
        except OSError:  # it is gone already
            transport.abort()
            return
        serving = self.serving
        self._welcome = serving.places.enter(self._sender)
        serving.on_connections(len(serving.state.connections))
        if not self._welcome:
            self._refuse(HttpError(503, "too many connections are open"))
            return
        self._wait(serving.limits.header_seconds, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(0, None)
        self._flows()
        if self._welcome:
            self.serving.places.leave(self._sender)
            self._welcome = False
        super().connection_lost(exc)
        self.serving.on_connections(len(self.serving.state.connections))

    @property
    def _sender(self) -> str | int:
        return self.peer.address or self.peer.uid

    # ------------------------------------------------------------------ a request

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            if self._header_bytes == 0:
                self._wait(self.serving.limits.header_seconds, self._too_slow)
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > self.serving.limits.header_bytes:
            self._refuse(HttpError(431, "the headers have more than 64 KiB"))

    def on_message_begin(self) -> None:
        self.serving.date()
        super().on_message_begin()
        self._in_headers = True
        self.scope["peer"] = self.peer  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._in_headers, self._header_bytes = False, 0
        self._wait(0, None)
        if sum(len(name) + len(value) for name, value in self.headers) > (
            self.serving.limits.header_bytes
        ):
            self._refuse(HttpError(431, "the headers have more than 64 KiB"))
            return
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_headers = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HttpError(400, "this is no HTTP that can be understood"))

    # ------------------------------------------------------------------ a reader that is slow

    def pause_writing(self) -> None:
        super().pause_writing()
        seconds = self.serving.limits.stuck_seconds
        self._stuck = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._flows()

    def _flows(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _too_slow(self) -> None:
        self._refuse(HttpError(408, "the request did not come"))

    def _wait(self, seconds: float, call: Callable[[], Any] | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, call) if call else None

    def _refuse(self, error: HttpError) -> None:
        """Answer without the application, and hang up."""
        if self.transport.is_closing():
            return
        body = msgspec.json.encode(problem_of(error))
        head = (
            b"content-type: application/problem+json\r\n"
            b"cache-control: no-store\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % len(body)
        )
        # uvicorn declares that there always is one; there is none before the first request.
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]
            self.transport.write(STATUS_LINE[error.status] + head + body)
        self.transport.close()
