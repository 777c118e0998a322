"""What every policy must hold to: subclass PolicyContract, name yours, and run pytest.

class TestMine(PolicyContract):
    policies = (Mine(), Mine(knob=3))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from bough.core.jobs import Jobs
from bough.core.model import INFINITY
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import peaks
from bough.testing.strategies import views
from bough.testing.views import as_plan, carried_out, columns, described, granted, make_view

#: The same test runs for every subclass; hypothesis asks to be told that this is meant.
_SETTINGS = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.differing_executors]
)


def for_all_views(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test for each of the subclass's policies on any view."""

    @_SETTINGS
    @given(data=st.data())
    def run(self: PolicyContract, data: st.DataObject) -> None:
        policy, view = data.draw(st.sampled_from(self.policies)), data.draw(views())
        note(described(view))
        test(self, policy, view)

    run.__doc__ = test.__doc__
    return run


class PolicyContract:
    """The rules of bough.core.policy as tests, for policies that look at one kind of device."""

    #: The policy with the knobs worth testing.
    policies: ClassVar[tuple[Policy, ...]] = ()
    #: Jobs get the size they wish or nothing, instead of anything from their least on.
    at_wish: ClassVar[bool] = False
    #: No job waits while enough devices for any of the jobs are idle.
    work_conserving: ClassVar[bool] = True
    #: Nor while enough devices for this job are idle.
    passes_over: ClassVar[bool] = False
    #: Once carried out, a plan stays the same until its `wake_at` if nothing happens.
    settles: ClassVar[bool] = True
    #: Decides by what changes all the time (as work left), so a plan is good for its moment only.
    drifts: ClassVar[bool] = False

    @for_all_views
    def test_plan_keeps_to_the_rules(self, policy: Policy, view: View) -> None:
        """Sizes are allowed, within bounds and devices; who may not be parked is not."""
        plan = as_plan(policy.plan(view))
        jobs = view.jobs
        assert plan.sizes.dtype == np.int64
        assert plan.sizes.shape == (jobs.n,)
        sizes = granted(policy, view)
        assert sizes.sum() <= view.devices
        for i in range(jobs.n):
            allowed = view.classes.sizes[jobs.cls[i]].tolist()
            assert plan.sizes[i] in allowed
            assert sizes[i] in allowed
            assert sizes[i] == 0 or jobs.lo[i] <= sizes[i] <= jobs.hi[i]
            assert sizes[i] > 0 or not jobs.must[i]
        if plan.order is not None:
            assert sorted(plan.order.tolist()) == list(range(jobs.n))
        if plan.clocks is not None:
            assert plan.clocks.shape == (jobs.n,)
            assert ((plan.clocks > 0) & (plan.clocks <= 1)).all()
        assert plan.wake_at > view.now
        assert all(0 <= row < jobs.n for row in plan.reasons)

    @for_all_views
    def test_same_view_same_plan(self, policy: Policy, view: View) -> None:
        """No clock, no chance, no memory; and it does not matter where the columns lie."""
        kept = view.jobs.ints.copy(), view.jobs.floats.copy()
        first, again = as_plan(policy.plan(view)), as_plan(policy.plan(view))
        assert_same(first, again)
        assert np.array_equal(kept[0], view.jobs.ints), "the view was written to"
        assert np.array_equal(kept[1], view.jobs.floats, equal_nan=True), "the view was written to"
        jobs = view.jobs
        ints, floats = jobs.ints[:, jobs.pick].copy(), jobs.floats[:, jobs.pick].copy()
        moved = Jobs(ints, floats, slice(0, jobs.n), jobs.n, jobs.now)
        assert_same(first, as_plan(policy.plan(elsewhere(view, jobs=moved))))

    @for_all_views
    def test_devices_are_used(self, policy: Policy, view: View) -> None:
        """Nobody waits for devices that are idle, as far as the policy declares that.

        For want of power one may.
        """
        if policy.meters and view.power is not None and view.power.allowance < INFINITY:
            return
        jobs, sizes = view.jobs, granted(policy, view)
        idle = view.devices - int(sizes.sum())
        least = np.maximum(np.minimum(jobs.wish, jobs.hi), jobs.lo) if self.at_wish else jobs.lo
        waiting = (sizes == 0) & (least > 0)
        if self.work_conserving and len(least) and idle >= least.max():
            assert not waiting.any()
        if self.passes_over:
            assert not (waiting & (least <= idle)).any()

    @for_all_views
    def test_plan_settles(self, policy: Policy, view: View) -> None:
        """A plan that was carried out is the plan, until the moment it names."""
        if not self.settles:
            return
        sizes = granted(policy, view)
        then = carried_out(view, sizes)
        assert granted(policy, then).tolist() == sizes.tolist()
        if self.drifts:
            return
        wait = min(as_plan(policy.plan(then)).wake_at - then.now, 1e6)
        later = carried_out(view, sizes, after_seconds=wait * 0.999)
        assert granted(policy, later).tolist() == sizes.tolist()

    @for_all_views
    def test_who_is_content_gets_just_that(self, policy: Policy, view: View) -> None:
        """Who runs with all it wants keeps that, and who waits gets it if it is there for all."""
        if policy.content_with:
            jobs = view.jobs
            most = jobs.wish if policy.content_with == "wish" else peaks(view.classes)[jobs.cls]
            wanted = np.maximum(most, jobs.min)
            then = roomy(view, wanted)
            assert granted(policy, then).tolist() == wanted.tolist()

    def test_nothing_to_do(self) -> None:
        """No jobs, no sizes; no devices, no jobs."""
        for policy in self.policies:
            assert as_plan(policy.plan(make_view(8, []))).sizes.tolist() == []

    def test_knobs_are_plain_data(self) -> None:
        """Knobs can be written down and read back, and unknown ones are refused."""
        for policy in self.policies:
            written: dict[str, Any] = msgspec.to_builtins(policy)
            assert msgspec.convert(written, type(policy)) == policy
            try:
                msgspec.convert(written | {"no such knob": 1}, type(policy))
            except msgspec.ValidationError:
                continue
            raise AssertionError("an unknown knob was accepted")


def assert_same(one: Plan, other: Plan) -> None:
    """Two plans say the same."""
    assert one.sizes.tolist() == other.sizes.tolist()
    assert (one.order is None) == (other.order is None)
    if one.order is not None and other.order is not None:
        assert one.order.tolist() == other.order.tolist()
    assert (one.skip, one.wake_at, one.reasons) == (other.skip, other.wake_at, other.reasons)


def elsewhere(view: View, jobs: Jobs, devices: int | None = None) -> View:
    """The same view of jobs that lie elsewhere, or of another number of devices."""
    devices = view.devices if devices is None else devices
    return replace(view, devices=devices, jobs=jobs)


def roomy(view: View, wanted: Ints) -> View:
    """The same jobs, bound by nothing, with room for what all want; those that run have it."""
    jobs = view.jobs
    ints, floats = jobs.ints[:, jobs.pick].copy(), jobs.floats[:, jobs.pick].copy()
    column = {name: made.row for name, made in columns().items()}
    free = np.zeros(jobs.n, np.int64)
    held: Ints = np.where(jobs.size > 0, wanted, 0)
    bounds = {"must": free, "busy": free, "lo": jobs.min, "hi": jobs.max, "size": held}
    for name, values in bounds.items():
        ints[column[name]] = values
    then = Jobs(ints, floats, slice(0, jobs.n), jobs.n, jobs.now)
    return replace(elsewhere(view, then, int(wanted.sum())), power=None)
