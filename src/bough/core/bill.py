"""What single jobs draw, emit and cost in a forecast, by the model of core/energy.py.

A job is charged what its devices draw, and its part, by devices, of what its nodes draw by
themselves; and what its nodes' devices are priced at.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from bough.core.drawing import busy_of, work_for
from bough.core.energy import device_watts, power_of, standing_watts
from bough.core.jobs import Job
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
        #: Watts and money for each second that they use now, and since when.
        self._rates: dict[str, tuple[float, float, float]] = {}

    def close(self, id: str, now: float) -> None:
        """Charge a job for what it held until now."""
        watts, money, since = self._rates.get(id, (0.0, 0.0, now))
        if now > since:
            use, supply = self.uses[id], self.state.supply or Supply()
            use.joules += watts * (now - since)
            use.grams += supply.amount("carbon", watts, since, now) * GRAMS_OF_KILO
            use.money += supply.amount("cost", watts, since, now) + money * (now - since)
            self._rates[id] = (watts, money, now)

    def open(self, id: str, job: Job | None, now: float) -> None:
        """From now on it holds what it was told to hold; None: nothing."""
        self._rates.pop(id, None)
        if job is not None and job.held:
            self._rates[id] = (*rates_of(self.state, job), now)


def rates_of(state: State, job: Job) -> tuple[float, float]:
    """Watts of a job, and money for each second besides what its power costs."""
    topology, busy, work = state.topology, busy_of(state, job), work_for(state, job)
    watts = money = 0.0
    for number, mask in job.held:
        node, count = topology.nodes[number], mask.bit_count()
        power = power_of(node.kind)
        own = device_watts(power, work, busy, job.clock) - power.idle
        watts += count * (own + standing_watts(node) / node.devices)
        money += count * node.terms.price / HOUR_SECONDS
    return watts, money


def is_costly(state: State) -> bool:
    """Whether anything costs money here."""
    priced = state.supply is not None and state.supply.price is not None
    return priced or any(book.node.terms.price for book in state.nodes.values())


def emits(state: State) -> bool:
    """Whether it is known what power emits."""
    return state.supply is not None and state.supply.carbon is not None
