"""Classes of jobs by allowed sizes and believed speeds, so that policies work on tables."""

from __future__ import annotations

import numpy as np

from bough.core.policy import Classes

Key = tuple[tuple[int, ...], tuple[float, ...]]


class ClassTable:
    """Gives each (sizes, speeds) pair a number and keeps the two padded tables."""

    def __init__(self) -> None:
        self._index: dict[Key, int] = {}
        self._keys: list[Key] = []
        #: The smallest size at which each class is fastest.
        self._peaks: list[int] = []
        #: Numbers of classes that are no longer used.
        self._spare: list[int] = []
        self._made: Classes | None = None
        #: The largest size of any class so far.
        self.widest = 0

    def number(self, sizes: tuple[int, ...], speed: tuple[float, ...]) -> int:
        """The class of jobs with these sizes (ascending, without 0) at these speeds."""
        key = (sizes, speed)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self._keys)
            self._keys.append(key)
            self._peaks.append(fastest(sizes, speed))
            self._made = None
            self.widest = max(self.widest, sizes[-1])
        return found

    def own(self, sizes: tuple[int, ...], speed: tuple[float, ...]) -> int:
        """A class for one job alone; to be released when the job ends or its class changes."""
        self._made = None
        if not self._spare:
            self._keys.append((sizes, speed))
            self._peaks.append(fastest(sizes, speed))
            return len(self._keys) - 1
        number = self._spare.pop()
        self._keys[number] = (sizes, speed)
        self._peaks[number] = fastest(sizes, speed)
        return number

    def release(self, number: int) -> None:
        """A class of `own` is no longer used; its number will be given out again."""
        self._spare.append(number)
        self._spare.sort(reverse=True)

    def sizes(self, number: int) -> tuple[int, ...]:
        """Allowed sizes of a class."""
        return self._keys[number][0]

    def curve(self, number: int) -> Key:
        """Allowed sizes of a class, and its believed speed at each."""
        return self._keys[number]

    def peak(self, number: int) -> int:
        """The smallest size at which a class is fastest."""
        return self._peaks[number]

    def speed(self, number: int, size: int) -> float:
        """Believed speed of a class at an allowed size."""
        if not size:
            return 0.0
        sizes, speed = self._keys[number]
        return speed[sizes.index(size)]

    def allows(self, number: int, size: int) -> bool:
        """Whether a job of the class may hold this many devices."""
        return not size or size in self._keys[number][0]

    def table(self) -> Classes:
        """The tables; the same object until a class is added."""
        if self._made is None:
            width = 1 + max((len(k[0]) for k in self._keys), default=1)
            sizes = np.zeros((len(self._keys), width), np.int64)
            speed = np.zeros((len(self._keys), width))
            for i, (s, v) in enumerate(self._keys):
                sizes[i, 1 : len(s) + 1], sizes[i, len(s) + 1 :] = s, s[-1]
                speed[i, 1 : len(s) + 1], speed[i, len(s) + 1 :] = v, v[-1]
            sizes.flags.writeable = speed.flags.writeable = False
            self._made = Classes(sizes, speed)
        return self._made


def fastest(sizes: tuple[int, ...], speed: tuple[float, ...]) -> int:
    """The smallest size with the highest speed."""
    return sizes[speed.index(max(speed))]
