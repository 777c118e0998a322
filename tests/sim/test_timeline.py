"""The chart of devices: few rectangles that tell the truth about who held what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.records import job

from bough.sim.timeline import NARROW, SEVERAL, Rows, Span, choose_rows, coalesce, spans

NODES = [("a", 4), ("b", 4)]


def test_neighbouring_devices_are_one_block() -> None:
    rows = Rows(NODES)
    assert list(rows.blocks((("a", (0, 1, 3)),))) == [(0, 2), (3, 1)]


def test_a_block_may_cross_nodes() -> None:
    rows = Rows(NODES)
    assert list(rows.blocks((("b", (0, 1)), ("a", (2, 3))))) == [(2, 4)]


def test_devices_that_are_not_drawn_are_left_out() -> None:
    assert list(Rows([("b", 4)]).blocks((("a", (0, 1)), ("b", (3,))))) == [(3, 1)]


def test_a_small_cluster_is_drawn_whole() -> None:
    assert choose_rows(["a", "b"], [4, 4], limit=8).nodes == NODES


def test_of_a_large_cluster_nodes_at_even_distances() -> None:
    names = [f"n{i}" for i in range(100)]
    rows = choose_rows(names, [8] * 100, limit=80)
    assert rows.count == 80
    assert [name for name, _ in rows.nodes[:3]] == ["n0", "n10", "n20"]


def test_at_least_one_node_is_drawn() -> None:
    assert choose_rows(["a"], [64], limit=8).count == 64


def test_stays_last_until_the_next_place_or_the_end() -> None:
    moved = job("j", 0, 1, 9, places=[(1, (("a", (0,)),)), (4, ()), (6, (("b", (1,)),))])
    waiting = job("k", 0, 1, 9, places=[])
    assert list(spans([moved, waiting], Rows(NODES), until=9)) == [
        Span(0, 1, 1, 4, 0),
        Span(5, 1, 6, 9, 0),
    ]


def test_a_job_that_has_not_ended_stays_until_the_end_of_the_run() -> None:
    running = job("j", 0, 1, float("nan"), places=[(1, (("a", (0,)),))])
    assert list(spans([running], Rows(NODES), until=20)) == [Span(0, 1, 1, 20, 0)]


stays = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 900), st.floats(0.01, 90), st.integers(0, 5)),
    max_size=40,
).map(lambda drawn: [Span(row, 1, at, at + long, job) for row, at, long, job in drawn])


@given(found=stays, limit=st.integers(1, 40))
def test_merging_covers_every_stay_and_invents_no_job(found: list[Span], limit: int) -> None:
    merged = coalesce(found, 1000.0, limit)
    for span in found:
        assert any(
            m.row <= span.row < m.row + m.rows
            and m.begin <= span.begin
            and m.end >= span.end
            and m.job in (span.job, SEVERAL)
            for m in merged
        )
    assert len(merged) <= max(len(found), 1)


def test_long_stays_are_never_merged() -> None:
    long = [Span(0, 2, 0, 400, 1), Span(0, 2, 400, 1000, 2)]
    short = [Span(2, 1, i, i + 0.1, 3 + i % 2) for i in range(50)]
    merged = coalesce(long + short, 1000.0, 10)
    assert set(long) <= set(merged)
    assert len(merged) <= 10
    assert {span.job for span in merged} == {1, 2, SEVERAL}


def test_nothing_is_merged_below_the_limit() -> None:
    short = [Span(0, 1, 0, 1000 * NARROW / 2, 1), Span(0, 1, 1000 * NARROW / 2, 1, 2)]
    assert coalesce(short, 1000.0, 2) is short


@pytest.mark.parametrize("limit", [1, 3])
def test_as_few_as_asked_when_all_are_short(limit: int) -> None:
    short = [Span(0, 1, i * 10, i * 10 + 1, i) for i in range(100)]
    assert len(coalesce(short, 1000.0, limit)) <= limit
