"""What the tests of this machine share: a body with a home, and a bell for its jobs to ring."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.witness import Bell

from bough.backends.local import Local
from bough.core.model import Node
from bough.records import Recipe
from bough.testing.backends import Stage

NODES = [Node(name="here", kind="cpu", devices=8), Node(name="there", kind="cpu", devices=2)]
GPUS = Node(name="gpus", kind="h100", devices=4)


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    bell = Bell(tmp_path / "bell")
    yield bell
    bell.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def stage(home: Path, bell: Bell) -> Iterator[Stage]:
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "BELL": str(bell.path)}

    def recipe(script: str) -> Recipe:
        return Recipe(argv=("/bin/sh", "-c", script), cwd="/", env=env, grace_seconds=5.0)

    stage = Stage(lambda: Local(home, [*NODES, GPUS], time.time), recipe)
    yield stage
    stage.clear()
