"""Published numbers come out again, and each habit of a peer is what it says it is."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.datasets import FOLDER, data

from bough.cli import COMMANDS, main
from bough.core.topology import Slots
from bough.errors import InputError
from bough.sim.engine import simulate
from bough.sim.reproduce import ALL, FIGURES, HOUSE, OWN, PEERS, chart, figures, muri, reproduce
from bough.sim.reproduce.elasticflow import SETTINGS
from bough.sim.reproduce.lists import ListLas, Memory
from bough.sim.reproduce.overhead import start_up_seconds
from bough.sim.reproduce.page import TITLES, difference, page, section
from bough.sim.reproduce.places import counted, first_fit, freest_first
from bough.sim.reproduce.released import Released
from bough.sim.reproduce.rows import Cause, Row, compare
from bough.sim.reproduce.slots import Clock
from bough.sim.trace import read_text

ROOT = Path(__file__).parent.parent.parent
AGREE = Cause("the same: for a reason", "for another reason")


def rows(name: str, *needed: str) -> list[Row]:
    """The rows of a peer, if its data is there."""
    for path in needed:
        data(path)
    return reproduce(name, FOLDER)


def wrong(found: list[Row], limit: float) -> list[str]:
    return [
        f"{row.trace} {row.policy} {row.metric}: {row.difference:+.4%}"
        for row in found
        if abs(row.difference) > limit
    ]


# ------------------------------------------------------------------------- published numbers


@pytest.mark.data
def test_muri_is_exact() -> None:
    found = rows("muri", "muri/trace1.csv.gz", "muri/trace3.csv.gz")
    assert len(found) == 2 * 3 * 3
    assert wrong(found, 1e-6) == []
    assert all(row.cause.startswith("the same") for row in found)


@pytest.mark.data
def test_muri_job_by_job() -> None:
    """Every single job under Tiresias-L ends when it does in the authors' simulator."""
    name = "peer-outcomes/muri-zero-overhead/trace3/dlas-gpu.job.csv.gz"
    theirs = {row["job_id"]: row for row in csv.DictReader(read_text(data(name)).splitlines())}
    trace = muri.load(FOLDER, "trace3")
    record = simulate(trace, counted(64, "v100"), ListLas(limits=muri.LIMITS))
    late = {job.id: job.end - float(theirs[job.id]["end_time"]) for job in record.jobs}
    assert {id: seconds for id, seconds in late.items() if abs(seconds) > 1e-3} == {}


@pytest.mark.data
def test_tiresias_is_exact() -> None:
    found = rows("tiresias", "tiresias/60_job.csv")
    theirs = [row for row in found if "our places" not in row.trace]
    assert len(theirs) == 6
    assert wrong(theirs, 1e-4) == []


@pytest.mark.data
def test_elasticflow_is_exact() -> None:
    found = rows(
        "elasticflow",
        "elasticflow/traces",
        "elasticflow-traces/cluster01.csv.gz",
    )
    baselines = [row for row in found if row.policy in ("edf(greedy=true)", "las")]
    assert len(baselines) == 3 * 2 * 3
    assert wrong(baselines, 2e-6) == []
    (sane,) = [row for row in found if row.policy == "edf"]
    assert sane.ours > 5 * sane.theirs


@pytest.mark.data
@pytest.mark.parametrize(("rule", "ratio"), [("greedy", 0.4103), ("elastic", 0.7282)])
def test_elasticflow_admits_whom_it_admits_there(
    rule: Literal["greedy", "elastic"], ratio: float
) -> None:
    data("elasticflow/traces/elasticVpollux_e.csv")
    setting = SETTINGS[0]
    trace, book = figures.elastic(FOLDER, setting)
    found = figures.as_released(setting, trace, book, Released(setting.slot_seconds, rule))
    assert found == pytest.approx(ratio, abs=5e-4)


@pytest.mark.data
def test_elasticflow_on_figure_10() -> None:
    found = rows("elasticflow-fig10", "elasticflow/traces/generated_fig10_100jobs_1500lam.csv")
    assert wrong([row for row in found if row.policy != "gandiva"], 0.06) == []


@pytest.mark.data
def test_drawn_jobs_are_like_theirs() -> None:
    data("elasticflow/throughputs_A100")
    book = figures.a100(FOLDER)
    trace = figures.drawn(2000, 1500.0, book, best_effort=0.3)
    assert trace.jobs == figures.drawn(2000, 1500.0, book, best_effort=0.3).jobs
    seconds = np.array([job.seconds for job in trace.jobs])
    assert np.mean([job.devices == 1 for job in trace.jobs]) == pytest.approx(0.83, abs=0.03)
    assert np.mean(seconds > 60 * 10**2.5) == pytest.approx(0.2, abs=0.03)
    assert np.mean([job.spec.deadline is None for job in trace.jobs]) == pytest.approx(
        0.3, abs=0.03
    )
    assert trace.jobs[-1].submit / 2000 == pytest.approx(1500.0, rel=0.05)


@pytest.mark.data
def test_gavel_fifo_on_three_kinds() -> None:
    found = rows("gavel", "gavel/traces/physical_cluster/max_min_fairness.trace.gz")
    assert wrong([row for row in found if row.policy == "fifo, aware of kinds"], 1e-3) == []
    assert wrong([row for row in found if row.policy.startswith("las")], 0.1) == []
    ours = [row for row in found if row.policy.startswith("gavel") and "aware" not in row.policy]
    assert len(ours) == 8
    assert wrong(ours, 0.025) == []


@pytest.mark.data
def test_shockwave_is_explained() -> None:
    found = rows("shockwave", "shockwave/traces")
    assert wrong([row for row in found if row.policy == "las"], 0.1) == []
    # What the others are measured at; the page says that it is not taken apart.
    assert wrong(found, 0.15) == []
    assert {"116 of 120", "867 of 900"} <= {row.cause.partition("(")[2][:10] for row in found}


@pytest.mark.data
def test_leases_on_elasticflows_figures() -> None:
    """Within what is measured: closest where the draw of deadlines is the figure's."""
    found = rows(
        "elasticflow-leases", "elasticflow/traces/elasticVpollux_e.csv", "elasticflow-traces"
    )
    ours = {(row.trace.partition("/")[2], row.policy, row.metric): row.ours for row in found}
    assert len(ours) == 12
    assert ours["figure 10, 100 jobs", "themis", "mean_jct_seconds"] == pytest.approx(51_243, 0.01)
    by_themis = [row for row in found if row.policy == "themis" and "8b" not in row.trace]
    assert wrong(by_themis, 0.125) == []
    # The figures' order: Chronus keeps no fewer deadlines than Themis wherever both are printed.
    for name in ("figure 6b", "figure 8b, cluster01", "figure 8b, cluster03"):
        ratio = {policy: ours[name, policy, "deadline_ratio"] for policy in ("themis", "chronus")}
        assert ratio["chronus"] >= ratio["themis"] - 1e-9


@pytest.mark.data
def test_pollux_workloads() -> None:
    found = rows("pollux", "pollux-osdi21/workloads/workload-1.csv")
    theirs = {row.trace: row for row in found if "our places" not in row.trace}
    assert abs(theirs["pollux/workload-1"].difference) < 5e-3
    assert abs(theirs["pollux/workload-3"].difference) < 1e-3


@pytest.mark.data
def test_the_page_says_what_comes_out() -> None:
    found = rows("tiresias", "tiresias/60_job.csv")
    text = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    assert section("tiresias", found) in text, "run `bough reproduce all --markdown`"


# ------------------------------------------------------------------------------ their habits


def test_lists_remember_who_came_when() -> None:
    memory = Memory()
    memory.recall(np.array([10, 11, 12]))
    assert memory.order().tolist() == [0, 1, 2]
    memory.park(np.array([False, True, True]))
    assert memory.order().tolist() == [1, 2, 0], "who waits stands behind those that run"
    memory.recall(np.array([10, 12, 13]))
    assert memory.order().tolist() == [1, 0, 2], "11 is gone, 13 is last"
    memory.fall(np.array([1]))
    memory.recall(np.array([10, 12, 13, 14]))
    assert memory.order().tolist() == [0, 2, 3, 1], "12 is in the next queue"


def test_decisions_are_whole_seconds_and_a_slot_apart() -> None:
    clock = Clock()
    assert clock.wait_until(10.0, 60.0) is None
    assert clock.wait_until(10.0, 60.0) is None, "the same moment once more"
    assert clock.wait_until(10.4, 60.0) == 70.0
    assert clock.wait_until(70.0 - 1e-9, 60.0) is None, "rounding is forgiven"
    assert clock.wait_until(200.3, 60.0) == 201.0


@pytest.mark.parametrize(
    ("free", "size", "place"),
    [
        ([0b0011, 0b1111, 0b1111], 2, ((0, 0b0011),)),
        ([0b0001, 0b1101, 0b1111], 2, ((1, 0b0101),)),
        ([0b0001, 0b1111, 0b1111], 8, ((1, 0b1111), (2, 0b1111))),
        ([0b0111, 0b1111, 0b0111], 8, None),
        ([0b0001, 0b0001, 0b0011], 4, None),
    ],
)
def test_first_fit(free: list[int], size: int, place: Slots | None) -> None:
    assert first_fit(4)(free, size) == place


@pytest.mark.parametrize(
    ("free", "size", "place"),
    [
        ([0b0011, 0b1111], 2, ((1, 0b0011),)),
        ([0b0011, 0b1111, 0b0111], 6, ((1, 0b1111), (2, 0b0011))),
        ([0b0011, 0b0001], 4, None),
    ],
)
def test_freest_node_first(free: list[int], size: int, place: Slots | None) -> None:
    assert freest_first(free, size) == place


def test_start_up_grows_with_the_job_the_cluster_and_a_restart() -> None:
    size = np.array([1, 8])
    assert start_up_seconds(size, 64, restart=False).tolist() == [4.0, 10.0]
    assert start_up_seconds(size, 64, restart=True).tolist() == [31.0, 37.0]
    assert start_up_seconds(size, 512, restart=True).tolist() == [56.0, 62.0]


# ------------------------------------------------------------------------------ rows and pages


@pytest.mark.parametrize(
    ("ours", "printed", "cause"),
    [
        (178.4167, "178.42", "the same: for a reason"),
        (178.4249, "178.42", "the same: for a reason"),
        (178.4251, "178.42", "for another reason"),
        (23.0, "23", "the same: for a reason"),
    ],
)
def test_the_cause_follows_the_numbers(ours: float, printed: str, cause: str) -> None:
    (row,) = compare("peer/trace", "las", {"x": ours}, {"x": printed}, AGREE)
    assert (row.ours, row.theirs, row.cause) == (ours, float(printed), cause)
    assert row.difference == pytest.approx(ours / float(printed) - 1)


def test_differences_are_shown_as_people_read_them() -> None:
    assert [difference(x) for x in (1e-5, 0.0312, -1.5)] == ["0.00 %", "+3.12 %", "-150.00 %"]


def test_a_page_has_a_table_and_numbered_reasons() -> None:
    found = [
        Row("muri/a", "las", "mean_jct_seconds", 2.0, 1.0, 1.0, "one"),
        Row("muri/b", "las", "mean_jct_seconds", 1.0, 1.0, 0.0, "two"),
        Row("gavel/c", "las", "mean_jct_seconds", 1.0, 1.0, 0.0, "two"),
    ]
    text = page(found)
    assert "| b | `las` | mean JCT (s) | 1.0000 | 1.0000 | 0.00 % | 2 |\n\n1. One.\n2. Two." in text
    assert text.index("## Muri") < text.index("## Gavel") < text.index("## Where the traces")


def test_every_peer_has_a_title() -> None:
    assert {name.partition("-")[0] for name in PEERS} == set(TITLES)


def test_a_chart_has_two_bars_for_each_number(tmp_path: Path) -> None:
    found = [
        Row("muri/a & b", "las", "mean_jct_seconds", 2.0, 1.0, 1.0, "one"),
        Row("muri/c", "las", "deadline_ratio", 0.25, 0.5, -0.5, "two"),
    ]
    chart.write(chart.chart(found), tmp_path / "chart.svg")
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("height") == "8"]
    assert [float(e.get("width", "")) for e in bars] == [380.0, 190.0, 190.0, 380.0]
    words = " ".join(e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "a & b: las" in words
    with pytest.raises(InputError, match="is no format of charts"):
        chart.check(Path("chart.docx"))


# --------------------------------------------------------------------------------- the command


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [*PEERS, *OWN, FIGURES, HOUSE, ALL]
    assert all(line.endswith(".") and len(line) <= 120 for line in listed)


def test_help_names_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert "reproduce" in COMMANDS
    assert main(["reproduce", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in [*PEERS, "all"] if name not in shown] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mury"], "nothing to reproduce is called 'mury' (did you mean 'muri'?)"),
        (["muri"], "needs the public traces (give --data DIR or set BOUGH_DATA;"),
        (["muri", "--data", "absent"], "absent: there is no such folder ("),
        (["muri", "--data", "."], "muri/trace1.csv: this part of the public data is absent ("),
        (["muri", "--json", "--markdown"], "--json and --markdown exclude each other"),
    ],
)
def test_what_is_missing_is_one_line(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("BOUGH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bough: ")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.data
def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    data("tiresias/60_job.csv")
    assert main(["reproduce", "tiresias", "--data", str(FOLDER), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["rows"]
    keys = ["trace", "policy", "metric", "ours", "theirs", "difference", "cause"]
    assert all(list(row) == keys for row in answer["rows"])


@pytest.mark.data
def test_as_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data("tiresias/60_job.csv")
    monkeypatch.setenv("BOUGH_DATA", str(FOLDER))
    assert main(["reproduce", "tiresias"]) == 0
    shown = capsys.readouterr().out
    assert "219.18" in shown
    assert "-3.53 %" in shown
    assert " 3  Theirs takes the first node with room" in shown


@pytest.mark.data
def test_the_power_model_is_near_zeus() -> None:
    found = rows("zeus", "zeus/nsdi23-trace")
    assert len(found) == 8
    assert wrong(found, 0.08) == []


@pytest.mark.data
def test_power_flows_where_the_papers_say() -> None:
    """At equal energy nobody is nearer than the abstract says; carbon is saved where it swings."""
    found = rows("powerflow", "elasticflow-traces/195job.csv.gz", "elasticflow/throughputs_A100")
    assert min(row.ours for row in found) > 1.57
    saved = rows("carbonscaler", "carboncast", "carbonscaler")
    assert [round(row.ours, 2) for row in saved] == [0.35, 0.03, 0.10]
