"""`bough experiment run`: what a file asks for is simulated once, compared, and written down."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from bough.cli import main

TEXT = """
name: Small
traces:
  - {draw: 20, elastic: 0.5, name: drawn}
clusters: [2x8xa100]
loads: [0.8, 1.2]
policies:
  - fifo
  - las: {limits: ["[600]", "[600, 6000]"]}
seeds: 2
world: {start_cost: 30s, speed_error: [0, 0.2]}
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(TEXT)
    return file


def run(*arguments: object) -> int:
    return main(["experiment", "run", *map(str, arguments), "-j", "1"])


def test_all_of_it(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """3 policies x 2 loads x 2 seeds x 2 worlds; a CSV, a page and a table for a paper."""
    assert run(experiment) == 0
    shown = capsys.readouterr()
    assert "24 simulations" in shown.err
    assert "las:limits=[600, 6000]" in shown.out
    folder = experiment.with_suffix("")
    rows = list(csv.DictReader((folder / "rows.csv").read_text().splitlines()))
    assert len(rows) == 24
    assert {row["world"] for row in rows} == {"speed_error=0", "speed_error=0.2"}
    assert all(float(row["mean_jct_seconds"]) > 0 for row in rows)
    page = (folder / "report.md").read_text()
    assert page.startswith("# Small\n\n24 simulations: 3 policies on 8 instances")
    table = (folder / "table.tex").read_text()
    assert table.count("\\\\") == 5
    assert "\\texttt{las:limits=[600, 6000]} &" in table


def test_it_goes_on_where_it_stopped(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that was cut off within a line comes to the same, and a longer list is added."""
    assert run(experiment, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    kept = experiment.with_suffix("") / "rows.jsonl"
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:10]) + lines[10][:25])
    assert run(experiment, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    timing = {"cpu_seconds", "decision_p50_seconds", "decision_p99_seconds"}
    assert [{k: v for k, v in row.items() if k not in timing} for row in first] == [
        {k: v for k, v in row.items() if k not in timing} for row in again
    ]
    whole = kept.read_bytes()
    experiment.write_text(TEXT.replace("seeds: 2", "seeds: 3"))
    assert run(experiment) == 0
    assert kept.read_bytes().startswith(whole)
    assert len(kept.read_bytes().splitlines()) == 36


def test_a_policy_that_was_changed_is_run_again(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = experiment.with_name("mine.py")
    assert main(["policies", "new", str(mine)]) == 0
    experiment.write_text(TEXT.replace("  - fifo", "  - ./mine.py"))
    assert run(experiment) == 0
    kept = experiment.with_suffix("") / "rows.jsonl"
    assert len(kept.read_bytes().splitlines()) == 24
    mine.write_text(mine.read_text() + "# changed\n")
    assert run(experiment) == 0
    assert len(kept.read_bytes().splitlines()) == 32
    assert "mine.py" in capsys.readouterr().out


def test_seeds_that_change_nothing_are_no_evidence(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = experiment.with_name("t.jsonl")
    assert main(["trace", "generate", "--jobs", "10", "--devices", "16", "--out", str(trace)]) == 0
    experiment.write_text(
        "traces: [t.jsonl]\nclusters: [2x8xa100]\npolicies: [fifo, las]\nseeds: 5\n"
    )
    assert run(experiment) == 0
    assert "2 simulations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("fifo", "fiffo"), "small.yaml:8: policies[0]: unknown policy 'fiffo'; did you mean"),
        (("limits:", "limit:"), "has no knob 'limit'; did you mean 'limits'"),
        (("seeds: 2", "seeds: none"), "seeds"),
        (("seeds: 2", "sedes: 2"), "no field is called"),
        (("start_cost: 30s", "start_cost: soon"), "world.start_cost"),
        (("draw: 20", "draw: 0"), "traces[0].draw"),
        (("[2x8xa100]", "[2x8]"), "clusters"),
        (("seeds: 2", "seeds: 2\nbaseline: las"), "is not among the policies"),
        (("seeds: 2", "seeds: 2\nmetrics: [mean_jtc]"), "no number of a run is called"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    experiment: Path,
    change: tuple[str, str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    experiment.write_text(TEXT.replace(*change))
    assert run(experiment) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
