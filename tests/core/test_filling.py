"""Progressive filling: its worked example, what it promises, and how much it refuses needlessly."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.alone import alone, asks_of, together
from bough.core.filling import (
    RULES,
    Levels,
    Need,
    Rules,
    Share,
    earliest_deadline,
    fill,
    fits,
    needs_of,
    placed,
    promised_rows,
    soonest_end,
)
from bough.core.model import INFINITY
from bough.core.policy import View
from bough.core.profile import Profile
from bough.testing.views import Row, make_view

SLOTS = Rules(slot_seconds=1.0)
#: Speeds at 1, 2 and 4 devices: of the paper's example, proportional, and hardly growing.
CURVES = (
    Levels((0, 1, 2, 4), (0.0, 1.0, 1.5, 2.0)),
    Levels((0, 1, 2, 4), (0.0, 1.0, 2.0, 4.0)),
    Levels((0, 1, 2, 4), (0.0, 1.0, 1.2, 1.3)),
    Levels((0, 2, 4), (0.0, 1.5, 2.5)),
)


def planned(devices: int, needs: Sequence[Need], rules: Rules = RULES) -> list[Share | None]:
    return fill(Profile(0.0, devices), needs, rules)


def used_at(shares: Sequence[Share | None], moment: float) -> int:
    """Devices in use just after a moment."""
    return sum(
        next((size for at, size in reversed(share.steps) if at <= moment), 0)
        for share in shares
        if share is not None
    )


def work_of(share: Share, levels: Levels, until: float = INFINITY) -> float:
    """What is done under a plan."""
    done = 0.0
    for (begin, size), (end, _) in itertools.pairwise(share.steps):
        speed = levels.speeds[levels.sizes.index(size)]
        done += speed * max(min(end, until) - begin, 0.0)
    return done


# ------------------------------------------------------------------------------ worked examples


class TestThePapersExample:
    """Speeds 1, 1.5 and 2 on 1, 2 and 4 devices; 3 units of work in 2 slots of time."""

    levels = CURVES[0]

    def test_beside_a_busy_first_slot(self) -> None:
        """3 of 4 devices are taken in slot 1: a quota of 2 does 2.5, one of 4 does 1 + 2."""
        profile = Profile(0.0, 4)
        profile.take(0.0, 1.0, 3)
        (share,) = fill(profile, [Need(self.levels, 3.0, 2.0)], SLOTS)
        assert share is not None
        assert share.steps == ((0.0, 1), (1.0, 4), (2.0, 0))
        assert share.now == 1

    def test_with_a_little_more_work_it_is_late(self) -> None:
        profile = Profile(0.0, 4)
        profile.take(0.0, 1.0, 3)
        assert fill(profile, [Need(self.levels, 3.1, 2.0)], SLOTS) == [None]
        assert profile.free == [1, 4], "who is late takes nothing"

    def test_alone_it_needs_two_devices_all_the_time(self) -> None:
        (share,) = planned(4, [Need(self.levels, 3.0, 2.0)], SLOTS)
        assert share is not None
        assert share.steps == ((0.0, 2), (2.0, 0))

    def test_part_of_the_work_is_done_at_the_cheaper_level(self) -> None:
        """2.5 of work: 1 device for a slot, then 2."""
        (share,) = planned(4, [Need(self.levels, 2.5, 2.0)], SLOTS)
        assert share is not None
        assert share.steps == ((0.0, 1), (1.0, 2), (2.0, 0))
        (share,) = planned(4, [Need(self.levels, 2.25, 2.0)])
        assert share is not None
        assert share.steps == ((0.0, 1), (1.5, 2), (2.0, 0)), "without slots, as late as it can"


def test_who_has_time_begins_as_late_as_it_can() -> None:
    (share,) = planned(4, [Need(CURVES[1], 2.0, 10.0)])
    assert share is not None
    assert share.steps == ((0.0, 0), (8.0, 1), (10.0, 0))
    assert (share.now, share.next_above(0), share.next_above(1)) == (0, 8.0, INFINITY)


def test_the_urgent_is_served_first() -> None:
    urgent, later = Need(CURVES[1], 4.0, 1.0), Need(CURVES[1], 4.0, 2.0)
    shares = planned(4, [urgent, later])
    assert [share and share.steps for share in shares] == [
        ((0.0, 4), (1.0, 0)),
        ((0.0, 0), (1.0, 4), (2.0, 0)),
    ]
    assert planned(4, [urgent, later._replace(left=4.1)])[1] is None


def test_who_may_not_be_parked_holds_its_least_meanwhile() -> None:
    stays = Need(CURVES[1], 4.0, 10.0, floor=2)
    urgent = Need(CURVES[1], 4.0, 2.0)
    shares = planned(4, [urgent, stays])
    assert [share and share.steps for share in shares] == [
        ((0.0, 2), (2.0, 0)),
        ((0.0, 2), (2.0, 0)),
    ]
    assert planned(4, [urgent._replace(deadline=1.5), stays])[0] is None


# ------------------------------------------------------------------- against an exact search

small_needs = st.lists(
    st.tuples(
        st.sampled_from(CURVES),
        st.integers(1, 16).map(lambda halves: halves / 2),
        st.integers(1, 4).map(float),
    ).map(lambda drawn: Need(*drawn)),
    min_size=1, max_size=3,
).map(lambda needs: sorted(needs, key=lambda need: need.deadline))  # fmt: skip


def exactly(devices: int, needs: Sequence[Need]) -> bool:
    """Whether any plan of whole slots keeps all deadlines: all of them are tried."""
    states = {tuple(need.left for need in needs)}
    for slot in range(int(max(need.deadline for need in needs))):
        after = set()
        for left in states:
            options = [
                need.levels.sizes if slot < need.deadline and rest > 0 else (0,)
                for need, rest in zip(needs, left, strict=True)
            ]
            for sizes in itertools.product(*options):
                if sum(sizes) <= devices:
                    after.add(
                        tuple(
                            max(rest - need.levels.speeds[need.levels.sizes.index(size)], 0.0)
                            for need, rest, size in zip(needs, left, sizes, strict=True)
                        )
                    )
        states = {
            left
            for left in after
            if all(r <= 1e-9 or n.deadline > slot + 1 for n, r in zip(needs, left, strict=True))
        }
    return bool(states)


@settings(max_examples=60, deadline=None)
@given(small_needs, st.sampled_from([2, 4, 5]), st.booleans())
def test_what_fits_really_fits(needs: list[Need], devices: int, whole: bool) -> None:
    """Plans are within the devices, do all the work in time, and exist if it is said so."""
    shares = planned(devices, needs, Rules(whole, 1.0))
    for share, need in zip(shares, needs, strict=True):
        if share is not None:
            assert work_of(share, need.levels) >= need.left - 1e-3
            assert share.end <= need.deadline + 1e-3
            assert share.now == share.steps[0][1]
    moments = {0.0} | {at for share in shares if share for at, _ in share.steps}
    assert max(used_at(shares, at) for at in moments) <= devices
    if all(shares):
        assert exactly(devices, needs)


def test_what_is_refused_needlessly() -> None:
    """Of 90 sets that some plan of whole slots keeps, filling refuses 4; without `whole`, 2."""
    random = np.random.default_rng(7)
    kept = {True: 0, False: 0}
    possible = 0
    for _ in range(400):
        needs = sorted(
            (
                Need(CURVES[random.integers(4)], float(random.integers(1, 13)) / 2, float(deadline))
                for deadline in random.integers(1, 5, 3)
            ),
            key=lambda need: need.deadline,
        )
        if exactly(4, needs):
            possible += 1
            for whole in kept:
                kept[whole] += fits(Profile(0.0, 4), needs, Rules(whole, 1.0))
    assert (possible, kept) == (90, {True: 86, False: 88})


def test_proportional_speeds_lose_nothing() -> None:
    """The theorem of the paper: all fit if work up to each deadline is within the device time."""
    random = np.random.default_rng(3)
    line = Levels((0, 1, 2, 3, 4), (0.0, 1.0, 2.0, 3.0, 4.0))
    seen = set()
    for _ in range(300):
        deadlines = np.sort(random.integers(1, 9, 4))
        work = random.integers(1, 13, 4)
        possible = bool((work.cumsum() <= 4 * deadlines).all())
        needs = [Need(line, float(w), float(d)) for w, d in zip(work, deadlines, strict=True)]
        assert fits(Profile(0.0, 4), needs) == possible
        seen.add(possible)
    assert seen == {True, False}


# ---------------------------------------------------------------------------- one more


@settings(max_examples=60, deadline=None)
@given(small_needs, small_needs, st.sampled_from([4, 5]), st.sampled_from([0.0, 1.0]))
def test_the_earliest_deadline_can_be_kept(
    others: list[Need], ones: list[Need], devices: int, slot: float
) -> None:
    rules = Rules(slot_seconds=slot)
    newcomer = ones[0]._replace(deadline=0.0)
    if not fits(Profile(0.0, devices), others, rules):
        return
    earliest = earliest_deadline(Profile(0.0, devices), others, newcomer, rules)
    assert earliest >= soonest_end(0.0, newcomer)
    if earliest < INFINITY:
        among = placed(others, newcomer._replace(deadline=earliest))
        assert fits(Profile(0.0, devices), among, rules)


def test_on_free_devices_the_earliest_deadline_is_the_fastest_end() -> None:
    newcomer = Need(CURVES[0], 3.0, 1.0)
    assert earliest_deadline(Profile(0.0, 4), [], newcomer) == 1.5
    assert earliest_deadline(Profile(0.0, 4), [], newcomer, SLOTS) == 2.0
    assert earliest_deadline(Profile(0.0, 1), [], newcomer) == pytest.approx(3.0, abs=0.01)


# ---------------------------------------------------------------------- alone, and all together


@st.composite
def promised_views(draw: st.DrawFn) -> View:
    """Jobs with deadlines, of which some are urgent, some may not be parked, some are late."""
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        levels = draw(st.sampled_from(CURVES))
        held = draw(st.sampled_from([0, 0, levels.sizes[1]]))
        rows.append(
            Row(
                sizes=levels.sizes[1:], speed=levels.speeds[1:], guaranteed=True, size=held,
                must=bool(held) and draw(st.booleans()), since=100.0,
                left=draw(st.just(0.0) | st.floats(0.01, 60.0)),
                deadline=draw(st.floats(95.0, 140.0)),
            )
        )  # fmt: skip
    return make_view(draw(st.integers(6, 16)), rows, now=100.0)


@settings(max_examples=150, deadline=None)
@given(promised_views(), st.sampled_from([Rules(), SLOTS, Rules(slot_seconds=7.0)]))
def test_alone_is_what_filling_gives_where_all_fits(view: View, rules: Rules) -> None:
    rows = promised_rows(view)
    plans = alone(view.classes, asks_of(view, rows), view.now, rules)
    shares = fill(Profile(view.now, view.devices), needs_of(view, rows), rules)
    if plans is None:
        assert None in shares
        return
    if not together(plans, view.devices):
        return
    assert None not in shares
    found = [share for share in shares if share is not None]
    assert plans.now(view.now).tolist() == [share.now for share in found]
    for size in (0, 1, 2):
        granted = np.full(len(rows), size)
        expected = min((share.next_above(size) for share in found), default=INFINITY)
        assert plans.wake_at(view.now, granted) == pytest.approx(expected, abs=1e-3)
