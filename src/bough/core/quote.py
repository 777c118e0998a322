"""A quote before a job is submitted: when it would begin and end, at what price, and what if."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bough.core import advice
from bough.core import model as m
from bough.core.doubt import Doubt
from bough.core.outlooks import HORIZON_SECONDS, VERSIONS, Runner, in_turn
from bough.core.prospects import Alternative, Outlook, Quote, Verdict
from bough.core.reason import Facts, Reason
from bough.core.scheduler import Scheduler
from bough.core.trials import CONFIDENCE, MIDDLE, Bench, Trial
from bough.core.units import format_duration


def quote(
    scheduler: Scheduler,
    spec: m.JobSpec,
    doubt: Doubt,
    *,
    versions: int = VERSIONS,
    horizon: float = HORIZON_SECONDS,
    queues: Sequence[str] = (),
    now: float | None = None,
    run: Runner = in_turn,
) -> Quote:
    """What would become of the job if it were submitted now; `queues` are others it may go to.

    It is the same whoever runs the versions, and in how many processes.
    """
    bench = Bench(scheduler, doubt, versions, horizon, now, run)
    bench.see(spec, (MIDDLE, *range(versions)))  # the longest first
    found, first = bench.tried(spec, range(versions)), bench.looked(spec)
    deadline = advice.earliest(bench, found)
    good = advice.promises(bench, found, deadline) + advice.better(bench, found, queues)
    delays = bench.delays([first, *(one.look for one in good)])
    others = advice.told(good, delays)
    verdict: Verdict = "accept"
    if not found.accepted:
        verdict = "accept-if" if any(one.accepted for one in others) else "reject"
    return Quote(
        verdict=verdict,
        reason=reason_of(bench.now, found, others),
        at=bench.now,
        outlook=found.outlook,
        earliest_deadline=deadline,
        alternatives=others,
        delays=delays.get(id(first), ()),
        versions=versions,
    )


# --------------------------------------------------------------------------- in words


def reason_of(now: float, found: Trial, others: Sequence[Alternative]) -> Reason:
    """The verdict with its numbers, in a sentence, and the best advice."""
    look = found.outlook
    remedy = next((one.change for one in others if one.accepted or found.accepted), "")
    if found.refusal is not None:
        return msgspec.structs.replace(found.refusal, remedy=found.refusal.remedy or remedy)
    facts: Facts = {"done": look.done}
    if look.begins.p50 is None:
        said, facts = found.stands.text, found.stands.facts | facts
        text = f"It would not begin within the time that was looked at. {said}"
        return Reason(code="never", facts=facts, text=text, remedy=remedy)
    if look.device_hours.p50 is not None:
        facts["device_hours"] = look.device_hours.p50
    begins = look.begins.p50 - now
    facts["begins_in_seconds"] = begins
    if look.ends.p50 is None:
        text = f"It would begin {_when(begins)}, and not end in the time that was looked at."
        return Reason(code="endless", facts=facts, text=text, remedy=remedy)
    facts["ends_in_seconds"] = look.ends.p50 - now
    if look.ends.p90 is not None:
        facts["ends_in_seconds_p90"] = look.ends.p90 - now
    text = f"It would begin {_when(begins)} and end {_until(look, now)}"
    code = "accepted"
    if look.in_time is not None:
        facts["in_time"] = look.in_time
        code = "accepted" if look.in_time >= CONFIDENCE else "late"
        only = "" if code == "accepted" else "only "
        text += f"; its deadline is kept in {only}{look.in_time:.0%} of what may come"
    return Reason(code=code, facts=facts, text=f"{text}.", remedy=remedy)


def _when(seconds: float) -> str:
    return "at once" if seconds < 1.0 else f"in {format_duration(seconds)}"


def _until(look: Outlook, now: float) -> str:
    assert look.ends.p50 is not None
    soon, late = format_duration(look.ends.p50 - now), look.ends.p90
    if late is None:
        return f"after {soon}"
    if format_duration(look.ends.p50 - now, 1) == format_duration(late - now, 1):
        return f"after {soon}"
    return f"after {soon} (nine times out of ten within {format_duration(late - now)})"
