"""The conformance kit finds what it is there to find: policies that break the contract."""

from __future__ import annotations

from typing import ClassVar

import pytest

from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import in_order, water_fill
from bough.testing.policies import PolicyContract


class Idle(Policy, frozen=True):
    """Never starts anything."""

    def plan(self, view: View) -> Ints:
        return view.jobs.lo * view.jobs.must


class Overdraws(Policy, frozen=True):
    """Everybody gets the most they can use."""

    def plan(self, view: View) -> Ints:
        return view.jobs.hi


class Remembers(Policy, frozen=True):
    """Decides differently every other time."""

    asked: ClassVar[list[int]] = []

    def plan(self, view: View) -> Ints:
        self.asked.append(1)
        return water_fill(view) if len(self.asked) % 2 else view.jobs.lo * view.jobs.must


class Scribbles(Policy, frozen=True):
    """Writes to the view."""

    def plan(self, view: View) -> Ints:
        view.jobs.lo[:] = 1
        return water_fill(view)


class Restless(Policy, frozen=True):
    """Prefers those that do not run."""

    def plan(self, view: View) -> Plan:
        return Plan(view.jobs.lo, order=in_order(view, view.jobs.size))


BROKEN = {
    Idle: "test_devices_are_used",
    Overdraws: "test_plan_keeps_to_the_rules",
    Remembers: "test_same_view_same_plan",
    Scribbles: "test_plan_keeps_to_the_rules",
    Restless: "test_plan_settles",
}


@pytest.mark.parametrize("policy", BROKEN, ids=lambda policy: policy.__name__)
def test_breaking_the_contract_is_found(policy: type[Policy]) -> None:
    class Kit(PolicyContract):
        __test__ = False
        policies = (policy(),)

    with pytest.raises((AssertionError, ValueError)):
        getattr(Kit(), BROKEN[policy])()
