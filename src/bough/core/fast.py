"""Chooses between functions in numpy and their compiled twins, for the whole process."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

#: The module of compiled twins while they are used.
twins: Any = None


def use_compiled(wanted: bool = True) -> bool:
    """Let the compiled twins do the work from now on (or not); whether they do.

    They need the extra `fast`; results are the same. Loading them takes about a second (a few
    when they are compiled for the first time), which pays from some ten thousand plans on.
    """
    global twins  # noqa: PLW0603 - how, not what, is computed is the whole process' choice
    twins = None
    if wanted:
        with suppress(ImportError):
            twins = importlib.import_module("bough.core._compiled")
    return twins is not None
