"""A real daemon inside the test's process: its service behind real sockets, in its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.types import ASGIApp

from bough.client import Client
from bough.connection import Address, OverSocket
from bough.core.model import JobSpec, Range
from bough.errors import BoughError
from bough.records import ENDED, JobRecord, Recipe, Submission
from bough.server.app import Manners, make_app
from bough.server.assembly import Wish, assemble, take_apart
from bough.server.auth import Peer
from bough.server.limits import Limits
from bough.server.service import Service
from bough.server.serving import Listener, Serving, network_socket, unix_socket

T = TypeVar("T")
PATIENCE_SECONDS = 20.0
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The word of a Problem."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = self.json
        assert problem["status"] == self.status, problem
        assert problem["title"], problem
        found: str = problem.get("code", "")
        return found


class Served:
    """One home, and the daemon that serves it while it is up."""

    def __init__(
        self,
        home: Path,
        *,
        slots: int = 4,
        system: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.wish = Wish(home=home, devices=f"cpu:{slots}", system=system)
        self.limits = limits or Limits()
        self.path = home / "socket"
        self.port = 0
        home.mkdir(mode=0o700, exist_ok=True)
        self.start()

    def start(self) -> None:
        """Until it listens."""
        self.service: Service = assemble(self.wish)
        self.ended = threading.Event()
        self.parked: bool | None = None
        self.service.parts.end = self._end
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="served")
        self._thread.start()
        self.do(self._listen())

    def stop(self, *, park: bool = False) -> None:
        """As when it is told to end; its jobs go on."""
        if self.loop.is_closed():
            return
        self.do(self._leave())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self.loop.close()
        take_apart(self.service, park=park)

    def clear(self) -> None:
        """No job is left, and no daemon."""
        if self.loop.is_closed():
            self.start()
        with self.client() as client, contextlib.suppress(BoughError):
            live = [job for job in client.jobs(limit=1000).jobs if job.state not in ENDED]
            for job in live:
                client.stop(job.id)
            for job in live:
                client.wait(job.id, PATIENCE_SECONDS)
        self.stop()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done in the daemon's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_SECONDS)

    async def _listen(self) -> None:
        self.manners = Manners(limits=self.limits)
        self.app: ASGIApp = make_app(self.service, self.manners)
        self.service.parts.loop.took = self.manners.metrics.decision_seconds.observe
        self.serving = Serving(self.app, self.limits, self.manners.metrics.connections.set)
        network = network_socket("127.0.0.1:0")
        self.port = network.getsockname()[1]
        here = unix_socket(self.path, system=self.wish.system)
        await self.serving.start([Listener(here), Listener(network)])

    async def _leave(self) -> None:
        self.manners.closing.set()
        self.service.parts.loop.news.end()
        await self.serving.stop()
        self.manners.bell.close()
        self.manners.threads.shutdown()
        await self.loop.shutdown_default_executor()

    def _end(self, park: bool) -> None:
        self.parked = park
        self.ended.set()

    # ------------------------------------------------------------------ asking

    def client(self) -> Client:
        return Client(Address(socket=os.fspath(self.path)))

    def connection(self, *, network: bool = False) -> http.client.HTTPConnection:
        if network:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        return OverSocket(os.fspath(self.path), PATIENCE_SECONDS)

    def raw(self, *, network: bool = False) -> socket.socket:
        """A connection on which anything can be said."""
        connection = self.connection(network=network)
        connection.connect()
        return connection.sock

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str = "",
        network: bool = False,
    ) -> Answer:
        """One request; a body that is not bytes is sent as JSON."""
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        with contextlib.closing(self.connection(network=network)) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, data, sent)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())

    def ask_as(
        self,
        peer: Peer,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        enough: bytes = b"never",
    ) -> Answer:
        """The same by somebody whom no test can be: the application is asked without a socket.

        They hang up when they have read `enough`.
        """
        return self.do(asked_of(self.app, peer, method, path, body, headers or {}, enough))

    # ------------------------------------------------------------------ jobs

    def submit(self, *argv: str, key: str = "", **spec: Any) -> JobRecord:
        with self.client() as client:
            return client.submit(order(*argv, key=key, **spec))

    def run(self, *argv: str, **spec: Any) -> JobRecord:
        """To its end."""
        with self.client() as client:
            job = client.wait(client.submit(order(*argv, **spec)).id, PATIENCE_SECONDS)
        assert job.state in ENDED, job
        return job

    def until(self, what: str, id: str, *, after: int = 0) -> int:
        """Wait for such an event of a job; the number of its entry."""
        with self.client() as client, contextlib.closing(client.events(after)) as happenings:
            for each in happenings:
                if each.type == what and each.data.get("id") == id:
                    return each.seq
        raise AssertionError(f"no {what} of job {id}")


def order(
    *argv: str,
    key: str = "",
    devices: int | tuple[int, int] = 1,
    env: Mapping[str, str] | None = None,
    **spec: Any,
) -> Submission:
    """A job as clients send it."""
    least, most = devices if isinstance(devices, tuple) else (devices, devices)
    recipe = Recipe(
        argv=argv or ("true",), cwd="/", env=dict(env or ENVIRONMENT), grace_seconds=5.0
    )
    asked = JobSpec(name=spec.pop("name", "test"), devices=Range(min=least, max=most), **spec)
    return Submission(spec=asked, recipe=recipe, key=key)


def refused(answer: Answer, status: int, code: str) -> Any:
    """One sentence and nothing of our insides."""
    assert (answer.status, answer.code) == (status, code), answer
    problem = answer.json
    detail = problem["detail"]
    assert detail
    assert "\n" not in detail
    assert "Traceback" not in detail
    assert len(detail) < 1000
    assert answer.headers["cache-control"] == "no-store"
    return problem


async def asked_of(
    app: ASGIApp,
    peer: Peer,
    method: str,
    path: str,
    body: object,
    headers: Mapping[str, str],
    enough: bytes,
) -> Answer:
    """A whole answer of the application."""
    data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    place, _, query = path.partition("?")
    sent = {"content-type": "application/json", **headers} if data else headers
    scope = {
        "type": "http", "method": method, "path": place, "raw_path": place.encode(),
        "query_string": query.encode(), "root_path": "", "scheme": "http", "peer": peer,
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }  # fmt: skip
    messages = asyncio.Queue[dict[str, Any]]()
    messages.put_nowait({"type": "http.request", "body": data, "more_body": False})
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)
        if enough in message.get("body", b""):
            messages.put_nowait({"type": "http.disconnect"})

    await app(scope, messages.get, send)
    names = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return Answer(said[0]["status"], names, b"".join(each.get("body", b"") for each in said[1:]))


@contextlib.contextmanager
def served_at(home: Path, **more: Any) -> Iterator[Served]:
    """A daemon that leaves nothing behind."""
    served = Served(home, **more)
    try:
        yield served
    finally:
        served.clear()
