"""What the tests of the shim share: an attempt of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.watched import WatchedAttempt


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[WatchedAttempt]:
    attempt = WatchedAttempt(tmp_path)
    yield attempt
    attempt.close()
