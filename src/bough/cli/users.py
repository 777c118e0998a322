"""`bough user`: who has what here now, and what they have had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from bough.cli import asking, words
from bough.cli.grid import Cell, Column, Grid, bare, draw
from bough.records import UserRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look

COLUMNS: Final = (
    Column("User", cut=8),
    Column("Devices", right=True),
    Column("Running", right=True),
    Column("Waiting", right=True),
    Column("Device-h", right=True),
)


@click.group("user")
def command() -> None:
    """Those who have jobs here."""


@command.command("ls")
@asking.watch_option
@asking.json_option
def ls(watch: float | None, as_json: bool) -> None:
    """List users: devices they hold, jobs that run and wait, device-hours so far."""
    with asking.connect() as client:
        asking.present(client.users, render, as_json, watch=watch)


def render(users: Sequence[UserRecord], look: Look) -> list[str]:
    """Whoever holds most comes first."""
    if not users:
        hint = look.paint("bough run -- python train.py", "type")
        return [f"Nobody has had a job here yet. The first: {hint}"] if look.people else []
    ordered = sorted(users, key=lambda each: (-each.devices, -each.device_hours, each.user))
    rows = [
        [
            Cell(bare(each.user), "name"),
            Cell(str(each.devices) if each.devices else "–", "works" if each.devices else ""),
            Cell(str(each.running) if each.running else "–"),
            Cell(str(each.waiting) if each.waiting else "–", "waits" if each.waiting else ""),
            Cell(words.hours(each.device_hours * 3600)),
        ]
        for each in ordered
    ]
    return draw(Grid(COLUMNS, rows), look.width, look.colour)
