"""What people write for amounts (sizes, durations, counts, indices) is read and written here.

Everything takes text and answers with a number, or with a ValueError of one line that says what
can be written instead. Times of day and dates have a module of their own, `moments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Final

from bough.core.model import Range

#: Nobody means more than this, and what is allowed to be endless ends in a hang.
COUNT_MAX: Final = 1_000_000
SIZES_MAX: Final = 10_000
INDEX_MAX: Final = 1_000_000_000
INDICES_MAX: Final = 100_000
BYTES_MAX: Final = 2**63 - 1
SECONDS_MAX: Final = 1e11
GRAMS_MAX: Final = 1e15
SHOWN_MAX: Final = 40
TEXT_MAX: Final = 1_000_000

_NUMBER: Final = r"\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?"
_AMOUNT: Final = re.compile(rf"(?a)({_NUMBER})\s*([A-Za-z/]*)")
_PART: Final = re.compile(rf"(?a)\s*({_NUMBER})\s*([a-z]+)\s*,?")
_CLOCK: Final = re.compile(r"(?a)(?:(\d{1,5})-)?(\d{1,6}):([0-5]\d):([0-5]\d)")
_COUNT: Final = re.compile(r"(?a)\d{1,9}")
_COUNTS: Final = re.compile(r"(?a)(\d{1,9})\s*\.\.\s*(\d{1,9})(?:\s*step\s*(\d{1,9}))?")
_ALMOST_COUNTS: Final = re.compile(r"(?a)(\d{1,9})\s*(?:-|:|\.|\.{3}|to)\s*(\d{1,9})")
_INDICES: Final = re.compile(r"(?a)(\d{1,12})(?:\s*-\s*(\d{1,12})(?::(\d{1,12}))?)?")

#: Unit -> seconds, longest first: the order in which parts of a duration are written.
SECONDS: Final[dict[str, Fraction]] = {
    "w": Fraction(604_800),
    "d": Fraction(86_400),
    "h": Fraction(3_600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
}
#: Other spellings of the same units; each also with an "s".
_SPELLINGS: Final = {
    "w": ("week", "wk"),
    "d": ("day",),
    "h": ("hour", "hr"),
    "m": ("minute", "min"),
    "s": ("second", "sec"),
    "ms": ("millisecond", "msec"),
}
_DURATION_UNITS: Final[dict[str, str]] = {unit: unit for unit in SECONDS} | {
    spelling + plural: unit
    for unit, spellings in _SPELLINGS.items()
    for spelling in spellings
    for plural in ("", "s")
}


def _byte_units() -> dict[str, int]:
    """B, kB, MB … are powers of 1000 and KiB, MiB … powers of 1024; B may be left out.

    Lower case will do ("10gb"), but not half of it: "10Gb" are bits to many.
    """
    units = {"": 1, "B": 1, "kB": 1000, "k": 1000}
    for power, letter in enumerate("KMGTPE", 1):
        units |= {letter: 1000**power, f"{letter}B": 1000**power}
        units |= {f"{letter}i": 1024**power, f"{letter}iB": 1024**power}
    return units | {unit.lower(): factor for unit, factor in units.items()}


BYTES: Final = _byte_units()
#: Per second; as networks are sold also in bits.
RATES: Final[dict[str, Fraction]] = {
    f"{unit}/s": Fraction(factor) for unit, factor in BYTES.items() if unit
} | {
    f"{letter}{bits}": Fraction(1000**power, 8)
    for power, letter in ((2, "M"), (3, "G"), (4, "T"))
    for bits in ("bit/s", "bps", "b/s")
}
GRAMS: Final[dict[str, int]] = {"": 1, "g": 1, "kg": 1000, "t": 1_000_000}


# ------------------------------------------------------------------------------------- reading


def parse_size(text: str) -> int:
    """Bytes: "10GiB", "512M", "1.5TB", or a plain number of bytes."""
    found = _amount(text, BYTES)
    if found is None:
        raise ValueError(f"{shown(text)} is not a size; write it like 512MB, 10GiB or 1.5TiB")
    if found > BYTES_MAX:
        raise ValueError(f"{shown(text)} is more than any machine has (8EiB)")
    return round(found)


def parse_rate(text: str) -> float:
    """Bytes per second: "300GB/s", "100Gbit/s", "25Gbps"."""
    found = _amount(text, RATES)
    if found is None or not 0 < found <= BYTES_MAX:
        raise ValueError(f"{shown(text)} is not a bandwidth; write it like 300GB/s or 100Gbit/s")
    return float(found)


def parse_grams(text: str) -> float:
    """Grams: "800g", "2.5kg", "1t", or a plain number of grams."""
    found = _amount(text, GRAMS)
    if found is None or found > GRAMS_MAX:
        raise ValueError(f"{shown(text)} is not a mass; write it like 800g, 2.5kg or 1t")
    return float(found)


def parse_duration(text: str) -> float:
    """Seconds: "2h30m", "90s", "1 day 12 hours", "2:30:00", "1-12:00:00", or plain seconds."""
    written = text.strip()
    found = _clock_seconds(written) if ":" in written else _duration(written)
    if found is None:
        raise ValueError(
            f"{shown(text)} is not a duration; write it like 90s, 2h30m, 1d12h or 2:30:00"
        )
    if found > SECONDS_MAX:
        raise ValueError(f"{shown(text)} is longer than three thousand years")
    return float(found)


def parse_counts(text: str) -> Range:
    """How many: "4", "2..8" (powers of two between), "2..8 step 2", "1,2,4,8"."""
    written = text.strip()
    if _COUNT.fullmatch(written):
        return _range(text, int(written), int(written))
    if match := _COUNTS.fullmatch(written):
        low, high = int(match[1]), int(match[2])
        return _range(text, low, high, _steps(text, low, high, match[3]))
    if match := _ALMOST_COUNTS.fullmatch(written):
        raise ValueError(f"{shown(text)} is not a count; write {match[1]}..{match[2]}")
    parts = written.split(",") if len(written) <= TEXT_MAX else []
    if not parts or any(not _COUNT.fullmatch(part.strip()) for part in parts):
        raise ValueError(
            f"{shown(text)} is not a count; write it like 4, 2..8, 2..8 step 2 or 1,2,4,8"
        )
    sizes = sorted({int(part) for part in parts})
    return _range(text, sizes[0], sizes[-1], tuple(sizes) if len(sizes) > 1 else ())


def parse_indices(text: str) -> tuple[int, ...]:
    """Which of many, ascending: "0-31", "0-9:2" (every second), "1,3,5-7"."""
    found: list[int] = []
    for part in text[:TEXT_MAX].split(","):
        match = _INDICES.fullmatch(part.strip())
        if match is None:
            raise ValueError(
                f"{shown(text)} are not indices; write them like 0-31, 0-9:2 or 1,3,5-7"
            )
        first = int(match[1])
        last = int(match[2] or first)
        step = int(match[3] or 1)
        if last < first or step < 1 or last > INDEX_MAX:
            raise ValueError(f"{shown(part)} goes from {first} to {last} by {step}, which is none")
        if len(found) + (last - first) // step >= INDICES_MAX:
            raise ValueError(f"{shown(text)} are more than {INDICES_MAX} indices")
        found.extend(range(first, last + 1, step))
    if len(set(found)) < len(found):
        raise ValueError(f"{shown(text)} names an index twice")
    return tuple(sorted(found))


# ------------------------------------------------------------------------------------- writing


def format_size(size: float) -> str:
    """Bytes for people, to three digits: "10GiB", "1.45TiB", "512B"."""
    if size == float("inf"):
        return "any"
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    value = float(size)
    while abs(value) >= 999.5 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.3g}{units[0]}"


def format_duration(seconds: float, parts: int = 2) -> str:
    """Seconds for people, rounded to so many units: "2h30m", "1d", "340ms"."""
    if seconds != seconds:
        return "?"
    if seconds < 0:
        return "-" + format_duration(-seconds, parts)
    if seconds == float("inf"):
        return "forever"
    if 0 < seconds < 1:
        return f"{max(round(seconds * 1000), 1)}ms"
    left = round(seconds)
    units = [(unit, int(worth)) for unit, worth in SECONDS.items() if unit not in ("w", "ms")]
    first = next((i for i, (_, worth) in enumerate(units) if left >= worth), len(units) - 1)
    # Rounding may carry into a larger unit (59m59s to one part is 1h), but never further than that.
    worth = units[min(first + parts, len(units)) - 1][1]
    left = round(left / worth) * worth
    written = []
    for unit, worth in units:
        count, left = divmod(left, worth)
        if count:
            written.append(f"{count}{unit}")
    return "".join(written) or "0s"


def format_counts(counts: Range) -> str:
    """A range as it would be written: "4", "2..8", "2..8 step 2", "1,2,4,8"."""
    sizes = counts.sizes()
    if len(sizes) == 1:
        return str(sizes[0])
    if not counts.steps:
        return f"{counts.min}..{counts.max}"
    gaps = {b - a for a, b in pairwise(sizes)}
    if len(sizes) > 2 and len(gaps) == 1:
        return f"{counts.min}..{counts.max} step {gaps.pop()}"
    return ",".join(str(size) for size in sizes)


def shown(text: str) -> str:
    """Something written, quoted on one line, cut when long."""
    return repr(text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…")


# -------------------------------------------------------------------------------------- inside


def _amount(text: str, units: Mapping[str, int] | Mapping[str, Fraction]) -> Fraction | None:
    """A number and its unit as an exact number of the base unit; None if it is not that."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    return Fraction(match[1]) * units[match[2]]


def _duration(written: str) -> Fraction | None:
    """Parts with units, each unit once and the longer before the shorter; or plain seconds."""
    if re.fullmatch(_NUMBER, written, re.ASCII):
        return Fraction(written)
    total, at, last = Fraction(0), 0, -1
    order = list(SECONDS)
    low = written.lower()
    while match := _PART.match(low, at):
        unit = _DURATION_UNITS.get(match[2])
        if unit is None or order.index(unit) <= last:
            return None
        total += Fraction(match[1]) * SECONDS[unit]
        at, last = match.end(), order.index(unit)
    return total if at == len(low) and at > 0 else None


def _clock_seconds(written: str) -> Fraction | None:
    """Hours, minutes and seconds as clocks and batch systems print them, with days before."""
    if re.fullmatch(r"(?a)\d{1,6}:\d\d", written):
        a, b = written.split(":")
        raise ValueError(f"{written!r} is unclear; write {int(a)}h{int(b)}m or {int(a)}m{int(b)}s")
    match = _CLOCK.fullmatch(written)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return Fraction(86_400 * days + 3_600 * hours + 60 * minutes + seconds)


def _steps(text: str, low: int, high: int, step: str | None) -> tuple[int, ...]:
    """The sizes of "2..8 step 2"; none when no step is given."""
    if step is None or high <= low:
        return ()
    width = int(step)
    if width < 1:
        raise ValueError(f"{shown(text)} has a step of 0; it must be 1 or more")
    reach = low + (high - low) // width * width
    if reach != high:
        raise ValueError(
            f"{shown(text)} never reaches {high}; write {low}..{reach} step {width} "
            f"or {low}..{reach + width} step {width}"
        )
    if (high - low) // width >= SIZES_MAX:
        raise ValueError(f"{shown(text)} has more than {SIZES_MAX} sizes; take a larger step")
    return tuple(range(low, high + 1, width))


def _range(text: str, low: int, high: int, steps: Iterable[int] = ()) -> Range:
    if high < low:
        raise ValueError(f"{shown(text)} ends before it begins; write {high}..{low}")
    if low < 1:
        raise ValueError(f"{shown(text)} is too few; at least 1 is needed")
    if high > COUNT_MAX:
        raise ValueError(f"{shown(text)} is too many; at most {COUNT_MAX} can be asked for")
    return Range(min=low, max=high, steps=tuple(steps))
