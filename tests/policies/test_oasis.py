"""OASiS: prices, schedules at prices, and who is taken on by them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import found, job, replay

from bough.core.cluster import parse_short
from bough.core.filling import Levels
from bough.core.market import Asks, Market, envelope
from bough.core.model import JobSpec
from bough.core.policy import Verdict, View
from bough.policies import find
from bough.policies.oasis import Oasis
from bough.sim.engine import simulate
from bough.sim.trace import Trace, TraceJob

LINEAR = Levels((0, 1, 2, 4), (0.0, 1.0, 2.0, 4.0))
CONCAVE = Levels((0, 1, 2, 4), (0.0, 1.0, 1.8, 3.0))


def asks(
    work: float, due: float, *, levels: Levels = LINEAR, worth: float = 0.0, steep: float = 5.0
) -> Asks:
    return Asks(levels, work, due, worth or 10 * work, 0.0, due, steep)


class TestPrices:
    def test_rise_exponentially_with_what_is_sold(self) -> None:
        market = Market(4, 0.25, 4.0)
        market.sold[:3] = [0, 2, 4]
        assert market.prices()[:3].tolist() == pytest.approx([0.25, 1.0, 4.0])

    def test_worth_is_a_sigmoid_around_the_deadline(self) -> None:
        one = asks(1.0, 100.0, worth=8.0)
        at = one.worth_at(np.array([0.0, 100.0, 200.0, 1e9]))
        assert at[0] == pytest.approx(8.0)
        assert at[1] == pytest.approx(8.0 * (1 + math.exp(-5)) / 2)
        assert at[2] < 0.1
        assert at[3] == pytest.approx(0.0, abs=1e-9)

    def test_without_urgency_it_does_not_fall(self) -> None:
        one = asks(1.0, 100.0, worth=8.0, steep=0.0)
        assert one.worth_at(np.array([0.0, 1e6])).tolist() == [8.0, 8.0]


class TestSchedules:
    def test_it_rises_within_a_sale(self) -> None:
        """From nothing to all: the mean of an exponential between both ends."""
        costs = Market(4, 0.1, 1.0).costs(np.array([0, 2, 4]))[0]
        assert costs.sum() == pytest.approx(4 * (1.0 - 0.1) / math.log(10))
        assert costs[0] < costs[1]
        assert Market(4, 1.0, 1.0).costs(np.array([0, 1, 4]))[0].tolist() == [1.0, 3.0]

    def test_what_is_urgent_is_done_at_once(self) -> None:
        offer = Market(4, 0.1, 1.0).best(asks(200.0, 600.0, worth=1e4, steep=5.0))
        assert offer is not None
        assert offer.sizes[0] == 4
        assert offer.payoff == pytest.approx(offer.worth - offer.cost)

    def test_what_scales_badly_takes_its_time(self) -> None:
        """Twice as fast costs more than it is worth to be done a little earlier."""
        slow = asks(500.0, 6000.0, levels=CONCAVE, worth=100.0, steep=1.0)
        offer = Market(4, 0.5, 1.0).best(slow)
        assert offer is not None
        assert set(offer.sizes[:5].tolist()) == {1}

    def test_cheap_slots_are_used_first(self) -> None:
        market = Market(4, 0.1, 10.0)
        market.sold[0] = 3
        offer = market.best(asks(60.0, 300.0, steep=0.0, worth=1e3))
        assert offer is not None
        assert offer.sizes[0] == 0

    def test_nothing_is_sold_twice(self) -> None:
        market = Market(4, 0.1, 1.0)
        due = asks(350.0, 100.0)
        for _ in range(2):
            offer = market.best(due)
            if offer is not None:
                market.sell(offer)
        assert market.sold.max() <= 4
        assert market.best(due) is None

    def test_a_deadline_that_cannot_be_kept(self) -> None:
        assert Market(4, 0.1, 1.0).best(asks(41.0, 10.0)) is None

    def test_steps_below_the_envelope_are_left_out(self) -> None:
        sizes, speeds = envelope(Levels((0, 1, 2, 4), (0.0, 1.0, 1.1, 3.0)))
        assert sizes.tolist() == [0, 1, 4]
        assert speeds.tolist() == [0.0, 1.0, 3.0]

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.integers(0, 4), min_size=3, max_size=3),
        st.sampled_from([LINEAR, CONCAVE]),
        st.integers(20, 700),
    )
    def test_no_schedule_of_whole_slots_is_cheaper(
        self, sold: list[int], levels: Levels, work: int
    ) -> None:
        """Against every choice of sizes in three slots; the work is done in any case."""
        market = Market(4, 0.1, 3.0)
        market.sold[:3] = sold
        due = float(market.ends[2])
        need = Asks(levels, float(work), due, 1e6, 0.0, due, 0.0)
        whole, seconds = np.arange(5), market.seconds[:3]
        paid = np.concatenate([np.zeros((3, 1)), market.costs(whole)[:3].cumsum(axis=1)], axis=1)
        cheapest = math.inf
        for sizes in itertools.product(levels.sizes, repeat=3):
            done = sum(levels.speeds[levels.sizes.index(s)] * float(seconds[k])
                       for k, s in enumerate(sizes))  # fmt: skip
            if done >= work and all(s + b <= 4 for s, b in zip(sizes, sold, strict=True)):
                price = sum(paid[k, s] * seconds[k] for k, s in enumerate(sizes))
                cheapest = min(cheapest, float(price))
        offer = market.best(need)
        assert (offer is None) == (cheapest == math.inf)
        if offer is not None:
            assert offer.cost <= cheapest + 1e-6
            speeds = [levels.speeds[levels.sizes.index(s)] for s in offer.sizes[:3].tolist()]
            assert float(np.dot(speeds, seconds)) >= work * (1 - 1e-6)
            assert ((offer.sizes[:3] + sold) <= 4).all()


def promised(id: str, devices: int, weight: float = 1.0) -> TraceJob:
    """Busy nearly until its deadline in an hour."""
    return job(id, 0.0, 3500.0, devices, deadline=3600.0, service="guaranteed", weight=weight)


class TestAdmission:
    def test_taken_on_while_it_pays(self) -> None:
        """There is room for the second, but with six of eight sold it is not worth the price."""
        rows = [promised("first", 6), promised("second", 1)]
        ended = found(replay(rows, "8xv100", "oasis"))
        assert ended["first"].state == "done"
        assert ended["second"].state == "rejected"
        by_deadline = found(replay(rows, "8xv100", "elasticflow"))
        assert {one.state for one in by_deadline.values()} == {"done"}

    def test_who_pays_more_is_taken_on(self) -> None:
        rows = [promised("first", 6), promised("second", 1, weight=20.0)]
        ended = found(replay(rows, "8xv100", "oasis"))
        assert ended["second"].state == "done"
        assert all(one.end <= one.deadline + 1e-3 for one in ended.values())

    def test_a_refusal_names_worth_and_cost(self) -> None:
        seen: list[Verdict] = []

        class Listening(Oasis, frozen=True):
            def admit(self, view: View, job: JobSpec) -> Verdict:
                seen.append(Oasis.admit(self, view, job))
                return seen[-1]

        trace = Trace(name="by hand", jobs=(promised("first", 6), promised("second", 1)))
        simulate(trace, parse_short("8xv100"), Listening())
        assert seen[1].code == "price"
        worth, cost = seen[1].facts["worth"], seen[1].facts["cost"]
        assert worth == pytest.approx(3500.0 * 0.53, rel=0.1)
        mean = (10**0.875 - 10**0.75) / (0.125 * math.log(10))
        assert cost == pytest.approx(3500.0 * 0.1 * mean, rel=0.1)
        assert "weight" in seen[1].remedy

    def test_best_effort_is_never_refused(self) -> None:
        rows = [promised("first", 3), job("other", 1.0, 9e4, 4)]
        ended = found(replay(rows, policy="oasis"))
        assert {one.state for one in ended.values()} == {"done"}

    @settings(max_examples=20, deadline=None)
    @given(st.data())
    def test_promises_are_kept(self, data: st.DataObject) -> None:
        rows = []
        for number in range(data.draw(st.integers(2, 8))):
            submit, seconds = data.draw(st.integers(0, 3000)), data.draw(st.integers(30, 2000))
            slack = data.draw(st.sampled_from([1.0, 1.5, 3.0]))
            asked = data.draw(st.sampled_from([True, True, False]))
            more = {"deadline": submit + slack * seconds, "service": "guaranteed"} if asked else {}
            size = data.draw(st.sampled_from([1, 2, 4]))
            weight = data.draw(st.sampled_from([1.0, 5.0]))
            rows.append(
                job(f"{number}", float(submit), float(seconds), size, least=1, most=8,
                    weight=weight, **more)
            )  # fmt: skip
        rows.sort(key=lambda row: row.submit)
        record = replay(rows, "8xv100", "oasis")
        late = [
            one.id for row, one in zip(rows, record.jobs, strict=True)
            if row.spec.service == "guaranteed" and one.state != "rejected"
            and one.end > one.deadline + 1e-2
        ]  # fmt: skip
        assert late == []


@pytest.mark.parametrize("knobs", ["urgency=-1", "idle_price=0"])
def test_knobs_are_checked(knobs: str) -> None:
    with pytest.raises(ValueError, match=r"urgency|idle_price"):
        find(f"oasis:{knobs}")
