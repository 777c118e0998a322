"""ElasticFlow as its released simulator has it: its slots, its leftovers, and what decisions cost.

Decisions are a slot apart. At each of them every running job stands still for two seconds, or
longer where it has devices that nobody had in that combination before. Jobs that come between two
decisions are taken on together or not at all.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec
import numpy as np

from bough.core.cluster import Cluster
from bough.core.filling import Levels
from bough.core.model import INFINITY, Event
from bough.core.policy import Ints, Plan, Policy, View
from bough.sim.engine import Engine
from bough.sim.options import Options, Tools
from bough.sim.reproduce.overhead import LARGE_DEVICES
from bough.sim.reproduce.refill import Filled, Refill, Work
from bough.sim.reproduce.slots import Clock
from bough.sim.trace import Trace
from bough.sim.world import Running

#: The most devices of each model and batch (0: any), where that is not the largest measured.
LARGEST: Final[dict[str, dict[tuple[str, int], int]]] = {
    "t4": {("bert", 0): 16, ("cifar10", 0): 16, ("deepspeech2", 320): 32, ("yolov3", 0): 4,
           ("ncf", 0): 1},
    "a100": {("gpt2", 128): 16, ("gpt2", 256): 32, ("bert", 64): 8, ("bert", 0): 16,
             ("inception3", 64): 16, ("inception3", 128): 32, ("resnet50", 64): 32,
             ("vgg16", 64): 32},
}  # fmt: skip


class Account:
    """What is remembered of one job that was taken on."""

    def __init__(self, work: Work) -> None:
        self.work = work
        #: Devices since the last decision, seconds of it in which it stood still.
        self.size = 0
        self.owes = 0.0
        #: When it is done by the fewest devices that keep its deadline; when its devices are given
        #: back, which is when it is looked at.
        self.done = INFINITY
        self.end = INFINITY
        self.in_time = False

    def speed(self) -> float:
        """Work per second."""
        sizes, speeds = self.work.levels
        return speeds[sizes.index(self.size)]


class Ledger:
    """What is remembered from decision to decision, by the number of the job."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.engine: Engine | None = None
        self.kind = ""
        self.decisions = 0
        self.taken: dict[int, Account] = {}
        self.refused: set[int] = set()
        #: Live jobs that turn out to have ended.
        self.over: set[int] = set()
        self.due = -INFINITY
        #: Without admission, all changes that were ever planned.
        self.looks: set[float] = set()
        #: Combinations of devices that were in use since the last restart.
        self.seen: set[tuple[int, int]] = set()

    def truth(self) -> dict[int, Running]:
        """The live jobs as they are."""
        assert self.engine is not None
        live = self.engine.scheduler.state.jobs
        return {live[id].serial: job for id, job in self.engine.world.jobs.items() if id in live}


class Released(Policy, frozen=True):
    """ElasticFlow and EDF with its admission, in the released simulator."""

    slot_seconds: float
    #: Whose sizes are planned: the fewest that keep the deadline and leftovers, or the most.
    rule: Literal["elastic", "greedy"] = "elastic"
    admission: bool = True
    ledger: Ledger = msgspec.field(default_factory=Ledger)

    def plan(self, view: View) -> Plan:
        ledger, jobs = self.ledger, view.jobs
        serials = jobs.serial.tolist()
        known = ledger.taken.keys() | ledger.refused
        new = [serial for serial in serials if serial not in known]
        now, last = float(math.ceil(view.now - 1e-6)), ledger.clock.last
        if not new and view.now < ledger.due - 1e-6:
            return Plan(jobs.size.copy(), wake_at=ledger.due)
        wait = ledger.clock.wait_until(view.now, self.slot_seconds)
        if wait is not None:
            return Plan(jobs.size.copy(), wake_at=wait)
        live = [serial for serial in serials if serial in ledger.taken]
        if now > last and not ledger.over:
            ledger.over = {s for s in live if self._is_over(ledger.taken[s], last, now)}
            if ledger.over:
                # They leave first; then this is asked again.
                ledger.clock.last = last
                return Plan(jobs.size.copy())
        ledger.over = set()
        if now > last:
            for serial in live:
                account = ledger.taken[serial]
                left = account.work.left - self._seconds(account, last, now) * account.speed()
                account.work = account.work._replace(left=max(left, 1e-9))
        works = self._admitted(now, view.devices, {s: ledger.taken[s].work for s in live}, new)
        refill, plans = self._filled(now, view.devices, works)
        if self.rule == "elastic":
            for serial, plan in plans.items():
                ledger.looks -= {ledger.taken[serial].end, plan.end}
                ledger.taken[serial].done = plan.done
            self._grow(refill, works, plans)
        return self._decided(view, now, plans)

    def _seconds(self, account: Account, last: float, now: float) -> float:
        """For how long it made progress since the last decision."""
        planned = account.done if self.rule == "elastic" else account.end
        run = now - last - max(now - planned, 0.0)
        return max(run - account.owes, 0.0) if account.size else 0.0

    def _is_over(self, account: Account, last: float, now: float) -> bool:
        """Whether it has ended though its devices were to be given back later."""
        if not account.size or account.end <= now:
            return False
        if account.work.left > self._seconds(account, last, now) * account.speed():
            return False
        account.end = last + math.ceil(account.work.left / account.speed())
        account.in_time = self._judge(account)
        return True

    def _judge(self, account: Account) -> bool:
        """Whether it ends in time, as they count it."""
        planned = self.rule == "elastic" and self.admission
        return (account.done if planned else account.end) <= account.work.deadline

    def _levels(self, job: Running) -> Levels:
        """The sizes it may have there."""
        spec = job.job.spec
        most = max(spec.sizes())
        if self.rule == "elastic":
            caps = LARGEST[self.ledger.kind]
            most = caps.get((spec.model, spec.batch), caps.get((spec.model, 0), most))
        sizes = [s for s in spec.sizes() if s <= min(most, spec.batch or most)]
        return Levels((0, *sizes), (0.0, *(job.curve.at(size) for size in sizes)))

    def _filled(
        self, now: float, devices: int, works: dict[int, Work]
    ) -> tuple[Refill, dict[int, Filled]]:
        """The plan of each, the most urgent first."""
        refill = Refill(now, devices, self.slot_seconds)
        fill = refill.fill if self.rule == "elastic" else refill.greedy
        urgent = sorted(works, key=lambda serial: works[serial].deadline)
        return refill, {serial: fill(works[serial]) for serial in urgent}

    def _admitted(
        self, now: float, devices: int, live: dict[int, Work], new: list[int]
    ) -> dict[int, Work]:
        """Who is taken on: all that came together or none (one by one under EDF)."""
        ledger, truth = self.ledger, self.ledger.truth()
        groups = [new] if self.rule == "elastic" else [[serial] for serial in new]
        for group in groups if new else []:
            asks = {
                s: Work(self._levels(truth[s]), truth[s].work, truth[s].record.deadline)
                for s in group
            }
            among = live | asks
            _, plans = self._filled(now, devices, among)
            fits = all(plan.done <= among[serial].deadline for serial, plan in plans.items())
            if fits or not self.admission:
                live = among
                ledger.taken |= {serial: Account(work) for serial, work in asks.items()}
            else:
                ledger.refused.update(group)
        return live

    def _grow(self, refill: Refill, works: dict[int, Work], plans: dict[int, Filled]) -> None:
        """Leftover devices to whoever's device time grows most by it, jobs with none first."""
        now = refill.now
        while (free := refill.profile.free[0]) > 0:
            best: tuple[float, int, Filled, Refill] | None = None
            for serial, plan in plans.items():
                size, sizes = plan.at(now), works[serial].levels.sizes
                larger = next((s for s in sizes if s > size), 0)
                if not larger or larger - size > free:
                    continue
                without = refill.without(plan)
                grown = without.grown(works[serial], larger)
                growth = (grown.device_time() - plan.device_time()) / (larger - size)
                growth = growth if size else INFINITY
                if best is None or growth > best[0]:
                    best = growth, serial, grown, without
            if best is None:
                return
            _, serial, plan, refill = best
            self.ledger.looks.discard(plans[serial].end)
            plans[serial] = plan

    def _decided(self, view: View, now: float, plans: dict[int, Filled]) -> Plan:
        """The sizes, what everybody owes for them, and when the next decision is due."""
        ledger = self.ledger
        for serial, plan in plans.items():
            ledger.taken[serial].size = plan.at(now)
        self._owe(view.devices, plans)
        for serial, plan in plans.items():
            account = ledger.taken[serial]
            account.end = plan.end + account.owes if account.size else INFINITY
            account.in_time = self._judge(account)
        ends = min((ledger.taken[serial].end for serial in plans), default=INFINITY)
        ledger.due = max(min(ends, self._next_look(now, plans)), now + self.slot_seconds)
        size = {serial: ledger.taken[serial].size for serial in plans}
        sizes: Ints = np.array([size.get(s, 0) for s in view.jobs.serial.tolist()], np.int64)
        return Plan(sizes, wake_at=ledger.due)

    def _next_look(self, now: float, plans: dict[int, Filled]) -> float:
        """When sizes are to change before a job ends, of which the seconds owed are no part."""
        if self.rule == "greedy":
            return INFINITY
        ledger = self.ledger
        ends = {plan.end for serial, plan in plans.items() if ledger.taken[serial].size}
        changes = {plan.next_change(now) for plan in plans.values()}
        if self.admission:
            first = min(changes, default=INFINITY)
            return first if first < min(ends, default=INFINITY) else INFINITY
        # What was planned once is looked at even if plans have changed since, unless a job was to
        # end then: with that its moment is forgotten.
        ledger.looks = {at for at in (ledger.looks | changes) - ends if at > now}
        return min(ledger.looks, default=INFINITY)

    def _owe(self, devices: int, plans: dict[int, Filled]) -> None:
        """Seconds that running jobs stand still, by what is new about their devices."""
        ledger, at = self.ledger, 0
        restart = ledger.decisions > 0 and ledger.decisions % int(self.slot_seconds) == 0
        ledger.decisions += 1
        base = 7.0 if devices >= LARGE_DEVICES else 2.0
        for account in sorted((ledger.taken[s] for s in plans), key=lambda a: -a.size):
            account.owes, size = 0.0, account.size
            if size:
                more = 2.0 * (math.log2(size) + 1.0)
                more += (47.0 if devices >= LARGE_DEVICES else 27.0) if restart else 0.0
                account.owes = base if (at, size) in ledger.seen else base + more
                ledger.seen.add((at, size))
                at += size
        if restart:
            ledger.seen.clear()


class ReleasedEngine(Engine):
    """A replay in which jobs end when the accounts of the policy say so."""

    def __init__(
        self, trace: Trace, cluster: Cluster, policy: Released, options: Options, tools: Tools
    ) -> None:
        self.ledger = policy.ledger
        self.ledger.kind = cluster.nodes[0].kind
        super().__init__(trace, cluster, policy, options, tools)
        self.ledger.engine = self

    def step(self, batch: list[Event]) -> None:
        before = self.ledger.decisions
        super().step(batch)
        if self.ledger.decisions == before and not self.ledger.over:
            return
        for serial, job in self.ledger.truth().items():
            account = self.ledger.taken.get(serial)
            if account is None or not job.size:
                continue
            self.world.advance(job, self.now)
            ends_in = 0.0 if serial in self.ledger.over else account.end - self.now
            job.done, job.ready = job.work - job.rate * ends_in, self.now
            self.world.set_rate(job, self.now)
