"""This machine keeps the contract of all bodies."""

from __future__ import annotations

import time
from pathlib import Path

from bough.backends.base import Backend
from bough.backends.local import Local
from bough.core.model import Node
from bough.testing.backends import BackendContract


class TestLocal(BackendContract):
    def make(self, home: Path) -> Backend:
        return Local(home, [Node(name="here", kind="cpu", devices=8)], time.time)
