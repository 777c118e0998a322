"""What single jobs draw, emit and cost in a forecast, by the model of core/energy.py.

A job is charged what its devices draw; of what its nodes draw by themselves its part by devices
among those who hold some there, as the simulator does; and what its nodes' devices are priced at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import msgspec

from bough.core.drawing import busy_of, work_for
from bough.core.energy import device_watts, power_of, standing_watts
from bough.core.jobs import Job, Slots
from bough.core.state import State
from bough.core.supply import GRAMS_OF_KILO, Supply

HOUR_SECONDS = 3600.0


class Use(msgspec.Struct):
    """What a job has used."""

    joules: float = 0.0
    grams: float = 0.0
    money: float = 0.0


class Bill:
    """The books of some jobs in one version."""

    def __init__(self, state: State, charged: Collection[str]) -> None:
        self.state = state
        self.uses = {id: Use() for id in charged}
        #: Watts and money for each second that they use now, and since when; and what of them
        #: does not depend on who is beside them.
        self._rates: dict[str, tuple[float, float, float]] = {}
        self._own: dict[str, tuple[float, float]] = {}
        #: Of each job: its devices. Of each node: how many are held, and who is charged there.
        self._held: dict[str, Slots] = {}
        self._used: defaultdict[int, int] = defaultdict(int)
        self._here: dict[int, set[str]] = {}

    def close(self, id: str, now: float) -> None:
        """Charge a job for what it held until now."""
        watts, money, since = self._rates.get(id, (0.0, 0.0, now))
        if now > since:
            use, supply = self.uses[id], self.state.supply or Supply()
            use.joules += watts * (now - since)
            use.grams += supply.amount("carbon", watts, since, now) * GRAMS_OF_KILO
            use.money += supply.amount("cost", watts, since, now) + money * (now - since)
            self._rates[id] = (watts, money, now)

    def hold(self, id: str, job: Job | None, now: float) -> None:
        """From now on it holds what it was told to hold; None: nothing."""
        if not self.uses:
            return
        before, used = self._held.pop(id, ()), self._used
        after = () if job is None else job.held
        for node, mask in before:
            used[node] -= mask.bit_count()
        for node, mask in after:
            used[node] += mask.bit_count()
        if after:
            self._held[id] = after
        if id in self.uses:
            self._enter(id, job, before, now)
        if self._here:
            for node, _ in (*before, *after):
                for other in self._here.get(node, ()):
                    self._rate(other, now)

    def _enter(self, id: str, job: Job | None, left: Slots, now: float) -> None:
        """Note where a job is that is charged."""
        self.close(id, now)
        for node, _ in left:
            self._here[node].discard(id)
        self._rates.pop(id, None)
        if job is not None and job.held:
            self._own[id] = rates_of(self.state, job)
            for node, _ in self._held[id]:
                self._here.setdefault(node, set()).add(id)

    def _rate(self, id: str, now: float) -> None:
        """From now on it is charged this."""
        self.close(id, now)
        watts, money = self._own[id]
        nodes = self.state.topology.nodes
        for node, mask in self._held[id]:
            watts += standing_watts(nodes[node]) * mask.bit_count() / self._used[node]
        self._rates[id] = (watts, money, now)


def rates_of(state: State, job: Job) -> tuple[float, float]:
    """Watts of a job's own devices, and money for each second besides what power costs."""
    topology, busy, work = state.topology, busy_of(state, job), work_for(state, job)
    watts = money = 0.0
    for number, mask in job.held:
        node, count = topology.nodes[number], mask.bit_count()
        power = power_of(node.kind)
        watts += count * (device_watts(power, work, busy, job.clock) - power.idle)
        money += count * node.terms.price / HOUR_SECONDS
    return watts, money


def is_costly(state: State) -> bool:
    """Whether anything costs money here."""
    priced = state.supply is not None and state.supply.price is not None
    return priced or any(book.node.terms.price for book in state.nodes.values())


def emits(state: State) -> bool:
    """Whether it is known what power emits."""
    return state.supply is not None and state.supply.carbon is not None
