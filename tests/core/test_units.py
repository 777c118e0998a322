"""Sizes, durations, counts and indices as people write them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.writings import one_line_or_fine

from bough.core.model import Range
from bough.core.units import (
    format_counts,
    format_duration,
    format_size,
    parse_counts,
    parse_duration,
    parse_grams,
    parse_indices,
    parse_rate,
    parse_size,
)

READERS: list[Callable[[str], object]] = [
    parse_size, parse_rate, parse_grams, parse_duration, parse_counts, parse_indices,
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("512B", 512),
        ("512M", 512_000_000),
        ("512 MB", 512_000_000),
        ("10GiB", 10 * 2**30),
        ("10Gi", 10 * 2**30),
        ("10gib", 10 * 2**30),
        ("1.5kB", 1500),
        ("1.5TiB", 3 * 2**39),
        ("1e9", 10**9),
        ("0.1GB", 100_000_000),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("90s", 90),
        ("1.5h", 5400),
        ("2h30m", 9000),
        ("2H 30M", 9000),
        ("2 hours, 30 minutes", 9000),
        ("1d12h", 129_600),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("2:30:00", 9000),
        ("1-12:00:00", 129_600),
        ("  5 min ", 300),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4", (4,)),
        ("2..8", (2, 4, 8)),
        ("3 .. 9", (3, 4, 8, 9)),
        ("2..8 step 2", (2, 4, 6, 8)),
        ("1,2,4,8", (1, 2, 4, 8)),
        ("8, 1, 8", (1, 8)),
        ("5..5", (5,)),
    ],
)
def test_counts(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_counts(text).sizes() == sizes


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("0-3", (0, 1, 2, 3)),
        ("0-9:3", (0, 3, 6, 9)),
        ("7, 1,3-4", (1, 3, 4, 7)),
        ("5", (5,)),
    ],
)
def test_indices(text: str, indices: tuple[int, ...]) -> None:
    assert parse_indices(text) == indices


def test_rates_are_bytes_per_second_and_masses_grams() -> None:
    assert parse_rate("300GB/s") == 300e9
    assert parse_rate("100Gbit/s") == parse_rate("100Gbps") == 12.5e9
    assert parse_grams("2.5kg") == 2500
    assert parse_grams("800") == 800


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (parse_size, "10Gb", "'10Gb' is not a size; write it like 512MB, 10GiB or 1.5TiB"),
        (parse_size, "", "'' is not a size; write it like 512MB, 10GiB or 1.5TiB"),
        (parse_size, "9EiB", "'9EiB' is more than any machine has (8EiB)"),
        (parse_rate, "10", "'10' is not a bandwidth; write it like 300GB/s or 100Gbit/s"),
        (parse_rate, "0GB/s", "'0GB/s' is not a bandwidth; write it like 300GB/s or 100Gbit/s"),
        (parse_grams, "3lb", "'3lb' is not a mass; write it like 800g, 2.5kg or 1t"),
        (
            parse_duration,
            "soon\nish",
            "'soon\\nish' is not a duration; write it like 90s, 2h30m, 1d12h or 2:30:00",
        ),
        (
            parse_duration,
            "30m2h",
            "'30m2h' is not a duration; write it like 90s, 2h30m, 1d12h or 2:30:00",
        ),
        (
            parse_duration,
            "-5s",
            "'-5s' is not a duration; write it like 90s, 2h30m, 1d12h or 2:30:00",
        ),
        (parse_duration, "2:30", "'2:30' is unclear; write 2h30m or 2m30s"),
        (parse_duration, "1e99", "'1e99' is longer than three thousand years"),
        (
            parse_counts,
            "two",
            "'two' is not a count; write it like 4, 2..8, 2..8 step 2 or 1,2,4,8",
        ),
        (parse_counts, "2-8", "'2-8' is not a count; write 2..8"),
        (parse_counts, "0", "'0' is too few; at least 1 is needed"),
        (parse_counts, "8..2", "'8..2' ends before it begins; write 2..8"),
        (parse_counts, "2000000", "'2000000' is too many; at most 1000000 can be asked for"),
        (
            parse_counts,
            "2..9 step 2",
            "'2..9 step 2' never reaches 9; write 2..8 step 2 or 2..10 step 2",
        ),
        (parse_counts, "2..8 step 0", "'2..8 step 0' has a step of 0; it must be 1 or more"),
        (
            parse_counts,
            "1..900000 step 1",
            "'1..900000 step 1' has more than 10000 sizes; take a larger step",
        ),
        (
            parse_indices,
            "0-9%2",
            "'0-9%2' are not indices; write them like 0-31, 0-9:2 or 1,3,5-7",
        ),
        (parse_indices, "5-1", "'5-1' goes from 5 to 1 by 1, which is none"),
        (parse_indices, "1,0-3", "'1,0-3' names an index twice"),
        (parse_indices, "0-999999999", "'0-999999999' are more than 100000 indices"),
    ],
)
def test_mistakes(read: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        read(text)
    assert str(caught.value) == message


def test_long_texts_are_cut_in_messages() -> None:
    with pytest.raises(ValueError, match=r"^'x{39}…' is not a size"):
        parse_size("x" * 10_000)


@pytest.mark.parametrize(
    ("seconds", "text", "exact"),
    [
        (0, "0s", "0s"),
        (0.34, "340ms", "340ms"),
        (90, "1m30s", "1m30s"),
        (3599.7, "1h", "1h"),
        (9000, "2h30m", "2h30m"),
        (86_399, "1d", "23h59m59s"),
        (10_000_000, "115d18h", "115d17h46m40s"),
        (-90, "-1m30s", "-1m30s"),
        (math.inf, "forever", "forever"),
        (math.nan, "?", "?"),
    ],
)
def test_durations_for_people(seconds: float, text: str, exact: str) -> None:
    assert format_duration(seconds) == text
    assert format_duration(seconds, parts=4) == exact


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (512, "512B"),
        (10 * 2**30, "10GiB"),
        (1.45 * 2**40, "1.45TiB"),
        (1023.9 * 2**20, "1GiB"),
        (math.inf, "any"),
    ],
)
def test_sizes_for_people(size: float, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 10**9))
def test_a_duration_written_in_full_reads_the_same(seconds: int) -> None:
    assert parse_duration(format_duration(seconds, parts=4)) == seconds


@given(st.floats(1, 1e10), st.integers(1, 4))
def test_a_rounded_duration_is_near(seconds: float, parts: int) -> None:
    near = parse_duration(format_duration(seconds, parts))
    assert abs(near - seconds) <= 0.5 * max(1, seconds / (24 if parts > 1 else 1))


@given(st.integers(0, 2**62))
def test_a_rounded_size_is_near(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= size * 0.006


@given(st.data())
def test_counts_written_back_allow_the_same_sizes(data: st.DataObject) -> None:
    low = data.draw(st.integers(1, 1000))
    high = data.draw(st.integers(low, 2000))
    steps = data.draw(st.lists(st.integers(low, high), max_size=5))
    counts = Range(min=low, max=high, steps=tuple(steps))
    assert parse_counts(format_counts(counts)).sizes() == counts.sizes()


@given(st.one_of(st.text(max_size=30), st.from_regex(r"[\d.:,\-+ hmsdGiB/]{0,20}")))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for read in READERS:
        one_line_or_fine(read, text, ValueError)
