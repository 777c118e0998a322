"""How each event changes the state; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.core import model as m
from bough.core.amend import amended
from bough.core.arrival import newcomer
from bough.core.ending import doomed_by, end, ended_because, stop_for_good
from bough.core.exits import LOST as LOST_EXIT
from bough.core.jobs import Job
from bough.core.learning import expected_work, learn_end, learn_rate
from bough.core.nodes import device_health, node_down, node_drained, node_up
from bough.core.reason import LOST, NONE, RETRY
from bough.core.retries import back_off, note_failure, note_loss
from bough.core.settle import reconcile
from bough.core.standing import may_run, stand, vacate
from bough.core.state import DONE, LEFT, NAN, QUEUE, RATE, SINCE, State

INFINITY = m.INFINITY


def submitted(state: State, event: m.Submitted) -> None:
    """A new row; whether it is admitted was asked before."""
    if event.id in state.jobs or event.id in state.ended:
        return
    spec = event.spec
    job = Job(event.id, state.next_serial, spec)
    state.next_serial += 1
    job.pools = state.pools_for(spec)
    job.waits_for = unfinished(state, spec)
    for other in job.waits_for:
        state.dependents.setdefault(other, set()).add(job.id)
    if spec.queue != "default":
        state.queues.index(spec.queue)
    add_row(state, job, event.at)
    state.jobs[job.id] = job
    row = state.table.n - 1
    ready, cause = may_run(state, job)
    state.set_ready(row, ready, cause)
    if not state.content:
        state.replan = True
    elif ready:
        state.fresh.append(job)
    doomed = doomed_by(state, spec) if spec.after else ""
    if doomed:
        end(state, job, "cancelled", f"it depends on {doomed}, which ended otherwise")


def add_row(state: State, job: Job, at: float) -> None:
    """The numbers of a new job."""
    spec, pool = job.spec, (job.pools or (0,))[0]
    first = newcomer(state, spec, pool, at)
    sizes, speeds = state.classes.curve(first.cls)
    least, most, wish_speed = sizes[0], sizes[-1], speeds[-1]
    state.priorities += spec.priority != 0
    user = state.users.setdefault(spec.user, len(state.users))
    queue = 0 if state.queues.trivial else state.queues.index(spec.queue)
    guaranteed = int(spec.service == "guaranteed")
    known = spec.estimate_seconds and not state.learns
    guess = 0.0 if known else expected_work(state, spec)
    state.table.add(
        job,
        (job.serial, first.cls, 0, least, most, least, most, 0, spec.priority, queue, pool, most,
         0, 1, guaranteed, user, NONE, 0, 0),
        (at, at, NAN, NAN, 0.0, first.left, 0.0, first.deadline, 0.0, spec.weight,
         spec.max_run_seconds,
         wish_speed, 0.0, guess),
    )  # fmt: skip


def unfinished(state: State, spec: m.JobSpec) -> set[str]:
    """Jobs it depends on that have not ended yet (a job not known yet counts as one)."""
    return {a.job for a in spec.after if a.job not in state.ended} if spec.after else set()


def cancelled(state: State, event: m.Cancelled) -> None:
    """The user wants it gone."""
    job = state.jobs.get(event.id)
    if job is not None and not job.ends_as:
        stop_for_good(state, job, "cancelled")


def held(state: State, event: m.Held) -> None:
    """Park on demand, or let go on."""
    job = state.jobs.get(event.id)
    if job is None or job.ends_as or job.held_by_user == event.held:
        return
    job.held_by_user = event.held
    if event.held:
        vacate(state, job)
        reconcile(state, job)
    stand(state, job)
    state.replan = True


def started(state: State, event: m.Started) -> None:
    """The processes run; progress counts from now."""
    job = state.jobs.get(event.id)
    if job is None or event.epoch != job.epoch or job.state != "starting":
        return
    job.moves("started", event)
    begun(state, job)
    if job.serial in state.pending:
        reconcile(state, job)


def begun(state: State, job: Job) -> None:
    """Note how long it took; what takes long is not repeated soon."""
    job.begins = state.now - job.told_at
    if job.begins and job.place:
        state.set_bounds(state.table.row(job), job)


def resized(state: State, event: m.Resized) -> None:
    """The job holds what it was told to hold; what it left is free."""
    job = state.jobs.get(event.id)
    if job is None or (event.epoch, event.step) != (job.epoch, job.step):
        return
    if job.state != "resizing":
        return
    job.moves("resized", event)
    if not event.ok:
        # What it should have left it may still be on, until all of it is gone.
        state.mark_leaving(job, job.held)
        job.held = ()
        job.moves("stop", event)
        state.out.append(m.Stop(job.id, job.epoch))
        state.pending[job.serial] = job
        return
    begun(state, job)
    state.clear_leaving(job)
    if job.serial in state.pending:
        reconcile(state, job)


def exited(state: State, event: m.Exited) -> None:
    """The processes of this epoch are gone."""
    job = state.jobs.get(event.id)
    if job is None or event.epoch != job.epoch or job.state == "waiting":
        return
    if event.why == "done":
        learn_end(state, job)
        end(state, job, "done")
        return
    no_more = note_failure(state, job, event) if event.why == "failed" else ""
    if no_more and not job.ends_as:
        end(state, job, "failed", no_more)
        return
    by_itself = job.state != "stopping"
    slowed = by_itself and event.why == "lost" and note_loss(state, job, event)
    if not by_itself:
        job.leaves = state.now - job.told_at
    job.moves("exit", event)
    state.clear_leaving(job)
    if job.ends_as:
        job.held = ()
        end(state, job, job.ends_as, ended_because(job))
    elif by_itself:
        off = RETRY if event.why == "failed" or slowed else LOST
        vacate(state, job, off)
        job.held = ()
        if off == RETRY:
            back_off(state, job)
        else:
            job.lost_by = event.note or LOST_EXIT.text
        stand(state, job, off)
    else:
        job.held = ()
        if job.place:
            reconcile(state, job)


def progressed(state: State, event: m.Progressed) -> None:
    """Belief meets measurement."""
    job = state.jobs.get(event.id)
    if job is None or event.epoch != job.epoch:
        return
    row, wf = state.table.row(job), state.table.wf
    # The books since its last change of size are kept as if it had been so all the time: a report
    # is no change of size, and what counts from that moment (patience, damping) counts on.
    elapsed, before = state.now - float(wf[SINCE, row]), float(wf[RATE, row])
    left = float(wf[LEFT, row]) - before * elapsed if event.left is None else max(event.left, 0.0)
    if event.rate is not None and event.size > 0 and event.rate > 0:
        learn_rate(state, job, event.size, event.rate)
    rate = float(wf[RATE, row])
    wf[LEFT, row] = left + rate * elapsed
    wf[DONE, row] += (before - rate) * elapsed


def queue_set(state: State, event: m.QueueSet) -> None:
    """A queue is made or changed; jobs find their queue anew."""
    state.queues.set(event.queue)
    for row, job in enumerate(state.table.items):
        state.table.wi[QUEUE, row] = state.queues.index(job.spec.queue)
    state.replan = True


def tick(state: State, event: m.Tick) -> None:
    """Time alone may change the plan."""
    state.replan = True


HANDLERS: dict[type, Callable[[State, Any], None]] = {
    m.Submitted: submitted, m.Cancelled: cancelled, m.Held: held, m.Amended: amended,
    m.Started: started, m.Resized: resized, m.Exited: exited, m.Progressed: progressed,
    m.NodeUp: node_up, m.NodeDown: node_down, m.NodeDrained: node_drained,
    m.DeviceHealth: device_health, m.QueueSet: queue_set, m.Tick: tick,
}  # fmt: skip
