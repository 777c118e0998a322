"""How often forecasts are right: jobs of a trace are quoted as they come, and awaited."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from bough.core import model as m
from bough.core.doubt import Doubt
from bough.core.expected import Arrival, Past
from bough.core.outlooks import VERSIONS, part, unfold
from bough.core.policy import Policy
from bough.core.trials import NEW
from bough.sim.engine import Engine
from bough.sim.options import Options, Tools
from bough.sim.runs import Setting
from bough.sim.trace import TraceJob

#: Jobs of the first part of a trace are not quoted: what came before them is what is known.
KNOWN_SHARE: Final = 0.5
HORIZON_SECONDS: Final = 60 * 86_400.0
#: So much of what came before is looked at, as the daemon does.
PAST_SECONDS: Final = 14 * 86_400.0


class Outcome(NamedTuple):
    """One job: what was foretold, ascending, and what came."""

    id: str
    at: float
    begins: tuple[float, ...]
    ends: tuple[float, ...]
    begun: float
    ended: float


class Asking(Engine):
    """A replay in which some jobs are quoted just before they come."""

    def __init__(
        self, setting: Setting, policy: Policy, asked: frozenset[str], versions: int
    ) -> None:
        options: Options = setting.options
        tools: Tools = setting.tools
        self.asked, self.versions = asked, versions
        #: Job: what was foretold of its begin and its end.
        self.foretold: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        self.came: list[Arrival] = []
        super().__init__(setting.trace, setting.cluster, policy, options, tools)

    def arrive(self, job: TraceJob) -> m.Event:
        event = super().arrive(job)
        assert isinstance(event, m.Submitted)
        if job.id in self.asked:
            self.foretold[job.id] = self.foresee(event.spec)
        self.came.append(Arrival(self.now, event.spec))
        return event

    def foresee(self, spec: m.JobSpec) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Begin and end of such a job in each version, ascending."""
        begin = max(self.came[0].at, self.now - PAST_SECONDS) if self.came else self.now
        first = bisect_left(self.came, begin, key=lambda arrival: arrival.at)
        doubt = Doubt(past=Past(begin, self.now, self.came[first:]))
        picture = self.scheduler.picture(self.now)
        found = unfold(
            self.scheduler, (NEW,), doubt, versions=self.versions, horizon=HORIZON_SECONDS,
            change=lambda version: version.submit(NEW, spec), picture=picture,
        )  # fmt: skip
        fates = [fates[NEW] for fates in found]
        return tuple(sorted(f.begins for f in fates)), tuple(sorted(f.ends for f in fates))


def outcomes(
    setting: Setting, policy: Policy, quotes: int, versions: int = VERSIONS
) -> list[Outcome]:
    """Replay, quote so many of the later jobs, and compare."""
    jobs = setting.trace.jobs
    later = jobs[int(KNOWN_SHARE * len(jobs)) :]
    step = max(len(later) // quotes, 1)
    asked = frozenset(job.id for job in later[::step][:quotes])
    engine = Asking(setting, policy, asked, versions)
    record = engine.run()
    return [
        Outcome(job.id, job.submit, *engine.foretold[job.id], job.begin, job.end)
        for job in record.jobs
        if job.id in engine.foretold and job.state == "done"
    ]


def below(found: Sequence[Outcome], share: float, what: str = "ends") -> float:
    """Part of the outcomes that came before the moment that so much of them should."""
    return float(np.mean([truth(one, what) <= at(one, share, what) for one in found]))


def within(found: Sequence[Outcome], low: float, high: float, what: str = "ends") -> float:
    """Part of the outcomes that came between these parts of what was foretold."""
    return float(np.mean([at(o, low, what) <= truth(o, what) <= at(o, high, what) for o in found]))


def truth(one: Outcome, what: str) -> float:
    """When it really began or ended."""
    return one.ended if what == "ends" else one.begun


def at(one: Outcome, share: float, what: str) -> float:
    """The moment before which it should come in that part of all cases."""
    found = part(one.ends if what == "ends" else one.begins, share)
    return m.INFINITY if found is None else found
