"""`bough quote`: what would become of a job before it is submitted, and what would be better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from bough.cli import asking, options, references, words
from bough.cli.grid import Cell, Column, Grid, bare, draw, wrapped
from bough.cli.joboptions import job_options
from bough.cli.run import FILE, Run, wanted
from bough.core.prospects import Alternative, Delay, Interval, Outlook, Quote
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.core.policy import Policy
    from bough.records import Submission
    from bough.server.hindsight import Standing
    from bough.sim.cut import Cut

EXIT_NOT_SO = 1
LABEL_WIDTH: Final = 10
DELAYS_SHOWN: Final = 3
COLUMNS: Final = (
    Column("What else", cut=24),
    Column("Begins"),
    Column("Ends"),
    Column("Device-hours", right=True),
    Column("Delays", rank=1, cut=12),
)
VERDICTS: Final = {
    "accept": ("Accept", "works"),
    "accept-if": ("Accept, if it is changed", "waits"),
    "reject": ("Reject", "wrong"),
}


@click.command("quote", cls=Run, options_metavar="[OPTIONS]")
@job_options
@click.option("--versions", type=click.IntRange(1, 100), default=20, help="Of what may come. [20]")
@click.option("--horizon", type=options.Duration(), default="30d", help="Look so far. [30d]")
@click.option("--state", metavar="FILE", help="A store or an exported journal: as of its end.")
@click.option(
    "--from", "trace", type=click.Path(exists=True, path_type=Path), metavar="TRACE",
    help="A trace, cut at --at, with --cluster and --policy.",
)  # fmt: skip
@click.option("--at", type=options.Duration(), metavar="TIME", help="After its first submission.")
@click.option("-c", "--cluster", metavar="CLUSTER", help="On which the trace ran until then.")
@click.option("-p", "--policy", metavar="NAME", help="That decides; with --state, another one.")
@options.intensity_options
@asking.json_option
@click.argument(
    "words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND… | FILE.yaml [OPTIONS]",
    shell_complete=references.files,
)  # fmt: skip
@click.pass_context
def command(context: click.Context, /, words: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Say what would become of a job if it were submitted now; nothing is submitted.

    When it would begin and end, what it would take, whom it would delay, and what would be
    better. docs/quote.md tells how much of that is certain.

    \b
    bough quote job.yaml
    bough quote -g 8 --estimate 6h --deadline +8h --guaranteed -- python train.py
    bough quote job.yaml --from trace.csv --at 3d -c 16x8xa100 -p las

    \b
    Exit codes: 0  accept
                1  not as it is: accept if it is changed, or reject
                2  it cannot be understood
    """
    source = Source(**{name: given.pop(name) for name in Source._fields})
    asked = wanted(words, context.meta[FILE], given)
    quotes = quoted(source, asked)
    if as_json:
        asking.print_json(quotes[0] if len(quotes) == 1 else quotes)
    else:
        look, live = asking.look(), source.state is None and source.trace is None
        for number, (one, found) in enumerate(zip(asked, quotes, strict=True)):
            name = one.spec.name if len(quotes) > 1 else ""
            asking.print_lines([""] * (number > 0) + render(found, look, name, live))
    return 0 if all(found.verdict == "accept" for found in quotes) else EXIT_NOT_SO


# ----------------------------------------------------------------------------------- who says it


class Source(NamedTuple):
    """Of what state of affairs, and how far it is looked ahead."""

    versions: int
    horizon: float
    state: str | None
    trace: Path | None
    at: float | None
    cluster: str | None
    policy: str | None
    carbon: str | None
    price: str | None


def quoted(source: Source, asked: Sequence[Submission]) -> list[Quote]:
    """One for each."""
    if source.trace is None and source.state is None:
        with asking.connect() as client:
            versions, horizon = source.versions, source.horizon
            return [client.quote(one, versions=versions, horizon_seconds=horizon) for one in asked]
    if source.trace is not None and source.state is not None:
        raise InputError("--state and --from exclude each other")
    from bough.core.doubt import Doubt
    from bough.core.forecast import forecast
    from bough.forks import Forks

    found = of_trace(source, source.trace) if source.trace is not None else of_state(source)
    return [
        forecast(
            found.scheduler, one.spec, source.versions, source.horizon, now=found.at,
            doubt=Doubt(past=found.past), run=Forks(),
        )
        for one in asked
    ]  # fmt: skip


def of_state(source: Source) -> Standing:
    """How things stood at the end of a journal."""
    from bough.cli.journal import opened
    from bough.server.hindsight import standing

    with opened(source.state) as journal:
        found = standing(journal)
    if source.policy is not None:
        found.scheduler.policy = policy_of(source.policy)
    return found


def of_trace(source: Source, trace: Path) -> Cut:
    """How things stood at a moment of a trace."""
    from bough.cli import inputs
    from bough.sim.cut import cut
    from bough.sim.options import Options
    from bough.sim.runs import Setting
    from bough.sim.trace import read_trace

    for name in ("at", "cluster", "policy"):
        if getattr(source, name) is None:
            raise InputError(f"--from needs --{name} too")
    assert source.at is not None
    place, read = inputs.read_cluster(source.cluster or ""), read_trace(trace)
    read = inputs.fit(read, place, "drop")
    given = {"carbon": source.carbon, "price": source.price}
    supply = Options(supply=inputs.read_supply(given))
    setting = Setting(trace=read, cluster=place, cluster_name=source.cluster or "", options=supply)
    return cut(setting, policy_of(source.policy or ""), read.jobs[0].submit + source.at)


def policy_of(text: str) -> Policy:
    """By its name, knobs included."""
    from bough.policies import find

    try:
        return find(text)
    except ValueError as error:
        raise InputError(str(error), field="--policy") from None


# ----------------------------------------------------------------------------------- the screen


def render(quote: Quote, look: Look, name: str = "", live: bool = True) -> list[str]:
    """The verdict, its numbers, and what else could be done."""
    verdict, meaning = VERDICTS[quote.verdict]
    title = f"{look.paint(bare(name), 'name')}  " if name else ""
    lines = [
        title + look.paint(verdict, meaning),
        *wrapped(bare(quote.reason.text), look.width),
        "",
    ]
    for label, text in labelled(quote, live):
        first, *rest = wrapped(text, look.width, LABEL_WIDTH)
        lines.append(look.paint(label.ljust(LABEL_WIDTH), "quiet") + first)
        lines += [" " * LABEL_WIDTH + line for line in rest]
    if quote.alternatives:
        rows = [row(one, quote.at) for one in quote.alternatives]
        lines += ["", *draw(Grid(COLUMNS, rows), look.width, look.colour)]
    return lines


def labelled(quote: Quote, live: bool) -> list[tuple[str, str]]:
    """Label and text of what is worth a line."""
    seen = quote.outlook
    found = [
        ("begins", when(seen.begins, quote.at, live)),
        ("ends", when(seen.ends, quote.at, live)),
    ]
    found.append(("uses", f"{amount(seen.device_hours)} device-hours"))
    for what, unit in (("energy_kwh", "kWh"), ("carbon_kg", "kg of CO2"), ("cost", "of money")):
        if (interval := getattr(seen, what)) is not None:
            found.append(("", f"{plain(interval)} {unit}"))
    if seen.parks >= 0.5:
        found.append(("parked", f"{seen.parks:.1f} times on the way, on average"))
    if seen.in_time is not None:
        found.append(("in time", f"in {seen.in_time:.0%} of what may come"))
    if quote.earliest_deadline is not None:
        at = words.moment(quote.earliest_deadline, quote.at) if live else ""
        text = at or f"in {words.span(quote.earliest_deadline - quote.at)}"
        found.append(("deadline", f"could be kept nine times out of ten from: {text}"))
    found.append(("delays", delayed(quote.delays) or "nobody"))
    return found


def when(interval: Interval, now: float, live: bool) -> str:
    """The middle, and what nine of ten are before: on the clock, and from now."""
    if interval.p50 is None:
        return "not within the time that was looked at"
    middle = "at once" if interval.p50 - now < 1.0 else f"in {words.span(interval.p50 - now)}"
    if live and interval.p50 - now >= 1.0:
        middle = words.moment(interval.p50, now)
    if interval.p90 is None:
        return f"{middle}; one time in ten not within the time that was looked at"
    if interval.p90 - interval.p50 < 1.0:
        return middle
    return f"{middle}, nine times out of ten within {words.span(interval.p90 - now)}"


def amount(interval: Interval) -> str:
    """From the least to the most of eight in ten."""
    low, high = (words.hours(3600.0 * (hours or 0.0)) for hours in (interval.p10, interval.p90))
    return low if low == high else f"{low}–{high}"


def plain(interval: Interval) -> str:
    """The same of any amount."""
    low, high = (f"{number or 0.0:.3g}" for number in (interval.p10, interval.p90))
    return low if low == high else f"{low}–{high}"


def delayed(delays: Sequence[Delay]) -> str:
    """Who ends later, and how much."""
    some = [
        f"{delay.job} by {words.span(delay.seconds)}" + (", after its deadline" * delay.late)
        for delay in delays[:DELAYS_SHOWN]
    ]
    more = len(delays) - len(some)
    noun = "job " if len(delays) == 1 else "jobs "
    return (noun + "; ".join(some) + (f"; and {more} more" if more else "")) if some else ""


def row(one: Alternative, now: float) -> list[Cell]:
    """What would come of it."""
    return [
        Cell(bare(one.change), "name" if one.accepted else "quiet"),
        Cell(short(one.outlook, "begins", now)),
        Cell(short(one.outlook, "ends", now)),
        Cell(amount(one.outlook.device_hours)),
        Cell(delayed(one.delays[:1]) + ("…" if len(one.delays) > 1 else "") or "nobody"),
    ]


def short(seen: Outlook, what: str, now: float) -> str:
    """From now: the middle, and nine of ten."""
    return words.ahead(getattr(seen, what), now)
