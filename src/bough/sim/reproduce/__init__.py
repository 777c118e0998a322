"""Published results run again here: ours beside theirs, and why they differ where they do.

Each peer is one module with a function `rows(data)`. What a peer's own simulator does differently
from the production policies lives here too, and nowhere else: such policies may remember things
from plan to plan, which the contract forbids elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from bough.errors import InputError, nearest
from bough.sim.reproduce.rows import Row

#: Name: the function that yields its rows. Imported when asked for.
PEERS: Final[dict[str, str]] = {
    "muri": "muri:rows",
    "muri-variants": "muri:variants",
    "tiresias": "tiresias:rows",
    "elasticflow": "elasticflow:rows",
    "elasticflow-leases": "leases:rows",
    "gavel": "gavel:rows",
    "shockwave": "shockwave:rows",
    "pollux": "pollux:rows",
    "zeus": "energy:zeus",
    "powerflow": "energy:powerflow",
    "greenflow": "energy:greenflow",
    "carbonscaler": "energy:carbonscaler",
}
#: The same for what is nobody's published result, but a promise of ours.
OWN: Final[dict[str, str]] = {"eta": "eta:rows"}
#: Stands for all of them.
ALL: Final = "all"


def check(name: str) -> None:
    """Whether there is anything of that name to reproduce."""
    if name not in (ALL, *PEERS, *OWN):
        hint = nearest(name, [*PEERS, *OWN, ALL])
        raise InputError(f"nothing to reproduce is called {name!r}", hint=hint)


def reproduce(
    name: str, data: Path, on_progress: Callable[[float], None] | None = None
) -> list[Row]:
    """The rows of one peer, or of all."""
    check(name)
    if not data.is_dir():
        hint = "the folder of the public traces; docs/fidelity.md says where to get them"
        raise InputError("there is no such folder", file=str(data), hint=hint)
    names: Sequence[str] = list(PEERS) if name == ALL else [name]
    found: list[Row] = []
    for done, peer in enumerate(names):
        if on_progress is not None:
            on_progress(done / len(names))
        module, _, function = (PEERS | OWN)[peer].partition(":")
        rows: Callable[[Path], Iterator[Row]] = getattr(
            import_module(f"{__name__}.{module}"), function
        )
        found += rows(data)
    return found
