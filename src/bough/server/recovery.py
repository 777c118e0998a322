"""After a restart: what the journal believes, compared with the machine and what runs on it.

A step is written before it is carried out. So whatever a dead daemon did is in the journal, and
what is in the journal it may not have done: that is done now, and no more than once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from bough.backends.base import Backend, Expected
from bough.core.jobs import Job
from bough.core.model import Event, Held, Node, NodeDown, NodeUp, Start
from bough.core.scheduler import Scheduler
from bough.core.settle import named
from bough.core.state import State
from bough.records import Recipe
from bough.server.anystore import AnyStore

_log = logging.getLogger(__name__)


def of_nodes(state: State, nodes: Iterable[Node], at: float) -> list[Event]:
    """What has changed of the machine while no daemon ran."""
    here = {node.name: node for node in nodes}
    gone: list[Event] = [
        NodeDown(at=at, name=name)
        for name, book in state.nodes.items()
        if name not in here and not book.down
    ]
    new: list[Event] = [
        NodeUp(at=at, node=node)
        for name, node in here.items()
        if name not in state.nodes or state.nodes[name].down or state.nodes[name].node != node
    ]
    return gone + new


def expected(state: State, states: Collection[str], store: AnyStore) -> dict[str, Expected]:
    """Attempts that we believe in, of those in these states."""

    def is_to_be_parked(job: Job) -> bool:
        if job.state != "stopping" or job.ends_as:
            return False
        return (store.recipe(job.id) or Recipe()).park != "stop"

    return {
        job.id: Expected(
            job.epoch,
            job.state,
            state.topology.place(job.held),
            job.step,
            park=is_to_be_parked(job),
        )
        for job in state.table.items
        if job.state in states
    }


def of_jobs(
    scheduler: Scheduler, store: AnyStore, backend: Backend, *, restarted: bool
) -> list[Event]:
    """What became of jobs; starts that may not have been carried out are given once more.

    But not after a restart of the machine: whether they were or not, nothing is left of them.
    """
    state = scheduler.state
    begun = ("running", "resizing", "stopping")
    looked_for = ("starting", *begun) if restarted else begun
    events = list(backend.observe(expected(state, looked_for, store)))
    for job in state.table.items:
        if job.state == "starting" and not restarted:
            backend.execute(_start(state, job), job.spec, store.recipe(job.id) or Recipe())
    strays = backend.sweep(state.jobs.keys())
    if strays:
        _log.warning("ended what ran of jobs that are over: %s", ", ".join(strays))
    return events


def _start(state: State, job: Job) -> Start:
    """The command that it was given."""
    seats = named(state, job) if job.place == job.held else ()
    return Start(job.id, job.epoch, state.topology.place(job.held), seats)


def unparked(jobs: Sequence[str], state: State, at: float) -> list[Event]:
    """Jobs that were parked because the daemon ended."""
    return [Held(at=at, id=id, held=False) for id in jobs if _held(state.jobs, id)]


def _held(jobs: Mapping[str, Job], id: str) -> bool:
    return id in jobs and jobs[id].held_by_user
