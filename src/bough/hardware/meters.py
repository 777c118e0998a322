"""What jobs took of the power that devices drew: two rounds of readings, and who held what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bough.hardware.readings import Reading, Readings

#: Longer without a reading (the machine slept), and watts say nothing about the time between.
GAP_SECONDS_MAX = 600.0


class Round(NamedTuple):
    """All devices, read at one time."""

    #: Seconds of any one clock that the holdings go by too.
    at: float
    readings: Readings


class Holding(NamedTuple):
    """A job had a device for a while."""

    job: str
    node: str
    device: int
    since: float
    #: None: it still has.
    until: float | None = None


def joules(before: Reading, after: Reading, seconds: float) -> float | None:
    """What one device took between two readings; None: nothing measured it."""
    if before.joules is not None and after.joules is not None and after.joules >= before.joules:
        return after.joules - before.joules
    # No counter, or the driver was loaded anew in between.
    known = [reading.watts for reading in (before, after) if reading.watts is not None]
    if not known or not 0 <= seconds <= GAP_SECONDS_MAX:
        return None
    return sum(known) / len(known) * seconds


def spent(before: Round, after: Round, holdings: Iterable[Holding]) -> dict[str, float]:
    """Joules of each job between two rounds; jobs whose devices nothing measures are left out.

    A job that held a device for part of the time is charged for that part. Nobody pays for
    devices that idle.
    """
    seconds = after.at - before.at
    found: dict[str, float] = {}
    for holding in holdings:
        key = (holding.node, holding.device)
        ends = after.at if holding.until is None else min(holding.until, after.at)
        held = ends - max(holding.since, before.at)
        if seconds <= 0 or held <= 0 or key not in before.readings or key not in after.readings:
            continue
        whole = joules(before.readings[key], after.readings[key], seconds)
        if whole is not None:
            found[holding.job] = found.get(holding.job, 0.0) + whole * held / seconds
    return found
