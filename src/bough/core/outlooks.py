"""When jobs will begin and end, and with what they get there: told as intervals, not as points.

Each answer comes from several versions of what is to come (versions.py). The same versions are
run for everything that is compared, so what differs is what was changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from bough.core import model as m
from bough.core.doubt import CERTAIN, Belief, Doubt, Fate
from bough.core.prospects import Interval, Outlook
from bough.core.scheduler import Scheduler
from bough.core.snapshot import Image
from bough.core.supply import JOULES
from bough.core.versions import Version

VERSIONS: Final = 20
#: Nobody is followed further than this.
HORIZON_SECONDS: Final = 30 * 86_400.0
HOUR_SECONDS: Final = 3600.0
#: Changes what is there before it is run forward.
Change = Callable[[Version], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Runner(Protocol):
    """Does pure work on items, in this process or in several; the results in their order."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]: ...


def in_turn(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """One after the other."""
    return [work(item) for item in items]


def unfold(
    scheduler: Scheduler,
    watched: Collection[str],
    doubt: Doubt = CERTAIN,
    *,
    versions: int = VERSIONS,
    horizon: float = HORIZON_SECONDS,
    change: Change | None = None,
    picture: Image | None = None,
    run: Runner = in_turn,
) -> list[dict[str, Fate]]:
    """The fates of the watched in each version, followed to their end."""
    taken, beliefs = picture or scheduler.picture(), dict[str, Belief]()

    def forward(number: int) -> dict[str, Fate]:
        version = Version(scheduler, doubt, number, versions, taken, watched, beliefs)
        if change is not None:
            change(version)
        version.run(watched, taken.now + horizon)
        return {id: version.fates[id] for id in watched if id in version.fates}

    return run(forward, range(versions))


def outlook(fates: Sequence[Fate], deadline: float = m.INFINITY) -> Outlook:
    """One job's fates in all versions, summed up."""
    hours = [fate.device_seconds / HOUR_SECONDS for fate in fates]
    done = [fate.how == "done" for fate in fates]
    uses = [fate.use for fate in fates if fate.use is not None]
    timely = [fate.how == "done" and fate.ends <= deadline for fate in fates]
    return Outlook(
        begins=interval([fate.begins for fate in fates]),
        ends=interval([fate.ends if fate.how != "rejected" else m.INFINITY for fate in fates]),
        device_hours=interval(hours),
        done=sum(done) / len(fates),
        in_time=None if deadline == m.INFINITY else sum(timely) / len(fates),
        parks=sum(fate.parks for fate in fates) / len(fates),
        energy_kwh=interval([use.joules / JOULES for use in uses]) if uses else None,
    )


def outlooks(
    scheduler: Scheduler,
    ids: Collection[str],
    doubt: Doubt = CERTAIN,
    *,
    versions: int = VERSIONS,
    horizon: float = HORIZON_SECONDS,
    change: Change | None = None,
    now: float | None = None,
    run: Runner = in_turn,
) -> dict[str, Outlook]:
    """What is to be expected of live jobs, after a change if there is one."""
    jobs = scheduler.state.jobs
    ids = [id for id in ids if id in jobs]
    found = unfold(
        scheduler, ids, doubt, versions=versions, horizon=horizon, change=change,
        picture=scheduler.picture(now), run=run,
    )  # fmt: skip
    deadlines = deadlines_of(scheduler, ids)
    return {id: outlook([fates[id] for fates in found], deadlines[id]) for id in ids}


def deadlines_of(scheduler: Scheduler, ids: Collection[str]) -> Mapping[str, float]:
    """When live jobs must be done; infinite: whenever."""
    state = scheduler.state
    return {id: float(state.table.deadline[state.table.row(state.jobs[id])]) for id in ids}


def interval(values: Sequence[float]) -> Interval:
    """Of a few numbers, some of which may be infinite."""
    ordered = sorted(values)
    return Interval(p10=part(ordered, 0.1), p50=part(ordered, 0.5), p90=part(ordered, 0.9))


def part(ordered: Sequence[float], share: float) -> float | None:
    """The number that one more like them is below in that part of all cases.

    Before, between and after n of them are n + 1 places, equally likely for the one that comes.
    """
    at = min(max(share * (len(ordered) + 1) - 1.0, 0.0), len(ordered) - 1.0)
    low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
    found = low if at == math.floor(at) else high
    if low < high < m.INFINITY:
        found = low + (high - low) * (at - math.floor(at))
    return None if found == m.INFINITY else found
