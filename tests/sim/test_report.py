"""The page stands alone, shows every policy, stays small, and its script runs in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.sim.records import job, run

from bough.core.reason import CODES
from bough.sim.record import JobRecord, RunRecord
from bough.sim.report import CURVE_POINTS, TIME_BINS, Limits, contents, curve, render, write_report
from bough.sim.results import summarise

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def placed(id: str, submit: float, begin: float, end: float, devices: tuple[int, ...]) -> JobRecord:
    """A job on these devices of the one node."""
    place = (("node-0", devices),)
    return job(id, submit, begin, end, len(devices), places=[(begin, place), (end, ())])


@pytest.fixture
def records() -> list[RunRecord]:
    """Two policies, the second of which lets b wait for a."""
    side_by_side = [placed("a", 0, 0, 100, (0, 1)), placed("b", 0, 0, 50, (2, 3))]
    one_by_one = [placed("a", 0, 0, 100, (0, 1)), placed("b", 0, 100, 150, (0, 1))]
    return [run(side_by_side, policy="good"), run(one_by_one, policy="bad")]


def summaries(records: list[RunRecord]) -> list[dict[str, object]]:
    return [summarise(record) for record in records]


def data_of(page: str) -> dict[str, object]:
    match = DATA.search(page)
    assert match
    found: dict[str, object] = json.loads(match[1])
    return found


def test_nothing_is_fetched(records: list[RunRecord]) -> None:
    page = render(records)
    addresses = set(re.findall(r"https?://[^\"'\s]+", page)) - {"http://www.w3.org/2000/svg"}
    assert addresses == set()
    assert not re.search(r"\bsrc=|<link|@import|url\(", page)


def test_every_policy_is_there_with_its_numbers(records: list[RunRecord]) -> None:
    data = data_of(render(records, bound=75.0))
    assert data["bound"] == 75.0
    runs = data["runs"]
    assert isinstance(runs, list)
    assert [r["summary"]["policy"] for r in runs] == ["good", "bad"]
    assert [r["summary"]["mean_jct_seconds"] for r in runs] == [75.0, 125.0]
    assert all(len(r["time"]["utilisation"]) == TIME_BINS for r in runs)


def test_the_chart_of_devices_has_every_stay(records: list[RunRecord]) -> None:
    data = contents(records, summaries(records), None, Limits())
    gantt = data["runs"][1]["gantt"]
    ticks = data["tick"]
    stays = [gantt["spans"][i : i + 5] for i in range(0, len(gantt["spans"]), 5)]
    assert [(row, rows, job) for row, rows, _, _, job in stays] == [(0, 2, 0), (0, 2, 1)]
    assert [round(begin * ticks) for _, _, begin, _, _ in stays] == [0, 100]
    assert [round(long * ticks) for _, _, _, long, _ in stays] == [100, 50]
    assert [label[0] for label in gantt["jobs"]] == ["a", "b"]


def test_without_places_there_is_no_chart_of_devices() -> None:
    plain = [run([job("a", 0, 0, 1)])]
    assert contents(plain, summaries(plain), None, Limits())["runs"][0]["gantt"] is None


def test_a_name_cannot_break_out_of_the_page(records: list[RunRecord]) -> None:
    evil = "</script><script>alert(1)</script><!--"
    page = render([run([placed(evil, 0, 0, 1, (0,))], policy="p", trace=evil)])
    assert "<script>alert" not in page
    assert data_of(page)["trace"] == evil


def test_every_cause_of_waiting_is_told_in_words(records: list[RunRecord]) -> None:
    table = re.search(r"const causes = {(.*?)};", render(records), re.S)
    assert table
    assert set(CODES) <= set(re.findall(r'"?([\w-]+)"?: "', table[1]))


def test_an_empty_run_still_makes_a_page() -> None:
    assert data_of(render([run([])]))["runs"]


def test_a_large_run_makes_a_small_page() -> None:
    count = 30_000
    rng = np.random.default_rng(1)
    begin, device = np.sort(rng.uniform(0, 1e6, count)).tolist(), rng.integers(0, 8, count).tolist()
    jobs = [
        placed(f"job-{i}", at, at, at + 20, (where,))
        for i, (at, where) in enumerate(zip(begin, device, strict=True))
    ]
    nodes = [f"node-{i}" for i in range(500)]
    large = run(jobs, devices=4000, node_names=nodes, node_devices=[8] * 500)
    data = contents([large], summaries([large]), None, Limits(spans=5000))
    assert data["rows"]["shown"] <= Limits().devices
    assert data["runs"][0]["gantt"]["merged"]
    assert len(data["runs"][0]["gantt"]["spans"]) <= 5 * 5000
    assert len(render([large], limits=Limits(spans=5000))) < 1_000_000


def test_curves_have_bounded_length_and_reach_everything() -> None:
    points = curve(np.random.default_rng(1).lognormal(5, 2, 10_000))
    assert len(points) == CURVE_POINTS
    assert points[0][1] == 0.0
    assert points[-1][1] == 1.0
    assert points == sorted(points, key=lambda p: (p[0] or 0.0, p[1] or 0.0))
    assert curve(np.array([])) == []


@pytest.mark.skipif(BROWSER is None, reason="no chromium to open the page in")
def test_the_script_runs_in_a_browser(records: list[RunRecord], tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", records, bound=75.0)
    done = subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-sync"),
            *("--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"),
            (tmp_path / "report.html").as_uri(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert "CONSOLE" not in done.stderr
    assert "by hand on 4xcpu" in done.stdout  # the title
    assert done.stdout.count('<th scope="row"') == 2  # a line of the table for each policy
    assert done.stdout.count("<path") >= 4  # curves of completion and of utilisation
