"""`bough whatif`: the same jobs on other nodes, under another policy, in other queues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from bough.cli import asking, inputs, options, words
from bough.cli.grid import Cell, Column, Grid, bare, draw
from bough.cli.progress import Bar
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.sim.record import RunRecord
    from bough.sim.runs import Setting
    from bough.sim.whatif import Change, Difference

ROWS_MAX: Final = 10
Pair = tuple[float | None, float | None]


class Found(NamedTuple):
    """What is printed."""

    before: str
    after: str
    since: float
    all: Difference | None
    queues: Sequence[Difference]
    users: Sequence[Difference]


@click.command("whatif")
@click.option(
    "--from", "trace", type=click.Path(exists=True, path_type=Path), metavar="TRACE",
    help="A trace, with --cluster; without it, what your daemon's journal tells.",
)  # fmt: skip
@click.option("--state", metavar="FILE", help="A store or an exported journal: what it tells.")
@click.option("-c", "--cluster", metavar="CLUSTER", help="On which the trace ran.")
@click.option("--under", metavar="NAME", help="The policy before the change. [fair]")
@click.option(
    "--queues", "queue_file", type=click.Path(exists=True, path_type=Path), metavar="FILE",
    help="The queues before the change.",
)  # fmt: skip
@click.option("--last", type=options.Duration(), metavar="TIME", help="Look at its end only: 7d.")
@click.option("--add", multiple=True, metavar="NODES", help="More nodes: 2x8xh100.")
@click.option("--remove", multiple=True, metavar="NAME", help="Without a node, a rack …")
@click.option("-p", "--policy", metavar="NAME", help="Another policy.")
@click.option("--set", "sets", multiple=True, metavar="queue.NAME.FIELD=VALUE", help="As it says.")
@options.processes_option
@asking.json_option
def command(
    trace: Path | None,
    state: str | None,
    cluster: str | None,
    under: str | None,
    queue_file: Path | None,
    last: float | None,
    processes: int | None,
    as_json: bool,
    **given: str | tuple[str, ...] | None,
) -> None:
    """Replay the same jobs under a change, and say who gains and who loses by it.

    \b
    bough whatif --from trace.csv -c 16x8xa100 --add 2x8xh100 --last 7d
    bough whatif --from trace.csv -c '2 racks of 8x8xa100' --remove rack-2
    bough whatif --policy srtf
    bough whatif --set queue.vision.guarantee=64
    """
    from bough.sim.whatif import Change, changed
    from bough.sim.whatif import last as the_last

    change = Change(**given)  # type: ignore[arg-type]
    if not any(change):
        hint = "--add, --remove, --policy or --set"
        raise InputError("What is to be otherwise?", hint=hint)
    other_policy = inputs.split_policies([change.policy])[0] if change.policy else ""
    setting, policy = known(trace, state, cluster, under, queue_file)
    since = setting.trace.jobs[0].submit
    if last is not None:
        part, since = the_last(setting.trace, last)
        setting = replaced(setting, part)
    other = changed(setting, change)
    records = replay([(setting, policy), (other, other_policy or policy)], processes)
    show(found_in(records, since, policy, said(change)), as_json)


def known(
    trace: Path | None, state: str | None, cluster: str | None, under: str | None,
    queue_file: Path | None,
) -> tuple[Setting, str]:  # fmt: skip
    """The jobs and all else before the change, and the policy."""
    from bough.sim.options import Options
    from bough.sim.runs import Setting
    from bough.sim.trace import read_trace

    policy = inputs.split_policies([under])[0] if under else ""
    if trace is None:
        if cluster is not None or queue_file is not None:
            raise InputError("--cluster and --queues go with --from")
        from bough.cli.journal import opened
        from bough.server.hindsight import retold

        with opened(state) as journal:
            tale = retold(journal)
        return tale.setting, policy or tale.policy
    if state is not None:
        raise InputError("--state and --from exclude each other")
    if cluster is None:
        raise InputError("--from needs --cluster too")
    place = inputs.read_cluster(cluster)
    read = inputs.fit(read_trace(trace), place, "drop")
    world = Options(queues=inputs.read_queue_file(queue_file))
    setting = Setting(trace=read, cluster=place, cluster_name=cluster, options=world)
    return setting, policy or "fair"


def replaced(setting: Setting, trace: object) -> Setting:
    import msgspec

    return msgspec.structs.replace(setting, trace=trace)


def replay(runs: Sequence[tuple[Setting, str]], processes: int | None) -> list[RunRecord]:
    """One after another, or two at a time."""
    import os

    from bough.sim import parallel
    from bough.sim.whatif import replayed

    with Bar("before and after") as bar:
        found = dict(parallel.each(replayed, None, runs, processes or os.cpu_count() or 1, bar))
    return [found[number] for number in range(len(runs))]


def said(change: Change) -> str:
    """The change, as it was typed."""
    parts = [f"--add {text}" for text in change.add]
    parts += [f"--remove {text}" for text in change.remove]
    parts += [f"--policy {change.policy}"] if change.policy else []
    return " ".join([*parts, *(f"--set {text}" for text in change.sets)])


def found_in(records: Sequence[RunRecord], since: float, before: str, after: str) -> Found:
    """All differences."""
    from bough.sim.whatif import differences

    was, will = records
    whole = differences(was, will, "", since)
    return Found(
        before, after, since, whole[0] if whole else None,
        differences(was, will, "queue", since), differences(was, will, "user", since),
    )  # fmt: skip


# ----------------------------------------------------------------------------------- the screen


def show(found: Found, as_json: bool) -> None:
    """For people or for programs."""
    if as_json:
        asking.print_json(found._asdict())
    else:
        asking.print_lines(render(found, asking.look()))


def render(found: Found, look: Look) -> list[str]:
    """All together, by queue, by user."""
    if found.all is None:
        return ["No job was submitted in that time."]
    lines = [f"{words.counted(found.all.jobs, 'job')}: {found.before}, and {found.after}", ""]
    lines += table("", [found.all], look)
    if len(found.queues) > 1:
        lines += ["", *table("Queue", found.queues, look)]
    if len(found.users) > 1:
        lines += ["", *table("User", found.users, look)]
    return lines


def table(title: str, rows: Sequence[Difference], look: Look) -> list[str]:
    """Before and after; those first who gain or lose most."""
    columns = (
        Column(title, cut=14), Column("Jobs", right=True, rank=2),
        Column("Done", right=True, rank=3),
        Column("Completion", right=True), Column("", right=True), Column("Wait", right=True),
        Column("In time", right=True, if_any=True), Column("Device-hours", right=True, rank=1),
    )  # fmt: skip
    lines = draw(Grid(columns, [row(one) for one in rows[:ROWS_MAX]]), look.width, look.colour)
    if len(rows) > ROWS_MAX:
        lines.append(look.paint(f"and {len(rows) - ROWS_MAX} who gain or lose less", "quiet"))
    return lines


def row(one: Difference) -> list[Cell]:
    """Each number before and after."""
    before, after = one.mean_jct_seconds
    change = "" if not before or after is None else f"{100 * (after / before - 1):+.0f} %"
    meaning = "" if not before or after is None else "works" if after <= before else "wrong"
    shares = tuple(None if share is None else f"{share:.0%}" for share in one.in_time)
    return [
        Cell(bare(one.who) or "all", "name"),
        Cell(f"{one.jobs:,}"),
        Cell(both(*(f"{n:,}" for n in one.done))),
        Cell(both(*(words.span(seconds) for seconds in one.mean_jct_seconds))),
        Cell(change, meaning),
        Cell(both(*(words.span(seconds) for seconds in one.mean_wait_seconds))),
        Cell("" if shares[0] is None else both(*map(str, shares))),
        Cell(both(*(f"{hours:,.0f}" for hours in one.device_hours))),
    ]


def both(before: str, after: str) -> str:
    """One where they are the same."""
    return before if before == after else f"{before} → {after}"
