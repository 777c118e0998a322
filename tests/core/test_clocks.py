"""Clocks of a plan: what bodies are told, what is believed of progress, and what survives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from tests.core.driver import job, node

from bough.core import model as m
from bough.core.energy import pace, work_of
from bough.core.policy import Plan, Policy, View
from bough.core.scheduler import Scheduler, Settings
from bough.core.supply import Budget, Supply
from bough.policies import find


class Clocked(Policy, frozen=True):
    """Everybody at the least, at this clock; at full clock from the 100th second on."""

    clock: float = 0.5
    count: int = 0

    def plan(self, view: View) -> Plan:
        clock = self.clock if view.now < 100 else 1.0
        sizes = view.jobs.lo.copy()
        clocks = (sizes >= 0) * clock
        return Plan(
            sizes, clocks=clocks[self.count :], wake_at=100.0 if view.now < 100 else m.INFINITY
        )


def scheduler(policy: Policy, **settings: Any) -> Scheduler:
    found = Scheduler(policy, settings=Settings(**settings))
    found.handle([m.NodeUp(at=0.0, node=node("n", 4, "v100"))])
    return found


def submitted(id: str, at: float = 0.0, **fields: Any) -> m.Submitted:
    spec = job(1, estimate_seconds=1000.0, estimate_devices=1, model="resnet50", **fields)
    return m.Submitted(at=at, id=id, spec=spec)


def told(commands: Sequence[m.Command]) -> list[str]:
    return [type(command).__name__ for command in commands]


def test_a_clock_follows_its_start_and_is_lifted_later() -> None:
    brain = scheduler(Clocked())
    found = brain.handle([submitted("a")])
    assert told(found) == ["Start", "Clock"]
    assert found[1] == m.Clock("a", 1, 0.5)
    assert (
        brain.reason_for(found[1]).text == "Its devices go at 50% of their clock, to save energy."
    )
    brain.handle([m.Started(at=0.0, id="a", epoch=1)])
    assert brain.wake_at == 100.0
    assert brain.handle([m.Tick(at=100.0)]) == [m.Clock("a", 1, 1.0)]
    assert brain.handle([m.Tick(at=200.0)]) == []


def test_progress_is_believed_at_the_clock() -> None:
    """Half a hundred seconds slower, then as fast as ever; the books are those of one step."""
    slow = pace(work_of("resnet50"), 1.0, 0.5)
    brain = scheduler(Clocked())
    brain.handle([submitted("a"), m.Tick(at=0.0)])
    brain.handle([m.Started(at=0.0, id="a", epoch=1)])
    brain.handle([m.Tick(at=100.0)])
    brain.handle([m.Tick(at=150.0)])
    table = brain.state.table
    table.now = brain.state.now
    assert table.left()[0] == pytest.approx(1000 - 100 * slow - 50)
    assert table.done()[0] == pytest.approx(100 * slow + 50)


def test_a_measured_rate_is_learnt_for_full_clock() -> None:
    """At half the clock it goes at its slowed speed: nothing new is learnt."""
    brain = scheduler(Clocked())
    brain.handle([submitted("a")])
    slow = pace(work_of("resnet50"), 1.0, 0.5)
    brain.handle([m.Started(at=0.0, id="a", epoch=1)])
    brain.handle([m.Progressed(at=50.0, id="a", epoch=1, rate=slow, size=1)])
    assert not brain.state.fits
    brain.handle([m.Progressed(at=60.0, id="a", epoch=1, rate=2 * slow, size=1)])
    (fit,) = brain.state.fits.values()
    assert math.exp(fit.seen[1].mean) == pytest.approx(2.0)
    assert brain.state.table.rate[0] == pytest.approx(2 * slow)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Clocked(clock=0.0), "a clock that is not above 0"),
        (Clocked(clock=1.5), "a clock that is not above 0 and at most 1"),
        (Clocked(count=1), "0 clocks for 1 jobs"),
    ],
)
def test_plans_with_wrong_clocks_are_refused(policy: Policy, said: str) -> None:
    brain = scheduler(policy)
    assert brain.handle([submitted("a")]) == []
    assert said in brain.state.refused
    assert brain.why("a").code == "policy"


def test_what_was_used_and_set_survives() -> None:
    """A scheduler from its bytes, and a fork, give the same commands from there on."""
    supply = Supply(budgets=(Budget(of="energy", amount=0.2, window_seconds=3600.0),))
    brain = scheduler(find("powerflow"), supply=supply)
    brain.handle([submitted("a"), submitted("b", deadline=9000.0)])
    for name in ("a", "b"):
        if brain.state.jobs[name].held:
            brain.handle([m.Started(at=1.0, id=name, epoch=1)])
    brain.handle([m.Tick(at=900.0)])
    other = Scheduler(find("powerflow"), settings=brain.settings)
    other.from_bytes(brain.to_bytes())
    fork = brain.fork()
    for each in (other, fork):
        assert each.wake_at == brain.wake_at
    for at in (1000.0, 1800.0, 3600.0, 5400.0):
        wanted = brain.handle([m.Tick(at=at)])
        assert other.handle([m.Tick(at=at)]) == wanted
        assert fork.handle([m.Tick(at=at)]) == wanted
    assert other.to_bytes() == brain.to_bytes()


def test_while_a_budget_is_used_up_nothing_runs_that_may_be_parked() -> None:
    """A kWh a day is gone in an hour or two; who may not be parked stays, and it is owed."""
    supply = Supply(budgets=(Budget(of="energy", amount=1.0),))
    brain = scheduler(find("fifo"), supply=supply)
    brain.handle([submitted("a"), submitted("kept", preemptible=False)])
    brain.handle([m.Started(at=0.0, id=name, epoch=1) for name in ("a", "kept")])
    gone = brain.wake_at
    assert 3600.0 < gone < 9000.0
    assert brain.handle([m.Tick(at=gone)]) == [m.Stop("a", 1, park=True)]
    brain.handle([m.Exited(at=gone, id="a", epoch=1, why="stopped")])
    reason = brain.why("a")
    assert reason.code == "budget"
    assert reason.text.startswith(
        "The cluster has used up its energy budget; the next window begins"
    )
    assert brain.handle([submitted("late", at=gone + 1)]) == []
    assert brain.wake_at == 86_400.0
    assert brain.handle([m.Tick(at=86_400.0)]) == []  # what was too much is owed
    assert brain.state.meter is not None
    assert brain.state.meter.accounts[0].left < 0
