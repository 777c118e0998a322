"""The numbers of docs/speedups.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from bough.core.known_models import KINDS, MODELS
from bough.core.speedup import SpeedBook
from bough.sim.tables import read_speedups

PAGE = (Path(__file__).parents[2] / "docs" / "speedups.md").read_text(encoding="utf-8")


def test_the_table_of_built_in_curves() -> None:
    book = SpeedBook("a100")
    rows = []
    for name, model in MODELS.items():
        curve = book.curve(name, 0, "a100")
        speeds = [f"{curve.at(n):.1f}" for n in (2, 4, 8, 16, 32, 64)]
        cells = [name, str(model.batch), *speeds, f"{curve.spread(1):.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    assert [row for row in rows if row not in PAGE] == []


def test_the_list_of_kinds() -> None:
    told = re.sub(r"\s+", " ", PAGE)
    assert ", ".join(f"{name} {kind.speed:g}" for name, kind in KINDS.items()) in told


def test_the_table_shown_can_be_read(tmp_path: Path) -> None:
    found = re.search(r"```csv\n(.*?)```", PAGE, re.S)
    assert found
    path = tmp_path / "own.csv"
    path.write_text(found[1], encoding="utf-8")
    book = read_speedups(path, SpeedBook("h100"))
    assert book.curve("resnet50", 256, "h100").span_factor
    assert book.curve("gpt-xl", 512, "h100").at(2) == 0
