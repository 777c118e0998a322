"""From wishes to commands: find places in the tree, prove that they fit, then tell the bodies."""

from __future__ import annotations

import numpy as np

from bough.core.blocks import numbers
from bough.core.buddies import make_way
from bough.core.causes import cause_of_failure
from bough.core.eviction import make_place
from bough.core.jobs import Job, Seats, Slots
from bough.core.model import Clock, Resize, Start, Stop
from bough.core.places import merge, minus
from bough.core.planning import Draft
from bough.core.policy import Ints
from bough.core.reason import FRAGMENTATION, NONE, PARKED, PREEMPTED
from bough.core.state import CLS, LO, POOL, SINCE, SIZE, State
from bough.core.survey import as_wished

_BIG = 1 << 60


class Settlement:
    """One trial: the tree is changed step by step, and can be put back as it was."""

    def __init__(self, state: State, locality_seconds: float, moves: bool = False) -> None:
        self.state = state
        self.locality_seconds = locality_seconds
        #: Whether smaller jobs move aside where a size finds no place.
        self.moves = moves
        #: Whether those that waited long may be scattered.
        self.scatters = True
        #: row -> place before the trial, for every row whose place was changed, in order.
        self.before: dict[int, tuple[Slots, Seats]] = {}
        #: row -> pool before the trial, for every row that was moved to another.
        self.pools: dict[int, int] = {}
        #: row -> job of higher priority that took its devices.
        self.taken_by: dict[int, str] = {}
        #: row -> cause, for rows that were granted devices but found no place.
        self.failed: dict[int, int] = {}
        #: Smallest plain size that found no place, by pool and compactness: larger need not try.
        self.limit: dict[tuple[int, bool], int] = {}
        self.ranks: Ints | None = None  #: As in the draft.
        self.places: dict[int, Slots] = {}  #: As in the draft.
        #: When a job waiting for locality will accept less of it.
        self.wake_at = float("inf")

    # ------------------------------------------------------------------ the tree

    def hold(self, row: int, job: Job, place: Slots, seats: Seats = ()) -> None:
        """Change a job's place in the tree."""
        state, old = self.state, job.place
        self.before.setdefault(row, (old, job.seats))
        if not old or not place:
            state.give(job)
            if place:
                state.take(job, place, seats)
            return
        gone, new = minus(old, place), minus(place, old)
        if gone:
            state.topology.give(gone, job.spec.cpus, job.spec.memory)
        if new:
            state.topology.take(new, job.spec.cpus, job.spec.memory)
        job.place = place

    def restore(self, row: int, job: Job) -> None:
        """Give a job the place back that it had before the trial."""
        self.state.give(job)
        self.state.retake(job, *self.before[row])

    def repool(self, row: int, pool: int) -> None:
        """Let a job go on with another kind of device."""
        self.pools.setdefault(row, int(self.state.table.wi[POOL, row]))
        self.state.set_pool(row, self.state.table.items[row], pool)

    def rollback(self) -> None:
        """Put the tree back as it was before the trial."""
        items = self.state.table.items
        for row in self.before:
            self.state.give(items[row])
        for row, pool in self.pools.items():
            self.state.set_pool(row, items[row], pool)
        for row, before in self.before.items():
            self.state.retake(items[row], *before)
        self.before.clear()

    def vacate(self, row: int, want: int) -> None:
        """Park a job or make it smaller."""
        job = self.state.table.items[row]
        if want and not job.spec.roles:
            self.hold(row, job, self.state.topology.shrink(job.place, want))
            return
        self.hold(row, job, ())
        if want:
            self.try_size(row, job, int(self.state.table.wi[POOL, row]), want)

    def seat(self, row: int, want: int, exact: bool, evicts: bool = True) -> int:
        """Find a place for `want` devices, or for fewer if the plan is not exact; devices got."""
        state = self.state
        wi = state.table.wi
        job, pool = state.table.items[row], int(wi[POOL, row])
        have = count(job.place)
        evicts &= state.priorities > 0 or self.ranks is not None
        if exact and not evicts and not have and self.hopeless(row, job, pool, want):
            self.failed[row] = FRAGMENTATION
            return 0
        if self.moves and self.try_compact(row, job, pool, want):
            return want
        if self.try_size(row, job, pool, want):
            return want
        if not exact:
            least = max(int(wi[LO, row]), have + 1)
            for size in reversed(state.classes.sizes(int(wi[CLS, row]))):
                if least <= size < want and self.try_size(row, job, pool, size):
                    return size
        if not job.place and evicts and make_place(self, row, want):
            return want
        if not job.place:
            self.failed[row] = cause_of_failure(state, job, pool, want)
            if job.plain:
                key = pool, self.is_patient(row)
                self.limit[key] = min(want, self.limit.get(key, _BIG))
        return have if job.place else 0

    def is_patient(self, row: int) -> bool:
        """Whether it still waits for a compact place."""
        return self.state.now < float(self.state.table.wf[SINCE, row]) + self.locality_seconds

    def hopeless(self, row: int, job: Job, pool: int, want: int) -> bool:
        """Whether one who asked for no more, and no better, has found no place."""
        if not job.plain or not self.limit:
            return False
        if want >= self.limit.get((pool, False), _BIG):
            return True
        if want < self.limit.get((pool, True), _BIG) or not self.is_patient(row):
            return False
        until = float(self.state.table.wf[SINCE, row]) + self.locality_seconds
        self.wake_at = min(self.wake_at, until)
        return True

    def try_compact(self, row: int, job: Job, pool: int, want: int) -> bool:
        """Whether a compact place was found, if need be by moving smaller jobs."""
        self.scatters = False
        found = self.try_size(row, job, pool, want) or make_way(self, row, want)
        self.scatters = True
        return found

    def try_size(self, row: int, job: Job, pool: int, want: int) -> bool:
        """Whether a place of that size was found and taken."""
        old = job.place
        if old and job.in_place:
            more = self.look(row, job, pool, want - count(old), old)
            if more is None:
                return False
            self.hold(row, job, merge(old, more[0]))
            return True
        if old:
            self.hold(row, job, ())
        found = self.look(row, job, pool, want, ())
        if found is None:
            if old:
                self.restore(row, job)
            return False
        self.hold(row, job, *found)
        return True

    def look(
        self, row: int, job: Job, pool: int, size: int, near: Slots
    ) -> tuple[Slots, Seats] | None:
        """Ask the tree; a job that waited long accepts to be scattered."""
        state, spec = self.state, job.spec
        if row in self.places:
            wished = as_wished(state, job, self.places[row], size, near)
            if wished is not None:
                return wished
        found = state.find(job, pool, size, near)
        if found is not None or spec.topology.mode != "prefer" or (size == 1 and not near):
            return found
        if not self.scatters:
            return None
        patient_until = float(state.table.wf[SINCE, row]) + self.locality_seconds
        if state.now < patient_until:
            self.wake_at = min(self.wake_at, patient_until)
            return None
        return state.find(job, pool, size, near, relaxed=True)

    # ------------------------------------------------------------------ the plan

    def apply(self, draft: Draft) -> bool:
        """Carry the draft out on the tree; False when sizes given to some could not be placed."""
        want = draft.want
        self.ranks, self.places = draft.ranks, draft.places
        if not draft.changes and not draft.moved:
            return True
        grow: list[tuple[int, int]] = []
        for row, pool in draft.moved.items():
            self.vacate(row, 0)
            self.repool(row, pool)
            grow.append((-int(want[row]), row))
        for row, held, wanted in draft.changes:
            if draft.moved and row in draft.moved:
                continue
            if wanted < held:
                self.vacate(row, wanted)
            else:
                grow.append((-wanted, row))
        ordered = bool(draft.orders)
        if len(grow) > 1:
            if ordered:
                grow = self.in_rank(grow, draft)
            else:
                grow.sort()  # the largest first
        held_back: set[int] = set()
        for wanted, row in grow:
            if row in held_back:
                continue
            if not self.seat(row, -wanted, exact=ordered) and ordered:
                held_back |= behind(row, draft)
        if self.taken_by:
            self.reseat()
        if self.failed and ordered:
            for order, wished, devices, skip in draft.orders:
                self.fill_up(order, wished, want, devices, restores=not skip)
            return True
        return not self.failed

    def in_rank(self, grow: list[tuple[int, int]], draft: Draft) -> list[tuple[int, int]]:
        """Rows that grow, by the policy's order."""
        rank = np.zeros(self.state.table.n, np.int64)
        for order, _, _, _ in draft.orders:
            rank[order] = np.arange(len(order))
        return sorted(grow, key=lambda g: (int(rank[g[1]]), g[1]))

    def fill_up(self, order: Ints, wished: Ints, want: Ints, devices: int, restores: bool) -> None:
        """Hand what could not be placed to the next in order, those who ran before included.

        With `restores`, only to those who ran before, on the devices they had.
        """
        table, topology = self.state.table, self.state.topology
        pool = int(table.wi[POOL, order[0]]) if len(order) else 0
        room = devices - self.used(order)
        could = wished <= max(topology.free(pool), 0)
        could[list(self.before)] = True
        candidates = order[(want[order] == 0) & (wished[order] > 0) & could[order]]
        for row in candidates.tolist():
            size, job = int(wished[row]), table.items[row]
            if job.place or row in self.failed:
                continue
            had = self.before.get(row)
            if had is not None and 0 < count(had[0]) <= room and topology.is_unheld(had[0]):
                self.restore(row, job)
                room -= count(had[0])
            elif size <= room and size <= topology.free(pool) and not restores:
                room -= self.seat(row, size, exact=True)
            if room <= 0:
                return

    def used(self, rows: Ints) -> int:
        """Devices these rows hold at this point of the trial."""
        items, size = self.state.table.items, self.state.table.size
        total = int(size[rows].sum())
        among = set(rows.tolist()) if self.before else ()
        for row in self.before:
            if row in among:
                total += count(items[row].place) - int(size[row])
        return total

    def reseat(self) -> None:
        """Let jobs that had to make room for others have what is left."""
        for row in sorted(self.taken_by):
            had = count(self.before[row][0])
            if not self.state.table.items[row].place and had:
                self.seat(row, had, exact=False, evicts=False)
                self.failed.pop(row, None)

    # ------------------------------------------------------------------ commands

    def commit(self) -> None:
        """Keep the trial: books first, then commands, those that free devices before the others."""
        state = self.state
        items = state.table.items
        for row in self.before:
            enter(state, row, items[row], self.taken_by.get(row, ""))
        jobs = [items[row] for row in self.before]
        if len(jobs) > 1:
            # What leaves devices first, so that whoever is given them knows that they are left.
            jobs.sort(key=leaves_nothing)
        for job in jobs:
            reconcile(state, job)
        if state.pending:
            retry_pending(state)


def leaves_nothing(job: Job) -> bool:
    """Whether it keeps all it was told to hold."""
    return not job.held or job.held == job.place or not minus(job.held, job.place)


def enter(state: State, row: int, job: Job, taken_by: str = "") -> None:
    """Bring a row in line with the place that its job has now."""
    size, before = count(job.place), int(state.table.wi[SIZE, row])
    if size != before:
        state.set_size(row, size)
        job.lost_to = taken_by
        if not size or not before:
            off = PREEMPTED if taken_by else PARKED
            state.set_cause(row, NONE if size else off)
    spec = job.spec
    if (
        state.damp_seconds or job.begins or spec.min_run_seconds or not spec.preemptible
        or job.ends_as
    ):  # fmt: skip
        state.set_bounds(row, job)


def behind(row: int, draft: Draft) -> set[int]:
    """Rows that may not pass this one, which found no place."""
    for order, _, _, skip in draft.orders:
        at = (order == row).nonzero()[0]
        if len(at):
            return set() if skip else set(order[int(at[0]) + 1 :].tolist())
    return set()


def count(slots: Slots) -> int:
    """How many devices."""
    if len(slots) == 1:
        return slots[0][1].bit_count()
    return sum([mask.bit_count() for _, mask in slots])


def reconcile(state: State, job: Job) -> None:
    """One step from what the body was told towards what the job is meant to hold."""
    place, held, out = job.place, job.held, state.out
    if place == held:
        state.pending.pop(job.serial, None)
        return
    if held:
        gone = minus(held, place)
        if not place or (gone and minus(place, held)) or not job.in_place:
            _stop(state, job)
            return
        if gone:
            # Others may have been given these and must wait, even if nothing can be sent yet.
            state.mark_leaving(job, gone)
        if job.state != "running" or (not gone and state.blocked(minus(place, held))):
            state.pending[job.serial] = job
            return
        job.step += 1
        job.moves("resize")
        job.told_at = state.now
        job.had = count(held)
        job.held = place
        state.pending.pop(job.serial, None)
        out.append(Resize(job.id, job.epoch, job.step, state.topology.place(place)))
        return
    if job.state != "waiting" or state.blocked(place):
        state.pending[job.serial] = job
        return
    job.epoch += 1
    job.step = 0
    job.moves("start")
    job.told_at = state.now
    job.held = place
    state.pending.pop(job.serial, None)
    seats = named(state, job) if job.seats else ()
    out.append(Start(job.id, job.epoch, state.topology.place(place), seats))
    out += [Clock(job.id, job.epoch, job.clock)] if job.clock != 1.0 else []
    state.started(job)


def named(state: State, job: Job) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """The seats of a gang with names."""
    names, roles = state.topology.names, job.spec.roles
    return tuple([(roles[r].name, names[n], numbers(mask)) for r, n, mask in job.seats])


def _stop(state: State, job: Job) -> None:
    """Tell the body to leave everything; the next start waits for its answer."""
    job.moves("stop")
    job.told_at = state.now
    job.had = count(job.held)
    state.mark_leaving(job, job.held)
    row = state.table.row(job)
    if state.table.wf[SINCE, row] < state.now:
        state.set_size(row, int(state.table.wi[SIZE, row]))
    job.held = ()
    if job.place:
        state.pending[job.serial] = job
    else:
        state.pending.pop(job.serial, None)
    state.out.append(Stop(job.id, job.epoch, park=not job.ends_as))


def retry_pending(state: State) -> None:
    """Starts and growths that waited for devices to be left."""
    for job in list(state.pending.values()):
        reconcile(state, job)
