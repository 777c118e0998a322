"""A story for each reason: in every one, a job called `it` is where the story's name says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.core.driver import Driver, node

from bough.core import model as m
from bough.core.policy import Ints, Plan, Policy, Verdict, View

Story = Callable[[], Driver]
STORIES: dict[str, Story] = {}


def story(story_of: Story) -> Story:
    """In each of these a job called `it` is where the name of the story says."""
    STORIES[story_of.__name__.replace("_", "-").removeprefix("-")] = story_of
    return story_of


class Refuses(Policy, frozen=True):
    """Takes small jobs and lets them wait."""

    def admit(self, view: View, job: m.JobSpec) -> Verdict:
        return Verdict(
            accepted=job.sizes()[0] < 4,
            code="too-late",
            text="It cannot be done by its deadline.",
            facts={"late_seconds": 60.0},
            remedy="Ask for an hour more",
        )

    def plan(self, view: View) -> Plan:
        late = np.isfinite(view.jobs.deadline).tolist()
        reasons = {row: "deadline" if is_late else "policy" for row, is_late in enumerate(late)}
        return Plan(np.zeros(view.jobs.n, np.int64), reasons=reasons)


class Newest(Policy, frozen=True):
    """The newest jobs go first."""

    def plan(self, view: View) -> Plan:
        order: Ints = np.arange(view.jobs.n)[::-1]
        return Plan(view.jobs.wish.copy(), order=order)


def cluster(policy: str | Policy = "fifo", *devices: int, **fields: object) -> Driver:
    """Nodes of so many devices; by default one of four."""
    nodes = [node(f"n{i}", n) for i, n in enumerate(devices or (4,))]
    return Driver(policy, *nodes, **fields)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- the stories


@story
def busy() -> Driver:
    driver = cluster()
    driver.submit("other", 3)
    driver.settle()
    driver.submit("it", 2)
    return driver


@story
def busy_behind_another() -> Driver:
    driver = cluster()
    driver.submit("other", 4)
    driver.submit("earlier", 4)
    driver.settle()
    driver.submit("it", 1)
    return driver


@story
def parked() -> Driver:
    driver = cluster(Newest())
    driver.submit("it", 4)
    driver.settle()
    driver.tick(10.0)
    driver.submit("newer", 3)
    driver.settle()
    driver.tick(70.0)
    return driver


@story
def preempted() -> Driver:
    driver = cluster("fifo", 2, 2, 2)
    driver.submit("it", 2)
    for id in ("a", "b", "c", "d"):
        driver.submit(id, 1, preemptible=False)
    driver.settle()
    driver.exits("b")
    driver.exits("d")
    driver.submit("important", 2, priority=1)
    return driver


@story
def round() -> Driver:
    driver = Driver("fifo", node("n0"), round_seconds=60.0)
    driver.now = 10.0
    driver.submit("it", 2)
    return driver


@story
def lost() -> Driver:
    driver = cluster()
    driver.submit("it", 4)
    driver.settle()
    driver.submit("other", 4, priority=1)
    driver.exits("it", "lost")
    return driver


@story
def retry() -> Driver:
    driver = cluster()
    driver.submit("it", 4, retries=1)
    driver.settle()
    driver.submit("other", 4, priority=1)
    driver.exits("it", "failed", code=1)
    return driver


def torn(policy: str = "fifo") -> Driver:
    """Two nodes of two devices, half of each taken."""
    driver = cluster(policy, 2, 2)
    for id in ("w", "x", "y", "z"):
        driver.submit(id, 1)
    driver.settle()
    driver.exits("w")
    driver.exits("y")
    return driver


@story
def fragmentation() -> Driver:
    driver = torn()
    driver.submit("it", 2)
    return driver


@story
def topology() -> Driver:
    driver = torn()
    driver.submit("it", 2, topology=m.Wish(mode="require", level="node"))
    return driver


@story
def resources() -> Driver:
    driver = Driver("fifo", node("n0", 4, cpus=4.0))
    driver.submit("it", 2, cpus=3.0)
    return driver


@story
def resources_of_a_gang() -> Driver:
    driver = Driver("fifo", node("n0", 4, cpus=1.0))
    roles = (m.Role(name="ps", devices=0, cpus=2.0), m.Role(name="worker"))
    driver.submit_spec("it", m.JobSpec(name="gang", roles=roles))
    return driver


@story
def quota() -> Driver:
    driver = cluster(queues=[m.Queue(name="q", limit=1)])
    driver.submit("other", 1, queue="q")
    driver.settle()
    driver.submit("it", 1, queue="q")
    return driver


@story
def paused() -> Driver:
    driver = cluster(queues=[m.Queue(name="q", paused=True)])
    driver.submit("it", 1, queue="q")
    return driver


@story
def budget() -> Driver:
    driver = cluster(queues=[m.Queue(name="q", budget_device_hours=1.0)])
    driver.tick(10.0)
    driver.submit("it", 4, queue="q")
    driver.settle()
    driver.tick(910.0)
    driver.settle()
    return driver


@story
def dependency() -> Driver:
    driver = cluster()
    driver.submit("it", 1, after=(m.After(job="later"), m.After(job="earlier")))
    return driver


@story
def held() -> Driver:
    driver = cluster()
    driver.submit("it", 1)
    driver.settle()
    driver.hold("it")
    driver.settle()
    return driver


@story
def kind() -> Driver:
    driver = cluster()
    driver.submit("it", 1, kinds=("h100", "a100"))
    return driver


@story
def kind_in_an_empty_cluster() -> Driver:
    driver = Driver("fifo")
    driver.submit("it", 1)
    return driver


@story
def too_big() -> Driver:
    driver = cluster()
    driver.submit("it", 5)
    return driver


@story
def policy() -> Driver:
    driver = cluster(Refuses())
    driver.submit("it", 1)
    return driver


@story
def deadline() -> Driver:
    driver = cluster(Refuses())
    driver.now = 30.0
    driver.submit("it", 1, deadline=100.0)
    return driver


@story
def moving() -> Driver:
    driver = cluster("max_min")
    driver.submit("other", (1, 4))
    driver.settle()
    driver.submit("it", 1)
    return driver


@story
def running() -> Driver:
    driver = cluster("fifo", 2)
    driver.submit("it", 1)
    driver.settle()
    return driver


@story
def stopping() -> Driver:
    driver = running()
    driver.cancel("it")
    return driver


@story
def done() -> Driver:
    driver = running()
    driver.exits("it")
    return driver


@story
def failed() -> Driver:
    driver = running()
    driver.exits("it", "failed", code=3)
    return driver


@story
def cancelled() -> Driver:
    driver = stopping()
    driver.settle()
    return driver


@story
def timed_out() -> Driver:
    driver = cluster()
    driver.submit("it", 1, max_run_seconds=90.0)
    driver.settle()
    driver.tick(90.0)
    driver.settle()
    return driver


@story
def too_late() -> Driver:
    driver = cluster(Refuses())
    driver.submit("it", 4)
    return driver


@story
def unknown() -> Driver:
    return cluster()


@story
def busy_of_elastic() -> Driver:
    driver = cluster("max_min")
    driver.submit("other", 3)
    driver.settle()
    driver.submit("it", (2, 4))
    return driver


@story
def fragmentation_of_elastic() -> Driver:
    driver = torn("max_min")
    driver.submit("it", 2)
    return driver
