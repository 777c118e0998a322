"""Running the makers' programs: whatever becomes of them, the answer is a text or a sentence."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress

from bough.hardware.readings import NotHere

#: They take up to a few seconds when the driver has to wake its devices.
SECONDS_MAX = 20.0


def run(*argv: str, seconds: float = SECONDS_MAX) -> str:
    """What the program printed; NotHere says why there is nothing."""
    name = argv[0]
    if shutil.which(name) is None:
        raise NotHere(f"{name} is not installed")
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,  # some are scripts: whom they started has to go with them
        )
    except OSError as error:
        raise NotHere(f"{name} cannot be run: {error.strerror}") from None
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException as error:
        _leave(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise NotHere(f"{name} did not answer within {seconds:g} s") from None
        raise
    text = out.decode(errors="replace")
    if process.returncode:
        said = (err.decode(errors="replace").strip() or text.strip()).splitlines()
        what = said[-1][:200] if said else f"exit code {process.returncode}"
        raise NotHere(f"{name} failed: {what}")
    return text


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Kill it and all it started. Inside a driver that hangs even that takes for ever: who waits
    for it is no one who has anything else to do.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    threading.Thread(target=process.communicate, name="leaving a tool", daemon=True).start()


def number(text: object) -> float | None:
    """A number, whatever unit stands behind it; None for N/A, a dash and other absences."""
    words = str(text).replace("%", " ").split()
    try:
        value = float(words[0])
    except (IndexError, ValueError):
        return None
    return value if abs(value) < 1e18 else None  # neither infinite nor nan


def whole(text: object, scale: int = 1) -> int | None:
    """The same as a whole number of some unit."""
    value = number(text)
    return None if value is None else int(value * scale)


def share(text: object) -> float | None:
    """A percentage as a part of one."""
    value = number(text)
    return None if value is None else min(max(value / 100, 0.0), 1.0)
