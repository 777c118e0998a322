"""The options of `bough run`: each becomes a field of a job file, and is read as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from bough.cli import references
from bough.errors import InputError
from bough.located import Field, Node, parse_documents, read_text, shown_path
from bough.records import Recipe, Submission
from bough.submission import name_of
from bough.written import read, written

Command = TypeVar("Command", bound=Callable[..., Any])
FILE_ENDINGS: Final = (".yaml", ".yml", ".json")


class Option(NamedTuple):
    """One option: the field it fills, and what help says."""

    flags: tuple[str, ...]
    field: str
    metavar: str
    help: str


OPTIONS: Final = (
    Option(("-g", "--devices"), "devices", "N", "Devices: 4, or 2..8 for an elastic job. [1]"),
    Option(("--kind",), "kinds", "A,B", "Acceptable kinds of device, best first."),
    Option(("--cpus",), "cpus", "N", "CPUs for each device."),
    Option(("--mem",), "memory", "SIZE", "Memory for each device: 64GiB."),
    Option(("--topology",), "topology", "WISH", "Where: prefer rack, require node, spread."),
    Option(("-q", "--queue"), "queue", "NAME", "Queue that pays for it. [default]"),
    Option(("--priority",), "priority", "N", "Higher goes first. [0]"),
    Option(("--deadline",), "deadline", "TIME", "When it should be done: 'fri 18:00', +2h."),
    Option(("--estimate",), "estimate", "TIME", "Your guess of its run time: 6h, '6h on 4'."),
    Option(("--time",), "max_run", "TIME", "It is stopped when it has run this long."),
    Option(("--retry",), "retries", "N", "Tries after failing by its own fault. [0]"),
    Option(("--name",), "name", "NAME", "Name; the script's or program's if not given."),
    Option(("--array",), "array", "0-31", "One job for each index; {index} in the command."),
    Option(("--cwd",), "cwd", "DIR", "Directory to run in; this one if not given."),
    Option(("--grace",), "grace", "TIME", "From SIGTERM to SIGKILL when it has to leave. [30s]"),
    Option(("--log-max",), "log_max", "SIZE", "A worker's log is rotated at this size. [64MiB]"),
    Option(("--model",), "model", "NAME", "What it trains, for looking up how fast it runs."),
)
#: Options that are words or switches: the field and the value that stands for each.
SWITCHES: Final = (
    ("--guaranteed", "service", "guaranteed", "Refused if its deadline cannot be kept."),
    ("--no-preempt", "preemptible", "false", "Is never parked or shrunk for others."),
)
CHOICES: Final = (
    ("--launch", "launch", ("each", "one"), "A process for each device, or one that sees all."),
    ("--park", "park", ("stop", "signal"), "How it is parked: it ends, or it is frozen."),
)
#: What the shell completes.
_KNOWN: Final = {
    "queue": references.QUEUE,
    "kinds": references.KIND,
    "after_any": references.JOB,
    "after_success": references.JOB,
}
#: Field of a job: what the user typed for it.
_FLAG_OF: Final = (
    {option.field: option.flags[-1] for option in OPTIONS}
    | {field: flag for flag, field, _, _ in SWITCHES}
    | {field: flag for flag, field, _, _ in CHOICES}
    | {"env": "-e", "after": "--after", "command": "command"}
)


def job_options(command: Command) -> Command:
    """Add all of them."""
    for flag, field, value, help in reversed(SWITCHES):
        command = click.option(flag, field, flag_value=value, help=help)(command)
    for flag, field, words, help in reversed(CHOICES):
        command = click.option(flag, field, type=click.Choice(words), help=help)(command)
    command = _repeated(command)
    for option in reversed(OPTIONS):
        command = click.option(
            *option.flags,
            option.field,
            metavar=option.metavar,
            help=option.help,
            type=_KNOWN.get(option.field),
            shell_complete=references.folders if option.field == "cwd" else None,
        )(command)
    return command


def _repeated(command: Command) -> Command:
    for flags, name, metavar, help in (
        (("-e", "--env"), "variables", "K=V", "A variable; K alone takes it from here."),
        (("--after",), "after_any", "JOB", "Begin when that job is over, however it ended."),
        (("--after-ok",), "after_success", "JOB", "Begin when that job has succeeded."),
    ):
        kind = _KNOWN.get(name)
        command = click.option(*flags, name, multiple=True, metavar=metavar, help=help, type=kind)(
            command
        )
    return command


# -------------------------------------------------------------------------------- what was asked


def jobs_of_command(
    argv: Sequence[str], options: Mapping[str, Any], caller: Recipe
) -> list[Submission]:
    """The jobs that run a command."""
    fields = _fields(options, caller)
    fields.setdefault("name", written(name_of(argv)))
    fields["command"] = written(argv)
    return read([Field(written(fields), None)], caller, _FLAG_OF)


def jobs_of_file(path: str, options: Mapping[str, Any], caller: Recipe) -> list[Submission]:
    """The jobs of a file; what is said here holds for each of them."""
    fields, file = _fields(options, caller), shown_path(path)
    documents = parse_documents(read_text(path), file)
    if fields:
        jobs = [item for document in documents for item in document.items()]
        documents = [Field(_overlaid(item, fields), file) for item in jobs]
    return read(documents, caller, _FLAG_OF, file)


def _fields(options: Mapping[str, Any], caller: Recipe) -> dict[str, Node]:
    """Options as fields of a job."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    found = {name: written(given[name]) for name in given if name in _FLAG_OF}
    if "variables" in given:
        found["env"] = written(_variables(given["variables"], caller))
    waits = [
        {"job": name, "on": on}
        for on in ("any", "success")
        for name in given.get(f"after_{on}", ())
    ]
    if waits:
        found["after"] = written(waits)
    return found


def _variables(given: Sequence[str], caller: Recipe) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals and name not in caller.env:
            raise InputError(f"{name} is not set here", field="-e", hint="write -e NAME=VALUE")
        found[name] = value if equals else caller.env[name]
    return found


def _overlaid(job: Field, fields: Mapping[str, Node]) -> Node:
    """A job of a file with options in the place of what it says."""
    job.entries()  # an error, if it has none
    assert isinstance(job.node.value, dict)
    said = {**job.node.value}
    if "deadline" in fields:
        said.pop("deadline_after", None)
    for name, node in fields.items():
        old = said.get(name)
        if name == "env" and old is not None and isinstance(old[1].value, dict):
            assert isinstance(node.value, dict)
            both = Node(old[1].line, {**old[1].value, **node.value})
            said[name] = (old[0], both)
        else:
            said[name] = (0, node)
    return Node(job.node.line, said)
