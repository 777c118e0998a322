"""What all listings share: ask the daemon; print a table, JSON, or it again and again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from bough.cli import clock
from bough.cli.grid import width_now
from bough.cli.palette import colours, painted
from bough.errors import BoughError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bough.client import Client

Found = TypeVar("Found")
Command = TypeVar("Command", bound=Callable[..., Any])

WATCH_SECONDS: Final = 2.0
WATCH_SECONDS_MIN: Final = 0.2
#: The terminal's other screen, so that what was there before comes back.
OPEN: Final = "\x1b[?1049h\x1b[?25l"
CLOSE: Final = "\x1b[?25h\x1b[?1049l"
HOME: Final = "\x1b[H"
REST_OF_LINE: Final = "\x1b[K"
REST: Final = "\x1b[J"


class Look(NamedTuple):
    """What a screen is drawn for."""

    now: float
    width: int
    colour: bool = False
    #: Somebody looks on: hints what to do next are welcome. A program gets the table alone.
    people: bool = False

    def paint(self, text: str, meaning: str) -> str:
        return painted(text, meaning, self.colour)


def look() -> Look:
    """As this process was started."""
    return Look(clock.now(), width_now(), colours(), sys.stdout.isatty())


def connect() -> Client:
    """The daemon that runs; listings start none."""
    from bough.client import Client

    return Client.connect(start=False)


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


class Watchable(click.Command):
    """In `--watch 12` the number may be the job, and then nobody has said how many seconds."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, [*args])
        except click.MissingParameter:
            if "--watch" not in args:
                raise
            plain = [f"--watch={WATCH_SECONDS:g}" if word == "--watch" else word for word in args]
            return super().parse_args(ctx, plain)


def watch_option(command: Command) -> Command:
    return click.option(
        "--watch",
        is_flag=False,
        flag_value=WATCH_SECONDS,
        type=click.FloatRange(WATCH_SECONDS_MIN),
        metavar="[SECONDS]",
        help="Show it again every 2 seconds, or so many.",
    )(command)


def present(
    fetch: Callable[[], Found],
    render: Callable[[Found, Look], Sequence[str]],
    as_json: bool,
    watch: float | None = None,
) -> None:
    """Ask, and print what was found."""
    if watch is not None:
        if as_json or not sys.stdout.isatty():
            raise InputError("--watch needs a terminal", hint="leave it out, or leave out --json")
        watching(fetch, render, watch)
        return
    found = fetch()
    if as_json:
        print_json(found)
    else:
        print_lines(render(found, look()))


def print_lines(lines: Sequence[str]) -> None:
    # Not by click.echo: colours are decided already, and it would load more.
    sys.stdout.write("\n".join([*lines, ""]) if lines else "")


def print_json(found: object) -> None:
    """Records with all their fields: docs/json.md."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(whole(found)), indent=2).decode()
    sys.stdout.write(f"{text}\n")


def whole(found: Any) -> Any:
    """The API leaves out what is as usual; whoever reads a screen's JSON finds every field."""
    if isinstance(found, dict):
        return {key: whole(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [whole(each) for each in found]
    names = getattr(found, "__struct_fields__", None)  # of a record, without loading msgspec
    if names is None:
        return found
    return {name: whole(getattr(found, name)) for name in names}


# -------------------------------------------------------------------------------- again and again


def watching(
    fetch: Callable[[], Found], render: Callable[[Found, Look], Sequence[str]], seconds: float
) -> None:
    """Draw until it is interrupted; a daemon that is away for a while is waited for."""
    with other_screen(), woken_by_resize() as resized:
        while True:
            try:
                lines = list(render(fetch(), look()._replace(people=False)))
            except BoughError as error:
                lines = [look().paint(str(error), "wrong")]
            draw_screen(lines, seconds)
            resized.wait(seconds)
            resized.clear()


def draw_screen(lines: Sequence[str], seconds: float) -> None:
    """All at once, so that nothing flickers."""
    size, seen = shutil.get_terminal_size(), look()
    foot = f"every {seconds:g}s · {clock.clock_time(seen.now)} · ctrl-c ends"
    room = size.lines - 1
    if len(lines) > room:
        foot = f"{len(lines) - room} more lines · {foot}"
        lines = lines[:room]
    body = "".join(f"{line}{REST_OF_LINE}\n" for line in [*lines, *[""] * (room - len(lines))])
    sys.stdout.write(f"{HOME}{body}{seen.paint(foot, 'quiet')}{REST_OF_LINE}{REST}")
    sys.stdout.flush()


@contextmanager
def other_screen() -> Iterator[None]:
    sys.stdout.write(OPEN)
    try:
        yield
    finally:
        sys.stdout.write(CLOSE)
        sys.stdout.flush()


@contextmanager
def woken_by_resize() -> Iterator[threading.Event]:
    """An event that is set when the terminal gets another size."""
    resized = threading.Event()
    before = signal.signal(signal.SIGWINCH, lambda *_: resized.set())
    try:
        yield resized
    finally:
        signal.signal(signal.SIGWINCH, before)


def me() -> str:
    """The account that asks."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
