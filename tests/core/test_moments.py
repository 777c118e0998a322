"""Moments as people write them, against a given present and time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.writings import one_line_or_fine

from bough.core.moments import format_time, parse_time

BERLIN = ZoneInfo("Europe/Berlin")
#: A Wednesday evening.
NOW = datetime(2026, 11, 18, 21, 0, tzinfo=BERLIN).timestamp()
ONE_DAY = 86_400


def berlin(text: str, now: float = NOW) -> str:
    return f"{datetime.fromtimestamp(parse_time(text, now, BERLIN), BERLIN):%Y-%m-%d %H:%M:%S}"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("22:00", "2026-11-18 22:00:00"),
        ("21:00", "2026-11-19 21:00:00"),  # now is not ahead
        ("18:00", "2026-11-19 18:00:00"),
        ("at 6:30 pm", "2026-11-19 18:30:00"),
        ("12am", "2026-11-19 00:00:00"),
        ("noon", "2026-11-19 12:00:00"),
        ("23:59:59", "2026-11-18 23:59:59"),
        ("fri 18:00", "2026-11-20 18:00:00"),
        ("Friday at 6PM", "2026-11-20 18:00:00"),
        ("wed 22:00", "2026-11-18 22:00:00"),
        ("wed 20:00", "2026-11-25 20:00:00"),
        ("today 9am", "2026-11-18 09:00:00"),
        ("tomorrow 9am", "2026-11-19 09:00:00"),
        ("+2h", "2026-11-18 23:00:00"),
        ("+ 1d12h", "2026-11-20 09:00:00"),
        ("in 90 minutes", "2026-11-18 22:30:00"),
        ("2026-11-20 18:00", "2026-11-20 18:00:00"),
        ("2026-11-20T18:00:30", "2026-11-20 18:00:30"),
        ("2026-11-20T18:00Z", "2026-11-20 19:00:00"),
        ("2026-11-20 18:00 UTC", "2026-11-20 19:00:00"),
        ("2026-11-20 18:00 +0530", "2026-11-20 13:30:00"),
        ("1795197600", "2026-11-20 19:00:00"),
        ("2026-10-25 02:30", "2026-10-25 02:30:00"),  # twice on that day: the first is taken
    ],
)
def test_moments(text: str, moment: str) -> None:
    assert berlin(text) == moment


def test_the_earlier_of_two_equal_local_times_is_meant() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()
    assert parse_time("2026-10-25 02:30", NOW, BERLIN) == first


def test_a_day_is_as_long_as_the_clocks_make_it() -> None:
    before = datetime(2026, 10, 24, 18, 0, tzinfo=BERLIN).timestamp()
    assert parse_time("tomorrow 18:00", before, BERLIN) - before == 25 * 3600
    assert parse_time("+1d", before, BERLIN) - before == 24 * 3600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "soon",
            "'soon' is not a time; write it like 18:00, fri 18:00, tomorrow 9am, "
            "2026-11-20 18:00, 2026-11-20T18:00Z or +2h",
        ),
        ("9 9", "'9 9' is not a time; write it like 18:00, fri 18:00, tomorrow 9am, "
         "2026-11-20 18:00, 2026-11-20T18:00Z or +2h"),
        ("3600", "3600 could be seconds from now or since 1970; write +3600s or a date"),
        ("fri", "'fri' needs a time of day, like fri 18:00"),
        ("fri 9", "'fri 9' is unclear; write 9:00, 9am or 9pm"),
        ("fri 25:00", "'25:00' is not a time of day; write it like 18:00 or 6pm"),
        ("13pm", "'13pm' is not a time of day; write it like 18:00 or 6pm"),
        ("moonday 9am", "'moonday' is not a day; write today, tomorrow, mon, tue, wed, thu, fri, "
         "sat or sun"),
        ("2026-11-20", "'2026-11-20' needs a time of day, like 2026-11-20 18:00"),
        ("2026-02-30 10:00", "'2026-02-30 10:00' is not a date and time of the calendar"),
        ("2026-02-20 24:00", "'2026-02-20 24:00' is not a date and time of the calendar"),
        ("0001-01-01 00:00", "'0001-01-01 00:00' lies outside 1971 to 9990"),
        ("2027-03-28 02:30", "2027-03-28 02:30 does not exist: clocks go forward past it"),
        ("+soon", "'soon' is not a duration; write it like 90s, 2h30m, 1d12h or 2:30:00"),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        parse_time(text, NOW, BERLIN)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("22:00", "22:00"),
        ("today 9am", "today 09:00"),
        ("tomorrow 9am", "tomorrow 09:00"),
        ("fri 18:00", "fri 18:00"),
        ("2026-11-25 18:00", "2026-11-25 18:00"),
        ("2026-11-17 18:00", "2026-11-17 18:00"),
    ],
)
def test_moments_for_people(text: str, shown: str) -> None:
    assert format_time(parse_time(text, NOW, BERLIN), NOW, BERLIN) == shown


def test_moments_beyond_the_calendar() -> None:
    assert format_time(float("inf"), NOW, BERLIN) == "never"
    assert format_time(-1e18, NOW, BERLIN) == "long ago"


@given(st.integers(-400 * ONE_DAY, 400 * ONE_DAY), st.integers(0, 2 * 365 * ONE_DAY))
def test_what_is_shown_reads_as_the_same_minute(ahead: int, later: int) -> None:
    now = NOW + later
    at = (now + ahead) // 60 * 60
    assert parse_time(format_time(at, now, UTC), now, UTC) == at or at == now // 60 * 60


@given(st.one_of(st.text(max_size=30), st.from_regex(r"[a-z]{0,9} ?[\d:+\-TZ. ]{0,20}[apm]{0,2}")))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(lambda written: parse_time(written, NOW, BERLIN), text, ValueError)
