"""What if: the change is made as it is written, and the difference is that of two simulations."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.cluster import parse_short
from bough.core.model import Queue
from bough.errors import InputError
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.runs import Setting
from bough.sim.synthetic import Mix, generate
from bough.sim.whatif import Change, changed, differences, last


def setting(text: str = "2 racks of 2x8xa100", jobs: int = 80) -> Setting:
    mix = Mix(queues=("vision", "nlp"), users=4, best_effort=0.5)
    trace = generate(jobs, 32, load=1.2, seed=1, mix=mix)
    return Setting(trace=trace, cluster=parse_short(text), cluster_name=text)


def test_nodes_are_added_beside_the_others() -> None:
    found = changed(setting(), Change(add=("2x8xh100", "1 racks of 1x4xa100"))).cluster
    assert [node.kind for node in found.nodes].count("h100") == 2
    assert found.devices == 32 + 16 + 4
    assert len({node.name for node in found.nodes}) == 7
    assert {len(node.path) for node in found.nodes} == {1}
    found.topology()  # it is a tree


@pytest.mark.parametrize(("name", "left"), [("rack-2", 16), ("rack2", 16), ("RACK1", 16)])
def test_a_rack_is_taken_away(name: str, left: int) -> None:
    assert changed(setting(), Change(remove=(name,))).cluster.devices == left


def test_a_node_is_taken_away() -> None:
    first = setting().cluster.nodes[0].name
    found = changed(setting(), Change(remove=(first,))).cluster
    assert first not in {node.name for node in found.nodes}
    assert found.devices == 24


def test_a_queue_is_set() -> None:
    given = setting()
    given = msgspec.structs.replace(
        given, options=Options(queues=(Queue(name="vision", weight=2.0),))
    )
    sets = ("queue.vision.guarantee=16", "queue.nlp.half_life=2d", "queue.nlp.borrow=false")
    vision, nlp = changed(given, Change(sets=sets)).options.queues
    assert vision == Queue(name="vision", weight=2.0, guarantee=16)
    assert nlp == Queue(name="nlp", half_life_seconds=172_800.0, borrow=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change(add=("many",)), "--add"),
        (Change(remove=("rack-9",)), "no node or domain is called 'rack-9'"),
        (Change(remove=("rack-1", "rack-2")), "no node would be left"),
        (Change(sets=("queue.vision=3",)), "write queue.NAME.FIELD=VALUE"),
        (Change(sets=("queue.visoin.weight=3",)), "did you mean 'vision'?"),
        (Change(sets=("queue.vision.guarante=3",)), "did you mean 'guarantee'?"),
        (Change(sets=("queue.vision.guarantee=many",)), "--set queue.vision.guarantee"),
        (Change(sets=("policy=fifo",)), "cannot be set"),
    ],
)
def test_what_cannot_be_changed_is_told(change: Change, said: str) -> None:
    with pytest.raises(InputError) as caught:
        changed(setting(), change)
    assert said in str(caught.value)


def test_the_difference_is_that_of_two_simulations() -> None:
    given = setting()
    other = changed(given, Change(add=("2x8xa100",)))
    before, after = (simulate(s.trace, s.cluster, find("las"), s.options) for s in (given, other))
    (whole,) = differences(before, after, "")
    jct = [[job.end - job.submit for job in record.jobs] for record in (before, after)]
    assert whole.jobs == 80
    assert whole.mean_jct_seconds == pytest.approx(tuple(sum(each) / 80 for each in jct))
    queues = differences(before, after, "queue")
    assert {one.who for one in queues} == {"vision", "nlp"}
    assert sum(one.jobs for one in queues) == 80
    for i in (0, 1):
        hours = sum(one.device_hours[i] for one in queues)
        assert hours == pytest.approx(whole.device_hours[i])
    assert (whole.mean_jct_seconds[1] or 0.0) < (whole.mean_jct_seconds[0] or 0.0)


def test_nothing_changed_nothing_differs() -> None:
    given = setting(jobs=40)
    record = simulate(given.trace, given.cluster, find("fair"), given.options)
    for one in differences(record, record, "user"):
        assert one.mean_jct_seconds[0] == one.mean_jct_seconds[1]
        assert one.done[0] == one.done[1]


def test_the_last_week_has_a_week_before_it() -> None:
    trace = setting().trace
    span = trace.span_seconds()
    part, since = last(trace, span / 4)
    assert since == pytest.approx(trace.jobs[-1].submit - span / 4)
    assert part.jobs[0].submit >= since - span / 4
    assert part.jobs[0].submit < since
    assert last(trace, 10 * span) == (trace, trace.jobs[0].submit)
