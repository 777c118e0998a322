"""A Python function as a job: it travels in a file, and so does what comes of it.

A spool is a directory of the user's own. `call` holds the function with its arguments, and each
worker leaves what became of it in a file `<job>-<attempt>-<rank>`. Run as a program, this is what
the job's processes execute.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bough.errors import BoughError, ForbiddenError, InputError
from bough.home import home

#: What a job that calls a function runs, before the name of its spool.
PROGRAM: Final = ("-P", "-m", "bough.functions")
#: Spools that nobody has used for so long are cleared away.
KEEP_SECONDS: Final = 30 * 86_400.0
_FAILED: Final = 1


class Outcome(NamedTuple):
    """What became of a call."""

    value: Any = None
    #: The exception, pickled by itself as it may not survive that; empty: it returned.
    error: bytes = b""
    #: As Python prints it.
    trace: str = ""


class CallFailedError(BoughError):
    """The function raised an exception that cannot be sent; its traceback is in the message."""


# ------------------------------------------------------------------------------- on this side


def command_of(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    """Write the call down; the command that carries it out."""
    import cloudpickle

    try:
        call = cloudpickle.dumps((function, tuple(args), dict(kwargs)))
    except Exception as error:  # whatever a user's objects come up with
        name = getattr(function, "__qualname__", repr(function))
        hint = "what it needs must be open to pickling: no locks, files or connections"
        raise InputError(f"{name} cannot be sent: {error}", hint=hint) from error
    room = home() / "functions"
    room.mkdir(mode=0o700, exist_ok=True)
    _clear(room, time.time() - KEEP_SECONDS)
    spool = room / uuid.uuid4().hex
    spool.mkdir(mode=0o700)
    (spool / "call").write_bytes(pickle.dumps((list(sys.path), call)))
    return (sys.executable, *PROGRAM, str(spool))


def spool_of(argv: Sequence[str]) -> Path | None:
    """The spool that a job's command names, if it calls a function."""
    if tuple(argv[1:-1]) != PROGRAM:
        return None
    return Path(argv[-1])


def outcome_of(spool: Path, job: str, attempts: Sequence[int], failed: bool) -> Outcome | None:
    """What rank 0 returned, or what the first rank to fail raised, in the latest attempt."""
    for attempt in sorted(attempts, reverse=True):
        found = {
            int(path.name.rpartition("-")[2]): path for path in spool.glob(f"{job}-{attempt}-*")
        }
        for rank in sorted(found):
            outcome = Outcome(*pickle.loads(_own(found[rank])))
            if bool(outcome.trace) == failed:
                return outcome
    return None


def _own(path: Path) -> bytes:
    """To unpickle is to run what is in it: nobody runs what another user left there."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            raise ForbiddenError(f"{path} is another user's, who alone may have what it returned.")
        return file.read()


def unpacked(outcome: Outcome) -> Any:
    """Return what it returned, or raise what it raised, with the traceback from over there."""
    if not outcome.trace:
        return pickle.loads(outcome.value)
    try:
        error = pickle.loads(outcome.error)
        assert isinstance(error, Exception)
    except Exception:
        raise CallFailedError(outcome.trace.rstrip()) from None
    error.add_note(f"In the job:\n{outcome.trace.rstrip()}")
    raise error


def _clear(room: Path, before: float) -> None:
    for spool in room.iterdir():
        with contextlib.suppress(OSError):  # another process does the same
            if spool.stat().st_mtime < before:
                shutil.rmtree(spool)


# --------------------------------------------------------------------------- in the job's process


def main(spool: Path) -> int:
    """Call it, and write down what became of it; the exit code."""
    where, call = pickle.loads((spool / "call").read_bytes())
    sys.path[:] = where
    rank = int(os.environ.get("RANK", "0"))
    target = spool / f"{os.environ['BOUGH_JOB']}-{os.environ['BOUGH_EPOCH']}-{rank}"
    try:
        function, args, kwargs = pickle.loads(call)
        value = function(*args, **kwargs)
        outcome = Outcome(_pickled(value)) if rank == 0 else None
    except Exception as error:
        trace = traceback.format_exc()
        sys.stderr.write(trace)
        outcome = Outcome(error=_pickled_error(error), trace=trace)
    if outcome is not None:
        _write(target, pickle.dumps(tuple(outcome)))
    return _FAILED if outcome is not None and outcome.trace else 0


def _pickled(value: Any) -> bytes:
    import cloudpickle

    found: bytes = cloudpickle.dumps(value)
    return found


def _pickled_error(error: Exception) -> bytes:
    """Empty, if it cannot be sent."""
    try:
        found = _pickled(error)
        pickle.loads(found)
    except Exception:
        return b""
    return found


def _write(target: Path, data: bytes) -> None:
    """Whole or not at all, and on the disk."""
    half = target.with_name(f".{target.name}")
    with half.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    half.rename(target)


if __name__ == "__main__":
    # Under its own name, so that what is pickled here is found there.
    from bough.functions import main as run

    sys.exit(run(Path(sys.argv[1])))
