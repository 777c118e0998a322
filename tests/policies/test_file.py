"""A policy from a file of one's own is a policy like any other, or it is said what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.cli import main
from bough.policies import find

MINE = """
from bough.core.policy import Policy, View
from bough.core.share import water_fill


class Mine(Policy, frozen=True):
    '''Even shares.'''

    #: Of no use.
    knob: int = 1

    def plan(self, view: View):
        return water_fill(view)
"""


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_it_is_found_by_its_path_with_its_knobs(tmp_path: Path) -> None:
    path = written(tmp_path, MINE)
    assert type(find(path)).__name__ == "Mine"
    assert find(f"{path}:knob=3") == find(f"{path}(knob=3)")
    with pytest.raises(ValueError, match="no knob 'knop'; did you mean 'knob'"):
        find(f"{path}:knop=3")
    with pytest.raises(ValueError, match="knob: expected int, got str"):
        find(f"{path}:knob=many")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no class that is a bough Policy"),
        ("def f(:\n", "line 1: invalid syntax"),
        ("import numpy\n\nx = 1 / 0\n", "line 3: ZeroDivisionError: division by zero"),
        (MINE + MINE.replace("Mine", "Other"), "several policies (Mine, Other)"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match="policy") as told:
        find(written(tmp_path, text))
    assert said in str(told.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        find("./nowhere.py")


def test_it_is_simulated_beside_others_in_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, trace = written(tmp_path, MINE), str(tmp_path / "t.jsonl")
    assert main(["trace", "generate", "--jobs", "20", "--devices", "16", "--out", trace]) == 0
    capsys.readouterr()
    arguments = ["simulate", trace, "-c", "2x8xa100", "-p", f"{path},max_min", "--csv", "-j", "2"]
    assert main(arguments) == 0
    head, mine, theirs = capsys.readouterr().out.splitlines()
    at = head.split(",").index("mean_jct_seconds")
    assert mine.split(",")[at] == theirs.split(",")[at]


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        ("return view.jobs.hi + 1", "is not a size of job row 0"),
        ("return view.jobs.hi * 100", "is not a size of job row 0"),
        ("return view.jobs.hi", "devices planned where there are 2"),
        ("return view.jobs.hi[1:]", "sizes for"),
    ],
)
def test_a_policy_that_is_wrong_is_refused_with_the_reason(
    tmp_path: Path, answer: str, because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing starts by a plan that breaks a rule, and whoever asks is told which."""
    path = written(tmp_path, MINE.replace("return water_fill(view)", answer))
    trace = str(tmp_path / "t.jsonl")
    drawn = ["--jobs", "6", "--devices", "2", "--load", "50", "--elastic", "0", "--out", trace]
    assert main(["trace", "generate", *drawn]) == 0
    assert main(["simulate", trace, "-c", "1x2xa100", "-p", path, "--explain", "6"]) == 0
    told = capsys.readouterr().out
    assert "The policy's last plan was refused" in told
    assert because in told
