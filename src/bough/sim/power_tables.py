"""Public power tables (Zeus, NSDI '23) and the fit of core/energy.py to them.

The constants there are this fit's; tests and `bough reproduce energy` make it again.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from bough.core.energy import EXPONENT, Work
from bough.core.policy import Floats
from bough.sim.trace import read_text

KINDS: Final = ("v100", "a40", "p100", "rtx6000")
#: Workload by network and data set: our name for it, and the batch it is fitted at (the default
#: of the paper's section 6; where a kind lacks it, the nearest).
WORKLOADS: Final[dict[tuple[str, str], tuple[str, int]]] = {
    ("resnet50", "imagenet"): ("resnet50", 256),
    ("bert_base_uncased", "squad"): ("bert", 32),
    ("bert_base_uncased", "sentiment140"): ("bert (sentences)", 128),
    ("deepspeech2", "librispeech"): ("deepspeech2", 192),
    ("shufflenetv2", "cifar100"): ("shufflenet", 1024),
    ("ncf", "movielens-1m"): ("ncf", 1024),
}
#: Of several optimizers, the one that the paper uses.
OPTIMIZERS: Final = {"shufflenetv2": "adadelta"}
#: A table with fewer caps says little of how power and time hang together.
CAPS_MIN: Final = 4
#: What the least of all power measurements of a kind is told from: one in so many is below it.
IDLE_PERCENT: Final = 1.0
ROUNDS: Final = 300
STEP: Final = 1e-6


class Curve(NamedTuple):
    """One workload on one kind under falling caps: the last entry is the highest cap."""

    kind: str
    workload: str
    batch: int
    cap: Floats
    #: Seconds of an epoch, over those at the highest cap.
    slowdown: Floats
    watts: Floats


class Fit(NamedTuple):
    """What the tables say, and how far the formula is from them."""

    idle: dict[str, float]
    peak: dict[str, float]
    scaled: dict[str, float]
    works: dict[str, Work]
    #: Relative errors of power, over all caps of all curves: root mean square, and the largest.
    rms_error: float
    worst_error: float


def read_curves(folder: Path) -> tuple[list[Curve], dict[str, float]]:
    """One curve for each workload and kind, and the least power of each kind."""
    curves: list[Curve] = []
    idle: dict[str, float] = {}
    for kind in KINDS:
        text = read_text(folder / f"summary_power_{kind}.csv")
        rows = list(csv.DictReader(StringIO(text)))
        watts = np.array([float(row["average_power"]) for row in rows])
        idle[kind] = float(np.percentile(watts, IDLE_PERCENT))
        curves += _curves_of(kind, rows)
    return curves, idle


def _curves_of(kind: str, rows: Iterable[Mapping[str, str]]) -> list[Curve]:
    groups: dict[tuple[str, str], dict[int, list[tuple[float, float, float]]]] = {}
    for row in rows:
        network = row["network"]
        if row["optimizer"] != OPTIMIZERS.get(network, row["optimizer"]):
            continue
        point = float(row["power_limit"]), float(row["time_per_epoch"]), float(row["average_power"])
        batches = groups.setdefault((network, row["dataset"]), {})
        batches.setdefault(int(row["batch_size"]), []).append(point)
    found = []
    for key, (name, wanted) in WORKLOADS.items():
        full = {b: points for b, points in groups.get(key, {}).items() if len(points) >= CAPS_MIN}
        if full:
            batch = min(full, key=lambda b: abs(math.log2(b / wanted)))
            cap, seconds, watts = np.array(sorted(full[batch])).T
            found.append(Curve(kind, name, batch, cap, seconds / seconds[-1], watts))
    return found


def clock_of(slowdown: Floats, sensitivity: float) -> Floats:
    """The clock at which a workload is so many times slower."""
    found: Floats = np.minimum(sensitivity / np.maximum(slowdown - 1.0 + sensitivity, 1e-6), 1.0)
    return found


def fit(curves: Sequence[Curve], idle: Mapping[str, float]) -> Fit:
    """Least squares of the logarithm of power, given how much slower each cap was.

    The draw of a workload is told from power at the highest cap: `draw * (peak - idle)`. Scale is
    fixed by calling the hungriest workload's draw 1.
    """
    kinds = list(dict.fromkeys(curve.kind for curve in curves))
    names = list(dict.fromkeys(curve.workload for curve in curves))
    k, w = len(kinds), len(names)
    low = np.array([0.05] * k + [0.02] * w + [30.0] * k + [0.005] * w)
    high = np.array([1.0] * k + [1.0] * w + [400.0] * k + [3.0] * w)
    start = np.array([0.7] * k + [0.5] * w + [180.0] * k + [0.8] * w)

    def errors(p: Floats) -> Floats:
        scaled, sensitivity = p[:k], p[k : k + w]
        span, draw = p[k + w : 2 * k + w], p[2 * k + w :]
        parts = []
        for curve in curves:
            i, j = kinds.index(curve.kind), names.index(curve.workload)
            clock = clock_of(curve.slowdown, float(sensitivity[j]))
            active = 1.0 - scaled[i] + scaled[i] * clock**EXPONENT
            parts.append(np.log((idle[curve.kind] + draw[j] * span[i] * active) / curve.watts))
        return np.concatenate(parts)

    p = least_squares(errors, start, low, high)
    most = float(p[2 * k + w :].max())
    found = errors(p)
    return Fit(
        idle={kind: idle[kind] for kind in kinds},
        peak={kind: idle[kind] + most * float(p[k + w + i]) for i, kind in enumerate(kinds)},
        scaled={kind: float(p[i]) for i, kind in enumerate(kinds)},
        works={
            name: Work(float(p[2 * k + w + j]) / most, float(p[k + j]))
            for j, name in enumerate(names)
        },
        rms_error=float(np.sqrt((found**2).mean())),
        worst_error=float(np.abs(found).max()),
    )


def least_squares(
    errors: Callable[[Floats], Floats], start: Floats, low: Floats, high: Floats
) -> Floats:
    """Levenberg and Marquardt's steps, kept within bounds; numpy alone."""
    p, damping = start.copy(), 1e-2
    found = errors(p)
    for _ in range(ROUNDS):
        # One column for each number that is fitted, by a small step away from its upper bound.
        step = np.where(p + STEP > high, -STEP, STEP)
        slopes = np.array(
            [(errors(p + np.eye(len(p))[i] * step[i]) - found) / step[i] for i in range(len(p))]
        ).T
        normal, gradient = slopes.T @ slopes, slopes.T @ found
        # What stands at a bound and would leave it stays there.
        free = ~(((p <= low) & (gradient > 0)) | ((p >= high) & (gradient < 0)))
        move = np.zeros_like(p)
        sub = normal[np.ix_(free, free)]
        scale = np.diag(np.diag(sub) + 1e-12)
        move[free] = np.linalg.solve(sub + damping * scale, gradient[free])
        then = np.clip(p - move, low, high)
        better = errors(then)
        gain = float(found @ found - better @ better)
        if gain > 0:
            p, found, damping = then, better, damping / 3.0
            if gain < 1e-13:
                break
        else:
            damping *= 4.0
            if damping > 1e12:
                break
    return p
