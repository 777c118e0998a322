"""How often quotes are right, where it can be said how often they should be."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import msgspec
import pytest
from tests.datasets import data

from bough.core.cluster import parse_short
from bough.policies import find
from bough.sim.calibration import Outcome, below, outcomes, within
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.reproduce import reliability
from bough.sim.reproduce.eta import plot, rows_of
from bough.sim.runs import Setting
from bough.sim.synthetic import generate
from bough.sim.trace import read_trace


def setting(jobs: int, error: float, load: float = 0.8) -> Setting:
    trace = generate(jobs, 32, load=load, elastic=0.0, seed=4)
    options = Options(speed_error=error)
    return Setting(trace=trace, cluster=parse_short("4x8xa100"), cluster_name="", options=options)


def test_quoting_does_not_change_what_comes() -> None:
    given = setting(60, 0.2)
    record = simulate(given.trace, given.cluster, find("las"), given.options)
    ends = {job.id: job.end for job in record.jobs}
    found = outcomes(given, find("las"), 8, versions=2)
    assert len(found) == 8
    assert {one.id: one.ended for one in found} == {one.id: ends[one.id] for one in found}


def test_most_outcomes_are_where_they_should_be() -> None:
    """Estimates are off by 20 %: that is learnt, and the intervals are neither wide nor narrow."""
    found = outcomes(setting(120, 0.2), find("fifo"), 40, versions=10)
    assert 0.6 <= within(found, 0.1, 0.9) <= 0.95
    assert 0.3 <= below(found, 0.5) <= 0.7


def test_tenths_are_counted() -> None:
    told = tuple(float(i) for i in range(20))
    # One in each of the 21 places before, between and after twenty moments.
    found = [Outcome(str(i), 0.0, told, told, i - 0.5, i - 0.5) for i in range(21)]
    assert within(found, 0.1, 0.9) == pytest.approx(0.8, abs=0.05)
    assert below(found, 0.5) == pytest.approx(0.5, abs=0.05)
    rows = list(rows_of("eta/drawn", "fifo", found))
    assert [row.theirs for row in rows[:9]] == pytest.approx([i / 10 for i in range(1, 10)])
    drawn = plot(rows)
    assert drawn[0].startswith("drawn, fifo: parts of 21 jobs")
    assert sum("should be" in line for line in drawn) == len(rows)


def test_the_plot_shows_what_was_counted() -> None:
    """A forecast that is right lies on the diagonal, one that is too early above it."""
    told = tuple(float(i) for i in range(20))
    right = [Outcome(str(i), 0.0, told, told, i - 0.5, i - 0.5) for i in range(21)]
    early = [one._replace(ended=one.ended / 2.0) for one in right]
    rows = [*rows_of("eta/a & b", "fifo", right), *rows_of("eta/a & b", "las", early)]
    svg = fromstring(reliability.chart(rows))
    tag = "{http://www.w3.org/2000/svg}"
    shares = [
        (
            (float(dot.get("cx", "")) - reliability.LEFT) / reliability.SIDE,
            1.0 - (float(dot.get("cy", "")) - reliability.TOP) / reliability.SIDE,
        )
        for dot in svg.iter(f"{tag}circle")
    ][:-1]  # the last is beside its name
    assert [x for x, _ in shares] == pytest.approx([i / 10 for i in range(1, 10)], abs=0.001)
    assert [y for _, y in shares] == pytest.approx([below(right, x) for x, _ in shares], abs=0.001)
    assert all(abs(y - x) < 0.05 for x, y in shares)
    assert below(early, 0.5) > 0.8
    lines = [line.text or "" for line in svg.iter(f"{tag}text")]
    assert any(line.startswith("a & b, fifo: 8") for line in lines)


@pytest.mark.data
def test_on_a_public_trace() -> None:
    """A small part of what `bough reproduce eta` prints."""
    trace = read_trace(data("elasticflow-traces/cluster02.csv.gz"))
    trace = msgspec.structs.replace(trace, jobs=trace.jobs[:700])
    given = Setting(
        trace=trace, cluster=parse_short("16x8xv100"), cluster_name="",
        options=Options(speed_error=0.2),
    )  # fmt: skip
    found = outcomes(given, find("las"), 20, versions=10)
    assert within(found, 0.1, 0.9) >= 0.6
