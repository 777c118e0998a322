"""What the scheduler is made to believe when it is to be wrong by a seeded error."""

from __future__ import annotations

import msgspec
import numpy as np

from bough.core.model import JobSpec
from bough.core.speedup import Curve
from bough.sim.options import Options
from bough.sim.world import Running, World


def mistaken(world: World, running: Running, options: Options) -> JobSpec:
    """Bend the truth away from the belief: the run time by a factor, the scaling by an exponent.

    The scheduler keeps the trace's curve and gets a wrong estimate of the run time; the world
    runs on a curve bent around the size that the trace measured.
    """
    spec, error = running.job.spec, options.speed_error
    bend, factor = world.draw.normal(0.0, error, 2).tolist()
    believed = running.curve
    pivot = believed.at(running.job.devices)
    if len(spec.sizes()) > 1 and pivot > 0:
        running.curve = bent(believed, pivot, 1.0 + float(np.clip(bend, -0.9, 0.9)))
        world.judge(running)
    if spec.estimate_seconds is None:
        return spec
    estimate = spec.estimate_seconds * float(np.exp(factor))
    running.believed = running.work * estimate / spec.estimate_seconds
    return msgspec.structs.replace(spec, estimate_seconds=estimate)


def bent(curve: Curve, pivot: float, power: float) -> Curve:
    """The curve with its speed-ups relative to the pivot raised to a power."""
    speed = tuple(pivot * (v / pivot) ** power if v > 0 else 0.0 for v in curve.speed)
    return msgspec.structs.replace(curve, speed=speed)
