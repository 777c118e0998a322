"""Daemons for the tests of the API: one for each test, or one for all of a file that only ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.accounts import Machine, a_machine
from tests.server.served import Served, served_at

from bough.client import Client


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A daemon with four CPU slots."""
    with served_at(tmp_path / "home") as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as client:
        yield client


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests of a file."""
    with served_at(tmp_path_factory.mktemp("standing") / "home") as served:
        yield served


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """One daemon of root's for two other users."""
    with a_machine() as machine:
        yield machine
