"""What people write for a moment ("fri 18:00", "+2h", ISO) is read and written here.

Nothing here reads a clock: the present and the time zone are handed in.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo
from typing import Final

from bough.core.units import parse_duration, shown

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_DAYS: Final[dict[str, int]] = {
    **{name: number for number, name in enumerate(WEEKDAYS)},
    **{name: number for number, name in enumerate(_LONG_WEEKDAYS)},
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
#: Smaller plain numbers are more likely meant as "so many seconds from now" than as 1970.
EPOCH_SECONDS_MIN: Final = 1e9
#: Far from the ends of the calendar, so that no time zone and no next week falls off it.
FIRST_YEAR: Final = 1971
LAST_YEAR: Final = 9990

_RELATIVE: Final = re.compile(r"(?:\+|in\s)\s*(.+)", re.IGNORECASE)
_EPOCH: Final = re.compile(r"(?a)\d{1,12}(?:\.\d{1,9})?")
_DAY_AND_CLOCK: Final = re.compile(
    r"(?a)(?:at\s+|([a-z]+),?\s+(?:at\s+)?)?(\d[\d:]*\s*(?:[ap]m)?|noon)"
)
_CLOCK: Final = re.compile(r"(?a)(\d{1,2})(?::(\d\d)(?::(\d\d))?)?\s*([ap]m)?")
_ISO: Final = re.compile(
    r"(?ai)(\d{4}-\d\d-\d\d)"
    r"(?:[T ]\s*(\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)


def parse_time(text: str, now: float, zone: tzinfo) -> float:
    """Seconds since 1970 of a moment someone wrote at `now` in a time zone.

    "+2h" and "in 2h" count from now. "18:00", "6pm" and "fri 18:00" are the next such moment,
    "today" and "tomorrow" name the day. ISO dates need a time; without a zone they are local.
    """
    written = text.strip()
    if match := _RELATIVE.fullmatch(written):
        return now + parse_duration(match[1])
    if _EPOCH.fullmatch(written):
        return _epoch_seconds(written)
    try:
        if match := _ISO.fullmatch(written):
            return _iso(text, match, zone)
        if match := _DAY_AND_CLOCK.fullmatch(written.lower()):
            return _next(text, match[1] or "", match[2], datetime.fromtimestamp(now, zone))
    except (OverflowError, OSError) as error:
        raise ValueError(f"{shown(text)} lies outside the calendar") from error
    if written.lower() in {*_DAYS, "today", "tomorrow"}:
        raise ValueError(f"{shown(text)} needs a time of day, like {written} 18:00")
    raise ValueError(
        f"{shown(text)} is not a time; write it like 18:00, fri 18:00, tomorrow 9am, "
        "2026-11-20 18:00, 2026-11-20T18:00Z or +2h"
    )


def format_time(at: float, now: float, zone: tzinfo) -> str:
    """A moment for people, to the minute, as short as it is clear."""
    try:
        then, present = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    except (OverflowError, OSError, ValueError):
        return "never" if at > now else "long ago"
    days = (then.date() - present.date()).days
    clock = f"{then:%H:%M}"
    if days == 0:
        return clock if at > now else f"today {clock}"
    if days == 1:
        return f"tomorrow {clock}"
    if 1 < days < 7:
        return f"{WEEKDAYS[then.weekday()]} {clock}"
    return f"{then.year:04}-{then:%m-%d} {clock}"


def _epoch_seconds(written: str) -> float:
    found = float(written)
    if found < EPOCH_SECONDS_MIN:
        raise ValueError(
            f"{written} could be seconds from now or since 1970; write +{written}s or a date"
        )
    return found


def _iso(text: str, match: re.Match[str], zone: tzinfo) -> float:
    day, clock, offset = match.groups()
    if clock is None:
        raise ValueError(f"{shown(text)} needs a time of day, like {day} 18:00")
    if not FIRST_YEAR <= int(day[:4]) <= LAST_YEAR:
        raise ValueError(f"{shown(text)} lies outside {FIRST_YEAR} to {LAST_YEAR}")
    utc = (offset or "").upper() in ("Z", "UTC")
    try:
        found = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if utc else offset or ''}")
    except ValueError:
        raise ValueError(f"{shown(text)} is not a date and time of the calendar") from None
    return _local(found, zone) if found.tzinfo is None else found.timestamp()


def _next(text: str, day: str, written: str, present: datetime) -> float:
    """The next moment with this time of day, on the day that is named if one is."""
    assert present.tzinfo is not None
    clock = _clock(text, written)
    start = present.replace(tzinfo=None, fold=0)
    if day in ("today", "tomorrow"):
        return _local(_on(start, clock, day == "tomorrow"), present.tzinfo)
    if day and day not in _DAYS:
        raise ValueError(
            f"{shown(day)} is not a day; write today, tomorrow, mon, tue, wed, thu, fri, sat or sun"
        )
    ahead = (_DAYS[day] - start.weekday()) % 7 if day else 0
    found = _local(_on(start, clock, ahead), present.tzinfo)
    if found <= present.timestamp():
        found = _local(_on(start, clock, ahead + (7 if day else 1)), present.tzinfo)
    return found


def _clock(text: str, written: str) -> time:
    """A time of day: 18:00, 18:00:30, 6pm, 6:30 pm, noon."""
    match = _CLOCK.fullmatch("12:00" if written == "noon" else written)
    if match is None:
        raise ValueError(f"{shown(written)} is not a time of day; write it like 18:00 or 6pm")
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    half = match[4]
    if half is None and match[2] is None:
        raise ValueError(f"{shown(text)} is unclear; write {hour}:00, {hour}am or {hour}pm")
    if (half is not None and not 1 <= hour <= 12) or hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{shown(written)} is not a time of day; write it like 18:00 or 6pm")
    if half is not None:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, minute, second)


def _on(start: datetime, clock: time, days: int) -> datetime:
    return datetime.combine(start.date() + timedelta(days=days), clock)


def _local(naive: datetime, zone: tzinfo) -> float:
    """A local time as seconds since 1970; of two such moments in autumn the first."""
    found = naive.replace(tzinfo=zone).timestamp()
    if datetime.fromtimestamp(found, zone).replace(tzinfo=None, fold=0) != naive:
        raise ValueError(f"{naive:%Y-%m-%d %H:%M} does not exist: clocks go forward past it")
    return found
