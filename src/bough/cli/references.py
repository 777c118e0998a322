"""Names that the shell completes: jobs, queues, devices and users are asked of the daemon."""

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
    from bough.records import JobRecord

#: Nobody waits longer for the tabulator key.
PATIENCE_SECONDS: Final = 0.5
JOBS_MAX: Final = 100
ENDED_MAX: Final = 20
LIVE: Final = tuple(state for state in get_args(State) if state not in ENDED)
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
    return named([*some(client, LIVE, JOBS_MAX), *some(client, ENDED, ENDED_MAX)])


def live_jobs(client: Client) -> Iterator[tuple[str, str]]:
    """For whoever stops, parks or changes one."""
    return named(some(client, LIVE, JOBS_MAX))


def ended_jobs(client: Client) -> Iterator[tuple[str, str]]:
    """For whoever repeats one."""
    return named(some(client, ENDED, ENDED_MAX))


def some(client: Client, states: Sequence[str], most: int) -> Sequence[JobRecord]:
    server = os.environ.get("BOUGH_SERVER", "")
    user = None if server.startswith("https:") else _me()
    return client.jobs(states=states, user=user, limit=most).jobs


def named(found: Sequence[JobRecord]) -> Iterator[tuple[str, str]]:
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


def devices(client: Client) -> Iterator[tuple[str, str]]:
    """By number where there is one node, else with the node's name."""
    found = client.devices()
    several = len({device.node for device in found}) > 1
    for device in found:
        name = f"{device.node}:{device.index}" if several else str(device.index)
        yield name, f"{device.kind}, {device.state}"


def kinds(client: Client) -> Iterator[tuple[str, str]]:
    for device in client.devices():
        yield device.kind, device.model


def tokens(client: Client) -> Iterator[tuple[str, str]]:
    for token in client.tokens():
        yield token.name, ",".join(token.scopes)


def users(client: Client) -> Iterator[tuple[str, str]]:
    for each in client.users():
        yield each.user, f"{each.running} running"


def _me() -> str:
    from bough.cli.asking import me

    return me()


def _plain(name: str) -> bool:
    """What a shell takes as one word, and nobody for a number."""
    return bool(name) and not name.isdigit() and name.replace("-", "").replace("_", "").isalnum()


class Words(click.ParamType[str]):
    """Text of which some is known without asking anybody."""

    def __init__(self, name: str, known: Callable[[click.Context], Found]) -> None:
        self.name = name
        self.known = known

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [each for each in self.known(ctx) if each[0].startswith(incomplete)]
        return [CompletionItem(name, help=what) for name, what in found]


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell knows them best."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def policies(_: click.Context) -> Iterator[tuple[str, str]]:
    from bough.policies import builtin

    for name, policy in sorted(builtin().items()):
        yield name, (policy.__doc__ or "").partition("\n")[0]


POLICY: Final = Words("policy", policies)
JOB: Final = Reference("job", jobs)
LIVE_JOB: Final = Reference("job", live_jobs)
ENDED_JOB: Final = Reference("job", ended_jobs)
DEVICE: Final = Reference("device", devices)
KIND: Final = Reference("kind", kinds)
TOKEN: Final = Reference("token", tokens)
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
        "live": LIVE,
    }
    words = [word for text in given for word in text.split(",")]
    return tuple(dict.fromkeys(state for word in words for state in groups.get(word, (word,))))
