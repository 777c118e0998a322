"""Listens to a simulation: every batch of events its scheduler is told, and what it says to it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest

from bough.core.cluster import Cluster
from bough.core.model import Command, Event
from bough.core.policy import Policy
from bough.core.scheduler import Scheduler
from bough.core.topology import Topology
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.record import RunRecord
from bough.sim.trace import Trace


class Recorded(Scheduler):
    """A scheduler that remembers; in all else it is one."""

    def __init__(self, policy: Policy, topology: Topology | None = None, **given: Any) -> None:
        self._made_of = policy, deepcopy(topology), deepcopy(given)
        self.steps: list[tuple[list[Event], list[Command]]] = []
        super().__init__(policy, topology, **given)

    def handle(self, events: Sequence[Event]) -> list[Command]:
        told = list(events)
        commands = super().handle(events)
        self.steps.append((told, list(commands)))
        return commands

    def fresh(self) -> Scheduler:
        """A scheduler like this one was before it was told anything."""
        policy, topology, given = self._made_of
        return Scheduler(policy, deepcopy(topology), **deepcopy(given))


def recorded(
    trace: Trace, cluster: Cluster, policy: Policy, options: Options
) -> tuple[RunRecord, Recorded]:
    """A simulation, and the scheduler that decided in it."""
    made: list[Recorded] = []

    def make(*args: Any, **given: Any) -> Recorded:
        made.append(Recorded(*args, **given))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bough.sim.engine.Scheduler", make)
        record = simulate(trace, cluster, policy, options)
    (brain,) = made
    return record, brain
