"""A daemon as an object: one method for each operation of its API, answers as records.

    client = Client.connect()
    job = client.submit(prepare(JobSpec(name="train"), Recipe(argv=("python", "train.py"))))
    for chunk in client.logs(job.id, follow=True): ...

It is quick to import, may be used from several threads, and survives a restart of the daemon:
what can be asked again is, and a submission is the same job however often it is sent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from bough import connection, following
from bough.connection import PATIENCE_SECONDS, Address, Connection
from bough.core.model import Queue
from bough.core.prospects import Outlook, Quote
from bough.core.reason import Reason
from bough.core.units import shown
from bough.errors import DaemonError, InputError
from bough.following import Happening, asked
from bough.home import home, socket_path, system_socket
from bough.records import (
    ENDED,
    Amendment,
    Config,
    ConfigChange,
    Decision,
    DeviceRecord,
    JobDetail,
    JobPage,
    JobRecord,
    LogChunk,
    LogEnd,
    NewToken,
    QueueRecord,
    Receipt,
    StatusRecord,
    Submission,
    TokenRecord,
    UsageRow,
    UserRecord,
)

T = TypeVar("T")
#: The daemon answers a question that waits after this long at the latest.
WAIT_SECONDS = 50.0
#: Most jobs of one page.
PAGE_MAX = 1000
Jobs = tuple[JobRecord, ...]
Devices = tuple[DeviceRecord, ...]


class Client:
    """One daemon."""

    def __init__(self, address: Address, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._connection = Connection(address, patience_seconds)
        #: It was started by us.
        self.started = False

    @property
    def address(self) -> Address:
        """Where it is."""
        return self._connection.address

    @property
    def patience_seconds(self) -> float:
        """How long a daemon that was here and is gone is waited for."""
        return self._connection.patience_seconds

    @patience_seconds.setter
    def patience_seconds(self, seconds: float) -> None:
        self._connection.patience_seconds = seconds

    @classmethod
    def connect(cls, *, start: bool = False) -> Client:
        """The daemon that BOUGH_SERVER names, the one for all users of this machine, or one's own.

        One's own is started, if so asked, when it does not run.
        """
        server = os.environ.get("BOUGH_SERVER", "")
        if server:
            token = os.environ.get("BOUGH_TOKEN", "")
            pinned = os.environ.get("BOUGH_FINGERPRINT", "")
            return cls(connection.address_of(server, token, pinned))
        shared = system_socket()
        if shared is not None:
            return cls(Address(socket=os.fspath(shared)))
        place = home()
        client = cls(Address(socket=os.fspath(socket_path(place))))
        if start and not connection.reachable(socket_path(place)):
            from bough.server.launch import ensure

            ensure(place)
            client.started = True
        return client

    def close(self) -> None:
        """Let go of its connections."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -------------------------------------------------------------------------------- jobs

    def submit(self, given: Submission) -> JobRecord:
        """Have a job run. It is on disk when this returns."""
        key = given.key
        return self._ask("POST", "/v1/jobs", JobRecord, body=given, key=key, again=bool(key))

    def submit_all(self, given: Sequence[Submission]) -> Jobs:
        """Have several jobs run, all or none."""
        again = all(one.key for one in given)
        return self._ask("POST", "/v1/jobs/batch", Jobs, body=tuple(given), again=again)

    def jobs(
        self,
        *,
        states: Sequence[str] = (),
        user: str | None = None,
        queue: str | None = None,
        name: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> JobPage:
        """Some jobs, the latest first."""
        query = {"state": list(states), "user": user, "queue": queue, "name": name}
        return self._ask("GET", "/v1/jobs", JobPage, query | {"before": before, "limit": limit})

    def job(self, ref: str) -> JobDetail:
        """All there is to see of a job; `ref` is its id, or the name of your latest one."""
        return self._ask("GET", _job(ref), JobDetail)

    def why(self, ref: str) -> Reason:
        """Why it waits or runs, and what would help."""
        return self._ask("GET", _job(ref, "why"), Reason)

    def quote(
        self,
        given: Submission,
        *,
        versions: int | None = None,
        horizon_seconds: float | None = None,
    ) -> Quote:
        """What would become of a job if it were submitted now: nothing is submitted."""
        query = {"versions": versions, "horizon_seconds": horizon_seconds}
        return self._ask("POST", "/v1/quote", Quote, query, body=given)

    def forecast(self, ref: str) -> Outlook:
        """When a job that is not over is likely to begin and end."""
        return self._ask("GET", _job(ref, "forecast"), Outlook)

    def receipt(self, ref: str) -> Receipt:
        """What became of it, and what it took."""
        return self._ask("GET", _job(ref, "receipt"), Receipt)

    def wait(self, ref: str, seconds: float | None = None) -> JobRecord:
        """Until it is over, or as it is after so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = WAIT_SECONDS if until is None else max(until - time.monotonic(), 0.0)
            asked = {"seconds": f"{min(left, WAIT_SECONDS):.3f}"}
            job = self._ask("GET", _job(ref, "wait"), JobRecord, asked)
            if job.state in ENDED or (until is not None and time.monotonic() >= until):
                return job

    def members(self, ref: str) -> Jobs:
        """The job that is meant; of an array, all its jobs."""
        first = self.wait(ref, 0.0)
        number, dot, _ = first.id.partition(".")
        if not dot or ref == first.id or ref == first.name != first.array_of:
            return (first,)
        found: list[JobRecord] = []
        before = None
        while True:  # they were submitted together, so they stand together
            page = self.jobs(user=first.user, before=before, limit=PAGE_MAX)
            found += [job for job in page.jobs if job.id.partition(".")[0] == number]
            before = page.next
            if not before or int(page.jobs[-1].id.partition(".")[0]) < int(number):
                return tuple(reversed(found))

    def decisions(
        self, ref: str | None = None, *, after: int | None = None, limit: int | None = None
    ) -> tuple[Decision, ...]:
        """What was commanded, and why."""
        path = "/v1/decisions" if ref is None else _job(ref, "decisions")
        return self._ask("GET", path, tuple[Decision, ...], {"after": after, "limit": limit})

    def stop(self, ref: str) -> Jobs:
        """End it for good."""
        return self._ask("POST", _job(ref, "stop"), Jobs)

    def park(self, ref: str) -> Jobs:
        """Let it leave its devices until it is unparked."""
        return self._ask("POST", _job(ref, "park"), Jobs)

    def unpark(self, ref: str) -> Jobs:
        """Let it go on."""
        return self._ask("POST", _job(ref, "unpark"), Jobs)

    def retry(self, ref: str) -> Jobs:
        """Have it run once more, as a new job."""
        return self._ask("POST", _job(ref, "retry"), Jobs, again=False)

    def amend(self, ref: str, wish: Amendment) -> Jobs:
        """Change its sizes, queue, priority, deadline or longest run time."""
        return self._ask("PATCH", _job(ref), Jobs, body=wish)

    # --------------------------------------------------------------------------- following

    def logs(
        self,
        ref: str,
        *,
        attempt: int | None = None,
        rank: int | None = None,
        role: str | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[LogChunk | LogEnd]:
        """What its workers print. `follow`: until it is over, also through restarts of the daemon.

        The last item is a LogEnd if the job is over.
        """
        query = {"attempt": attempt, "rank": rank, "role": role, "tail": tail}
        return following.logs(self._connection, _job(ref, "logs"), query, follow)

    def log_bytes(self, ref: str, attempt: int, rank: int, start: int = 0) -> bytes:
        """One worker's log as it is, from a byte on."""
        headers = {"range": f"bytes={start}-"} if start else {}
        return self._connection.ask("GET", _job(ref, f"logs/{attempt}/{rank}"), None, headers, True)

    def events(self, after: int | None = None) -> Iterator[Happening]:
        """What happens, entry by entry of the journal, without an end."""
        return following.events(self._connection, after)

    # ------------------------------------------------------------------- queues and devices

    def queues(self) -> tuple[QueueRecord, ...]:
        """All queues."""
        return self._ask("GET", "/v1/queues", tuple[QueueRecord, ...])

    def set_queue(self, queue: Queue) -> QueueRecord:
        """Make or change a queue."""
        return self._ask("PUT", f"/v1/queues/{_word(queue.name)}", QueueRecord, body=queue)

    def devices(self) -> Devices:
        """All devices, and who holds them."""
        return self._ask("GET", "/v1/devices", Devices)

    def check_devices(self) -> Devices:
        """The same, looked at anew."""
        return self._ask("POST", "/v1/devices/check", Devices)

    def drain(self, node: str, drained: bool = True) -> Devices:
        """A drained node takes nothing new."""
        path = f"/v1/nodes/{_word(node)}/" + ("drain" if drained else "undrain")
        return self._ask("POST", path, Devices)

    def quarantine(self, node: str, device: int, bad: bool = True) -> Devices:
        """A device in quarantine is not used."""
        path = f"/v1/nodes/{_word(node)}/devices/{device}/"
        return self._ask("POST", path + ("quarantine" if bad else "release"), Devices)

    # -------------------------------------------------------------------- users and the daemon

    def users(self) -> tuple[UserRecord, ...]:
        """Everybody with jobs here."""
        return self._ask("GET", "/v1/users", tuple[UserRecord, ...])

    def usage(
        self, *, since: float | None = None, until: float | None = None, by: str = "user"
    ) -> tuple[UsageRow, ...]:
        """What users, queues or jobs used."""
        query = {"since": since, "until": until, "by": by}
        return self._ask("GET", "/v1/usage", tuple[UsageRow, ...], query)

    def status(self) -> StatusRecord:
        """How the daemon is."""
        return self._ask("GET", "/v1/status", StatusRecord)

    def config(self) -> Config:
        """What it decides by."""
        return self._ask("GET", "/v1/config", Config)

    def configure(self, wish: ConfigChange) -> Config:
        """Change that."""
        return self._ask("PATCH", "/v1/config", Config, body=wish)

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Tokens for use over the network, without their secrets."""
        return self._ask("GET", "/v1/tokens", tuple[TokenRecord, ...])

    def add_token(
        self, name: str, *, user: str = "", scopes: Sequence[str] = (), seconds: float | None = None
    ) -> NewToken:
        """Make one; its secret is shown this once."""
        wish = {"name": name, "user": user, "scopes": list(scopes), "seconds": seconds}
        body = {key: value for key, value in wish.items() if value}
        return self._ask("POST", "/v1/tokens", NewToken, body=body, again=False)

    def revoke_token(self, name: str) -> None:
        """It lets nobody in any more."""
        self._tell("DELETE", f"/v1/tokens/{_word(name)}")

    def shutdown(self, park: bool = False) -> None:
        """The daemon goes; its jobs stay, or are parked."""
        self._tell("POST", "/v1/shutdown", {"park": "true" if park else None}, again=False)

    # ------------------------------------------------------------------------------ asking

    def _ask(
        self,
        method: str,
        path: str,
        answer: type[T],
        query: Mapping[str, Any] | None = None,
        *,
        body: object = None,
        key: str = "",
        again: bool = True,
    ) -> T:
        raw = self._tell(method, path, query, body=body, key=key, again=again)
        try:
            return msgspec.json.decode(raw, type=answer)
        except msgspec.MsgspecError as error:
            raise DaemonError(f"The daemon is of another version: {error}.") from None

    def _tell(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        body: object = None,
        key: str = "",
        again: bool = True,
    ) -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"idempotency-key": key} if key else {}
        return self._connection.ask(method, path + asked(query or {}), data, headers, again)


def _job(ref: str, what: str = "") -> str:
    """The path of a job, or of something about it."""
    return f"/v1/jobs/{_word(ref)}" + (f"/{what}" if what else "")


def _word(text: str) -> str:
    """A name as a part of a path; what cannot be one is no name of anything."""
    if not text or text in (".", "..") or any(c in text for c in "/\\\0\r\n"):
        raise InputError(f"{shown(text)} cannot be the name of anything here")
    return quote(text, safe="", errors="replace")
