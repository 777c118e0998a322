"""What is shown of live jobs, and the accounts their receipts are made of, kept in step.

A draft is made before a step is written and kept once it is: if the disk is full, nothing happened.
Jobs that are over leave memory; they are in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from bough.backends.base import Backend
from bough.core.model import Command, Event, Exited, Started, Submitted
from bough.core.reason import CODES, NONE, Reason
from bough.core.scheduler import Scheduler
from bough.hardware.meters import Holding
from bough.records import ENDED, JobRecord
from bough.server.anystore import AnyStore
from bough.server.page import MOVING, Page, first_page, waiting
from bough.server.rows import Account, Batch
from bough.server.turn import Turn

#: Jobs whose cause alone changed that are written in the same turn; the others are later.
CAUSES_WRITTEN: Final = 50


class Kept(NamedTuple):
    """A live job."""

    record: JobRecord
    account: Account
    #: When its record was made: what grows with time has grown since.
    at: float


class Draft(NamedTuple):
    """What becomes of jobs by one step."""

    kept: dict[str, Kept]

    @property
    def records(self) -> list[JobRecord]:
        return [each.record for each in self.kept.values()]

    @property
    def accounts(self) -> list[Account]:
        return [each.account for each in self.kept.values()]


class Ledger:
    """Every job that is not over."""

    def __init__(self, store: AnyStore, backend: Backend) -> None:
        #: Changed by the decision thread alone; others may look up single jobs.
        self.live: dict[str, Kept] = {}
        #: Called with every job that has ended.
        self.on_end: Callable[[JobRecord], None] = lambda record: None
        #: Devices that jobs had and have left, until their power is counted; None: nobody does.
        self.left: list[Holding] | None = None
        self._store, self._backend = store, backend
        #: Jobs that are written otherwise than they are known here.
        self._behind: set[str] = set()
        for id in store.live():
            record = store.job(id)
            if record is not None:
                account = store.account(id) or Account(id=id)
                self.live[id] = Kept(record, account, _last_change(record, account))

    def draft(
        self, turn: Turn, commands: Sequence[tuple[Command, Reason | None]], scheduler: Scheduler
    ) -> Draft:
        """What this step makes of the jobs it touches."""
        causes = {id: (at, code) for id, at, code in scheduler.state.causes}
        pages: dict[str, Page] = {}
        accepted = {each.id: each for each in turn.accepted}
        for event in turn.events:
            id = getattr(event, "id", "")
            if isinstance(event, Submitted):
                pages[id] = first_page(accepted[id], event.at, turn.retry_of.get(id, ""))
            elif id and (page := self._open(id, pages, turn.at)) is not None:
                self._note(page, event)
        for command, reason in commands:
            if (page := self._open(command.id, pages, turn.at)) is not None:
                page.told(command, reason)
        others = [id for id in causes if id not in pages]
        for id in others[:CAUSES_WRITTEN]:
            self._open(id, pages, turn.at)
        for id in others[CAUSES_WRITTEN:]:
            self._heard(id, *causes[id])
        scheduler.state.causes.clear()
        return Draft({id: self._close(page, scheduler) for id, page in pages.items()})

    def keep(self, draft: Draft) -> None:
        """It is written: so it is."""
        for id, kept in draft.kept.items():
            self._note_left(self.live.get(id), kept)
            if kept.record.state in ENDED:
                self.live.pop(id, None)
                self.on_end(kept.record)
            else:
                self.live[id] = kept
        self._behind.difference_update(draft.kept)

    def _note_left(self, before: Kept | None, now: Kept) -> None:
        """What it held until now, for those who count power."""
        if self.left is None or before is None or before.record.place == now.record.place:
            return
        since = before.account.sizes[-1][0] if before.account.sizes else before.at
        self.left += [
            Holding(before.record.id, node, device, since, now.at)
            for node, devices in before.record.place
            for device in devices
        ]

    def charge(self, joules: Mapping[str, float], at: float) -> None:
        """Enter what jobs drew; those that are over have their accounts in the store."""
        over = []
        for id, drawn in joules.items():
            kept = self.live.get(id)
            account = kept.account if kept else self._store.account(id)
            if account is None:
                continue
            total = drawn + (account.energy_joules or 0.0)
            account = msgspec.structs.replace(account, energy_joules=total)
            if kept:
                self.live[id] = kept._replace(account=account)
                self._behind.add(id)
            else:
                over.append(account)
        if over:
            self._store.append(Batch(at=at, accounts=over))

    def behind(self) -> list[Account]:
        """Accounts that are to be written before the journal's tail is cut off."""
        found = [self.live[id].account for id in self._behind if id in self.live]
        self._behind.clear()
        return found

    def catch_up(self, causes: Iterable[tuple[str, float, int]]) -> None:
        """After a restart: causes that had changed since an account was written."""
        for id, at, code in causes:
            if id in self.live and at > self.live[id].account.since:
                self._heard(id, at, code)

    def _open(self, id: str, pages: dict[str, Page], now: float) -> Page | None:
        """The page of a job that is not over."""
        if id not in pages and id in self.live:
            kept = self.live[id]
            pages[id] = Page(kept.record, kept.account, kept.at, now)
        return pages.get(id)

    def _note(self, page: Page, event: Event) -> None:
        if isinstance(event, Started):
            page.started(event)
        elif isinstance(event, Exited) and page.holds(event.epoch):
            page.exited(event, self._backend.ending(event.id, event.epoch))

    def _close(self, page: Page, scheduler: Scheduler) -> Kept:
        record, account = page.close(scheduler)
        return Kept(record, account, page.now)

    def _heard(self, id: str, at: float, code: int) -> None:
        """A waiting job waits for something else now."""
        kept = self.live.get(id)
        if kept is None or not kept.account.cause:
            return
        account = waiting(kept.account, at, MOVING if code == NONE else CODES[code])
        self.live[id] = kept._replace(account=account)
        self._behind.add(id)


def _last_change(record: JobRecord, account: Account) -> float:
    """Up to when its device-seconds are counted."""
    return account.sizes[-1][0] if record.devices and account.sizes else record.submitted
