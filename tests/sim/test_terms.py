"""Nodes that are taken away, that cost money, and that lie behind slow links."""

from __future__ import annotations

import msgspec
import pytest
from tests.sim.replays import job

from bough.clusterfile import parse_cluster
from bough.core.cluster import Cluster
from bough.core.known_models import state_bytes
from bough.core.model import Node, NodeDown, NodeUp
from bough.core.terms import Terms
from bough.policies import find
from bough.sim import faults
from bough.sim.engine import Engine, simulate
from bough.sim.options import Failures, Options, Tools
from bough.sim.results import summarise
from bough.sim.trace import Trace

SPOT = Terms(tier="spot", price=1.0, evictions_per_hour=0.5)


def nodes(*terms: Terms, devices: int = 1) -> Cluster:
    return Cluster(
        nodes=tuple(
            Node(name=f"n{i}", kind="v100", devices=devices, terms=each)
            for i, each in enumerate(terms)
        )
    )


def test_terms_are_read_like_kinds() -> None:
    text = """
    kind: v100
    devices: 4
    price: 3
    nodes:
      - {name: own, count: 2}
      - {name: spot, tier: spot, price: 0.9, evicted_every: 8h}
      - {name: edge, tier: edge, link: 100Mbit/s, watts: 20}
    """
    found = [node.terms for node in parse_cluster(text, "c.yaml").nodes]
    assert found == [
        Terms(price=3.0), Terms(price=3.0),
        Terms(tier="spot", price=0.9, evictions_per_hour=0.125),
        Terms(tier="edge", price=3.0, link=12.5e6, watts=20.0),
    ]  # fmt: skip


def test_spot_nodes_come_and_go() -> None:
    """Away for half an hour about every two hours, for a day and more; the work is done anyway."""
    trace = Trace(name="t", jobs=(job("a", 0.0, 100_000.0),))
    record = simulate(trace, nodes(SPOT), find("fifo"), Options(seed=3, checkpoint_seconds=600.0))
    one = record.jobs[0]
    assert one.state == "done"
    assert 6 < one.restarts < 25  # 14 in the mean
    assert one.end == pytest.approx(
        100_000 + one.restarts * 1800.0 + one.lost_device_seconds, rel=1e-9
    )
    assert 0 < one.lost_device_seconds < one.restarts * 600.0
    # It pays for what it holds, which is not while the node is away.
    assert summarise(record)["cost"] == pytest.approx(one.device_seconds / 3600.0)


@pytest.mark.parametrize(("tier", "lost"), [("reserved", 0.0), ("spot", 100.0)])
def test_a_device_on_a_reserved_node_keeps_the_state(tier: str, lost: float) -> None:
    """The spot node is taken away after 100 s; with the other one reserved, nothing is lost."""
    other = msgspec.convert({"tier": tier}, Terms)
    trace = Trace(name="t", jobs=(job("a", 0.0, 500.0, 2),))
    engine = Engine(trace, nodes(other, SPOT), find("fifo"), Options(locality_seconds=0.0), Tools())
    world = engine.world
    world.heap = [entry for entry in world.heap if entry[1] != 3]
    node = engine.cluster.nodes[1]
    draws = type("Draws", (), {"exponential": staticmethod(lambda mean: 1e9)})()
    world.push(100.0, 3, (node, faults.EVICTED, draws))
    one = engine.run().jobs[0]
    assert one.restarts == 1
    assert one.lost_device_seconds == 2 * lost
    assert one.end == pytest.approx(100.0 + 1800.0 + 400.0 + lost)


def test_what_was_taken_away_and_breaks_besides_comes_back_once_mended() -> None:
    failures = Failures(node_mtbf_seconds=5000.0, node_repair_seconds=9000.0)
    trace = Trace(name="t", jobs=(job("a", 0.0, 50_000.0),))
    options = Options(seed=1, failures=failures, until=200_000.0)
    engine = Engine(trace, nodes(SPOT), find("fifo"), options, Tools())
    told: list[NodeDown | NodeUp] = []
    step = engine.step

    def watched(batch: list[object]) -> None:
        told.extend(event for event in batch if isinstance(event, NodeDown | NodeUp))
        step(batch)  # type: ignore[arg-type]

    engine.step = watched  # type: ignore[method-assign, assignment]
    engine.run()
    assert len(told) > 10
    assert any(isinstance(event, NodeUp) for event in told)


def test_state_travels_over_the_slowest_link() -> None:
    """A start behind a link takes as long as its state is on its way."""
    link = 1e7
    trace = Trace(name="t", jobs=(job("a", 0.0, 100.0),))
    cluster = nodes(Terms(tier="edge", link=link))
    one = simulate(trace, cluster, find("fifo")).jobs[0]
    assert one.end == pytest.approx(100.0 + state_bytes("") / link)
    near = simulate(trace, nodes(Terms()), find("fifo")).jobs[0]
    assert near.end == 100.0
