"""What an attempt leaves on the disk: the files that daemon and shim read of each other."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from bough.backends import processes
from bough.backends.base import LogFile
from bough.core.exits import NOTES
from bough.core.model import Exited, Frozen
from bough.home import attempt_dir, job_dir
from bough.records import Ending, Launch

T = TypeVar("T")
_log = logging.getLogger(__name__)


class WorkerFacts(Frozen, frozen=True):
    """One worker, as shim.json names it."""

    rank: int
    pid: int
    start_ticks: int


class ShimFacts(Frozen, frozen=True):
    """Who watches over an attempt, and over whom. Process 0: nobody ever will."""

    pid: int = 0
    start_ticks: int = 0
    boot_id: str = ""
    state: str = ""
    workers: tuple[WorkerFacts, ...] = ()
    cgroup: str = ""


class Pointer(Frozen, frozen=True):
    """Names another attempt of the same job."""

    epoch: int


# ---------------------------------------------------------------------------------- reading


def read_launch(directory: Path) -> Launch | None:
    """What was to be run."""
    return _read(directory / "launch.json", Launch)


def read_shim(directory: Path) -> ShimFacts | None:
    """Who watches; None when nobody has claimed the attempt."""
    path = directory / "shim.json"
    return _read(path, ShimFacts) or (ShimFacts() if path.exists() else None)


def read_ending(directory: Path) -> Ending | None:
    """How it ended, if it did."""
    return _read(directory / "exit.json", Ending)


def exited(ending: Ending, job: str, epoch: int, at: float) -> Exited:
    """What the scheduler is told of it, and so everybody.

    Of a failure's note that is only what decides on another try: the rest is its owner's to read.
    """
    note = ending.note
    if ending.how != "lost":
        note = next((words for words, _ in NOTES if words in note), "")
    return Exited(at=at, id=job, epoch=epoch, why=ending.how, code=ending.code, note=note)


def directory_of(home: Path, job: str, epoch: int) -> Path:
    """Where the processes of that epoch have their files: it may go on with older ones."""
    directory = attempt_dir(home, job, epoch)
    older = _read(directory / "continues.json", Pointer)
    return directory if older is None else attempt_dir(home, job, older.epoch)


def parked(home: Path, job: str) -> Path | None:
    """The attempt that is frozen, or is to be."""
    found = _read(job_dir(home, job) / "parked.json", Pointer)
    return None if found is None else attempt_dir(home, job, found.epoch)


def logs(directory: Path) -> list[LogFile]:
    """All logs, worker by worker; those of one worker from the oldest part to the newest."""
    launch = read_launch(directory)
    found = []
    for worker in launch.workers if launch else ():
        parts = [f".{number}" for number in range(launch.log_keep if launch else 0, 0, -1)]
        for part in (*parts, ""):
            path = directory / f"{worker.log}{part}"
            with contextlib.suppress(OSError):
                found.append(LogFile(worker.role, worker.rank, path, path.stat().st_size))
    return found


def _read(path: Path, kind: type[T]) -> T | None:
    """A file that is absent, or was torn by a power cut, says nothing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


# ---------------------------------------------------------------------------------- writing


def write(path: Path, record: msgspec.Struct, *, durable: bool = False) -> None:
    """Whole or not at all."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        if durable:
            os.fsync(fd)
    scratch.rename(path)


def conclude(directory: Path, ending: Ending) -> None:
    """What the shim would have written, were there one."""
    try:
        write(directory / "exit.json", ending, durable=True)
    except OSError as error:
        _log.warning("%s/exit.json cannot be written: %s", directory, error)


def lost(facts: ShimFacts | None, at: float) -> Ending:
    """The end of an attempt whose shim is gone and says nothing."""
    note = "bough's watcher over the job was killed"
    if facts is not None and facts.pid and facts.boot_id != processes.boot_id():
        note = "the machine was restarted"
    return Ending(how="lost", code=125, ended_at=at, note=note)


def void(directory: Path) -> bool:
    """Claim an attempt that nobody has claimed, so that it never begins; False: too late."""
    mine = directory / f"shim.json.void.{os.getpid()}"
    write(mine, ShimFacts())
    try:
        os.link(mine, directory / "shim.json")
    except FileExistsError:
        return False
    finally:
        mine.unlink()
    return True


def park(home: Path, job: str, directory: Path) -> None:
    """Note that this attempt is frozen, or about to be."""
    write(job_dir(home, job) / "parked.json", Pointer(epoch=int(directory.name)))


def unpark(home: Path, job: str) -> None:
    """Nothing of the job is frozen."""
    with contextlib.suppress(OSError):  # what it names will be found dead
        (job_dir(home, job) / "parked.json").unlink()


def go_on(home: Path, job: str, epoch: int, directory: Path) -> None:
    """This epoch is carried on by the processes of an older one."""
    new = attempt_dir(home, job, epoch)
    if new == directory:
        return
    new.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(new / "continues.json", Pointer(epoch=int(directory.name)))


# ---------------------------------------------------------------------------------- who is left


def pidfd_of(facts: ShimFacts) -> int | None:
    """A handle on the shim that is alive; None when it is gone, or the number is another's now."""
    if not facts.pid or facts.boot_id != processes.boot_id():
        return None
    try:
        pidfd = os.pidfd_open(facts.pid)
    except OSError:
        return None
    process = processes.find(facts.pid)  # after the handle: it and the number mean the same now
    if process is None or process.ended or process.start_ticks != facts.start_ticks:
        os.close(pidfd)
        return None
    return pidfd


def remains(directory: Path, facts: ShimFacts | None) -> list[processes.Process]:
    """What still runs of an attempt whose shim was killed.

    Either it is in a worker's session (whose number cannot have been given out again while it is in
    use), or it carries the attempt's name in its environment, wherever it went. Once a session is
    over its number may be somebody else's: then it has another leader, and it is not ours.
    """
    if facts is None or facts.boot_id != processes.boot_id():
        return []
    began = {w.pid: w.start_ticks for w in facts.workers if _leads(w.pid, w.start_ticks)}
    launch = read_launch(directory)
    user = -1 if launch is None else launch.uid
    mark = b"BOUGH_ATTEMPT_DIR=" + os.fsencode(scratch_dir(directory))
    return [
        process
        for process in processes.everyone()
        if process.pid != os.getpid()
        and (
            process.start_ticks >= began.get(process.session, 1 << 62)
            or (process.start_ticks >= facts.start_ticks and mark in _environment(process.pid))
        )
        and (user < 0 or processes.user_of(process.pid) in (user, 0))
    ]


def _leads(pid: int, start_ticks: int) -> bool:
    """Nobody else leads the session of that number; its own leader may have ended."""
    leader = processes.find(pid)
    return leader is None or leader.start_ticks == start_ticks


def scratch_dir(directory: Path) -> Path:
    """The part of an attempt's directory that belongs to the job itself."""
    return directory / "scratch"


def kept_dir(home: Path, job: str) -> Path:
    """What the job itself keeps between its attempts."""
    return job_dir(home, job) / "kept"


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
