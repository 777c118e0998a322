"""What each command was for: the reason of a decision, beside that of a state (reason.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.model import Clock, Command, Ended, Resize, Start
from bough.core.reason import CODES, ENDINGS, Facts, Reason, many, nodes

if TYPE_CHECKING:
    from bough.core.jobs import Job
    from bough.core.state import State


def reason_for(state: State, command: Command) -> Reason:
    """Why this command was given; to be asked before the next events are handled."""
    if isinstance(command, Ended):
        how = command.state
        return state.farewells.get(command.id) or Reason(code=how, text=f"{ENDINGS[how]}.")
    job = state.jobs.get(command.id)
    assert job is not None, f"{command!r} is about a job that is gone"
    if isinstance(command, Start):
        return _placed(state, job, command)
    if isinstance(command, Resize):
        return _resized(state, job, command)
    if isinstance(command, Clock):
        facts: Facts = {"clock": command.clock}
        text = f"Its devices go at {command.clock:.0%} of their clock, to save energy."
        return Reason(code="clock", facts=facts, text=text)
    return _stopped(state, job)


def _placed(state: State, job: Job, command: Start) -> Reason:
    """It begins, or goes on."""
    row = state.table.row(job)
    size = sum(len(devices) for _, devices in command.place)
    most, waited = int(state.table.max[row]), float(state.now - state.table.since[row])
    facts: Facts = {"devices": size, "nodes": len(command.place), "most": most}
    if command.epoch == 1:
        facts["waited_seconds"] = waited
    share = f" of the {most} it could use" if size < most else ""
    word = "It starts" if command.epoch == 1 else "It goes on"
    text = f"{word} on {many(size)} of {nodes(state, job)}{share}."
    return Reason(code="placed", facts=facts, text=text)


def _resized(state: State, job: Job, command: Resize) -> Reason:
    """It goes on with more, fewer or other devices."""
    size = sum(len(devices) for _, devices in command.place)
    code = "grown" if size > job.had else "shrunk" if size < job.had else "moved"
    facts: Facts = {"devices": size, "had": job.had, "nodes": len(command.place)}
    if job.lost_to and code == "shrunk":
        facts["by"] = job.lost_to
    text = {
        "grown": f"It grows from {many(job.had)} to {size}.",
        "shrunk": f"It shrinks from {many(job.had)} to {size} in favour of others.",
        "moved": f"It moves to {many(size)} of {nodes(state, job)}.",
    }[code]
    return Reason(code=code, facts=facts, text=text)


def _stopped(state: State, job: Job) -> Reason:
    """It leaves its devices."""
    facts: Facts = {"had": job.had}
    if job.ends_as:
        return Reason(code=job.ends_as, facts=facts, text=f"{ENDINGS[job.ends_as]}.")
    if job.place:
        size = sum(mask.bit_count() for _, mask in job.place)
        facts |= {"devices": size, "nodes": len(job.place)}
        text = f"It moves to {many(size)} of {nodes(state, job)}."
        return Reason(code="moved", facts=facts, text=text)
    code = CODES[int(state.table.cause[state.table.row(job)])]
    if code == "preempted":
        facts["by"] = job.lost_to
    if code == "lost":
        facts["by"] = job.lost_by
    text = {
        "preempted": f"Job {job.lost_to}, of higher priority, takes its {many(job.had)}.",
        "lost": f"It lost its devices: {job.lost_by}.",
        "held": "A user parks it.",
    }.get(code, f"It gives up its {many(job.had)}: the policy serves others first.")
    return Reason(code="parked" if code == "busy" else code, facts=facts, text=text)
