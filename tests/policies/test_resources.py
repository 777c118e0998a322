"""What jobs take besides devices, and what they weigh, through the scheduler that decides."""

from __future__ import annotations

import pytest

from bough.core import model as m
from bough.core.model import JobSpec, Range
from bough.core.scheduler import Scheduler
from bough.policies import find

GIB = 1 << 30
NODE = m.Node(name="n", kind="a100", devices=12, cpus=48, memory=96 * GIB)


def started(policy: str, **specs: JobSpec) -> dict[str, int]:
    """Devices that each job starts on, of all that come at once to one node."""
    events: list[m.Event] = [m.NodeUp(at=0.0, node=NODE)]
    events += [m.Submitted(at=0.0, id=id, spec=spec) for id, spec in specs.items()]
    commands = Scheduler(find(policy)).handle(events)
    return {c.id: len(c.place[0][1]) for c in commands if isinstance(c, m.Start)}


@pytest.mark.parametrize("much", [{"cpus": 16.0}, {"memory": 32 * GIB}], ids=["cpus", "memory"])
def test_drf_evens_out_what_each_user_takes_most_of(much: dict[str, float]) -> None:
    few = {name: value / 4 for name, value in much.items()}
    jobs = {f"a{i}": JobSpec(name="a", user="ann", **much) for i in range(3)}  # type: ignore[arg-type]
    jobs |= {f"b{i}": JobSpec(name="b", user="bob", **few) for i in range(9)}  # type: ignore[arg-type]
    # Each of Ann's jobs takes a third of all, each of Bob's a twelfth: four of his to one of hers.
    assert sorted(started("drf", **jobs)) == ["a0", "a1", "b0", "b1", "b2", "b3"]
    assert sorted(started("fifo", **jobs)) == ["a0", "a1", "a2"]


def test_drf_counts_devices_where_nodes_have_cpus_without_end() -> None:
    free = m.NodeUp(at=0.0, node=m.Node(name="n", kind="a100", devices=4))
    specs = [JobSpec(name="a", user="ann", cpus=99.0)] * 4 + [JobSpec(name="b", user="bob")] * 4
    jobs = [m.Submitted(at=0.0, id=str(i), spec=spec) for i, spec in enumerate(specs)]
    commands = Scheduler(find("drf")).handle([free, *jobs])
    assert sorted(c.id for c in commands) == ["0", "1", "4", "5"]  # two devices for each


def test_drf_counts_the_cpus_of_a_whole_gang() -> None:
    servers = m.Role(name="ps", count=Range(min=2, max=2), devices=0, cpus=12.0)
    gang = JobSpec(name="g", user="ann", roles=(servers, m.Role(name="w", count=Range())))
    small = {f"b{i}": JobSpec(name="b", user="bob", cpus=4.0) for i in range(6)}
    found = started("drf", g=gang, one=JobSpec(name="a", user="ann", cpus=4.0), **small)
    assert sorted(found) == ["b0", "b1", "b2", "b3", "b4", "b5", "g"]


def test_queues_are_evened_out_by_what_their_jobs_take_most_of_if_they_say_so() -> None:
    """The example of Ghodsi et al. (NSDI '11), with more devices than anybody can use."""
    node = m.NodeUp(at=0.0, node=m.Node(name="n", kind="a100", devices=90, cpus=9, memory=18 * GIB))
    asks = {"a": {"cpus": 1.0, "memory": 4 * GIB}, "b": {"cpus": 3.0, "memory": GIB}}
    jobs = [
        m.Submitted(at=0.0, id=f"{queue}{i}", spec=JobSpec(name="j", queue=queue, **much))  # type: ignore[arg-type]
        for queue, much in asks.items()
        for i in range(9)
    ]
    for dominant, expected in ((True, ["a0", "a1", "a2", "b0", "b1"]), (False, ["a0", "a1"])):
        set_ = [m.QueueSet(at=0.0, queue=m.Queue(name=q, dominant=dominant)) for q in asks]
        commands = Scheduler(find("fifo")).handle([node, *set_, *jobs])
        started = sorted(c.id for c in commands if isinstance(c, m.Start))
        assert started[: len(expected)] == expected
        assert dominant == (started == expected)


@pytest.mark.parametrize("policy", ["max_min", "greedy"])
def test_weights_of_jobs_count_if_wanted(policy: str) -> None:
    steps = Range(min=1, max=8, steps=tuple(range(1, 9)))
    jobs = {f"j{w}": JobSpec(name="j", devices=steps, weight=float(w)) for w in (1, 2)}
    assert started(policy, **jobs) == {"j1": 6, "j2": 6}
    assert started(f"{policy}:weighted=true", **jobs) == {"j1": 4, "j2": 8}


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_is_a_positive_number(weight: float) -> None:
    with pytest.raises(ValueError, match="weight must be more than 0"):
        JobSpec(name="j", weight=weight)
