"""Starts attempts: their directories, what is to be run, and a shim that runs it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bough.backends import attempts
from bough.backends.ports import Ports
from bough.backends.render import Identity, Site, hostfile, ports_needed, render
from bough.core.model import JobSpec, Node, Start, Stop
from bough.home import attempt_dir, job_dir
from bough.records import Ending, Recipe

_SHIM = Path(__file__).with_name("shim.py")
#: The shim lets these in when it can answer them; until then they wait.
_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class Attempt:
    """An attempt whose shim is alive, or whose remains are being cleared away."""

    __slots__ = ("directory", "epoch", "heir", "job", "last_word", "news", "pidfd", "state")

    def __init__(self, job: str, epoch: int, directory: Path, state: str) -> None:
        self.job = job
        #: The incarnation that it is now: a thawed one began as an older one.
        self.epoch = epoch
        self.directory = directory
        #: starting, running, freezing, frozen, thawing, ending, or leaving unheard.
        self.state = state
        self.pidfd = self.news = -1
        #: Told by a shim that could not write it down.
        self.last_word: Ending | None = None
        #: What is to be started, or said to be stopped, once this has ended.
        self.heir: tuple[Start, JobSpec, Recipe] | Stop | None = None


class Launcher:
    """Knows where things lie, which ports are taken, and whom jobs run as."""

    def __init__(
        self,
        home: Path,
        nodes: Mapping[str, Node],
        identity: Callable[[JobSpec], Identity] | None,
    ) -> None:
        self._home = home
        self._nodes = nodes
        self._identity = identity
        self.ports = Ports(begin=os.getpid() * 61)

    def prepare(self, start: Start, spec: JobSpec, recipe: Recipe) -> Path:
        """Everything but the start itself. An InputError is the job's fault."""
        who = self._identity(spec) if self._identity else None
        directory = attempt_dir(self._home, start.id, start.epoch)
        kept = attempts.kept_dir(self._home, start.id)
        scratch = attempts.scratch_dir(directory)
        self._make_directories(directory, (kept, scratch), who)
        ports = self.ports.take(start.id, ports_needed(start))
        hosts = directory / "hostfile"
        launch = render(start, spec, recipe, Site(self._nodes, ports, kept, scratch, hosts, who))
        hosts.write_text(hostfile(start), encoding="ascii")
        hosts.chmod(0o644)
        os.mkfifo(directory / "news", 0o600)
        attempts.write(directory / "launch.json", launch)
        return directory

    def _make_directories(
        self, directory: Path, theirs: tuple[Path, ...], who: Identity | None
    ) -> None:
        """Logs and orders lie where a job cannot touch them; two directories belong to it."""
        # Where jobs have users of their own, these pass through to what is theirs.
        mode = 0o700 if who is None else 0o711
        for path in (self._home / "jobs", job_dir(self._home, directory.parent.name), directory):
            path.mkdir(mode, exist_ok=True)  # one may be there since a start that was refused
            path.chmod(mode)
        for path in theirs:
            if not path.exists():
                path.mkdir(mode=0o700)
            if who is not None:
                os.chown(path, who.uid, who.gid, follow_symlinks=False)

    def spawn(self, directory: Path) -> int:
        """The process number of a new shim: in a session of its own, holding nothing of ours."""
        kept = ("LD_LIBRARY_PATH",)  # an interpreter may need it to begin at all
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_SHIM), str(directory)],
            {"LC_ALL": "C.UTF-8"} | {n: os.environ[n] for n in kept if n in os.environ},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, str(directory / "shim.log"), append, 0o600),
            ],
            setsid=True,
            setsigmask=_SIGNALS,
        )
