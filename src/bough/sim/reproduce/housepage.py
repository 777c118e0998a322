"""What the house policy was measured at, target by target, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bough.sim.reproduce.house import Result

HEAD: Final = """\
# The house policy against its targets

`bough reproduce house --data DIR` runs all of this again; `--quick` a small part of it. Every
number is of the production scheduler in the simulator, on public traces and on drawn ones.
[What the policy does](policies/bough.md).

- Peers whose jobs have one size (`las`, `tiresias`, `chronus`, `themis`) are given the sizes of the
  trace; elastic ones, and ours, may choose up to 64 devices. `gandiva` runs both ways.
- *as published* leaves out Gandiva on elastic jobs, which refuses nobody, breaks the deadlines
  that the others keep, and so has more devices for best effort.
- *wrong curves*: run times and scaling are believed with a relative error; jobs report how fast
  they really are once they run.
- Finish-time fairness is the completion time over that under an even share of the cluster.
"""


class Summary(NamedTuple):
    """One target over all places."""

    target: str
    held: int
    places: int
    #: Where it was missed by most; if it was held everywhere, where it was held by least.
    worst: Result


def summaries(results: Sequence[Result]) -> list[Summary]:
    """Target by target, in the order in which they were judged first."""
    found = []
    for target in dict.fromkeys(result.target for result in results):
        own = [result for result in results if result.target == target]
        held = sum(result.held for result in own)
        missed = [result for result in own if not result.held]
        if missed:
            worst = max(missed, key=lambda result: abs(off(result)))
        else:
            worst = max(own, key=lambda result: -off(result) if more(target) else off(result))
        found.append(Summary(target, held, len(own), worst))
    return found


def more(target: str) -> bool:
    """Whether more is better."""
    return ">=" in target or target.startswith("promises")


def off(result: Result) -> float:
    """Ours over theirs, less one."""
    return result.measured / result.against - 1.0 if result.against else 0.0


def page(results: Sequence[Result]) -> str:
    """Markdown: the targets, then every place."""
    lines = [HEAD]
    lines.append("| target | held | where it was closest or missed by most | ours | against | |")
    lines.append("|---|---:|---|---:|---:|---:|")
    for target, held, places, worst in summaries(results):
        lines.append(f"| {target} | {held} of {places} | {worst.where} | {cells(worst)} |")
    for target in dict.fromkeys(result.target for result in results):
        lines += ["", f"## {target[0].upper()}{target[1:]}", ""]
        lines += ["| where | ours | against | | |", "|---|---:|---:|---:|---|"]
        for result in results:
            if result.target == target:
                word = "" if result.held else "missed"
                lines.append(f"| {result.where} | {cells(result)} | {word} |")
    return "\n".join([*lines, ""])


def cells(result: Result) -> str:
    """Both numbers, and how far they are apart."""
    whose = f" `{result.whose}`" if result.whose else ""
    both = f"{number(result.measured)} | {number(result.against)}{whose}"
    return f"{both} | {off(result):+.1%}"


def number(value: float) -> str:
    """Enough digits to compare."""
    return f"{value:,.4f}" if value < 10 else f"{value:,.0f}"
