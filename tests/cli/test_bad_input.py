"""Input that makes no sense ends in one line and exit code 2, or in a job with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_simulate import line, refused, simulate

from bough.cli import main


def written(folder: Path, *lines: str) -> Path:
    """A trace of these lines."""
    file = folder / "odd.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def with_curve(sizes: list[int], speed: str) -> str:
    """A first line that brings the curve `c`; speeds as they are written."""
    return f'{{"bough_trace": 1, "curves": {{"c": {{"sizes": {sizes}, "speed": {speed}}}}}}}'


def on_curve(devices: int, most: int) -> str:
    """A job that runs on 1 to so many devices with the curve `c`."""
    job = json.loads(line("a", 0, 10, devices))
    job["spec"]["devices"] = {"min": 1, "max": most}
    return json.dumps(job | {"curve": "c"})


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        ("[NaN, 1]", "odd.jsonl:1: JSON is malformed"),
        ("[1e999, 1]", "odd.jsonl:1: "),
        ("[-1, 1]", "odd.jsonl:1: curves: speed[0] is -1.0: it must be finite and not negative"),
        ("[0, 0]", "odd.jsonl:1: curves: speed is 0 everywhere: the job could never run"),
        ("[1]", "odd.jsonl:1: curves: speed has 1 values for 2 sizes"),
    ],
)
def test_curves_of_a_trace_that_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], speed: str, said: str
) -> None:
    file = written(tmp_path, with_curve([1, 2], speed), on_curve(1, 2))
    assert said in refused(capsys, file, "-p", "fifo")


@pytest.mark.parametrize(
    ("curve", "job", "said"),
    [
        (
            "[0, 1]",
            on_curve(1, 2),
            "job a ran on 1 devices in the trace, but its speed-up curve is",
        ),
        ("[0, 1]", on_curve(2, 1), "job a cannot run on any of its sizes [1]: its speed-up curve"),
    ],
)
def test_a_job_whose_curve_says_that_it_cannot_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], curve: str, job: str, said: str
) -> None:
    file = written(tmp_path, with_curve([1, 2], curve), job)
    assert refused(capsys, file, "-p", "fifo").startswith(said)


@pytest.mark.parametrize("too_big", ["fail", "drop", "wait"])
def test_a_level_that_the_cluster_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], too_big: str
) -> None:
    job = line("a", 0, 10, 1, topology={"mode": "require", "level": "nod"})
    said = refused(capsys, written(tmp_path, job), "-p", "fifo", "--too-big", too_big)
    assert "job a asks for a place by level 'nod', which the cluster lacks" in said
    assert "did you mean 'node'?" in said


def test_a_kind_that_the_cluster_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, written(tmp_path, line("a", 0, 10, 1, kinds=["h100"])), "-p", "fifo")
    assert "job a accepts only h100; the cluster has v100" in said


@pytest.mark.parametrize(
    "more",
    [
        ["--seed", "-1"],
        ["--seed", "x"],
        ["--jobs", "0"],
        ["--speed-error", "nan"],
        ["--speed-error", "inf"],
        ["--stragglers", "nan"],
        ["--interference", "1.01"],
        ["--start-cost", "-5s"],
        ["--park-cost", "nan"],
        ["--until", "-1h"],
        ["--round", "now"],
        ["--failures", "node=nan"],
        ["--failures", "node=1d/-1h"],
        ["--elastic", "0"],
        ["--speedups", "nowhere"],
        ["-p", "las:limits=[5,3]"],
        ["-p", "las:limits=[1"],
        ["-p", "edf:greedy=maybe"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_numbers_and_names_that_make_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert refused(capsys, written(tmp_path, line("a", 0, 10, 1)), "-p", "fifo", *more)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sweep", "-c", "0xv100", "-p", "fifo"],
        ["sweep", "-c", "1xv100", "-p", "fiffo"],
        ["sweep", "-c", "1xv100", "-p", "fifo", "--loads", "nan"],
        ["sweep", "-c", "1xv100", "-p", "fifo", "--loads", "0"],
        ["sweep", "-c", "1xv100", "-p", "fifo", "--seeds", "-1"],
        ["sweep", "-c", "1xv100", "-p", "fifo", "--seeds", "inf"],
        ["sweep", "-c", "1xv100", "-p", "fifo", "--draw-elastic", "nan"],
        ["sweep", "-c", "1xv100", "-p", "fifo", "--draw-jobs", "0"],
        ["demo", "--seed", "-1"],
        ["trace", "generate", "--devices", "8", "--elastic", "nan", "--out", "x"],
        ["trace", "generate", "--devices", "8", "--load", "nan", "--out", "x"],
        ["trace", "generate", "--devices", "8", "--sigma", "nan", "--out", "x"],
        ["trace", "generate", "--devices", "8", "--seconds", "0", "--out", "x"],
        ["trace", "generate", "--devices", "8", "--seed", "-1", "--out", "x"],
        ["policies", "show", ""],
    ],
    ids=" ".join,
)
def test_other_commands_refuse_in_one_line_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bough: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


# --------------------------------------------------------------------------- odd, but no error


def told(
    capsys: pytest.CaptureFixture[str], trace: Path, *more: str, cluster: str = "2x2xv100"
) -> dict[str, Any]:
    """The one run of a simulation that works, with the story of job a."""
    assert simulate(trace, "--json", "--explain", "a", *more, cluster=cluster) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert isinstance(run, dict)
    return run


ODD = {
    "too-big": line("a", 0, 10, 64),
    "kind": line("a", 0, 10, 1, kinds=["h100"]),
    "topology": line("a", 0, 10, 4, topology={"mode": "require", "level": "node"}),
    "dependency": line("a", 0, 10, 1, after=[{"job": "never"}]),
}


@pytest.mark.parametrize(
    "more", [[], ["--failures", "node=1h/1m,device=2h/1m"]], ids=["", "broken"]
)
@pytest.mark.parametrize("why", ODD)
def test_a_job_that_can_never_start_is_left_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], why: str, more: list[str]
) -> None:
    file = written(tmp_path, ODD[why], line("b", 5, 10, 1))
    run = told(capsys, file, "-p", "srtf", "--too-big=wait", *more)
    assert (run["jobs"], run["completed"], run["unfinished"]) == (2, 1, 1)
    assert next(iter(run["waits_seconds"])) == why
    assert any(f"waits, {why}: " in sentence for _, sentence in run["stories"]["a"])


def test_jobs_that_wait_for_each_other_are_left_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [line("a", 0, 10, 1, after=[{"job": "b"}]), line("b", 5, 10, 1, after=[{"job": "a"}])]
    run = told(capsys, written(tmp_path, *jobs), "-p", "fifo")
    assert run["unfinished"] == 2
    assert "It waits for b to end" in run["stories"]["a"][-1][1]


@pytest.mark.parametrize("policy", ["edf", "fifo"])
def test_a_deadline_that_has_passed_is_missed_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    jobs = [line("a", 100, 10, 1, deadline=5.0), line("b", 100, 10, 1, deadline=500.0)]
    run = told(capsys, written(tmp_path, *jobs), "-p", policy)
    assert (run["completed"], run["deadline_ratio_submitted"]) == (2, 0.5)


def test_queues_that_promise_more_than_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text("queues:\n  lab: {guarantee: 64}\n  rest: {guarantee: 64}\n")
    jobs = [line("a", 0, 10, 4, queue="lab"), line("b", 0, 10, 4, queue="rest")]
    run = told(capsys, written(tmp_path, *jobs), "-p", "fifo", "--queues", str(queues))
    assert run["completed"] == 2
