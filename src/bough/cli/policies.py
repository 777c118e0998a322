"""`bough policies`: what there is to choose from, read from the policy classes themselves."""

from __future__ import annotations

import ast
import inspect
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from bough.cli import references
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.core.policy import Policy


class Knob(NamedTuple):
    """One field of a policy."""

    name: str
    type: str
    default: str
    meaning: str


@click.group("policies", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the policies; `bough policies show NAME` tells all about one."""
    if context.invoked_subcommand is not None:
        return
    from bough.policies import builtin

    found = dict(sorted(builtin().items()))
    if as_json:
        print_json(found)
        return
    width = max(map(len, found))
    room = max(shutil.get_terminal_size().columns - width - 3, 40)
    for name, policy in found.items():
        first, *rest = textwrap.wrap(summary(policy), room)
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {first}")
        for line in rest:
            click.echo(f"{'':{width}}  {line}")
    click.echo("\nTheir knobs, and where they come from: bough policies show NAME")


@command.command("show")
@click.argument("name", type=references.POLICY)
def show(name: str) -> None:
    """What policy NAME decides, where it comes from, and its knobs."""
    from bough.policies import find

    try:
        policy = type(find(name))
    except ValueError as error:
        raise InputError(str(error)) from None
    click.echo(inspect.cleandoc(policy.__doc__ or ""))
    table = knobs(policy)
    if table:
        click.echo("\nKnobs:")
    for knob in table:
        click.echo(f"  {click.style(knob.name, bold=True)}: {knob.type} = {knob.default}")
        for line in textwrap.wrap(knob.meaning, 84):
            click.echo(f"      {line}")
    example = f"{name}:{table[0].name}={table[0].default}" if table else name
    click.echo(f"\nUse it with --policy '{example}'")
    click.echo(f"Source: {inspect.getfile(policy)}")


@command.command("new")
@click.argument("file", type=click.Path(path_type=Path))
def new(file: Path) -> None:
    """Write a policy that works into FILE, and its test beside it.

    \b
    bough policies new mine.py
    bough simulate trace.jsonl -c 8x8xa100 -p ./mine.py,las
    """
    from bough.cli.newpolicy import write

    policy, test = write(file)
    named = str(policy) if policy.parent != Path() else f"./{policy}"
    click.echo(f"wrote {policy} and {test}")
    click.echo(f"try it:  bough simulate TRACE -c 8x8xa100 -p {named},las")
    click.echo(f"test it: pytest {test}   (pip install 'bough[testing]')")


def print_json(found: dict[str, type[Policy]]) -> None:
    import msgspec

    rows = [
        {
            "name": name,
            "summary": summary(policy),
            "knobs": [knob._asdict() for knob in knobs(policy)],
        }
        for name, policy in found.items()
    ]
    click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())


def summary(policy: type[Policy]) -> str:
    """The first paragraph of its docstring, on one line."""
    return inspect.cleandoc(policy.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def knobs(policy: type[Policy]) -> list[Knob]:
    """Its fields in order, each with the `#:` lines above it."""
    import msgspec

    declared: dict[str, tuple[str, str]] = {}
    for owner in reversed(policy.__mro__):
        if issubclass(owner, msgspec.Struct) and owner is not msgspec.Struct:
            declared |= declarations(owner)
    return [
        Knob(field.name, declared[field.name][0], default_of(field), declared[field.name][1])
        for field in msgspec.structs.fields(policy)
    ]


def declarations(owner: type) -> dict[str, tuple[str, str]]:
    """Of every field written in this class: its type as written, and its comment."""
    source = textwrap.dedent(inspect.getsource(owner))
    lines, body = source.splitlines(), ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        node.target.id: (ast.unparse(node.annotation), comment_above(lines, node.lineno))
        for node in body.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def comment_above(lines: list[str], lineno: int) -> str:
    words: list[str] = []
    for line in reversed(lines[: lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        words.insert(0, line.strip().removeprefix("#:").strip())
    return " ".join(words)


def default_of(field: object) -> str:
    import msgspec

    assert isinstance(field, msgspec.structs.FieldInfo)
    if field.default is not msgspec.NODEFAULT:
        return written(field.default)
    return written(field.default_factory()) if callable(field.default_factory) else "required"


def written(value: object) -> str:
    """As it is written on the command line."""
    if isinstance(value, tuple):
        return f"[{','.join(map(written, value))}]"
    if isinstance(value, bool | None):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
