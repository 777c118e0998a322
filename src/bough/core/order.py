"""Who goes first, and how far the devices reach down the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bough.core import fast
from bough.core.jobs import Jobs
from bough.core.policy import View

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Key = npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | Ints | Floats

#: Rows looked at first when most of a long queue cannot get anything; more from there.
CHUNK = 1024
#: So few rows are looked at faster one by one than as columns.
FEW = 256
NO_ORDER: Ints = np.zeros(0, np.int64)


def in_order(view: View, *keys: Key, base: Ints | None = None) -> Ints:
    """Rows by ascending keys, the first counting most; those that may not be parked come first.

    Equal rows stay in order of priority, then as in `base` (none: as submitted). Keys of few
    values are cheap as booleans or uint8.
    """
    jobs = view.jobs
    more: list[Key] = []
    if not jobs.flat and np.count_nonzero(jobs.must):
        more.append(jobs.must == 0)
    more.extend(keys)
    if not jobs.flat and np.count_nonzero(jobs.priority):
        more.append(-jobs.priority)
    if base is None and more:
        base = stable_order(more.pop())
    order = np.arange(jobs.n) if base is None else base
    for key in reversed(more):
        order = order[stable_order(key[order])]
    return order


def stable_order(key: Key) -> Ints:
    """Rows by ascending key, equal ones in their order; many times faster than a stable sort.

    The leading bits of the key and the number of the row are packed into one integer each, and
    integers are sorted as fast as the machine can; what the bits left out would have said is
    checked afterwards, and put right where that is needed at all.
    """
    if key.dtype.kind == "i" and len(key):
        least = int(key.min())
        if int(key.max()) - least < 1 << 16:
            key = (key - least).astype(np.uint16)
    if key.dtype.itemsize <= 2:
        small: Ints = key.argsort(kind="stable")  # counts values, compares nothing
        return small
    room = len(key).bit_length()
    mask = (1 << room) - 1
    bits = (key + 0.0).view(np.int64)  # of floats; adding makes -0.0 equal to 0.0
    bits ^= (bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF  # below zero, larger bits mean a smaller number
    bits &= ~mask
    bits |= np.arange(len(key))
    bits.sort()
    bits &= mask
    ranked = key[bits]
    if np.count_nonzero(ranked[1:] < ranked[:-1]):
        bits = bits[ranked.argsort(kind="stable")]  # nearly sorted, so this costs one pass
    return bits


def standing(jobs: Jobs) -> Ints | None:
    """Rows that may not be parked, then by priority; None when that is the order of the rows."""
    if jobs.flat:
        return None
    must, priority = np.count_nonzero(jobs.must), np.count_nonzero(jobs.priority)
    if not must and not priority:
        return None
    order = stable_order(-jobs.priority) if priority else np.arange(jobs.n)
    return order[stable_order(jobs.must[order] == 0)] if must else order


def fit_in_order(size: Ints, devices: int, order: Ints | None = None, skip: bool = False) -> Ints:
    """Grant sizes one after another; stop at the first that does not fit, or pass over it.

    Rows left out of `order` get nothing.
    Looks at the head of the line first: of a long queue, most is never reached.
    """
    count = len(size) if order is None else len(order)
    if fast.twins is not None and count:
        found: Ints = fast.twins.fit_in_order(
            size, devices, NO_ORDER if order is None else order, skip
        )
        return found
    granted = np.zeros_like(size)
    start, stop = 0, CHUNK
    while start < count and devices > 0:
        rows: Any = slice(start, stop) if order is None else order[start:stop]
        wanted = size[rows]
        if skip:
            got: Any = fit_skipping(wanted, devices)
        else:
            got = slice(int(wanted.cumsum().searchsorted(devices, "right")))
            if got.stop < len(wanted):
                devices = 0
        where = np.arange(start, start + len(wanted)) if order is None else rows
        granted[where[got]] = wanted[got]
        devices -= int(np.add.reduce(wanted[got]))
        start, stop = stop, 3 * stop
    return granted


def fit_skipping(wanted: Ints, free: int) -> Ints:
    """Which are granted, one after another, when those that do not fit are passed over.

    Each pass grants all up to the first that does not fit, which rules out every later one as
    large as it: so there are no more passes than distinct sizes.
    """
    if len(wanted) <= FEW:
        few = []
        for row, size in enumerate(wanted.tolist()):
            if size <= free:
                few.append(row)
                free -= size
        return np.array(few, np.int64)
    rows = (wanted <= free).nonzero()[0]
    granted: list[Ints] = []
    while len(rows):
        sizes = wanted[rows]
        total = sizes.cumsum()
        if total[-1] <= free:
            granted.append(rows)
            break
        n = int(total.searchsorted(free, "right"))
        if n:
            granted.append(rows[:n])
            free -= int(total[n - 1])
        rows = rows[n:][sizes[n:] <= free]
    return granted[0] if len(granted) == 1 else np.concatenate([rows[:0], *granted])
