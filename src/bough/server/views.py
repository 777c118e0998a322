"""Queues, devices, users and receipts as the API shows them, made of what the daemon knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import numpy as np

from bough.core.model import INFINITY
from bough.core.prospects import Outlook
from bough.core.queues import HOUR_SECONDS
from bough.core.state import State
from bough.hardware.readings import Reading
from bough.records import (
    ENDED,
    DeviceRecord,
    JobRecord,
    QueueRecord,
    Receipt,
    UsageRow,
    UserRecord,
)
from bough.server.ledger import Kept
from bough.server.page import replace
from bough.server.rows import Account

DeviceState = Literal["free", "held", "taken", "unhealthy", "drained"]
Readings = Mapping[tuple[str, int], Reading]


def as_of(kept: Kept, now: float) -> JobRecord:
    """A live job, with what has grown since its record was made."""
    record, passed = kept.record, max(0.0, now - kept.at)
    if not record.devices or not passed:
        return record
    eta, progress = record.eta_seconds, record.progress
    if eta is not None and progress is not None and eta > 0:
        progress += (1.0 - progress) * min(1.0, passed / eta)
        eta = max(0.0, eta - passed)
    used = record.device_seconds + record.devices * passed
    return replace(record, device_seconds=used, progress=progress, eta_seconds=eta)


def foreseen(record: JobRecord, seen: Outlook | None) -> JobRecord:
    """A live job with when it is likely to begin and end."""
    if seen is None:
        return record
    return replace(record, begins=None if record.devices else seen.begins, ends=seen.ends)


# --------------------------------------------------------------------------- queues and users


def queues(state: State, now: float) -> tuple[QueueRecord, ...]:
    """Every queue, with its jobs and those of the queues below it."""
    tree, table = state.queues, state.table
    count = len(tree.names)
    size = np.bincount(table.queue, weights=table.size, minlength=count).astype(np.int64)
    running = np.bincount(table.queue, weights=table.size > 0, minlength=count).astype(np.int64)
    waiting = np.bincount(table.queue, minlength=count).astype(np.int64) - running
    entitled = _entitled(state, count)
    history = tree.history(now)
    return tuple(
        QueueRecord(
            queue=tree.get(i),
            used=tree.with_those_below(name, size),
            entitled=entitled[i],
            running=tree.with_those_below(name, running),
            waiting=tree.with_those_below(name, waiting),
            history_device_hours=float(history[i]) / HOUR_SECONDS,
            budget_left_device_hours=None if (left := tree.budget_left(i)) == INFINITY else left,
        )
        for i, name in enumerate(tree.names)
    )


def _entitled(state: State, count: int) -> list[int]:
    """Devices that each queue may count on; where nobody shares, what its jobs want and there is.

    What was found when jobs of a queue were last planned says nothing once they are gone.
    """
    table, found = state.table, [0] * count
    pools = zip(table.queue.tolist(), table.pool.tolist(), strict=True)
    if state.queues.trivial:
        there = sum(map(state.topology.usable, range(len(state.topology.kinds))))
        wanted = np.bincount(table.queue, table.hi, count).astype(np.int64)
        return np.minimum(wanted, there).tolist()  # type: ignore[no-any-return]
    for queue, pool in set(pools):
        found[queue] += state.entitled.get((queue, pool), 0)
    return found


def users(live: Iterable[Kept], used: Mapping[str, float], now: float) -> tuple[UserRecord, ...]:
    """Everybody who has, or has had, jobs here."""
    rows = {user: [0, 0, 0, seconds] for user, seconds in used.items()}
    for kept in live:
        record = kept.record
        row = rows.setdefault(record.user, [0, 0, 0, 0.0])
        row[0 if record.devices else 1] += 1
        row[2] += record.devices
        row[3] += as_of(kept, now).device_seconds - record.device_seconds
    return tuple(
        UserRecord(
            user=user, running=int(row[0]), waiting=int(row[1]), devices=int(row[2]),
            device_hours=row[3] / HOUR_SECONDS,
        )
        for user, row in sorted(rows.items())
    )  # fmt: skip


# --------------------------------------------------------------------------- devices


def devices(
    state: State, live: Mapping[str, Kept], readings: Readings, taken: Mapping[tuple[str, int], str]
) -> tuple[DeviceRecord, ...]:
    """Every device of every node that is up."""
    held = {
        (node, device): kept.record
        for kept in live.values()
        for node, numbers in kept.record.place
        for device in numbers
    }
    found = []
    for name, book in state.nodes.items():
        if book.down:
            continue
        for index in range(book.node.devices):
            reading = readings.get((name, index), Reading())
            record = held.get((name, index))
            note = taken.get((name, index), "")
            status: DeviceState = "held" if record else "drained" if book.drained else "free"
            if index in book.unhealthy:
                status = "taken" if note and not reading.ailment else "unhealthy"
            found.append(
                DeviceRecord(
                    node=name, kind=book.node.kind, index=index, state=status,
                    job=record.id if record else "", user=record.user if record else "",
                    note=reading.ailment or note or book.unhealthy.get(index, ""),
                    model=reading.model, path=book.node.path,
                    memory_bytes=reading.memory_bytes, temperature=reading.temperature,
                    watts=reading.watts, memory_used_bytes=reading.memory_used_bytes,
                    utilisation=reading.utilisation,
                )
            )  # fmt: skip
    return tuple(found)


# --------------------------------------------------------------------------- receipts and usage


def receipt(record: JobRecord, account: Account, now: float) -> Receipt:
    """What became of a job, and what it took."""
    waits = dict(account.waits)
    if account.cause and record.state not in ENDED:
        waits[account.cause] = waits.get(account.cause, 0.0) + max(0.0, now - account.since)
    end = now if record.ended is None else record.ended
    held = sum(until - since for since, until, _ in _stretches(account, 0.0, end))
    joules = account.energy_joules
    return Receipt(
        job=record.id,
        state=record.state,
        submitted=record.submitted,
        began=record.began,
        ended=record.ended,
        waited_seconds=sum(waits.values()),
        waits=waits,
        ran_seconds=held,
        device_seconds=record.device_seconds,
        lost_device_seconds=account.lost_device_seconds,
        starts=record.epoch,
        resizes=account.resizes,
        parks=account.parks,
        failures=record.failures,
        energy_kwh=None if joules is None else joules / 3.6e6,
    )


def usage(
    jobs: Iterable[tuple[JobRecord, Account | None]],
    since: float,
    until: float,
    by: Literal["user", "queue", "job"],
) -> tuple[UsageRow, ...]:
    """Device-hours and waiting within that time."""
    rows: dict[str, UsageRow] = {}
    for record, account in jobs:
        who = {"user": record.user, "queue": record.queue, "job": record.id}[by]
        row = rows.get(who) or UsageRow(who=who)
        end = min(until, record.ended if record.ended is not None else until)
        stretches = list(_stretches(account or Account(id=record.id), since, end))
        held = sum(to - at for at, to, _ in stretches)
        used = sum((to - at) * devices for at, to, devices in stretches)
        waited = max(0.0, end - max(since, record.submitted) - held)
        failed = record.state == "failed" and since <= (record.ended or 0.0) < until
        rows[who] = replace(
            row,
            jobs=row.jobs + 1,
            device_hours=row.device_hours + used / HOUR_SECONDS,
            waited_hours=row.waited_hours + waited / HOUR_SECONDS,
            failed=row.failed + failed,
            energy_kwh=_sum(row.energy_kwh, account, used, record.device_seconds),
        )
    return tuple(sorted(rows.values(), key=lambda row: (-row.device_hours, row.who)))


def _sum(before: float | None, account: Account | None, used: float, all: float) -> float | None:
    """Energy by the part of the job's device-seconds that lies in that time."""
    if account is None or account.energy_joules is None:
        return before
    part = used / all if all > 0 else 0.0
    return (before or 0.0) + account.energy_joules * part / 3.6e6


def _stretches(account: Account, since: float, until: float) -> Iterator[tuple[float, float, int]]:
    """From when until when it held how many devices, within that time."""
    ends = [at for at, _ in account.sizes[1:]] + [until]
    for (at, devices), next_at in zip(account.sizes, ends, strict=False):
        begin, end = max(at, since), min(next_at, until)
        if devices and end > begin:
            yield begin, end, devices
