"""`--plot` draws what the report shows, in a file that is the same for the same runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.sim.replays import job, replay

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from bough.cli import main
from bough.sim.figure import write_figure
from bough.sim.record import RunRecord


def records() -> list[RunRecord]:
    jobs = [job(str(i), i * 60.0, 600.0 * (i + 1)) for i in range(6)]
    return [replay(jobs, "2xv100", policy) for policy in ("fifo", "srtf")]


def test_a_figure_names_its_policies_and_axes(tmp_path: Path) -> None:
    write_figure(tmp_path / "out.svg", records())
    words = re.findall(r"<text[^>]*>([^<]+)</text>", (tmp_path / "out.svg").read_text())
    assert {"fifo", "srtf", "completion time", "share of jobs", "1h"} <= set(words)
    assert {"days since the first submission", "devices in use", "100%"} <= set(words)


@pytest.mark.parametrize("name", ["a.svg", "a.pdf", "a.png"])
def test_equal_runs_give_equal_files(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    write_figure(file, records())
    first = file.read_bytes()
    write_figure(file, records())
    assert first == file.read_bytes()


def test_jobs_that_never_end_are_no_points(tmp_path: Path) -> None:
    write_figure(tmp_path / "a.png", [replay([job("a", 0, 100)], until=10.0)])
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_another_ending_is_told_before_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"id":"1","submit":0,"seconds":9,"devices":1,"spec":{"name":"a"}}\n')
    file = tmp_path / "a.xyz"
    words = ["simulate", str(trace), "-c", "1xv100", "-p", "fifo", "-j1", "--plot"]
    assert main([*words, str(file)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"bough: {file}: is no format of figures (one of: ")
    assert said.out == ""
    assert main([*words, str(tmp_path / "a.svg")]) == 0
    assert capsys.readouterr().err == f"wrote {tmp_path / 'a.svg'}\n"
