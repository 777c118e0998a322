"""The public traces themselves: as many jobs as their authors say, in the units they mean."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
from tests.datasets import data

from bough.sim.trace import Reading, Trace, read_trace

pytestmark = pytest.mark.data

SHOCKWAVE = "shockwave/traces/{}_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace.gz"


class GavelRates:
    """Throughputs as Gavel's and Shockwave's JSON files have them."""

    def __init__(self, path: Path) -> None:
        self.table = json.loads(gzip.decompress(path.read_bytes()))

    def rate(self, model: str, batch: int, kind: str, size: int) -> float | None:
        types = {key.lower(): value for key, value in self.table[kind].items()}
        key = f"('{model} (batch size {batch})', {size})" if batch else f"('{model}', {size})"
        return types[key]["null"] if key in types else None


def clean(path: str, **reading: object) -> Trace:
    """The trace, in which no row is malformed."""
    return read_trace(data(path), Reading(on_bad="fail", **reading))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "format", "jobs"),
    [
        ("elasticflow-traces/cluster01.csv.gz", "elasticflow", 1595),
        ("elasticflow-traces/cluster02.csv.gz", "elasticflow", 5778),
        ("elasticflow-traces/cluster03.csv.gz", "elasticflow", 3011),
        ("elasticflow-traces/cluster05.csv.gz", "elasticflow", 3629),
        ("elasticflow-traces/cluster08.csv.gz", "elasticflow", 13047),
        ("elasticflow-traces/cluster09.csv.gz", "elasticflow", 11134),
        ("elasticflow-traces/cluster10.csv.gz", "elasticflow", 260),
        ("elasticflow-traces/195job.csv.gz", "elasticflow", 195),
        ("elasticflow/traces/elasticVpollux_e.csv", "elasticflow", 195),
        ("elasticflow/traces/generated_fig10_100jobs_1500lam.csv", "elasticflow", 100),
        ("elasticflow/traces/resnet_cifar_trace.csv", "elasticflow", 5),
        ("muri/trace1.csv.gz", "muri", 1494),
        ("muri/trace1_pr.csv.gz", "muri", 1494),
        ("muri/trace3.csv.gz", "muri", 992),
        ("muri/job_type_1.csv.gz", "muri", 992),
        ("tiresias/60_job.csv", "muri", 60),
        (SHOCKWAVE.format("120_0.2_5_100_40_25"), "gavel", 120),
        (SHOCKWAVE.format("900_0.2_5_100_5_15"), "gavel", 900),
        # The README counts the empty line at the end of the file as well.
        ("pollux-osdi21/traces/philly.csv.gz", "philly", 82_247),
        ("gaia/pai-100k.csv.gz", "pai", 99_998),
        ("gaia/pai_1k.csv", "pai", 1000),
    ],
)  # fmt: skip
def test_every_row_is_a_job(path: str, format: str, jobs: int) -> None:
    trace = clean(path)
    assert (trace.format, len(trace.jobs)) == (format, jobs)


@pytest.mark.parametrize("name", ["MIX1", "SLO"])
def test_chronus_has_jobs_that_need_no_device(name: str) -> None:
    trace = clean(f"chronus/trace_job_Philly_{name}.csv.gz")
    cpu_only = int(trace.notes[1].split(" ")[0])
    assert len(trace.jobs) + cpu_only == 30_940
    best = sum(job.spec.service == "best-effort" for job in trace.jobs)
    assert (best == 0) == (name == "SLO")
    # Two weeks of minutes.
    assert 13 * 86_400 < trace.span_seconds() <= 14 * 86_400


def test_a_job_named_twice_is_a_problem() -> None:
    trace = read_trace(data("tiresias/tf_job.csv"))
    assert len(trace.jobs) == 1
    assert trace.problems[0].endswith("tf_job.csv:3: job '10' appears twice")


def test_muri_milliseconds_make_three_months() -> None:
    trace = clean("muri/trace3.csv.gz")
    days = (max(j.submit + j.seconds for j in trace.jobs) - trace.jobs[0].submit) / 86_400
    assert 80 < days < 96


@pytest.mark.parametrize(
    ("trace", "kind", "tables"),
    [
        ("elasticflow/traces/elasticVpollux_e.csv", "T4", "elasticflow/throughputs_T4"),
        ("elasticflow-traces/cluster10.csv.gz", "A100", "elasticflow/throughputs_A100"),
    ],
)
def test_elasticflow_durations_are_iterations_over_the_rates_of_its_tables(
    trace: str, kind: str, tables: str
) -> None:
    rates: dict[tuple[str, int, int], float] = {}
    for path in data(tables).glob("*.csv"):
        for row in csv.DictReader(path.read_text().splitlines()):
            batch = int(row.pop("global_batch_size"))
            rates |= {(path.stem, batch, int(n)): float(r) for n, r in row.items() if r}

    class Rates:
        def rate(self, model: str, batch: int, kind: str, size: int) -> float | None:
            return rates.get((model, batch, size))

    told = clean(trace)
    measured = clean(trace, rates=Rates(), kind=kind)
    for a, b in zip(told.jobs, measured.jobs, strict=True):
        assert b.seconds == pytest.approx(a.seconds, abs=1.0)


@pytest.mark.parametrize(
    ("name", "jobs"), [("max_min_fairness", 96), ("minimize_makespan", 100), ("small_test", 20)]
)
def test_gavel_steps_over_its_throughputs(name: str, jobs: int) -> None:
    rates = GavelRates(data("gavel/physical_cluster_throughputs.json.gz"))
    trace = clean(f"gavel/traces/physical_cluster/{name}.trace.gz", rates=rates)
    assert len(trace.jobs) == jobs
    assert all(1 < job.seconds < 30 * 86_400 for job in trace.jobs)


def test_synergy_arrivals() -> None:
    class Rates:
        def rate(self, model: str, batch: int, kind: str, size: int) -> float | None:
            return 1.0

    trace = clean("synergy/deploy_trace/static_100job_6_3_1100.0", rates=Rates())
    assert len(trace.jobs) == 100


@pytest.mark.parametrize(
    ("workload", "jobs"),
    [
        ("workloads/workload-1", 160),
        ("workloads-0.5/workload-3", 80),
        ("workloads-realistic/workload-1", 160),
    ],
)
def test_every_job_of_a_pollux_workload_has_a_run_time(workload: str, jobs: int) -> None:
    profiles = data("pollux-osdi21/traces")
    trace = clean(f"pollux-osdi21/{workload}.csv", profiles=profiles)
    assert (trace.format, len(trace.jobs)) == ("pollux", jobs)


@pytest.mark.parametrize("workload", ["workload-1", "workload-3"])
def test_pollux_jobs_that_never_wait_take_as_long_as_in_the_authors_simulator(
    workload: str,
) -> None:
    """It starts a job at the next full minute, after 30 s, so nobody is quicker than our run time.

    Run times are rounded there once an epoch, which may also make them a little shorter.
    """
    profiles = data("pollux-osdi21/traces")
    trace = clean(f"pollux-osdi21/workloads-0.5/{workload}.csv", profiles=profiles)
    summary = data("pollux-osdi21/results-jobload/tiresias-0.5/summary.json")
    theirs = json.loads(summary.read_text())["jcts"][workload]
    over = sorted(theirs[job.id] - job.seconds for job in trace.jobs)
    assert 28 < over[0] < 32
    assert over[len(over) // 4] < 30 + 60
