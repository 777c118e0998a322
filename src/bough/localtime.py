"""The time zone of whoever asks, with its summer time: what "fri 18:00" is meant in."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo

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
        wall = when.replace(tzinfo=None).timetuple()
        for summer in (0, 1, -1) if when.fold else (1, 0, -1):
            there = time.localtime(time.mktime((*wall[:8], summer)))
            if there[:6] == wall[:6]:
                break
        return there


LOCAL = Local()
