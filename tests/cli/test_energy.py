"""Energy, carbon, cost and budgets on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_simulate import line

from bough.cli import main


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.jsonl"
    file.write_text("\n".join(line(str(i), 0, 3600, 1) for i in range(4)) + "\n")
    return file


def simulate(trace: Path, *more: str) -> int:
    return main(["simulate", str(trace), "-c", "1x4xv100", "-j1", "-p", "fifo", *more])


def test_what_was_asked_for_is_told(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "--carbon", "500", "--price", "0.2", "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["carbon_kg"] == pytest.approx(run["energy_kwh"] * 0.5)
    assert run["cost"] == pytest.approx(run["energy_kwh"] * 0.2)
    assert run["most_of_a_budget"] is None
    assert simulate(trace, "--energy", "--json") == 0
    (alone,) = json.loads(capsys.readouterr().out)["runs"]
    assert (alone["energy_kwh"], alone["carbon_kg"]) == (run["energy_kwh"], None)
    assert simulate(trace, "--json") == 0
    (none,) = json.loads(capsys.readouterr().out)["runs"]
    assert none["energy_kwh"] is None
    assert none["mean_jct_seconds"] == run["mean_jct_seconds"]


def test_a_budget_makes_jobs_wait(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An hour of four jobs takes more than half a kWh, so it is not done in one hour's window."""
    assert simulate(trace, "--energy-budget", "500Wh/1h", "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["makespan_seconds"] > 3600
    assert 0.9 < run["most_of_a_budget"] <= 1.0 + 1e-9
    assert "budget" in run["waits_seconds"]
    assert simulate(trace, "--energy-budget", "500Wh/1h") == 0
    assert "of budget" in capsys.readouterr().out


def test_jobs_out_has_each_jobs(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "jobs-out.jsonl"
    assert simulate(trace, "--energy", "--jobs-out", str(out)) == 0
    rows = [json.loads(text) for text in out.read_text().splitlines()]
    assert all(row["energy_kwh"] > 0.2 and row["carbon_kg"] is None for row in rows)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--energy-budget", "much"], "--energy-budget: 'much' is no budget: write it like 120kWh"),
        (["--energy-budget", "5kg"], "--energy-budget: '5kg' is no budget"),
        (["--carbon-budget", "5kg/never"], "--carbon-budget: 'never' is not a duration"),
        (["--carbon-budget", "5kg/0s"], "--carbon-budget: the window of a budget"),
        (
            ["--carbon-budget", "5kg"],
            "a carbon budget needs a carbon intensity (give it with",
        ),
        (["--cost-budget", "5"], "a budget of money needs a price (give it with --price)"),
        (["--carbon", "-5"], "--carbon: -5 must be 0 or more"),
        (["--price", "no.csv"], "no.csv: there is no such file"),
    ],
)
def test_what_makes_no_sense_is_told(
    trace: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert simulate(trace, *more) == 2
    assert said in capsys.readouterr().err
