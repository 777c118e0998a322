"""Each metric on runs small enough to check by hand; the words are those of docs/metrics.md."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.records import job, run

from bough.sim.results import (
    completion_seconds,
    fair_seconds,
    fragmentation,
    job_rows,
    over_time,
    summarise,
)

#: The keys of a run in `bough simulate --json` that others may rely on.
PROMISED = [
    *("policy", "jobs", "completed", "rejected"),
    *("mean_jct_seconds", "p50_jct_seconds", "p95_jct_seconds", "p99_jct_seconds"),
    *("makespan_seconds", "deadline_ratio_submitted", "deadline_ratio_admitted", "utilisation"),
    *("preemptions", "resizes", "migrations", "lost_device_hours"),
    *("cpu_seconds", "decision_p99_seconds"),
]
METRICS = Path(__file__).parent.parent.parent / "docs" / "metrics.md"


@pytest.fixture
def two_in_a_row() -> dict[str, object]:
    """Four devices; a takes them all for 10 s, b waits for it and takes them for 20 s."""
    return summarise(run([job("a", 0, 0, 10, wish=4), job("b", 0, 10, 30, wish=4)]))


def test_promised_keys_come_first_and_in_order(two_in_a_row: dict[str, object]) -> None:
    assert list(two_in_a_row)[: len(PROMISED)] == PROMISED


def test_every_metric_is_defined_once_in_the_docs(two_in_a_row: dict[str, object]) -> None:
    defined = re.findall(r"^\| `(\w+)`", METRICS.read_text(encoding="utf-8"), re.M)
    assert sorted(defined) == sorted(two_in_a_row)


def test_completion_times_count_from_submission(two_in_a_row: dict[str, object]) -> None:
    assert two_in_a_row["mean_jct_seconds"] == 20.0
    assert two_in_a_row["p50_jct_seconds"] == 20.0
    assert two_in_a_row["p99_jct_seconds"] == pytest.approx(29.8)
    assert two_in_a_row["makespan_seconds"] == 30.0
    assert two_in_a_row["mean_slowdown"] == pytest.approx((1 + 1.5) / 2)


def test_a_full_cluster_is_used_wholly(two_in_a_row: dict[str, object]) -> None:
    assert two_in_a_row["utilisation"] == pytest.approx(1.0)
    assert two_in_a_row["device_hours"] == pytest.approx(120 / 3600)
    assert two_in_a_row["fragmentation"] == 0.0


def test_the_best_order_meets_its_bound(two_in_a_row: dict[str, object]) -> None:
    assert two_in_a_row["lower_bound_mean_jct_seconds"] == pytest.approx(20.0)
    assert two_in_a_row["mean_jct_over_bound"] == pytest.approx(1.0)


def test_waiting_is_split_by_cause() -> None:
    jobs = [job("a", 0, 6, 7, waits={"quota": 2.0, "capacity": 4.0}), job("b", 0, 0, 1)]
    found = summarise(run(jobs))
    assert found["waits_seconds"] == {"capacity": 2.0, "quota": 1.0}
    assert list(found["waits_seconds"]) == ["capacity", "quota"]
    assert found["mean_wait_seconds"] == 3.0
    assert found["mean_first_start_seconds"] == 3.0


def test_deadlines_of_submitted_and_of_admitted() -> None:
    refused = {"state": "rejected", "admitted": False, "device_seconds": 0.0, "deadline": 5.0}
    jobs = [
        job("met", 0, 0, 4, deadline=5.0),
        job("missed", 0, 2, 6, deadline=5.0),
        job("refused", 0, math.nan, math.nan, sizes=[], **refused),
        job("without", 0, 0, 9),
    ]
    found = summarise(run(jobs))
    assert found["deadline_ratio_submitted"] == pytest.approx(1 / 3)
    assert found["deadline_ratio_admitted"] == pytest.approx(1 / 2)
    assert (found["completed"], found["rejected"]) == (3, 1)


def test_only_jobs_that_are_done_have_a_completion_time() -> None:
    jobs = [job("a", 0, 0, 10), job("b", 0, 0, 1000, state="failed")]
    found = summarise(run(jobs))
    assert found["mean_jct_seconds"] == 10.0
    assert found["failed"] == 1
    assert found["makespan_seconds"] == 1000.0


def test_counts_add_up_over_jobs() -> None:
    jobs = [
        job("a", 0, 0, 10, preemptions=2, resizes=1, lost_device_seconds=3600.0),
        job("b", 0, 0, 10, preemptions=1, migrations=4, restarts=3),
    ]
    found = summarise(run(jobs))
    counts = ("preemptions", "resizes", "migrations", "restarts", "lost_device_hours")
    assert [found[name] for name in counts] == [3, 1, 4, 3, 1.0]


def test_lost_work_is_not_useful() -> None:
    found = summarise(run([job("a", 0, 0, 10, wish=4, lost_device_seconds=10.0)]))
    assert found["utilisation"] == pytest.approx(1.0)
    assert found["useful_utilisation"] == pytest.approx(0.75)


def test_an_empty_run_has_no_numbers_and_no_nan() -> None:
    found = summarise(run([]))
    assert found["jobs"] == 0
    assert found["mean_jct_seconds"] is None
    assert found["utilisation"] is None
    assert b"NaN" not in msgspec.json.encode(found)


def test_a_run_cut_short_lasts_until_the_cut() -> None:
    cut = job("b", 0, 0, math.nan, state="unfinished", device_seconds=100.0, sizes=[(0, 4)])
    found = summarise(run([cut], ended=25.0))
    assert found["unfinished"] == 1
    assert found["makespan_seconds"] == 25.0
    assert found["mean_jct_seconds"] is None
    assert found["utilisation"] == pytest.approx(1.0)


# --------------------------------------------------------------------------- fairness


def test_alone_a_fair_share_is_everything() -> None:
    jobs = [job("a", 0, 0, 10, wish=4), job("b", 100, 100, 110, wish=4)]
    assert fair_seconds(jobs, 4).tolist() == [10.0, 10.0]


def test_two_that_wish_for_everything_share_it() -> None:
    # Both go at half speed until a is done at 20; then b has 10 s of its work left.
    jobs = [job("a", 0, 0, 10, wish=4), job("b", 0, 10, 30, wish=4)]
    assert fair_seconds(jobs, 4).tolist() == pytest.approx([20.0, 30.0])
    found = summarise(run(jobs))
    assert found["worst_fairness"] == pytest.approx(1.0)
    assert found["unfair_ratio"] == 0.0


def test_who_waits_longer_than_its_share_is_treated_unfairly() -> None:
    late = summarise(run([job("a", 0, 20, 30, wish=4), job("b", 0, 0, 20, wish=4)]))
    assert late["worst_fairness"] == pytest.approx(30 / 20)
    assert late["unfair_ratio"] == pytest.approx(1 / 2)


@settings(max_examples=30, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=6
    )
)
def test_sharing_finishes_in_turn_and_never_before_the_ideal(
    jobs: list[tuple[int, int, int]],
) -> None:
    records = [
        job(str(n), when, when, when + seconds, wish)
        for n, (when, seconds, wish) in enumerate(jobs)
    ]
    fair = fair_seconds(records, 4)
    ideal = completion_seconds(records)
    assert (fair >= ideal - 1e-6).all()
    assert fair == pytest.approx(step_by_step(jobs, devices=4), abs=0.2)


def step_by_step(jobs: list[tuple[int, int, int]], devices: int) -> list[float]:
    """The same in small steps of time: the oracle."""
    step = 0.01
    submit, left, wish = (np.array(column, float) for column in zip(*jobs, strict=True))
    ends, now = np.zeros(len(jobs)), 0.0
    while (left > 0).any():
        present = (submit <= now + 1e-9) & (left > 0)
        wished = wish[present].sum()
        left[present] -= step * min(1.0, devices / wished) if wished else 0.0
        now += step
        ends[present & (left <= 0)] = now
    return (ends - submit).tolist()


# --------------------------------------------------------------------------- over time


def test_utilisation_over_time() -> None:
    series = over_time(run([job("a", 0, 0, 10, wish=4), job("b", 0, 10, 30, wish=2)]), bins=3)
    assert series["seconds"] == [0.0, 10.0, 20.0]
    assert series["utilisation"] == pytest.approx([1.0, 0.5, 0.5])


def test_free_devices_in_pieces_are_fragments() -> None:
    record = run([], devices=16, node_devices=[8, 8])
    free, biggest = np.array([16.0, 8.0, 8.0, 0.0, 3.0]), np.array([8.0, 8.0, 2.0, 0.0, 3.0])
    assert fragmentation(record, free, biggest).tolist() == [0.0, 0.0, 0.75, 0.0, 0.0]


def test_fragmentation_is_averaged_over_time() -> None:
    usage = [(0.0, 0, 4, 4), (5.0, 2, 2, 1), (10.0, 0, 4, 4)]
    record = run([job("a", 0, 0, 10, wish=2)], usage=usage)
    assert over_time(record, bins=2)["fragmentation"] == [0.0, 0.5]
    assert summarise(record)["fragmentation"] == pytest.approx(0.25)


# --------------------------------------------------------------------------- rows of jobs


def test_a_row_for_each_job() -> None:
    rows = list(job_rows(run([job("a", 0, 5, 10, wish=4, deadline=12.0)])))
    (row,) = rows
    assert (row["submit"], row["start"], row["end"]) == (0, 5, 10)
    assert row["sizes"] == [(5, 4), (10, 0)]
    assert row["waits"] == {"capacity": 5}
    assert row["wait_seconds"] == 5.0
    assert row["slowdown"] == 2.0
    assert row["met_deadline"] is True


def test_a_rejected_job_has_a_row_without_times() -> None:
    never = job("a", 3, math.nan, math.nan, state="rejected", sizes=[], device_seconds=0.0)
    (row,) = job_rows(run([never]))
    assert [row[name] for name in ("start", "end", "jct_seconds", "slowdown")] == [None] * 4
    assert row["met_deadline"] is None
