"""One brain, three bodies: the same events give the same commands, whoever delivers them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec
import pytest
from tests.recorder import Recorded, recorded

from bough.core.cluster import parse_short
from bough.core.model import INFINITY, AnyEvent, Command, Event, Queue
from bough.core.scheduler import Scheduler
from bough.policies import builtin
from bough.sim.engine import encode_commands
from bough.sim.options import Failures, Options
from bough.sim.synthetic import generate
from bough.sim.trace import Trace, TraceJob

FAILURES = Failures(
    node_mtbf_seconds=30_000.0,
    node_repair_seconds=2_000.0,
    device_mtbf_seconds=60_000.0,
    device_repair_seconds=5_000.0,
    job_mtbf_seconds=80_000.0,
)
QUEUES = (
    Queue(name="lab", guarantee=8, half_life_seconds=20_000.0),
    Queue(name="even", parent="lab", weight=2.0),
    Queue(name="odd", parent="lab", limit=10, budget_device_hours=60.0),
)
WORLDS = {
    "costs and failures": Options(
        failures=FAILURES, start_seconds=30.0, resize_seconds=10.0, park_seconds=5.0, seed=1
    ),
    "queues and errors": Options(queues=QUEUES, speed_error=0.3, damp_seconds=120.0, seed=2),
    "rounds and queues": Options(queues=QUEUES, round_seconds=60.0, failures=FAILURES, seed=3),
}
SNAPSHOTS = 7
CLUSTERS = ("2 racks of 2x4xv100", "2x4xv100 + 2x4xa100")


def trace_with_everything() -> Trace:
    """Jobs with queues, priorities, retries, limits, dependencies and all that may bind them."""
    trace = generate(50, 16, 1.2, 0.5, 3)
    return msgspec.structs.replace(trace, jobs=tuple(map(varied, trace.jobs, range(50))))


def varied(job: TraceJob, number: int) -> TraceJob:
    """The job with something special about it, by its number."""
    spec = msgspec.structs.replace(
        job.spec,
        queue="even" if number % 2 else "odd",
        priority=int(number % 7 == 0),
        retries=number % 3,
        preemptible=number % 5 > 0,
        resize_in_place=number % 4 > 0,
        min_run_seconds=300.0 * (number % 3 == 1),
        max_run_seconds=20_000.0 if number % 11 == 0 else INFINITY,
        estimate_seconds=None if number % 6 == 0 else job.spec.estimate_seconds,
    )
    return msgspec.structs.replace(job, spec=spec)


@cache
def simulated(world: str, policy: str) -> Recorded:
    """The scheduler of such a simulation, with all that was said."""
    cluster = parse_short(CLUSTERS[sum(map(ord, policy)) % 2])
    record, brain = recorded(trace_with_everything(), cluster, builtin()[policy](), WORLDS[world])
    assert sum(job.state == "done" for job in record.jobs) > 10
    assert len(brain.steps) > 100
    return brain


def assert_same(brain: Scheduler, steps: Sequence[tuple[list[Event], list[Command]]]) -> None:
    """The brain says, byte for byte, what was said then."""
    for number, (told, said) in enumerate(steps):
        assert encode_commands(brain.handle(told)) == encode_commands(said), f"step {number}"


each = pytest.mark.parametrize(
    ("world", "policy"), [(world, policy) for world in WORLDS for policy in sorted(builtin())]
)


@each
def test_told_the_same_again_it_commands_the_same(world: str, policy: str) -> None:
    brain = simulated(world, policy)
    assert_same(brain.fresh(), brain.steps)


@each
def test_from_a_snapshot_it_goes_on_with_the_same_commands(world: str, policy: str) -> None:
    """Each takes over from the one before it: what one snapshot loses is missed by all after it."""
    brain = simulated(world, policy)
    present, done = brain.fresh(), 0
    for part in range(1, SNAPSHOTS + 2):
        until = len(brain.steps) * part // (SNAPSHOTS + 1)
        assert_same(present, brain.steps[done:until])
        done, next_one = until, brain.fresh()
        next_one.from_bytes(present.to_bytes())
        assert next_one.wake_at == present.wake_at
        assert next_one.to_bytes() == present.to_bytes()
        present = next_one


@pytest.mark.parametrize("world", WORLDS)
def test_events_and_commands_survive_being_written_down(world: str) -> None:
    brain = simulated(world, "max_min")
    read = msgspec.json.Decoder(list[AnyEvent]).decode
    written: list[tuple[list[Event], list[Command]]] = [
        ([*read(msgspec.json.encode(told))], said) for told, said in brain.steps
    ]
    assert [told for told, _ in written] == [told for told, _ in brain.steps]
    assert_same(brain.fresh(), written)
