"""Processes are told apart for certain, and their memory is counted once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.witness import Bell, wait_for_end

from bough.backends import processes


def test_a_process_is_known_by_when_it_began() -> None:
    me = processes.find(os.getpid())
    assert me is not None
    assert (me.parent, me.session) == (os.getppid(), os.getsid(0))
    assert me.start_ticks > 0
    assert not me.ended


def test_a_name_with_brackets_and_blanks_misleads_nobody(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([odd, "1000"]) as child:
        found = processes.find(child.pid)
        child.kill()
    assert found is not None
    assert found.parent == os.getpid()


def test_who_ended_and_waits_to_be_reaped_has_ended() -> None:
    with subprocess.Popen(["true"]) as child:
        wait_for_end(child.pid)
        found = processes.find(child.pid)
        assert found is not None
        assert found.ended
        assert child.pid not in {process.pid for process in processes.descendants(os.getpid())}
    assert processes.find(child.pid) is None


def test_descendants_are_found_parents_first(bell: Bell) -> None:
    script = f"sh -c 'echo $$ > {bell.path}; sleep 1000; :' & wait"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as child:
        grandchild = bell.pid()
        found = [process.pid for process in processes.descendants(os.getpid())]
        os.killpg(child.pid, 9)
    assert found.index(child.pid) < found.index(grandchild)


def test_memory_that_is_shared_counts_once(bell: Bell) -> None:
    program = (
        "import os, time; data = b'x' * (40 << 20)\n"
        "for _ in range(3): os.fork() or time.sleep(1000)\n"
        f"open({str(bell.path)!r}, 'w').write('ready\\n'); time.sleep(1000)"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    with subprocess.Popen(command, start_new_session=True) as child:
        bell.wait()
        everybody = processes.descendants(os.getpid())
        ours = [process for process in everybody if process.session == child.pid]
        rough = processes.memory_bytes(ours, 1 << 60)
        exact = processes.memory_bytes(ours, 0)
        os.killpg(child.pid, 9)
    assert len(ours) == 4
    assert rough > 160 << 20
    assert 40 << 20 < exact < 80 << 20
