"""`bough config`: what the daemon decides by, what each setting means, and how to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from bough.cli import asking, references
from bough.cli.grid import wrapped
from bough.core.units import format_duration, parse_duration
from bough.errors import InputError, nearest
from bough.records import Config, ConfigChange

if TYPE_CHECKING:
    from bough.cli.asking import Look


class Setting(NamedTuple):
    """One thing that can be set."""

    meaning: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def seconds(text: str) -> float:
    return parse_duration(text)


def days(text: str) -> float:
    """Plain numbers are days."""
    try:
        found = float(text)
    except ValueError:
        found = parse_duration(text) / 86_400
    if not 0 < found < 1e6:
        raise ValueError(f"{text!r} is no number of days")
    return found


def share(text: str) -> float:
    """0.1 or 10%."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise ValueError(f"{text!r} is no share; write it like 0.1 or 10%")
    return found


def policy(text: str) -> str:
    """One that exists, with knobs that it has."""
    from bough.policies import find

    find(text)
    return text


def names(text: str) -> tuple[str, ...]:
    """By commas; "none" for nobody."""
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    return () if found == ("none",) else found


def commas(value: Any) -> str:
    return ", ".join(value) or "none"


SETTINGS: Final[dict[str, Setting]] = {
    "policy": Setting(
        "Who gets how many devices: `bough policies` lists the policies and their knobs.",
        policy,
        str,
    ),
    "locality_seconds": Setting(
        "A job waits so long for devices that are close together before it takes scattered ones.",
        seconds,
        format_duration,
    ),
    "damp_seconds": Setting(
        "A job that grew or shrank does not grow again within this time.", seconds, format_duration
    ),
    "moving_share": Setting(
        "Most of its time that a job spends on changing its size.", share, "{:.0%}".format
    ),
    "backoff_seconds": Setting(
        "A job that failed is tried again after this time, doubled with each failure.",
        seconds,
        format_duration,
    ),
    "backoff_max_seconds": Setting("The longest such wait.", seconds, format_duration),
    "keep_days": Setting(
        "Entries of the journal are kept so many days; jobs stay.", days, "{:g} days".format
    ),
    "admins": Setting("Accounts that may act for all, besides root.", names, commas),
}


@click.group("config", invoke_without_command=True)
@asking.json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show what the daemon decides by; `get` and `set` one thing of it."""
    if context.invoked_subcommand is None:
        with asking.connect() as client:
            asking.present(client.config, render, as_json)


def known_values(context: click.Context) -> Iterator[tuple[str, str]]:
    """Of a policy, the names."""
    if context.params.get("name") == "policy":
        yield from references.policies(context)


name_argument = click.argument(
    "name",
    type=references.Words("setting", lambda _: [(n, s.meaning) for n, s in SETTINGS.items()]),
)


@command.command("get")
@name_argument
@asking.json_option
def get(name: str, as_json: bool) -> None:
    """Print the value of NAME."""
    setting = find(name)
    with asking.connect() as client:
        value = getattr(client.config(), name)
    if as_json:
        asking.print_json(value)
    else:
        asking.print_lines([setting.write(value)])


@command.command("set")
@name_argument
@click.argument("value", type=references.Words("value", known_values))
@asking.json_option
def set_(name: str, value: str, as_json: bool) -> None:
    """Set NAME to VALUE. The daemon decides by it from now on.

    \b
    bough config set policy las
    bough config set locality_seconds 5m
    bough config set admins anna,ben
    """
    setting = find(name)
    try:
        wanted = setting.read(value)
    except ValueError as error:
        raise InputError(str(error), field=name) from None
    with asking.connect() as client:
        before = getattr(client.config(), name)
        after = client.configure(ConfigChange(**{name: wanted}))
    if as_json:
        asking.print_json(after)
        return
    look = asking.look()
    old, new = setting.write(before), setting.write(getattr(after, name))
    if old == new:
        asking.print_lines([f"{name} is {new} already."])
        return
    typed = old.replace(", ", ",").removesuffix(" days")
    quoted = typed if typed.isalnum() else f"'{typed}'"
    back = look.paint(f"bough config set {name} {quoted}", "type")
    asking.print_lines([f"{name} is {new} now. As it was: {back}"])


def find(name: str) -> Setting:
    if name not in SETTINGS:
        raise InputError(f"no setting is called {name!r}", hint=nearest(name, SETTINGS))
    return SETTINGS[name]


def render(config: Config, look: Look) -> list[str]:
    """Name and value, and below it what it means."""
    width = max(map(len, SETTINGS)) + 2
    lines = []
    for name, setting in SETTINGS.items():
        value = getattr(config, name)
        usual = value == getattr(Config(), name)
        shown = setting.write(value)
        mark = "" if usual else look.paint("  (changed)", "waits")
        lines.append(f"{look.paint(name.ljust(width), 'name')}{shown}{mark}")
        if look.people:
            lines += [
                look.paint(f"    {line}", "quiet")
                for line in wrapped(setting.meaning, look.width, 4)
            ]
    return lines
