"""What jobs truly draw, emit and cost in the simulated world, and which node's power is whose.

Only kept when somebody asks. A device under a job draws by the job's true curve and clock; what a
node draws by itself, with its devices idle, is shared by the jobs on it, by the devices they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.cluster import Cluster
from bough.core.energy import (
    busy_share,
    device_watts,
    pace,
    power_of,
    standing_watts,
    work_of,
)
from bough.core.meter import Meter
from bough.core.model import Place
from bough.core.policy import Policy
from bough.core.speedup import Curve
from bough.core.supply import GRAMS_OF_KILO, Supply
from bough.sim.options import Options
from bough.sim.record import JobRecord

if TYPE_CHECKING:
    from bough.sim.world import Running

HOUR_SECONDS = 3600.0


class Accounts:
    """The books of all jobs and nodes."""

    def __init__(self, cluster: Cluster, supply: Supply) -> None:
        self.supply = supply
        self.nodes = {node.name: node for node in cluster.nodes}
        self.standing = {node.name: standing_watts(node) for node in cluster.nodes}
        #: Of each node: devices held by each job on it, and since when that is so.
        self.on: dict[str, dict[str, int]] = {node.name: {} for node in cluster.nodes}
        self.since: dict[str, float] = {}
        self.records: dict[str, JobRecord] = {}
        #: What of "energy", "carbon", "cost" there is to tell.
        priced = supply.price is not None or is_priced(cluster)
        kept = {"energy": True, "carbon": supply.carbon is not None, "cost": priced}
        self.known = frozenset(what for what, is_kept in kept.items() if is_kept)
        #: The truth of all budgets, beside what the scheduler believes.
        self.meter = Meter(supply)

    def charge(self, record: JobRecord, watts: float, begin: float, end: float) -> None:
        """Power to a job's account."""
        record.energy_joules += watts * (end - begin)
        carbon = self.supply.amount("carbon", watts, begin, end)
        record.carbon_grams += carbon * GRAMS_OF_KILO
        record.cost += self.supply.amount("cost", watts, begin, end)

    def used(self, job: Running, now: float) -> None:
        """What a job's own devices drew and cost since it was last looked at."""
        self.charge(job.record, job.watts, job.at, now)
        job.record.cost += job.price * (now - job.at)

    def rate(self, job: Running, curve: Curve, now: float) -> None:
        """Its devices draw something else from now on."""
        before = job.watts
        job.watts = job.price = 0.0
        if job.size:
            work, busy = work_of(job.job.spec.model), true_busy(job, curve)
            for name, devices in job.place:
                node = self.nodes[name]
                power = power_of(node.kind)
                more = device_watts(power, work, busy, job.clock) - power.idle
                job.watts += more * len(devices)
                job.price += node.terms.price * len(devices) / HOUR_SECONDS
        self.draw(job.watts - before, now)

    def draw(self, more: float, now: float) -> None:
        """The whole cluster draws so much more, or less."""
        if more:
            self.meter.advance(now)
            self.meter.watts += more

    def move(self, job: Running, before: Place, after: Place, now: float) -> None:
        """A job leaves nodes or joins them: their own power is shared otherwise."""
        id = job.job.id
        self.records[id] = job.record
        for name in dict.fromkeys([*(n for n, _ in before), *(n for n, _ in after)]):
            self.share(name, now)
            was = bool(self.on[name])
            self.on[name].pop(id, None)
            for node, devices in after:
                if node == name:
                    self.on[name][id] = len(devices)
            there = bool(self.on[name])
            if there != was:
                self.draw(self.standing[name] if there else -self.standing[name], now)

    def share(self, name: str, now: float) -> None:
        """Charge what a node drew by itself up to now to whoever was on it."""
        jobs, since = self.on[name], self.since.get(name, now)
        held = sum(jobs.values())
        for id, devices in jobs.items():
            self.charge(self.records[id], self.standing[name] * devices / held, since, now)
        self.since[name] = now

    def close(self, now: float) -> None:
        """The run is over."""
        for name in self.on:
            self.share(name, now)
        self.meter.advance(now)

    def windows(self) -> list[tuple[str, float, float, float]]:
        """Every window of every budget: what of, when it ended (or now), what it had and used."""
        return [
            (account.budget.of, *window)
            for account in self.meter.accounts
            for window in [*account.windows, (self.meter.now, account.had, account.spent)]
        ]


def open_accounts(cluster: Cluster, options: Options, policy: Policy) -> Accounts | None:
    """Books, where anybody asks for them."""
    if not (options.energy or options.supply or policy.meters or is_priced(cluster)):
        return None
    return Accounts(cluster, options.supply or Supply())


def is_priced(cluster: Cluster) -> bool:
    """Whether devices of it cost money."""
    return any(node.terms.price for node in cluster.nodes)


def true_busy(job: Running, curve: Curve) -> float:
    """The share of its time in which a job truly computes."""
    least = job.job.spec.sizes()[0]
    return busy_share(job.size, curve.at(job.size), curve.at(least) / least)


def true_pace(job: Running, curve: Curve) -> float:
    """What its clock leaves of its speed."""
    return pace(work_of(job.job.spec.model), true_busy(job, curve), job.clock)
