"""How fast a job runs on so many devices of a kind: curves, and the book that finds them.

A speed is relative: 1.0 is one device of the reference kind, so work is counted in seconds on
that device. A curve says where it comes from and how wrong it may be.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from copy import copy
from itertools import pairwise
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core import known_models
from bough.core.prior import Prior

Source = Literal["profiled", "fitted", "planned", "prior"]

#: Relative error of a curve computed from a model's form, and what looking elsewhere adds to it:
#: another kind of device, or a batch twice or half as large. Chosen by us.
FORM_ERROR: Final = 0.3
OTHER_KIND_ERROR: Final = 0.2
BATCH_ERROR: Final = 0.1
#: Exponents and errors of the prior are rounded to this, so that unknown jobs share few curves.
PRIOR_STEP: Final = 0.05


class Curve(msgspec.Struct, frozen=True):
    """Speed by number of devices, relative to one device of the reference kind."""

    #: Known sizes, ascending.
    sizes: tuple[int, ...]
    #: Speed at each; 0 means that the job cannot run there.
    speed: tuple[float, ...]
    source: Source = "profiled"
    #: Relative error to expect.
    error: float = 0.0
    #: What is left of the speed when the place spans 1, 2, … levels more than the most compact.
    span_factor: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError("sizes is empty: a curve needs at least one size")
        if len(self.sizes) != len(self.speed):
            raise ValueError(f"speed has {len(self.speed)} values for {len(self.sizes)} sizes")
        if self.sizes[0] < 1 or any(b <= a for a, b in pairwise(self.sizes)):
            raise ValueError(f"sizes {list(self.sizes)} must be positive and ascending")
        for i, value in enumerate(self.speed):
            if not 0 <= value < math.inf:
                raise ValueError(f"speed[{i}] is {value}: it must be finite and not negative")
        if not any(self.speed):
            raise ValueError("speed is 0 everywhere: the job could never run")
        if not 0 <= self.error < math.inf:
            raise ValueError(f"error is {self.error}: it must be finite and not negative")
        for i, value in enumerate(self.span_factor):
            if not 0 < value < math.inf:
                raise ValueError(f"span_factor[{i}] is {value}: it must be finite and positive")

    def at(self, devices: int) -> float:
        """Speed on so many devices.

        Linear between known sizes and flat beyond the last. Below the first in proportion,
        unless a size is known at which the job cannot run: then 0 up to the first that works.
        """
        sizes, speed = self.sizes, self.speed
        i = bisect_left(sizes, devices)
        if i == len(sizes):
            return speed[-1]
        if sizes[i] == devices:
            return speed[i]
        if i == 0:
            return speed[0] * devices / sizes[0] if devices > 0 else 0.0
        if speed[i - 1] == 0 or speed[i] == 0:
            return 0.0
        part = (devices - sizes[i - 1]) / (sizes[i] - sizes[i - 1])
        return speed[i - 1] + part * (speed[i] - speed[i - 1])

    def over(self, sizes: Iterable[int]) -> npt.NDArray[np.float64]:
        """Speeds at these sizes."""
        return np.array([self.at(n) for n in sizes], np.float64)

    def spread(self, levels: int) -> float:
        """Factor on the speed when the place spans so many levels more than the most compact."""
        if levels <= 0 or not self.span_factor:
            return 1.0
        return self.span_factor[min(levels, len(self.span_factor)) - 1]

    def peak(self) -> int:
        """The smallest size at which it is fastest."""
        return self.sizes[self.speed.index(max(self.speed))]

    def scaled(self, factor: float, unit: float = 1.0, error: float = 0.0) -> Curve:
        """All speeds times a factor, in another unit, with that much error added."""
        speed = tuple(value * factor / unit for value in self.speed)
        return msgspec.structs.replace(self, speed=speed, error=self.error + error)

    def concave(self) -> Curve:
        """The least curve above it whose gains per device never grow, flat past its peak.

        It starts at not running, which is always possible and has speed 0.
        """
        corners = [(0, 0.0)]
        top = self.peak()
        for point in zip(self.sizes, self.speed, strict=True):
            if point[0] > top:
                break
            while len(corners) > 1 and not _turns_down(corners[-2], corners[-1], point):
                corners.pop()
            corners.append(point)
        sizes, speed = zip(*corners, strict=True)
        envelope = np.interp(self.sizes, list(sizes), list(speed))
        return msgspec.structs.replace(self, speed=tuple(envelope.tolist()))


def _turns_down(a: tuple[int, float], b: tuple[int, float], c: tuple[int, float]) -> bool:
    """Whether the line a-b-c bends downwards at b."""
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def power_law(exponent: float, error: float = 0.0, source: Source = "prior") -> Curve:
    """The curve of speed = devices ** exponent."""
    sizes = known_models.SIZES
    return Curve(sizes, tuple(n**exponent for n in sizes), source, error)


class SpeedRow(msgspec.Struct, frozen=True):
    """One line of a throughput table."""

    model: str
    #: Global batch; 0 when the table does not say.
    batch: int
    #: Empty when the table does not say.
    kind: str
    size: int
    #: Steps per second (or any other unit, the same for one model and batch); 0: cannot run.
    rate: float
    #: Levels spanned beyond the most compact place.
    span: int = 0
    error: float = 0.0


class _Entry(msgspec.Struct, frozen=True):
    """A curve as it was handed in: in the book's unit, or in the unit of its table."""

    curve: Curve
    relative: bool


class SpeedBook:
    """Finds the curve of a model at a batch on a kind.

    Looks for a table; else for one of the same model at another batch or on another kind; else
    computes the model's form (known_models); else takes the power law that the prior expects.
    The answer to a question is remembered, so that equal questions share one curve.
    """

    def __init__(
        self,
        reference: str = "",
        *,
        factors: Mapping[str, float] | None = None,
        prior: Prior | None = None,
        builtin: bool = True,
    ) -> None:
        """Factors tell how fast one device of a kind is, with a v100 as 1; they go before ours.

        Without a reference the first kind of each model's tables is its reference, and kinds
        without tables are equally fast.
        """
        self.reference = known_models.plain(reference)
        self.prior = prior if prior is not None else Prior()
        self.builtin = builtin
        self._factors = {known_models.plain(k): v for k, v in (factors or {}).items()}
        for kind, value in self._factors.items():
            if not 0 < value < math.inf:
                raise ValueError(f"factor of {kind} is {value}: it must be finite and positive")
        #: model -> (batch, kind) -> entry, in order of addition.
        self._tables: dict[str, dict[tuple[int, str], _Entry]] = {}
        #: Name of a curve -> model, where they are not the same.
        self._trains: dict[str, str] = {}
        self._found: dict[tuple[str, int, str], Curve] = {}
        self._laws: dict[tuple[float, float, float], Curve] = {}

    def twin(self) -> SpeedBook:
        """One that knows the same curves and learns apart."""
        made = copy(self)
        made.prior, made._found = Prior(), dict(self._found)
        made._trains = dict(self._trains)
        made.prior.restore(self.prior.state())
        made._tables = {model: dict(entries) for model, entries in self._tables.items()}
        return made

    def add(self, model: str, batch: int, kind: str, curve: Curve) -> None:
        """Put in a curve that is already relative to one device of the reference kind."""
        self._put(model, batch, kind, _Entry(curve, relative=True))

    def add_rows(self, rows: Iterable[SpeedRow]) -> None:
        """Put in tables of absolute speeds; rows of the same (model, batch, kind) are one curve."""
        groups: dict[tuple[str, int, str], list[SpeedRow]] = {}
        for row in rows:
            groups.setdefault((row.model, row.batch, row.kind), []).append(row)
        for (model, batch, kind), group in groups.items():
            self._put(model, batch, kind, _Entry(_curve_of(group), relative=False))

    def stand_for(self, name: str, model: str) -> None:
        """A name that a curve was given, and the model that those train who go by it."""
        self._trains.setdefault(name, model)

    def trained(self, name: str) -> str:
        """The model that jobs of that name train."""
        return self._trains.get(name, name)

    def _put(self, model: str, batch: int, kind: str, entry: _Entry) -> None:
        table = self._tables.setdefault(known_models.plain(model), {})
        table[batch, known_models.plain(kind)] = entry
        self._found.clear()

    def referring_to(self, kind: str) -> SpeedBook:
        """A book with the same tables and prior, in which that kind is the reference.

        Curves that were added as relative stay as they are.
        """
        other = SpeedBook(kind, factors=self._factors, prior=self.prior, builtin=self.builtin)
        other._tables = {model: dict(table) for model, table in self._tables.items()}
        other._trains = dict(self._trains)
        return other

    def models(self) -> list[str]:
        """Names with tables."""
        return list(self._tables)

    def rate(self, model: str, batch: int, kind: str, size: int) -> float | None:
        """Steps per second as a table says, for exactly this; None where no table says it."""
        table = self._tables.get(known_models.plain(model), {})
        kind = known_models.plain(kind)
        for (b, k), entry in table.items():
            fits = b == batch and (k == kind or not k or not kind)
            if fits and not entry.relative and size in entry.curve.sizes:
                return entry.curve.at(size) or None
        return None

    def curve(self, model: str, batch: int, kind: str) -> Curve:
        """The best curve known."""
        key = model, batch, kind
        found = self._found.get(key)
        if found is None:
            model, kind = known_models.plain(model), known_models.plain(kind)
            table = self._tables.get(model)
            form = known_models.known_model(model) if self.builtin else None
            if table:
                found = self._found[key] = self._from_table(table, batch, kind)
            elif form:
                found = self._found[key] = self._from_form(form, batch, kind)
            else:  # not remembered, because the prior goes on learning
                found = self._from_prior(model, kind)
        return found

    def _from_table(self, table: dict[tuple[int, str], _Entry], batch: int, kind: str) -> Curve:
        """The table of the same kind and the nearest batch; else that of the nearest kind."""
        if batch == 0:
            batch = sorted(b for b, _ in table)[len(table) // 2]

        def distance(key: tuple[int, str]) -> tuple[bool, float, float]:
            return (
                key[1] != kind,
                _doublings(batch, key[0]),
                abs(math.log(self.ratio(key[1], kind))),
            )

        nearest, source = min(table, key=distance)
        entry = table[nearest, source]
        unit = 1.0 if entry.relative else self._unit(table, nearest)
        error = BATCH_ERROR * _doublings(batch, nearest)
        if kind != source and source:
            error += OTHER_KIND_ERROR
        return entry.curve.scaled(self.ratio(kind, source), unit, error)

    def _unit(self, table: dict[tuple[int, str], _Entry], batch: int) -> float:
        """Rate of one device of the reference kind at this batch."""
        rated = {k: e.curve for (b, k), e in table.items() if b == batch and not e.relative}
        kind = self.reference if self.reference in rated else next(iter(rated))
        return _one_device(rated[kind]) * self.ratio(self.reference, kind)

    def ratio(self, kind: str, other: str) -> float:
        """How much faster one device of a kind is than one of another; 1 when either is unknown."""
        if kind == other:
            return 1.0
        fast, slow = self._factor(kind), self._factor(other)
        return fast / slow if fast and slow else 1.0

    def _factor(self, kind: str) -> float:
        if kind in self._factors:
            return self._factors[kind]
        known = known_models.known_kind(kind)
        return known.speed if known is not None else 0.0

    def _from_form(self, model: known_models.Model, batch: int, kind: str) -> Curve:
        """The model's form on that kind; kinds nobody knows are like the reference, or a v100."""
        unknown = known_models.KINDS["v100"]
        reference = self._kind(self.reference)
        chosen = self._kind(kind) or reference or unknown
        reference = reference or chosen
        rates = known_models.rates(model, batch, chosen)
        unit = known_models.rates(model, batch, reference)[1]
        spread = known_models.spread_factor(model, batch, chosen)
        speed = tuple(rate / unit for rate in rates.values())
        return Curve(tuple(rates), speed, "planned", FORM_ERROR, (spread,))

    def _kind(self, kind: str) -> known_models.Kind | None:
        known = known_models.known_kind(kind)
        return known._replace(speed=self._factor(kind)) if known else None

    def _from_prior(self, model: str, kind: str) -> Curve:
        """A power law; what it is made of is rounded, so that few curves are shared by all."""
        exponent = round(self.prior.exponent(model) / PRIOR_STEP) * PRIOR_STEP
        error = round(self.prior.exponent_spread(model) / PRIOR_STEP) * PRIOR_STEP
        ratio = self.ratio(kind, self.reference)
        key = exponent, error, ratio
        law = self._laws.get(key)
        if law is None:
            law = power_law(exponent, error)
            law = self._laws[key] = law if ratio == 1 else law.scaled(ratio, error=OTHER_KIND_ERROR)
        return law


def _curve_of(rows: list[SpeedRow]) -> Curve:
    """One curve from the rows of one model, batch and kind; repeated rows are averaged.

    A size's rows of the lowest span are its most compact place. The factor of a span is the
    geometric mean over sizes measured at both (a single device spans nothing); spans nobody
    measured are like the one below.
    """
    lowest: dict[int, int] = {}
    for row in rows:
        lowest[row.size] = min(row.span, lowest.get(row.size, row.span))
    compact: dict[int, list[float]] = {size: [] for size in sorted(lowest)}
    for row in rows:
        if row.span == lowest[row.size]:
            compact[row.size].append(row.rate)
    rates = {size: sum(found) / len(found) for size, found in compact.items()}
    factors: list[float] = []
    for span in range(1, max(row.span for row in rows) + 1):
        both = [
            (row.rate, rates[row.size])
            for row in rows
            if row.span == span > lowest[row.size] and row.size > 1
        ]
        logs = [math.log(far / near) for far, near in both if far > 0 and near > 0]
        before = factors[-1] if factors else 1.0
        factors.append(math.exp(sum(logs) / len(logs)) if logs else before)
    error = max(row.error for row in rows)
    return Curve(tuple(rates), tuple(rates.values()), "profiled", error, tuple(factors))


def _one_device(curve: Curve) -> float:
    """Speed of one device, or a proportional part of the first size that runs."""
    i = next(i for i, value in enumerate(curve.speed) if value > 0)
    return curve.speed[i] / curve.sizes[i]


def _doublings(batch: int, other: int) -> float:
    """How many times one batch must be doubled or halved to be the other."""
    if batch == other:
        return 0.0
    return abs(math.log2(batch / other)) if batch > 0 and other > 0 else 1.0
