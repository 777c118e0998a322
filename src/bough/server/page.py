"""One job while a step is entered into the ledger."""

from __future__ import annotations

from typing import Final

import msgspec

from bough.core.model import INFINITY, Command, Ended, Exited, Place, Resize, Start, Started, Stop
from bough.core.reason import CODES, NONE, Reason, explain
from bough.core.scheduler import Scheduler
from bough.core.state import CAUSE, DONE, LEFT, RATE, SINCE
from bough.records import Attempt, Ending, JobRecord, State
from bough.server.rows import Accepted, Account

#: Attempts and changes of size kept of a job; of more, the last.
ATTEMPTS_MAX: Final = 100
SIZES_MAX: Final = 1000
#: Reasons of a stop after which it goes on at another size or place.
MOVES: Final = frozenset({"moved", "grown", "shrunk"})
#: What a job waits for that was granted devices which others have still to leave.
MOVING: Final = "moving"
replace = msgspec.structs.replace


class Page:
    """Record and account of a job, being changed."""

    def __init__(self, record: JobRecord, account: Account, since: float, now: float) -> None:
        self.now = now
        self.record = record
        self.account = account
        #: Up to when device-seconds are counted.
        self._since = since
        self._ended: tuple[Ended, Reason | None] | None = None

    # ------------------------------------------------------------------ what happened

    def started(self, event: Started) -> None:
        """Its processes run."""
        if not self.holds(event.epoch):
            return
        self._attempt(began=event.at)
        if self.record.began is None:
            self.record = replace(self.record, began=event.at)

    def exited(self, event: Exited, ending: Ending | None) -> None:
        """Its processes are gone."""
        ending = ending or Ending(how=event.why, code=event.code, note=event.note)
        workers = [each.started_at for each in ending.workers if each.started_at]
        began = self.account.attempts[-1].began or min(workers, default=None)
        self._attempt(
            began=began, ended=event.at, how=event.why, code=ending.code, note=ending.note,
            workers=ending.workers,
        )  # fmt: skip
        if event.why in ("failed", "lost"):
            seconds = max(0.0, event.at - (began or event.at)) * self.record.devices
            lost = self.account.lost_device_seconds + seconds
            self.account = replace(self.account, lost_device_seconds=lost)
        self._hold((), min(event.at, self.now))
        self.record = replace(
            self.record,
            began=began if self.record.began is None else self.record.began,
            # One that was stopped says nothing of the job as a whole.
            code=None if event.why == "stopped" else ending.code,
            failures=self.record.failures + (event.why == "failed"),
        )

    def told(self, command: Command, reason: Reason | None) -> None:
        """What is to become of it."""
        account = self.account
        if isinstance(command, Start):
            attempt = Attempt(epoch=command.epoch, place=command.place)
            attempts = (*account.attempts, attempt)[-ATTEMPTS_MAX:]
            self.account = replace(account, attempts=attempts)
            self.record = replace(self.record, epoch=command.epoch, code=None)
            self._hold(command.place)
        elif isinstance(command, Resize):
            self.account = replace(account, resizes=account.resizes + 1)
            self._attempt(place=command.place)
            self._hold(command.place)
        elif isinstance(command, Stop) and command.park:
            moves = reason is not None and reason.code in MOVES
            word = "resizes" if moves else "parks"
            self.account = replace(account, **{word: getattr(account, word) + 1})
        elif isinstance(command, Ended):
            self._ended = command, reason

    def holds(self, epoch: int) -> bool:
        """Whether the attempt of that epoch goes on."""
        attempts = self.account.attempts
        return bool(attempts) and attempts[-1].epoch == epoch and attempts[-1].ended is None

    def _attempt(self, **changes: object) -> None:
        *before, last = self.account.attempts
        self.account = replace(self.account, attempts=(*before, replace(last, **changes)))

    def _hold(self, place: Place, at: float | None = None) -> None:
        """Close the books on the devices it held, and open them on those it holds from then on."""
        at = max(self.now if at is None else at, self._since)
        self._count(at)
        devices = sum(len(devices) for _, devices in place)
        sizes = (*self.account.sizes, (at, devices))[-SIZES_MAX:]
        self.account = replace(self.account, sizes=sizes)
        self.record = replace(self.record, devices=devices, place=place)

    def _count(self, until: float) -> None:
        seconds = max(0.0, until - self._since) * self.record.devices
        self._since = until
        if seconds:
            used = self.record.device_seconds + seconds
            self.record = replace(self.record, device_seconds=used)

    # ------------------------------------------------------------------ how it is now

    def close(self, scheduler: Scheduler) -> tuple[JobRecord, Account]:
        """With what the scheduler says of it."""
        self._count(self.now)
        if self._ended is not None:
            self._end(*self._ended)
        elif self.record.id in scheduler.state.jobs:
            self._refresh(scheduler)
        return self.record, self.account

    def _end(self, ended: Ended, reason: Reason | None) -> None:
        if self.record.devices:  # a body that never answered: nothing is held in the books
            self._hold(())
        self.account = waiting(self.account, self.now, "")
        self.record = replace(
            self.record,
            state=ended.state,
            ended=self.now,
            code=0 if ended.state == "done" else self.record.code,
            reason=reason or self.record.reason,
            progress=1.0 if ended.state == "done" else None,
            eta_seconds=None,
            held=False,
        )

    def _refresh(self, scheduler: Scheduler) -> None:
        state, id = scheduler.state, self.record.id
        job = state.jobs[id]
        row = state.table.row(job)
        cause = CODES[code] if (code := int(state.table.wi[CAUSE, row])) != NONE else MOVING
        self.account = waiting(self.account, self.now, "" if self.record.devices else cause)
        shown: State = job.state  # type: ignore[assignment]
        if shown == "stopping" and job.place:
            shown = "resizing"
        progress, eta = _progress(scheduler, row) if self.record.devices else (None, None)
        spec = job.spec
        self.record = replace(
            self.record,
            state=shown,
            reason=explain(state, id),
            queue=spec.queue,
            priority=spec.priority,
            deadline=deadline_of(spec.deadline, spec.deadline_after, self.record.submitted),
            sizes=spec.sizes(),
            service=spec.service,
            failures=job.failures,
            held=job.held_by_user,
            progress=self.record.progress if progress is None else progress,
            eta_seconds=eta,
        )


def waiting(account: Account, now: float, cause: str) -> Account:
    """From now on it waits for this; empty: it does not."""
    if account.cause == cause:
        return account
    waits = account.waits
    if account.cause and now > account.since:
        spent = waits.get(account.cause, 0.0) + now - account.since
        waits = waits | {account.cause: spent}
    return replace(account, cause=cause, since=now, waits=waits)


def _progress(scheduler: Scheduler, row: int) -> tuple[float | None, float | None]:
    """The part of the work that is done and seconds until the rest is, if that is believed."""
    state, wf = scheduler.state, scheduler.state.table.wf
    left, rate = float(wf[LEFT, row]), float(wf[RATE, row])
    if left == INFINITY or rate <= 0.0:
        return None, None
    done = rate * (state.now - float(wf[SINCE, row]))
    left, done = max(0.0, left - done), float(wf[DONE, row]) + done
    return (done / (done + left) if done + left > 0 else 1.0), left / rate


def deadline_of(deadline: float | None, after: float | None, submitted: float) -> float | None:
    """The earlier of the two ways to say it."""
    known = [
        at for at in (deadline, None if after is None else submitted + after) if at is not None
    ]
    return min(known, default=None)


def first_page(accepted: Accepted, at: float, retry_of: str) -> Page:
    """Of a job that was just submitted."""
    spec, recipe = accepted.spec, accepted.recipe
    record = JobRecord(
        id=accepted.id,
        name=spec.name,
        user=spec.user,
        queue=spec.queue,
        state="waiting",
        devices=0,
        sizes=spec.sizes(),
        place=(),
        epoch=0,
        priority=spec.priority,
        submitted=at,
        reason=Reason(code="none", text="It was submitted."),
        deadline=deadline_of(spec.deadline, spec.deadline_after, at),
        command=recipe.argv or next(iter(recipe.roles.values()), ()),
        after=tuple(after.job for after in spec.after),
        array_of=spec.array_of,
        retries=spec.retries,
        service=spec.service,
        retry_of=retry_of,
    )
    return Page(record, Account(id=accepted.id), at, at)
