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
- Finish-time fairness is the completion time over that under an even share of the cluster. Themis
  has jobs of one size here, as published, and ours may grow: on trace3 neither may.
- The knobs were chosen by looking at `195job`, `elasticVpollux_e` and a few others of these traces:
  none was held back, so expect somewhat less on a trace of your own. Best effort on traces with
  deadlines was measured just before the last change of the policy (no moves where nothing is
  promised); running it again may differ slightly there.
"""

TAIL: Final = """\
## What is missed, and why

- **Deadlines, exact curves**: one job of 195 fewer than ElasticFlow on the testbed trace when all
  jobs have deadlines. Both admit whatever fits; what is left goes by rank here and by least device
  time there, which leaves a little more for who comes later. On small drawn traces at load 1.2 it
  was up to five jobs of 120.
- **Deadlines, wrong curves**: the margin that keeps promises refuses some jobs that would have been
  in time. Where there is room that costs some percent of the deadlines; where devices are short it
  saves more: ElasticFlow breaks a third of its promises on the Pollux trace.
- **Promises, wrong curves**: all are kept but on the Pollux trace, where devices are short: two to
  six in a hundred are broken there. Half of those are late by less than a hundredth of the time
  they had. More caution (`caution=2`) refuses more and was not seen to keep more.
- **Best effort against Gandiva with jobs that grow**: on the testbed trace Gandiva's are faster
  unless nine in ten jobs are best effort, because it gives them what deadlines would need; ours are
  kept, and a fifth of its are not.
- **Carbon**: with a budget so tight that jobs wait for energy, the order is PowerFlow's but for
  those that wait longest, which costs half a percent. With more, the full clock is used when there
  is power for it, and ours is faster.

## What is not in the table

- **Queues**: after every decision each queue holds its guarantee or all that it asks for, and what
  is preempted loses no work, as a planned stop saves it. That is a property test over drawn tenants
  with jobs of one device (`tests/policies/test_bough.py`).
- **Time to decide**: with 1,000 live elastic jobs on 2,000 devices 4.2 ms at the median and 5.8 ms
  at p99, with 10,000 on 80,000 devices 39 and 61 ms of CPU; the limits are 50 and 500 ms. With half
  of the jobs promised it is 5.4 and 69 ms at p99.
- **Jobs without estimates**: on Muri's trace3 without run times the mean is 14 % above that of
  `las`, which serves long jobs one after another there; on Pollux' workload-1 it is 3 % below, on
  drawn rigid jobs at load 1.5 5 % below.
- **Progressive filling against an exact search**: of 300 drawn sets of deadlines that some plan
  with changes at whole seconds keeps, filling finds a plan for 296 (in the same file).

## Why it is not the default

The daemon decides by `fair` unless told otherwise. `bough` parks running jobs for shorter ones:
right where jobs save their state and estimates are honest, and rude on a shared server where
neither is known. And its promises under wrong curves are not yet what they should be. Choose it
with `bough config set policy bough`.
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
    return "\n".join([*lines, "", TAIL])


def cells(result: Result) -> str:
    """Both numbers, and how far they are apart."""
    whose = f" `{result.whose}`" if result.whose else ""
    both = f"{number(result.measured)} | {number(result.against)}{whose}"
    return f"{both} | {off(result):+.1%}"


def number(value: float) -> str:
    """Enough digits to compare."""
    return f"{value:,.4f}" if value < 10 else f"{value:,.0f}"
