"""The goodput model of Pollux: step time by devices, nodes and batch, and what a batch is worth.

Qiao et al., OSDI '21. The form is the published one; the fit is ours: damped least squares
(Levenberg-Marquardt) of the logarithms of times over logarithms of the parameters, from a few
starting points, with Pollux' regularisation. What the samples cannot show (a second node, a third
device) is believed to cost nothing until it is seen, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core.speedup import Curve

Floats = npt.NDArray[np.float64]

#: A parameter that costs nothing, relative to a typical step.
NOTHING: Final = 1e-6
#: Weights of the regularisation: overlap towards 1, costs per device small beside fixed ones.
OVERLAP_WEIGHT: Final = 1e-3
SLOPE_WEIGHT: Final = 1e-2
OVERLAP_MAX: Final = 10.0
#: Accumulation of more steps than this is not considered.
ACCUMULATION_MAX: Final = 15


class PolluxSample(msgspec.Struct, frozen=True):
    """One measured configuration."""

    devices: int
    nodes: int
    #: Samples on each device in one pass.
    local_batch: float
    step_seconds: float
    #: Part of the step that computes; NaN when it was not measured apart.
    compute_seconds: float = math.nan


class Pollux(msgspec.Struct, frozen=True):
    """Seconds of a step: computing and synchronising, partly at the same time."""

    compute: float
    compute_per_sample: float
    #: Synchronising inside one node, and what each device beyond two adds.
    inside: float
    inside_per_device: float
    #: The same over several nodes.
    across: float
    across_per_device: float
    #: From 1 (one after the other) to 10 (almost at the same time).
    overlap: float
    error: float = 0.0

    def sync_seconds(self, devices: int, nodes: int) -> float:
        """What synchronising would take on its own."""
        if devices <= 1:
            return 0.0
        beyond = max(devices - 2, 0)
        if nodes > 1:
            return self.across + self.across_per_device * beyond
        return self.inside + self.inside_per_device * beyond

    def step_seconds(
        self, devices: int, nodes: int, local_batch: float, accumulation: int = 0
    ) -> float:
        """One update of the model, after so many passes that only gather gradients."""
        compute = self.compute + self.compute_per_sample * local_batch
        sync = self.sync_seconds(devices, nodes)
        g = self.overlap
        slower = max(compute, sync)
        both = math.pow(compute / slower, g) + math.pow(sync / slower, g)
        return accumulation * compute + slower * math.pow(both, 1 / g)

    def throughput(
        self, devices: int, nodes: int, local_batch: float, accumulation: int = 0
    ) -> float:
        """Samples per second."""
        seconds = self.step_seconds(devices, nodes, local_batch, accumulation)
        return devices * local_batch * (accumulation + 1) / seconds

    def steps_per_second(
        self, devices: int, nodes: int, batch: float, local_batch_max: float
    ) -> float:
        """With a fixed global batch: passes as large as fit, the rest by accumulation."""
        passes = max(1, math.ceil(batch / devices / local_batch_max - 1e-9))
        return 1 / self.step_seconds(devices, nodes, batch / devices / passes, passes - 1)

    def curve(
        self, sizes: Sequence[int], node_devices: int, batch: float, local_batch_max: float
    ) -> Curve:
        """Speed-up at a fixed global batch in the most compact places."""
        first = self.steps_per_second(1, 1, batch, local_batch_max)
        speed = tuple(
            self.steps_per_second(n, -(-n // node_devices), batch, local_batch_max) / first
            for n in sizes
        )
        return Curve(tuple(sizes), speed, "fitted", self.error)


class Batches(msgspec.Struct, frozen=True):
    """Which batches a job may train with, and what they are worth."""

    #: The batch its learning rate was chosen for, and the largest global batch.
    first: float
    most: float
    #: The largest that fits on one device.
    local_most: float
    #: Variance over squared norm of the gradient, in samples (phi).
    noise: float

    def efficiency(self, batch: float) -> float:
        """Progress per sample beside that with the first batch."""
        return (self.noise + self.first) / (self.noise + batch)


def goodput(model: Pollux, batches: Batches, devices: int, nodes: int) -> tuple[float, float]:
    """The best progress in samples per second, and the global batch that gives it.

    Tries 50 batches in geometric steps, as published.
    """
    least = min(max(batches.first, devices), batches.most)
    best = (0.0, 0.0)
    for batch in np.geomspace(least, max(batches.most, least), 50).tolist():
        passes = max(1, math.ceil(batch / devices / batches.local_most - 1e-9))
        if passes - 1 > ACCUMULATION_MAX or batch < devices:
            continue
        rate = model.throughput(devices, nodes, batch / devices / passes, passes - 1)
        best = max(best, (rate * batches.efficiency(batch), batch))
    return best


def goodput_curve(
    model: Pollux, batches: Batches, sizes: Sequence[int], node_devices: int
) -> Curve:
    """Progress by number of devices in the most compact places, each with its best batch."""
    found = [goodput(model, batches, n, -(-n // node_devices))[0] for n in sizes]
    first = goodput(model, batches, 1, 1)[0]
    if not first > 0:
        raise ValueError("batches: no batch is possible on one device")
    return Curve(tuple(sizes), tuple(rate / first for rate in found), "fitted", model.error)


# ------------------------------------------------------------------------------------ the fit


def fit_pollux(samples: Sequence[PolluxSample]) -> Pollux:
    """The parameters that explain the samples best."""
    check_samples(samples)
    data = Data(samples)
    best: tuple[float, Floats] | None = None
    for overlap in (1.2, 2.0, 5.0):
        found = least_squares(data.residuals, data.start(overlap), data.low, data.high)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    parameters = data.parameters(best[1])
    error = math.expm1(math.sqrt(float(np.square(data.misfit(parameters)).mean())))
    values = zip(Pollux.__struct_fields__, [*parameters.tolist(), error], strict=True)
    return Pollux(**dict(values))


def check_samples(samples: Sequence[PolluxSample]) -> None:
    """ValueError for samples that cannot have been measured."""
    if not samples:
        raise ValueError("samples is empty: nothing to fit")
    for i, s in enumerate(samples):
        if not 1 <= s.nodes <= s.devices:
            raise ValueError(f"samples[{i}]: {s.devices} devices cannot be on {s.nodes} nodes")
        if not (0 < s.local_batch < math.inf and 0 < s.step_seconds < math.inf):
            raise ValueError(f"samples[{i}]: batch and step_seconds must be positive and finite")


class Data:
    """The samples as columns, and how the unknowns stand for the parameters."""

    def __init__(self, samples: Sequence[PolluxSample]) -> None:
        self.devices = np.array([s.devices for s in samples], float)
        self.nodes = np.array([s.nodes for s in samples], float)
        self.batch = np.array([s.local_batch for s in samples], float)
        self.step = np.array([s.step_seconds for s in samples], float)
        self.compute = np.array([s.compute_seconds for s in samples], float)
        self.apart = (self.compute > 0) & np.isfinite(self.compute)
        self.scale = float(np.median(self.step))
        self.per_sample = self.scale / float(np.median(self.batch))
        inside = (self.devices > 1) & (self.nodes == 1)
        across = self.nodes > 1
        wide = self.devices > 2
        #: Parameters that some sample tells something about.
        self.seen = np.array(
            [True, True, inside.any(), (inside & wide).any(), across.any(), (across & wide).any(),
             inside.any() or across.any()]
        )  # fmt: skip
        units = [self.scale, self.per_sample, *[self.scale] * 4]
        self.low = np.array([*(math.log(NOTHING * u) for u in units), 1.0])[self.seen]
        self.high = np.array([*(math.log(1e3 * u) for u in units), OVERLAP_MAX])[self.seen]

    def start(self, overlap: float) -> Floats:
        """Half the time is fixed, half grows with the batch; synchronising takes as long."""
        s = self.scale
        first = [s / 2, self.per_sample / 2, s / 2, s / 20, s / 2, s / 20]
        found: Floats = np.array([*(math.log(value) for value in first), overlap])[self.seen]
        return found

    def parameters(self, unknown: Floats) -> Floats:
        """All seven; those nobody has seen cost nothing."""
        every = np.full(7, math.log(NOTHING * self.scale))
        every[6] = 1.0
        every[self.seen] = unknown
        every[:6] = np.exp(every[:6])
        # Crossing nodes is never believed to be cheaper than staying inside one.
        every[4:6] = np.where(self.seen[4:6], every[4:6], np.maximum(every[4:6], every[2:4]))
        return every

    def misfit(self, p: Floats) -> Floats:
        """Logarithms of fitted over measured times."""
        compute = p[0] + p[1] * self.batch
        beyond = np.maximum(self.devices - 2, 0)
        sync = np.where(self.nodes > 1, p[4] + p[5] * beyond, p[2] + p[3] * beyond)
        sync = np.where(self.devices > 1, sync, 0.0)
        slower = np.maximum(compute, sync)
        step = slower * ((compute / slower) ** p[6] + (sync / slower) ** p[6]) ** (1 / p[6])
        apart = np.log(compute[self.apart] / self.compute[self.apart])
        found: Floats = np.concatenate([np.log(step / self.step), apart])
        return found

    def residuals(self, unknown: Floats) -> Floats:
        """What is made small: misfits, each family by its root mean square, and the rest."""
        p = self.parameters(unknown)
        misfit = self.misfit(p)
        n, m = len(self.step), int(self.apart.sum())
        misfit = misfit / np.sqrt(np.where(np.arange(n + m) < n, n, max(m, 1)))
        slopes = np.array([p[3] / p[2], p[5] / p[4]]) * self.seen[[3, 5]]
        regular = [math.sqrt(OVERLAP_WEIGHT) * (p[6] - 1), *(math.sqrt(SLOPE_WEIGHT) * slopes)]
        found: Floats = np.concatenate([misfit, regular])
        return found


def least_squares(
    residuals: Callable[[Floats], Floats], start: Floats, low: Floats, high: Floats
) -> tuple[float, Floats]:
    """Levenberg and Marquardt's damped steps inside a box: the cost and the point found."""
    x = np.clip(start, low, high)
    r = residuals(x)
    cost, damping = float(r @ r), 1e-2
    for _ in range(100):
        slope = jacobian(residuals, x, r, high)
        normal, pull = slope.T @ slope, slope.T @ r
        while damping < 1e8:
            extra = damping * (np.diag(normal) + 1e-9)
            step = np.linalg.solve(normal + np.diag(extra), -pull)
            trial = np.clip(x + step, low, high)
            after = residuals(trial)
            if float(after @ after) < cost:
                break
            damping *= 4
        else:
            return cost, x
        gained = cost - float(after @ after)
        x, r, cost, damping = trial, after, cost - gained, max(damping / 9, 1e-9)
        if gained <= 1e-10 * cost:
            break
    return cost, x


def jacobian(residuals: Callable[[Floats], Floats], x: Floats, r: Floats, high: Floats) -> Floats:
    """Derivatives by differences, stepping into the box."""
    found = np.empty((len(r), len(x)))
    for i in range(len(x)):
        h = 1e-6 if x[i] + 1e-6 <= high[i] else -1e-6
        moved = x.copy()
        moved[i] += h
        found[:, i] = (residuals(moved) - r) / h
    return found
