"""What `bough top` shows, asked for in threads: when something happens, else now and then."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bough.cli import clock
from bough.cli.ls import Wanted, find
from bough.client import Client
from bough.core.reason import Reason
from bough.errors import BoughError
from bough.records import (
    ENDED,
    DeviceRecord,
    JobDetail,
    JobRecord,
    LogChunk,
    QueueRecord,
    Receipt,
    StatusRecord,
)
from bough.submission import many_workers

#: Meters and times move on by themselves.
POLL_SECONDS: Final = 2.0
#: However much happens, the screen is drawn no more often.
REST_SECONDS: Final = 0.2
#: A daemon that is away is asked again so soon.
AWAY_SECONDS: Final = 1.0
#: Last lines of each worker that are shown beside a job; and before those that are followed.
TAIL: Final = 12
FOLLOWED_TAIL: Final = 500
#: Lines that are kept of a log that is followed.
KEPT: Final = 10_000


class Opened(NamedTuple):
    """All of one job."""

    detail: JobDetail
    reason: Reason
    receipt: Receipt
    #: The last lines of its log; why there are none, where they may not be seen.
    tail: list[str]


class Snapshot(NamedTuple):
    """All that is on the screen, as of one moment."""

    at: float
    jobs: list[JobRecord]
    more: bool
    devices: tuple[DeviceRecord, ...]
    queues: tuple[QueueRecord, ...]
    status: StatusRecord
    opened: Opened | None = None


class Away(NamedTuple):
    """The daemon does not answer."""

    why: str


Tell = Callable[[Snapshot | Away], object]


class Feed:
    """Looks at a daemon until it is closed, and tells what it sees."""

    def __init__(self, client: Client, user: str | None, tell: Tell) -> None:
        self._client = client
        # A screen says at once that a daemon is away, and asks again itself.
        client.patience_seconds = 0.0
        self._tell = tell
        self._wake, self._over = threading.Event(), threading.Event()
        #: Whose jobs; None: everybody's.
        self.user = user
        #: The job of which all is shown.
        self.opened = ""

    def start(self) -> None:
        for work in (self._look, self._listen):
            threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        """No more; what is being asked now is not told."""
        self._over.set()
        self._wake.set()
        self._client.close()

    def wake(self) -> None:
        """Look at once."""
        self._wake.set()

    def _look(self) -> None:
        while not self._over.is_set():
            self._wake.clear()
            seen: Snapshot | Away
            try:
                seen = self._snapshot()
            except BoughError as error:
                seen = Away(str(error))
            if self._over.is_set():
                return
            self._tell(seen)
            self._over.wait(REST_SECONDS)
            self._wake.wait(AWAY_SECONDS if isinstance(seen, Away) else POLL_SECONDS)

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                for _ in self._client.events():
                    self._wake.set()
            except BoughError:  # whoever looks says so
                self._over.wait(AWAY_SECONDS)

    def _snapshot(self) -> Snapshot:
        now, client = clock.now(), self._client
        listing = find(client, Wanted(user=self.user), now)
        seen = Snapshot(
            now, ordered(listing.jobs), listing.more,
            client.devices(), client.queues(), client.status(),
        )  # fmt: skip
        return seen._replace(opened=opened(client, self.opened) if self.opened else None)


def opened(client: Client, id: str) -> Opened:
    """All of a job, as far as it may be seen."""
    detail = client.job(id)
    return Opened(detail, client.why(id), client.receipt(id), tail(client, detail))


def tail(client: Client, detail: JobDetail) -> list[str]:
    """Its last lines."""
    try:
        found = [c for c in client.logs(detail.job.id, tail=TAIL) if isinstance(c, LogChunk)]
    except BoughError as error:
        return [str(error)]
    return [line for chunk in found for line in lines_of(chunk, prefixed(detail))]


def prefixed(detail: JobDetail) -> bool:
    """Whether each line says which worker printed it."""
    return detail.recipe is not None and many_workers(detail.spec, detail.recipe)


def lines_of(chunk: LogChunk, prefix: bool) -> list[str]:
    """Its lines, each after its worker."""
    who = str(chunk.rank) if chunk.role == "worker" else f"{chunk.role} {chunk.rank}"
    start = f"[{who}] " if prefix else ""
    return [f"{start}{line}" for line in chunk.text.removesuffix("\n").split("\n")]


def ordered(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """Those that have devices, those that wait (who is next comes first), those that are over."""

    def place(job: JobRecord) -> tuple[int, float]:
        if job.state in ENDED:
            return 2, 0.0
        if job.state == "waiting":
            ahead = job.reason.facts.get("ahead")
            return 1, float(ahead) if isinstance(ahead, int | float) else float("inf")
        return 0, 0.0

    return sorted(jobs, key=place)


class Follower:
    """What one job prints, as it comes. What is not fetched in time is dropped from the front."""

    def __init__(self, client: Client, id: str) -> None:
        self._client, self.id = client, id
        self._lines: deque[str] = deque(maxlen=KEPT)

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def close(self) -> None:
        """No more of it."""
        self._client.close()

    def take(self) -> list[str]:
        """The lines that came since the last time."""
        found = []
        while self._lines:
            found.append(self._lines.popleft())
        return found

    def _follow(self) -> None:
        try:
            prefix = prefixed(self._client.job(self.id))
            for found in self._client.logs(self.id, tail=FOLLOWED_TAIL, follow=True):
                if isinstance(found, LogChunk):
                    self._lines.extend(lines_of(found, prefix))
                else:
                    code = "" if found.code is None else f" with exit code {found.code}"
                    self._lines.append(f"— {found.end}{code} —")
        except BoughError as error:
            self._lines.append(f"— {error} —")
