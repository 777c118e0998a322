"""From a request to its answer: who asks, may they, what do they want, and how it is said."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from bough.records import MIB
from bough.server import auth, openapi
from bough.server.auth import Peer
from bough.server.bell import Bell
from bough.server.limits import Buckets, Limits, Loads
from bough.server.metrics import Metrics
from bough.server.operations import (
    Answer,
    Ask,
    Operation,
    Raw,
    Stream,
    Surroundings,
    arguments_of,
)
from bough.server.problems import HttpError, headers_of, log, problem_of
from bough.server.routes import api

if TYPE_CHECKING:
    from bough.server.permissions import Caller
    from bough.server.service import Service

T = TypeVar("T")
Headers = list[tuple[bytes, bytes]]

#: Threads for what has to be read.
THREADS: Final = 8
#: Bytes that take noticeably long to understand.
LARGE: Final = 256 << 10
#: Answers are for whoever asked, and say what they are.
_ALWAYS: Final[Headers] = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
_ENCODE: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How the app meets the world."""

    #: What it may be called by those who come over the network.
    hosts: frozenset[str] = frozenset({"localhost"})
    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    #: Set when the server ends: nobody waits any longer.
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    bell: Bell = field(default_factory=Bell)
    threads: Executor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "api"))


def make_app(service: Service, manners: Manners | None = None) -> ASGIApp:
    """The whole API as one ASGI application; connections carry their Peer in `scope["peer"]`."""
    manners = manners or Manners()
    door = Door(service, manners, openapi.document(api.all))
    routes = [Route(path, Desk(door, every)) for path, every in api.by_path().items()]
    return Router(routes, redirect_slashes=False, default=Desk(door, {}))


class Door:
    """Lets in whoever may come in, and knows who it is."""

    def __init__(self, service: Service, manners: Manners, document: bytes) -> None:
        self.service = service
        self.manners = manners
        self.around = Surroundings(self.in_thread, manners.metrics, manners.bell, document)
        limits = manners.limits
        self.loads = Loads(limits)
        self._buckets = Buckets(limits.requests_per_second, limits.requests_burst)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call what may have to wait for the disk."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.manners.threads, call)

    async def admit(self, scope: Scope, headers: dict[str, str], operation: Operation) -> Caller:
        """Who asks, if they may."""
        peer: Peer = scope["peer"]
        if peer.uid < 0:
            auth.check_host(headers, self.manners.hosts)
        auth.check_origin(headers)
        if operation.scope is None:
            self._buckets.take(peer.address or peer.uid)
            return auth.NOBODY
        caller = await self._who(peer, auth.secret_in(headers))
        self._buckets.take(caller.user)
        auth.check_scope(caller, operation.scope)
        return caller

    async def _who(self, peer: Peer, secret: str | None) -> Caller:
        service = self.service
        if secret is not None:
            self._buckets.take(peer.address or peer.uid)
            caller = await self.in_thread(partial(service.caller_of_token, secret))
            if caller is None:
                raise auth.unknown("This token is not known here, or its time is over.")
            return caller
        if peer.uid < 0:
            raise auth.unknown("Over the network, a token says who asks.")
        admins = service.config(auth.NOBODY).admins if service.system else ()
        return auth.caller_at(peer, system=service.system, admins=admins)


class Desk:
    """Serves one path."""

    def __init__(self, door: Door, operations: Mapping[str, Operation]) -> None:
        self._door = door
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations.setdefault("HEAD", operations["GET"])
        self._coroutines = {each.name for each in operations.values() if each.coroutine}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, name = time.perf_counter(), "none"
        metrics = self._door.manners.metrics
        try:
            operation = self._operation(scope["method"])
            name = operation.name
            given = await self._answer(operation, scope, receive)
            if isinstance(given, Stream):
                status = given.status
                metrics.requests.labels(name, status).inc()
                with metrics.streams.track_inprogress():
                    await self._stream(given, scope, receive, send)
                return
            status, headers, body = as_bytes(operation, given)
        except Exception as error:
            status, headers, body = trouble(error)
        metrics.requests.labels(name, status).inc()
        metrics.request_seconds.labels(name).observe(time.perf_counter() - begun)
        await _send(send, status, headers, body)

    def _operation(self, method: str) -> Operation:
        found = self._operations.get(method)
        if found is not None:
            return found
        if not self._operations:
            raise HttpError(404, "no such address", hint="/v1/openapi.json lists all")
        allowed = ", ".join(sorted(self._operations))
        raise HttpError(405, f"{method} is none of {allowed}", headers={"allow": allowed})

    async def _answer(self, operation: Operation, scope: Scope, receive: Receive) -> Any:
        headers = headers_in(scope)
        caller = await self._door.admit(scope, headers, operation)
        with Load(self._door.loads, caller.user or scope["peer"]) as load:
            return await self._called(operation, scope, receive, caller, headers, load)

    async def _called(
        self,
        operation: Operation,
        scope: Scope,
        receive: Receive,
        caller: Caller,
        headers: dict[str, str],
        load: Load,
    ) -> Any:
        body = await read_body(operation, headers, receive, self._door.manners.limits, load)
        read = partial(arguments_of, operation, scope["path_params"], scope["query_string"], body)
        # What is large is read beside the others: they are not to wait for it.
        given = await self._door.in_thread(read) if len(body) > LARGE else read()
        ask = Ask(self._door.service, caller, headers, self._door.around)
        call = partial(operation.handler, ask, **given)
        if operation.asks:
            future = asyncio.wrap_future(call())
            return await (self._patiently(future, receive) if operation.patient else future)
        if operation.name in self._coroutines:
            return await call()
        return await self._door.in_thread(call)

    async def _patiently(self, future: asyncio.Future[T], receive: Receive) -> T:
        """Until it is there, or there is nobody who waits, or no time left."""
        try:
            await self._first(future, receive)
        finally:
            if not future.done():
                future.cancel()
        if future.cancelled():
            raise HttpError(503, "the daemon ends", headers={"connection": "close"})
        return future.result()

    async def _stream(self, given: Stream, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*_ALWAYS, (b"content-type", given.media.encode()), *_encoded(given.headers)]
        start = {"type": "http.response.start", "status": given.status, "headers": headers}
        whole = scope["method"] == "HEAD"
        try:
            await send(start)
            whole = whole or await self._poured(given, receive, send)
        finally:
            await given.pieces.aclose()
            given.close()
        if whole:  # else it is cut off, so that nobody takes what has come for all there is
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _poured(self, given: Stream, receive: Receive, send: Send) -> bool:
        """Whether it was all there is; what has no end is over when the server is."""
        task = asyncio.ensure_future(_pour(given.pieces, send))
        try:
            await self._first(task, receive, closing=given.endless)
        finally:
            if not task.done():
                task.cancel()
            (error,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(error, Exception):
            log.error("an answer broke off", exc_info=error)
        return error is None or (given.endless and self._door.manners.closing.is_set())

    async def _first(
        self, work: asyncio.Future[Any], receive: Receive, *, closing: bool = True
    ) -> None:
        """Wait for that, or until the other side hangs up, or until the server ends."""
        others = [asyncio.ensure_future(_gone(receive))]
        if closing:
            others.append(asyncio.ensure_future(_set(self._door.manners.closing)))
        try:
            await asyncio.wait({work, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in others:
                each.cancel()


# ------------------------------------------------------------------------------------ what comes


class Load:
    """What one request carries, from its first byte until it is answered."""

    def __init__(self, loads: Loads, sender: Hashable) -> None:
        self._loads, self._sender, self._size = loads, sender, 0

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._loads.give_back(self._sender, self._size)

    def add(self, size: int) -> None:
        """Some more of it came."""
        self._loads.take(self._sender, size)
        self._size += size


def headers_in(scope: Scope) -> dict[str, str]:
    """Names in small letters; none may come twice that decides about anything."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        if key in found and key in _SINGLE:
            raise HttpError(400, f"the header {key} is given twice")
        found[key] = value.decode("latin-1")
    return found


_SINGLE: Final = frozenset(
    {"authorization", "content-length", "content-type", "host", "idempotency-key", "origin"}
)


async def read_body(
    operation: Operation,
    headers: Mapping[str, str],
    receive: Receive,
    limits: Limits,
    load: Load,
) -> bytes:
    """What the request carries, unless it is too much, or no JSON, or too slow in coming."""
    most = operation.bytes_max if operation.body is not None else 1024
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    parts, size = [], 0
    begun = asyncio.get_running_loop().time() + limits.body_seconds
    try:
        async with asyncio.timeout_at(begun) as deadline:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpError(400, "the request ended before it was whole")
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
                size += len(parts[-1])
                if size > most:
                    raise _too_large(most)
                load.add(len(parts[-1]))
                deadline.reschedule(begun + size / limits.body_bytes_per_second)
    except TimeoutError:
        raise HttpError(408, "the request took too long", headers=_HANG_UP) from None
    if size and operation.body is not None:
        _check_media(headers.get("content-type", ""))
    return b"".join(parts)


_HANG_UP: Final = {"connection": "close"}


def _too_large(most: int) -> HttpError:
    size = f"{most // MIB} MiB" if most >= MIB else f"{most} bytes"
    return HttpError(413, f"at most {size} may come with this", headers=_HANG_UP)


def _check_media(media: str) -> None:
    kind = media.partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        hint = "send it with `Content-Type: application/json`"
        raise HttpError(415, f"{media or 'nothing'} is not JSON", hint=hint)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _set(event: asyncio.Event) -> None:
    await event.wait()


# ------------------------------------------------------------------------------------ what goes


def as_bytes(operation: Operation, given: Any) -> tuple[int, Headers, bytes]:
    """An answer on its way."""
    if isinstance(given, Raw):
        media = (b"content-type", given.media.encode())
        return given.status, [media, *_encoded(given.headers)], given.data
    status, more = operation.status, Headers()
    if isinstance(given, Answer):
        status, more, given = given.status, _encoded(given.headers), given.value
    if given is None:
        return status, more, b""
    return status, [(b"content-type", b"application/json"), *more], encode(given)


def trouble(error: Exception) -> tuple[int, Headers, bytes]:
    """What went wrong, as an answer."""
    problem = problem_of(error)
    headers = [(b"content-type", b"application/problem+json"), *_encoded(headers_of(error))]
    return problem.status, headers, _ENCODE(problem)


def encode(value: Any) -> bytes:
    """JSON. It knows no infinities: as facts they are spelled out, elsewhere left out."""
    raw = _ENCODE(value)
    # Records leave out what is None by default: a null is an infinity, or in some text.
    return _ENCODE(_finite(msgspec.to_builtins(value))) if b"null" in raw else raw


def _finite(value: Any, facts: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: str(item) if facts and _endless(item) else _finite(item, key == "facts")
            for key, item in value.items()
            if facts or not _endless(item)
        }
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    if status != 204:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    start = {"type": "http.response.start", "status": status, "headers": [*_ALWAYS, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _pour(pieces: AsyncGenerator[bytes, None], send: Send) -> None:
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
