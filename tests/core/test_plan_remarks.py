"""What a plan may say besides sizes, and what the core makes of it: ranks, levels, no promise."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from bough.core import model as m
from bough.core.policy import Ints, Plan, Policy, Verdict, View
from bough.core.scheduler import Scheduler, Settings
from bough.core.topology import Topology

NODES = tuple(m.Node(name=f"n{i}", kind="v100", devices=4) for i in range(2))


class Says(Policy, frozen=True):
    """Everybody has what they wish; the newest rank highest, and all that is told it to say."""

    rank: tuple[int, ...] = ()
    within: tuple[int, ...] = ()
    promised: bool = True

    def admit(self, view: View, job: m.JobSpec) -> Verdict:
        return Verdict(accepted=True, promised=self.promised)

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        order: Ints = np.arange(jobs.n)[::-1]

        def column(values: tuple[int, ...]) -> Ints | None:
            return np.array(values[: jobs.n], np.int64) if values else None

        return Plan(
            jobs.wish, order=order, rank=column(self.rank), within=column(self.within)
        )  # fmt: skip


def started(policy: Policy, *sizes: int, **knobs: Any) -> Scheduler:
    """Jobs of these sizes one after another on two nodes of four, each answered at once."""
    scheduler = Scheduler(policy, Topology(), settings=Settings(**knobs))
    scheduler.handle([m.NodeUp(at=0.0, node=node) for node in NODES])
    for number, size in enumerate(sizes):
        at, devices = float(number), m.Range(min=size, max=size)
        spec = m.JobSpec(name=f"j{number}", devices=devices, service="guaranteed", deadline=1e6)
        events: list[m.Event] = [m.Submitted(at=at, id=f"j{number}", spec=spec)]
        while events:
            told = scheduler.handle(events)
            events = [
                m.Started(at=at, id=one.id, epoch=one.epoch)
                if isinstance(one, m.Start)
                else m.Exited(at=at, id=one.id, epoch=one.epoch, why="stopped")
                for one in told
                if isinstance(one, m.Start | m.Stop)
            ]
    return scheduler


def sizes(scheduler: Scheduler) -> list[int]:
    return scheduler.state.table.size.tolist()


class TestRanks:
    @pytest.mark.parametrize(
        ("rank", "gets"), [((), 0), ((1, 1, 1), 0), ((0, 0, 1), 2), ((1, 0, 1), 2), ((2, 2, 1), 0)]
    )
    def test_a_higher_rank_takes_the_place_it_needs(self, rank: tuple[int, ...], gets: int) -> None:
        """One device is idle on each node, and 2 must not be scattered."""
        scheduler = started(Says(rank=rank), 3, 3, 2, locality_seconds=1e9)
        assert scheduler.state.table.size[2] == gets
        parked = [size for size in sizes(scheduler)[:2] if size == 0]
        assert len(parked) == (gets > 0)
        if rank == (1, 0, 1):
            assert sizes(scheduler) == [3, 0, 2]

    def test_ranks_of_other_rows_are_refused(self) -> None:
        class Short(Says, frozen=True):
            def plan(self, view: View) -> Plan:
                return Plan(view.jobs.wish, rank=np.zeros(7, np.int64))

        assert "7 ranks for 1 jobs" in started(Short(), 2).state.refused


class TestLevels:
    @pytest.mark.parametrize(("level", "fits"), [(-1, True), (0, False), (1, True)])
    def test_a_place_is_kept_within_a_level(self, level: int, fits: bool) -> None:
        """One device is idle on each node; two within one node are not there."""
        scheduler = started(Says(within=(-1, -1, level)), 3, 3, 2, locality_seconds=0.0)
        assert sizes(scheduler) == [3, 3, 2 if fits else 0]

    def test_levels_that_are_not_there_are_refused(self) -> None:
        assert "a level that is not among the 2" in started(Says(within=(2,)), 1).state.refused
        assert "levels for 2 jobs" in started(Says(within=(0,)), 1, 1).state.refused

    def test_what_the_user_requires_stays(self) -> None:
        scheduler = started(Says(within=(1,)), 1)
        job = scheduler.state.table.items[0]
        wish = m.Wish(mode="require", level="node")
        job.ask(msgspec.structs.replace(job.spec, topology=wish))
        job.stay_within("cluster")
        assert job.where() == wish


class TestPromises:
    def test_taken_on_without_the_promise_it_is_best_effort(self) -> None:
        for promised in (True, False):
            scheduler = started(Says(promised=promised), 1)
            assert scheduler.state.table.guaranteed.tolist() == [int(promised)]
            wanted = "guaranteed" if promised else "best-effort"
            assert scheduler.state.jobs["j0"].spec.service == wanted

    def test_it_stays_so_in_a_snapshot(self) -> None:
        scheduler = started(Says(promised=False), 1)
        other = Scheduler(Says(promised=False), Topology())
        other.from_bytes(scheduler.to_bytes())
        assert other.state.table.guaranteed.tolist() == [0]
