"""Who took how much power: by the counter, by watts, over gaps, for parts of the time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.hardware.meters import GAP_SECONDS_MAX, Holding, Round, joules, spent
from bough.hardware.readings import Reading

NODE = "here"


def at(seconds: float, *readings: Reading) -> Round:
    return Round(seconds, {(NODE, number): reading for number, reading in enumerate(readings)})


def holding(job: str, device: int = 0, since: float = 0.0, until: float | None = None) -> Holding:
    return Holding(job, NODE, device, since, until)


@pytest.mark.parametrize(
    ("before", "after", "seconds", "found"),
    [
        # The counter is exact, whatever the watts say, and over any gap.
        (Reading(joules=100.0, watts=9.0), Reading(joules=160.0, watts=9.0), 10.0, 60.0),
        (Reading(joules=100.0), Reading(joules=160.0), 1e6, 60.0),
        # Without it, or once the driver was loaded anew: watts, and their mean.
        (Reading(watts=100.0), Reading(watts=300.0), 10.0, 2000.0),
        (Reading(joules=100.0, watts=50.0), Reading(joules=3.0, watts=50.0), 10.0, 500.0),
        (Reading(watts=50.0), Reading(joules=3.0, watts=70.0), 10.0, 600.0),
        (Reading(watts=100.0), Reading(), 10.0, 1000.0),
        (Reading(), Reading(watts=100.0), 10.0, 1000.0),
        # Nobody knows what was drawn while the machine slept, or while a clock was set back.
        (Reading(watts=100.0), Reading(watts=100.0), GAP_SECONDS_MAX + 1, None),
        (Reading(watts=100.0), Reading(watts=100.0), -1.0, None),
        (Reading(), Reading(), 10.0, None),
    ],
)
def test_what_one_device_took(
    before: Reading, after: Reading, seconds: float, found: float | None
) -> None:
    assert joules(before, after, seconds) == found


def test_a_job_pays_for_the_part_it_had() -> None:
    before, after = at(100.0, Reading(joules=0.0)), at(110.0, Reading(joules=1000.0))
    parts = [holding("a", since=90.0, until=102.0), holding("b", since=102.0, until=107.0)]
    assert spent(before, after, parts) == pytest.approx({"a": 200.0, "b": 500.0})


def test_a_job_on_several_devices_of_which_one_has_no_meter() -> None:
    before = at(0.0, Reading(joules=0.0), Reading(watts=10.0), Reading())
    after = at(10.0, Reading(joules=500.0), Reading(watts=10.0), Reading())
    assert spent(before, after, [holding("a", number) for number in range(3)]) == {"a": 600.0}
    assert spent(before, after, [holding("b", 2)]) == {}


@pytest.mark.parametrize(
    "held",
    [
        holding("late", since=11.0),
        holding("early", until=0.0),
        holding("turned", since=8.0, until=3.0),
        Holding("elsewhere", "there", 0, 0.0),
        holding("no such device", 7),
    ],
)
def test_who_had_nothing_pays_nothing(held: Holding) -> None:
    before, after = at(0.0, Reading(watts=10.0)), at(10.0, Reading(watts=10.0))
    assert spent(before, after, [held]) == {}


def test_a_round_that_took_no_time() -> None:
    same = at(5.0, Reading(joules=1.0))
    assert spent(same, at(5.0, Reading(joules=2.0)), [holding("a")]) == {}
    assert spent(same, at(4.0, Reading(joules=2.0)), [holding("a")]) == {}


def test_a_device_that_came_or_went() -> None:
    assert spent(at(0.0), at(10.0, Reading(watts=10.0)), [holding("a")]) == {}
    assert spent(at(0.0, Reading(watts=10.0)), at(10.0), [holding("a")]) == {}


# --------------------------------------------------------------------------- whatever is measured

DEVICES = 3
few = settings(max_examples=150, deadline=None)
amounts = st.none() | st.floats(0, 1e6)
meters = st.builds(lambda joules, watts: Reading(joules=joules, watts=watts), amounts, amounts)
rows = st.lists(meters, min_size=DEVICES, max_size=DEVICES)


@st.composite
def history(draw: st.DrawFn) -> list[Round]:
    seconds, found = 0.0, []
    for _ in range(draw(st.integers(2, 5))):
        seconds += draw(st.floats(0.001, 700.0))
        found.append(at(seconds, *draw(rows)))
    return found


@st.composite
def turns(draw: st.DrawFn, rounds: list[Round], whole: bool) -> list[Holding]:
    """Jobs on each device one after the other, with breaks unless it is held all the time."""
    found = []
    for device in range(DEVICES):
        inside = st.floats(0.0, rounds[-1].at)
        cuts = sorted(draw(st.lists(inside, max_size=6)))
        times: list[float | None] = [0.0, *cuts, None]
        for since, until in itertools.pairwise(times):
            assert since is not None
            if whole or draw(st.booleans()):
                found.append(holding(f"job {draw(st.integers(0, 3))}", device, since, until))
    return found


def paid(rounds: list[Round], holdings: list[Holding]) -> float:
    pairs = itertools.pairwise(rounds)
    return sum(sum(spent(before, after, holdings).values()) for before, after in pairs)


def measured(rounds: list[Round]) -> float:
    """All that the node took, as far as anything measured it."""
    found = 0.0
    for before, after in itertools.pairwise(rounds):
        for key, reading in before.readings.items():
            found += joules(reading, after.readings[key], after.at - before.at) or 0.0
    return found


@given(data=st.data())
@few
def test_jobs_never_pay_for_more_than_the_node_took(data: st.DataObject) -> None:
    rounds = data.draw(history())
    assert paid(rounds, data.draw(turns(rounds, whole=False))) <= measured(rounds) * (1 + 1e-9)


@given(data=st.data())
@few
def test_jobs_that_hold_everything_pay_for_everything(data: st.DataObject) -> None:
    rounds = data.draw(history())
    assert paid(rounds, data.draw(turns(rounds, whole=True))) == pytest.approx(measured(rounds))
