"""The power model: worked numbers, what must hold of any kind, and the tables it is fitted to."""

from __future__ import annotations

import pytest
from tests.datasets import data

from bough.core.energy import (
    CLOCKS,
    POWERS,
    USUAL_KIND,
    WORKS,
    Power,
    Work,
    busy_share,
    cap_watts,
    device_watts,
    node_watts,
    pace,
    power_of,
    standing_watts,
    thriftiest,
    work_of,
)
from bough.core.model import Node
from bough.sim.power_tables import fit, read_curves

#: A kind with round numbers: 100 W awake, 300 W at work, of which half falls with the clock.
ROUND = Power(100.0, 300.0, 0.5)


def test_a_worked_example() -> None:
    """At half the clock a fully sensitive job takes twice as long and draws 225 W."""
    work = Work(1.0, 1.0)
    assert device_watts(ROUND, work) == 300.0
    assert device_watts(ROUND, work, clock=0.5) == 100 + 200 * (0.5 + 0.5 * 0.25)
    assert pace(work, 1.0, 0.5) == 0.5
    # Half of its time it waits for others: it draws half as much more, and loses a third.
    assert device_watts(ROUND, work, busy=0.5) == 200.0
    assert pace(work, 0.5, 0.5) == pytest.approx(2 / 3)
    assert cap_watts(ROUND, 1.0) == 300.0


def test_time_spent_on_others_is_what_scaling_loses() -> None:
    assert busy_share(4, 3.0, 1.0) == 0.75
    assert busy_share(1, 1.0, 1.0) == 1.0
    assert busy_share(2, 2.5, 1.0) == 1.0


@pytest.mark.parametrize("kind", POWERS)
@pytest.mark.parametrize("model", [*WORKS, "anything"])
def test_any_kind_and_model(kind: str, model: str) -> None:
    """Lower clocks draw less and are slower; there is one at which work costs least."""
    power, work = power_of(kind), work_of(model)
    watts = [device_watts(power, work, 1.0, clock) for clock in CLOCKS]
    paces = [pace(work, 1.0, clock) for clock in CLOCKS]
    assert watts == sorted(watts)
    assert paces == sorted(paces)
    assert 0 < power.idle < watts[0] <= watts[-1] <= power.peak * 1.001
    joules = [w / p for w, p in zip(watts, paces, strict=True)]
    assert joules[CLOCKS.index(thriftiest(power, work))] == min(joules)
    # The more of a node's power is on its shoulders, the sooner it should be done.
    assert thriftiest(power, work, share_watts=500.0) >= thriftiest(power, work)


def test_names_are_found() -> None:
    assert power_of("A100-SXM4-80GB") == POWERS["a100"]
    assert power_of("nobody's") == POWERS[USUAL_KIND]
    assert work_of("imagenet") == WORKS["resnet50"]


def test_a_touched_node() -> None:
    node = Node(name="n", kind="v100", devices=8)
    assert node_watts(node) == 500.0
    assert standing_watts(node) == 500.0 + 8 * POWERS["v100"].idle


@pytest.mark.data
def test_the_constants_are_the_fit() -> None:
    """The fit to the public tables, made again, gives the constants; and is this far from them."""
    curves, idle = read_curves(data("zeus/nsdi23-trace"))
    assert len(curves) == 24
    assert sum(len(curve.cap) for curve in curves) == 176
    found = fit(curves, idle)
    for kind, peak in found.peak.items():
        known = POWERS[kind]
        assert known.source == "fitted"
        assert known.idle == pytest.approx(found.idle[kind], abs=0.1)
        assert known.peak == pytest.approx(peak, abs=0.5)
        assert known.scaled == pytest.approx(found.scaled[kind], abs=0.005)
    for model, known_work in WORKS.items():
        fitted = found.works["shufflenet" if model == "mobilenet" else model]
        assert known_work.draw == pytest.approx(fitted.draw, abs=0.005)
        assert known_work.sensitivity == pytest.approx(fitted.sensitivity, abs=0.01)
    assert found.rms_error < 0.06
    assert found.worst_error < 0.18
