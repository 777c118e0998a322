"""A trace kept in Parquet becomes the text of the same table, by DuckDB (the extra `traces`)."""

from __future__ import annotations

import csv
import glob
import io
from pathlib import Path
from typing import Any

from bough.errors import InputError

#: Parquet is recognised by its first bytes, whatever the file is called.
MAGIC = b"PAR1"
#: Rows fetched at a time.
BATCH = 10_000


def as_csv(path: Path) -> str:
    """The table with its header. What is not known is empty; dates are written as ISO has them."""
    try:
        import duckdb
    except ImportError:
        hint = "pip install 'bough[traces]'"
        raise InputError("is Parquet, which needs DuckDB", file=str(path), hint=hint) from None
    try:
        with duckdb.connect() as database:
            # A name may look like the pattern of many.
            rows = database.execute("SELECT * FROM read_parquet(?)", [glob.escape(str(path))])
            return written([column[0] for column in rows.description or ()], rows)
    except duckdb.Error as error:
        what = str(error).splitlines()[0]
        raise InputError(f"is no readable Parquet: {what}", file=str(path)) from None


def written(columns: list[str], rows: Any) -> str:
    """Header and rows as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    while batch := rows.fetchmany(BATCH):
        writer.writerows(batch)
    return out.getvalue()
