"""What the daemon can be asked: permissions and checks here, decisions in the decision thread.

Methods that give a future only ask; it is resolved once what it tells is on the disk. All others
look things up and may have to wait for the disk. All may be called from any thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Literal

import msgspec

from bough import __version__
from bough.core.model import Queue
from bough.core.prospects import Quote
from bough.core.reason import Reason
from bough.errors import ConflictError, NotFoundError
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
    NewToken,
    QueueRecord,
    Receipt,
    State,
    StatusRecord,
    Submission,
    TokenRecord,
    UsageRow,
    UserRecord,
)
from bough.server import keys, submitter, views
from bough.server.acceptance import Acceptance
from bough.server.foresight import Foresight
from bough.server.history import decisions_of
from bough.server.ledger import Kept
from bough.server.log_files import AttemptLogs, LogSource
from bough.server.news import Follower
from bough.server.orders import Orders
from bough.server.parts import Parts
from bough.server.permissions import (
    Caller,
    check_admin,
    check_owner,
    detail_shown,
    may_act,
    shown,
)
from bough.server.references import find
from bough.server.rows import Account
from bough.server.waiters import Waiters

__all__ = ["Caller", "Parts", "Service"]
Jobs = tuple[JobRecord, ...]


class Service:
    """The daemon as the API sees it."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._store, self._loop = parts.store, parts.loop
        self._since = parts.loop.clock()
        acceptance = Acceptance(
            parts.store, lambda: parts.loop.scheduler.state, system=parts.system
        )
        self._orders = Orders(parts, acceptance)
        self._acceptance = acceptance
        self._waiters = Waiters(parts.loop)
        self.foresight = Foresight(parts)

    @property
    def system(self) -> bool:
        """It serves all users of this machine."""
        return self.parts.system

    @property
    def over(self) -> bool:
        """The daemon ends: nobody waits for anything any more."""
        return self._loop.news.over

    def now(self) -> float:
        """By the clock of the journal."""
        return self._loop.clock()

    # ------------------------------------------------------------------ to be done

    def submit(self, caller: Caller, given: Sequence[Submission]) -> Future[Jobs]:
        """Take jobs on: all of them or none."""
        given = submitter.bound(caller, given, shared=self.system)
        return self._loop.act(lambda turn: self._orders.submit(caller, given, turn))

    def stop(self, caller: Caller, ref: str) -> Future[Jobs]:
        """Let jobs end; those that are over stay as they are."""
        return self._loop.act(lambda turn: self._orders.stop(caller, ref, turn))

    def hold(self, caller: Caller, ref: str, held: bool) -> Future[Jobs]:
        """Park jobs, or let them go on."""
        return self._loop.act(lambda turn: self._orders.hold(caller, ref, held, turn))

    def amend(self, caller: Caller, ref: str, wish: Amendment) -> Future[Jobs]:
        """Change what jobs ask for."""
        return self._loop.act(lambda turn: self._orders.amend(caller, ref, wish, turn))

    def retry(self, caller: Caller, ref: str) -> Future[Jobs]:
        """New jobs that repeat those that are over."""
        return self._loop.act(lambda turn: self._orders.retry(caller, ref, turn))

    def set_queue(self, caller: Caller, queue: Queue) -> Future[QueueRecord]:
        """Make a queue, or change it."""
        return self._loop.act(lambda turn: self._orders.set_queue(caller, queue, turn))

    def drain(self, caller: Caller, node: str, drained: bool) -> Future[tuple[DeviceRecord, ...]]:
        """Let a node take nothing new, or let it take jobs again."""
        return self._loop.act(lambda turn: self._orders.drain(caller, node, drained, turn))

    def quarantine(
        self, caller: Caller, node: str, device: int, bad: bool
    ) -> Future[tuple[DeviceRecord, ...]]:
        """Use a device no longer, or again."""
        return self._loop.act(lambda turn: self._orders.quarantine(caller, node, device, bad, turn))

    def configure(self, caller: Caller, wish: ConfigChange) -> Future[Config]:
        """Change what the daemon decides by."""
        return self._loop.act(lambda turn: self._orders.configure(caller, wish, turn))

    def shutdown(self, caller: Caller, park: bool) -> None:
        """End the daemon; jobs go on, or are parked before."""
        check_admin(caller, "end the daemon")
        self.parts.end(park)

    # ------------------------------------------------------------------ what is to come

    def quote(
        self, caller: Caller, given: Submission, versions: int, horizon: float
    ) -> Future[Quote]:
        """What would become of a job; nothing is submitted."""
        asked = partial(self._acceptance.asked, caller, given, self._loop.clock())
        return self.foresight.quote(caller.user, asked, versions, horizon)

    def live(self, caller: Caller, ref: str) -> str:
        """The id of a job that is not over."""
        record, _ = self._one(caller, ref)
        if record.state in ENDED:
            raise ConflictError(f"Job {record.id} is over.")
        return record.id

    # ------------------------------------------------------------------ jobs

    def find(self, caller: Caller, ref: str) -> list[str]:
        """Ids of jobs by number, array or name."""
        return find(self._store, caller, ref)

    def jobs(
        self,
        caller: Caller,
        *,
        states: Iterable[State] | None = None,
        user: str | None = None,
        queue: str | None = None,
        name: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> JobPage:
        """Some of them, the latest first."""
        found = self._store.jobs(
            states=states, user=user, queue=queue, name=name, before=before, limit=limit + 1
        )
        page = found[:limit]
        self.foresight.fresh()  # for whoever looks next
        more = page[-1].id if len(found) > limit else ""
        return JobPage(jobs=tuple(shown(self._fresh(each), caller) for each in page), next=more)

    def detail(self, caller: Caller, ref: str) -> JobDetail:
        """All there is to see of one job."""
        record, account = self._one(caller, ref)
        spec = self._store.spec(record.id)
        if spec is None:
            raise NotFoundError(f"What job {record.id} asked for is not known any more.")
        mine = may_act(caller, record.user)
        detail = JobDetail(
            job=record,
            spec=spec,
            recipe=self._store.recipe(record.id) if mine else None,
            attempts=account.attempts,
            sizes=account.sizes,
        )
        return detail_shown(detail, caller)

    def why(self, caller: Caller, ref: str) -> Reason:
        """Why a job is where it is, and what would change it."""
        record, _ = self._one(caller, ref)
        if record.state in ENDED:
            return record.reason
        loop = self._loop
        return loop.look(lambda: loop.scheduler.why(record.id, loop.clock())).result()

    def receipt(self, caller: Caller, ref: str) -> Receipt:
        """What became of a job, and what it took."""
        record, account = self._one(caller, ref)
        return views.receipt(record, account, self._loop.clock())

    def logs(self, caller: Caller, ref: str) -> LogSource:
        """Where the logs of a job are; its owner's and admins' alone."""
        record, account = self._one(caller, ref)
        check_owner(caller, record)
        body = self.parts.backend
        attempts = [
            AttemptLogs(each.epoch, body.logs(record.id, each.epoch)) for each in account.attempts
        ]
        return LogSource(record.id, record.state, record.code, attempts)

    def decisions(
        self, caller: Caller, *, job: str | None = None, after: int = 0, limit: int = 100
    ) -> tuple[Decision, ...]:
        """Commands that were given, and why."""
        ids = None if job is None else self.find(caller, job)
        return tuple(decisions_of(self._store, ids, after, limit))

    def _fresh(self, record: JobRecord) -> JobRecord:
        kept = self._loop.ledger.live.get(record.id)
        return record if kept is None else self._as_of(kept)

    def _as_of(self, kept: Kept) -> JobRecord:
        """A live job as it is now, with what was last seen of what is to come."""
        record = views.as_of(kept, self._loop.clock())
        return views.foreseen(record, self.foresight.seen.outlooks.get(record.id))

    def _one(self, caller: Caller, ref: str) -> tuple[JobRecord, Account]:
        """The job that is meant; of an array, its first member."""
        id = self.find(caller, ref)[0]
        kept = self._loop.ledger.live.get(id)
        if kept is not None:
            return self._as_of(kept), kept.account
        record = self._store.job(id)
        if record is None:
            raise NotFoundError(f"No job is called {ref!r}.")
        return record, self._store.account(id) or Account(id=id)

    # ------------------------------------------------------------------ the rest

    def queues(self, caller: Caller) -> tuple[QueueRecord, ...]:
        """All of them."""
        return self._loop.look(self._orders.queues).result()

    def devices(self, caller: Caller) -> tuple[DeviceRecord, ...]:
        """All of them."""
        return self._loop.look(self._orders.devices).result()

    def check_devices(self, caller: Caller) -> tuple[DeviceRecord, ...]:
        """Ask the meters now."""
        check_admin(caller, "have the devices checked")
        self.parts.check_devices()
        return self.devices(caller)

    def users(self, caller: Caller) -> tuple[UserRecord, ...]:
        """Everybody who has, or has had, jobs here."""
        used, live = self._store.used(), list(self._loop.ledger.live.values())
        return views.users(live, used, self._loop.clock())

    def usage(
        self,
        caller: Caller,
        *,
        since: float | None = None,
        until: float | None = None,
        by: Literal["user", "queue", "job"] = "user",
    ) -> tuple[UsageRow, ...]:
        """Who used how much within some time; without an end, until now."""
        now = self._loop.clock()
        since, until = since or 0.0, now if until is None else min(until, now)
        return views.usage(self._store.between(since, until), since, until, by)

    def status(self, caller: Caller) -> StatusRecord:
        """How the daemon is."""
        parts, live = self.parts, list(self._loop.ledger.live.values())
        states = [each.state for each in self.devices(caller)]
        counts = self._store.counts()
        running = sum(1 for kept in live if kept.record.devices)
        notes = (*self._store.notes, *parts.machine.notes, self._loop.trouble)
        return StatusRecord(
            version=__version__,
            pid=os.getpid(),
            since=self._since,
            home=str(parts.home),
            system=parts.system,
            policy=parts.config.policy,
            devices=len(states),
            free=states.count("free"),
            taken=states.count("taken"),
            unhealthy=states.count("unhealthy"),
            running=running,
            waiting=len(live) - running,
            ended=sum(counts.get(state, 0) for state in ENDED),
            seq=self._loop.news.seq,
            listen=parts.listen,
            notes=tuple(note for note in notes if note),
        )

    def config(self, caller: Caller) -> Config:
        """What the daemon decides by."""
        return self.parts.config

    # ------------------------------------------------------------------ tokens

    def tokens(self, caller: Caller) -> tuple[TokenRecord, ...]:
        """One's own; an admin's are all."""
        return keys.tokens(self._store, caller)

    def add_token(
        self, caller: Caller, name: str, user: str, scopes: Sequence[str], seconds: float | None
    ) -> NewToken:
        """Let somebody in over the network."""
        return keys.add(self._store, caller, msgspec.convert(
            {"name": name, "user": user, "scopes": tuple(scopes), "seconds": seconds}, keys.Wish
        ), self._loop.clock())  # fmt: skip

    def revoke_token(self, caller: Caller, name: str) -> None:
        """Let them in no more."""
        keys.revoke(self._store, caller, name)

    def caller_of_token(self, secret: str) -> Caller | None:
        """Who says this; None: nobody who is let in."""
        return keys.caller_of(self._store, secret, self._loop.clock(), self.parts)

    # ------------------------------------------------------------------ following

    def follow(self, after: int | None = None) -> Follower:
        """Entries of the journal as they are written."""
        return self._loop.news.follow(after)

    def wait(self, caller: Caller, ref: str, seconds: float) -> Future[JobRecord]:
        """The job once it is over, or after that time as it is then."""

        def soon() -> JobRecord:
            return shown(self._one(caller, ref)[0], caller)

        return self._waiters.wait(lambda: self.find(caller, ref)[0], seconds, soon)
