"""How jobs, places and times are said in a few letters, the same in every listing."""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from bough.cli.grid import bare
from bough.core.model import Place, Range
from bough.core.moments import format_time
from bough.core.prospects import Interval
from bough.core.units import format_counts, format_duration
from bough.localtime import LOCAL
from bough.records import ENDED, Attempt, JobRecord

BLOCKS: Final = "▁▂▃▄▅▆▇█"
#: Nobody reads a longer time in two units.
DAY_SECONDS: Final = 86_400
SIZES_SHOWN: Final = 4
#: From so many seconds on, what is only likely is told in so large parts.
GRAINS: Final = ((86_400.0, 3600.0), (36_000.0, 1800.0), (3600.0, 300.0), (180.0, 60.0), (0.0, 1.0))


def span(seconds: float | None) -> str:
    """45s, 3h12m, 301d; an en dash where nobody knows."""
    if seconds is None or seconds != seconds:
        return "–"
    if 0 < seconds < 1:
        return "<1s"
    return format_duration(seconds, 1 if seconds >= 10 * DAY_SECONDS else 2)


def moment(at: float | None, now: float) -> str:
    """A local time and how far that is: "today 14:05 (2h ago)"."""
    if at is None:
        return "–"
    return f"{format_time(at, now, LOCAL)} ({distance(at, now)})"


def distance(at: float, now: float) -> str:
    """How far away it is: "2h5m ago", "in 3d"."""
    if abs(at - now) < 1:
        return "now"
    return f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"


def ahead(interval: Interval | None, now: float) -> str:
    """From now, the middle and what nine times out of ten it is within: "in 5m–20m"."""
    if interval is None or interval.p50 is None:
        return "–" if interval is None else "not soon"
    soon = max(interval.p50 - now, 0.0)
    late = None if interval.p90 is None else max(interval.p90 - now, 0.0)
    if late is not None and late < 1.0:
        return "at once"
    first, last = about(soon), "?" if late is None else about(late)
    return f"in {first}" if first == last else f"in {first}–{last}"


def about(seconds: float) -> str:
    """Two digits or so, as nobody knows it better: 45s, 12m, 3h20m, 2d4h."""
    grain = next(grain for least, grain in GRAINS if seconds >= least)
    return format_duration(max(round(seconds / grain), 1) * grain if seconds else 0.0, 2)


def hours(device_seconds: float) -> str:
    """Device-hours to three digits; small ones are not nothing."""
    found = device_seconds / 3600
    if 0 < found < 0.01:
        return "<0.01"
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"


def sizes(counts: Sequence[int]) -> str:
    """Sizes that a job accepts: "4", "2–8", "1,3,7"."""
    if len(counts) <= 1:
        return str(counts[0]) if counts else "–"
    powers = Range(min=counts[0], max=counts[-1])
    if tuple(counts) == powers.sizes() or len(counts) > SIZES_SHOWN:
        return f"{counts[0]}–{counts[-1]}"
    return format_counts(Range(min=counts[0], max=counts[-1], steps=tuple(counts)))


def devices(job: JobRecord) -> str:
    """What it holds of what it accepts: "4 of 2–8"."""
    wanted = sizes(job.sizes)
    if job.state in ENDED:
        return wanted
    if len(job.sizes) == 1 and job.devices == job.sizes[0]:
        return wanted
    return f"{job.devices} of {wanted}" if job.devices else f"– of {wanted}"


def runs(numbers: Iterable[int]) -> str:
    """Numbers with neighbours joined: "0–3,6"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{a}–{b}" if b > a else str(a) for a, b in found)


def place(held: Place) -> str:
    """Where it is: "node-1:0–3 node-2:0,1"."""
    return " ".join(f"{node}:{runs(numbers)}" for node, numbers in held) or "–"


def command(argv: Sequence[str] | None) -> str:
    """As it could be typed."""
    return "(its owner's alone)" if argv is None else bare(shlex.join(argv)) or "–"


def seconds_in_state(job: JobRecord, now: float) -> float:
    """How long it has waited, has run, or ran."""
    if job.state in ENDED:
        return 0.0 if job.began is None else (job.ended or now) - job.began
    return now - (job.submitted if job.began is None else job.began)


def outcome(job: JobRecord, now: float) -> str:
    """Of a job that is over: how it ended, and when."""
    when = "" if job.ended is None else distance(job.ended, now)
    if job.state == "failed" and job.code is not None:
        return f"exit code {job.code}, {when}"
    if job.state in ("rejected", "failed", "timed-out"):
        return f"{when}; {bare(job.reason.text)}"
    return when


def told(job: JobRecord) -> str:
    """A sentence on how it is: "Job 12 (resnet) failed: exit code 3."."""
    name, text = f"Job {job.id} ({bare(job.name)})", bare(job.reason.text)
    if text.startswith("It "):
        return f"{name} {text.removeprefix('It ')}"
    return f"{name} is {job.state}: {text}"


def outlook(job: JobRecord, now: float) -> str:
    """What is most worth knowing of a job in a list."""
    if job.state in ENDED:
        return outcome(job, now)
    if job.held:
        return f"parked by a user; bough unpark {job.id}"
    if job.state == "running":
        known = [] if job.progress is None else [f"{job.progress:.0%}"]
        if job.ends is not None:
            known += [f"ends {ahead(job.ends, now)}"]
        elif job.eta_seconds is not None:
            known += [f"{span(job.eta_seconds)} left"]
        return " · ".join([*known, place(job.place)])
    begins = "" if job.begins is None else f"begins {ahead(job.begins, now)}: "
    return begins + bare(job.reason.text).removeprefix("It ")


def attempt_end(attempt: Attempt) -> str:
    """How an attempt ended, in words and with its code."""
    from bough.core.exits import explain

    if not attempt.how:
        return "goes on"
    if attempt.how in ("done", "stopped"):
        return {"done": "finished", "stopped": "was stopped"}[attempt.how] + noted(attempt.note)
    if attempt.how == "lost":
        return "was lost with its machine" + noted(attempt.note)
    words = explain(attempt.code or 0, "failed", attempt.note).text
    if "exit code" in words:
        return words + noted(attempt.note)
    code = f"exit code {attempt.code})"
    words = f"{words[:-1]}, {code}" if words.endswith(")") else f"{words} ({code}"
    return words + noted(attempt.note)


def noted(note: str) -> str:
    return f": {bare(note)}" if note else ""


def sparkline(sizes: Sequence[tuple[float, int]], until: float, width: int) -> str:
    """Devices over time, from the first moment on: each letter the mean of its part of the time."""
    if not sizes or until <= sizes[0][0]:
        return ""
    start, most = sizes[0][0], max(size for _, size in sizes)
    edges = [start + (until - start) * i / width for i in range(width + 1)]
    means = [_mean(sizes, low, high) for low, high in pairwise(edges)]
    if most == 0:
        return " " * width
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[round(mean / most * top)] if mean else " " for mean in means)


def _mean(sizes: Sequence[tuple[float, int]], low: float, high: float) -> float:
    """Of a step function between two moments."""
    first = max(bisect_right(sizes, low, key=lambda step: step[0]) - 1, 0)
    total = 0.0
    for number in range(first, len(sizes)):
        at, size = sizes[number]
        if at >= high:
            break
        end = sizes[number + 1][0] if number + 1 < len(sizes) else high
        total += size * (min(end, high) - max(at, low))
    return total / (high - low)


def counted(count: int, noun: str) -> str:
    """ "1 job", "1,204 jobs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def times(count: int, word: str) -> str:
    """ "2 starts"; nothing of what never was."""
    return f"{count} {word}{'' if count == 1 else 's'}" if count else ""
