"""`bough sweep` from end to end: drawn and given traces, going on, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bough.cli import main
from bough.cli.sweep import read_loads, read_seeds
from bough.errors import InputError


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sweep.jsonl"


def sweep(out: Path, *more: str) -> int:
    common = ["-c", "2x4xv100", "-p", "fifo,srtf", "-j1", "--draw-jobs", "10", "--out", str(out)]
    return main(["sweep", *more, *common])


def test_the_table_has_a_line_for_each_load_and_policy(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep(out, "--loads", "0.5,0.9", "--seeds", "2") == 0
    shown = capsys.readouterr().out.splitlines()
    starts = [line.split()[:2] for line in shown if line.startswith(("0.5", "0.9"))]
    assert starts == [["0.5", "fifo"], ["0.5", "srtf"], ["0.9", "fifo"], ["0.9", "srtf"]]
    assert len(out.read_text().splitlines()) == 8


def test_json_has_means_over_seeds(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(out, "--seeds", "4,7", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["load"], row["policy"], row["seeds"]) for row in rows] == [
        (0.8, "fifo", 2),
        (0.8, "srtf", 2),
    ]
    seeds = [json.loads(line)["seed"] for line in out.read_text().splitlines()]
    assert sorted(seeds) == [4, 4, 7, 7]


def test_more_seeds_add_to_the_file(out: Path) -> None:
    assert sweep(out, "--seeds", "1") == 0
    before = out.read_text()
    assert sweep(out, "--seeds", "2") == 0
    assert out.read_text().startswith(before)
    assert len(out.read_text().splitlines()) == 4


def test_restart_forgets(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out.write_text("something else\n")
    assert sweep(out, "--seeds", "1") == 2
    assert "is no line of a sweep" in capsys.readouterr().err
    assert sweep(out, "--seeds", "1", "--restart") == 0
    assert len(out.read_text().splitlines()) == 2


def test_a_given_trace_is_stretched(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.jsonl"
    jobs = [
        {"id": str(i), "submit": 10.0 * i, "seconds": 30.0, "devices": 4, "spec": {"name": "j"}}
        for i in range(10)
    ]
    for job in jobs:
        job["spec"] = {"name": "j", "devices": {"min": 4, "max": 4}, "estimate_seconds": 30.0}
    trace.write_text("\n".join(map(json.dumps, jobs)))
    assert sweep(out, str(trace), "--loads", "0.2,2", "--seeds", "1", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    idle, crowded = rows[0], rows[2]
    assert idle["mean_jct_seconds"] == pytest.approx(30.0)
    assert crowded["mean_jct_seconds"] > 45.0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--loads", "0.5,lots"], "--loads: 'lots' is no number"),
        (["--loads", "0"], "--loads: 0 is not within 0.001..100"),
        (["--loads", "0.5,0.5"], "--loads: names something twice"),
        (["--seeds", ","], "--seeds: is empty"),
        (["--out", "nowhere/s.jsonl"], "nowhere: there is no such folder"),
    ],
)
def test_options_that_make_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    common = ["-c", "2x4xv100", "-p", "fifo", "-j1", "--out", str(tmp_path / "s.jsonl")]
    assert main(["sweep", *common, *more]) == 2
    assert capsys.readouterr().err == f"bough: {said}\n"


def test_loads_and_seeds() -> None:
    assert read_loads(None, drawn=False) == [None]
    assert read_loads("0.5, 1", drawn=True) == [0.5, 1.0]
    assert read_seeds("3") == [0, 1, 2]
    assert read_seeds("5,9") == [5, 9]
    assert read_seeds("0,") == [0]
    with pytest.raises(InputError, match="--seeds: must be at least 1"):
        read_seeds("0")
