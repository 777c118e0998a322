"""The way to a daemon: its Unix socket here, or TLS to a server elsewhere; errors as it meant them.

A daemon that was met and goes away may be restarting: what does no harm when it is asked twice is
asked again for a while.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import os
import socket
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from bough.errors import (
    BoughError,
    ConflictError,
    DaemonError,
    ForbiddenError,
    FullError,
    InputError,
    NotFoundError,
    TooManyError,
)
from bough.records import Problem

T = TypeVar("T")
#: Word of a Problem: what is raised here. The server has the same table the other way round.
KINDS: Final[dict[str, type[BoughError]]] = {
    "not-found": NotFoundError,
    "forbidden": ForbiddenError,
    "unauthorized": ForbiddenError,
    "conflict": ConflictError,
    "full": FullError,
    "unavailable": DaemonError,
}
#: Words that say that what was sent is at fault.
_INPUT: Final = ("input", "malformed", "too-large", "media-type", "range", "method")
PORT: Final = 8470
#: A daemon that says nothing for so long has a problem.
ANSWER_SECONDS: Final = 60.0
#: A daemon that was here and is gone is given so long to come back.
PATIENCE_SECONDS: Final = 10.0
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.05, 1.0
_PIECE_BYTES: Final = 1 << 16
_CLOSED: Final = "This client was closed."
#: What http.client and sockets raise when the other side goes away.
LOST: Final = (OSError, http.client.HTTPException)


class Address(NamedTuple):
    """Where a daemon is, and what it must be told and must show."""

    #: Path of a Unix socket; empty: it is elsewhere.
    socket: str = ""
    host: str = ""
    port: int = PORT
    token: str = ""
    #: SHA-256 of its certificate; empty: the machine's authorities vouch for it.
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """For people."""
        return self.socket or f"https://{self.host}:{self.port}"


def address_of(server: str, token: str = "", fingerprint: str = "") -> Address:
    """What BOUGH_SERVER, BOUGH_TOKEN and BOUGH_FINGERPRINT say."""
    if server.startswith("/"):
        return Address(socket=server)
    if server.startswith("unix:"):
        return Address(socket=server.removeprefix("unix:"))
    hint = "write it like https://host:8470"
    try:
        parts = urlsplit(server)
        port = parts.port or PORT
    except ValueError:
        raise InputError(f"{server!r} is not an address", field="BOUGH_SERVER", hint=hint) from None
    if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query:
        raise InputError(f"{server!r} is not an address", field="BOUGH_SERVER", hint=hint)
    pinned = fingerprint.strip().lower().removeprefix("sha256:").replace(":", "")
    if pinned and (len(pinned) != 64 or not set(pinned) <= set("0123456789abcdef")):
        what = "is not the SHA-256 of a certificate"
        raise InputError(what, field="BOUGH_FINGERPRINT", hint="64 digits of 0-9 and a-f")
    return Address("", parts.hostname, port, token.strip(), pinned)


class OverSocket(http.client.HTTPConnection):
    """HTTP through a Unix socket."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("bough", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.path)
        except OSError:
            self.close()
            raise


class OverTls(http.client.HTTPSConnection):
    """HTTP through TLS; nothing is said to a server that shows another certificate than pinned."""

    def __init__(self, address: Address, timeout: float | None) -> None:
        import ssl

        context = ssl.create_default_context()
        if address.fingerprint:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        super().__init__(address.host, address.port, timeout=timeout, context=context)
        self.pinned = address.fingerprint

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if not self.pinned:
            return
        shown = self.sock.getpeercert(True)
        found = hashlib.sha256(shown or b"").hexdigest()
        if not hmac.compare_digest(found, self.pinned):
            self.close()
            hint = "somebody may be in between; else set BOUGH_FINGERPRINT anew"
            raise InputError(f"the server's certificate is another one ({hint})")


def open_connection(address: Address, timeout: float | None) -> http.client.HTTPConnection:
    """A connection that is open: what fails later may have been heard."""
    connection: http.client.HTTPConnection
    if address.socket:
        connection = OverSocket(address.socket, timeout)
    else:
        connection = OverTls(address, timeout)
    try:
        connection.connect()
    except LOST as error:
        raise nobody(address, error) from None
    return connection


def reachable(path: Path) -> bool:
    """Whether somebody listens at a Unix socket."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(ANSWER_SECONDS)
        return probe.connect_ex(os.fspath(path)) == 0


def nobody(address: Address, error: Exception) -> BoughError:
    """Why no connection could be made."""
    import ssl

    if not address.socket:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = "its certificate is not one this machine trusts (set BOUGH_FINGERPRINT)"
        else:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return DaemonError(f"{address.name} cannot be reached: {why}.")
    if isinstance(error, PermissionError):
        return ForbiddenError(f"{address.socket} belongs to somebody else.")
    return DaemonError()


class Stream(NamedTuple):
    """An answer that is read as it comes."""

    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse

    def lines(self) -> Iterator[bytes]:
        """Whole lines without their ends. A stream cut short is an error, not its end."""
        rest = b""
        while piece := self.response.read1(_PIECE_BYTES):
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        if rest:
            raise http.client.IncompleteRead(rest)

    def close(self) -> None:
        """No more of it."""
        self.response.close()
        self.connection.close()


class Connection:
    """Asks one daemon, from any thread; keeps what is open for the next question."""

    def __init__(self, address: Address, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.address = address
        self.patience_seconds = patience_seconds
        #: It has answered before.
        self.met = False
        #: Nobody asks it any more.
        self.closed = False
        self._idle: list[http.client.HTTPConnection] = []
        self._followed: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def close(self) -> None:
        """Let go of what is open. Whoever follows something in another thread finds its end."""
        self.closed = True
        for followed in list(self._followed):
            with contextlib.suppress(OSError):  # it is over already
                socket.socket.shutdown(followed, socket.SHUT_RDWR)
        self._let_go()

    def _let_go(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], again: bool
    ) -> bytes:
        """One question and its answer. `again`: it does no harm to be asked twice."""

        def once() -> bytes:
            used = self._take() if again else open_connection(self.address, ANSWER_SECONDS)
            try:
                response = self._send(used, method, path, body, headers)
                raw = response.read()
            except BaseException:
                used.close()
                raise
            if used.sock is not None:  # the daemon has not closed it
                self._idle.append(used)
            if response.status >= 400:
                raise error_of(response.status, response.headers.get_content_type(), raw)
            return raw

        return self.insist(once, again)

    def __del__(self) -> None:
        self.close()

    def stream(self, path: str, headers: Mapping[str, str]) -> Stream:
        """An answer without a known end; it has a connection of its own."""
        if self.closed:
            raise DaemonError(_CLOSED)
        used = open_connection(self.address, ANSWER_SECONDS)
        try:
            used_socket = used.sock  # the response keeps it, the connection does not
            response = self._send(used, "GET", path, None, {**headers, "connection": "close"})
            if response.status >= 400:
                raw = response.read()
                raise error_of(response.status, response.headers.get_content_type(), raw)
            if used_socket is not None:
                used_socket.settimeout(None)  # a job may be silent for days
                self._followed.add(used_socket)
            if self.closed:  # meanwhile
                raise DaemonError(_CLOSED)
        except BaseException:
            used.close()
            raise
        return Stream(used, response)

    def insist(self, attempt: Callable[[], T], again: bool = True) -> T:
        """Try until it works, for as long as there is hope."""
        until, pause = time.monotonic() + self.patience_seconds, 0.0
        while True:
            try:
                return self._met(attempt())
            except TooManyError as error:
                problem: BoughError = error
                pause = max(error.retry_after_seconds, pause)
            except DaemonError as error:  # it heard nothing
                problem = error
                if not self.met:
                    raise
            except LOST as error:
                problem = lost(error, again)
                if not again:
                    raise problem from None
            self._let_go()
            if self.closed or time.monotonic() + pause > until:
                raise problem
            time.sleep(pause)
            pause = min(max(2 * pause, _PAUSE_SECONDS), _PAUSE_SECONDS_MAX)

    def _met(self, answer: T) -> T:
        self.met = True
        return answer

    def _take(self) -> http.client.HTTPConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return open_connection(self.address, ANSWER_SECONDS)

    def _send(
        self,
        used: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        sent = dict(headers)
        if body is not None:
            sent["content-type"] = "application/json"
        if self.address.token:
            sent["authorization"] = f"Bearer {self.address.token}"
        # What is refused before it is read whole: the answer may be there already.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            used.request(method, path, body, sent)
        return used.getresponse()


# ------------------------------------------------------------------------------------- answers


def lost(error: Exception, again: bool) -> DaemonError:
    """What there is to say when the other side went away in the middle."""
    if isinstance(error, TimeoutError):
        return DaemonError(f"The daemon did not answer within {ANSWER_SECONDS:.0f} seconds.")
    if again:
        return DaemonError("The daemon went away before it answered.")
    return DaemonError("The daemon went away before it answered; `bough ls` tells what it did.")


def error_of(status: int, media: str, body: bytes) -> BoughError:
    """The error that the daemon meant."""
    try:
        problem = msgspec.json.decode(body, type=Problem, strict=False)
    except (msgspec.MsgspecError, UnicodeError):
        return DaemonError(f"What answered is no bough ({status} {media or 'without a type'}).")
    what = problem.detail or problem.title
    if problem.code in _INPUT:
        place = (problem.file or None, problem.line, problem.field or None)
        return InputError(
            what, file=place[0], line=place[1], field=place[2], hint=problem.hint or None
        )
    if problem.hint:
        what = f"{what} ({problem.hint})"
    if problem.code == "too-many":
        return TooManyError(what, problem.retry_after_seconds or 1.0)
    return KINDS.get(problem.code, BoughError)(what)
