"""The options that `simulate` and `sweep` share: how a trace is read and how the world behaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

INFINITY = float("inf")
FORMATS = (
    "elasticflow, muri, gavel, chronus, pollux, philly, helios, pai, openb, sacct, bough, synergy"
)


class Duration(click.ParamType[float]):
    """Seconds, or as people write them: 90, 45s, 2h30m, 1d."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        from bough.core.units import parse_duration

        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Share(click.FloatRange):
    """A finite number: a range alone would let nan through."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{found} is no finite number.", param, ctx)
        return found


#: Parameter -> the heading under which help lists it.
SECTIONS: dict[str, str] = {}


class Sectioned(click.Command):
    """A command with more options than one list can hold."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = SECTIONS.get(str(parameter.name), "Options")
                listed.setdefault(section, []).append(record)
        for section, records in listed.items():
            with formatter.section(section):
                formatter.write_dl(records)


def cluster_option(command: Command) -> Command:
    return click.option(
        "-c",
        "--cluster",
        required=True,
        help="16x8xa100, 8x8xv100+16x4xt4, 2 racks of 4x8xh100 …, or a YAML file.",
    )(command)


def policy_option(command: Command) -> Command:
    return click.option(
        "-p",
        "--policy",
        "policies",
        multiple=True,
        required=True,
        metavar="A,B,…",
        help="Policies to compare, with knobs as in las:limits=[3600]. See `bough policies`.",
    )(command)


def processes_option(command: Command) -> Command:
    return click.option(
        "-j",
        "--processes",
        "processes",
        type=click.IntRange(1),
        metavar="N",
        help="Simulations at the same time; as many as there are CPUs if not given.",
    )(command)


def trace_options(command: Command) -> Command:
    """How the trace is read."""
    return _all(
        command,
        "The trace",
        _text("--format", "format_name", f"Trace format: {FORMATS}. Else by its columns."),
        _choice("--on-bad", ("skip", "fail"), "What to do with a malformed row; skip."),
        click.option("--unit", type=Duration(), metavar="TIME", help="One tick of its clock: 1ms."),
        _count("--elastic", "elastic_limit", "Let jobs run on 1 to N devices."),
        _count("--slots", "slots", "Slots per device, in traces of shared devices."),
        _file("--speedups", "speedups", "Folder or file of speed-up tables; else our own curves."),
        _text("--kind", "kind", "Kind of device that run times were measured on.", default=""),
        _flag("--trace-failures", "Let jobs that failed in the trace fail here too."),
        _choice(
            "--too-big", ("fail", "drop", "wait"), "What to do with jobs that cannot fit; fail."
        ),
    )


def world_options(command: Command) -> Command:
    """How the simulated world behaves, and how the scheduler in it is set."""
    return _all(
        command,
        "The simulated world, and the scheduler in it",
        _share("--speed-error", "speed_error", "Error of believed run times and scaling.", None),
        _text(
            "--failures",
            "failures",
            "Time between failures and to repair: node=30d/1h,device=90d/6h,job=10d.",
            metavar="LIST",
        ),
        _file("--queues", "queue_file", "Queues with guarantees, limits and weights."),
        _seconds("--until", "until", "Stop so long after the first submission.", INFINITY),
        _count("--jobs", "first", "Only the first N jobs."),
        _seconds("--start-cost", "start_seconds", "From a start until there is progress."),
        _seconds("--resize-cost", "resize_seconds", "From a resize until there is progress."),
        _seconds("--park-cost", "park_seconds", "From the order to leave until it has left."),
        _seconds("--checkpoint", "checkpoint_seconds", "Work is saved so often; 30m.", 1800.0),
        _share("--interference", "interference", "Loss of speed on nodes full of others."),
        _share("--stragglers", "straggler_share", "Starts that catch a slow device."),
        _seconds("--locality", "locality_seconds", "Longest wait for a compact place; 3m.", 180.0),
        _seconds("--damp", "damp_seconds", "A job does not grow again within this time."),
        _share("--moving", "moving_share", "Most of a job's time to spend on growing.", 1.0, 0.1),
        _seconds("--round", "round_seconds", "Plan at multiples of this only."),
        click.option(
            "--repack",
            type=click.Choice(["best", "first"]),
            help="Place everything anew at each decision, by best or first fit, at no cost.",
        ),
    )


def supply_options(command: Command) -> Command:
    """What power is made of, and how much of it may be used."""
    return _all(
        command,
        "Energy, carbon and cost",
        _flag("--energy", "Account for energy, also where nothing below asks for it."),
        _text("--carbon", "carbon", "Grams of CO2 for each kWh, or a CSV file.", None, "N|FILE"),
        _text("--price", "price", "Money for each kWh, or a CSV file.", None, "N|FILE"),
        _text("--energy-budget", "energy_budget", "As 120kWh/1d: kWh a window.", None, "N/TIME"),
        _text("--carbon-budget", "carbon_budget", "As 40kg/1d.", None, "N/TIME"),
        _text("--cost-budget", "cost_budget", "Money for power, as 25/1d.", None, "N/TIME"),
    )


def intensity_options(command: Command) -> Command:
    """What power is made of, in the state of affairs that is read."""
    price = _text("--price", "price", "With --from: money for each kWh.", None, "N|FILE")
    carbon = _text("--carbon", "carbon", "With --from: grams of CO2 for each.", None, "N|FILE")
    found: Command = carbon(price(command))
    return found


def _all(command: Command, section: str, *options: Decorator) -> Command:
    for option in reversed(options):
        command = option(command)
        parameters: list[click.Parameter] = command.__click_params__  # type: ignore[attr-defined]
        SECTIONS[str(parameters[-1].name)] = section
    return command


def _text(
    flag: str, name: str, help: str, default: str | None = None, metavar: str = "NAME"
) -> Decorator:
    return click.option(flag, name, default=default, metavar=metavar, help=help)


def _choice(flag: str, words: tuple[str, ...], help: str) -> Decorator:
    return click.option(flag, type=click.Choice(words), default=words[0], help=help)


def _flag(flag: str, help: str) -> Decorator:
    return click.option(flag, is_flag=True, help=help)


def _count(flag: str, name: str, help: str) -> Decorator:
    return click.option(flag, name, type=click.IntRange(1), metavar="N", help=help)


def _file(flag: str, name: str, help: str) -> Decorator:
    kind = click.Path(exists=True, path_type=Path)
    return click.option(flag, name, type=kind, metavar="FILE", help=help)


def _seconds(flag: str, name: str, help: str, default: float = 0.0) -> Decorator:
    return click.option(flag, name, type=Duration(), default=default, metavar="TIME", help=help)


def _share(
    flag: str, name: str, help: str, most: float | None = 1.0, default: float = 0.0
) -> Decorator:
    kind = Share(0.0, most)
    return click.option(flag, name, type=kind, default=default, metavar="SHARE", help=help)
