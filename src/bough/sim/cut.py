"""A trace cut at a moment: the scheduler as it was then, and what had been submitted by then."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bough.core.expected import Arrival, Past
from bough.core.policy import Policy
from bough.core.scheduler import Scheduler
from bough.errors import InputError
from bough.sim.engine import Engine
from bough.sim.runs import Setting
from bough.sim.trace import Trace


class Cut(NamedTuple):
    """How things stood at a moment of a replay."""

    at: float
    scheduler: Scheduler
    past: Past


def cut(setting: Setting, policy: Policy, at: float) -> Cut:
    """Replay up to that moment; who arrives just then has arrived."""
    first = setting.trace.jobs[0].submit
    if not first <= at:
        raise InputError(f"the trace begins at {first:g}s, after {at:g}s", field="--at")
    options = msgspec.structs.replace(setting.options, until=at)
    engine = Engine(setting.trace, setting.cluster, policy, options, setting.tools)
    engine.run()
    return Cut(at, engine.scheduler, past_of(setting.trace, at))


def past_of(trace: Trace, until: float) -> Past:
    """What was submitted up to a moment; how much work that was stays unknown."""
    begin = trace.jobs[0].submit
    known = [Arrival(job.submit, job.spec) for job in trace.jobs if job.submit <= until]
    return Past(begin, until, known)
