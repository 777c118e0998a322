"""Two more users of this machine, made for tests by root and gone after them, and their daemon."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.daemons import PATIENCE_SECONDS, Daemon

SOURCE = str(Path(__file__).parents[2] / "src")
Done = subprocess.CompletedProcess[str]


class Person(NamedTuple):
    """One user, and the home of the daemon that serves all."""

    name: str
    uid: int
    gid: int
    home: Path
    served: Path

    def run(self, *words: str, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        """A command of theirs, in their home."""
        return subprocess.run(
            words,
            check=False,
            cwd=more.pop("cwd", self.home),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), **(env or {})},
            user=self.uid,
            group=self.gid,
            extra_groups=os.getgrouplist(self.name, self.gid),
            capture_output=True,
            text=True,
            timeout=40,
            stdin=subprocess.DEVNULL,
            **more,
        )

    def bough(self, *words: str, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        """`bough …` as they run it."""
        return self.python("-m", "bough", *words, env=env, **more)

    def python(self, *words: str, env: Mapping[str, str] | None = None, **more: Any) -> Done:
        """A program of theirs that may import bough."""
        command, given = interpreter(self.uid)
        return self.run(
            *command, *words, env={**given, "BOUGH_HOME": str(self.served), **(env or {})}, **more
        )

    def submit(self, *words: str, **more: Any) -> str:
        """The number of a job of theirs."""
        done = self.bough("run", "--detach", *words, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def may_read(self, path: Path) -> bool:
        return self.run("cat", str(path)).returncode == 0


@functools.cache
def interpreter(uid: int) -> tuple[list[str], dict[str, str]]:
    """One that another account can run, ours may lie in root's home; else the test is skipped."""
    packages = os.pathsep.join([SOURCE, *site.getsitepackages()])
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (sys.executable, f"/usr/local/bin/{version}", f"/usr/bin/{version}"):
        env = {"PYTHONPATH": packages, "PATH": "/usr/bin:/bin"}
        try:
            subprocess.run(
                [program, "-c", "import bough.client, click, msgspec"],
                check=True, env=env, cwd="/", user=uid, group=uid, extra_groups=(),
                capture_output=True, timeout=20,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            continue
        return [program, "-P"], {"PYTHONPATH": packages}
    pytest.skip("other accounts can run no Python here that finds bough")


@contextmanager
def two_people(place: Path, served: Path) -> Iterator[tuple[Person, Person]]:
    """Two accounts with homes below a place."""
    if os.geteuid() != 0:
        pytest.skip("only root may make accounts")
    if shutil.which("useradd") is None:
        pytest.skip("useradd is not here to make accounts with")
    with ExitStack() as stack:
        found = []
        for letter in "ab":
            name, home = f"bough{os.getpid()}{letter}", place / letter
            made = ("useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/sh", name)
            subprocess.run(made, check=True, capture_output=True)
            stack.callback(subprocess.run, ("userdel", "-f", name), check=False,
                           capture_output=True)  # fmt: skip
            group = f"{name}team"
            subprocess.run(("groupadd", group), check=True, capture_output=True)
            stack.callback(subprocess.run, ("groupdel", group), check=False, capture_output=True)
            subprocess.run(("usermod", "-aG", group, name), check=True, capture_output=True)
            home.chmod(0o700)
            account = pwd.getpwnam(name)
            found.append(Person(name, account.pw_uid, account.pw_gid, home, served))
        yield found[0], found[1]


#: Anna's.
SECRET = "s3cret-in-the-command"


class Machine(NamedTuple):
    """A machine with a daemon for all, and who is on it."""

    daemon: Daemon
    anna: Person
    ben: Person
    #: Anna's, which runs and has said so.
    job: str

    def over(self, id: str) -> str:
        """How a job ended, and what it printed."""
        with self.daemon.client() as client:
            ended = client.wait(id, PATIENCE_SECONDS)
            printed = client.log_bytes(id, ended.epoch, 0).decode()
        return f"{ended.state} {ended.code}\n{printed}"


@contextmanager
def a_machine() -> Iterator[Machine]:
    """With a job of one of the two that runs."""
    with tempfile.TemporaryDirectory(prefix="bough-") as place:
        room = Path(place).resolve()
        room.chmod(0o711)
        daemon = Daemon(room / "state")
        with two_people(room, daemon.home) as (anna, ben):
            done = daemon.bough("up", "--system", "--devices", "cpu:4")
            assert done.returncode == 0, done.stderr
            try:
                command = f"echo {SECRET}; exec sleep 1000"
                env = {"PASSPHRASE_OF_ANNA": "s3cret-variable"}
                job = anna.submit("--name", "hers", "--", "sh", "-c", command, env=env)
                with daemon.client() as client:
                    next(each for each in client.events(0) if each.type == "Started")
                yield Machine(daemon, anna, ben, job)
            finally:
                daemon.clear()
