"""The present and the time zone of whoever reads: read here, handed to everything that prints."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo
from typing import Any

import click

EPOCH = datetime(1970, 1, 1)


class Local(tzinfo):
    """This machine's time zone with its summer time, as the C library knows it."""

    def fromutc(self, when: datetime) -> datetime:
        seconds = int((when.replace(tzinfo=None) - EPOCH).total_seconds())
        here = time.localtime(seconds)
        first = time.mktime((*here[:8], 1))  # in autumn an hour comes twice
        again = first != seconds and time.localtime(first)[:6] == here[:6]
        return datetime(*here[:6], when.microsecond, tzinfo=self, fold=int(again))

    def utcoffset(self, when: datetime | None) -> timedelta:
        return timedelta(seconds=self._there(when).tm_gmtoff)

    def dst(self, when: datetime | None) -> timedelta:
        return timedelta(hours=max(self._there(when).tm_isdst, 0))

    def tzname(self, when: datetime | None) -> str:
        return self._there(when).tm_zone

    def _there(self, when: datetime | None) -> time.struct_time:
        if when is None:
            return time.localtime()
        wall = when.timetuple()
        for summer in (0, 1, -1) if when.fold else (1, 0, -1):
            there = time.localtime(time.mktime((*wall[:8], summer)))
            if there[:6] == wall[:6]:
                break
        return there


LOCAL = Local()


def now() -> float:
    return time.time()


def clock_time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, LOCAL):%H:%M:%S}"


class Moment(click.ParamType[float]):
    """A time of the past as people write it: "7d" (ago), "2026-11-01 09:00", "today"."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        from bough.core.moments import parse_time
        from bough.core.units import parse_duration

        if isinstance(value, int | float):
            return float(value)
        text, present = str(value).strip(), now()
        day = day_of(text, present)
        if day is not None:
            return day
        try:
            return present - parse_duration(text.removesuffix("ago"))
        except ValueError:
            pass
        try:
            return parse_time(text, present, LOCAL)
        except ValueError:
            self.fail(
                f"{text[:40]!r} is not a time; write it like 7d (ago), today, 2026-11-20 "
                "or '2026-11-20 18:00'",
                param,
                ctx,
            )


def day_of(text: str, present: float) -> float | None:
    """When a day began: "today", "yesterday", "2026-11-20"."""
    start = datetime.fromtimestamp(present, LOCAL).replace(hour=0, minute=0, second=0)
    start = start.replace(microsecond=0, tzinfo=None, fold=0)
    back = {"today": 0, "yesterday": 1}.get(text.lower())
    if back is not None:
        return (start - timedelta(days=back)).replace(tzinfo=LOCAL).timestamp()
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=LOCAL).timestamp()
    except (ValueError, OverflowError):
        return None
