"""What the tests of faults share: a shim's attempt, and daemons that may die, of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.mortals import Nursery
from tests.faults.victims import Victims
from tests.faults.watched import WatchedAttempt


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[WatchedAttempt]:
    attempt = WatchedAttempt(tmp_path)
    yield attempt
    attempt.close()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def victims(nursery: Nursery, tmp_path: Path) -> Iterator[Victims]:
    """Jobs of a daemon that runs, with four slots."""
    victims = Victims(nursery, tmp_path)
    yield victims
    victims.clear()
