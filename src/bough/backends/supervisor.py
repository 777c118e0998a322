"""Watches over the workers of one attempt: what the shim does once it runs.

It has one thread, keeps to the standard library, and talks through files:

    launch.json  what to run (bough.records.Launch)
    shim.json    who watches, and which workers there are. Whoever makes this file owns the attempt:
                 a daemon that finds none makes it itself, and nothing will start here any more
    news         a pipe: R once all workers run, F when they are frozen, R when they go on
    exit.json    how it ended (bough.records.Ending); the shim leaves after it

and through signals: TERM ends the workers, USR1 freezes them, USR2 lets them go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time

from bough.backends import cgroups, processes
from bough.backends.outlet import Outlet
from bough.backends.worker import Worker, set_option

_PR_SET_CHILD_SUBREAPER = 36
#: Read from one worker in one round, so that none starves the others.
_CHUNK_BYTES = 1 << 16
#: What is left of an attempt that ended by itself may say goodbye for so long.
_LEFTOVER_SECONDS = 2.0
#: Who cannot be ended even by force (another user's) is given up after this long.
_GIVE_UP_SECONDS = 10.0
#: Stopping takes a moment for programs with many threads; each look at them takes a millisecond.
_FREEZE_ROUNDS_MAX = 200
_KILL_AGAIN_SECONDS = 0.05
_MEMORY_SECONDS = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)
INFINITY = float("inf")


class Shim:
    """One attempt, from its claim to its end."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)
        os.chdir("/")  # no mount is kept busy by watching
        with open(self.path("launch.json"), "rb") as file:
            self.launch = json.load(file)
        self.selector = selectors.DefaultSelector()
        self.workers: list[Worker] = []
        self.pending: set[int] = set()
        self.state = "starting"
        #: How it ends, once that is decided, and why.
        self.how = ""
        self.code = 0
        self.notes: list[str] = []
        #: When the polite time is over; when the last resort was first used.
        self.kill_at = INFINITY
        self.killing_since = INFINITY
        #: What is left cannot be ended by us.
        self.hopeless = False
        self.look_at = INFINITY
        self.cgroup = ""
        self.news = -1

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    # ------------------------------------------------------------------ the beginning

    def claim(self) -> bool:
        """Own the attempt; False when somebody was earlier."""
        me = processes.find(os.getpid())
        assert me is not None
        self.me = {"pid": me.pid, "start_ticks": me.start_ticks, "boot_id": processes.boot_id()}
        mine = self.path(f"shim.json.{me.pid}")
        self.write(mine, self.facts())
        try:
            os.link(mine, self.path("shim.json"))
        except FileExistsError:
            return False
        finally:
            os.unlink(mine)
        # Room for the last word is taken now: the disk may be full by then.
        with (
            contextlib.suppress(OSError),
            open(self.path("exit.json.tmp"), "wb", opener=_private) as file,
        ):
            os.posix_fallocate(file.fileno(), 0, 8192 + 512 * len(self.launch["workers"]))
        return True

    def facts(self) -> dict[str, object]:
        """What shim.json says."""
        workers = [
            {"rank": w.rank, "pid": w.pid, "start_ticks": w.start_ticks} for w in self.workers
        ]
        return {**self.me, "state": self.state, "workers": workers, "cgroup": self.cgroup}

    def tell(self, state: str, news: bytes) -> None:
        """Write down the new state and wake who listens."""
        self.state = state
        try:
            self.write(self.path("shim.json.tmp"), self.facts())
            os.rename(self.path("shim.json.tmp"), self.path("shim.json"))
        except OSError as error:  # a full disk: the news alone must do
            self.note(f"shim.json could not be written: {error.strerror}")
        self.send_news(news)

    def send_news(self, news: bytes) -> None:
        with contextlib.suppress(OSError):  # nobody reads, and the pipe is full
            if news:
                os.write(self.news, news)

    def write(self, path: str, facts: object) -> None:
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump(facts, file)

    def begin(self) -> None:
        """Take signals, adopt orphans, start everybody."""
        set_option(_PR_SET_CHILD_SUBREAPER, 1)
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.selector.register(read, selectors.EVENT_READ, lambda: os.read(read, _CHUNK_BYTES))
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda which, _: self.pending.add(which))
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with contextlib.suppress(OSError):  # no pipe: they will read the files
            self.news = os.open(self.path("news"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if self.launch.get("memory_max"):
            name = f"bough-{self.launch['job']}-{self.launch['epoch']}-{os.getpid()}"
            self.cgroup = cgroups.make(name, self.launch["memory_max"])
            self.look_at = INFINITY if self.cgroup else time.monotonic()
        for given in self.launch["workers"]:
            self.start(given)
        self.tell("starting", b"")

    def start(self, given: dict[str, object]) -> None:
        log = Outlet(
            self.path(os.path.basename(str(given["log"]))),
            self.launch["log_bytes_max"],
            self.launch.get("log_keep", 2),
        )
        worker = Worker(given, log)
        self.workers.append(worker)
        try:
            worker.start(self.launch, self.cgroup)
        except OSError as error:
            worker.ended(126)
            self.could_not_start(worker, f"no process could be made: {error.strerror}", 126)
            return
        self.selector.register(
            worker.output, selectors.EVENT_READ, lambda: self.take_output(worker)
        )
        self.selector.register(worker.birth, selectors.EVENT_READ, lambda: self.take_birth(worker))

    # ------------------------------------------------------------------ what happens

    def take_output(self, worker: Worker) -> bool:
        """Move a piece of output into the log; False when there is none now."""
        try:
            data = os.read(worker.output, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            worker.log.write(data)
            return True
        self.selector.unregister(worker.output)
        os.close(worker.output)
        worker.output = -1
        return False

    def take_birth(self, worker: Worker) -> None:
        """The worker's program runs, or it says why not."""
        problem = os.read(worker.birth, 1024).decode("utf-8", "replace")
        self.selector.unregister(worker.birth)
        os.close(worker.birth)
        worker.birth = -1
        if problem:
            code, sentence = problem.split(" ", 1)
            self.could_not_start(worker, sentence, int(code))
        elif self.state == "starting" and all(w.birth < 0 for w in self.workers):
            if not self.how:
                self.tell("running", b"R")

    def could_not_start(self, worker: Worker, sentence: str, code: int) -> None:
        worker.failed_to_start = code
        worker.log.say(sentence)
        self.note(f"{worker.title}: {sentence}")
        self.end("failed", code)

    def reap(self) -> None:
        """Fetch every exit code there is, orphans' too."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            worker = next((w for w in self.workers if w.pid == pid and not w.over), None)
            if worker is not None:
                worker.ended(os.waitstatus_to_exitcode(status), usage)
                self.judge(worker)

    def judge(self, worker: Worker) -> None:
        """What a worker's end means for the others."""
        if worker.birth >= 0:
            self.take_birth(worker)
        if worker.code and not worker.failed_to_start and not self.how:
            self.note(worker.obituary(cgroups.was_out_of_memory(self.cgroup)))
            self.end("failed", worker.code)
        elif not self.how and all(w.over or w.serves for w in self.workers):
            self.end("done", 0)

    def note(self, sentence: str) -> None:
        if len(self.notes) < 20:
            self.notes.append(sentence)

    # ------------------------------------------------------------------ what is done

    def act(self) -> None:
        """After each round: signals that came, and moments that have."""
        signals, self.pending = self.pending, set()
        if signal.SIGCHLD in signals:
            self.reap()
        if signal.SIGTERM in signals:
            self.end("stopped", 0)
        if signal.SIGUSR2 in signals and self.state == "frozen":
            self.send_everybody(signal.SIGCONT)
            self.tell("running", b"R")
        if signal.SIGUSR1 in signals and self.state == "starting":
            self.pending.add(signal.SIGUSR1)  # once everybody is there
        elif signal.SIGUSR1 in signals and self.state == "running":
            self.freeze()
        now = time.monotonic()
        if now >= self.look_at:
            self.watch_memory()
            spent = time.monotonic() - now
            self.look_at = now + max(_MEMORY_SECONDS, 100 * spent)  # a hundredth of a core at most
        if now >= self.kill_at:
            self.kill(now)

    def end(self, how: str, code: int) -> None:
        """Decide how it ends, and let everybody know politely."""
        if self.how:
            return
        self.how, self.code = how, code
        grace = float(self.launch["grace_seconds"])
        self.kill_at = time.monotonic() + (
            min(grace, _LEFTOVER_SECONDS) if how == "done" else grace
        )
        for worker in self.workers:
            worker.signal(signal.SIGTERM)
        if self.state == "frozen":
            self.send_everybody(signal.SIGCONT)
        self.tell("ending", b"")

    def kill(self, now: float) -> None:
        """No more politeness, until nobody is left."""
        self.kill_at = now + _KILL_AGAIN_SECONDS
        self.killing_since = min(self.killing_since, now)
        cgroups.kill(self.cgroup)
        sent, refused = self.send_everybody(signal.SIGKILL)
        if refused and not sent and now > self.killing_since + _GIVE_UP_SECONDS:
            listed = ", ".join(map(str, sorted(refused)))
            self.note(f"left alive, because they became another user's: processes {listed}")
            self.hopeless = True

    def send_everybody(self, number: int) -> tuple[set[int], set[int]]:
        """Every descendant gets the signal, whatever group or session it went to.

        Who got it, and who belongs to somebody we have no power over.
        """
        sent, refused = set(), set()
        for process in processes.descendants(os.getpid()):
            try:
                processes.send(process, number)
                sent.add(process.pid)
            except PermissionError:
                refused.add(process.pid)
            except OSError:
                pass  # it ended just now
        return sent, refused

    def freeze(self) -> None:
        """Stop everybody, and whoever was born meanwhile; then say so."""
        for worker in self.workers:
            worker.signal(signal.SIGSTOP)
        told: set[int] = set()
        for _ in range(_FREEZE_ROUNDS_MAX):
            present = processes.descendants(os.getpid())
            fresh = [process for process in present if process.pid not in told]
            # D: it waits for a child that is stopped, or for a device.
            if not fresh and all(process.state in "TtD" for process in present):
                break
            for process in fresh:
                with contextlib.suppress(OSError):
                    processes.send(process, signal.SIGSTOP)
                told.add(process.pid)
        self.tell("frozen", b"F")

    def watch_memory(self) -> None:
        """Where no cgroup holds the limit, look now and then."""
        limit = self.launch["memory_max"]
        used = processes.memory_bytes(processes.descendants(os.getpid()), limit)
        if used > limit and not self.how:
            used, limit = used >> 20, limit >> 20
            self.note(f"the job used {used} MiB of memory, its memory limit is {limit} MiB")
            self.end("failed", 128 + signal.SIGKILL)
            self.kill(time.monotonic())

    # ------------------------------------------------------------------ the end

    def leftovers(self) -> bool:
        """Whether, once all workers are gone, something of them lives on."""
        if not all(worker.over for worker in self.workers):
            return True
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        if self.state != "sweeping":
            self.state = "sweeping"
            self.send_everybody(signal.SIGTERM)
            self.send_everybody(signal.SIGCONT)
        return True

    def run(self) -> None:
        self.begin()
        self.act()
        while not self.how or (self.leftovers() and not self.hopeless):
            wait = min(self.kill_at, self.look_at) - time.monotonic()
            for key, _ in self.selector.select(None if wait == INFINITY else max(wait, 0.0)):
                key.data()
            self.act()
        for worker in self.workers:
            rounds = range(64)  # a pipe holds less; who still writes is not waited for
            any(not self.take_output(worker) for _ in rounds if worker.output >= 0)
        self.finish()

    def finish(self) -> None:
        """The last word, on the disk for certain."""
        cgroups.remove(self.cgroup)
        for worker in self.workers:
            if worker.log.dropped:
                self.note(f"{worker.title}: {worker.log.dropped} bytes of output were dropped")
            worker.log.close()
        ending = {
            "how": self.how,
            "code": self.code,
            "workers": [worker.end() for worker in self.workers],
            "ended_at": time.time(),
            "note": "; ".join(self.notes),
        }
        try:
            self.keep(json.dumps(ending).encode())
        except OSError:  # then at least who listens now shall know
            self.send_news(f"E{self.how} {self.code}\n".encode())
            raise

    def keep(self, data: bytes) -> None:
        """Make exit.json whole or not at all, also through a power cut."""
        fd = os.open(self.path("exit.json.tmp"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
        os.close(fd)
        os.rename(self.path("exit.json.tmp"), self.path("exit.json"))
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(fd)
        os.close(fd)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def main(directory: str) -> int:
    """Run the attempt that this directory describes."""
    shim = Shim(directory)
    if not shim.claim():
        return 0
    try:
        shim.run()
    except BaseException as error:
        # A mistake of ours: take everything down and say so, rather than leave devices in use.
        shim.send_everybody(signal.SIGKILL)
        shim.how, shim.code = "lost", 125
        shim.note(f"bough's watcher broke: {type(error).__name__}: {error}")
        shim.finish()
        raise
    return 0
