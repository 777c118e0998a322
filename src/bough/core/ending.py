"""How a job comes to its end, and with it those that cannot be without it."""

from __future__ import annotations

from collections import deque
from typing import Any

from bough.core import model as m
from bough.core.jobs import Job
from bough.core.reason import HELD, Facts, facts_of_trouble, farewell
from bough.core.settle import reconcile
from bough.core.standing import may_run, seconds_run, vacate
from bough.core.state import MUST, READY, State
from bough.core.units import format_duration


def close(state: State, job: Job, how: Any, reason: str) -> None:
    """The job is over: its row and its devices go."""
    if job.place:
        state.give(job)
    if job.leaving:
        state.clear_leaving(job)
    state.pending.pop(job.serial, None)
    row, facts = state.table.row(job), facts_at_end(state, job) if how != "done" else {}
    if not state.table.wi[READY, row]:
        state.unready -= 1
    state.musts -= int(state.table.wi[MUST, row])
    state.priorities -= job.spec.priority != 0
    state.forget(row, job)
    state.table.remove(row)
    del state.jobs[job.id]
    job.moves("end")
    state.ended[job.id] = how
    if how != "done":
        state.farewells.keep(job.id, farewell(how, reason, facts))
    state.out.append(m.Ended(job.id, job.epoch, how, reason))
    if not state.content:
        state.replan = True


def facts_at_end(state: State, job: Job) -> Facts:
    """What can be said of a job that did not end well."""
    ran = seconds_run(state, job)
    facts: Facts = {"ran_seconds": ran, "attempts": job.epoch, "failures": job.failures}
    return facts | facts_of_trouble(job)


def end(state: State, job: Job, how: Any, reason: str = "") -> None:
    """The job is over, and with it those that cannot be without it."""
    close(state, job, how, reason)
    release_dependents(state, job.id)


def release_dependents(state: State, id: str) -> None:
    """Let those that wait for a job that is over run, or end with it, and so on down the line."""
    over = deque([id] if id in state.dependents else ())
    while over:
        id = over.popleft()
        for name in sorted(state.dependents.pop(id, ())):
            other = state.jobs.get(name)
            if other is None:
                continue
            other.waits_for.discard(id)
            if doomed_by(state, other.spec):
                close(
                    state,
                    other,
                    "cancelled",
                    f"it depends on {id}, which ended as {state.ended[id]}",
                )
                over.append(name)
            elif not other.waits_for:
                state.set_ready(state.table.row(other), *may_run(state, other))
                state.replan = True


def stop_for_good(state: State, job: Job, how: str) -> None:
    """Let a job end as cancelled or timed out, after its processes are gone."""
    job.ends_as = how
    if job.held or job.state == "stopping":
        vacate(state, job)
        state.set_ready(state.table.row(job), False, HELD)
        reconcile(state, job)
    else:
        end(state, job, how, ended_because(job))


def ended_because(job: Job) -> str:
    """A word on why it was stopped for good."""
    if job.ends_as == "timed-out":
        return f"it may run for {format_duration(job.spec.max_run_seconds)}"
    return "by a user"


def doomed_by(state: State, spec: m.JobSpec) -> str:
    """A job whose end makes this one impossible; empty if there is none."""
    for after in spec.after:
        how = state.ended.get(after.job)
        if how is None or after.on == "any":
            continue
        if (how == "done") != (after.on == "success"):
            return after.job
    return ""
