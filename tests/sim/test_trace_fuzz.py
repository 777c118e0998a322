"""Whatever a trace's file holds: an InputError of one line, or a trace whose jobs make sense."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sim.samples import SAMPLES, Rates, profile

from bough.errors import InputError
from bough.sim.formats import FORMATS
from bough.sim.trace import Reading, Trace, read_trace

#: Bits that break a file where a reader is weakest.
NUMBERS = ["", "nan", "-1", "1e308", "1e999", "0", "9" * 400, "9" * 5000, "٣", "1_0", "NaT", "True"]
DATES = ["2020-02-30 00:00:00", "0001-01-01 00:00:00", "9999-12-31T23:59:59-14:00", "1-00:00:00"]
SIGNS = ['"', ",", "\t", "|", "\n", "\r", "\0", "\u2028", "ß", "{", "[", "}", "-", " ", "null", "x"]
BITS = st.sampled_from([*NUMBERS, *DATES, *SIGNS, "gres/gpu=0"])

often = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read_or_error(path: Path, format: str | None, profiles: Path) -> Trace | None:
    """The trace, or None for an error that is fit to be shown."""
    reading = Reading(format=format, rates=Rates(), profiles=profiles, elastic_limit=8)
    shown = ""
    try:
        return read_trace(path, reading)
    except InputError as error:
        shown = str(error)
    assert shown
    assert "\n" not in shown
    return None


@often
@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_damage_gives_an_error_or_a_trace_with_problems(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    """Pieces of a good file are replaced by bad ones."""
    if not (tmp_path / "cifar10").exists():
        profile(tmp_path)
    text = SAMPLES[name]
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 30)))
        text = text[:begin] + data.draw(BITS) + text[end:]
    path = tmp_path / "fuzzed"
    path.write_text(text, encoding="utf-8", newline="")
    trace = read_or_error(path, name, tmp_path)
    if trace is None:
        return
    assert trace.jobs
    for job in trace.jobs:
        assert 0 <= job.submit <= 1e12
        assert 0 < job.seconds <= 1e12
        assert job.devices >= 1
        assert job.spec.sizes()[0] >= 1
    assert all("\n" not in problem for problem in trace.problems)


@often
@pytest.mark.parametrize("name", [None, *FORMATS])
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_noise_is_an_error(name: str | None, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(content)
    assert read_or_error(path, name, tmp_path) is None
