"""Traces drawn from a seed: arrivals, run times, models, sizes, deadlines, users and queues."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core.model import JobSpec, Range
from bough.errors import InputError
from bough.sim.trace import Trace, TraceJob, garbage_kept

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DAY_SECONDS = 86_400.0
#: Points of the curve by which a day's arrivals are spread.
DAY_GRID = 288
#: A trace of ten years has as many; longer ones are drawn on a wider grid.
DAY_POINTS_MAX = 1_000_000
#: Nothing runs shorter: times are written in milliseconds.
SECONDS_MIN = 0.001
#: More of anything is a slip of the pen, and would fill the memory before that is told.
COUNT_MAX = 10_000_000
#: With a wider spread of run times one job would be all of the work.
SIGMA_MAX = 10.0


class Model(msgspec.Struct, frozen=True):
    """A model that jobs train, with its batch and how common it is."""

    name: str
    batch: int
    weight: float = 1.0


#: Names of the built-in curves, at the batch sizes that are usual for them.
MODELS = (
    Model("resnet50", 256, 3.0),
    Model("vgg16", 256, 1.0),
    Model("inception3", 128, 1.0),
    Model("bert", 128, 3.0),
    Model("gpt2", 256, 2.0),
    Model("deepspeech2", 64, 1.0),
)

#: Sizes of rigid jobs and their shares: most ask for one device, few for more than a node.
RIGID_SIZES = ((1, 0.60), (2, 0.12), (4, 0.12), (8, 0.12), (16, 0.03), (32, 0.01))


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs are like."""

    #: Even over time, or swinging with the hours of the day, or all in the first moment.
    arrivals: Literal["poisson", "diurnal", "at-once"] = "poisson"
    #: How far a diurnal rate swings about its mean: 0 not at all, 1 down to nothing at night.
    swing: float = 0.7
    #: log-normal; two-phase: log-uniform, 80 % short and 20 % long; exponential; constant.
    durations: Literal["log-normal", "two-phase", "exponential", "constant"] = "log-normal"
    #: Median of log-normal run times, mean of the exponential and constant ones.
    seconds: float = 1800.0
    #: Standard deviation of the logarithm of log-normal run times.
    sigma: float = 1.6
    #: Bounds of the short and the long phase, and the share of the long.
    short_seconds: tuple[float, float] = (60.0, 3600.0)
    long_seconds: tuple[float, float] = (3600.0, 172_800.0)
    long_share: float = 0.2
    models: tuple[Model, ...] = MODELS
    rigid_sizes: tuple[tuple[int, float], ...] = RIGID_SIZES
    #: Elastic jobs start from 1 up to this many devices and grow up to that many.
    elastic_least: int = 8
    elastic_most: int = 64
    #: Share of jobs without a deadline; the others ask for a guarantee.
    best_effort: float = 1.0
    #: A deadline is the run time times a number between these, after submission.
    slack: tuple[float, float] = (1.2, 3.0)
    #: Users, of whom the first submits most (Zipf), dealt out to the queues in turn.
    users: int = 16
    queues: tuple[str, ...] = ("default",)


def generate(
    jobs: int,
    devices: int,
    load: float = 0.8,
    elastic: float = 0.5,
    seed: int = 0,
    mix: Mix | None = None,
) -> Trace:
    """Draw a trace whose work, at the sizes it names, is `load` of what the devices can do.

    Each property is drawn from a stream of its own, so that for example another load moves the
    arrivals and leaves run times and sizes as they are.
    """
    mix = mix or Mix()
    check(jobs, devices, load, elastic, mix)
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(6)]
    seconds = draw_seconds(streams[0], jobs, mix)
    low, high, size = draw_sizes(streams[1], jobs, devices, elastic, mix)
    horizon_seconds = float((seconds * size).sum()) / (load * devices)
    submit = draw_arrivals(streams[2], jobs, horizon_seconds, mix)
    model = pick(streams[3], jobs, [m.weight for m in mix.models])
    deadline = draw_deadlines(streams[4], submit, seconds, mix)
    user = pick(streams[5], jobs, [1.0 / (rank + 1) for rank in range(mix.users)])
    with garbage_kept():
        made = assemble(submit, seconds, low, high, size, model, deadline, user, mix)
    return Trace(name=f"synthetic-{jobs}x{devices}-{load:g}-{seed}", jobs=made)


def check(jobs: int, devices: int, load: float, elastic: float, mix: Mix) -> None:
    """Say what cannot be drawn before anything is."""
    for field, count in {
        "jobs": jobs,
        "devices": devices,
        "users": mix.users,
        "queues": len(mix.queues),
        "models": len(mix.models),
        "elastic_least": mix.elastic_least,
    }.items():
        if count < 1:
            raise InputError("must be at least 1", field=field)
        if count > COUNT_MAX:
            raise InputError(f"must be at most {COUNT_MAX:,}", field=field)
    for field, number in {"load": load, "seconds": mix.seconds}.items():
        if not 0 < number < math.inf:
            raise InputError("must be a positive number", field=field)
    for field, share in {
        "elastic": elastic,
        "best_effort": mix.best_effort,
        "long_share": mix.long_share,
        "swing": mix.swing,
    }.items():
        if not 0 <= share <= 1:
            raise InputError("must be within 0..1", field=field)
    for field, (least, most) in {
        "slack": mix.slack,
        "short_seconds": mix.short_seconds,
        "long_seconds": mix.long_seconds,
    }.items():
        if not 0 < least <= most < math.inf:
            raise InputError("must be two numbers, 0 < least <= most", field=field)
    if not 0 <= mix.sigma <= SIGMA_MAX:
        raise InputError(f"must be within 0..{SIGMA_MAX:g}", field="sigma")
    check_kinds(mix)


def check_kinds(mix: Mix) -> None:
    """Say which models and sizes cannot be drawn from."""
    weights = [model.weight for model in mix.models], [share for _, share in mix.rigid_sizes]
    for field, of in zip(("models", "rigid_sizes"), weights, strict=True):
        if not all(0 <= weight < math.inf for weight in of) or not 0 < sum(of) < math.inf:
            raise InputError("must have weights of which one is positive", field=field)
    if not all(size >= 1 for size, _ in mix.rigid_sizes):
        raise InputError("must be at least 1", field="rigid_sizes")
    if mix.elastic_most < mix.elastic_least:
        raise InputError("must be at least elastic_least", field="elastic_most")


def pick(rng: np.random.Generator, count: int, weights: list[float]) -> Ints:
    """Indexes drawn by weight."""
    totals = np.cumsum(weights)
    found: Ints = np.searchsorted(totals, rng.random(count) * totals[-1], side="right")
    return found


def exact_share(rng: np.random.Generator, count: int, share: float) -> npt.NDArray[np.bool_]:
    """Which ones belong to the share: as many as it says, wherever they fall."""
    return rng.permutation(count) < round(share * count)


def draw_seconds(rng: np.random.Generator, count: int, mix: Mix) -> Floats:
    """Run times, to the millisecond."""
    if mix.durations == "log-normal":
        seconds = rng.lognormal(np.log(mix.seconds), mix.sigma, count)
    elif mix.durations == "exponential":
        seconds = rng.exponential(mix.seconds, count)
    elif mix.durations == "constant":
        seconds = np.full(count, mix.seconds)
    else:
        long = (rng.random(count) < mix.long_share).astype(np.int64)
        bounds = np.log([mix.short_seconds, mix.long_seconds])[long]
        seconds = np.exp(bounds[:, 0] + rng.random(count) * (bounds[:, 1] - bounds[:, 0]))
    return np.maximum(np.round(seconds, 3), SECONDS_MIN)


def draw_sizes(
    rng: np.random.Generator, count: int, devices: int, elastic: float, mix: Mix
) -> tuple[Ints, Ints, Ints]:
    """Fewest and most devices of each job, and the number its run time is told for."""
    allowed = [(n, share) for n, share in mix.rigid_sizes if n <= devices and share] or [
        (devices, 1.0)
    ]
    rigid = np.array([n for n, _ in allowed])[pick(rng, count, [share for _, share in allowed])]
    powers = int(np.log2(min(mix.elastic_most, devices)))
    least = rng.integers(0, min(int(np.log2(mix.elastic_least)), powers) + 1, count)
    # Uniform over the powers of two above the least, if there is one, the top one included.
    most = np.minimum(
        least + 1 + rng.integers(0, 1 << 30, count) % np.maximum(powers - least, 1), powers
    )
    told = least + rng.integers(0, 1 << 30, count) % (most - least + 1)
    grows = exact_share(rng, count, elastic)
    return (
        np.where(grows, 1 << least, rigid),
        np.where(grows, 1 << most, rigid),
        np.where(grows, 1 << told, rigid),
    )


def draw_arrivals(rng: np.random.Generator, count: int, horizon_seconds: float, mix: Mix) -> Floats:
    """Moments of submission, ascending: a Poisson process given how many fall in the horizon."""
    if mix.arrivals == "at-once":
        return np.zeros(count)
    even = np.sort(rng.random(count)) * horizon_seconds
    if mix.arrivals == "diurnal":
        points = min(2 + horizon_seconds / DAY_SECONDS * DAY_GRID, DAY_POINTS_MAX)
        moments = np.linspace(0.0, horizon_seconds, int(points))
        turn = 2 * np.pi / DAY_SECONDS
        # The integral of 1 - swing * cos(turn * t): quietest at midnight, where the trace begins.
        arrived = moments - mix.swing / turn * np.sin(turn * moments)
        even = np.interp(even / horizon_seconds * arrived[-1], arrived, moments)
    submit: Floats = np.round(even - even[0], 3)
    return submit


def draw_deadlines(
    rng: np.random.Generator, submit: Floats, seconds: Floats, mix: Mix
) -> list[float | None]:
    """When each job must be done; None for best effort."""
    wants = ~exact_share(rng, len(submit), mix.best_effort)
    slack = rng.uniform(*mix.slack, len(submit))
    moments = np.round(submit + seconds * slack, 3).tolist()
    return [
        moment if wanted else None for moment, wanted in zip(moments, wants.tolist(), strict=True)
    ]


def assemble(  # noqa: PLR0913 - one parameter for each column
    submit: Floats,
    seconds: Floats,
    low: Ints,
    high: Ints,
    size: Ints,
    model: Ints,
    deadline: list[float | None],
    user: Ints,
    mix: Mix,
) -> tuple[TraceJob, ...]:
    """Jobs from columns; equal ranges, models and users are one object each."""
    ranges: dict[tuple[int, int], Range] = {}
    for pair in set(zip(low.tolist(), high.tolist(), strict=True)):
        ranges[pair] = Range(min=pair[0], max=pair[1])
    users = [f"user-{index + 1}" for index in range(mix.users)]
    columns = (submit, seconds, low, high, size, model, user)
    jobs: list[TraceJob] = []
    for at, length, least, most, devices, m, u, due in zip(
        *(column.tolist() for column in columns), deadline, strict=True
    ):
        trained = mix.models[m]
        spec = JobSpec(
            name=trained.name,
            model=trained.name,
            batch=trained.batch,
            devices=ranges[least, most],
            user=users[u],
            queue=mix.queues[u % len(mix.queues)],
            deadline=due,
            service="best-effort" if due is None else "guaranteed",
            estimate_seconds=length,
            estimate_devices=devices,
        )
        jobs.append(
            TraceJob(id=str(len(jobs) + 1), submit=at, seconds=length, devices=devices, spec=spec)
        )
    return tuple(jobs)
