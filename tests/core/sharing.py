"""What sharing means, one step at a time: the oracles of test_share.py."""

from __future__ import annotations

from itertools import pairwise

from bough.core.policy import View

Step = tuple[float, int, int]


def own_sizes(view: View, row: int) -> dict[int, float]:
    """Sizes a row allows (ascending), with the speed at each."""
    cls = view.jobs.cls[row]
    sizes = view.classes.sizes[cls].tolist()
    return dict(sorted(dict(zip(sizes, view.classes.speed[cls].tolist(), strict=True)).items()))


def even_steps(view: View, row: int) -> list[Step]:
    """Steps of max-min fairness: (turn, size after it, devices it takes)."""
    speed = own_sizes(view, row)
    lo, hi = int(view.jobs.lo[row]), int(view.jobs.hi[row])
    peak = max(max(speed, key=lambda size: (speed[size], -size)), lo)
    sizes = [size for size in speed if lo <= size <= min(hi, peak)]
    return [(float(b), b, b - a) for a, b in pairwise(sizes)]


def steepest_steps(view: View, row: int) -> list[Step]:
    """Steps along the concave envelope: (turn, size after it, devices it takes)."""
    speed = own_sizes(view, row)
    lo, hi = int(view.jobs.lo[row]), int(view.jobs.hi[row])
    steps, at = [], lo
    while True:
        slopes = {s: (speed[s] - speed[at]) / (s - at) for s in speed if at < s <= hi}
        best = max(slopes.values(), default=0.0)
        if best <= 1e-12:
            return steps
        after = min(s for s, slope in slopes.items() if slope >= best * (1 - 1e-10))
        steps.append((-best, after, after - at))
        at = after


def admitted(view: View) -> tuple[list[int], list[int], int]:
    """Leasts granted in order until one does not fit: sizes, rows in order, devices left."""
    jobs, free = view.jobs, view.devices
    granted, rows = [0] * jobs.n, []
    standing = sorted(range(jobs.n), key=lambda i: (-jobs.must[i], -jobs.priority[i], i))
    for row in standing:
        if jobs.lo[row] > free:
            break
        granted[row] = int(jobs.lo[row])
        free -= granted[row]
        rows.append(row)
    return granted, rows, free


def water_filled(view: View, weighted: bool = False) -> list[int]:
    """Max-min fairness, by handing out step after step."""
    granted, rows, free = admitted(view)
    turns = []
    for place, row in enumerate(rows):
        weight = float(view.jobs.weight[row]) if weighted else 1.0
        turns += [(turn / weight, s, place, row, d) for turn, s, d in even_steps(view, row)]
    return _handed_out(granted, turns, free)[0]


def marginally_filled(view: View, weighted: bool = False) -> list[int]:
    """Greatest gain first, by handing out step after step; then whatever still gains."""
    granted, rows, free = admitted(view)
    turns = []
    for place, row in enumerate(rows):
        weight = float(view.jobs.weight[row]) if weighted else 1.0
        turns += [
            (float(f"{turn * weight:.9e}"), s, place, row, d)
            for turn, s, d in steepest_steps(view, row)
        ]
    granted, free = _handed_out(granted, turns, free)
    return _used_up(view, granted, free, weighted)


def _handed_out(
    granted: list[int], turns: list[tuple[float, int, int, int, int]], free: int
) -> tuple[list[int], int]:
    """Steps in turn, as far as they can be paid for and the step before was taken."""
    granted = list(granted)
    for _, after, _, row, devices in sorted(turns):
        if devices <= free and granted[row] + devices == after:
            granted[row] = after
            free -= devices
    return granted, free


def _used_up(view: View, granted: list[int], free: int, weighted: bool) -> list[int]:
    """Rounds in which each row may take its best affordable gain, the greatest first."""
    while True:
        offers = []
        for row, held in enumerate(granted):
            speed = own_sizes(view, row)
            weight = float(view.jobs.weight[row]) if weighted else 1.0
            rates = [
                (-(speed[s] - speed[held]) / (s - held) * weight, s)
                for s in speed
                if held and held < s <= min(view.jobs.hi[row], held + free)
            ]
            offers += [(*min(rates), row)] if rates and min(rates)[0] < 0 else []
        before = free
        for _, size, row in sorted(offers, key=lambda offer: (offer[0], offer[2])):
            if size - granted[row] <= free:
                free -= size - granted[row]
                granted[row] = size
        if free == before:
            return granted
