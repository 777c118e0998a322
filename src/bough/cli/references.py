"""Names that the shell completes: jobs, queues, nodes and users, asked of the daemon at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from bough.errors import BoughError
from bough.records import ENDED, State

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bough.client import Client

#: Nobody waits longer for the tabulator key.
PATIENCE_SECONDS: Final = 0.15
JOBS_MAX: Final = 100
#: A name, and what it is.
Found = Iterable[tuple[str, str]]


class Reference(click.ParamType[str]):
    """Text that names something the daemon knows. Checked by the daemon, completed by asking it."""

    def __init__(self, name: str, known: Callable[[Client], Found]) -> None:
        self.name = name
        self.known = known

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [each for each in self.asked() if each[0].startswith(incomplete)]
        return [CompletionItem(name, help=what) for name, what in dict(found).items()]

    def asked(self) -> list[tuple[str, str]]:
        """What the daemon knows of this kind; nothing when it does not answer in time."""
        from bough.client import Client

        try:
            with at_most(PATIENCE_SECONDS), Client.connect(start=False) as client:
                client.patience_seconds = 0.0
                return list(self.known(client))
        except (BoughError, OSError):
            return []


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeoutError when it takes longer. For the main thread of a program that does only this."""

    def over(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def jobs(client: Client) -> Iterator[tuple[str, str]]:
    """The user's by number and by name, live ones first."""
    server = os.environ.get("BOUGH_SERVER", "")
    user = None if server.startswith("https:") else _me()
    live = tuple(state for state in get_args(State) if state not in ENDED)
    found = client.jobs(states=live, user=user, limit=JOBS_MAX).jobs
    found += client.jobs(states=ENDED, user=user, limit=20).jobs
    for job in found:
        yield job.id, f"{job.name}, {job.state}"
    for job in reversed(found):
        if _plain(job.name):
            yield job.name, f"job {job.id}, {job.state}"


def queues(client: Client) -> Iterator[tuple[str, str]]:
    for each in client.queues():
        yield each.queue.name, f"{each.used} devices, {each.waiting} waiting"


def nodes(client: Client) -> Iterator[tuple[str, str]]:
    for device in client.devices():
        yield device.node, device.kind


def users(client: Client) -> Iterator[tuple[str, str]]:
    for each in client.users():
        yield each.user, f"{each.running} running"


def _me() -> str:
    from bough.cli.asking import me

    return me()


def _plain(name: str) -> bool:
    """What a shell takes as one word, and nobody for a number."""
    return bool(name) and not name.isdigit() and name.replace("-", "").replace("_", "").isalnum()


JOB: Final = Reference("job", jobs)
QUEUE: Final = Reference("queue", queues)
NODE: Final = Reference("node", nodes)
USER: Final = Reference("user", users)


class States(click.ParamType[str]):
    """One state or several by commas; "live" and "ended" stand for theirs."""

    name = "state"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        for word in str(value).split(","):
            if word not in NAMES:
                from bough.errors import nearest

                self.fail(f"{word!r} is no state ({nearest(word, NAMES)})", param, ctx)
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


NAMES: Final = (*get_args(State), "live", "ended")
STATES: Final = States()


def spread(given: Sequence[str]) -> tuple[str, ...]:
    """The states that were meant, each once."""
    groups = {
        "ended": ENDED,
        "live": tuple(state for state in get_args(State) if state not in ENDED),
    }
    words = [word for text in given for word in text.split(",")]
    return tuple(dict.fromkeys(state for word in words for state in groups.get(word, (word,))))
