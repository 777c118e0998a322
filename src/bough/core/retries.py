"""What a failed try means for its job: whether there is another, and when it comes."""

from __future__ import annotations

import heapq
from zlib import crc32

from bough.core.exits import LOST, explain
from bough.core.jobs import Job, Trouble
from bough.core.model import INFINITY, Exited
from bough.core.reason import RETRY
from bough.core.standing import seconds_run, stand
from bough.core.state import State

#: What passes by itself is tried again without end, but not in a storm: more tries than this in a
#: row, none of which ran for so long, do not end by accident.
STORM_TRIES = 5
STORM_SECONDS = 60.0
#: Who ran for so long since the last failure is waited for as after the first (as Kubernetes does).
CALM_SECONDS = 600.0
#: Doubling the wait more often than this makes no difference.
MOST_DOUBLINGS = 60
#: Checksums of like names are alike; times this (2**32 by the golden ratio; Knuth), they are not.
MIXER = 2_654_435_769


def note_failure(state: State, job: Job, event: Exited) -> str:
    """Count a failed try; in words why there is no other, empty if there is one."""
    ended = explain(event.code, "failed", event.note)
    trouble = job.trouble = job.trouble or Trouble()
    trouble.code, trouble.kind, trouble.text = event.code, ended.kind, ended.text
    ran = seconds_run(state, job)
    lasted, trouble.ran = ran - trouble.ran, ran
    trouble.streak = 1 if lasted >= CALM_SECONDS else trouble.streak + 1
    if lasted >= STORM_SECONDS:
        trouble.quick = 0
    if ended.kind == "transient":
        trouble.passing += 1
        trouble.quick += lasted < STORM_SECONDS
        if trouble.quick <= STORM_TRIES:
            return ""
        return f"{ended.text}, as did {trouble.quick} tries in a row that ran less than a minute"
    job.failures += 1
    if ended.kind == "permanent":
        return f"{ended.text}; another try would end the same way"
    if job.failures <= job.spec.retries:
        return ""
    tries = job.spec.retries + 1
    return f"{ended.text}, on the last of {tries} tries" if tries > 1 else ended.text


def note_loss(state: State, job: Job, event: Exited) -> bool:
    """Count a try that was lost; whether the next is to wait, as so many in a row are no chance.

    It is not the job's fault, so it does not end by that: it is only kept from doing nothing else.
    """
    trouble = job.trouble = job.trouble or Trouble()
    ran = seconds_run(state, job)
    lasted, trouble.lost_ran = ran - trouble.lost_ran, ran
    trouble.lost = trouble.lost + 1 if lasted < STORM_SECONDS else 0
    if trouble.lost <= STORM_TRIES or not state.backoff_seconds:
        return False
    trouble.code, trouble.kind, trouble.text = event.code, LOST.kind, event.note or LOST.text
    trouble.passing += 1
    trouble.streak += 1
    return True


def back_off(state: State, job: Job) -> None:
    """Let the next try of a job that failed wait, each time twice as long."""
    if not state.backoff_seconds or job.trouble is None:
        return
    job.trouble.again_at = state.now + wait_seconds(state, job, job.trouble)
    heapq.heappush(state.backoffs, (job.trouble.again_at, job.serial))


def wait_seconds(state: State, job: Job, trouble: Trouble) -> float:
    """From half of the wait to all of it, always the same for the same try of the same job.

    Jobs that failed together for one reason do not come back together.
    """
    doubled = state.backoff_seconds * 2.0 ** min(trouble.streak - 1, MOST_DOUBLINGS)
    mixed = crc32(f"{job.id}/{tries_before(job)}".encode()) * MIXER % 2**32
    part = mixed / 2**32
    return min(doubled, state.backoff_max_seconds) * (1.0 + part) / 2.0


def tries_before(job: Job) -> int:
    """How many tries have failed so far."""
    return job.failures + (job.trouble.passing if job.trouble is not None else 0)


def next_try(state: State) -> float:
    """When the next job has waited long enough."""
    backoffs = state.backoffs
    while backoffs:
        at, serial = backoffs[0]
        row = state.by_serial(serial)
        trouble = state.table.items[row].trouble if row is not None else None
        if trouble is not None and trouble.again_at == at:
            return at
        heapq.heappop(backoffs)
    return INFINITY


def end_waits(state: State) -> None:
    """Let those that have waited long enough be tried again."""
    while next_try(state) <= state.now:
        _, serial = heapq.heappop(state.backoffs)
        row = state.by_serial(serial)
        assert row is not None
        job = state.table.items[row]
        if not job.place:
            stand(state, job, RETRY)
        state.replan = True


__all__ = ["back_off", "end_waits", "next_try", "note_failure", "note_loss", "tries_before"]
