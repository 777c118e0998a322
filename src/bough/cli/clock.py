"""The present and the time zone of whoever reads: read here, handed to everything that prints."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import click

from bough.localtime import LOCAL


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
