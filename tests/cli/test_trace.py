"""`bough trace`: what it prints, what it writes, and one line for whatever is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.sim import samples

from bough.cli import EXIT_BAD_INPUT, main
from bough.sim.trace import read_trace


@pytest.fixture
def chronus(tmp_path: Path) -> Path:
    path = tmp_path / "some.trace"
    path.write_text(samples.CHRONUS)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["trace", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_info_tells_sizes_work_and_what_was_assumed(
    chronus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "info", chronus)
    assert code == 0
    assert "some (chronus)" in out
    assert "3 in 2m" in out
    assert "vc_2 2, vc_1 1" in out
    assert "66.7%, 33.3% ask for a guarantee" in out
    assert "times are read as minutes" in out
    assert "1 row left out: asked for no device" in out


def test_info_json_is_one_object(chronus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "info", chronus, "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["jobs"], told["format"], told["max_devices"]) == (3, "chronus", 2)
    # 7 minutes on one device and twice 9 on two, over two minutes.
    assert told["mean_demand_devices"] == pytest.approx((7 + 18 + 18) / 2)
    assert told["sizes"] == [
        {"devices_max": 1, "jobs": 1, "jobs_share": 1 / 3, "work_share": pytest.approx(7 / 43)},
        {"devices_max": 2, "jobs": 2, "jobs_share": 2 / 3, "work_share": pytest.approx(36 / 43)},
    ]
    assert told["problems"] == []


def test_info_of_a_single_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(samples.TIRESIAS)
    code, out, _ = run(capsys, "info", path, "--unit", "1m", "--elastic", 16)
    assert code == 0
    assert "1 at once" in out
    assert "median 2h27m" in out
    assert "100.0%" in out


def test_convert_writes_our_own_format(chronus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = chronus.with_name("out.jsonl.gz")
    code, printed, err = run(capsys, "convert", chronus, out)
    assert (code, printed) == (0, "")
    assert f"wrote 3 jobs to {out}" in err
    assert "times are read as minutes" in err
    assert gzip.decompress(out.read_bytes()).startswith(b'{"bough_trace":1,"name":"some"')
    assert read_trace(out).jobs == read_trace(chronus).jobs


def test_convert_does_not_overwrite_what_it_reads(
    chronus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "convert", chronus, chronus)
    assert (code, err) == (
        EXIT_BAD_INPUT, f"bough: {chronus}: is the trace itself (choose another name)\n",
    )  # fmt: skip


def test_convert_uses_speed_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, table = tmp_path / "g.trace", tmp_path / "speeds.csv"
    trace.write_text(samples.GAVEL)
    table.write_text(
        "model,kind,batch,devices,rate\n"
        "resnet-50,v100,64,2,10\n"
        "transformer,v100,16,1,5\n"
    )  # fmt: skip
    assert run(capsys, "convert", trace, tmp_path / "o.jsonl")[0] == EXIT_BAD_INPUT
    code, _, _ = run(capsys, "convert", trace, tmp_path / "o.jsonl", "--speedups", table)
    assert code == 0
    assert [job.seconds for job in read_trace(tmp_path / "o.jsonl").jobs] == [300, 100, 100]


def test_generate_keeps_the_load_and_the_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    wanted = {"jobs": 200, "devices": 64, "load": 0.7, "elastic": 0.25, "seed": 3}
    options = [word for name, value in wanted.items() for word in (f"--{name}", value)]
    options += ["--best-effort", 0.5, "--queues", "a,b"]
    for out in (first, second):
        code, _, err = run(capsys, "generate", *options, "--out", out)
        assert (code, err) == (0, f"wrote 200 jobs to {out}\n")
    assert first.read_bytes() == second.read_bytes()
    trace = read_trace(first)
    assert trace.device_seconds() / trace.span_seconds() / 64 == pytest.approx(0.7, rel=0.03)
    assert {job.spec.queue for job in trace.jobs} == {"a", "b"}
    assert sum(job.spec.deadline is None for job in trace.jobs) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere.csv"], "'nowhere.csv' does not exist"),
        (["info", "{chronus}", "--format", "chronos"], "no trace format 'chronos' (did you mean"),
        (["generate", "--devices", "0", "--out", "x"], "--devices: must be at least 1"),
        (
            ["generate", "--devices", "8", "--load", "-1", "--out", "x"],
            "--load: must be a positive",
        ),
        (
            ["generate", "--devices", "8", "--jobs", "999999999999", "--out", "x"],
            "--jobs: must be at most 10,000,000",
        ),
        (["generate", "--devices", "8", "--queues", ",", "--out", "x"], "--queues: must be at"),
        (["generate", "--devices", "8", "--best-effort", "7", "--out", "x"], "--best-effort: must"),
        (["convert", "{chronus}", "{folder}/no/such/file"], "No such file or directory"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str], message: str, chronus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [a.format(chronus=chronus, folder=chronus.parent) for a in arguments]
    code, out, err = run(capsys, *filled)
    assert (code, out) == (EXIT_BAD_INPUT, "")
    assert message in err
    assert err.count("\n") == 1
