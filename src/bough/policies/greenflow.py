"""GreenFlow: devices and clocks where they save most time for their energy, as power is clean."""

from __future__ import annotations

from bough.core.energy import CLOCKS
from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.core.thrift import Ladders, climb_within, power_in


class GreenFlow(Policy, frozen=True):
    """What saves most time for its energy comes first; more is drawn while power is clean.

    Citation: Gu, Zhao, Sun, Jin, Liu, "GreenFlow: a carbon-efficient scheduler for deep learning
    workloads", IEEE TPDS 36(2), 2025.
    Faithful: a carbon budget in place of energy, and the grid's present carbon intensity; jobs are
    raised in devices and clock by relative time saved over relative energy added.
    Ours (the paper's equations were not available): each second of a window may emit as much as any
    other of what is left, so that power follows how clean it is (`even=false`: the same power to
    the end of the window, by the forecast); the rest is as in `powerflow`.
    """

    scope = "pool"
    meters = True

    #: Use up the same part of the budget in each hour, rather than draw the same power.
    even: bool = True
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
        allowance = power.even_allowance if self.even else power.allowance
        ladders = Ladders(view, CLOCKS if self.clocks else (1.0,))
        found = climb_within(view, ladders, self.haste * allowance)
        again = view.now + self.interval_seconds if found.short_of_power else INFINITY
        return Plan(found.sizes, clocks=found.clocks, wake_at=min(power.until, again))
