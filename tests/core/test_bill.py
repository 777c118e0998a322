"""Energy, carbon and cost of quotes are those of the simulator's books; later for clean power."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core import model as m
from bough.core.cluster import parse_short
from bough.core.doubt import CERTAIN
from bough.core.prospects import Alternative, Interval, Quote
from bough.core.quote import quote
from bough.core.series import Series
from bough.core.supply import Supply
from bough.policies import find
from bough.sim.cut import cut
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.record import JobRecord
from bough.sim.runs import Setting
from bough.sim.synthetic import generate
from bough.sim.trace import Trace, TraceJob

HOUR = 3600.0
ASKED = m.JobSpec(name="x", devices=m.Range(min=4, max=4), estimate_seconds=HOUR, model="resnet50")
#: Of one machine and of machines of one device: no place is faster than another.
CLUSTERS = ("1x16xv100", "16x1xv100")


def used(record: JobRecord) -> tuple[float, float, float]:
    return record.energy_joules / 3.6e6, record.carbon_grams / 1000.0, record.cost


def quoted(of: Quote | Alternative) -> tuple[float, float, float]:
    found = (of.outlook.energy_kwh, of.outlook.carbon_kg, of.outlook.cost)
    return tuple(middle(each) for each in found)  # type: ignore[return-value]


def middle(interval: Interval | None) -> float:
    assert interval is not None
    assert interval.p50 is not None
    return interval.p50


def setting(trace: Trace, cluster: str, supply: Supply) -> Setting:
    place, options = parse_short(cluster), Options(supply=supply)
    return Setting(trace=trace, cluster=place, cluster_name=cluster, options=options)


def really(of: Setting, policy: str, at: float) -> JobRecord:
    """What became of the job in a replay in which it was submitted then."""
    new = TraceJob(id="x", submit=at, spec=ASKED, seconds=HOUR, devices=4)
    longer = msgspec.structs.replace(of.trace, jobs=(*of.trace.jobs, new))
    jobs = simulate(longer, of.cluster, find(policy), of.options).jobs
    return next(each for each in jobs if each.id == "x")


@settings(max_examples=16, deadline=None)
@given(
    st.integers(0, 60), st.sampled_from(["fifo", "las", "srtf", "fair"]),
    st.sampled_from(CLUSTERS), st.sampled_from([0.3, 1.5]),
)  # fmt: skip
def test_it_uses_what_it_was_quoted(seed: int, policy: str, cluster: str, load: float) -> None:
    """Alone or among others, whose coming and going changes its part of what nodes draw."""
    trace = generate(25, 16, load=load, elastic=0.5, seed=seed)
    supply = Supply(
        carbon=Series((100.0, 400.0, 250.0), 1000.0), price=Series((0.1, 0.3, 0.2, 0.05), 1700.0)
    )
    at = trace.jobs[-1].submit + 1.0
    of = setting(trace, cluster, supply)
    there = cut(of, find(policy), at)
    found = quote(there.scheduler, ASKED, CERTAIN, versions=1, now=at)
    record = really(of, policy, at)
    assert found.outlook.ends.p50 == pytest.approx(record.end, rel=1e-9)
    assert quoted(found) == pytest.approx(used(record), rel=1e-6)


@pytest.mark.parametrize("what", ["carbon", "price"])
def test_later_is_offered_where_power_is_cleaner_or_cheaper_then(what: str) -> None:
    """Four hours of dirty or dear power, then as long of clean and cheap."""
    first = TraceJob(
        id="0", submit=0.0, spec=msgspec.structs.replace(ASKED, name="0"), seconds=60.0, devices=4
    )
    trace = Trace(name="t", jobs=(first,))
    supply = Supply(**{what: Series((500.0, 50.0), 4 * HOUR)})
    of = setting(trace, "1x16xv100", supply)
    there = cut(of, find("fifo"), 120.0)
    found = quote(there.scheduler, ASKED, CERTAIN, versions=4, now=120.0)
    assert found.verdict == "accept"
    later = {one.later_seconds: one for one in found.alternatives if one.later_seconds}
    assert 4 * HOUR in later
    assert HOUR not in later  # power is as it is now
    one = later[4 * HOUR]
    assert one.accepted
    assert one.outlook.begins.p50 == pytest.approx(120.0 + 4 * HOUR)
    record = really(of, "fifo", 120.0 + 4 * HOUR)
    now = really(of, "fifo", 120.0)
    mine, its = ((each.carbon_grams / 1000.0, each.cost) for each in (now, record))
    at = 0 if what == "carbon" else 1
    name = "carbon_kg" if what == "carbon" else "cost"
    assert middle(getattr(found.outlook, name)) == pytest.approx(mine[at])
    assert middle(getattr(one.outlook, name)) == pytest.approx(its[at])
    assert its[at] == pytest.approx(mine[at] / 10.0)


def test_later_is_not_offered_where_power_is_always_the_same() -> None:
    trace = generate(3, 16, load=0.1, seed=1)
    of = setting(trace, "1x16xv100", Supply(carbon=Series((300.0,)), price=Series((0.2,))))
    there = cut(of, find("fifo"), trace.jobs[-1].submit + 1.0)
    found = quote(there.scheduler, ASKED, CERTAIN, versions=2, now=there.at)
    assert found.verdict == "accept"
    assert [one.later_seconds for one in found.alternatives if one.later_seconds] == []
