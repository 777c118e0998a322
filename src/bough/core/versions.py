"""One version of what is to come: a forked scheduler, and a body that answers its commands.

The scheduler is the real one, with all it believes now. What is true in a version differs from
that by as much as it may be wrong: how much work jobs have left, how fast they are, who else
comes. A job is done when it has done its true work, counted as the scheduler counts it. Answers
to commands take as long as such answers took so far.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from bough.core import chance
from bough.core import model as m
from bough.core.bill import Bill
from bough.core.doubt import CERTAIN, Belief, Doubt, Fate
from bough.core.expected import Arrival
from bough.core.jobs import Job
from bough.core.prior import ESTIMATE_SPREAD
from bough.core.scheduler import Scheduler
from bough.core.snapshot import Image
from bough.core.state import DONE, LEFT, RATE, SINCE

#: The most that is believed of a curve's error.
SPREAD_MAX: Final = 1.0
#: What a job has left that reports how fast it is is known so well.
REPORTED_SPREAD: Final = 0.03
#: Work and moments are equal within this: products of times are rounded.
ROUNDING: Final = 1e-6
#: Jobs that only may come are called so.
EXPECTED: Final = "expected"


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
        charged: Collection[str] = (),
        beliefs: dict[str, Belief] | None = None,
    ) -> None:
        self.scheduler = scheduler.fork(picture)
        self.state = self.scheduler.state
        #: What was learnt until now; the fork goes on learning, as the policy may decide by it.
        self._prior = scheduler.state.speedups.prior
        self.doubt, self.number, self.versions = doubt, number, versions
        #: Of jobs that are there: the same in all versions of one picture, who share them.
        self._beliefs = {} if beliefs is None else beliefs
        self.fates: dict[str, Fate] = {}
        #: What these jobs use, besides devices.
        self.bill = Bill(self.state, charged)
        #: Answers that nobody waits for: they ride with the next events.
        self._quiet: list[m.Event] = []
        self._heap: list[Due] = []
        self._tie = 0
        self._begun = self.state.now
        #: Job -> its work in all; devices it holds and since when.
        self._whole: dict[str, float] = {}
        self._holds: dict[str, tuple[int, float]] = {}
        self._coming = doubt.past.to_come(number, self.state.now)
        self._next = next(self._coming, None)
        self._came = 0
        items = self.state.table.items
        self._begins = _median([job.begins for job in items])
        self._leaves = _median([job.leaves for job in items])
        self._begin(items)

    def _begin(self, items: Sequence[Job]) -> None:
        """Meet those that are there."""
        for job in items:
            if job.id not in self._beliefs:
                self._beliefs[job.id] = self._belief(job)
            self._meet(job, None)
            if job.held:
                self.fates[job.id].begins = self.state.now
                self._hold(job.id, job)
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
        for id in list(self._holds):  # a node may have gone with what was on it
            job = self.state.jobs.get(id)
            if job is None or not job.held:
                self._account(id)
                self._hold(id, None)

    def run(self, watched: Collection[str], until: float) -> None:
        """On until all who are watched are over, or until that moment."""
        waiting = {id for id in watched if id in self.fates and not self.fates[id].how}
        while waiting and self._next_moment() <= until:
            waiting -= self._advance()
        self._close()

    def pass_by(self, until: float) -> None:
        """On until that moment, whoever is over before."""
        while self._next_moment() <= until:
            self._advance(until)
        self.tell([m.Tick(at=until)])
        self._close()

    def seconds_left(self, id: str) -> float:
        """Of a job that is not over: what it has left to do, at the speed it wished for."""
        job = self.state.jobs[id]
        speed = float(self.state.table.wish_speed[self.state.table.row(job)])
        return max(self._left(job, self.now)[0], 0.0) / speed

    def _advance(self, until: float = m.INFINITY) -> set[str]:
        """To the next moment at which something happens; who is over then."""
        coming: dict[str, float | None] = {}
        first = self._next_moment()
        until = min(first + self.doubt.grain * (first - self._begun), max(until, first))
        at = self._told_at(first, until)
        batch = self._due(at, until, coming)
        if not batch and self.scheduler.wake_at > at:
            return set()  # what was expected is not so any more
        return self._step(batch or [m.Tick(at=at)], coming)

    def _close(self) -> None:
        """Bring the accounts up to now."""
        for id, (size, _) in self._holds.items():
            self._account(id)
            self._holds[id] = (size, self.now)

    def _step(self, batch: Sequence[m.Event], coming: dict[str, float | None]) -> set[str]:
        """Let the scheduler decide, and answer until it waits for something; who is over."""
        over: set[str] = set()
        batch = [*self._quiet, *batch]
        self._quiet = []
        while batch:
            commands = self.scheduler.handle(batch)
            for id, work in coming.items():
                if id in self.state.jobs:
                    self._meet(self.state.jobs[id], work)
                else:
                    self.fates.setdefault(id, Fate())
            coming = {}
            batch, ending = [], False
            for command in commands:
                ending |= type(command) is m.Stop and not command.park
                answer = self._carry_out(command)
                if answer is not None:
                    batch.append(answer)
                elif isinstance(command, m.Ended):
                    over.add(command.id)
            if not self.state.pending and not ending:
                self._quiet = batch
                break
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

    def _told_at(self, first: float, until: float) -> float:
        """All that happens until then is told at one moment: at the mean of its moments."""
        if until == first:
            return first
        found = [due.at for due in self._until(until) if self._holds_good(due)]
        return max(sum(found) / len(found), self.now) if found else first

    def _until(self, until: float) -> Iterator[Due]:
        """What is due until then; the heap is a tree in which nobody is before who is above."""
        heap, ask = self._heap, [0]
        while ask:
            at = ask.pop()
            if at < len(heap) and heap[at].at <= until:
                yield heap[at]
                ask += (2 * at + 1, 2 * at + 2)

    def _due(self, at: float, until: float, coming: dict[str, float | None]) -> list[m.Event]:
        """All that happens until then, told at one moment."""
        batch: list[m.Event] = []
        while self._heap and self._heap[0].at <= until:
            due = heapq.heappop(self._heap)
            if not self._holds_good(due):
                continue
            job = due.job
            if due.answer is not None:
                batch.append(msgspec.structs.replace(due.answer, at=at))
            elif self._is_done(job, due.at):
                batch.append(m.Exited(at=at, id=job.id, epoch=job.epoch))
            else:
                self._expect(job, due.at)
        while self._next is not None and self._next.at <= until:
            batch.append(self._arrives(self._next, at, coming))
            self._next = next(self._coming, None)
        return batch

    def _arrives(self, arrival: Arrival, at: float, coming: dict[str, float | None]) -> m.Event:
        self._came += 1
        id = f"{EXPECTED} {self._came}"
        coming[id] = arrival.work
        return m.Submitted(at=at, id=id, spec=arrival.spec)

    # ------------------------------------------------------------------ what is true

    def _meet(self, job: Job, work: float | None) -> None:
        """Settle how much work it is in all."""
        self.fates[job.id] = Fate(use=self.bill.uses.get(job.id))
        if work is not None:
            self._whole[job.id] = work
            return
        done, median, spread, of_left = self._beliefs.get(job.id) or self._belief(job)
        luck = chance.luck(job.id, self.number, self.versions)
        if of_left:
            self._whole[job.id] = done + median * chance.factor(spread, luck)
        else:
            self._whole[job.id] = chance.outlived(median, spread, done, luck)

    def _belief(self, job: Job) -> Belief:
        """What is known of how much work it is."""
        state, row = self.state, self.state.table.row(job)
        wf = state.table.wf
        since = float(wf[RATE, row]) * (state.now - float(wf[SINCE, row]))
        done = float(wf[DONE, row]) + since
        left = max(float(wf[LEFT, row]) - since, 0.0)
        if job.serial in state.fits and left < m.INFINITY:
            return Belief(done, left, REPORTED_SPREAD if self.doubt.speeds else 0.0, True)
        return Belief(done, *self._believed(job, row, done, left), False)

    def _believed(self, job: Job, row: int, done: float, left: float) -> tuple[float, float]:
        """How much work it is in all, and the deviation of that, by what is known of its like."""
        state, spread, prior = self.state, self.doubt.estimates, self._prior
        error = state.curve_for(job.spec, int(state.table.pool[row])).error
        error = min(error, SPREAD_MAX) * self.doubt.speeds
        if left == m.INFINITY:
            guess = float(state.table.guess[row])
            if spread == 0.0:
                return max(guess, done * 1.5), error  # as Jobs.left_or_guess has it
            return guess, math.hypot(prior.spread(job.spec.model, job.spec.user), error)
        if spread is not None:
            return done + left, math.hypot(spread, error)
        first = math.hypot(ESTIMATE_SPREAD, error)
        bias, spread = prior.estimate_error(job.spec.user, first)
        return (done + left) * math.exp(bias), spread

    def _left(self, job: Job, at: float) -> tuple[float, float]:
        """Work it has left at a moment, and its rate."""
        row, wf = self.state.table.row(job), self.state.table.wf
        rate = float(wf[RATE, row])
        done = float(wf[DONE, row]) + rate * (at - float(wf[SINCE, row]))
        return self._whole[job.id] - done, rate

    def _is_done(self, job: Job, at: float) -> bool:
        left, rate = self._left(job, at)
        return bool(job.held) and left <= ROUNDING * (1.0 + rate)

    def _expect(self, job: Job, now: float | None = None) -> None:
        """Note when it will be done if nothing else happens to it."""
        now = self.now if now is None else now
        left, rate = self._left(job, now)
        if rate > 0.0:
            self._push(now + max(left, 0.0) / rate, job, None)

    # ------------------------------------------------------------------ the body

    def _carry_out(self, command: m.Command) -> m.Event | None:
        """Answer a command now; None if the answer comes later, or there is none."""
        kind, id = type(command), command.id
        self._account(id)
        if kind is m.Ended:
            fate = self.fates[id]
            fate.ends, fate.how = self.now, command.state  # type: ignore[attr-defined]
            self._whole.pop(id, None)
            self._hold(id, None)
            return None
        job = self.state.jobs[id]
        if kind is m.Clock:
            self._hold(id, job)
            self._expect(job)
            return None
        if kind is m.Stop:
            self.fates[id].parks += 1
            self._hold(id, None)
            return self._answer(job, self._stopped(job), job.leaves or self._leaves)
        cost = job.begins or self._begins
        self._hold(id, job)
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
            if id in self.bill.uses:
                self.bill.close(id, self.now)

    def _hold(self, id: str, job: Job | None) -> None:
        """From now on it holds what it was told to hold; None: nothing."""
        if job is None:
            self._holds.pop(id, None)
        else:
            self._holds[id] = (_count(job), self.now)
        self.bill.hold(id, job, self.now)

    def _owe(self, job: Job) -> None:
        """An answer that was under way still comes; one that is overdue rides with the next."""
        if job.state == "stopping":
            answer, seconds = self._stopped(job), job.leaves or self._leaves
        else:
            answer, seconds = self._resized(job), job.begins or self._begins
            if job.state == "starting":
                answer = m.Started(at=self.now, id=job.id, epoch=job.epoch)
        if job.told_at + seconds <= self.now and not self.state.pending:
            self._quiet.append(answer)
        else:
            self._push(job.told_at + seconds, job, answer)

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
