"""Start-up stays cheap because slow libraries are left out; bench/startup.py measures the time."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bough

SHOW_MODULES = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
HELP = "from bough.cli import main; import contextlib, io\n" + (
    "with contextlib.redirect_stdout(io.StringIO()):\n    assert main(['--help']) == 0\n"
)


def modules_after(code: str) -> set[str]:
    """The top-level modules loaded in a fresh interpreter once `code` has run."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SHOW_MODULES}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import bough", {"numpy", "msgspec", "rich", "yaml", "click"}),
        (HELP, {"numpy", "msgspec", "rich", "yaml", "numba"}),
        ("import bough.core.model", {"numpy", "rich", "yaml", "click"}),
    ],
    ids=["import bough", "bough --help", "the model"],
)
def test_not_imported(code: str, unwanted: set[str]) -> None:
    assert modules_after(code) & unwanted == set()


def test_every_public_name_is_where_the_table_says() -> None:
    missing = [name for name in bough.__all__ if not hasattr(bough, name)]
    assert missing == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = bough.nothing_of_the_kind  # type: ignore[attr-defined]


def test_every_command_is_where_the_table_says() -> None:
    import click

    from bough.cli import COMMANDS, cli

    context = click.Context(cli)
    for name in COMMANDS:
        assert isinstance(cli.get_command(context, name), click.Command), name
