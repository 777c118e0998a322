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
    "elasticflow-fig8a": "figures:fig8a",
    "elasticflow-fig8b": "figures:fig8b",
    "elasticflow-fig9": "figures:fig9",
    "elasticflow-fig10": "figures:fig10",
    "elasticflow-fig11": "figures:fig11",
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
#: Stand for all of them, and for those that take minutes, which "all" leaves out.
ALL: Final = "all"
FIGURES: Final = "elasticflow-figures"
#: Our own policy beside its targets: many runs, kept in a file.
HOUSE: Final = "house"
SLOW: Final = ("elasticflow-fig8a", "elasticflow-fig8b", "elasticflow-fig9", "elasticflow-fig11")


def names() -> dict[str, str]:
    """Everything there is to reproduce, and what it is in a line."""
    found = {}
    for name, where in (PEERS | OWN).items():
        module, _, function = where.partition(":")
        words = getattr(import_module(f"{__name__}.{module}"), function).__doc__
        found[name] = words.partition("\n")[0]
    found[FIGURES] = "ElasticFlow's figures 8a, 8b, 9, 10 and 11: some minutes."
    found[HOUSE] = "Our own policy beside its targets: an hour, or minutes with --quick."
    found[ALL] = f"All but {', '.join(SLOW)}: about a minute."
    return found


def check(name: str) -> None:
    """Whether there is anything of that name to reproduce."""
    if name not in (ALL, FIGURES, HOUSE, *PEERS, *OWN):
        hint = nearest(name, [*PEERS, *OWN, FIGURES, HOUSE, ALL])
        raise InputError(f"nothing to reproduce is called {name!r}", hint=hint)


def reproduce(
    name: str, data: Path, on_progress: Callable[[float], None] | None = None
) -> list[Row]:
    """The rows of one peer, or of all."""
    check(name)
    if not data.is_dir():
        hint = "the folder of the public traces; docs/fidelity.md says where to get them"
        raise InputError("there is no such folder", file=str(data), hint=hint)
    chosen: Sequence[str] = [name]
    if name == ALL:
        chosen = [peer for peer in PEERS if peer not in SLOW]
    elif name == FIGURES:
        chosen = [peer for peer in PEERS if peer.startswith("elasticflow-fig")]
    found: list[Row] = []
    for done, peer in enumerate(chosen):
        if on_progress is not None:
            on_progress(done / len(chosen))
        module, _, function = (PEERS | OWN)[peer].partition(":")
        rows: Callable[[Path], Iterator[Row]] = getattr(
            import_module(f"{__name__}.{module}"), function
        )
        found += rows(data)
    return found
