"""The daemon's process: it opens everything, listens, says that it does, and ends when told to."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import logging.handlers
import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple

from bough import __version__
from bough.backends import cgroups
from bough.connection import reachable
from bough.errors import DaemonError, InputError
from bough.home import SOCKET_BYTES_MAX, daemon_path, socket_path
from bough.server import auth, tls
from bough.server.app import THREADS, Manners, make_app
from bough.server.assembly import Wish, assemble, park_all, take_apart
from bough.server.limits import Limits
from bough.server.metrics import Metrics
from bough.server.service import Service
from bough.server.serving import Listener, Serving, address_of, network_socket, unix_socket

_log = logging.getLogger(__name__)
LOG_BYTES_MAX, LOGS_KEPT = 1 << 20, 2
#: A daemon that no longer listens has so long to be gone before the next one gives up.
LEAVING_SECONDS: Final = 15.0
LOG_FORM: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Ways(NamedTuple):
    """How a daemon is reached besides by its socket."""

    #: HOST:PORT; empty: not at all.
    listen: str = ""
    papers: tls.Papers | None = None


class Notice(NamedTuple):
    """Who serves a home, for whoever wants to know; kept in daemon.json."""

    pid: int
    version: str
    socket: str
    listen: str = ""
    #: Of its certificate.
    fingerprint: str = ""
    devices: str = ""


def run(wish: Wish, ways: Ways, ready: Callable[[Notice], None]) -> None:
    """Until it is told to end; jobs go on."""
    if wish.system:
        _check_home(wish.home)
        wish.home.chmod(0o711)  # users' jobs have directories of their own below it
    with _alone(wish.home):
        _run(wish, ways, ready)


def _run(wish: Wish, ways: Ways, ready: Callable[[Notice], None]) -> None:
    _write_logs(wish.home)
    os.chdir("/")  # not to keep anybody's disk busy
    _log.info("memory of jobs is held to its limit by %s", cgroups.prepare() or "their shims")
    service = assemble(wish)
    try:
        asyncio.run(_serve(service, wish, ways, ready))
    finally:
        take_apart(service)
        daemon_path(wish.home).unlink(missing_ok=True)
    _log.info("ended")


def _check_home(home: Path) -> None:
    """Whoever may change a folder above our files may put others in their place, or links."""
    for folder in (home, *home.parents):
        about = folder.stat()
        others = about.st_mode & 0o022 and (folder == home or not about.st_mode & stat.S_ISVTX)
        if about.st_uid not in (0, os.geteuid()) or others:
            hint = "chown it to root and chmod go-w, or set BOUGH_HOME to a folder of root's"
            raise InputError("may be changed by others than root", file=str(folder), hint=hint)
    if len(os.fsencode(home / "bough.sock")) > SOCKET_BYTES_MAX:
        hint = "set BOUGH_HOME to a shorter one"
        raise InputError("is too long a path for a socket in it", file=str(home), hint=hint)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One daemon serves a home, whatever its store is; one that is just leaving is waited for."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open(home / "daemon.lock", flags, 0o600)
    except OSError as error:
        raise DaemonError(f"{home}: {error.strerror}; set BOUGH_HOME to another one.") from None
    try:
        until = time.monotonic() + LEAVING_SECONDS
        while not _locked(lock):
            if reachable(socket_path(home)) or time.monotonic() >= until:
                notice = read_notice(home)
                who = f": process {notice.pid}" if notice else ""
                raise DaemonError(f"A daemon serves {home} already{who}.")
            time.sleep(0.05)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _serve(service: Service, wish: Wish, ways: Ways, ready: Callable[[Notice], None]) -> None:
    loop, parts = asyncio.get_running_loop(), service.parts
    metrics, threads = Metrics(), ThreadPoolExecutor(THREADS, "api")
    parts.loop.took = metrics.decision_seconds.observe
    manners = Manners(metrics=metrics, hosts=auth.own_hosts(ways.listen), threads=threads)
    serving = Serving(make_app(service, manners), Limits(), metrics.connections.set)
    ending: asyncio.Future[bool] = loop.create_future()

    def end(park: bool = False) -> None:
        if not ending.done():
            ending.set_result(park)

    parts.end = lambda park: _in(loop, partial(end, park))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    place = socket_path(wish.home)
    listeners, notice = _listeners(wish, ways, place)
    await serving.start(listeners)
    parts.listen = notice.listen
    _write_notice(wish.home, notice)
    ready(notice)
    _log.info("serves %s as process %s", wish.home, notice.pid)
    try:
        if await ending:
            await loop.run_in_executor(threads, park_all, parts)
    finally:
        place.unlink(missing_ok=True)  # whoever comes now finds nobody, and may start another
        manners.closing.set()
        parts.loop.news.end()
        await serving.stop()
        manners.bell.close()
        threads.shutdown(wait=False, cancel_futures=True)


def _in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(call)


def _listeners(wish: Wish, ways: Ways, place: Path) -> tuple[list[Listener], Notice]:
    """All sockets, bound; and what there is to say of them."""
    listen = fingerprint = ""
    found = []
    if ways.listen:
        host, _ = address_of(ways.listen)
        names = {host, "localhost", "127.0.0.1", socket.gethostname()} - {"0.0.0.0", "::", "*"}
        papers = tls.papers_of(wish.home, ways.papers, names)
        context = tls.context_of(papers)
        bound = network_socket(ways.listen)
        listen = f"{host}:{bound.getsockname()[1]}"
        fingerprint = tls.fingerprint(papers)
        found.append(Listener(bound, context))
    if not place.parent.exists():
        place.parent.mkdir(parents=True)
        place.parent.chmod(0o755 if wish.system else 0o700)
    found.append(Listener(unix_socket(place, system=wish.system)))
    notice = Notice(
        os.getpid(), __version__, str(place), listen, fingerprint, wish.devices or ""
    )  # fmt: skip
    return found, notice


def read_notice(home: Path) -> Notice | None:
    """Who served this home last, or does; None when nobody knows."""
    try:
        found = json.loads(daemon_path(home).read_text(encoding="utf-8"))
        return Notice(**found)
    except (OSError, ValueError, TypeError):
        return None


def _write_notice(home: Path, notice: Notice) -> None:
    text = json.dumps(notice._asdict(), indent=2) + "\n"
    fresh = daemon_path(home).with_suffix(".part")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o644)
        os.replace(fresh, daemon_path(home))
    except OSError as error:  # a full disk: the last one's has its room, and says nothing true now
        _log.warning("%s cannot be written: %s", fresh, error)
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
            with open(daemon_path(home), "r+", encoding="utf-8") as old:
                old.write(text)
                old.truncate()


class _PrivateLog(logging.handlers.RotatingFileHandler):
    """For the daemon's own user alone: a mistake of ours may quote what a user sent."""

    def _open(self) -> TextIOWrapper:
        file = super()._open()
        os.fchmod(file.fileno(), 0o600)
        return file


def _write_logs(home: Path) -> None:
    """Into a file that is never large."""
    handler = _PrivateLog(
        home / "daemon.log", maxBytes=LOG_BYTES_MAX, backupCount=LOGS_KEPT, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter(LOG_FORM))
    handler.setLevel(logging.INFO)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
