"""Linear and integer programs, for the few policies that need a solver: HiGHS, an extra.

It is loaded when the first program is solved; who needs it asks for it beforehand (`require`), so
that its absence is told when a policy is chosen and not when it decides. One thread, a fixed seed
and no limit of time: the same program has the same solution.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from bough.core.policy import Bools, Floats, Ints

#: An integer program's solution may be worth less than the best by this part of it.
GAP = 1e-4


@dataclass(slots=True)
class Program:
    """Make `gain @ x` greatest, with low <= x <= high and row_low <= A @ x <= row_high.

    A has the entry `entry[k]` at (`row[k]`, `column[k]`).
    """

    gain: Floats
    low: Floats
    high: Floats
    row: Ints
    column: Ints
    entry: Floats
    row_low: Floats
    row_high: Floats
    #: Which must be whole numbers; None: none.
    whole: Bools | None = None


def require(who: str) -> None:
    """ValueError that says what to install, unless it is."""
    if find_spec("highspy") is None:
        raise ValueError(f"{who} needs a solver: pip install 'bough[optimize]'")


def solve(program: Program) -> Floats | None:
    """The best x; None when nothing satisfies all rows."""
    highspy = importlib.import_module("highspy")
    solver = highspy.Highs()
    for option, value in (
        ("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_rel_gap", GAP),
    ):  # fmt: skip
        solver.setOptionValue(option, value)
    solver.passModel(_model(highspy, program))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found: Floats = np.array(solver.getSolution().col_value)
    return found


def _model(highspy: Any, program: Program) -> Any:
    """The program as HiGHS takes it: rows one after another."""
    lp = highspy.HighsLp()
    order = np.lexsort((program.column, program.row))
    rows = len(program.row_low)
    lp.num_col_, lp.num_row_ = len(program.gain), rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.gain, program.low, program.high
    lp.row_lower_, lp.row_upper_ = program.row_low, program.row_high
    lp.sense_ = highspy.ObjSense.kMaximize
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.num_col_, matrix.num_row_ = lp.num_col_, rows
    matrix.start_ = np.bincount(program.row + 1, minlength=rows + 1).cumsum()
    matrix.index_, matrix.value_ = program.column[order], program.entry[order]
    if program.whole is not None:
        kind = highspy.HighsVarType
        lp.integrality_ = [kind.kInteger if w else kind.kContinuous for w in program.whole.tolist()]
    return lp
