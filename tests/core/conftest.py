"""What several tests of the core need: both ways in which sharing is computed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from bough.core import fast


@pytest.fixture(params=["numpy", "compiled"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways in which things are computed."""
    if request.param == "compiled":
        if importlib.util.find_spec("numba") is None:
            pytest.skip("the extra `fast` is not installed")
        assert fast.use_compiled()
    yield request.param
    fast.use_compiled(False)
