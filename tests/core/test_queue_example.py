"""Every number of docs/queues.md is what the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bough.core.model import Queue
from bough.core.queues import QueueTree
from bough.queuefile import parse_queues

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")
NAMES = ("production", "vision", "language", "students")
DAY = 86_400.0


def tree() -> QueueTree:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.S)
    assert found
    queues = QueueTree()
    for queue in parse_queues(found[1]):
        queues.set(queue)
    return queues


def rows(columns: int) -> list[list[str]]:
    """Cells of all table rows with so many of them, and a number in the second."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return [line for line in cells if len(line) == columns and line[1].isdecimal()]


def test_the_worked_example() -> None:
    queues, checked = tree(), 0
    for label, *cells in rows(10):
        demand, floor = (np.zeros(len(queues.names), np.int64) for _ in range(2))
        for name, cell in zip(NAMES, cells[:4], strict=True):
            demand[queues.index(name)] = int(cell)
        locked = re.match(r"(\d+) of (\w+) are locked", label)
        if locked:
            floor[queues.index(locked[2])] = int(locked[1])
        found = queues.entitle(0.0, "h100", 64, demand, floor)
        assert [int(found[queues.index(n)]) for n in NAMES] == [int(c) for c in cells[5:]], label
        checked += 1
    assert checked == 6


def test_the_example_of_past_use() -> None:
    queues = QueueTree()
    for name in ("one", "other"):
        queues.set(Queue(name=name, half_life_seconds=DAY))
    queues.charge(0.0, np.array([0, 0, 0]))
    queues.charge(DAY, np.array([0, 40, 0]))
    demand, floor = np.array([0, 99, 99]), np.array([0, 0, 0])
    told = rows(3)
    assert len(told) == 4
    for days, one, other in told:
        found = queues.entitle(DAY * (1 + int(days)), "h100", 40, demand, floor)
        assert found.tolist() == [0, int(one), int(other)], days


def test_the_example_of_a_budget() -> None:
    queues = QueueTree()
    queues.set(Queue(name="lab", budget_device_hours=10))
    queues.charge(0.0, np.array([0, 4]))
    assert queues.next_change(0.0) == 2.5 * 3600
