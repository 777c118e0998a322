"""`bough simulate` from end to end: what it prints and writes, and what it says of bad input."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bough.cli import main
from bough.cli.table import duration

TOP_KEYS = ["trace", "cluster", "seed", "lower_bound_mean_jct_seconds", "runs"]
RUN_KEYS = [
    *("policy", "jobs", "completed", "rejected"),
    *("mean_jct_seconds", "p50_jct_seconds", "p95_jct_seconds", "p99_jct_seconds"),
    *("makespan_seconds", "deadline_ratio_submitted", "deadline_ratio_admitted", "utilisation"),
    *("preemptions", "resizes", "migrations", "lost_device_hours"),
    *("cpu_seconds", "decision_p99_seconds"),
]


def line(id: str, submit: float, seconds: float, devices: int, **spec: Any) -> str:
    """A job as a line of one of bough's own traces."""
    asked = {"name": id, "devices": {"min": devices, "max": devices}, "estimate_seconds": seconds}
    job = {"id": id, "submit": submit, "seconds": seconds, "devices": devices}
    return json.dumps(job | {"spec": asked | spec})


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three jobs for four devices: a long one, one that must wait, and a short one."""
    file = tmp_path / "three.jsonl"
    jobs = [line("long", 0, 100, 4), line("wide", 1, 10, 4), line("short", 2, 1, 1, deadline=50.0)]
    file.write_text("\n".join(jobs) + "\n")
    return file


def simulate(trace: Path, *more: str, cluster: str = "1x4xv100") -> int:
    return main(["simulate", str(trace), "--cluster", cluster, "-j1", *more])


def test_json_has_the_promised_keys(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "fifo,srtf", "--seed", "7", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found)[: len(TOP_KEYS)] == TOP_KEYS
    assert (found["trace"], found["cluster"], found["seed"]) == ("three", "1x4xv100", 7)
    assert [list(run)[: len(RUN_KEYS)] for run in found["runs"]] == [RUN_KEYS] * 2
    fifo, srtf = found["runs"]
    assert fifo["mean_jct_seconds"] == pytest.approx((100 + 109 + 109) / 3)
    assert srtf["mean_jct_seconds"] == pytest.approx((111 + 10 + 1) / 3, rel=0.05)
    assert fifo["deadline_ratio_submitted"] == 0.0
    assert srtf["deadline_ratio_submitted"] == 1.0
    bound = found["lower_bound_mean_jct_seconds"]
    assert bound <= srtf["mean_jct_seconds"] + 1e-9


def test_the_program_and_the_module_are_the_same(trace: Path) -> None:
    arguments = ["simulate", str(trace), "-c", "1x4xv100", "-p", "fifo,srtf", "-j2", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "bough", *arguments], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert [run["policy"] for run in found["runs"]] == ["fifo", "srtf"]
    assert done.stderr == ""


def test_the_table(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "fifo,srtf") == 0
    shown = capsys.readouterr().out
    assert "three: 3 jobs on 1x4xv100 (4 devices)" in shown
    assert "mean JCT" in shown
    assert "1m46s" in shown  # 106 s
    assert "No policy can bring the mean JCT of these jobs below" in shown


def test_csv_is_a_row_for_each_policy(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "fifo,srtf", "--csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["policy"] for row in rows] == ["fifo", "srtf"]
    assert list(rows[0])[: len(RUN_KEYS)] == RUN_KEYS
    assert float(rows[0]["mean_jct_seconds"]) == pytest.approx(106.0)


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.jsonl"])
def test_jobs_out_is_a_row_for_each_job(trace: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert simulate(trace, "-p", "fifo,srtf", "--jobs-out", str(file)) == 0
    text = file.read_text()
    rows: list[dict[str, Any]]
    if name.endswith(".csv"):
        rows = list(csv.DictReader(text.splitlines()))
        assert rows[1]["sizes"] == "100:4 110:0"
        assert rows[1]["waits"] == "busy:99"
    else:
        rows = [json.loads(row) for row in text.splitlines()]
        assert rows[1]["sizes"] == [[100.0, 4], [110.0, 0]]
        assert rows[1]["waits"] == {"busy": 99.0}
    assert [(row["policy"], row["id"]) for row in rows[:3]] == [
        ("fifo", "long"),
        ("fifo", "wide"),
        ("fifo", "short"),
    ]
    assert [float(rows[1][key]) for key in ("submit", "start", "end")] == [1.0, 100.0, 110.0]
    assert len(rows) == 6


def test_explain_tells_the_whole_story(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "fifo", "--explain", "wide") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("wide under fifo\n")
    moments = [row.split(maxsplit=2)[:2] for row in shown.splitlines()[1:] if row.strip()]
    assert moments[0] == ["1s", "submitted"]
    assert ["1s", "waits,"] in moments
    assert moments[-1] == ["1m50s", "done"]


def test_explain_goes_into_json_too(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "fifo", "--explain", "wide", "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["stories"]["wide"][0] == [1.0, "submitted"]


def test_the_report_is_written(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.html"
    assert simulate(trace, "-p", "fifo", "--report", str(file)) == 0
    assert '"gantt":{' in file.read_text()
    assert f"wrote {file}" in capsys.readouterr().err


def test_until_cuts_the_run(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "fifo", "--until", "1m", "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["completed"], run["unfinished"]) == (0, 3)
    assert run["makespan_seconds"] <= 60.0


def test_the_same_seed_gives_the_same_runs(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def once() -> dict[str, Any]:
        disturbed = ["--speed-error", "0.3", "--failures", "node=100s/5s", "--seed", "3"]
        assert simulate(trace, "-p", "srtf", "--json", *disturbed) == 0
        (run,) = json.loads(capsys.readouterr().out)["runs"]
        return {
            key: value for key, value in run.items() if not key.startswith(("cpu", "decision_"))
        }

    assert once() == once()


def test_knobs_hold_commas(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(trace, "-p", "las(limits=[10,20]),las:limits=[5,6],fifo", "--json") == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["policy"] for run in runs] == ["las(limits=[10,20])", "las:limits=[5,6]", "fifo"]


def test_queues_come_from_a_file(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text("queues:\n  default:\n    paused: true\n")
    assert simulate(trace, "-p", "fifo", "--queues", str(queues), "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["completed"] == 0


# --------------------------------------------------------------------------- bad input


def refused(capsys: pytest.CaptureFixture[str], trace: Path, *more: str, **cluster: str) -> str:
    """What is said: one line, with exit code 2 and nothing on stdout."""
    assert simulate(trace, *more, **cluster) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said = [text for text in err.splitlines() if text.startswith("bough: ")]
    assert said == err.splitlines()
    assert "Traceback" not in err
    return said[-1].removeprefix("bough: ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-p", "fiffo"], "--policy: unknown policy 'fiffo'; did you mean 'fifo'?"),
        (["-p", "fifo,fifo"], "--policy: fifo is named twice"),
        (["-p", ","], "--policy: names no policy (see `bough policies`)"),
        (["-p", "fifo:nonsense=1"], "--policy: policy 'fifo' has no knob 'nonsense'"),
        (["-p", "fifo", "--json", "--csv"], "--json and --csv cannot both be printed"),
        (["-p", "fifo", "--until", "soon"], "Invalid value for '--until': 'soon' is not a durat"),
        (["-p", "fifo", "--format", "muuri"], "no trace format 'muuri' (did you mean 'muri'?)"),
        (["-p", "fifo", "--explain", "wid"], "--explain: no job 'wid' (did you mean 'wide'?)"),
        (["-p", "fifo", "--failures", "rack=1d"], "--failures: 'rack=1d' is no WHAT=MTBF"),
        (["-p", "fifo", "--failures", "node=0s"], "--failures: must be longer than 0"),
        (["-p", "fifo", "--speed-error", "-1"], "Invalid value for '--speed-error': -1"),
        (["-p", "fifo", "--queues", "nowhere.yaml"], "Invalid value for '--queues': Path"),
        (["-p", "fifo", "--report", "nowhere/out.html"], "nowhere: there is no such folder"),
    ],
)
def test_options_that_make_no_sense(
    trace: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert refused(capsys, trace, *more).startswith(said)


@pytest.mark.parametrize("cluster", ["4x0xv100", "", "big", "nowhere.yaml"])
def test_a_cluster_that_is_none(
    trace: Path, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    assert refused(capsys, trace, "-p", "fifo", cluster=cluster)


def test_a_cluster_too_small_for_a_job(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, trace, "-p", "fifo", cluster="1x2xv100")
    assert said.startswith("three: job long needs at least 4 devices, the cluster has 2")
    assert "--too-big=drop" in said


def test_jobs_too_big_can_be_dropped_or_kept_waiting(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(how: str) -> tuple[int, int]:
        assert (
            simulate(trace, "-p", "fifo:skip=true", "--json", f"--too-big={how}", cluster="2xv100")
            == 0
        )
        (run,) = json.loads(capsys.readouterr().out)["runs"]
        return run["jobs"], run["completed"]

    assert ran("drop") == (1, 1)
    assert ran("wait") == (3, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("nonsense\n", "is of no known trace format"),
        (line("a", -5, 10, 1), "holds no usable job"),
        (line("a", 0, -10, 1), "holds no usable job"),
        (line("a", 0, 10, 0), "holds no usable job"),
        (line("a", 0, 10, 1).replace("10", "NaN"), "holds no usable job"),
    ],
    ids=["empty", "blank", "nonsense", "before time", "negative", "no devices", "nan"],
)
def test_a_trace_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    assert said in refused(capsys, file, "-p", "fifo")


def test_a_bad_row_is_skipped_with_its_number_or_fatal(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace.write_text(trace.read_text() + line("late", 3, -1, 1) + "\n")
    assert simulate(trace, "-p", "fifo", "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["runs"][0]["jobs"] == 3
    assert "skipped" in err
    assert "4" in err
    assert ":4:" in refused(capsys, trace, "-p", "fifo", "--on-bad", "fail")


def test_queues_in_a_circle(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text("queues:\n  a: {parent: b}\n  b: {parent: a}\n")
    said = refused(capsys, trace, "-p", "fifo", "--queues", str(queues))
    assert said.startswith(str(queues))


@pytest.mark.parametrize("rate", ["nan", "-1", "many"])
def test_curves_that_are_none(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: str
) -> None:
    table = tmp_path / "curves.csv"
    table.write_text(f"model,devices,rate\nbert,1,{rate}\n")
    said = refused(capsys, trace, "-p", "fifo", "--speedups", str(table))
    assert said.startswith(f"{table}:2: rate")


# --------------------------------------------------------------------------- how numbers look


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0s"),
        (0.00002, "20µs"),
        (0.25, "250ms"),
        (59.6, "1m"),
        (106, "1m46s"),
        (7200, "2h"),
        (86_400 * 12 + 3600 * 4, "12d4h"),
        (86_400 * 301.4, "301d"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
