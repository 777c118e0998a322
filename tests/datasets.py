"""Public data that does not come with the source: where it lies, or a skip that says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: The folder of the data; docs/traces.md tells where each part of it is published.
FOLDER = Path(os.environ.get("BOUGH_DATA") or ROOT.parent / "shared" / "data")


def data(path: str) -> Path:
    """A file or folder of the public data; the test is skipped where it is absent."""
    found = FOLDER / path
    if not found.exists():
        pytest.skip(f"needs the public data {path}: set BOUGH_DATA to its folder (docs/traces.md)")
    return found
