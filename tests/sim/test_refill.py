"""How ElasticFlow's released simulator fills the future, by hand."""

from __future__ import annotations

from bough.core.filling import Levels
from bough.sim.reproduce.refill import Refill, Work


class TestRefill:
    """How the released simulator plans: 1, 2 and 4 devices are 1, 1.5 and 2 times as fast."""

    levels = Levels((0, 1, 2, 4), (0.0, 1.0, 1.5, 2.0))

    def test_begins_where_something_changes_and_ends_when_done(self) -> None:
        refill = Refill(0.0, 4, 60.0)
        filled = refill.fill(Work(self.levels, 200.0, 150.0))
        assert filled.steps == [(0.0, 180.0, 2)], "150 s of 1.5, given back a slot later"
        assert (filled.done, filled.end) == (134.0, 180.0)
        assert (refill.profile.times, refill.profile.free) == ([0.0, 180.0], [2, 4])

    def test_before_the_quota_the_next_lower_one(self) -> None:
        refill = Refill(0.0, 4, 60.0)
        refill.profile.take(0.0, 120.0, 1)
        filled = refill.fill(Work(self.levels, 500.0, 300.0))
        assert filled.steps == [(0.0, 120.0, 2), (120.0, 300.0, 4)]

    def test_who_is_late_takes_all_it_can_use(self) -> None:
        refill = Refill(0.0, 4, 60.0)
        filled = refill.fill(Work(self.levels, 200.0, 60.0))
        assert filled.steps[-1][1:] == (120.0, 4)
        assert filled.done == 100.0

    def test_leftovers_are_held_until_something_changes(self) -> None:
        refill = Refill(0.0, 4, 60.0)
        refill.profile.take(0.0, 120.0, 2)
        filled = refill.grown(Work(self.levels, 300.0, 600.0), 2)
        assert filled.at(0.0) == 2
        assert filled.next_change(0.0) == 120.0

    def test_the_earliest_deadline_takes_its_largest_size(self) -> None:
        refill = Refill(0.0, 4, 60.0)
        assert refill.greedy(Work(self.levels, 100.0, 900.0)).done == 50.0
        assert refill.greedy(Work(self.levels, 100.0, 900.0)).steps[0][:1] == (60.0,)
