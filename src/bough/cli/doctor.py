"""`bough doctor`: is my installation sound? Every line says what was seen, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from bough.cli import asking
from bough.cli.finding import Finding, fail
from bough.cli.grid import bare, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bough.cli.asking import Look

EXIT_FAIL: Final = 1
MEANINGS: Final = {"ok": "works", "warn": "waits", "fail": "wrong"}
VERDICT_WIDTH: Final = 6


@click.command("doctor")
@asking.json_option
def command(as_json: bool) -> int:
    """Look whether this installation is sound.

    \b
    Exit codes: 0  it works; what could be better is marked `warn`
                1  something is broken: `fail`
    """
    from bough.cli import machinecheck, servicecheck

    found = [*looked(machinecheck.look), *looked(servicecheck.look)]
    if as_json:
        asking.print_json([each._asdict() for each in found])
    else:
        asking.print_lines(render(found, asking.look()))
    return EXIT_FAIL if any(each.verdict == "fail" for each in found) else 0


def looked(look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """A look that breaks off is a finding too."""
    try:
        yield from look()
    except Exception as error:  # whatever it is, the rest is worth telling
        what = f"{type(error).__name__}: {error}"
        yield fail("doctor", f"could not look further: {what}", "please report this")


def render(found: Sequence[Finding], look: Look) -> list[str]:
    """A line for each, and below it what to do."""
    width = max(len(each.about) for each in found) + 2
    indent = VERDICT_WIDTH + width
    lines = []
    for each in found:
        verdict = look.paint(each.verdict.ljust(VERDICT_WIDTH), MEANINGS[each.verdict])
        first, *rest = wrapped(bare(each.text), look.width, indent)
        lines.append(verdict + look.paint(each.about.ljust(width), "name") + first)
        lines += [" " * indent + line for line in rest]
        if each.todo:
            hint = wrapped(f"→ {each.todo}", look.width, indent)
            lines += [" " * indent + look.paint(line, "type") for line in hint]
    return [*lines, "", summary(found, look)]


def summary(found: Sequence[Finding], look: Look) -> str:
    failed = sum(each.verdict == "fail" for each in found)
    warned = sum(each.verdict == "warn" for each in found)
    if failed:
        return look.paint(f"{failed} broken, {warned} to look at.", "wrong")
    return f"Sound; {warned} to look at." if warned else look.paint("All is sound.", "works")
