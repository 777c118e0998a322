"""Zeus' tables, PowerFlow, GreenFlow and CarbonScaler: energy and carbon on public data.

Of the three schedulers only what their abstracts say is known to us, and no traces; so their
numbers are compared with ours on other traces, and a difference says little.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from bough.core.carbon_slots import Level, Slot, spread_over
from bough.core.cluster import parse_short
from bough.core.energy import EXPONENT, power_of, work_of
from bough.core.series import Series
from bough.core.speedup import SpeedBook
from bough.core.supply import Budget, Supply
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.power_tables import clock_of, read_curves
from bough.sim.reproduce.rows import Row, published
from bough.sim.results import summarise
from bough.sim.supply_files import read_series
from bough.sim.tables import read_speedups
from bough.sim.trace import Reading, Trace, read_text, read_trace

CURVES: Final = (("v100", "resnet50"), ("v100", "bert"), ("v100", "deepspeech2"), ("a40", "bert"))
#: Where most of what can be saved is saved.
CAP: Final = {"v100": 150.0, "a40": 175.0}
FITTED: Final = (
    "one formula for four kinds and six workloads, fitted to power at the highest cap and to how "
    "power falls with speed (docs/energy.md)"
)
#: 16 nodes of eight devices, with half of the power that their jobs would draw without a budget.
CLUSTER: Final = "16x8xa100"
TRACE: Final = "elasticflow-traces/195job.csv"
KWH_A_DAY: Final = 150.0
KILOS_A_DAY: Final = 30.0
OTHERS: Final = ("gandiva", "tiresias", "afs")
#: In the abstracts.
POWERFLOW: Final = (1.57, 3.39)
GREENFLOW: Final = 2.15
CARBONSCALER: Final = 0.51
OTHER_TRACES: Final = (
    "theirs is from their testbed and traces, which are not public, beside policies that the "
    "abstract does not name; ours is 195 jobs of a public trace on 128 simulated devices, all "
    "policies under the same daily budget. Tiresias does not resize jobs, and at the sizes they "
    "ask for they need nearly three times as much energy"
)
ONE_JOB: Final = (
    "theirs is for training jobs on a cloud in a region and with a slack that the abstract does "
    "not name; ours is the n-body job of the released profiles, a day on one node to be done "
    "within a day, begun every third day of 2021: how much is saved is the grid's to say, from "
    "what swings with the sun to what hardly swings"
)
ZONES: Final = ("CISO", "ERCO", "ISNE", "PJM", "DE", "ES", "NL", "PL", "SE")
HOURS: Final = 24
EVERY_HOURS: Final = 72


def zeus(data: Path) -> Iterator[Row]:
    """Power under a cap as the model has it for the speed that was measured, and energy saved."""
    folder = published(data, "zeus/nsdi23-trace")
    curves, _ = read_curves(folder)
    for kind, workload in CURVES:
        curve = next(c for c in curves if (c.kind, c.workload) == (kind, workload))
        power, work = power_of(kind), work_of(workload)
        clock = clock_of(curve.slowdown, work.sensitivity)
        active = 1 - power.scaled + power.scaled * clock**EXPONENT
        watts = power.idle + work.draw * (power.peak - power.idle) * active
        at = int(np.flatnonzero(curve.cap == CAP[kind])[0])
        name = f"zeus/{workload} on {kind}, {CAP[kind]:.0f} W"
        pairs = {"watts": (float(watts[at]), float(curve.watts[at]))}
        pairs["relative_energy"] = (
            float(watts[at] * curve.slowdown[at] / watts[-1]),
            float(curve.watts[at] * curve.slowdown[at] / curve.watts[-1]),
        )
        for metric, (ours, theirs) in pairs.items():
            yield Row(name, "the model", metric, ours, theirs, ours / theirs - 1.0, FITTED)


def trace_of(data: Path) -> Trace:
    """The 195 jobs, elastic, with the speeds that were measured on A100s."""
    book = read_speedups(published(data, "elasticflow/throughputs_A100"), SpeedBook("a100"))
    reading = Reading(rates=book, kind="a100", elastic_limit=64)
    return read_trace(published(data, TRACE), reading)


def times(data: Path, ours: str, supply: Supply) -> dict[str, float]:
    """Mean completion time of each of the others over that of ours, under the same budget."""
    trace, cluster = trace_of(data), parse_short(CLUSTER)
    options = Options(supply=supply, start_seconds=30.0, resize_seconds=10.0)
    found = {
        policy: summarise(simulate(trace, cluster, find(policy), options))
        for policy in (ours, *OTHERS)
    }
    assert all(row["most_of_a_budget"] <= 1.0 + 1e-3 for row in found.values())
    return {
        policy: found[policy]["mean_jct_seconds"] / found[ours]["mean_jct_seconds"]
        for policy in OTHERS
    }


def powerflow(data: Path) -> Iterator[Row]:
    """The least and the most by which others take longer with the same energy."""
    budget = Budget(of="energy", amount=KWH_A_DAY)
    found = times(data, "powerflow", Supply(budgets=(budget,)))
    ends = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    for policy, theirs in zip(ends, POWERFLOW, strict=True):
        ours = found[policy]
        yield Row(
            f"powerflow/195 jobs, {KWH_A_DAY:.0f} kWh a day", policy, "jct_over_powerflow",
            ours, theirs, ours / theirs - 1.0, OTHER_TRACES,
        )  # fmt: skip


def greenflow(data: Path) -> Iterator[Row]:
    """The same with carbon; theirs is the most of all, and ours that of the next best."""
    carbon = read_series(published(data, "carboncast/CISO_direct_emissions.csv"), "carbon")
    budget = Budget(of="carbon", amount=KILOS_A_DAY)
    found = times(data, "greenflow", Supply(carbon=carbon, budgets=(budget,)))
    for policy, ours in found.items():
        yield Row(
            f"greenflow/195 jobs, {KILOS_A_DAY:.0f} kg a day", policy, "jct_over_greenflow",
            ours, GREENFLOW, ours / GREENFLOW - 1.0, OTHER_TRACES,
        )  # fmt: skip


def carbonscaler(data: Path) -> Iterator[Row]:
    """Carbon saved over running at once on one node, in two grids and in the mean of nine."""
    text = read_text(published(data, "carbonscaler/nbody100k.csv"))
    table = [row for row in csv.DictReader(io.StringIO(text)) if int(row["nodes"])]
    levels = [
        Level(int(row["nodes"]), float(row["throughput"]), float(row["power"])) for row in table
    ]
    saved = {}
    for zone in ZONES:
        path = published(data, f"carboncast/{zone}_direct_emissions.csv")
        saved[zone] = saved_in(read_series(path, "carbon"), levels)
    shown = {"CISO": saved["CISO"], "PL": saved["PL"]}
    for name, ours in (*shown.items(), ("nine grids", float(np.mean(list(saved.values()))))):
        yield Row(
            f"carbonscaler/n-body, {name}", "carbonscaler", "carbon_saved", ours, CARBONSCALER,
            ours / CARBONSCALER - 1.0, ONE_JOB,
        )  # fmt: skip


def saved_in(series: Series, levels: list[Level]) -> float:
    """The mean over starts of the share that is not emitted."""
    shares = []
    half = len(series.values) // 2  # the second of two years
    for start in range(half, len(series.values) - HOURS, EVERY_HOURS):
        slots = [Slot(3600.0, value) for value in series.values[start : start + HOURS]]
        work = levels[0].speed * 3600.0 * HOURS
        sizes = spread_over(levels, work, slots)
        assert sizes is not None
        watts = {level.size: level.watts for level in levels} | {0: 0.0}
        emitted = sum(watts[n] * slot.intensity for n, slot in zip(sizes, slots, strict=True))
        once = sum(levels[0].watts * slot.intensity for slot in slots)
        shares.append(1.0 - emitted / once)
    return float(np.mean(shares))
