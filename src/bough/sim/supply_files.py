"""Reads series of carbon intensity and of prices from CSV files, gzipped or not.

Columns are recognised by their names: a moment in the first column that has one, and a value in
grams of CO2 for each kWh, or money for each kWh or MWh. So the public files of CarbonCast,
SustainDC (EIA) and Electricity Maps are read as they are.
"""

from __future__ import annotations

import csv
import io
import math
import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

from bough.core.series import Series, constant
from bough.core.supply import Budget, Resource
from bough.core.units import parse_duration
from bough.errors import InputError
from bough.sim.trace import read_text

What = Literal["carbon", "price"]

#: Columns of moments, by what is left of their names when only letters are kept.
MOMENTS: Final = ("seconds", "utctime", "datetimeutc", "datetime", "timestamp", "time", "hour")
#: Columns of values, best first.
VALUES: Final[dict[What, tuple[str, ...]]] = {
    "carbon": (
        "carbonintensity", "actualcarbonintensitydirect", "avgci", "gramsperkwh", "carbon",
    ),
    "price": ("priceusdmwh", "priceeurmwh", "pricepermwh", "pricemwh", "priceperkwh", "price"),
}  # fmt: skip
AMERICAN: Final = re.compile(r"(\d\d)/(\d\d)/(\d{4})(.*)")
KWH_OF_MWH: Final = 1000.0
BUDGET: Final = re.compile(r"(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*(?:/\s*(.+))?")
BUDGET_UNITS: Final[dict[Resource, dict[str, float]]] = {
    "energy": {"": 1.0, "kwh": 1.0, "mwh": 1000.0, "wh": 0.001},
    "carbon": {"": 1.0, "kg": 1.0, "g": 0.001, "t": 1000.0},
    "cost": {"": 1.0},
}
BUDGET_FORMS: Final = {"energy": "120kWh/1d", "carbon": "40kg/1d", "cost": "25/1d"}
#: A larger number is a slip of the pen, whatever it counts.
VALUE_MAX: Final = 1e9
#: Steps may differ by so much of themselves: clocks are changed, rows are missing.
GAPS: Final = 1e-3


def read_supply(text: str, what: What) -> Series:
    """A series from a number, which holds always, or from a file."""
    try:
        value = float(text)
    except ValueError:
        return read_series(Path(text), what)
    if not 0 <= value <= VALUE_MAX:
        raise InputError(f"{text} must be 0 or more, and finite")
    return constant(value)


def read_series(path: Path, what: What) -> Series:
    """A series of equal steps; it begins with the run, whatever moment its first row names."""
    if not path.exists():
        raise InputError("there is no such file, and it is no number", file=str(path))
    rows = list(csv.reader(io.StringIO(read_text(path))))
    if not rows:
        raise InputError("is empty", file=str(path))
    names = [re.sub(r"[^a-z]", "", name.lower()) for name in rows[0]]
    moment = next((names.index(name) for name in MOMENTS if name in names), None)
    value = next((names.index(name) for name in VALUES[what] if name in names), None)
    if moment is None or value is None:
        missing = "a moment" if moment is None else "carbon intensity" if what == "carbon" else what
        hint = f"name the columns like seconds,{VALUES[what][-2 if what == 'price' else 0]}"
        raise InputError(f"has no column of {missing}", file=str(path), line=1, hint=hint)
    unit = KWH_OF_MWH if names[value].endswith("mwh") else 1.0
    found: list[tuple[float, float]] = []
    for line, row in enumerate(rows[1:], 2):
        if row:
            found.append(_read_row(row, moment, value, path, line))
    return _even([(at, amount / unit) for at, amount in found], path)


def read_budget(text: str, of: Resource) -> Budget:
    """`120kWh/1d`, `40 kg/12h`, `25`: an amount in each window of a day, or as long as is said.

    A ValueError says what it looks like.
    """
    found = BUDGET.fullmatch(text.strip())
    factor = BUDGET_UNITS[of].get(found[2].lower()) if found else None
    if found is None or factor is None:
        raise ValueError(f"{text!r} is no budget: write it like {BUDGET_FORMS[of]}")
    amount = float(found[1]) * factor
    if found[3] is None:
        return Budget(of=of, amount=amount)
    return Budget(of=of, amount=amount, window_seconds=parse_duration(found[3]))


def _read_row(
    row: list[str], moment: int, value: int, path: Path, line: int
) -> tuple[float, float]:
    """Seconds and value of one row."""
    try:
        written, amount = row[moment].strip(), float(row[value])
        at = float(written) if _is_number(written) else _seconds(written)
    except (ValueError, IndexError):
        raise InputError("is no moment with a number", file=str(path), line=line) from None
    if not (math.isfinite(at) and abs(amount) <= VALUE_MAX):
        raise InputError("has a number that is not finite", file=str(path), line=line)
    return at, amount


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d*)?", text))


def _seconds(text: str) -> float:
    """Of a date as ISO 8601 has it, or in America; without a zone it is UTC."""
    if american := AMERICAN.fullmatch(text):
        text = "{2}-{0}-{1}{3}".format(*american.groups())
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else datetime.fromisoformat(f"{text}+00:00")).timestamp()


def _even(points: list[tuple[float, float]], path: Path) -> Series:
    """Equal steps: what is missing is as before it, what is there twice counts once.

    What is below nothing (there are such prices) is 0: budgets cannot be earned.
    """
    if not points:
        raise InputError("has no rows", file=str(path))
    points.sort(key=lambda point: point[0])
    if len(points) == 1:
        return constant(max(points[0][1], 0.0))
    steps = sorted(b[0] - a[0] for a, b in pairwise(points) if b[0] > a[0])
    if not steps:
        raise InputError("names the same moment in all rows", file=str(path))
    step = steps[len(steps) // 2]
    values: list[float] = []
    for at, value in points:
        place = (at - points[0][0]) / step
        if place - len(values) > 10 * len(points):
            raise InputError("has a gap larger than itself", file=str(path))
        while len(values) < round(place + GAPS):
            values.append(values[-1])
        if len(values) == round(place + GAPS):
            values.append(max(value, 0.0))
    return Series(tuple(values), step)
