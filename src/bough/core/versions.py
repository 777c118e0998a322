"""One version of what is to come: a forked scheduler, and a body that answers its commands.

The scheduler is the real one, with all it believes now. What is true in a version differs from
that by as much as it may be wrong: how much work jobs have left, how fast they are, who else
comes. A job is done when it has done its true work, counted as the scheduler counts it. Answers
to commands take as long as such answers took so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from bough.core import chance
from bough.core import model as m
from bough.core.expected import NOBODY, Arrival, Past
from bough.core.jobs import Job
from bough.core.scheduler import Scheduler
from bough.core.snapshot import Image
from bough.core.state import DONE, LEFT, RATE, SINCE

#: An estimate is off by so much where nothing is known of who gave it (a standard deviation of
#: the logarithm); and what is the most that is believed of a curve's error.
ESTIMATE_SPREAD: Final = 0.1
SPREAD_MAX: Final = 1.0
#: Work and moments are equal within this: products of times are rounded.
ROUNDING: Final = 1e-6
#: Jobs that only may come are called so.
EXPECTED: Final = "expected"


class Doubt(msgspec.Struct, frozen=True):
    """How far what is believed may be from the truth."""

    #: Standard deviation of the logarithm of (work of a job / what its user estimated).
    estimates: float = ESTIMATE_SPREAD
    #: What the curves' own errors are multiplied with.
    speeds: float = 1.0
    #: What came before, and so may come again.
    past: Past = NOBODY


#: What is believed is true, and nobody comes.
CERTAIN: Final = Doubt(estimates=0.0, speeds=0.0)


class Fate(msgspec.Struct):
    """What becomes of a job in one version."""

    #: When it has devices (again), and when it is over; infinite: not within the horizon.
    begins: float = m.INFINITY
    ends: float = m.INFINITY
    #: How it ended.
    how: str = ""
    #: From now on.
    device_seconds: float = 0.0
    #: How often it is told to leave its devices.
    parks: int = 0


class Due(NamedTuple):
    """Something that is to happen to a job, unless it changes before."""

    at: float
    tie: int
    job: Job
    #: Its epoch and step: when they have changed, this is void.
    mark: tuple[int, int]
    #: What its body answers then; None: it may be done.
    answer: m.Event | None


class Version:
    """One of several versions of what is to come."""

    def __init__(
        self,
        scheduler: Scheduler,
        doubt: Doubt = CERTAIN,
        number: int = 0,
        versions: int = 1,
        picture: Image | None = None,
    ) -> None:
        self.scheduler = scheduler.fork(picture)
        self.state = self.scheduler.state
        self.state.learns = False
        self.doubt, self.number, self.versions = doubt, number, versions
        self.fates: dict[str, Fate] = {}
        self._heap: list[Due] = []
        self._tie = 0
        #: Job -> its work in all; devices it holds and since when.
        self._whole: dict[str, float] = {}
        self._holds: dict[str, tuple[int, float]] = {}
        self._coming = doubt.past.to_come(number, self.state.now)
        self._next = next(self._coming, None)
        self._came = 0
        items = self.state.table.items
        self._begins = _median([job.begins for job in items])
        self._leaves = _median([job.leaves for job in items])
        for job in items:
            self._meet(job, None)
            if job.held:
                self.fates[job.id].begins = self.state.now
                self._holds[job.id] = (_count(job), self.state.now)
                self._expect(job)
            if job.state in ("starting", "resizing", "stopping"):
                self._owe(job)

    @property
    def now(self) -> float:
        return self.state.now

    # ------------------------------------------------------------------ what happens

    def submit(self, id: str, spec: m.JobSpec, work: float | None = None) -> None:
        """Let a job come now."""
        self._step([m.Submitted(at=self.now, id=id, spec=spec)], {id: work})

    def tell(self, events: Sequence[m.Event]) -> None:
        """Let something happen now."""
        self._step(events, {})

    def run(self, watched: Collection[str], until: float) -> None:
        """On until all who are watched are over, or until that moment."""
        waiting = {id for id in watched if id in self.fates and not self.fates[id].how}
        while waiting and self._next_moment() <= until:
            waiting -= self._advance()
        self._close()

    def pass_by(self, until: float) -> None:
        """On until that moment, whoever is over before."""
        while self._next_moment() <= until:
            self._advance()
        self.tell([m.Tick(at=until)])
        self._close()

    def seconds_left(self, id: str) -> float:
        """Of a job that is not over: what it has left to do, at the speed it wished for."""
        job = self.state.jobs[id]
        speed = float(self.state.table.wish_speed[self.state.table.row(job)])
        return max(self._left(job, self.now)[0], 0.0) / speed

    def _advance(self) -> set[str]:
        """To the next moment at which something happens; who is over then."""
        coming: dict[str, float | None] = {}
        return self._step(self._due(self._next_moment(), coming), coming)

    def _close(self) -> None:
        """Bring the accounts up to now."""
        for id, (size, _) in self._holds.items():
            self._account(id)
            self._holds[id] = (size, self.now)

    def _step(self, batch: Sequence[m.Event], coming: dict[str, float | None]) -> set[str]:
        """Let the scheduler decide, and answer until it waits for something; who is over."""
        over: set[str] = set()
        while batch:
            commands = self.scheduler.handle(batch)
            for id, work in coming.items():
                if id in self.state.jobs:
                    self._meet(self.state.jobs[id], work)
                else:
                    self.fates.setdefault(id, Fate())
            coming = {}
            batch = []
            for command in commands:
                answer = self._carry_out(command)
                if answer is not None:
                    batch.append(answer)
                elif isinstance(command, m.Ended):
                    over.add(command.id)
        return over

    def _next_moment(self) -> float:
        """When something happens next."""
        heap = self._heap
        while heap and not self._holds_good(heap[0]):
            heapq.heappop(heap)
        at = heap[0].at if heap else m.INFINITY
        if self._next is not None:
            at = min(at, self._next.at)
        return max(min(at, self.scheduler.wake_at), self.now)

    def _holds_good(self, due: Due) -> bool:
        job = due.job
        return due.mark == (job.epoch, job.step) and job.id in self._whole

    def _due(self, at: float, coming: dict[str, float | None]) -> list[m.Event]:
        """All that happens at that moment."""
        batch: list[m.Event] = []
        while self._heap and self._heap[0].at <= at:
            due = heapq.heappop(self._heap)
            if not self._holds_good(due):
                continue
            job = due.job
            if due.answer is not None:
                batch.append(msgspec.structs.replace(due.answer, at=at))
            elif self._is_done(job, at):
                batch.append(m.Exited(at=at, id=job.id, epoch=job.epoch))
            else:
                self._expect(job)
        while self._next is not None and self._next.at <= at:
            batch.append(self._arrives(self._next, at, coming))
            self._next = next(self._coming, None)
        return batch or [m.Tick(at=at)]

    def _arrives(self, arrival: Arrival, at: float, coming: dict[str, float | None]) -> m.Event:
        self._came += 1
        id = f"{EXPECTED} {self._came}"
        coming[id] = arrival.work
        return m.Submitted(at=at, id=id, spec=arrival.spec)

    # ------------------------------------------------------------------ what is true

    def _meet(self, job: Job, work: float | None) -> None:
        """Settle how much work it is in all."""
        self.fates[job.id] = Fate()
        state, row = self.state, self.state.table.row(job)
        wf = state.table.wf
        since = float(wf[RATE, row]) * (state.now - float(wf[SINCE, row]))
        done = float(wf[DONE, row]) + since
        left = max(float(wf[LEFT, row]) - since, 0.0)
        spread, whole = self.doubt.estimates, done + left
        if left == m.INFINITY:
            spread = state.speedups.prior.spread(job.spec.model, job.spec.user)
            whole = float(state.table.guess[row])
            if not self.doubt.estimates:
                whole = max(whole, done * 1.5)  # as Jobs.left_or_guess has it
                spread = 0.0
        if job.serial not in state.fits and self.doubt.speeds:
            error = state.curve_for(job.spec, int(state.table.pool[row])).error
            spread = float(np.hypot(spread, min(error, SPREAD_MAX) * self.doubt.speeds))
        luck = chance.luck(job.id, self.number, self.versions)
        self._whole[job.id] = work or chance.outlived(whole, spread, done, luck)

    def _left(self, job: Job, at: float) -> tuple[float, float]:
        """Work it has left at a moment, and its rate."""
        row, wf = self.state.table.row(job), self.state.table.wf
        rate = float(wf[RATE, row])
        done = float(wf[DONE, row]) + rate * (at - float(wf[SINCE, row]))
        return self._whole[job.id] - done, rate

    def _is_done(self, job: Job, at: float) -> bool:
        left, rate = self._left(job, at)
        return bool(job.held) and left <= ROUNDING * (1.0 + rate)

    def _expect(self, job: Job) -> None:
        """Note when it will be done if nothing else happens to it."""
        left, rate = self._left(job, self.now)
        if rate > 0.0:
            self._push(self.now + max(left, 0.0) / rate, job, None)

    # ------------------------------------------------------------------ the body

    def _carry_out(self, command: m.Command) -> m.Event | None:
        """Answer a command now; None if the answer comes later, or there is none."""
        kind, id = type(command), command.id
        self._account(id)
        if kind is m.Ended:
            fate = self.fates[id]
            fate.ends, fate.how = self.now, command.state  # type: ignore[attr-defined]
            self._whole.pop(id, None)
            self._holds.pop(id, None)
            return None
        job = self.state.jobs[id]
        if kind is m.Clock:
            self._expect(job)
            return None
        if kind is m.Stop:
            self.fates[id].parks += 1
            self._holds.pop(id, None)
            return self._answer(job, self._stopped(job), job.leaves or self._leaves)
        cost = job.begins or self._begins
        self._holds[id] = (_count(job), self.now)
        if kind is m.Start:
            fate = self.fates[id]
            fate.begins = min(fate.begins, self.now)
            self._expect(job)
            return self._answer(job, m.Started(at=self.now, id=id, epoch=job.epoch), cost)
        row = self.state.table.row(job)
        self._whole[id] += cost * float(self.state.table.wf[RATE, row])
        self._expect(job)
        return self._answer(job, self._resized(job), cost)

    def _answer(self, job: Job, answer: m.Event, cost: float) -> m.Event | None:
        if cost <= 0.0:
            return answer
        self._push(self.now + cost, job, answer)
        return None

    def _account(self, id: str) -> None:
        """Charge it for what it held until now."""
        size, since = self._holds.get(id, (0, self.now))
        if size:
            self.fates[id].device_seconds += size * (self.now - since)

    def _owe(self, job: Job) -> None:
        """An answer that was under way still comes."""
        if job.state == "stopping":
            self._push(job.told_at + (job.leaves or self._leaves), job, self._stopped(job))
            return
        answer = self._resized(job)
        if job.state == "starting":
            answer = m.Started(at=self.now, id=job.id, epoch=job.epoch)
        self._push(job.told_at + (job.begins or self._begins), job, answer)

    def _stopped(self, job: Job) -> m.Event:
        return m.Exited(at=self.now, id=job.id, epoch=job.epoch, why="stopped")

    def _resized(self, job: Job) -> m.Event:
        return m.Resized(at=self.now, id=job.id, epoch=job.epoch, step=job.step)

    def _push(self, at: float, job: Job, answer: m.Event | None) -> None:
        self._tie += 1
        mark = (job.epoch, job.step)
        heapq.heappush(self._heap, Due(max(at, self.now), self._tie, job, mark, answer))


def _count(job: Job) -> int:
    """Devices it was told to hold."""
    return sum(mask.bit_count() for _, mask in job.held)


def _median(seconds: Sequence[float]) -> float:
    """Of those that took any time."""
    some = [value for value in seconds if value > 0.0]
    return float(np.median(some)) if some else 0.0
