"""How long one of Pollux' applications trains: measured step times and statistical efficiency.

A profile is a folder: `placements.csv` and `scalability.csv` with the seconds of a step by place
and by samples on each device, and `validation-<batch>.csv` with a row for each epoch: the progress
made (in samples of the smallest batch) and the variance and square of the gradient, from which
follows how much a step with a larger batch is worth (the paper's equation 7).
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bough.errors import InputError
from bough.sim.trace import read_text

Floats = npt.NDArray[np.float64]

#: The profiles are from nodes of four devices.
NODE_DEVICES = 4
#: Samples on a device at once where the authors allow fewer than were measured.
LOCAL_BATCH_MAX = {"yolov3": 8}
#: Keeps 64.00000001 samples from being rounded up to 65.
TINY = 1e-8


@dataclass
class Profile:
    """One application."""

    name: str
    #: (nodes, devices) or the devices of each node -> samples on a device, seconds, of them
    #: spent in waiting for other devices.
    steps: dict[str | tuple[int, int], Floats]
    #: Batch -> a row for each epoch: progress, square and variance of the gradient.
    epochs: dict[int, Floats]

    @classmethod
    def read(cls, folder: Path) -> Profile:
        """Read the folder's tables; InputError names what is wrong."""
        steps: dict[str | tuple[int, int], Floats] = {}
        measured: dict[str | tuple[int, int], list[list[float]]] = defaultdict(list)
        for row in rows(folder, "placements", ("local_bsz", "step_time", "sync_time")):
            measured[str(int(row[0]))].append(list(row[1:]))
        wide = ("num_replicas", "local_bsz", "step_time", "sync_time")
        for row in rows(folder, "scalability", wide, first="num_nodes"):
            measured[int(row[0]), int(row[1])].append(list(row[2:]))
        for place, points in measured.items():
            steps[place] = np.array(sorted(points)).T
        epochs = {}
        for path in sorted(folder.glob("validation-*.csv*")):
            batch = path.name.removeprefix("validation-").split(".")[0]
            if not batch.isdigit() or int(batch) == 0:
                raise InputError("has no batch size in its name", file=str(path))
            stem = f"validation-{batch}"
            found = list(rows(folder, stem, ("grad_sqr", "grad_var"), first="progress"))
            epochs[int(batch)] = np.array(found)
        if not steps or not epochs or not all(len(table) for table in epochs.values()):
            raise InputError("is no complete profile", file=str(folder))
        return cls(folder.name, steps, dict(sorted(epochs.items())))

    def seconds(self, devices: int, batch: int) -> float:
        """Run time with that total batch on the most compact place; ValueError when impossible."""
        if not min(self.epochs) <= batch <= max(self.epochs):
            raise ValueError(f"{self.name} was not measured with a batch of {batch}")
        local, accumulated = self.split(devices, batch)
        step, sync = self.step_seconds(devices, local)
        step_seconds = step + (step - sync) * accumulated
        total = devices * local * (accumulated + 1)
        count = min(len(table) for table in self.epochs.values())
        progress = np.min([table[:count, 0] for table in self.epochs.values()], axis=0)
        work = np.diff(progress, prepend=0.0)
        square, variance = self.gradient(total, count)
        scale = total / min(self.epochs)
        gain = (variance + square) / (variance / scale + square)
        seconds = float((work * step_seconds / gain).sum())
        if not 0 < seconds < math.inf:
            raise ValueError(f"the profile of {self.name} gives no run time for batch {batch}")
        return seconds

    def split(self, devices: int, batch: int) -> tuple[int, int]:
        """Samples on a device at once, and how often they are accumulated before a step."""
        measured = max(float(table[0].max()) for table in self.steps.values())
        most = LOCAL_BATCH_MAX.get(self.name, int(measured))
        local = math.ceil(batch / devices - TINY)
        accumulated = math.ceil(local / most - TINY) - 1
        if devices == 1 and batch > min(self.epochs):
            accumulated = max(1, accumulated)
        at_once = math.ceil(local / (accumulated + 1) - TINY)
        return min(at_once, max(self.epochs) // (devices * (accumulated + 1))), accumulated

    def step_seconds(self, devices: int, local: int) -> tuple[float, float]:
        """A step's seconds, and those of them that wait for other devices."""
        whole, part = divmod(devices, NODE_DEVICES)
        digits = str(NODE_DEVICES) * whole + (str(part) if part else "")
        # Places are named by the smallest rotation of their digits.
        name = min(digits[i:] + digits[:i] for i in range(len(digits)))
        table = self.steps.get(name)
        if table is None:
            table = self.steps.get((whole + (part > 0), devices))
        if table is None:
            raise ValueError(f"{self.name} was not measured on {devices} devices")
        if not table[0].min() <= local <= table[0].max():
            raise ValueError(
                f"{self.name} was not measured with {local} samples on each of {devices} devices"
            )
        step, sync = (float(np.interp(local, table[0], table[i])) for i in (1, 2))
        return step, sync

    def gradient(self, batch: int, count: int) -> tuple[Floats, Floats]:
        """Square and variance of the gradient in each epoch, between the batches measured."""
        batches = list(self.epochs)
        if not batches[0] <= batch <= batches[-1]:
            raise ValueError(f"{self.name} was not measured with a batch of {batch}")
        above = next(i for i, known in enumerate(batches) if known >= batch)
        below = above if batches[above] == batch else above - 1
        low, high = (self.epochs[batches[i]][:count, 1:] for i in (below, above))
        span = batches[above] - batches[below]
        part = (batch - batches[below]) / span if span else 0.0
        mixed = low + (high - low) * part
        return mixed[:, 0], mixed[:, 1]


def rows(
    folder: Path, stem: str, names: tuple[str, ...], first: str = "placement"
) -> Iterable[tuple[float, ...]]:
    """The numbers of these columns of a table of the folder; nothing if it is not there."""
    for path in (folder / f"{stem}.csv", folder / f"{stem}.csv.gz"):
        if not path.is_file():
            continue
        reader = csv.DictReader(read_text(path).splitlines())
        for row in reader:
            try:
                values = tuple(float(row[name]) for name in (first, *names))
            except (KeyError, TypeError, ValueError, csv.Error):
                needed = ", ".join((first, *names))
                what = f"needs the numbers {needed}"
                raise InputError(what, file=str(path), line=reader.line_num) from None
            if not all(map(math.isfinite, values)):
                raise InputError("is not finite", file=str(path), line=reader.line_num)
            yield values
