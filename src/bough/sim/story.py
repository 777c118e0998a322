"""One job's whole story in sentences, for `--explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bough.core.model import Resize, Start
    from bough.core.scheduler import Scheduler
    from bough.sim.record import JobRecord


class Story:
    """Writes to the records of the jobs somebody asked about; costs nothing for the others."""

    def __init__(self, ids: frozenset[str]) -> None:
        self.ids = ids

    def tell(self, record: JobRecord, at: float, sentence: str) -> None:
        """A sentence as it is."""
        if record.id in self.ids and (at, sentence) not in record.story[-1:]:
            record.story.append((at, sentence))

    def tell_start(self, record: JobRecord, at: float, command: Start, brain: Scheduler) -> None:
        """Where it runs now."""
        if record.id in self.ids:
            again = "started" if command.epoch == 1 else f"started again (epoch {command.epoch})"
            record.story.append((at, f"{again}: {brain.why(record.id).text}"))

    def tell_resize(self, record: JobRecord, at: float, before: int, command: Resize) -> None:
        """From how many devices to how many."""
        if record.id in self.ids:
            now = sum(len(devices) for _, devices in command.place)
            word = "grew" if now > before else "shrank"
            nodes = len(command.place)
            where = f"{nodes} node" + ("s" if nodes > 1 else "")
            record.story.append((at, f"{word} from {before} to {now} devices on {where}"))

    def tell_cause(self, record: JobRecord, at: float, id: str, brain: Scheduler) -> None:
        """Why it waits from now on."""
        if id in self.ids and id in brain.state.jobs:
            reason = brain.why(id)
            if reason.code not in ("running", "stopping", "moving"):
                remedy = f" ({reason.remedy})" if reason.remedy else ""
                self.tell(record, at, f"waits, {reason.code}: {reason.text}{remedy}")

    def tell_last(self, record: JobRecord, at: float, id: str, brain: Scheduler) -> None:
        """How the replay leaves a job that has not ended."""
        if id in self.ids:
            record.story.append((at, f"the replay ends: {brain.why(id).text}"))
