"""Traces in Parquet are read as the same tables in CSV are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sim.samples import HELIOS, MURI

from bough.errors import InputError
from bough.sim.trace import read_trace

duckdb = pytest.importorskip("duckdb", reason="the extra `traces` is not installed")


def stored(folder: Path, text: str, name: str = "trace.parquet") -> Path:
    """The same table as Parquet, with the types that DuckDB sees in it."""
    source, out = folder / "trace.csv", folder / name
    source.write_text(text)
    with duckdb.connect() as database:
        database.execute(f"COPY (FROM read_csv('{source}')) TO '{folder}/x' (FORMAT parquet)")
    return (folder / "x").rename(out)


@pytest.mark.parametrize("text", [MURI, HELIOS], ids=["muri", "helios, with dates"])
def test_it_is_the_same_trace(text: str, tmp_path: Path) -> None:
    found, plain = read_trace(stored(tmp_path, text)), read_trace(tmp_path / "trace.csv")
    assert (found.name, found.format, found.jobs) == (plain.name, plain.format, plain.jobs)
    assert [note.replace(".parquet", ".csv") for note in found.notes] == list(plain.notes)


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    assert read_trace(stored(tmp_path, MURI, "[a]*?.parquet")).name == "[a]*?"


def test_a_damaged_file_is_told_in_one_line(tmp_path: Path) -> None:
    file = stored(tmp_path, MURI)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"^[^\n]*trace.parquet: is no readable Parquet: [^\n]+$"):
        read_trace(file)
