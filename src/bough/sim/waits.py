"""Seconds that jobs waited, by cause: every moment between submission and end without devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.reason import CODES, NONE, ROUND

if TYPE_CHECKING:
    from bough.core.scheduler import Scheduler
    from bough.sim.record import JobRecord
    from bough.sim.story import Story
    from bough.sim.world import Running


#: What a job waits for that was granted devices which others have still to leave.
MOVING = "moving"
#: What no plan would end, so that nobody who waits for it waits for the next round.
UNPLANNED = frozenset({MOVING, "retry", "dependency", "held", "kind", "too-big"})


class Waits:
    """Turns changes of cause into seconds."""

    def __init__(self) -> None:
        #: job id -> since when it waits, or will wait once it has left its devices, and why.
        self.since: dict[str, tuple[float, str]] = {}
        #: Whether something has changed that only the next round of planning looks at.
        self.awaits_round = False

    def turn(self, brain: Scheduler, jobs: dict[str, Running], now: float) -> None:
        """Note that a round of planning is awaited from now on, or is over."""
        state = brain.state
        awaits = state.replan and state.round_at > now
        if awaits == self.awaits_round:
            return
        for id, (_, cause) in list(self.since.items()):
            job = jobs.get(id)
            if job is not None and not job.size:
                self.stop(id, job.record, now)
                self.since[id] = (now, cause)
        self.awaits_round = awaits

    def note(self, brain: Scheduler, jobs: dict[str, Running], story: Story) -> None:
        """What the scheduler says of why jobs wait from now on."""
        since, explains = self.since, bool(story.ids)
        for id, at, cause in brain.state.causes:
            job = jobs.get(id)
            if job is None:
                continue
            if not job.size and id in since:
                self.stop(id, job.record, at)
            since[id] = (at, MOVING if cause == NONE else CODES[cause])
            if explains and cause != NONE:
                story.tell_cause(job.record, at, id, brain)
        brain.state.causes.clear()

    def begin(self, id: str, now: float) -> None:
        """It has left its devices; the cause is what was said last, if anything."""
        cause = self.since[id][1] if id in self.since else MOVING
        self.since[id] = (now, cause)

    def stop(self, id: str, record: JobRecord, now: float) -> None:
        """It waits no more."""
        before = self.since.pop(id, None)
        if before is not None and now > before[0]:
            waits, cause = record.waits, before[1]
            if self.awaits_round and cause not in UNPLANNED:
                cause = CODES[ROUND]
            waits[cause] = waits.get(cause, 0.0) + now - before[0]
