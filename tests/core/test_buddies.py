"""What fits by number finds a place if sizes are powers of two, as smaller jobs move aside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.driver import Driver, node

from bough.core.policy import Ints, Policy, View
from bough.core.topology import Topology

SIZES = (1, 2, 4, 8, 16)
#: What the policies below give each job, by its number; tests put it here.
WISHES: dict[int, int] = {}


class Moves(Policy, frozen=True):
    """Gives every job what it is to have, and moves others for that."""

    moves = True

    def plan(self, view: View) -> Ints:
        return np.array([WISHES.get(serial, 0) for serial in view.jobs.serial.tolist()], np.int64)


class Stays(Moves, frozen=True):
    """The same, and moves nobody."""

    moves = False


def story(policy: Policy, nodes: int, width: int, racks: int = 0) -> Driver:
    """A cluster, in racks of so many nodes if there are any."""
    WISHES.clear()
    levels = ("rack", "node") if racks else ("node",)
    made = [node(f"n{i}", width, path=(f"r{i // racks}",) if racks else ()) for i in range(nodes)]
    return Driver(policy, *made, topology=Topology(levels))


def give(driver: Driver, sizes: dict[str, int]) -> None:
    """Let these jobs, new or old, have these sizes from now on."""
    jobs = driver.scheduler.state.jobs
    for id in sorted(sizes.keys() - jobs.keys()):
        driver.submit(id, SIZES)
    WISHES.update({jobs[id].serial: size for id, size in sizes.items()})
    driver.scheduler.state.replan = True
    driver.tick(driver.now + 1.0)
    driver.settle()


@pytest.mark.parametrize(("policy", "runs"), [(Moves(), 4), (Stays(), 2)])
def test_a_small_job_moves_for_a_large_one(policy: Policy, runs: int) -> None:
    """Two nodes are half full: four devices are together once one of the small jobs has moved."""
    driver = story(policy, 2, 4)
    give(driver, {"a": 2, "b": 2, "c": 2, "d": 2})
    place = {id: job.place for id, job in driver.scheduler.state.jobs.items()}
    away = next(id for id in ("b", "c", "d") if place[id][0][0] == place["a"][0][0])
    other = next(id for id in ("b", "c", "d") if id != away)
    give(driver, {away: 0, other: 0})
    give(driver, {"large": 4})
    assert driver.runs()["large"] == runs
    assert sum(driver.runs().values()) == 4 + runs


@st.composite
def courses(draw: st.DrawFn) -> tuple[int, int, int, list[dict[str, int]]]:
    """Nodes, their width, nodes of a rack, and what up to six jobs have, turn by turn."""
    width = draw(st.sampled_from([1, 2, 4, 8]))
    nodes = draw(st.sampled_from([1, 2, 4, 8]))
    racks = draw(st.sampled_from([0, max(nodes // 2, 1)]))
    turns = []
    for _ in range(draw(st.integers(1, 5))):
        left, turn = nodes * width, {}
        for id in draw(st.permutations("abcdef")):
            turn[id] = draw(st.sampled_from([0, *(size for size in SIZES if size <= left)]))
            left -= turn[id]
        turns.append(turn)
    return nodes, width, racks, turns


@settings(max_examples=25, deadline=None)
@given(courses())
def test_what_fits_by_number_finds_a_place(
    course: tuple[int, int, int, list[dict[str, int]]],
) -> None:
    """Every job has just what it was given, on one node or on whole ones."""
    nodes, width, racks, turns = course
    driver = story(Moves(), nodes, width, racks)
    topology = driver.scheduler.state.topology
    for turn in turns:
        give(driver, turn)
        assert driver.runs() == {id: size for id, size in sorted(turn.items()) if size}
        for job in driver.scheduler.state.jobs.values():
            if job.place:
                size = sum(mask.bit_count() for _, mask in job.place)
                assert len(job.place) == max(size // width, 1)
        topology.check()


def test_who_may_not_be_stopped_is_not_moved() -> None:
    driver = story(Moves(), 2, 4)
    for id in "abcd":
        driver.submit(id, SIZES, preemptible=False)
    give(driver, dict.fromkeys("abcd", 2))
    place = {id: job.place for id, job in driver.scheduler.state.jobs.items()}
    away = next(id for id in "bcd" if place[id][0][0] == place["a"][0][0])
    driver.exits(away)
    driver.exits(next(id for id in "bcd" if id != away))
    give(driver, {"large": 4})
    assert driver.runs()["large"] == 2
