"""A sweep runs every point once, keeps what it has, and never mixes two sweeps in one file."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from bough.core.cluster import parse_short
from bough.errors import InputError
from bough.sim.options import Options
from bough.sim.sweep import (
    Drawn,
    Point,
    Sweep,
    at_load,
    averages,
    fingerprint,
    offered_load,
    points,
    sweep,
    trace_at,
)
from bough.sim.synthetic import Mix, generate

CLUSTER = parse_short("2x4xv100")
COMMON = Sweep(
    source=Drawn(jobs=20, elastic=0.5), cluster=CLUSTER, cluster_name="2x4xv100", options=Options()
)
WANTED = points([0.5, 0.9], ["fifo", "srtf"], [1, 2])


def quiet(share: float) -> None:
    """Nobody watches."""


def test_every_combination_with_the_policies_of_a_trace_together() -> None:
    assert points([None], ["a", "b"], [1, 2]) == [
        Point(None, "a", 1),
        Point(None, "b", 1),
        Point(None, "a", 2),
        Point(None, "b", 2),
    ]


def test_rows_come_in_the_order_of_the_points(tmp_path: Path) -> None:
    rows = sweep(COMMON, WANTED, tmp_path / "out.jsonl", 1, quiet)
    assert [(row["load"], row["policy"], row["seed"]) for row in rows] == [
        (point.load, point.policy, point.seed) for point in WANTED
    ]
    assert all(row["completed"] == 20 for row in rows)


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    whole = sweep(COMMON, WANTED, file, 1, quiet)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:40])  # killed while writing the fourth

    told: list[float] = []
    again = sweep(COMMON, WANTED, file, 1, told.append)

    assert min(told) >= 3 / 8  # the first three were not run again
    assert without_clocks(again) == without_clocks(whole)
    assert again[:3] == whole[:3]
    assert len(file.read_bytes().splitlines()) == 8


def without_clocks(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    measured = {"cpu_seconds", "decision_p50_seconds", "decision_p99_seconds"}
    return [{key: row[key] for key in row if key not in measured} for row in rows]


def test_a_finished_sweep_runs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    whole = sweep(COMMON, WANTED[:2], file, 1, quiet)
    written = file.read_bytes()
    assert sweep(COMMON, WANTED[:2], file, 1, quiet) == whole
    assert file.read_bytes() == written


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    one = sweep(COMMON, WANTED[:2], tmp_path / "one.jsonl", 1, quiet)
    told: list[float] = []
    two = sweep(COMMON, WANTED[:2], tmp_path / "two.jsonl", 2, told.append)
    assert without_clocks(one) == without_clocks(two)
    assert told[-1] == 1.0


def test_another_sweep_in_the_same_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    sweep(COMMON, WANTED[:1], file, 1, quiet)
    other = msgspec.structs.replace(COMMON, options=Options(speed_error=0.2))
    assert fingerprint(other) != fingerprint(COMMON)
    with pytest.raises(InputError, match=r"out\.jsonl:1: holds another sweep \(.*--restart"):
        sweep(other, WANTED[:1], file, 1, quiet)


@pytest.mark.parametrize("line", ["no json", "[]", '{"sweep": "x"}', '{"sweep": "x", "load": []}'])
def test_a_file_that_is_no_sweep_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(InputError, match=r"out\.jsonl:1: "):
        sweep(COMMON, WANTED[:1], file, 1, quiet)
    assert file.read_text() == line + "\n"


@pytest.mark.parametrize("load", [0.2, 0.8, 1.7])
def test_arrivals_are_stretched_to_the_load(load: float) -> None:
    trace = generate(50, 8, 0.5, 0.5, seed=1, mix=Mix(best_effort=0.0))
    moved = at_load(trace, 8, load)
    assert offered_load(moved, 8) == pytest.approx(load)
    assert moved.jobs[0].submit == trace.jobs[0].submit
    for before, after in zip(trace.jobs, moved.jobs, strict=True):
        assert before.spec.deadline is not None
        assert after.spec.deadline is not None
        slack = before.spec.deadline - before.submit
        assert after.spec.deadline - after.submit == pytest.approx(slack)


def test_a_trace_that_comes_at_once_has_no_load() -> None:
    trace = generate(5, 8, 0.5, 0.5, seed=1, mix=Mix(arrivals="at-once"))
    with pytest.raises(InputError, match="at once"):
        at_load(trace, 8, 0.5)


def test_every_policy_of_a_point_gets_the_same_trace() -> None:
    first, second = (trace_at(COMMON, Point(0.5, policy, 3)) for policy in ("fifo", "srtf"))
    assert first == second
    assert trace_at(COMMON, Point(0.5, "fifo", 4)) != first


def test_averages_are_over_seeds(tmp_path: Path) -> None:
    rows = [
        {"load": 0.5, "policy": "a", "seed": 1, "mean_jct_seconds": 1.0, "deadline": None},
        {"load": 0.5, "policy": "a", "seed": 2, "mean_jct_seconds": 3.0, "deadline": 0.5},
        {"load": 0.9, "policy": "a", "seed": 1, "mean_jct_seconds": None, "deadline": None},
    ]
    first, second = averages(rows)
    assert (first["load"], first["policy"], first["seeds"]) == (0.5, "a", 2)
    assert first["mean_jct_seconds"] == 2.0
    assert first["deviation_mean_jct_seconds"] == pytest.approx(2**0.5)
    assert first["deadline"] == 0.5
    assert second["mean_jct_seconds"] is None


def test_lines_are_json_with_their_point(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    sweep(COMMON, WANTED[:1], file, 1, quiet)
    (line,) = file.read_text().splitlines()
    row = json.loads(line)
    assert (row["load"], row["policy"], row["seed"]) == (0.5, "fifo", 1)
    assert row["sweep"] == fingerprint(COMMON)
