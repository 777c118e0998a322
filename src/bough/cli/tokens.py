"""`bough token`: secrets for coming over the network, each with what it allows and how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from bough.cli import asking, references, words
from bough.cli.grid import Cell, Column, Grid, bare, draw
from bough.cli.options import Duration
from bough.errors import InputError, nearest
from bough.records import NewToken, TokenRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look

SCOPES: Final = ("read", "submit", "manage", "admin")
COLUMNS: Final = (
    Column("Token", cut=12),
    Column("User", cut=8),
    Column("Allows"),
    Column("Made", right=True, rank=1),
    Column("Ends", right=True),
)


@click.group("token")
def command() -> None:
    """Tokens for use over the network (`bough up --listen`)."""


@command.command("create")
@click.argument("name")
@click.option("--user", default="", metavar="NAME", help="Whose; yours if not given.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="A,B",
    help="read, submit, manage, admin; all but admin if not given.",
)
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="30d; else without end.")
@asking.json_option
def create(
    name: str, user: str, scopes: tuple[str, ...], seconds: float | None, as_json: bool
) -> None:
    """Make a token called NAME. Its secret is shown this once.

    \b
    bough token create laptop --scope read,submit --for 30d
    """
    asked = tuple(dict.fromkeys(word for text in scopes for word in text.split(",")))
    for word in asked:
        if word not in SCOPES:
            raise InputError(f"{word!r} is no scope", field="--scope", hint=nearest(word, SCOPES))
    if not name:
        raise InputError("needs a name", field="NAME", hint="bough token create laptop")
    if seconds is not None and seconds <= 0:
        raise InputError("is over at once", field="--for", hint="30d; without it, it has no end")
    with asking.connect() as client:
        made = client.add_token(name, user=user, scopes=asked, seconds=seconds)
    if as_json:
        asking.print_json(made)
    else:
        asking.print_lines(told(made, asking.look()))


@command.command("ls")
@asking.json_option
def ls(as_json: bool) -> None:
    """List the tokens, without their secrets."""
    with asking.connect() as client:
        asking.present(client.tokens, render, as_json)


@command.command("revoke")
@click.argument("name", type=references.TOKEN)
@asking.json_option
def revoke(name: str, as_json: bool) -> None:
    """Let the token NAME let nobody in any more."""
    with asking.connect() as client:
        client.revoke_token(name)
        left = client.tokens() if as_json else ()
    if as_json:
        asking.print_json(left)
    else:
        asking.print_lines([f"Token {name} lets nobody in any more."])


def told(made: NewToken, look: Look) -> list[str]:
    """The secret, alone on a line where a program reads it."""
    if not look.people:
        return [made.secret]
    token = made.token
    ends = (
        "without end" if token.expires is None else f"until {words.moment(token.expires, look.now)}"
    )
    allows = ", ".join(token.scopes)
    return [
        f"Token {token.name} of {token.user}: {allows}, {ends}.",
        "",
        f"  {look.paint(made.secret, 'name')}",
        "",
        "It is shown this once. Use it elsewhere as",
        f"  {look.paint('BOUGH_SERVER=https://HOST:8470 BOUGH_TOKEN=… bough ls', 'type')}",
        f"Take it back: {look.paint(f'bough token revoke {token.name}', 'type')}",
    ]


def render(tokens: Sequence[TokenRecord], look: Look) -> list[str]:
    if not tokens:
        hint = look.paint("bough token create NAME --for 30d", "type")
        return [f"There are no tokens. Make one: {hint}"] if look.people else []
    rows = []
    for token in tokens:
        over = token.expires is not None and token.expires <= look.now
        ends = "never" if token.expires is None else words.distance(token.expires, look.now)
        rows.append(
            [
                Cell(bare(token.name), "name"),
                Cell(bare(token.user)),
                Cell(",".join(token.scopes)),
                Cell(words.distance(token.created, look.now), "quiet"),
                Cell(ends, "wrong" if over else ""),
            ]
        )
    return draw(Grid(COLUMNS, rows), look.width, look.colour)
