"""Turns what the command line names into what the simulator takes, or says what is wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bough.errors import InputError, nearest

if TYPE_CHECKING:
    from bough.core.cluster import Cluster
    from bough.core.model import Queue
    from bough.core.speedup import SpeedBook
    from bough.core.supply import Supply
    from bough.sim.options import Failures, Options, Tools
    from bough.sim.trace import Trace

#: Rows that could not be read are told one by one up to here.
PROBLEMS_SHOWN = 3
#: A part of a list of policies that is a knob of the one before it.
KNOB = re.compile(r"\w+\s*=")


def read_cluster(text: str) -> Cluster:
    """A cluster from its short form or from a file."""
    from bough.clusterfile import find_cluster

    try:
        return find_cluster(text)
    except InputError as error:
        raise (error if error.file else error.at(field="--cluster")) from None


def read_speedups(path: Path | None, cluster: Cluster, kind: str) -> SpeedBook | None:
    """The tables, relative to the kind that run times were measured on."""
    if path is None:
        return None
    from bough.core.speedup import SpeedBook
    from bough.sim.tables import read_speedups

    return read_speedups(path, SpeedBook(kind or cluster.nodes[0].kind))


def tools(speedups: SpeedBook | None) -> Tools:
    """What a run is measured with, and what is known of speed-ups."""
    from bough.sim.options import Tools

    return Tools(clock=time.process_time, stopwatch=time.perf_counter, speedups=speedups)


def read_trace(path: Path, given: dict[str, Any], speedups: SpeedBook | None) -> Trace:
    """The trace; what was wrong with it or had to be assumed is said on stderr."""
    from bough.sim.trace import Reading, read_trace

    folder: Path | None = given.pop("speedups")
    reading = Reading(
        format=given.pop("format_name"),
        on_bad=given.pop("on_bad"),
        unit_seconds=given.pop("unit"),
        elastic_limit=given.pop("elastic_limit") or 0,
        slots=given.pop("slots") or 0,
        rates=speedups,
        kind=given.pop("kind"),
        profiles=folder if folder is not None and folder.is_dir() else None,
        failures=given.pop("trace_failures"),
    )
    trace = read_trace(path, reading)
    for problem in trace.problems[:PROBLEMS_SHOWN]:
        note(f"{path}: skipped: {problem}")
    if len(trace.problems) > PROBLEMS_SHOWN:
        note(f"{path}: skipped {len(trace.problems) - PROBLEMS_SHOWN} more rows")
    for assumed in trace.notes:
        note(f"{path}: {assumed}")
    return trace


def fit(trace: Trace, cluster: Cluster, too_big: str) -> Trace:
    """The trace without what could never run, if so asked; else such jobs are an error."""
    from bough.sim.runs import keep, misfits

    check_levels(trace, cluster)
    found = misfits(trace, cluster)
    if not found or too_big == "wait":
        return trace
    if too_big == "drop":
        note(f"left out {len(found)} of {len(trace.jobs)} jobs that could never start")
        dropped = {job.id for job, _ in found}
        return keep(trace, lambda job: job.id not in dropped)
    job, why = found[0]
    more = f", and {len(found) - 1} more jobs cannot start either" if len(found) > 1 else ""
    hint = "leave them out with --too-big=drop, or let them wait with --too-big=wait"
    raise InputError(f"job {job.id} {why}{more}", file=trace.name, hint=hint)


def check_levels(trace: Trace, cluster: Cluster) -> None:
    """Say that a job asks for a place in a tree that is built otherwise."""
    known = cluster.tree().spans
    for job in trace.jobs:
        level = job.spec.topology.level
        if level and level not in known:
            said = f"job {job.id} asks for a place by level {level!r}, which the cluster lacks"
            raise InputError(said, file=trace.name, hint=nearest(level, known))


def check_folders(*files: Path | None) -> None:
    """Say that a file cannot be written before hours are spent on what goes into it."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise InputError("there is no such folder", file=str(file.parent))


def note(text: str) -> None:
    """Something worth knowing that is no failure."""
    click.echo(f"bough: {text}", err=True)


def split_policies(texts: Iterable[str]) -> list[str]:
    """The policies between commas; each is looked up, so that a wrong name is told at once."""
    names: list[str] = []
    for part in (part.strip() for text in texts for part in _outside_brackets(text)):
        if KNOB.match(part) and names:
            names[-1] += f",{part}"  # las:limits=[10],promote=2 has a second knob, not a policy
        elif part:
            names.append(part)
    if not names:
        raise InputError("names no policy", field="--policy", hint="see `bough policies`")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name} is named twice", field="--policy")
        _check_policy(name)
    return names


def _outside_brackets(text: str) -> list[str]:
    """Split at the commas that are in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _check_policy(name: str) -> None:
    from bough.policies import find

    try:
        find(name)
    except ValueError as error:
        raise InputError(str(error), field="--policy") from None


def read_failures(text: str | None) -> Failures:
    """`node=30d/1h,job=10d`: mean time between failures, and mean time to repair."""
    from bough.sim.options import Failures

    fields: dict[str, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        what, equals, value = (word.strip() for word in part.partition("="))
        if what not in ("node", "device", "job") or not equals:
            hint = nearest(what, ("node", "device", "job"))
            raise InputError(
                f"{part.strip()!r} is no WHAT=MTBF[/REPAIR]", field="--failures", hint=hint
            )
        mtbf, _, repair = value.partition("/")
        for name, given in (("mtbf", mtbf), ("repair", repair)):
            if given and (what, name) != ("job", "repair"):
                fields[f"{what}_{name}_seconds"] = _positive(given, "--failures")
    return Failures(**fields)


def _positive(text: str, field: str) -> float:
    from bough.core.units import parse_duration

    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise InputError(str(error), field=field) from None
    if seconds <= 0:
        raise InputError("must be longer than 0", field=field)
    return seconds


def read_queue_file(path: Path | None) -> tuple[Queue, ...]:
    """The tree of queues; none without a file."""
    if path is None:
        return ()
    from bough.queuefile import read_queues

    return tuple(read_queues(path))


def read_supply(given: dict[str, Any]) -> Supply | None:
    """Series and budgets of power; takes what it uses out of the options. None: nobody asks."""
    from bough.core.supply import Supply
    from bough.sim.supply_files import What, read_budget, read_supply

    series: dict[str, Any] = {}
    budgets = []
    names: tuple[What, ...] = ("carbon", "price")
    for name in names:
        text = given.pop(name)
        try:
            series[name] = read_supply(text, name) if text is not None else None
        except InputError as error:
            raise (error if error.file else error.at(field=f"--{name}")) from None
    for of in ("energy", "carbon", "cost"):
        text = given.pop(f"{of}_budget", None)
        if text is not None:
            try:
                budgets.append(read_budget(text, of))
            except ValueError as error:
                raise InputError(str(error), field=f"--{of}-budget") from None
    if not budgets and series["carbon"] is None and series["price"] is None:
        return None
    try:
        return Supply(budgets=tuple(budgets), **series)
    except ValueError as error:
        missing = "price" if "price" in str(error) else "carbon"
        raise InputError(str(error), hint=f"give it with --{missing}") from None


def world(given: dict[str, Any], **more: Any) -> Options:
    """The options of a run from those of the command line; takes what it uses out of them."""
    from bough.sim.options import Options

    same = (
        "speed_error", "start_seconds", "resize_seconds", "park_seconds", "checkpoint_seconds",
        "interference", "straggler_share", "locality_seconds", "damp_seconds", "moving_share",
        "round_seconds",
    )  # fmt: skip
    return Options(
        **{name: given.pop(name) for name in same},
        failures=read_failures(given.pop("failures")),
        queues=read_queue_file(given.pop("queue_file")),
        jobs=given.pop("first") or 0,
        repack=given.pop("repack") or "",
        energy=given.pop("energy"),
        supply=read_supply(given),
        **more,
    )
