"""An experiment: traces × clusters × worlds × loads × policies × seeds, kept in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bough.policies import parse
from bough.policies._file import is_file
from bough.sim import parallel
from bough.sim.options import Failures
from bough.sim.results import Row
from bough.sim.sweep import (
    Drawn,
    Point,
    Sweep,
    fingerprint,
    kept_rows,
    point_of,
    points,
    run_point,
)

#: In the experiment's folder: every simulation, one line each, as it was done.
ROWS: Final = "rows.jsonl"
#: What is compared unless the experiment says otherwise.
METRICS: Final = (
    "mean_jct_seconds", "p99_jct_seconds", "worst_fairness", "deadline_ratio_submitted",
)  # fmt: skip


#: The number of a sweep, and which of its points.
Task = tuple[int, Point]


class Cell(msgspec.Struct, frozen=True):
    """One trace on one cluster in one world."""

    trace: str
    cluster: str
    #: What differs between the worlds of this experiment, in words; empty: there is one.
    world: str
    common: Sweep


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    name: str
    cells: tuple[Cell, ...]
    loads: tuple[float | None, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    #: The policy that the others are compared with.
    baseline: str
    metrics: tuple[str, ...] = METRICS

    def tasks(self) -> list[Task]:
        """Every simulation: the number of its cell, and its point.

        Where nothing is drawn all seeds are the same, and to count them all would look like proof.
        """
        return [
            (number, point)
            for number, cell in enumerate(self.cells)
            for point in points(
                self.loads, self.policies, self.seeds if draws(cell.common) else self.seeds[:1]
            )
        ]


def draws(common: Sweep) -> bool:
    """Whether a seed makes a difference."""
    options = common.options
    return isinstance(common.source, Drawn) or bool(
        options.speed_error or options.straggler_share or options.failures != Failures()
    )


def conduct(experiment: Experiment, folder: Path, processes: int, tell: parallel.Tell) -> list[Row]:
    """The rows of all simulations in their order; those that the folder has are not run again."""
    tasks = experiment.tasks()
    rows = carry_out(
        [cell.common for cell in experiment.cells], tasks, folder / ROWS, processes, tell
    )
    return [labelled(experiment, task, row) for task, row in zip(tasks, rows, strict=True)]


def carry_out(
    commons: Sequence[Sweep],
    tasks: Sequence[Task],
    file: Path,
    processes: int,
    tell: parallel.Tell,
) -> list[Row]:
    """The rows of these points of these sweeps; those that the file has are not run again."""
    prints = [fingerprint(common) for common in commons]
    marks = {task: mark_of(prints[task[0]], task[1].policy) for task in tasks}
    known = {(mark, point_of(row)): row for mark, row in kept_rows(file)}
    missing = [task for task in tasks if (marks[task], task[1]) not in known]
    done = len(tasks) - len(missing)

    def tell_all(share: float) -> None:
        tell((done + share * len(missing)) / len(tasks))

    with file.open("ab") as out:
        for number, row in parallel.each(_run, tuple(commons), missing, processes, tell_all):
            task = missing[number]
            out.write(msgspec.json.encode({"sweep": marks[task], **row}) + b"\n")
            out.flush()
            known[marks[task], task[1]] = row
    return [known[marks[task], task[1]] for task in tasks]


def _run(commons: tuple[Sweep, ...], task: Task, tell: parallel.Tell) -> Row:
    cell, point = task
    return run_point(commons[cell], point, tell)


def mark_of(mark: str, policy: str) -> str:
    """Changes with all that would change a result, a policy's own file among it."""
    name, _ = parse(policy)
    if not is_file(name):
        return mark
    return hashlib.blake2b(mark.encode() + Path(name).read_bytes(), digest_size=6).hexdigest()


def labelled(experiment: Experiment, task: Task, row: Row) -> Row:
    """The row with its cell before it."""
    cell = experiment.cells[task[0]]
    return {"trace": cell.trace, "cluster": cell.cluster, "world": cell.world, **row}


def instance_of(row: Row) -> tuple[object, ...]:
    """What a row shares with those of the other policies."""
    return tuple(row[name] for name in ("trace", "cluster", "world", "load", "seed"))


def by_policy(rows: Iterable[Row], metric: str) -> dict[str, dict[tuple[object, ...], float]]:
    """policy -> instance -> value, where there is one."""
    found: dict[str, dict[tuple[object, ...], float]] = {}
    for row in rows:
        values = found.setdefault(row["policy"], {})
        if row[metric] is not None:
            values[instance_of(row)] = float(row[metric])
    return found
