"""Topology-aware: the paper's machine of two sockets with two devices each, by hand."""

from __future__ import annotations

import pytest
from tests.core.driver import Driver, node, on

from bough.core.ground import Ground, Site, take, ways
from bough.core.policy import Plan
from bough.core.terms import Terms
from bough.core.topology import Topology
from bough.core.utility import Costs, candidates, costs
from bough.policies.topology_aware import WEIGHTS, TopologyAware
from bough.testing.policies import PolicyContract
from bough.testing.views import Row, make_view

NEUTRAL = WEIGHTS["neutral"]


class TestTopologyAware(PolicyContract):
    policies = (TopologyAware(), TopologyAware(weights="spread", least_utility=0.0))
    at_wish = True
    passes_over = True


def machine(*held: tuple[int, int], nodes: int = 1) -> Ground:
    """Nodes of two sockets of two devices; on the first, rows hold what is told."""
    ground = Ground([Site(i, 4, 0b1111, Terms()) for i in range(nodes)], inner=(2,))
    for row, mask in held:
        take(ground.sites[0], row, mask)
    return ground


def cost_of(ground: Ground, mask: int, loss: float = 0.0) -> Costs:
    return costs(ground, ((ground.sites[0], mask),), loss)


def test_distances_within_and_across_sockets() -> None:
    """Two devices of one socket are 1 apart, of two 20: the best and the worst there is."""
    assert cost_of(machine(), 0b0011).communication == 0.0
    assert cost_of(machine(), 0b0101).communication == 1.0
    # Three take two sockets at best: 1 + 20 + 20 of at most 60, as the paper says.
    assert cost_of(machine(), 0b0111).communication == 0.0
    # Where there is another node, two sockets are not the worst.
    assert cost_of(machine(nodes=2), 0b0101).communication == pytest.approx(19 / 39)


def test_neighbours_on_a_socket_disturb_each_other() -> None:
    """Beside one who has the other half of its socket, either goes at 1 - 0.4 / 2 of its speed."""
    assert cost_of(machine((0, 0b0010)), 0b0001, 0.4).interference == pytest.approx(0.2)
    assert cost_of(machine((0, 0b0010)), 0b0100, 0.4).interference == 0.0


def test_fragments() -> None:
    """One device leaves half of its socket free, two of two sockets half of both, a pair none."""
    assert cost_of(machine(), 0b0001).fragmentation == 0.5
    assert cost_of(machine(), 0b0101).fragmentation == 0.5
    assert cost_of(machine(), 0b0011).fragmentation == 0.0


def test_the_scale_of_utilities() -> None:
    """The best has 1, with 1 / (3 x 0.01 ^ (1/3)) before scaling; the worst sockets far less."""
    assert Costs(0.0, 0.0, 0.0).utility(NEUTRAL) == pytest.approx(1.0)
    assert Costs(0.0, 0.0, 1.0).for_job(NEUTRAL) == pytest.approx(1.0)
    worst = 2 * 0.01**0.5 / (1.0 + 0.01**0.5)
    assert Costs(1.0, 0.0, 0.0).for_job(NEUTRAL) == pytest.approx(worst)


def test_all_ways_within_a_node() -> None:
    assert len(ways(Site(0, 4, 0b1111, Terms()), 2, 2)) == 6
    assert ways(Site(0, 4, 0b1011, Terms()), 4, 2) == []
    wide = ways(Site(0, 64, (1 << 64) - 1, Terms()), 8, 4)
    assert wide == [0xFF]
    # More than a node has: whole nodes, the roomiest first.
    found = list(candidates(machine((0, 0b0001), nodes=3), 6))
    assert [[(s.index, m.bit_count()) for s, m in chosen] for chosen in found] == [
        [(1, 4), (2, 2)]
    ]  # fmt: skip


class TestPlans:
    """Through the scheduler, on one machine of two sockets."""

    def driver(self, **knobs: float) -> Driver:
        tree = Topology(("node",), inner={"socket": 2})
        return Driver(TopologyAware(**knobs), node("n", 4), topology=tree)  # type: ignore[arg-type]

    def test_one_goes_beside_nobody_and_two_together(self) -> None:
        driver = self.driver()
        assert driver.submit("a", 1)[0].place == on("n", 0)  # type: ignore[union-attr]
        assert driver.submit("b", 2)[0].place == on("n", 2, 3)  # type: ignore[union-attr]
        assert driver.submit("c", 1)[0].place == on("n", 1)  # type: ignore[union-attr]

    def test_who_would_be_torn_apart_waits(self) -> None:
        """One of each socket is out of order; then one of them comes back."""
        driver = self.driver(least_utility=0.4, loss=0.0)
        driver.health("n", 1, False)
        driver.health("n", 3, False)
        assert driver.submit("a", 2) == []
        assert driver.why("a").code == "policy"
        found = driver.health("n", 1, True)
        assert found[0].place == on("n", 0, 1)  # type: ignore[union-attr]

    def test_without_a_least_it_takes_what_there_is(self) -> None:
        tree = Topology(("node",), inner={"socket": 2})
        driver = Driver(TopologyAware(least_utility=0.0), node("n", 4), topology=tree)
        driver.health("n", 1, False)
        driver.health("n", 3, False)
        assert driver.submit("a", 2)[0].place == on("n", 0, 2)  # type: ignore[union-attr]


def test_a_plan_names_places_and_who_is_postponed() -> None:
    from dataclasses import replace

    view = make_view(2, [Row(sizes=(2,)), Row()])
    ground = machine((-1, 0b1010))
    plan = TopologyAware().plan(replace(view, ground=ground))
    assert isinstance(plan, Plan)
    assert plan.sizes.tolist() == [0, 1]
    assert plan.reasons == {0: "policy"}
    assert plan.places == {1: ((0, 0b0001),)}
