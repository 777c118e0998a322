"""`bough show J`: all there is to know of one job, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click
import msgspec

from bough.cli import arrays, asking, references, words
from bough.cli.grid import Cell, Column, Grid, bar, bare, draw, wrapped
from bough.cli.palette import STATES
from bough.core.moments import format_time
from bough.core.prospects import Interval
from bough.core.units import format_duration, format_size
from bough.localtime import LOCAL
from bough.records import ENDED, Attempt, JobDetail, JobRecord, Receipt

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.core.model import JobSpec, Role

LABEL_WIDTH: Final = 11
SPARK_WIDTH_MAX: Final = 60
ATTEMPTS_MAX: Final = 10
ATTEMPTS: Final = (
    Column("Try", right=True),
    Column("Began"),
    Column("Ran", right=True),
    Column("Devices", rank=1, cut=12),
    Column("How it ended", cut=24),
)


class Shown(msgspec.Struct, frozen=True):
    """What `--json` prints: the API's two answers about a job."""

    detail: JobDetail  #: What it asked for, and its attempts.
    receipt: Receipt  #: What it took.


@click.command("show", cls=asking.Watchable)
@click.argument("job", type=references.JOB)
@asking.watch_option
@asking.json_option
def command(job: str, watch: float | None, as_json: bool) -> None:
    """Show all of JOB: what it asked for, where it is, its attempts, sizes and receipt.

    JOB is a number, or the name of your latest job of that name. Of an array, its jobs are listed.
    """
    with asking.connect() as client:
        if len(client.members(job)) > 1:
            asking.present(lambda: client.members(job), arrays.render, as_json, watch=watch)
            return
        asking.present(
            lambda: Shown(client.job(job), client.receipt(job)), render, as_json, watch=watch
        )


def render(shown: Shown, look: Look) -> list[str]:
    """Facts, devices over time, attempts, receipt."""
    detail = shown.detail
    lines = [title(detail.job, look), *facts(detail, look)]
    lines += growth(detail, look)
    if detail.attempts:
        lines += ["", *attempts(detail.attempts, look)]
    return [*lines, "", *receipt(shown.receipt, detail.job, look)]


def title(job: JobRecord, look: Look) -> str:
    name = look.paint(f"Job {job.id}  {bare(job.name)}", "name")
    state = look.paint("parked" if job.held else job.state, STATES[job.state])
    known = ""
    if job.progress is not None and job.state not in ENDED:
        left = "" if job.eta_seconds is None else f" · {words.span(job.eta_seconds)} left"
        known = f"  {bar(job.progress, 10)} {job.progress:.0%}{left}"
    code = f" with exit code {job.code}" if job.code else ""
    return f"{name}  {state}{code}{known}"


def facts(detail: JobDetail, look: Look) -> list[str]:
    """What is known, line by line, each with its label."""
    lines = []
    for label, text in labelled(detail, look.now):
        first, *rest = wrapped(text, look.width, LABEL_WIDTH)
        lines.append(look.paint(label.ljust(LABEL_WIDTH), "quiet") + first)
        lines += [" " * LABEL_WIDTH + line for line in rest]
    return lines


def labelled(detail: JobDetail, now: float) -> Iterator[tuple[str, str]]:
    """Label and text of what is worth a line."""
    job, spec = detail.job, detail.spec
    yield "why", bare(job.reason.text)
    if job.place and job.state not in ENDED:
        yield "where", words.place(job.place)
    changed = not spec.roles and job.sizes != spec.devices.sizes()
    yield "asked", asked(spec) + (f"; by now {words.sizes(job.sizes)}" if changed else "")
    yield "command", words.command(job.command)
    if detail.recipe is not None and detail.recipe.cwd:
        yield "folder", bare(detail.recipe.cwd)
    yield "whose", bare(f"{job.user} in queue {job.queue}{priority(job)}")
    yield "submitted", words.moment(job.submitted, now)
    if job.began is not None:
        yield "began", words.moment(job.began, now)
    if job.ended is not None:
        yield "ended", words.moment(job.ended, now)
    if job.begins is not None:
        yield "begins", likely(job.begins, now)
    if job.ends is not None:
        yield "ends", likely(job.ends, now)
    if job.deadline is not None:
        yield "deadline", words.moment(job.deadline, now) + promise(detail)
    if job.after:
        yield "after", ", ".join(job.after)
    if job.array_of:
        yield "array", bare(f"{job.array_of}, number {spec.array_index}")
    if job.retries or job.failures:
        again = f"; tried again up to {job.retries} times" if job.retries else ""
        yield "failures", f"{job.failures} so far{again}"
    if job.retry_of:
        yield "repeats", f"job {job.retry_of}"


def likely(interval: Interval, now: float) -> str:
    """When, on the clock; and how far off that may be."""
    if interval.p50 is None:
        return "probably not within a month"
    middle = "now" if interval.p50 <= now else f"likely {words.moment(interval.p50, now)}"
    if interval.p90 is None:
        return f"{middle}; one time in ten not within a month"
    late = max(interval.p90 - now, 0.0)
    return f"{middle}, nine times out of ten within {words.span(late)}"


def priority(job: JobRecord) -> str:
    return f", priority {job.priority}" if job.priority else ""


def promise(detail: JobDetail) -> str:
    """Whether the deadline is one: it may have been asked for and not been given."""
    if detail.job.service == "guaranteed":
        return ", promised"
    return ", not promised" if detail.spec.service == "guaranteed" else ""


def asked(spec: JobSpec) -> str:
    """Devices, and what is to stand beside each; or the roles."""
    if spec.roles:
        return ", ".join(map(asked_of, spec.roles))
    counts = spec.devices.sizes()
    kind = f" {' or '.join(spec.kinds)}" if spec.kinds else ""
    text = f"{words.sizes(counts)}{kind} device{'' if counts == (1,) else 's'}"
    beside = [f"{spec.cpus:g} CPUs"] * (spec.cpus > 0)
    beside += [format_size(spec.memory)] * (spec.memory > 0)
    text += f" with {' and '.join(beside)} each" if beside else ""
    if spec.max_run_seconds < float("inf"):
        text += f", at most {format_duration(spec.max_run_seconds)}"
    if spec.topology.mode != "prefer":
        level = spec.topology.level or "node"
        text += f", {spec.topology.mode} one {level}"
    return text


def asked_of(role: Role) -> str:
    """2 × worker with 1 device each."""
    counts, many = role.count.sizes(), f"{role.devices} device{'' if role.devices == 1 else 's'}"
    beside = f"with {many}" if role.devices else "without devices"
    each = " each" if role.devices and counts != (1,) else ""
    return f"{words.sizes(counts)} × {bare(role.name)} {beside}{each}"


def growth(detail: JobDetail, look: Look) -> list[str]:
    """Devices over time, where they changed."""
    steps, now = held(detail.sizes), look.now
    until = detail.job.ended or now
    if len(steps) < 2:
        return []
    most = max(size for _, size in steps)
    width = min(SPARK_WIDTH_MAX, look.width - LABEL_WIDTH - 2)
    line = words.sparkline(steps, until, width)
    first = format_time(steps[0][0], now, LOCAL).removeprefix("today ")
    last = "now" if detail.job.ended is None else format_time(until, now, LOCAL)
    last = last.removeprefix("today ")
    least = min(size for _, size in steps if size)
    counts = f"{least} to {most}" if least < most else f"{most}"
    devices = f"{counts} device{'' if most == 1 else 's'}"
    middle = f"{devices}, {words.span(until - steps[0][0])}"
    scale = first + middle.center(max(width - len(first) - len(last), len(middle) + 2)) + last
    indent = " " * LABEL_WIDTH
    return [
        "",
        look.paint("devices".ljust(LABEL_WIDTH), "quiet") + look.paint(line, "works"),
        look.paint(indent + scale, "quiet"),
    ]


def held(sizes: Sequence[tuple[float, int]]) -> Sequence[tuple[float, int]]:
    """From its first device to its last."""
    some = [number for number, (_, size) in enumerate(sizes) if size]
    return sizes[some[0] : some[-1] + 1] if some else ()


def attempts(all: Sequence[Attempt], look: Look) -> list[str]:
    """The last ones, oldest first."""
    rows = []
    for one in all[-ATTEMPTS_MAX:]:
        ran = None if one.began is None else (one.ended or look.now) - one.began
        bad = "wrong" if one.how in ("failed", "lost") else "" if one.how else "works"
        rows.append(
            [
                Cell(str(one.epoch)),
                Cell("–" if one.began is None else clock_of(one.began, look.now)),
                Cell(words.span(ran)),
                Cell(words.place(one.place)),
                Cell(words.attempt_end(one), bad),
            ]
        )
    lines = draw(Grid(ATTEMPTS, rows), look.width, look.colour)
    if len(all) > ATTEMPTS_MAX:
        lines.append(look.paint(f"and {len(all) - ATTEMPTS_MAX} earlier ones", "quiet"))
    return lines


def clock_of(at: float, now: float) -> str:
    """To the second on the same day, else to the minute."""
    then, present = datetime.fromtimestamp(at, LOCAL), datetime.fromtimestamp(now, LOCAL)
    return f"{then:%H:%M:%S}" if then.date() == present.date() else format_time(at, now, LOCAL)


def receipt(found: Receipt, job: JobRecord, look: Look) -> list[str]:
    """What it took, and what it waited for."""
    so_far = "" if job.state in ENDED else " so far"
    causes = sorted(found.waits.items(), key=lambda each: -each[1])
    waits = ", ".join(f"{words.span(seconds)} {code}" for code, seconds in causes if seconds >= 1)
    waited = f"waited {words.span(found.waited_seconds)}" + (f" ({waits})" if waits else "")
    took = f"ran {words.span(found.ran_seconds)}, {words.hours(found.device_seconds)} device-hours"
    if found.lost_device_seconds >= 1:
        took += f", {words.hours(found.lost_device_seconds)} of them lost"
    counts = [
        words.times(found.starts, "start"),
        words.times(found.resizes, "resize"),
        words.times(found.parks, "park"),
        words.times(found.failures, "failure"),
    ]
    parts = [waited, took, ", ".join(filter(None, counts))]
    if found.energy_kwh is not None:
        parts.append(f"{found.energy_kwh:.3g} kWh")
    head = f"Receipt{so_far}: "
    return wrapped(head + "; ".join(filter(None, parts)) + ".", look.width)
