"""The SQLite store holds to the rules of every store."""

from __future__ import annotations

from pathlib import Path

from bough.server.store import Store
from bough.testing.stores import AnyStore, StoreContract


class TestStore(StoreContract):
    def open(self, folder: Path) -> AnyStore:
        return Store.open(folder / "bough.db")
