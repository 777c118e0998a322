"""A scheduler taken over from its bytes goes on exactly as the one that wrote them would have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.driver import Commands, Driver, as_queues, job, linear, node

from bough.core import model as m
from bough.core.scheduler import Scheduler, Settings
from bough.core.speedup import Curve, SpeedBook
from bough.core.state import CLS
from bough.policies import find

QUEUES = (
    m.Queue(name="owner", guarantee=2, half_life_seconds=600.0),
    m.Queue(name="guest", limit=6, half_life_seconds=600.0),
    m.Queue(name="team", parent="guest", budget_device_hours=1.0),
)
NODES = [
    node("n0", 4, "new", cpus=16.0),
    node("n1", 4, "old", cpus=16.0),
    node("n2", 2, "old", cpus=8.0),
]
BOUNDS: dict[str, Any] = {"damp_seconds": 5.0, "locality_seconds": 20.0}


def book() -> SpeedBook:
    """Curves of one model on two kinds; another is not known at all."""
    found = SpeedBook("old")
    found.add("m", 0, "old", linear(1, 2, 4))
    found.add("m", 0, "new", Curve((1, 2, 4), (2.0, 3.0, 3.5)))
    return found


def taken_over(driver: Driver, rounds: float = 0.0) -> Scheduler:
    """A fresh scheduler with the state of the other."""
    bounds = Settings(**BOUNDS, round_seconds=rounds)
    fresh = Scheduler(driver.scheduler.policy, speedups=book(), settings=bounds)
    fresh.from_bytes(driver.scheduler.to_bytes())
    return fresh


def as_json(commands: Commands) -> bytes:
    return msgspec.json.encode(commands)


def known(scheduler: Scheduler) -> bytes:
    """All that is known, but for the numbers of classes, which are given as they come."""
    image = msgspec.msgpack.decode(scheduler.to_bytes())
    for row in image["jobs"]:
        row["ints"][CLS] = 0
    return msgspec.msgpack.encode(image)


def assert_equal(one: Scheduler, other: Scheduler) -> None:
    """Both know the same."""
    assert known(one) == known(other)
    assert one.wake_at == other.wake_at
    for id in one.state.jobs:
        assert one.why(id) == other.why(id)


# ------------------------------------------------------------------------------ one by one


def test_a_scheduler_that_knows_nothing_is_taken_over() -> None:
    driver = Driver("fifo")
    assert_equal(driver.scheduler, taken_over(driver))


def test_bytes_of_another_version_are_refused() -> None:
    image = msgspec.msgpack.decode(Driver("fifo").scheduler.to_bytes())
    image["version"] += 1
    fresh = Scheduler(find("fifo"))
    with pytest.raises(ValueError, match="snapshot of version"):
        fresh.from_bytes(msgspec.msgpack.encode(image))


def test_only_a_scheduler_that_has_handled_nothing_takes_over() -> None:
    driver = Driver("fifo", node("n0"))
    with pytest.raises(AssertionError, match="empty scheduler"):
        driver.scheduler.from_bytes(driver.scheduler.to_bytes())


def test_a_start_that_waits_for_devices_is_still_given() -> None:
    driver = Driver("srtf", node("n0"))
    driver.submit("a", 4, estimate_seconds=100.0)
    driver.settle()
    assert driver.submit("b", 4, estimate_seconds=1.0) == [m.Stop("a", 1)]
    driver.scheduler = taken_over(driver)
    start = m.Start("b", 1, (("n0", (0, 1, 2, 3)),))
    assert driver.does("a") == [start]


def test_what_was_learnt_of_a_job_goes_on_counting() -> None:
    driver = Driver("greedy", node("n0", 4, "old"), speedups=book())
    for id in ("a", "b"):
        driver.submit(id, (1, 2, 4), model="m")
    driver.settle()
    for second in range(1, 10):
        driver.now = float(second)
        driver.progress("a", rate=0.1, size=2)
    fresh = taken_over(driver)
    assert_equal(driver.scheduler, fresh)
    tick = m.Tick(at=20.0)
    assert as_json(fresh.handle([tick])) == as_json(driver.say(tick))
    assert_equal(driver.scheduler, fresh)


def test_moments_to_wake_at_are_kept() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4, max_run_seconds=60.0)
    driver.settle()
    fresh = taken_over(driver)
    assert fresh.wake_at == 60.0
    assert fresh.handle([m.Tick(at=60.0)]) == [m.Stop("a", 1, park=False)]


def test_budgets_and_past_use_are_kept() -> None:
    driver = Driver("max_min", *NODES, queues=QUEUES)
    driver.tick(10.0)
    driver.submit("a", (1, 2, 4), queue="team")
    driver.settle()
    driver.tick(100.0)
    fresh = taken_over(driver)
    assert_equal(driver.scheduler, fresh)
    team = fresh.state.queues.index("team")
    assert fresh.state.queues.budget_left(team) == pytest.approx(1.0 - 4 * 90 / 3600)


def test_how_jobs_ended_is_not_forgotten() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    driver.settle()
    driver.exits("a", "failed", code=3)
    fresh = taken_over(driver)
    assert fresh.why("a") == driver.why("a")
    assert fresh.handle([m.Submitted(at=1.0, id="a", spec=job())]) == []


# ------------------------------------------------------------------------------ all at once

#: Kind of job by number: what a stream of submissions is made of.
SPECS: list[dict[str, Any]] = [
    {"devices": 2, "estimate_seconds": 50.0},
    {"devices": (1, 2, 4), "model": "m", "queue": "owner"},
    {"devices": (1, 2, 4), "model": "m", "queue": "team", "kinds": ("old", "new")},
    {"devices": 4, "min_run_seconds": 15.0, "queue": "guest"},
    {"devices": (2, 4), "resize_in_place": False, "estimate_seconds": 30.0},
    {"devices": 1, "priority": 1, "max_run_seconds": 25.0, "retries": 1},
    {"devices": 1, "preemptible": False, "kinds": ("new",)},
    {"devices": 6, "kinds": ("old",), "topology": m.Wish(mode="spread")},
    {"devices": (1, 4), "cpus": 3.0},
    {"devices": (1, 2, 4), "service": "guaranteed", "deadline_after": 40.0, "model": "m"},
]
GANG = m.JobSpec(
    name="gang",
    roles=(
        m.Role(name="ps", devices=0, cpus=1.0),
        m.Role(name="worker", count=m.Range(min=1, max=3)),
    ),
)
WHYS = ("done", "failed", "lost")

Step = tuple[str, int]
KINDS_OF_STEP = (
    "submit", "submit", "gang", "work", "work", "work", "exit", "wait", "wait",
    "cancel", "hold", "release", "down", "up", "drain", "undrain", "ill", "well", "queue", "after",
)  # fmt: skip
steps = st.lists(
    st.tuples(st.sampled_from(KINDS_OF_STEP), st.integers(0, 30)), min_size=10, max_size=40
)


def take(driver: Driver, step: Step) -> None:
    """One thing happens; what is not possible does not."""
    kind, number = step
    jobs = sorted(driver.scheduler.state.jobs)
    id = jobs[number % len(jobs)] if jobs else ""
    runs, todo = sorted(driver.body.runs), sorted(driver.body.todo)
    name = NODES[number % len(NODES)].name
    count = len(jobs) + len(driver.scheduler.state.ended)
    if kind == "submit":
        spec = dict(SPECS[number % len(SPECS)])
        driver.submit(f"j{count}", spec.pop("devices"), **spec)
    elif kind == "after" and id:
        driver.submit(f"j{count}", 1, after=(m.After(job=id, on="any"),))
    elif kind == "gang":
        driver.submit_spec(f"j{count}", GANG)
    elif kind == "work" and todo:
        driver.does(todo[number % len(todo)])
    elif kind == "exit" and runs:
        driver.exits(runs[number % len(runs)], WHYS[number % 3])  # type: ignore[arg-type]
    elif kind == "wait":
        driver.tick(driver.now + number)
    elif kind in ("cancel", "hold", "release") and id:
        getattr(driver, kind)(id)
    elif kind in ("down", "drain", "undrain"):
        told = {"down": driver.down, "drain": driver.drain}
        told.get(kind, lambda n: driver.drain(n, False))(name)
    elif kind == "up":
        driver.up(NODES[number % len(NODES)])
    elif kind in ("ill", "well"):
        driver.health(name, number % 2, kind == "well")
    elif kind == "queue":
        driver.queue("guest", limit=number % 8, half_life_seconds=600.0, paused=number % 5 == 0)


class Recorded(Driver):
    """A driver that keeps what it was told and what it answered."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        self.told: list[tuple[tuple[m.Event, ...], bytes]] = []
        super().__init__(*args, **fields)

    def say(self, *events: m.Event) -> Commands:
        commands = super().say(*events)
        self.told.append((events, as_json(commands)))
        return commands


@given(
    before=steps,
    after=steps,
    policy=st.sampled_from(
        ["fifo", "srtf", "las", "max_min", "greedy", "fifo(skip=true)", "edf", "fair"]
    ),
    rounds=st.sampled_from([0.0, 0.0, 16.0]),
    with_queues=st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_the_bytes_of_any_moment_lead_to_the_same_commands(
    before: list[Step], after: list[Step], policy: str, rounds: float, with_queues: bool
) -> None:
    queues = QUEUES if with_queues else ()
    driver = Recorded(
        policy, *NODES, queues=queues, speedups=book(), **BOUNDS, round_seconds=rounds
    )
    for step in before:
        take(driver, step)
    fresh = taken_over(driver, rounds)
    assert known(fresh) == known(driver.scheduler)
    driver.told.clear()
    for step in after:
        take(driver, step)
    for events, commands in driver.told:
        assert as_json(fresh.handle(events)) == commands
    assert_equal(driver.scheduler, fresh)
    fresh.state.topology.check()


def test_queues_given_at_the_beginning_come_with_the_bytes() -> None:
    driver = Driver("fifo", node("n0"), queues=QUEUES)
    fresh = taken_over(driver)
    known, given = fresh.state.queues.state(), as_queues(*QUEUES).state()
    assert known.queues == given.queues
