"""EdgeFlow: what goes to the edge, what comes back, and what is promised because of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.driver import Driver, job, node
from tests.sim.replays import job as trace_job

from bough.core.cluster import Cluster
from bough.core.known_models import state_bytes
from bough.core.model import Ended, Node, Start
from bough.core.speedup import Curve, SpeedBook
from bough.core.terms import Terms
from bough.policies import find
from bough.policies.edgeflow import EdgeFlow
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.results import summarise
from bough.sim.trace import Trace
from bough.testing.policies import PolicyContract

#: State is on its way for a hundred seconds.
LINK = state_bytes("net") / 100.0
EDGE = Terms(tier="edge", link=LINK)
LINEAR = Curve((1, 2, 4), (1.0, 2.0, 4.0))


class TestEdgeFlow(PolicyContract):
    policies = (EdgeFlow(), EdgeFlow(slot_seconds=60.0, admission=False))
    drifts = True


def driver(cloud: int = 2, edge: int = 1, **knobs: Any) -> Driver:
    """A cloud of a few devices, and devices at the edge that are half as fast."""
    book = SpeedBook("gpu")
    book.add("net", 0, "gpu", LINEAR)
    book.add("net", 0, "jetson", Curve((1,), (0.5,)))
    nodes = [node("cloud", cloud)]
    nodes += [node(f"edge{i}", 1, "jetson", terms=EDGE) for i in range(edge)]
    return Driver(EdgeFlow(**knobs), *nodes, speedups=book)


def submit(body: Driver, id: str, seconds: float, deadline: float, **fields: Any) -> list[Any]:
    """A guaranteed job of so many seconds on one device of the cloud."""
    spec = job(
        (1, 2), model="net", estimate_seconds=seconds, estimate_devices=1, deadline=deadline,
        service="guaranteed", **fields,
    )  # fmt: skip
    return body.submit_spec(id, spec)


def kind_of(found: list[Any]) -> str:
    assert isinstance(found[0], Start)
    return found[0].place[0][0].rstrip("0123456789")


def test_the_edge_takes_what_it_can_end_in_time() -> None:
    """1000 s of work are 2000 at the edge, and 100 on the way: in time for 2100, not for 2099."""
    for deadline, where in ((2100.0, "edge"), (2099.0, "cloud")):
        assert kind_of(submit(driver(), "a", 1000.0, deadline)) == where


def test_who_may_not_leave_the_cloud_stays_there() -> None:
    assert kind_of(submit(driver(), "a", 1000.0, 9000.0, kinds=("gpu",))) == "cloud"


def test_what_the_cloud_would_refuse_is_tried_at_the_edge() -> None:
    """Two jobs fill the cloud until their deadlines; a third would be late there."""
    for edge, accepted in ((1, True), (0, False)):
        body = driver(edge=edge)
        for name in ("a", "b"):
            submit(body, name, 1000.0, 1000.0)
            body.settle()
        assert body.runs() == {"a": 1, "b": 1}
        found = submit(body, "c", 400.0, 1000.0)
        if accepted:
            assert kind_of(found) == "edge"
        else:
            assert isinstance(found[0], Ended)
            assert found[0].state == "rejected"


def test_there_are_no_more_than_there_are() -> None:
    """Of three that the edge could do, one goes there; the cloud has the others."""
    body = driver()
    for name in ("a", "b", "c"):
        submit(body, name, 1000.0, 9000.0)
    body.settle()
    state = body.scheduler.state
    kinds = [state.topology.kinds[int(state.table.pool[row])] for row in range(3)]
    assert sorted(kinds) == ["gpu", "gpu", "jetson"]
    assert body.runs() == {"a": 1, "b": 1, "c": 1}


def test_it_goes_on_where_it_is() -> None:
    """Whatever comes and goes in the cloud, a job at the edge ends there if it is in time."""
    body = driver()
    submit(body, "a", 1000.0, 9000.0)
    body.settle()
    submit(body, "b", 1000.0, 9000.0)
    body.settle()
    body.tick(700.0)
    body.settle()
    state = body.scheduler.state
    assert state.topology.kinds[int(state.table.pool[0])] == "jetson"


def test_who_would_be_late_at_the_edge_comes_back() -> None:
    """It turns out slower there than believed; in the cloud it can still be in time."""
    body = driver()
    submit(body, "a", 1000.0, 2500.0)
    body.settle()
    body.tick(1000.0)
    body.progress("a", left=900.0)
    commands = body.tick(1001.0) + body.settle()
    starts = [c for c in commands if isinstance(c, Start)]
    assert [start.place[0][0] for start in starts] == ["cloud"]


def cluster(edge: int) -> Cluster:
    nodes = [Node(name="cloud", kind="v100", devices=4)]
    nodes += [
        Node(name=f"edge{i}", kind="t4", devices=1, terms=Terms(tier="edge", link=1e7))
        for i in range(edge)
    ]
    return Cluster(nodes=tuple(nodes))


@pytest.mark.parametrize("seed", [1, 2])
def test_more_deadlines_are_kept_with_the_edge(seed: int) -> None:
    """Elastic jobs at more than the cloud can do; all that is admitted is kept."""
    jobs = tuple(
        trace_job(
            str(i), 150.0 * i, 1200.0 + 300 * ((i * seed) % 4), 1, most=4,
            deadline=150.0 * i + 6000.0 + 900.0 * ((i + seed) % 5), service="guaranteed",
        )
        for i in range(60)
    )  # fmt: skip
    trace = Trace(name="t", jobs=jobs)

    def row(policy: str, edge: int) -> dict[str, Any]:
        return summarise(simulate(trace, cluster(edge), find(policy), Options(seed=seed)))

    alone, both = row("elasticflow", 0), row("edgeflow", 6)
    assert both["deadline_ratio_submitted"] > alone["deadline_ratio_submitted"] + 0.1
    assert row("edgeflow", 0)["deadline_ratio_submitted"] == pytest.approx(
        alone["deadline_ratio_submitted"], abs=0.05
    )
    assert both["deadline_ratio_admitted"] > 0.99
