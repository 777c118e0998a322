"""This machine as a body: each attempt runs under a shim of its own, and outlives the daemon.

What is on the disk is the truth: after a restart everything is found again from the attempts'
directories. A Start is carried out once at most: shim and daemon race for the claim on it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from bough.backends import attempts, processes
from bough.backends.base import Expected, LogFile
from bough.backends.launcher import Attempt, Launcher
from bough.backends.leftovers import fits, strays
from bough.backends.render import Identity
from bough.backends.watch import Watcher
from bough.core.model import Event, Exited, JobSpec, Node, Resize, Resized, Start, Started, Stop
from bough.errors import InputError
from bough.home import attempt_dir
from bough.records import Ending, Recipe

_log = logging.getLogger(__name__)
#: Exit codes for what kept a job from running: bough itself; its command.
_OURS, _THEIRS = 125, 126
How = Literal["done", "failed", "stopped", "lost"]


class Local:
    """Runs jobs as processes of this machine."""

    name = "local"

    def __init__(
        self,
        home: Path,
        nodes: Sequence[Node],
        clock: Callable[[], float],
        *,
        identity: Callable[[JobSpec], Identity] | None = None,
    ) -> None:
        """`identity` says whom a job runs as, where that is not the daemon's own user."""
        self.home = home
        self._nodes = {node.name: node for node in nodes}
        self._clock = clock
        self._launcher = Launcher(home, self._nodes, identity)
        self._emit: Callable[[Event], None] | None = None
        self._early: list[Event] = []
        self._live: dict[str, Attempt] = {}
        self._watcher = Watcher("bough-jobs")

    # ------------------------------------------------------------------ what a body does

    def nodes(self) -> list[Node]:
        return list(self._nodes.values())

    def open(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        for event in self._early:
            emit(event)
        self._watcher.start()

    def execute(self, command: Start | Resize | Stop, spec: JobSpec, recipe: Recipe) -> None:
        self._watcher.ask(lambda: self._carry_out(command, spec, recipe))

    def observe(self, expected: Mapping[str, Expected]) -> Sequence[Event]:
        """What is known at once; what has to be cleared away first is told when it is gone."""
        return self._watcher.call(
            lambda: [event for job, what in expected.items() for event in self._look(job, what)]
        )

    def logs(self, job: str, epoch: int) -> Sequence[LogFile]:
        return attempts.logs(attempts.directory_of(self.home, job, epoch))

    def ending(self, job: str, epoch: int) -> Ending | None:
        """How an attempt ended, with its note in words."""
        return attempts.read_ending(attempts.directory_of(self.home, job, epoch))

    def forget(self, job: str) -> None:
        self._watcher.ask(lambda: self._forget(job))

    def sweep(self, live: Collection[str]) -> Sequence[str]:
        found = list(strays(self.home, live))
        for attempt, pidfd in found:
            self._follow(attempt, pidfd)
            self._forget(attempt.job)
        return [attempt.job for attempt, _ in found]

    def close(self) -> None:
        self._watcher.stop()
        for attempt in self._live.values():
            for fd in (attempt.pidfd, attempt.news):
                if fd >= 0:
                    os.close(fd)
        self._live.clear()

    # ------------------------------------------------------------------ commands

    def _carry_out(self, command: Start | Resize | Stop, spec: JobSpec, recipe: Recipe) -> None:
        if isinstance(command, Start):
            self._start(command, spec, recipe)
        elif isinstance(command, Stop):
            self._stop(command, recipe)
        else:  # the scheduler answers with a Stop, and starts it anew at its new size
            at = self._clock()
            id, epoch, step = command.id, command.epoch, command.step
            self._tell(Resized(at=at, id=id, epoch=epoch, step=step, ok=False))

    def _start(self, start: Start, spec: JobSpec, recipe: Recipe) -> None:
        older = self._live.get(start.id) or self._adopt_parked(start.id)
        if older is None:
            if attempt_dir(self.home, start.id, start.epoch).exists():
                self._repeat(start)
            else:
                self._launch(start, spec, recipe)
        elif older.epoch == start.epoch and older.heir is None:
            if older.state == "running":  # told twice
                self._tell(Started(at=self._clock(), id=start.id, epoch=start.epoch))
        elif older.state == "frozen" and fits(older.directory, start, self._nodes):
            self._thaw(older, start.epoch)
        else:
            older.heir = (start, spec, recipe)
            self._end(older)

    def _stop(self, stop: Stop, recipe: Recipe) -> None:
        attempt = self._live.get(stop.id) or self._adopt_parked(stop.id)
        if attempt is not None and attempt.heir is not None:
            attempt.heir = stop  # what was to follow does not
        elif attempt is None or (attempt.epoch != stop.epoch and attempt.state != "frozen"):
            self._repeat(stop, park=stop.park and recipe.park != "stop")
        elif not stop.park or recipe.park == "stop":
            attempt.epoch = stop.epoch
            self._end(attempt)
        elif attempt.state == "frozen":
            self._tell_exited(stop.id, stop.epoch, "stopped")
        elif attempt.state != "ending":
            self._freeze(attempt)

    def _repeat(self, command: Start | Stop, *, park: bool = False) -> None:
        """A command for something we do not know, or no longer: answer from the disk."""
        state = "starting" if isinstance(command, Start) else "stopping"
        for event in self._look(command.id, Expected(command.epoch, state, (), park=park)):
            self._tell(event)

    # ------------------------------------------------------------------ starting

    def _launch(self, start: Start, spec: JobSpec, recipe: Recipe) -> None:
        directory = attempt_dir(self.home, start.id, start.epoch)
        attempt = Attempt(start.id, start.epoch, directory, "starting")
        try:
            self._launcher.prepare(start, spec, recipe)
            self._listen(attempt)
            self._follow(attempt, os.pidfd_open(self._launcher.spawn(directory)))
        except InputError as error:
            self._refuse(attempt, _THEIRS, f"the job {error}")
        except Exception as error:  # whatever it is, the scheduler waits for an answer
            _log.exception("starting job %s", start.id)
            self._refuse(attempt, _OURS, f"bough could not start it: {error}")

    def _refuse(self, attempt: Attempt, code: int, note: str) -> None:
        """It never ran; say why where people look."""
        self._drop(attempt, "news")
        self._launcher.ports.forget(attempt.job)
        with contextlib.suppress(OSError):
            attempt.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        failed = Ending(how="failed", code=code, ended_at=self._clock(), note=note)
        attempts.conclude(attempt.directory, failed)
        self._tell_exited(attempt.job, attempt.epoch, "failed", code)

    # ------------------------------------------------------------------ freezing, thawing, ending

    def _freeze(self, attempt: Attempt) -> None:
        try:
            attempts.park(self.home, attempt.job, attempt.directory)
        except OSError:  # it would not be found again: then it ends, and begins anew some day
            self._end(attempt)
            return
        attempt.state = "freezing"
        self._signal(attempt, signal.SIGUSR1)

    def _thaw(self, attempt: Attempt, epoch: int) -> None:
        attempts.go_on(self.home, attempt.job, epoch, attempt.directory)
        attempts.unpark(self.home, attempt.job)
        attempt.epoch, attempt.state = epoch, "thawing"
        self._signal(attempt, signal.SIGUSR2)

    def _forget(self, job: str) -> None:
        """Only what is frozen is still there when a job is over; nobody waits to hear of it."""
        attempt = self._live.get(job) or self._adopt_parked(job)
        if attempt is not None and attempt.state == "frozen":
            self._end(attempt)
            attempt.state = "leaving"

    def _end(self, attempt: Attempt) -> None:
        attempts.unpark(self.home, attempt.job)
        attempt.state = "ending"
        self._signal(attempt, signal.SIGTERM)

    def _signal(self, attempt: Attempt, number: int) -> None:
        if attempt.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):  # it is gone: we are about to hear of it
                signal.pidfd_send_signal(attempt.pidfd, number)

    # ------------------------------------------------------------------ watching

    def _listen(self, attempt: Attempt) -> None:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            attempt.news = os.open(attempt.directory / "news", flags)
        except OSError:
            return  # a pipe that somebody removed: its end will be seen all the same
        self._watcher.watch(attempt.news, lambda: self._take_news(attempt))

    def _follow(self, attempt: Attempt, pidfd: int) -> None:
        attempt.pidfd = pidfd
        self._live[attempt.job] = attempt
        self._watcher.watch(pidfd, lambda: self._shim_ended(attempt))

    def _take_news(self, attempt: Attempt) -> None:
        """What the shim has done: R all run, F all are frozen, E it ended and cannot say so."""
        try:
            news = os.read(attempt.news, 4096)
        except BlockingIOError:
            return
        if not news:
            self._drop(attempt, "news")
            return
        letters, _, last_word = news.decode("ascii", "replace").partition("E")
        if last_word:
            how, code = last_word.split()
            attempt.last_word = msgspec.convert({"how": how, "code": int(code)}, Ending)
        for letter in letters:
            if letter == "R" and attempt.state in ("starting", "thawing"):
                attempt.state = "running"
                self._tell(Started(at=self._clock(), id=attempt.job, epoch=attempt.epoch))
            elif letter == "F" and attempt.state == "freezing":
                attempt.state = "frozen"
                self._tell_exited(attempt.job, attempt.epoch, "stopped")

    def _shim_ended(self, attempt: Attempt) -> None:
        if attempt.news >= 0:
            self._take_news(attempt)
        self._drop(attempt, "news")
        with contextlib.suppress(ChildProcessError):  # it was started by the daemon before us
            os.waitid(os.P_PIDFD, attempt.pidfd, os.WEXITED | os.WNOHANG)
        self._drop(attempt, "pidfd")
        ending = attempts.read_ending(attempt.directory) or attempt.last_word
        if ending is None:
            self._clear_away(attempt)
        else:
            self._gone(attempt, ending)

    def _drop(self, attempt: Attempt, which: str) -> None:
        fd = getattr(attempt, which)
        if fd >= 0:
            self._watcher.unwatch(fd)
            os.close(fd)
            setattr(attempt, which, -1)

    def _clear_away(self, attempt: Attempt) -> None:
        """The shim was killed: so is what it left; only then are the devices free."""
        self._live[attempt.job] = attempt
        facts = attempts.read_shim(attempt.directory)
        left = attempts.remains(attempt.directory, facts)
        handles = set()
        for process in left:
            with contextlib.suppress(OSError):  # it ended meanwhile
                handle = processes.handle_of(process)
                handles.add(handle)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not handles:
            lost = attempts.lost(facts, self._clock())
            attempts.conclude(attempt.directory, lost)
            self._gone(attempt, lost)
            return

        def one_less(handle: int) -> None:
            self._watcher.unwatch(handle)
            os.close(handle)
            handles.discard(handle)
            if not handles:
                self._clear_away(attempt)  # and look again: it may have had children meanwhile

        for handle in handles:
            self._watcher.watch(handle, functools.partial(one_less, handle))

    def _gone(self, attempt: Attempt, ending: Ending) -> None:
        """Nothing of the attempt is left."""
        self._live.pop(attempt.job, None)
        self._launcher.ports.forget(attempt.job)
        if attempts.parked(self.home, attempt.job) == attempt.directory:
            attempts.unpark(self.home, attempt.job)
        if attempt.state not in ("frozen", "leaving"):  # else it was told when it froze
            self._tell(self._ended(attempt.job, attempt.epoch, ending))
        if isinstance(attempt.heir, Stop):
            self._tell_exited(attempt.job, attempt.heir.epoch, "stopped")
        elif attempt.heir is not None:
            self._start(*attempt.heir)

    # ------------------------------------------------------------------ after a restart

    def _look(self, job: str, what: Expected) -> list[Event]:
        """What became of an attempt that we believe in."""
        directory = attempts.directory_of(self.home, job, what.epoch)
        attempt = self._live.get(job)
        if attempt is not None and attempt.epoch == what.epoch:
            return self._believe(attempt, what)
        if attempt is not None and attempt.directory == directory:
            return [self._exited(job, what.epoch, "stopped")]  # its processes are a later epoch's
        ending = attempts.read_ending(directory)
        if ending is not None:
            return [self._ended(job, what.epoch, ending)]
        if not (directory / "launch.json").exists() or self._never_began(directory):
            how: How = "stopped" if what.state == "stopping" else "lost"
            return [self._exited(job, what.epoch, how)]
        facts = attempts.read_shim(directory)
        pidfd = attempts.pidfd_of(facts) if facts else None
        attempt = Attempt(job, what.epoch, directory, "ending")
        if pidfd is None:
            ending = attempts.read_ending(directory)  # it may have ended since we looked
            if ending is not None:
                return [self._ended(job, what.epoch, ending)]
            self._clear_away(attempt)
            return []
        self._adopt(attempt, pidfd)
        return self._believe(attempt, what)

    def _never_began(self, directory: Path) -> bool:
        """Nobody claimed it, and nobody will."""
        return not (directory / "shim.json").exists() and attempts.void(directory)

    def _adopt(self, attempt: Attempt, pidfd: int) -> None:
        """Watch over an attempt that an earlier daemon began."""
        self._listen(attempt)  # before reading its state: what changes later will be told
        facts = attempts.read_shim(attempt.directory)
        attempt.state = facts.state if facts else "ending"
        launch = attempts.read_launch(attempt.directory)
        self._launcher.ports.remember(attempt.job, launch.ports if launch else ())
        self._follow(attempt, pidfd)

    def _adopt_parked(self, job: str) -> Attempt | None:
        """The frozen processes of a job, if it has any."""
        directory = attempts.parked(self.home, job)
        if directory is None:
            return None
        facts = attempts.read_shim(directory)
        pidfd = attempts.pidfd_of(facts) if facts else None
        if pidfd is None:
            attempts.unpark(self.home, job)
            for process in attempts.remains(directory, facts):
                with contextlib.suppress(OSError):
                    processes.send(process, signal.SIGKILL)
            return None
        attempt = Attempt(job, int(directory.name), directory, "frozen")
        self._adopt(attempt, pidfd)
        return attempt

    def _believe(self, attempt: Attempt, what: Expected) -> list[Event]:
        """It is alive: see that it does what it was told to do last."""
        job, epoch, at = attempt.job, attempt.epoch, self._clock()
        to_be_parked = attempts.parked(self.home, job) == attempt.directory
        if what.state == "stopping":
            if to_be_parked and attempt.state == "frozen":
                return [self._exited(job, epoch, "stopped")]
            to_be_parked |= what.park and attempt.state in ("starting", "running")
            (self._freeze if to_be_parked else self._end)(attempt)
            return []
        if attempt.state == "frozen":  # it was to go on
            self._thaw(attempt, epoch)
        elif to_be_parked:
            attempts.unpark(self.home, job)
        if what.state == "resizing":
            return [Resized(at=at, id=job, epoch=epoch, step=what.step, ok=False)]
        begun = what.state == "starting" and attempt.state == "running"
        return [Started(at=at, id=job, epoch=epoch)] if begun else []

    # ------------------------------------------------------------------ answers

    def _ended(self, job: str, epoch: int, ending: Ending) -> Exited:
        return attempts.exited(ending, job, epoch, self._clock())

    def _exited(self, job: str, epoch: int, how: How, code: int = 0) -> Exited:
        return Exited(at=self._clock(), id=job, epoch=epoch, why=how, code=code)

    def _tell_exited(self, job: str, epoch: int, how: How, code: int = 0) -> None:
        self._tell(self._exited(job, epoch, how, code))

    def _tell(self, event: Event) -> None:
        if self._emit is None:
            self._early.append(event)
        else:
            self._emit(event)
