"""Worker processes do not outlive the one that made them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ENDLESS = """
import sys, threading
from bough.sim.parallel import each

def work(shared, item, tell):
    print("began", flush=True)
    threading.Event().wait()

def quiet(share):
    pass

if __name__ == "__main__":
    import endless
    list(each(endless.work, None, [1, 2, 3], 2, quiet))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "endless.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"began\n"
        assert parent.stdout.readline() == b"began\n"
        # As from a terminal, where Ctrl-C reaches all of them.
        (os.killpg if how == signal.SIGINT else os.kill)(parent.pid, how)
        # The pipe ends when nobody holds it any more.
        assert parent.stdout.read() == b""
