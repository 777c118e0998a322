"""What `bough policies new` writes: a policy that works, and its test."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bough.errors import InputError

POLICY: Final = '''\
"""{title}: shortest expected service first; what is left makes jobs faster."""

from __future__ import annotations

import numpy as np

from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order, marginal_fill


class {name}(Policy, frozen=True):
    """Every job gets its least, the one with the least left to do first; then the rest grow.

    Citation: who thought of it, and where.
    Faithful: what is as published.
    Ours: what is not.
    """

    #: Jobs that run go on before any that waits begins.
    keeps: bool = False
    #: Work is told apart only if it differs by so many times.
    grain: float = 1.0

    def __post_init__(self) -> None:
        if self.grain < 1:
            raise ValueError("grain must be 1 or more")

    def plan(self, view: View) -> Plan | Ints:
        jobs = view.jobs
        # 1. Who goes first. Rows of jobs that may not be parked come before all others.
        left = np.maximum(jobs.left_or_guess(), 1.0)
        if self.grain > 1:
            left = np.floor(np.log(left) / np.log(self.grain))
        waits = (jobs.size == 0) & self.keeps
        order = in_order(view, waits, left)
        # 2. Each gets its least if it fits; who does not is passed over.
        least = fit_in_order(jobs.lo, view.devices, order, skip=True)
        # 3. What is left goes, step by step, to where it adds most speed.
        rows = order[least[order] > 0]
        return marginal_fill(view, order=rows, least=least)
'''

TEST: Final = '''\
"""{title} keeps the rules that every policy keeps, and does what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.policies import find
from bough.testing.policies import PolicyContract
from bough.testing.views import Row, granted, make_view

FILE = str(Path(__file__).with_name("{file}"))


class Test{name}(PolicyContract):
    policies = (find(FILE), find(f"{{FILE}}:keeps=true,grain=2"))
    # It decides by the work left, which changes all the time.
    drifts = True
    # Nobody waits while enough devices for him are idle.
    passes_over = True


def test_the_shorter_goes_first() -> None:
    long, short = Row(left=500.0), Row(left=50.0)
    assert granted(find(FILE), make_view(1, [long, short])).tolist() == [0, 1]


def test_who_runs_is_kept_if_wanted() -> None:
    long, short = Row(left=500.0, size=1), Row(left=50.0)
    assert granted(find(f"{{FILE}}:keeps=true"), make_view(1, [long, short])).tolist() == [1, 0]


def test_a_knob_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="grain"):
        find(f"{{FILE}}:grain=0")
'''


def write(file: Path) -> tuple[Path, Path]:
    """Both files; nothing that is there is overwritten."""
    if file.suffix != ".py" or not file.stem.isidentifier():
        hint = "a name as of a Python module: mine.py"
        raise InputError("is no name for a policy's file", file=str(file), hint=hint)
    if not file.parent.is_dir():
        raise InputError("there is no such folder", file=str(file.parent))
    test = file.with_name(f"test_{file.name}")
    for each in (file, test):
        if each.exists():
            raise InputError("is there already", file=str(each), hint="give another name")
    title = file.stem.replace("_", " ").strip().capitalize() or file.stem
    name = "".join(part.capitalize() for part in file.stem.split("_")) or "Mine"
    for each, text in ((file, POLICY), (test, TEST)):
        each.write_text(text.format(title=title, name=name, file=file.name), encoding="utf-8")
    return file, test
