"""One process of an attempt, from the fork to its exit code; part of the shim.

The shim imports this, so it keeps to the standard library and to modules that are small.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource  # here, as an interpreter of root's alone could not be read once we are its user
import signal
import time

from bough.backends import cgroups, processes
from bough.backends.outlet import Outlet

TYPE_CHECKING = False  # type checkers know this name; the shim has no memory to spare for typing
if TYPE_CHECKING:
    from typing import Any

_PR_SET_PDEATHSIG = 1
#: As shells have it: there is no such command; there is, but it cannot be run.
_NOT_FOUND, _NOT_RUN = 127, 126
_libc = ctypes.CDLL(None, use_errno=True)


def set_option(option: int, value: int) -> None:
    """prctl(2)."""
    if _libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Worker:
    """A process in a session and a process group of its own, its output in a pipe to us."""

    def __init__(self, given: Any, log: Outlet) -> None:
        self.rank: int = given["rank"]
        self.role: str = given["role"]
        self.title = f"worker {self.rank}"
        self.serves: bool = given.get("serves", False)
        self.given = given
        self.log = log
        self.pid = 0
        self.start_ticks = 0
        #: Pipes: what it prints; silence when its program runs, else why it does not. -1: closed.
        self.output = self.birth = -1
        self.failed_to_start = 0
        self.over = False
        self.code = self.killed_by = 0
        self.cpu_seconds = 0.0
        self.memory_max_bytes = 0
        self.started_at = self.ended_at = 0.0

    def start(self, launch: Any, cgroup: str) -> None:
        """Fork. What goes wrong on the other side arrives through `birth`."""
        output, output_end = os.pipe2(os.O_CLOEXEC)
        birth, birth_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(output, False)
        self.started_at, shim = time.time(), os.getpid()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.pid = os.fork()
        except OSError:
            os.close(output)
            os.close(birth)
            raise
        else:
            if not self.pid:
                _become(self.given, launch, cgroup, (output_end, birth_end), shim)
            self.output, self.birth = output, birth
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(output_end)
            os.close(birth_end)
        process = processes.find(self.pid)
        self.start_ticks = process.start_ticks if process else 0
        self.given = None  # its environment may be large

    def signal(self, number: int) -> None:
        """To its whole group; while it has none yet, to itself."""
        if self.over or not self.pid:
            return
        try:
            os.killpg(self.pid, number)
        except OSError:
            with contextlib.suppress(OSError):  # it ended, or became another user's
                os.kill(self.pid, number)

    def ended(self, code: int, usage: resource.struct_rusage | None = None) -> None:
        """Note how it ended; a negative code is the signal that killed it."""
        self.over = True
        self.ended_at = time.time()
        self.killed_by = max(-code, 0)
        self.code = self.failed_to_start or (128 - code if code < 0 else code)
        if usage is not None:
            self.cpu_seconds = round(usage.ru_utime + usage.ru_stime, 6)
            self.memory_max_bytes = usage.ru_maxrss << 10

    def obituary(self, out_of_memory: bool) -> str:
        """Why it failed, in words."""
        if not self.killed_by:
            return f"{self.title} ended with exit code {self.code}"
        cause = ""
        if self.killed_by == signal.SIGKILL:
            cause = " (beyond its memory limit)" if out_of_memory else " (out of memory?)"
        elif self.killed_by in set(signal.Signals):
            cause = f" ({signal.Signals(self.killed_by).name})"
        return f"{self.title} was killed by signal {self.killed_by}{cause}"

    def end(self) -> dict[str, object]:
        """What exit.json says of it (bough.records.WorkerEnd)."""
        return {
            "rank": self.rank,
            "role": self.role,
            "code": self.code,
            "signal": self.killed_by,
            "cpu_seconds": self.cpu_seconds,
            "memory_max_bytes": self.memory_max_bytes,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


def _become(given: Any, launch: Any, cgroup: str, ends: tuple[int, int], shim: int) -> None:
    """In the new process: be the worker. Never returns."""
    problem, code, (output, birth) = "", _NOT_RUN, ends
    try:
        os.setsid()
        cgroups.enter(cgroup)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _lose_favour()
        _take_identity(launch)
        # Should the shim be killed, its workers are, too: nobody would know of them any more.
        set_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != shim:
            os._exit(_NOT_RUN)
        problem = f"the directory {given['cwd']!r} cannot be used"
        os.chdir(given["cwd"])
        problem = f"cannot run {given['argv'][0]!r}"
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # what is ignored stays so through exec
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _take_bounds(launch)
        code = _NOT_FOUND
        os.execvpe(given["argv"][0], given["argv"], given["env"])
    except BaseException as error:
        if not isinstance(error, FileNotFoundError):
            code = _NOT_RUN
        why = error.strerror if isinstance(error, OSError) else str(error)
        os.write(
            birth,
            f"{code} {problem or 'the worker cannot be set up'}: {why}".encode(errors="replace")[
                :1000
            ],
        )
    finally:
        os._exit(code)


def _take_identity(launch: Any) -> None:
    """Become the user who asked, for good: groups first, while we still may."""
    uid = launch.get("uid", -1)
    if uid < 0 or (uid and uid == os.getuid()):
        return
    os.fchown(1, uid, launch["gid"])  # else it could not open its own /dev/stdout
    os.setgroups(launch.get("groups", ()))
    os.setgid(launch["gid"])
    os.setuid(uid)


def _lose_favour() -> None:
    """A daemon may be spared when memory runs out; its jobs are what memory is used by."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "r+") as file:
        if int(file.read()) < 0:
            file.seek(0)
            file.write("0")


def _take_bounds(launch: Any) -> None:
    """Those of whoever submitted it, as far as ours allow; last, as we need room until then."""
    if launch.get("umask", -1) >= 0:
        os.umask(launch["umask"])
    for name, asked in launch.get("limits", {}).items():
        number = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if number is not None:
            most = resource.getrlimit(number)[1]
            soft, hard = (_least(each, most) for each in asked)
            resource.setrlimit(number, (_least(soft, hard), hard))


def _least(*limits: int) -> int:
    """-1 has no end."""
    return min((limit for limit in limits if limit >= 0), default=-1)
