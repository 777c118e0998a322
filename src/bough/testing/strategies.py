"""Hypothesis strategies for what a policy may be given: every view the core could build."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bough.core.model import INFINITY
from bough.core.policy import View
from bough.testing.views import Row, make_view

NOW = 10_000.0

sizes = st.one_of(
    st.integers(1, 8).map(lambda size: (size,)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(
        lambda pair: tuple(2**k for k in range(pair[0], pair[0] + pair[1] + 1))
    ),
    st.sets(st.integers(1, 12), min_size=1, max_size=5).map(lambda found: tuple(sorted(found))),
)


@st.composite
def speeds(draw: st.DrawFn, of: tuple[int, ...]) -> tuple[float, ...]:
    """Believed speeds at these sizes: proportional, concave, flat from a size on, or anything."""
    form = draw(st.sampled_from(["linear", "power", "flat", "any"]))
    if form == "linear":
        return tuple(float(size) for size in of)
    if form == "power":
        exponent = draw(st.sampled_from([0.5, 0.7, 0.9]))
        return tuple(size**exponent for size in of)
    if form == "flat":
        return tuple(float(min(size, 3)) for size in of)
    return tuple(draw(st.integers(1, 40)) / 4 for _ in of)


#: What may be special about a job now; drawn whole, as each draw takes its time.
traits: st.SearchStrategy[dict[str, Any]] = st.sampled_from([
    {}, {}, {}, {"must": True}, {"busy": True, "must": True}, {"firm": True}, {"damped": True},
    {"firm": True, "must": True}, {"priority": 1}, {"priority": -1, "weight": 2.0},
    {"user": 1, "weight": 0.5}, {"user": 2, "queue": 1}, {"queue": 1, "guaranteed": True},
])  # fmt: skip

#: Device-seconds and seconds used so far, work left, and how long it may run at most.
pasts = st.sampled_from([
    (0.0, 0.0, INFINITY, INFINITY), (0.0, 0.0, 500.0, INFINITY), (100.0, 50.0, 500.0, 5e3),
    (3249.0, 400.0, 7e4, INFINITY), (3250.0, 3250.0, 9e5, 1e5), (9e4, 4e3, 0.0, INFINITY),
    (9e4, 4e3, 3.3, 5e3), (8000.0, 1e3, INFINITY, INFINITY),
])  # fmt: skip

deadlines = st.sampled_from([INFINITY, INFINITY, NOW - 100, NOW + 1, NOW + 50, NOW + 50, NOW + 1e5])


@st.composite
def rows(draw: st.DrawFn, free: int, submitted: float) -> Row:
    """A job that may hold up to so many devices now."""
    own = draw(sizes)
    size = draw(st.sampled_from([0, *(size for size in own if size <= free)]))
    trait = dict(draw(traits))
    held = {
        name: trait.pop(name, False) and size > 0 for name in ("must", "busy", "firm", "damped")
    }
    attained, ran, left, max_run = draw(pasts)
    return Row(
        sizes=own, speed=draw(speeds(own)), size=size,
        lo=size if held["busy"] or held["firm"] else own[0],
        hi=size if held["busy"] or held["damped"] else own[-1],
        must=held["must"], busy=held["busy"],
        wish=draw(st.sampled_from(own)), submitted=submitted,
        since=submitted + (NOW - submitted) * draw(st.sampled_from([0.0, 0.5, 0.999, 1.0])),
        attained=attained, ran=ran, left=left, max_run=max_run, deadline=draw(deadlines),
        draw=draw(st.sampled_from([1.0, 0.5])),
        **trait,
    )  # fmt: skip


@st.composite
def views(draw: st.DrawFn, max_jobs: int = 8, max_devices: int = 40) -> View:
    """A view in which what is held fits."""
    devices = draw(st.integers(0, max_devices))
    times = sorted(draw(st.lists(st.floats(0.0, NOW), max_size=max_jobs)))
    free, jobs = devices, []
    for submitted in times:
        jobs.append(draw(rows(free, submitted)))
        free -= jobs[-1].size
    allowance = draw(st.sampled_from([None, INFINITY, 0.0, 500.0, 3000.0]))
    return make_view(devices, jobs, now=NOW, scattered=draw(st.booleans()), allowance=allowance)
