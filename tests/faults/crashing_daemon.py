"""A daemon that dies by `kill -9` at a chosen step of carrying out one command.

Reads lines of JSON, each a home, commands that are carried out whole, one during which it dies,
the number of the step, and the bell that the job rings; forks a daemon for each, and answers when
that is dead. A step is a call from Python into C, which every system call is: between two of them
nothing reaches the disk.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from bough.backends.local import Local
from bough.core.model import Event, JobSpec, Node, Start, Stop
from bough.records import Recipe
from bough.testing.backends import Inbox


class Doom:
    """Counts steps in threads that begin from now on, once it is told to."""

    def __init__(self, step: int) -> None:
        self.left = step
        self.counting = False
        threading.setprofile(self.count)

    def count(self, frame: Any, event: str, what: Any) -> None:
        if self.counting and event == "c_call":
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)


def live(order: dict[str, Any]) -> None:
    """One daemon's life. It ends with code 0 if the command needed fewer steps."""
    doom, inbox = Doom(order["step"]), Inbox()
    bell = os.open(order["bell"], os.O_RDWR | os.O_NONBLOCK)

    def emit(event: Event) -> None:
        inbox(event)
        if doom.counting:
            os._exit(0)

    nodes = [Node(name="here", kind="cpu", devices=8)]
    body = Local(Path(order["home"]), nodes, time.time)
    body.open(emit)
    recipe = msgspec.convert(order["recipe"], Recipe)
    *before, last = (msgspec.convert(command, Start | Stop) for command in order["commands"])
    for number, command in enumerate(before):
        body.execute(command, JobSpec(name="x"), recipe)
        while len(inbox.events) <= number:  # each is answered once
            time.sleep(0.001)
        # A start is answered when the command runs, which is before it has rung; left for the test.
        select.select([bell], [], [])
    doom.counting = True
    body.execute(last, JobSpec(name="x"), recipe)
    time.sleep(30)
    os._exit(1)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            live(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
