"""What `bough top` shows as lines of text: how all fares, queues, jobs, and one job in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bough.cli import queues, show, why, words
from bough.cli.asking import Look
from bough.cli.clock import clock_time
from bough.cli.grid import GAP, Cell, Column, Grid, bar, bare, cells, clipped, draw
from bough.cli.palette import DEVICES, STATES
from bough.cli.top_devices import METER, SIGNS, hue, rooted
from bough.cli.top_feed import Opened, Snapshot
from bough.records import ENDED, JobRecord, QueueRecord

#: Devices get this part of the screen where they need it, queues that part.
DEVICES_SHARE, QUEUES_SHARE = 0.45, 0.2
#: A screen of so many columns has room for longer trends.
ROOMY, SAMPLES, SAMPLES_FEW = 100, 16, 5
QUEUE_BAR: Final = 20
LATE_SOON_SECONDS: Final = 300.0

JOBS: Final = (
    Column("  Job"),
    Column("Name", cut=12),
    Column("User", cut=8, rank=3, if_any=True),
    Column("Queue", cut=8, rank=6, if_any=True),
    Column("State"),
    Column("Devices", rank=1),
    Column("Time", right=True, rank=4),
    Column("Done", if_any=True, rank=2),
    Column("Left", right=True, if_any=True, rank=2),
    Column("Slack", right=True, if_any=True, rank=1),
    Column("", cut=14),
)
QUEUES: Final = (
    Column("Queue", cut=12),
    Column(""),
    Column("Uses", right=True),
    Column("Entitled", right=True, rank=1),
    Column("Guarantee", right=True, rank=2),
    Column("Limit", right=True, rank=3),
    Column("Run", right=True, rank=1),
    Column("Wait", right=True),
    Column("", if_any=True, rank=1),
)


class Meters(NamedTuple):
    """What was measured lately, the oldest first."""

    busy: Sequence[float] = ()
    watts: Sequence[float] = ()


class Sight(NamedTuple):
    """What is looked at, beside what there is."""

    #: The job that is chosen.
    chosen: str = ""
    #: What jobs are searched for; whose they are.
    sought: str = ""
    user: str | None = None
    meters: Meters = Meters()
    #: What it is that does not answer, and why.
    away: str = ""
    server: str = ""


# ------------------------------------------------------------------------------------ everything


class Overview(NamedTuple):
    """The screen, and which line shows which job."""

    lines: list[str]
    jobs: dict[int, str]


def overview(seen: Snapshot, sight: Sight, look: Look, height: int) -> Overview:
    """All of it in so many lines: jobs take what devices and queues leave."""
    lines = head(seen, sight, look)
    lines += rooted(seen.devices, seen.jobs, look, max(int(height * DEVICES_SHARE), 3))
    if len(seen.queues) > 1:
        lines += ["", *tenants(seen, look, max(int(height * QUEUES_SHARE), 3))]
    lines.append("")
    found = matching(seen.jobs, sight.sought)
    room = max(height - len(lines) - 3, 1)
    first = window([job.id for job in found], sight.chosen, room)
    part = found[first : first + room]
    everybody = len({job.user for job in seen.jobs}) > 1
    titles, *rows = draw(job_grid(part, seen, everybody, look), look.width, look.colour)
    places = {len(lines) + 1 + number: job.id for number, job in enumerate(part)}
    lines += [titles, *rows]
    if not found:
        lines.append(look.paint(nothing(sight), "quiet"))
    lines += [""] * (height - 1 - len(lines))
    told = next((job.reason.text for job in found if job.id == sight.chosen), "")
    lines[height - 1 :] = [look.paint(clipped(bare(told), look.width), "quiet")]
    return Overview(lines, places)


def matching(jobs: Sequence[JobRecord], sought: str) -> list[JobRecord]:
    """Those in which every word that is sought is found somewhere."""
    wanted = sought.lower().split()

    def text(job: JobRecord) -> str:
        state = "parked" if job.held else job.state
        return f"{job.id} {job.name} {job.user} {job.queue} {state}".lower()

    return [job for job in jobs if all(word in text(job) for word in wanted)]


def window(ids: Sequence[str], chosen: str, room: int) -> int:
    """The first of those that are shown, so that the one that is chosen is among them."""
    at = ids.index(chosen) if chosen in ids else 0
    return max(0, min(at - room // 2, len(ids) - room))


def nothing(sight: Sight) -> str:
    if sight.sought:
        return "No job is like that; esc shows all."
    if sight.user is not None:
        return f"{bare(sight.user)} has no job now; f shows everybody's."
    return "Nobody has a job now. Start one: bough run -- python train.py"


# ------------------------------------------------------------------------------------------ head


def head(seen: Snapshot, sight: Sight, look: Look) -> list[str]:
    """Where this is, how it fares, and what one should know."""
    status = seen.status
    whose = "" if sight.user is None else f" · only {bare(sight.user)}"
    left = (
        f" · {bare(sight.server)} · {bare(status.policy)} · up {words.span(seen.at - status.since)}"
    )
    left = clipped(left + whose, look.width - len("bough") - len("00:00:00") - GAP)
    space = " " * (look.width - len("bough") - cells(left) - len("00:00:00"))
    first = look.paint("bough", "name") + look.paint(left + space + clock_time(look.now), "quiet")
    lines = [first, summary(seen, sight.meters, look)]
    if sight.away:
        ago = words.span(look.now - seen.at)
        text = f"{sight.away} Asked again every second; this is as it was {ago} ago."
        lines.append(look.paint(clipped(text, look.width), "wrong"))
    return lines + [look.paint(clipped(bare(note), look.width), "waits") for note in status.notes]


def summary(seen: Snapshot, meters: Meters, look: Look) -> str:
    """Devices, jobs, how busy all is and what it draws, on one line."""
    status, devices = seen.status, seen.devices
    held = sum(device.state == "held" for device in devices)
    share = held / len(devices) if devices else 0.0
    parts = [
        look.paint(bar(share, 8), "works") + f" {held} of {len(devices)} devices",
        f"{status.running} running",
        look.paint(f"{status.waiting} waiting", "waits" if status.waiting else ""),
    ]
    last = SAMPLES if look.width >= ROOMY else SAMPLES_FEW
    if meters.busy:
        parts.append(f"busy {trend(meters.busy[-last:], 1.0)} {meters.busy[-1]:.0%}")
    if meters.watts:
        drawn = trend(meters.watts[-last:], max(meters.watts))
        parts.append(f"{drawn} {meters.watts[-1]:,.0f} W")
    parts += [
        look.paint(f"{count} {state}", DEVICES[state])
        for state in ("taken", "unhealthy", "drained")
        if (count := sum(device.state == state for device in devices))
    ]
    return fitting(parts, look.width)


def fitting(parts: Sequence[str], width: int) -> str:
    """As many as have room, the first first."""
    import click

    shown = ""
    for part in parts:
        longer = f"{shown} · {part}" if shown else part
        if cells(click.unstyle(longer)) > width:
            break
        shown = longer
    return shown


def trend(values: Sequence[float], top: float) -> str:
    """A sparkline."""
    last = len(words.BLOCKS) - 1
    return "".join(words.BLOCKS[round(min(v / top, 1.0) * last) if top else 0] for v in values)


# ---------------------------------------------------------------------------------------- queues


def tenants(seen: Snapshot, look: Look, room: int) -> list[str]:
    """Each queue with what it uses of what it may count on."""
    whole = max(len(seen.devices), 1)
    rows = [queue_row(depth, each, whole) for depth, each in queues.ordered(seen.queues)]
    lines = draw(Grid(QUEUES, rows), look.width, look.colour)
    if len(lines) <= room:
        return lines
    more = f"and {len(lines) - room + 1} more queues; bough queue ls lists them"
    return [*lines[: room - 1], look.paint(more, "quiet")]


def queue_row(depth: int, each: QueueRecord, whole: int) -> list[Cell]:
    queue = each.queue
    return [
        Cell("  " * depth + bare(queue.name), "name"),
        Cell(tenant_bar(each, whole), "waits" if each.used > each.entitled else "works"),
        Cell(str(each.used)),
        Cell(str(each.entitled)),
        Cell(str(queue.guarantee) if queue.guarantee else "–"),
        Cell("–" if queue.limit is None else str(queue.limit)),
        Cell(str(each.running) if each.running else "–"),
        Cell(str(each.waiting) if each.waiting else "–", "waits" if each.waiting else ""),
        Cell("paused" if queue.paused else "", "waits"),
    ]


def tenant_bar(each: QueueRecord, whole: int, width: int = QUEUE_BAR) -> str:
    """Of all devices: what it uses (█), what it may count on besides (░), and its guarantee (│)."""
    used, entitled = (round(min(n / whole, 1.0) * width) for n in (each.used, each.entitled))
    drawn = ["█" if n < used else "░" if n < entitled else " " for n in range(width)]
    mark = round(min(each.queue.guarantee / whole, 1.0) * width)
    if each.queue.guarantee and mark > used:
        drawn[mark - 1] = "│"
    return "".join(drawn)


# ------------------------------------------------------------------------------------------ jobs


def job_grid(jobs: Sequence[JobRecord], seen: Snapshot, everybody: bool, look: Look) -> Grid:
    tenanted = len(seen.queues) > 1
    return Grid(JOBS, [job_row(job, look.now, everybody, tenanted) for job in jobs])


def job_row(job: JobRecord, now: float, users: bool, tenanted: bool) -> list[Cell]:
    over = job.state in ENDED
    quiet = "quiet" if over else ""
    done = job.progress if not over else None
    return [
        Cell(f"{SIGNS['held']} {job.id}", hue(job.id)) if job.devices and not over
        else Cell(f"  {job.id}", quiet),
        Cell(bare(job.name), quiet),
        Cell(bare(job.user) if users else "", quiet),
        Cell(bare(job.queue) if tenanted else "", quiet),
        Cell("parked" if job.held else job.state, "waits" if job.held else STATES[job.state]),
        Cell(words.devices(job), quiet),
        Cell(words.span(words.seconds_in_state(job, now)), quiet),
        Cell("" if done is None else f"{bar(done, METER)} {done:4.0%}", "works"),
        Cell("" if over or job.eta_seconds is None else words.span(job.eta_seconds)),
        slack(job, now),
        Cell(*note(job, now)),
    ]  # fmt: skip


def slack(job: JobRecord, now: float) -> Cell:
    """What is left before its deadline when its work is done; less than nothing: it is late."""
    if job.deadline is None or job.state in ENDED:
        return Cell("")
    left = job.deadline - now - (job.eta_seconds or 0.0)
    if left < 0:
        return Cell(f"-{words.span(-left)}", "wrong")
    return Cell(words.span(left), "waits" if left < LATE_SOON_SECONDS else "")


def note(job: JobRecord, now: float) -> tuple[str, str]:
    """Where it runs, what it waits for, or how it ended."""
    if job.state == "running" and not job.held:
        return words.place(job.place), ""
    meaning = "wrong" if STATES[job.state] == "wrong" else "quiet" if job.state in ENDED else ""
    return words.outlook(job, now), meaning


# --------------------------------------------------------------------------------------- one job


def opened(found: Opened, look: Look) -> list[str]:
    """Why it is where it is and what would help, what it asked for, what became of it, its log."""
    detail = found.detail
    lines = [show.title(detail.job, look), *show.facts(detail, look)]
    answer = why.Answer(detail.job, detail.spec, found.reason)
    lines += [*why.numbers(found.reason, look), *why.helping(answer, look)]
    lines += show.growth(detail, look)
    if detail.attempts:
        lines += ["", *show.attempts(detail.attempts, look)]
    lines += ["", *show.receipt(found.receipt, detail.job, look)]
    if found.tail:
        lines += ["", look.paint("last lines (l follows)", "quiet")]
        lines += [clipped(plain(line), look.width) for line in found.tail]
    return lines


def plain(line: str) -> str:
    """A line of a log as it looks in the end: without colours, and without what was overwritten."""
    import click

    shown = click.unstyle(line).rstrip("\r").rpartition("\r")[2]
    return bare(shown.expandtabs())


def sections(keys: Mapping[str, Sequence[tuple[str, str]]], look: Look) -> Iterator[str]:
    """All keys and what they do."""
    for title, below in keys.items():
        yield look.paint(title, "name")
        for key, does in below:
            yield f"  {look.paint(key.ljust(12), 'type')}{does}"
        yield ""
