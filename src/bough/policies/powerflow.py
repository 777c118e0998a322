"""PowerFlow: devices and clocks where they save most time for their energy, within a budget."""

from __future__ import annotations

from bough.core.energy import CLOCKS
from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.core.thrift import Ladders, climb_within, power_in


class PowerFlow(Policy, frozen=True):
    """Jobs start at one device; what saves most time for its energy comes next, within a budget.

    Citation: Gu, Xie, Huang, Jin, Liu, "Energy-efficient GPU clusters scheduling for deep learning"
    (PowerFlow), arXiv 2304.06381; its greedy as a public port has it (algorithm 1, section 5.2).
    Faithful: every job starts with its least; candidates are more devices or a higher clock; the
    next goes to where the relative decrease of completion time over the relative increase of
    energy is largest, and what adds no energy goes first; nothing beyond the budget. Jobs start at
    their energy-optimal clock, and node power is charged per touched node, so packing pays.
    Ours (the paper's equations were not available): the power model of docs/energy.md; the budget
    as power, `haste` times what is left of it over the rest of its window; when it does not
    suffice for all, jobs with least energy left go first; any larger size is looked at, so that a
    poor one does not hide a good one. Without a budget every device and clock is
    used that saves time.
    """

    scope = "pool"
    meters = True

    #: Choose clocks; if not, devices go as fast as they do and only their number is chosen.
    clocks: bool = True
    #: How many times the power may be drawn that would use up the budget evenly. What is left then
    #: falls faster at first, and never to nothing, as it is looked at again and again.
    haste: float = 1.0
    #: Where power is short: seconds until it is looked again what may be drawn.
    interval_seconds: float = 600.0

    def __post_init__(self) -> None:
        if not 0 < self.interval_seconds < INFINITY:
            raise ValueError("interval_seconds must be positive and finite")
        if not self.haste > 0:
            raise ValueError("haste must be positive")

    def plan(self, view: View) -> Plan:
        power = power_in(view)
        ladders = Ladders(view, CLOCKS if self.clocks else (1.0,))
        found = climb_within(view, ladders, self.haste * power.allowance)
        again = view.now + self.interval_seconds if found.short_of_power else INFINITY
        return Plan(found.sizes, clocks=found.clocks, wake_at=min(power.until, again))
