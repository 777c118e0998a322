"""Pollux, Sia and Gavel: what each promises, against all there is to choose from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core import programs
from bough.core.choices import Choices, as_matrix, choices, rooms
from bough.core.jobs import Jobs
from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.policies import find
from bough.policies.gavel import Gavel
from bough.policies.pollux import Pollux
from bough.policies.sia import Sia
from bough.testing.policies import PolicyContract
from bough.testing.views import Row, carried_out, columns, granted, make_view


class TestPollux(PolicyContract):
    policies = (Pollux(), Pollux(fairness=0.0), Pollux(fairness=0.5))
    passes_over = True


class TestPolluxNearly(PolicyContract):
    policies = (Pollux(search="relaxed"), Pollux(search="genetic", population=8, generations=5))
    passes_over = True
    settles = False


class TestSia(PolicyContract):
    policies = (Sia(), Sia(fairness=0.5))
    passes_over = True


class TestSiaRelaxed(PolicyContract):
    policies = (Sia(solver="relaxed"), Sia(exact_jobs=2))
    passes_over = True
    settles = False


class TestGavel(PolicyContract):
    policies = (
        Gavel(), Gavel(aware=False), Gavel(objective="finish_time"), Gavel(objective="makespan"),
        Gavel(objective="throughput"),
    )  # fmt: skip
    at_wish = True
    passes_over = True


class TestGavelFifo(PolicyContract):
    policies = (Gavel(objective="fifo"), Gavel(objective="fifo", aware=False))
    at_wish = True


# ----------------------------------------------------------------- against all there is to choose


def kinds_view(devices: tuple[int, ...], rows: list[Row], now: float = 10_000.0) -> View:
    """A view of several kinds; a row's `speeds_on` holds its speeds on each (none: cannot run)."""
    view = make_view(sum(devices), rows, now=now)
    known = {key: i for i, key in enumerate(dict.fromkeys((r.sizes, r.speeds()) for r in rows))}
    on = [[known.get((row.sizes, speed), -1) for speed in ON[row.user]] for row in rows]
    return replace(view, pools=devices, classes_on=np.array(on, np.int64))


#: Speeds on each of two kinds, by user: the first likes the first kind, the second the second,
#: the third cannot run on the second.
FAST, SLOW = (1.0, 1.8, 3.0), (0.5, 0.9, 1.4)
ON = ((FAST, SLOW), (SLOW, FAST), (FAST, ()))
SIZES = (1, 2, 4)


def all_plans(view: View) -> Iterator[Ints]:
    """Every plan over kinds that keeps to the rules, as option numbers."""
    table = choices(view)
    able = [[-1, *np.flatnonzero(row > 0).tolist()] for row in table.speed]
    for option in itertools.product(*able):
        plan = as_matrix(view, table, np.array(option))
        if (plan.sum(axis=0) <= rooms(view)).all():
            yield np.array(option)


def total(worth: Floats, option: Ints) -> float:
    rows = (option >= 0).nonzero()[0]
    return float(worth[rows, option[rows]].sum())


@st.composite
def kinds_views(draw: st.DrawFn) -> View:
    devices = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    rows, free = [], list(devices)
    for user in draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)):
        pool = draw(st.integers(0, 1)) if user < 2 else 0
        size = draw(st.sampled_from([0, *(s for s in SIZES if s <= free[pool])]))
        free[pool] -= size
        must = bool(size) and draw(st.booleans())
        rows.append(
            Row(
                sizes=SIZES, speed=ON[user][pool], user=user, pool=pool, size=size, must=must,
                lo=size if must else 1, weight=draw(st.sampled_from([1.0, 2.0])),
                priority=draw(st.sampled_from([0, 0, 1])),
            )
        )  # fmt: skip
    # Both classes are known wherever both kinds are used.
    rows += [Row(sizes=SIZES, speed=speed, user=0, lo=1) for speed in (FAST, SLOW)]
    return kinds_view(devices, rows)


@settings(max_examples=60, deadline=None)
@given(
    kinds_views(),
    st.sampled_from([Sia(), Sia(solver="relaxed"), Gavel(), Gavel(objective="fifo"),
                     Gavel(objective="finish_time", aware=False)]),
)  # fmt: skip
def test_plans_over_kinds_keep_to_the_rules(view: View, policy: Policy) -> None:
    answer = policy.plan(view)
    assert isinstance(answer, Plan)
    plan, jobs = answer.sizes, view.jobs
    assert plan.shape == (jobs.n, 2)
    assert (plan.sum(axis=0) <= np.array(view.pools)).all()
    assert ((plan > 0).sum(axis=1) <= 1).all()
    for i in range(jobs.n):
        for pool in range(2):
            size = int(plan[i, pool])
            own = view.classes_on[i, pool]
            assert size == 0 or (own >= 0 and size in view.classes.sizes[own])
        if jobs.must[i]:
            assert plan[i, jobs.pool[i]] >= jobs.lo[i]


@settings(max_examples=25, deadline=None)
@given(kinds_views())
def test_sia_is_the_best_of_all_plans(view: View) -> None:
    view = bare(view)
    policy = Sia()
    worth = policy._worth(view, choices(view), 9_960.0)
    best = max(total(worth, option) for option in all_plans(view))
    table = choices(view)
    found = np.array([option_of(table, row) for row in policy.plan(view).sizes])
    assert total(worth, found) >= best * (1 - 1e-4) - 1e-9
    relaxed = np.array([option_of(table, row) for row in Sia(solver="relaxed").plan(view).sizes])
    assert total(worth, relaxed) <= best + 1e-9


def bare(view: View) -> View:
    """The same jobs, of one priority and free to be parked, decided on at a round."""
    ints = view.jobs.ints.copy()
    for name, value in (("must", 0), ("priority", 0)):
        ints[columns()[name].row] = value
    ints[columns()["lo"].row] = view.jobs.min
    jobs = Jobs(ints, view.jobs.floats, view.jobs.pick, view.jobs.n, view.now)
    return replace(view, jobs=jobs)


def option_of(table: Choices, row: Ints) -> int:
    """The option that a row of a plan is."""
    if not row.any():
        return -1
    pool = int(row.argmax())
    return int(((table.pool == pool) & (table.size == row[pool])).argmax())


def test_pollux_is_the_best_of_all_plans() -> None:
    """The exact search finds the best; the others come close, and never above it."""
    random = np.random.default_rng(4)
    for _ in range(12):
        speeds = np.sort(random.uniform(0.5, 4.0, (4, 3)), axis=1)
        held = random.choice([0, 1, 2], 4)
        rows = [
            Row(sizes=SIZES, speed=tuple(s), size=int(h))
            for s, h in zip(speeds.tolist(), held, strict=True)
        ]
        view = make_view(9, rows, now=600.0)
        table = choices(view)
        worth = Pollux()._worth(view, table, 600.0)
        best = max(total(worth, option) for option in all_plans(view))
        for policy, part in ((Pollux(), 1.0), (Pollux(search="relaxed"), 0.98),
                             (Pollux(search="genetic"), 0.999)):  # fmt: skip
            sizes = policy.plan(view).sizes
            found = np.array([option_of(table, row) for row in sizes[:, None]])
            assert part * best - 1e-9 <= total(worth, found) <= best + 1e-9


def test_pollux_evens_out_speed_ups() -> None:
    """One that scales gets more than one that does not, but nobody is left with nothing."""
    scales = Row(sizes=(1, 2, 4, 8), speed=(1.0, 2.0, 4.0, 8.0))
    does_not = Row(sizes=(1, 2, 4, 8), speed=(1.0, 1.1, 1.15, 1.16))
    sizes = Pollux().plan(make_view(9, [scales, does_not])).sizes
    assert sizes.tolist() == [8, 1]


def test_pollux_changes_only_what_pays() -> None:
    """A young job that was restarted often keeps what it has; an old one grows."""
    grows = Row(sizes=(1, 2), speed=(1.0, 1.3), size=1, submitted=0.0)
    young = make_view(2, [grows], now=60.0)
    assert Pollux(restart_seconds=30.0).plan(young).sizes.tolist() == [1]
    old = make_view(2, [grows], now=6000.0)
    assert Pollux(restart_seconds=30.0).plan(old).sizes.tolist() == [2]


def test_sia_moves_jobs_to_the_kind_that_suits_them() -> None:
    rows = [
        Row(sizes=SIZES, speed=SLOW, user=0, pool=1),
        Row(sizes=SIZES, speed=FAST, user=1, pool=1),
    ]
    plan = Sia().plan(kinds_view((4, 4), rows))
    assert plan.sizes.tolist() == [[4, 0], [0, 4]]


# ---------------------------------------------------------------------------------- Gavel's turns


def test_gavel_gives_the_worst_off_the_most() -> None:
    """Two jobs, one device of each kind; the first is 4 times as fast there, the second as fast.

    By hand: with x of the time on the fast kind for the first and 1 - x for the second, both
    relative to an equal part (2.5 and 1): (4x + (1 - x)) / 2.5 = 1 for the second whatever it
    has, so the first has the fast kind all the time.
    """
    speed = np.array([[4.0, 1.0], [1.0, 1.0]])
    size = np.ones((2, 2), np.int64)
    view = make_view(2, [Row(), Row()])
    view = replace(view, pools=(1, 1), classes_on=np.zeros((2, 2), np.int64))
    share = Gavel().shares(view, size, speed)
    assert share == pytest.approx(np.eye(2))
    blind = Gavel(aware=False).shares(view, size, np.ones((2, 2)))
    assert blind.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_gavel_shares_time_by_devices() -> None:
    """One kind of two devices; a job of two devices has half the time of one of one device."""
    view = make_view(2, [Row(sizes=(1,)), Row(sizes=(1,)), Row(sizes=(2,))])
    size = np.array([[1], [1], [2]])
    share = Gavel().shares(view, size, np.ones((3, 1)))
    assert (share * size).ravel() == pytest.approx([2 / 3] * 3)


def test_gavel_makespan_favours_those_with_most_left() -> None:
    view = make_view(1, [Row(left=100.0), Row(left=300.0)])
    share = Gavel(objective="makespan").shares(view, np.ones((2, 1), np.int64), np.ones((2, 1)))
    assert share.ravel() == pytest.approx([0.25, 0.75], abs=1e-3)


def test_gavel_finish_times_favour_who_has_waited() -> None:
    waited, new = Row(left=100.0, submitted=0.0), Row(left=100.0, submitted=1000.0)
    view = make_view(1, [waited, new], now=1000.0)
    policy = Gavel(objective="finish_time")
    share = policy.shares(view, np.ones((2, 1), np.int64), np.ones((2, 1))).ravel()
    ratio = [(a + 100.0 / s) / (a + 200.0) for a, s in zip((1000.0, 0.0), share, strict=True)]
    assert max(ratio) == pytest.approx(min(ratio), rel=0.05)


def test_gavel_works_its_shares_off() -> None:
    """In a round, who has had least of its share goes; between rounds nobody is stopped."""
    rows = [Row(size=1, since=0.0), Row()]
    view = make_view(1, rows, now=720.0)
    had = replace(view, classes_on=np.zeros((2, 1), np.int64), ran_on=np.array([[600.0], [0.0]]))
    assert Gavel().plan(had).sizes.ravel().tolist() == [0, 1]
    between = replace(had, now=730.0)
    assert Gavel().plan(between).sizes.ravel().tolist() == [1, 0]
    assert Gavel().plan(between).wake_at == 1080.0


# ----------------------------------------------------------------------------- without the solver


def test_the_absent_solver_is_told_when_the_policy_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "find_spec", lambda name: None)
    for name in ("sia", "gavel"):
        with pytest.raises(ValueError, match=r"pip install 'bough\[optimize\]'"):
            find(name)
    assert find("sia(solver=relaxed)") == Sia(solver="relaxed")
    assert find("gavel(objective=fifo)") == Gavel(objective="fifo")


def test_of_equal_plans_pollux_keeps_the_one_carried_out() -> None:
    """Which of two jobs of two devices runs makes no difference, but changing them would."""
    speeds = {1: (1.0,), 2: (2.0,), 6: (6.0,)}
    rigid = [Row(sizes=(n,), speed=speeds[n], submitted=0.0) for n in (1, 2, 6, 1, 2)]
    elastic = Row(sizes=(1, 2, 4), speed=(1.0, 2**0.9, 4**0.9), submitted=0.0)
    view, policy = make_view(5, [*rigid, elastic], now=10_000.0), Pollux(fairness=0.5)
    sizes = granted(policy, view)
    assert granted(policy, carried_out(view, sizes)).tolist() == sizes.tolist()
