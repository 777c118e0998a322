"""What the daemon can say of what is to come: quotes on request, and outlooks of all live jobs.

The state is copied between two turns, which takes milliseconds; copies are run forward by other
processes (prophet.py), so that neither the decision thread nor the API waits for them.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from bough.core.model import INFINITY, JobSpec
from bough.core.prospects import Outlook, Quote
from bough.errors import BoughError, DaemonError, TooManyError
from bough.server.parts import Parts
from bough.server.prophet import LENGTH, Answer, Errand, receive

replace = msgspec.structs.replace
#: Quotes of one user, and of all, that may wait at a time.
WAITING_EACH, WAITING_MAX = 2, 16
#: Nobody waits longer for one.
PATIENCE_SECONDS: Final = 60.0
#: A prophet that nobody has asked for so long is let go.
IDLE_SECONDS: Final = 300.0
#: So much of the past is looked at, and so many of its last submissions.
PAST_SECONDS: Final = 14 * 86_400.0
PAST_MAX: Final = 2_000
#: It is read anew after so long.
PAST_AGE_SECONDS: Final = 600.0
#: Outlooks: in so many versions, fewer where there are many jobs, so far ahead.
VERSIONS, VERSIONS_MIN, EASY = 20, 5, 4_000
HORIZON_SECONDS: Final = 30 * 86_400.0
#: They are not older than this when somebody looks, or than so many times what they took.
FRESH_SECONDS, REST = 2.0, 10.0
#: Nor than this, while nothing happens.
AGE_SECONDS: Final = 60.0


class Prophet:
    """The other process, started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def ask(self, errand: Errand) -> Answer:
        """What it says; it is asked by one thread at a time."""
        process = self._begun()
        watch = threading.Timer(PATIENCE_SECONDS, process.kill)
        watch.daemon = True
        watch.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            data = msgspec.msgpack.encode(errand)
            process.stdin.write(LENGTH.pack(len(data)) + data)
            process.stdin.flush()
            found = receive(process.stdout)  # type: ignore[arg-type]
        except OSError:
            found = None
        finally:
            late = not watch.is_alive()
            watch.cancel()
        if found is None:
            self.end()
            if late:
                text = f"It took more than {PATIENCE_SECONDS:g}s; ask for fewer versions."
                raise TooManyError(text, PATIENCE_SECONDS)
            raise DaemonError("The process that looks ahead has ended; ask again.")
        self._rest()
        answer = msgspec.msgpack.decode(found, type=Answer)
        if answer.error:
            raise BoughError(f"Looking ahead failed: {answer.error}")
        return answer

    def _begun(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._process is not None and self._process.poll() is not None:
                _let_go(self._process)
                self._process = None
            if self._process is None:
                command = [sys.executable, "-P", "-m", "bough.server.prophet"]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
                )
            return self._process

    def _rest(self) -> None:
        """Let it go when nobody asks for a while."""
        self._timer = threading.Timer(IDLE_SECONDS, self.end)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """It is not needed any more."""
        with self._lock:
            process, self._process = self._process, None
            if self._timer is not None:
                self._timer.cancel()
            if process is not None:
                _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """End it, if it has not ended, and close what led to it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # what was not read is not missed
            if pipe is not None:
                pipe.close()


class Known(NamedTuple):
    """What was submitted from one moment to another."""

    begin: float = 0.0
    until: float = 0.0
    arrivals: tuple[tuple[float, JobSpec], ...] = ()


class Seen(NamedTuple):
    """Outlooks, as of a moment."""

    at: float = -INFINITY
    #: The last entry of the journal then, and how long it took to look.
    seq: int = -1
    took: float = 0.0
    outlooks: Mapping[str, Outlook] = {}


class Foresight:
    """Asked from any thread."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._loop = parts, parts.loop
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()
        self._quotes, self._outlooks = Prophet(), Prophet()
        self._quoting = ThreadPoolExecutor(1, "bough-quotes")
        self._looking = ThreadPoolExecutor(1, "bough-outlooks")
        self._under_way: Future[Seen] | None = None
        self._past = Known()
        self._past_at = -INFINITY
        self.seen = Seen()

    def end(self) -> None:
        """The daemon ends."""
        for pool in (self._quoting, self._looking):
            pool.shutdown(wait=False, cancel_futures=True)
        for prophet in (self._quotes, self._outlooks):
            prophet.end()

    # ------------------------------------------------------------------ quotes

    def quote(
        self, user: str, spec: Callable[[], JobSpec], versions: int, horizon: float
    ) -> Future[Quote]:
        """What would become of a job; `spec` makes it, in the decision thread."""
        with self._lock:
            if self._waiting[user] >= WAITING_EACH or self._waiting.total() >= WAITING_MAX:
                raise TooManyError("as many quotes as are allowed are being made already", 2.0)
            self._waiting[user] += 1

        def work() -> Quote:
            try:
                return self._quoted(spec, versions, horizon)
            finally:
                with self._lock:
                    self._waiting[user] -= 1

        try:
            return self._quoting.submit(work)
        except RuntimeError:  # it was shut down
            raise DaemonError("The daemon is ending.") from None

    def _quoted(self, spec: Callable[[], JobSpec], versions: int, horizon: float) -> Quote:
        def copied() -> Errand:
            asked = spec()
            return replace(self._errand(), spec=asked, versions=versions, horizon=horizon)

        errand = self._with_past(self._loop.look(copied).result())
        found = self._quotes.ask(errand).quote
        assert found is not None
        return found

    # ------------------------------------------------------------------ outlooks

    def fresh(self, wanted: str = "") -> Future[Seen]:
        """Outlooks of all live jobs, no older than they need be, or looked at now for that job."""
        with self._lock:
            seen = self.seen
            if self._under_way is not None and not self._under_way.done():
                return self._under_way
            age = time.monotonic() - seen.at
            settled = self._loop.news.seq == seen.seq and age < AGE_SECONDS
            known = not wanted or wanted in seen.outlooks
            if known and (settled or age < max(FRESH_SECONDS, REST * seen.took)):
                done: Future[Seen] = Future()
                done.set_result(seen)
                return done
            try:
                self._under_way = self._looking.submit(self._looked)
            except RuntimeError:
                raise DaemonError("The daemon is ending.") from None
            return self._under_way

    def _looked(self) -> Seen:
        begun = time.monotonic()
        seq = self._loop.news.seq
        errand = self._loop.look(self._errand).result()
        if errand.ids:
            versions = min(max(EASY // len(errand.ids), VERSIONS_MIN), VERSIONS)
            errand = self._with_past(errand)
            errand = replace(errand, versions=versions, horizon=HORIZON_SECONDS)
            found: Mapping[str, Outlook] = self._outlooks.ask(errand).outlooks
        else:
            found = {}
        now = time.monotonic()
        self.seen = Seen(now, seq, now - begun, found)
        return self.seen

    # ------------------------------------------------------------------ what is known

    def _errand(self) -> Errand:
        """The state, copied; in the decision thread."""
        scheduler, now = self._loop.scheduler, self._loop.clock()
        return Errand(
            conditions=self._parts.conditions,
            snapshot=msgspec.msgpack.encode(scheduler.picture(now)),
            now=now, ids=tuple(scheduler.state.jobs),
        )  # fmt: skip

    def _with_past(self, errand: Errand) -> Errand:
        """And what was submitted lately; from the disk."""
        if time.monotonic() - self._past_at > PAST_AGE_SECONDS:
            self._past, self._past_at = self._read_past(errand.now), time.monotonic()
        begin, until, arrivals = self._past
        return replace(errand, begin=begin, until=until, arrivals=arrivals)

    def _read_past(self, now: float) -> Known:
        store, begin = self._parts.store, now - PAST_SECONDS
        found: list[tuple[float, JobSpec]] = []
        for record in store.jobs(limit=PAST_MAX):
            spec = store.spec(record.id) if record.submitted >= begin else None
            if spec is None:
                return Known(begin, now, tuple(reversed(found)))
            found.append((record.submitted, spec))
        # Nothing is known of the time before the first of them.
        return Known(found[-1][0] if found else now, now, tuple(reversed(found)))
