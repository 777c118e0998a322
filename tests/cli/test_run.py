"""`bough run`: what each option does, seen from within the job and by the exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Bough

from bough.localtime import LOCAL

#: Prints its environment as one line of JSON.
TELL = ("--", sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))")


def environments(out: str) -> list[dict[str, str]]:
    """What each worker printed, in the order of ranks."""
    told = [json.loads(line[line.index("{") :]) for line in out.splitlines()]
    return sorted(told, key=lambda each: int(each["RANK"]))


def spec(bough: Bough, id: str) -> dict[str, Any]:
    """What the daemon knows that was asked for."""
    found: dict[str, Any] = bough("show", id, "--json").json["detail"]["spec"]
    return found


def detached(bough: Bough, *words: str) -> str:
    """The number of a job that is left alone."""
    done = bough("run", "--detach", *words)
    assert done.code == 0, done.err
    return done.out.strip()


# ------------------------------------------------------------------------- where and with what


def test_it_runs_in_the_callers_directory(bough: Bough, here: Path) -> None:
    done = bough("run", "--", "pwd")
    assert (done.code, done.out, done.err) == (0, f"{here}\n", "")


def test_cwd_is_another_directory(bough: Bough, here: Path) -> None:
    (here / "below").mkdir()
    assert bough("run", "--cwd", "below", "--", "pwd").out == f"{here / 'below'}\n"


def test_the_environment_is_the_callers(bough: Bough, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAVOUR", "vanilla")
    (told,) = environments(bough("run", *TELL).out)
    assert told["FLAVOUR"] == "vanilla"
    assert told["PATH"] == os.environ["PATH"]


def test_variables_of_the_command_line(bough: Bough, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAKEN", "from here")
    (told,) = environments(bough("run", "-e", "SEED=7=7", "-e", "TAKEN", *TELL).out)
    assert (told["SEED"], told["TAKEN"]) == ("7=7", "from here")


def test_a_variable_that_is_not_set(bough: Bough) -> None:
    done = bough("run", "-e", "NOWHERE", "--", "true")
    said = "bough: -e: NOWHERE is not set here (write -e NAME=VALUE)\n"
    assert (done.code, done.err) == (2, said)


def test_options_end_where_the_command_begins(bough: Bough) -> None:
    assert bough("run", "-g", "1", "echo", "-g", "2", "--", "--detach").out == "-g 2 -- --detach\n"


def test_what_is_printed_is_streamed_whole(bough: Bough) -> None:
    done = bough("run", "--", "sh", "-c", "seq 3000; echo oops >&2; printf 'no end of line'")
    assert done.out.splitlines() == [*map(str, range(1, 3001)), "oops", "no end of line"]


def test_secrets_are_never_displayed(bough: Bough) -> None:
    words = ("-e", "API_TOKEN=hush-hush", "-e", "PLAIN=seen", "--", "true")
    id = detached(bough, *words)
    shown = [bough("show", id), bough("show", id, "--json"), bough("run", "--dry-run", *words)]
    assert not [done for done in shown if "hush-hush" in done.out + done.err]
    assert shown[1].json["detail"]["recipe"]["env"]["PLAIN"] == "seen"


def test_but_the_job_has_them(bough: Bough) -> None:
    assert environments(bough("run", "-e", "API_TOKEN=hush-hush", *TELL).out)[0]["API_TOKEN"] == (
        "hush-hush"
    )


# ------------------------------------------------------------------------------- devices, ranks


def test_a_process_for_each_device(bough: Bough) -> None:
    told = environments(bough("run", "-g", "4", *TELL).out)
    assert [each["RANK"] for each in told] == ["0", "1", "2", "3"]
    assert [each["LOCAL_RANK"] for each in told] == ["0", "1", "2", "3"]
    assert {each["WORLD_SIZE"] for each in told} == {"4"}
    assert len({(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in told}) == 1


def test_one_process_that_sees_all(bough: Bough) -> None:
    (told,) = environments(bough("run", "-g", "4", "--launch", "one", *TELL).out)
    assert told["WORLD_SIZE"] == "1"
    assert told["BOUGH_DEVICES"].endswith(":0,1,2,3")


def test_a_host_file_for_mpi(bough: Bough) -> None:
    words = ("--launch", "one", "--", "sh", "-c", "cat $BOUGH_HOSTFILE")
    (line,) = bough("run", "-g", "4", *words).lines
    assert line.endswith("slots=4")


def test_lines_of_several_workers_say_whose_they_are(bough: Bough) -> None:
    done = bough("run", "-g", "2", "--", "sh", "-c", "echo hello")
    assert sorted(done.lines) == ["[0] hello", "[1] hello"]


def test_an_elastic_job_takes_what_there_is(bough: Bough) -> None:
    assert len(environments(bough("run", "-g", "2..8", *TELL).out)) == 4


def test_what_is_asked_for_reaches_the_daemon(bough: Bough) -> None:
    words = (
        "-g", "1..4", "--cpus", "0.5", "--mem", "64MiB", "--name", "resnet", "--queue", "vision",
        "--priority", "3", "--time", "2h", "--retry", "4", "--estimate", "10m", "--no-preempt",
    )  # fmt: skip
    found = spec(bough, detached(bough, *words, "--", "true"))
    wanted = {
        "name": "resnet", "queue": "vision", "cpus": 0.5, "memory": 64 << 20, "priority": 3,
        "max_run_seconds": 7200.0, "retries": 4, "preemptible": False,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted
    assert (found["devices"]["min"], found["devices"]["max"]) == (1, 4)


def test_a_deadline_in_the_callers_time(bough: Bough) -> None:
    from datetime import datetime

    id = detached(bough, "--deadline", "fri 18:00", "--", "true")
    deadline = bough("show", id, "--json").json["detail"]["job"]["deadline"]
    assert f"{datetime.fromtimestamp(deadline, LOCAL):%a %H:%M}" == "Fri 18:00"


def test_a_job_is_called_like_its_script(bough: Bough, here: Path) -> None:
    (here / "train.py").write_text("")
    found = spec(bough, detached(bough, "--", "python", "train.py", "--epochs", "9"))
    assert found["name"] == "train"


# ------------------------------------------------------------------------------------ exit codes


@pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
def test_the_exit_code_is_the_jobs(bough: Bough, code: int) -> None:
    assert bough("run", "--", "sh", "-c", f"exit {code}").code == code


def test_killed_by_a_signal_is_128_and_its_number(bough: Bough) -> None:
    assert bough("run", "--", "sh", "-c", "kill -SEGV $$").code == 139


def test_a_program_that_is_not_there(bough: Bough) -> None:
    done = bough("run", "--", "no-such-program")
    assert (done.code, done.out) == (
        127,
        "bough: cannot run 'no-such-program': No such file or directory\n",
    )


def test_it_says_why_a_job_failed_in_one_line(bough: Bough) -> None:
    done = bough("run", "--", "sh", "-c", "exit 3")
    (line,) = done.err.splitlines()
    assert line.startswith("bough: Job ")
    assert line.endswith(" failed: exit code 3.")


def test_one_failing_worker_ends_the_gang(bough: Bough) -> None:
    script = "test $RANK = 1 && exit 9; exec sleep 600"
    done = bough("run", "-g", "4", "--grace", "5s", "--", "sh", "-c", script)
    assert done.code == 9


def test_a_time_limit(bough: Bough) -> None:
    done = bough("run", "--time", "0.3s", "--grace", "1s", "--", "sleep", "600")
    assert done.code == 124
    assert "reached its longest run time" in done.err


def test_a_worker_that_does_not_listen_is_killed_after_its_grace(bough: Bough) -> None:
    script = "trap '' TERM; echo stubborn; while :; do sleep 1; done"
    words = ("--time", "0.3s", "--grace", "0.3s", "--", "sh", "-c", script)
    assert bough("run", *words).code == 124


def test_retries_until_it_goes_well(bough: Bough, here: Path) -> None:
    bough("config", "set", "backoff_seconds", "0.05")
    script = "echo try; test -e second && exit 0; touch second; exit 5"
    done = bough("run", "--retry", "3", "--", "sh", "-c", script)
    assert (done.code, done.out) == (0, "try\ntry\n")
    assert " failed with exit code 5; it begins again (1 device)." in done.err


def test_retries_come_to_an_end(bough: Bough) -> None:
    bough("config", "set", "backoff_seconds", "0.05")
    done = bough("run", "--retry", "2", "--", "sh", "-c", "echo try; exit 5")
    assert (done.code, done.out) == (5, "try\n" * 3)


# ------------------------------------------------------------------------------------------ order


def test_after_waits_for_any_end(bough: Bough, here: Path) -> None:
    first = detached(bough, "--", "sh", "-c", "cat gate; echo first >> order; exit 1")
    os.mkfifo(here / "gate")
    second = detached(bough, "--after", first, "--", "sh", "-c", "echo second >> order")
    assert bough("why", second, "--json").json["code"] == "dependency"
    (here / "gate").write_text("open")
    assert bough("wait", second).code == 0
    assert (here / "order").read_text() == "first\nsecond\n"


def test_after_ok_needs_success(bough: Bough, here: Path) -> None:
    os.mkfifo(here / "gate")
    first = detached(bough, "--", "sh", "-c", "cat gate; exit 1")
    second = detached(bough, "--after-ok", first, "--", "touch", "never")
    (here / "gate").write_text("open")
    assert bough("wait", second).code == 143
    assert first in bough("why", second).out
    assert not (here / "never").exists()
    assert bough("run", "--after-ok", first, "--", "true").code == 2


def test_after_a_job_that_nobody_knows(bough: Bough) -> None:
    done = bough("run", "--after", "nobody", "--", "true")
    assert done.code == 2
    assert "nobody" in done.err


def test_an_array(bough: Bough) -> None:
    done = bough("run", "--array", "0-5:2", "--name", "sweep", "--", "echo", "seed {index}")
    assert done.code == 0
    assert sorted(done.lines) == ["[sweep-0] seed 0", "[sweep-2] seed 2", "[sweep-4] seed 4"]


def test_the_exit_code_of_an_array_is_that_of_the_first_bad_one(bough: Bough) -> None:
    script = "exit $((10 * {index}))"
    assert bough("run", "--array", "0-3", "--", "sh", "-c", script).code == 10


# ------------------------------------------------------------------------------- what is printed


def test_detached_prints_the_number_alone(bough: Bough) -> None:
    done = bough("run", "-d", "--", "true")
    assert done.out.strip().isdecimal()
    assert (done.code, done.err) == (0, "")


def test_detached_array_prints_each(bough: Bough) -> None:
    done = bough("run", "-d", "--array", "0-2", "--", "true")
    assert [line.partition(".")[2] for line in done.lines] == ["0", "1", "2"]


def test_detached_json(bough: Bough) -> None:
    (job,) = bough("run", "-d", "--json", "--name", "lone", "--", "true").json
    assert job["name"] == "lone"


def test_dry_run_sends_nothing(bough: Bough, here: Path) -> None:
    (job,) = bough("run", "-g", "2", "--dry-run", "--name", "dry", "--", "echo", "hi").json
    assert job["spec"]["name"] == "dry"
    assert job["recipe"]["argv"] == ["echo", "hi"]
    assert bough("ls", "--name", "dry", "--json").json == []


# ---------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "What is to run?"),
        (("--",), "What is to run?"),
        (("-g", "many", "--", "true"), "--devices: "),
        (("-g", "8..2", "--", "true"), "--devices: "),
        (("-g", "0", "--", "true"), "--devices: "),
        (("--mem", "much", "--", "true"), "--mem: "),
        (("--cpus", "-1", "--", "true"), "--cpus: "),
        (("--deadline", "someday", "--", "true"), "--deadline: "),
        (("--time", "forever", "--", "true"), "--time: "),
        (("--retry", "x", "--", "true"), "--retry: "),
        (("--array", "9-1", "--", "true"), "--array: "),
        (("--guaranteed", "--", "true"), "deadline"),
        (("--launch", "all", "--", "true"), "--launch"),
        (("--json", "--", "true"), "--json goes with --detach"),
        (("--cwd", "nowhere", "--", "true"), "nowhere"),
        (("nothing.yaml",), "nothing.yaml"),
    ],
)
def test_a_mistake_is_one_line(bough: Bough, words: tuple[str, ...], part: str) -> None:
    done = bough("run", *words)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert part in done.err
