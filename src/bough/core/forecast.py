"""What is to come, asked in one way: of a job that is not there yet, or after something happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import msgspec

from bough.core import model as m
from bough.core.doubt import Doubt
from bough.core.outlooks import HORIZON_SECONDS, VERSIONS, Runner, in_turn, outlooks
from bough.core.prospects import Outlook, Quote
from bough.core.quote import quote
from bough.core.scheduler import Scheduler
from bough.core.versions import Version

#: Estimates and curves are as wrong as they were so far, and nobody else comes.
AS_SEEN = Doubt()


@overload
def forecast(
    scheduler: Scheduler, asked: m.JobSpec, samples: int = VERSIONS,
    horizon: float = HORIZON_SECONDS, *, doubt: Doubt = AS_SEEN, now: float | None = None,
    run: Runner = in_turn,
) -> Quote: ...  # fmt: skip
@overload
def forecast(
    scheduler: Scheduler, asked: Sequence[m.Event] = (), samples: int = VERSIONS,
    horizon: float = HORIZON_SECONDS, *, doubt: Doubt = AS_SEEN, now: float | None = None,
    run: Runner = in_turn,
) -> dict[str, Outlook]: ...  # fmt: skip
def forecast(
    scheduler: Scheduler,
    asked: m.JobSpec | Sequence[m.Event] = (),
    samples: int = VERSIONS,
    horizon: float = HORIZON_SECONDS,
    *,
    doubt: Doubt = AS_SEEN,
    now: float | None = None,
    run: Runner = in_turn,
) -> Quote | dict[str, Outlook]:
    """The quote of a job, or the outlook of each live job if these events happened now.

    The scheduler is forked and stays as it is. Events happen now, whatever moment they tell.
    """
    if isinstance(asked, m.JobSpec):
        queues = scheduler.state.queues
        return quote(
            scheduler, asked, doubt, versions=samples, horizon=horizon, now=now, run=run,
            queues=() if queues.trivial else tuple(queues.names),
        )  # fmt: skip
    events = asked

    def happen(version: Version) -> None:
        version.tell([msgspec.structs.replace(event, at=version.now) for event in events])

    return outlooks(
        scheduler, list(scheduler.state.jobs), doubt, versions=samples, horizon=horizon, now=now,
        change=happen if events else None, run=run,
    )  # fmt: skip
