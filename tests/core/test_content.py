"""Not asking while all are content changes nothing: the same commands as when always asked."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.driver import Driver, node
from tests.core.test_snapshot import Recorded, book, steps, take

from bough.core.scheduler import Scheduler, Settings
from bough.policies import builtin, find

CONTENT = [name for name in builtin() if find(name).content_with]


def test_simple_policies_say_with_what_jobs_are_content() -> None:
    assert set(CONTENT) >= {
        "fifo", "backfill", "srtf", "srsf", "las", "max_min", "greedy", "fair",
    }  # fmt: skip


@given(story=steps, policy=st.sampled_from([*CONTENT, "fifo(skip=true)"]), big=st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_commands_are_those_of_a_scheduler_that_always_asks(
    story: list[tuple[str, int]], policy: str, big: bool
) -> None:
    nodes = [node(f"n{i}", 16 if big else 4) for i in range(3)]
    driver = Recorded(policy, *nodes, speedups=book())
    twin = Scheduler(find(policy), speedups=book(), settings=Settings(always_asks=True))
    for step in story:
        take(driver, step)
    for events, commands in driver.told:
        assert msgspec.json.encode(twin.handle(events)) == commands


@pytest.mark.parametrize("policy", CONTENT)
def test_who_comes_while_all_are_content_starts_at_once(policy: str) -> None:
    driver = Driver(policy, node("n0", 8))
    driver.submit("a", 2)
    driver.submit("b", 2)
    assert driver.scheduler.state.content
    [started] = driver.submit("c", 2)
    assert started.id == "c"
    driver.submit("d", 4)  # one too many
    assert not driver.scheduler.state.content


def test_what_is_promised_is_no_more_than_what_a_job_is_content_with() -> None:
    driver = Driver("fair", node("n0", 8), speedups=book())
    guaranteed = {"service": "guaranteed", "model": "m", "estimate_seconds": 100.0}
    driver.submit("late", (1, 2, 4), deadline=1.0, **guaranteed)
    driver.submit("early", (1, 2, 4), deadline=1e6, **guaranteed)
    driver.settle()
    assert driver.scheduler.state.content
    assert driver.runs() == {"late": 4, "early": 4}
    driver.submit("more", 2)
    driver.settle()
    assert not driver.scheduler.state.content
    assert driver.runs() == {"late": 4, "early": 2, "more": 2}


def test_ends_need_no_plan_while_all_are_content() -> None:
    driver = Driver("max_min", node("n0", 8), node("n1", 8))
    driver.submit("a", (1, 2, 4))
    driver.submit("b", (1, 2, 4))
    driver.settle()
    plans = []
    decide = driver.scheduler._decide
    driver.scheduler._decide = lambda: plans.append(decide())  # type: ignore[method-assign]
    driver.exits("a")
    assert plans == []
    assert driver.runs() == {"b": 4}


def test_a_newcomer_that_is_too_much_is_shared_with_at_once() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4))
    driver.settle()
    assert driver.scheduler.state.content
    assert [c.id for c in driver.submit("b", 2)] == ["a"]
    driver.settle()
    assert driver.runs() == {"a": 2, "b": 2}
    assert driver.why("b").text.startswith("It runs on 2 devices of n0")
