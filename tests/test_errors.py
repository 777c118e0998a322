"""Errors are one line that says where, what, and how to put it right."""

from __future__ import annotations

import pickle

import pytest

from bough.errors import BoughError, InputError, nearest


class CurveIsNotConcave(BoughError):
    """The speed-up curve is not concave.

    More is said here, for readers of the code.
    """


class Silent(CurveIsNotConcave):
    pass


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CurveIsNotConcave(), "The speed-up curve is not concave."),
        (Silent(), "The speed-up curve is not concave."),
        (CurveIsNotConcave("bert bends up at 8"), "bert bends up at 8"),
        (InputError(), "The input cannot be used."),
        (InputError("is empty", file="t.csv"), "t.csv: is empty"),
        (InputError("is negative", file="t.csv", line=7), "t.csv:7: is negative"),
        (InputError("is negative", field="start"), "start: is negative"),
        (
            InputError("no such queue", file="j.yaml", line=2, field="queue", hint="try 'a'"),
            "j.yaml:2: queue: no such queue (try 'a')",
        ),
    ],
)
def test_one_line(error: BoughError, line: str) -> None:
    assert str(error) == line


def test_place_is_added_on_the_way_up_and_not_overwritten() -> None:
    error = InputError("must be positive", field="min", line=3)
    error = error.at(field="devices", line=99).at(file="job.yaml", field="jobs[4]")
    assert str(error) == "job.yaml:3: jobs[4].devices.min: must be positive"


def test_survives_a_process_boundary() -> None:
    error = InputError("is empty", file="t.csv", line=1, hint="add a row")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_nearest_guesses_or_lists() -> None:
    assert nearest("max_mni", ["fifo", "max_min"]) == "did you mean 'max_min'?"
    assert nearest("zzz", ["las", "fifo"]) == "one of: fifo, las"
