"""Fixtures that the tests of several rooms use."""

from __future__ import annotations

from tests.daemons import daemon, nobody_home

__all__ = ["daemon", "nobody_home"]
