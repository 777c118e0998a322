"""Decisions a slot apart: ElasticFlow's simulator puts off what comes sooner after the last one."""

from __future__ import annotations

import math

import msgspec

from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View

#: A moment this close to a whole second is one: sums of times are rounded.
SLACK_SECONDS = 1e-6


class Clock:
    """When the last decision was made, and when the next may be."""

    def __init__(self) -> None:
        self.last = -INFINITY

    def wait_until(self, now: float, slot_seconds: float) -> float | None:
        """When to decide if not now: at a whole second, and a slot after the last decision."""
        if now - self.last <= SLACK_SECONDS:
            return None  # once more in the same moment
        due = max(self.last + slot_seconds, math.ceil(now - SLACK_SECONDS))
        if now < due - SLACK_SECONDS:
            return float(due)
        self.last = float(round(now))
        return None


class Slotted(Policy, frozen=True):
    """Another policy, asked at whole seconds that are at least a slot apart.

    Faithful: what happens sooner after a decision is looked at when the slot is over; devices
    that were left stay idle until then. The job ends when it ends.
    """

    inner: Policy
    slot_seconds: float
    clock: Clock = msgspec.field(default_factory=Clock)

    def plan(self, view: View) -> Plan:
        wait = self.clock.wait_until(view.now, self.slot_seconds)
        if wait is not None:
            return Plan(view.jobs.size.copy(), wake_at=wait)
        answer = self.inner.plan(view)
        plan = answer if isinstance(answer, Plan) else Plan(answer)
        return Plan(plan.sizes, wake_at=plan.wake_at)
