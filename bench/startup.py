"""Start-up time of `import bough`, `bough --help` and short commands, against bare Python.

Prints the best of several runs, because what a busy machine adds is not ours. The commands ask a
daemon that runs. Exits with 1 when a limit is passed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping

from served import daemon, scratch

RUNS = 20
MAIN = "import sys; from bough.cli import main; sys.exit(main(sys.argv[1:]))"
#: What is measured: the code and its arguments, and the most milliseconds it may take above bare
#: Python (None: any).
CASES: dict[str, tuple[tuple[str, ...], float | None]] = {
    "bare Python": (("pass",), None),
    "import bough": (("import bough",), 60),
    "import click": (("import click",), None),
    "bough --help": ((MAIN, "--help"), 150),
    "bough run --help": ((MAIN, "run", "--help"), 150),
    "import http.client": (("import http.client",), None),
    "bough status": ((MAIN, "status"), 200),
    "bough ls": ((MAIN, "ls"), 200),
    "bough devices": ((MAIN, "devices"), 200),
}


def best_ms(code: tuple[str, ...], env: Mapping[str, str]) -> float:
    """The shortest of several fresh interpreters running `code`, in milliseconds."""
    command = [sys.executable, "-c", *code]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)  # fills the disk cache
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        times.append(time.perf_counter() - started)
    return min(times) * 1000


def main() -> int:
    with scratch(None) as folder, daemon(folder, "startup") as served:
        measured = {name: best_ms(code, served.env) for name, (code, _) in CASES.items()}
    bare = measured["bare Python"]
    slow = 0
    print(f"{'':18} {'ms':>7} {'above bare':>11} {'ratio':>6} {'limit':>6}")
    for name, ms in measured.items():
        limit = CASES[name][1]
        above = ms - bare
        verdict = "" if limit is None or above < limit else "  TOO SLOW"
        slow += bool(verdict)
        shown = "" if limit is None else f"{limit:.0f}"
        print(f"{name:18} {ms:7.1f} {above:11.1f} {ms / bare:6.2f} {shown:>6}{verdict}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
