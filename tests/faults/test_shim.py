"""What the shim does for workers that behave: real processes, each test its own attempt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.faults.watched import FOREVER, KIB, MIB, SHIM, WatchedAttempt
from tests.faults.witness import PATIENCE_SECONDS

from bough.backends import attempts, shim

#: Signals that glibc keeps to itself; who runs the tests may have them ignored, and nobody minds.
OF_THE_C_LIBRARY = 0b11 << 31

root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root may do this")


# ---------------------------------------------------------------------------------- the ordinary


def test_what_ended_well_is_done(attempt: WatchedAttempt) -> None:
    attempt.launch("echo one; echo two >&2")
    end = attempt.end()
    assert (end.how, end.code, end.note) == ("done", 0, "")
    assert attempt.log() == "one\ntwo\n"
    (worker,) = end.workers
    assert (worker.rank, worker.role, worker.code, worker.signal) == (0, "worker", 0, 0)
    assert 0 < worker.started_at <= worker.ended_at <= end.ended_at
    assert worker.memory_max_bytes > 100 * KIB


def test_processor_time_and_memory_are_counted(attempt: WatchedAttempt) -> None:
    work = "data = b'x' * (60 << 20); import time\nwhile time.process_time() < 0.2: pass"
    attempt.launch(f'exec {sys.executable} -I -S -c "{work}"')
    (worker,) = attempt.end().workers
    assert 0.2 <= worker.cpu_seconds < 2.0
    assert 60 * MIB < worker.memory_max_bytes < 120 * MIB


def test_a_worker_begins_with_a_clean_slate(attempt: WatchedAttempt) -> None:
    attempt.launch(
        "ls -l /proc/self/fd | grep -c ' -> '; readlink /proc/self/fd/0; env | sort;"
        " grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; cut -d' ' -f5,6 /proc/$$/stat; echo $$",
        env={"ONLY": "this"},
    )
    attempt.end()
    lines = attempt.log().splitlines()
    assert lines[0] == "4"  # in, out, err, and the directory that ls reads
    assert lines[1] == "/dev/null"
    names = {line.split("=")[0] for line in lines if "=" in line}
    assert names - {"PWD", "OLDPWD", "_", "SHLVL"} == {"BELL", "ONLY", "PATH"}
    assert "SigBlk:\t0000000000000000" in lines
    (ignored,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    assert ignored & ~OF_THE_C_LIBRARY == 0
    group, session = lines[-2].split()
    assert group == session == lines[-1]


def test_all_that_was_printed_is_kept(attempt: WatchedAttempt) -> None:
    attempt.launch(f"exec {sys.executable} -I -S -c \"print('x' * 700000, end='')\"")
    attempt.end()
    assert attempt.log() == "x" * 700_000


def test_the_shim_is_small(attempt: WatchedAttempt) -> None:
    attempt.launch(*['echo ready > "$BELL"; exec sleep 1000'] * 8, env={"BIG": "x" * 100_000})
    for _ in range(8):
        attempt.bell.wait()
    assert attempt.heard() == "R"
    status = Path(f"/proc/{attempt.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)
    assert resident <= 12 * KIB, f"{resident} kB resident"
    assert "Threads:\t1\n" in status


def test_the_shim_needs_nothing_but_the_standard_library() -> None:
    code = (
        f"import sys; sys.path.append({str(Path(shim.__file__).parents[2])!r});"
        "import bough.backends.supervisor; print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    rooms = {name.split(".")[0] for name in done.stdout.split()}
    assert rooms - sys.stdlib_module_names <= {"__main__", "bough"}
    assert not {"typing", "subprocess", "threading", "msgspec"} & rooms


def test_it_says_who_it_is_and_whom_it_watches(attempt: WatchedAttempt) -> None:
    attempt.launch('echo $$ > "$BELL"; exec sleep 1000')
    worker = attempt.bell.pid()
    assert attempt.heard() == "R"
    facts = json.loads((attempt.directory / "shim.json").read_text())
    stat = Path(f"/proc/{attempt.pid}/stat").read_text().rpartition(")")[2].split()
    assert facts["pid"] == attempt.pid
    assert facts["start_ticks"] == int(stat[19])
    assert facts["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert facts["state"] == "running"
    assert [found["pid"] for found in facts["workers"]] == [worker]


def test_nobody_else_may_read_what_it_writes(attempt: WatchedAttempt) -> None:
    attempt.launch("echo secret")
    attempt.end()
    for name in ("shim.json", "exit.json", "worker-0.log"):
        assert (attempt.directory / name).stat().st_mode & 0o077 == 0


# ---------------------------------------------------------------------------------- gangs and ends


def test_one_failure_takes_the_gang_down(attempt: WatchedAttempt) -> None:
    wait = 'echo ready > "$BELL"; exec sleep 1000'
    attempt.launch(wait, wait, 'read line < "$GATE"; exit 7', env=attempt.gate())
    attempt.bell.wait()
    attempt.bell.wait()
    attempt.open_gate()
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 7)
    assert end.note == "worker 2 ended with exit code 7"
    assert [(w.code, w.signal) for w in end.workers] == [(143, 15), (143, 15), (7, 0)]


def test_a_worker_that_is_done_early_is_no_failure(attempt: WatchedAttempt) -> None:
    attempt.launch("exit 0", 'read line < "$GATE"; exit 0', env=attempt.gate())
    attempt.open_gate()
    assert attempt.end().how == "done"


def test_a_worker_that_was_killed_is_told_in_words(attempt: WatchedAttempt) -> None:
    attempt.launch('echo $$ > "$BELL"; exec sleep 1000', "exec sleep 1000")
    os.kill(attempt.bell.pid(), signal.SIGKILL)
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 137)
    assert end.note == "worker 0 was killed by signal 9 (out of memory?)"
    assert end.workers[0].signal == 9


def test_a_crash_is_told_in_words(attempt: WatchedAttempt) -> None:
    attempt.launch("ulimit -c 0; kill -SEGV $$")
    assert attempt.end().note == "worker 0 was killed by signal 11 (SIGSEGV)"


def test_a_stop_is_graceful(attempt: WatchedAttempt) -> None:
    attempt.launch("trap 'echo saved; exit 0' TERM; echo ready > \"$BELL\"; " + FOREVER)
    attempt.bell.wait()
    attempt.tell(signal.SIGTERM)
    end = attempt.end()
    assert (end.how, end.code) == ("stopped", 0)
    assert attempt.log().splitlines()[-1] == "saved"


def test_who_ignores_the_polite_signal_is_killed_after_the_grace(attempt: WatchedAttempt) -> None:
    attempt.launch("trap '' TERM; echo ready > \"$BELL\"; " + FOREVER, grace_seconds=0.2)
    attempt.bell.wait()
    attempt.tell(signal.SIGTERM)
    end = attempt.end()
    assert (end.how, end.workers[0].signal) == ("stopped", 9)
    assert end.ended_at - end.workers[0].started_at >= 0.2


def test_a_stop_before_anything_runs_is_a_stop(attempt: WatchedAttempt) -> None:
    attempt.launch("exec sleep 1000", start=False)
    rings = f"open({str(attempt.bell.path)!r}, 'w').write('ready\\n')"
    attempt.spawn(f"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); {rings}")
    attempt.bell.wait()
    attempt.tell(signal.SIGTERM)
    assert attempt.end().how == "stopped"


def test_who_only_serves_does_not_keep_a_gang_alive(attempt: WatchedAttempt) -> None:
    attempt.launch("exec sleep 1000", "exit 0", "exit 0", serves=(0,))
    end = attempt.end()
    assert (end.how, [w.signal for w in end.workers]) == ("done", [15, 0, 0])


def test_the_first_failure_decides_even_if_a_stop_follows(attempt: WatchedAttempt) -> None:
    stubborn = 'trap \'echo heard > "$BELL"\' TERM; echo ready > "$BELL"; ' + FOREVER
    fails = 'read line < "$GATE"; exit 3'
    attempt.launch(stubborn, fails, env=attempt.gate(), grace_seconds=0.2)
    assert attempt.bell.wait() == "ready"
    attempt.open_gate()
    assert attempt.bell.wait() == "heard"
    attempt.tell(signal.SIGTERM)
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 3)


# ---------------------------------------------------------------------------------- cannot start


@pytest.mark.parametrize(
    ("argv", "cwd", "code", "sentence"),
    [
        (("no-such-command",), "/", 127, "cannot run 'no-such-command': No such file"),
        (("/no/such/file",), "/", 127, "cannot run '/no/such/file': No such file"),
        (("/etc/passwd",), "/", 126, "cannot run '/etc/passwd': Permission denied"),
        (("true",), "/no/such/place", 126, "the directory '/no/such/place' cannot be used: No"),
        (("true", "x" * 300_000), "/", 126, "cannot run 'true': Argument list too long"),
    ],
)
def test_what_cannot_be_started_says_why(
    attempt: WatchedAttempt, argv: Any, cwd: str, code: int, sentence: str
) -> None:
    attempt.launch(argv, cwd=cwd)
    end = attempt.end()
    assert (end.how, end.code) == ("failed", code)
    assert end.note.startswith(f"worker 0: {sentence}")
    assert attempt.log().startswith(f"bough: {sentence}")


def test_a_gang_starts_whole_or_not_at_all(attempt: WatchedAttempt) -> None:
    missing: Any = ("no-such-command",)
    attempt.launch("exec sleep 1000", missing, "exec sleep 1000")
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 127)
    assert [w.signal for w in end.workers] == [15, 0, 15]


def test_an_attempt_that_somebody_claimed_is_left_alone(attempt: WatchedAttempt) -> None:
    attempt.launch('echo here > "$BELL"', start=False)
    assert attempts.void(attempt.directory)
    attempt.spawn()
    assert attempt.process is not None
    assert attempt.process.wait(PATIENCE_SECONDS) == 0
    assert attempt.bell.silent
    assert not (attempt.directory / "exit.json").exists()


def test_a_claimed_attempt_cannot_be_made_void(attempt: WatchedAttempt) -> None:
    attempt.launch('echo here > "$BELL"; exec sleep 1000')
    attempt.bell.wait()
    assert not attempts.void(attempt.directory)
    second = subprocess.run([*SHIM, str(attempt.directory)], check=True, timeout=PATIENCE_SECONDS)
    assert second.returncode == 0
    assert attempt.bell.silent
