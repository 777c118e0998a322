"""HiveD: a queue's cells are there at once, whatever the others run; idle ones are used."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import found, job, replay

from bough.core.cells import Cells, cells_of
from bough.core.model import Queue
from bough.policies import find
from bough.policies.hived import Hived
from bough.testing.views import Row, granted, make_view

TWO = (Queue(name="red", guarantee=8), Queue(name="blue", guarantee=8))


class TestCells:
    def test_worked_example(self) -> None:
        """A cell of 8 is halved for a 2; another 4 and 2 fit, and no 1 is left."""
        cells = Cells([8], 8)
        assert [cells.take(size) for size in (2, 4, 2, 1)] == [True, True, True, False]

    def test_the_smallest_that_suffices_is_taken(self) -> None:
        cells = Cells([8, 2], 8)
        assert cells.take(2)
        assert cells.take(8)

    def test_odd_sizes_take_the_power_above(self) -> None:
        assert [Cells([4], 8).take(size) for size in (3, 5)] == [True, False]

    def test_gangs_of_several_nodes_take_whole_ones(self) -> None:
        cells = Cells(cells_of(28, 8), 8)
        assert cells_of(28, 8) == [8, 8, 8, 4]
        assert [cells.take(size) for size in (20, 4, 8)] == [True, True, False]

    @given(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=12), st.integers(1, 3))
    def test_the_largest_first_are_packed_without_waste(self, sizes: list[int], whole: int) -> None:
        """Buddies never waste: in descending order everything fits that fits by number."""
        cells = Cells([8] * whole, 8)
        taken = [size for size in sorted(sizes, reverse=True) if cells.take(size)]
        assert sum(taken) <= 8 * whole
        if sum(sizes) <= 8 * whole:
            assert sorted(taken) == sorted(sizes)


class TestHived:
    def test_who_finds_no_cell_runs_on_what_is_idle(self) -> None:
        rows = [Row(sizes=(8,)), Row(sizes=(4,), priority=1), Row(sizes=(4,), priority=-1)]
        view = make_view(12, rows)
        assert granted(Hived(), view).tolist() == [8, 4, 0]
        assert granted(Hived(), make_view(16, rows)).tolist() == [8, 4, 4]

    def test_who_loses_its_cell_goes_on_while_devices_are_idle(self) -> None:
        """Downgraded, not stopped: its queue has one cell of 4, and a higher priority takes it."""
        rows = [
            job("low", 0.0, 100.0, 4, queue="red"),
            job("high", 10.0, 100.0, 4, queue="red", priority=5),
        ]
        queues = (Queue(name="red", guarantee=4), Queue(name="blue", guarantee=4))
        ended = found(replay(rows, "8xv100", "hived", queues=queues))
        assert ended["low"].end == 100.0
        assert ended["high"].begin == 10.0

    def test_the_owner_gets_its_cell_back_at_once(self) -> None:
        rows = [
            job("guest", 0.0, 100.0, 8, queue="red", priority=-1),
            job("host", 10.0, 50.0, 4, queue="blue"),
        ]
        queues = (Queue(name="red", guarantee=4), Queue(name="blue", guarantee=4))
        ended = found(replay(rows, "8xv100", "hived", queues=queues))
        assert ended["host"].begin == 10.0
        assert ended["guest"].end == 150.0

    def test_without_spilling_one_waits_for_a_cell(self) -> None:
        rows = [job("a", 0.0, 100.0, 4, queue="red"), job("b", 1.0, 100.0, 4, queue="red")]
        queues = (Queue(name="red", guarantee=4), Queue(name="blue", guarantee=4))
        ended = found(replay(rows, "8xv100", "hived(spill=false)", queues=queues))
        assert ended["b"].begin == 100.0
        assert found(replay(rows, "8xv100", "hived", queues=queues))["b"].begin == 1.0

    def test_cells_may_be_given_by_queue(self) -> None:
        """Four cells of 2 hold no gang of 4, however many devices they come to."""
        rows = [job("a", 0.0, 100.0, 4, queue="red"), job("b", 1.0, 50.0, 8, queue="blue")]
        policy = "hived(cells={'red': [2, 2, 2, 2], 'blue': [8]}, spill=false)"
        record = replay(rows, "2x8xv100", policy, queues=TWO)
        ended = found(record)
        assert ended["b"].end == 51.0
        assert ended["a"].state != "done"

    def test_numbers_alone_do_not_give_whole_nodes(self) -> None:
        """The anomaly of quotas: single devices of others sit on every node.

        Both queues stay within their 8 devices. With cells the gang of 8 has a node at once.
        """
        small = [job(f"s{i}", float(i), 1000.0, 1, queue="blue") for i in range(16)]
        rows = [*small, job("gang", 500.0, 50.0, 8, queue="red")]
        ended = found(replay(rows, "2x8xv100", "hived", queues=TWO))
        assert ended["gang"].begin == 500.0

    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def test_what_fits_into_ones_cells_starts_at_once(self, data: st.DataObject) -> None:
        """Whatever red runs and however its jobs end, blue's gangs never wait.

        Red keeps its own cells full of guaranteed jobs of all sizes, and more spill over.
        """
        rows = []
        for number in range(data.draw(st.integers(5, 25))):
            rows.append(
                job(
                    f"red{number}", float(data.draw(st.integers(0, 500))),
                    float(data.draw(st.integers(10, 300))), data.draw(st.sampled_from([1, 2, 4])),
                    queue="red", priority=data.draw(st.sampled_from([0, 0, 3, -1])),
                )
            )  # fmt: skip
        at = itertools.accumulate(
            data.draw(st.lists(st.integers(30, 120), min_size=2, max_size=6)), initial=20
        )
        for number, start in enumerate(at):
            size = data.draw(st.sampled_from([2, 4, 8]))
            rows.append(job(f"blue{number}", float(start), 30.0, size, queue="blue"))
        rows.sort(key=lambda row: row.submit)
        record = replay(rows, "2x8xv100", "hived", queues=TWO)
        late = [one.id for one in record.jobs if one.id[:4] == "blue" and one.begin != one.submit]
        assert late == []

    @pytest.mark.parametrize("knobs", ["node_devices=6", "cells={'red': [3]}"])
    def test_knobs_are_checked(self, knobs: str) -> None:
        with pytest.raises(ValueError, match=r"powers? of two"):
            find(f"hived({knobs})")
