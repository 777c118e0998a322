"""`bough run job.yaml`: jobs of a file, roles, and options that stand above what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Bough

TELL = 'import os; print(os.environ["TF_CONFIG"])'


def write(here: Path, text: str) -> str:
    (here / "job.yaml").write_text(text, encoding="utf-8")
    return "job.yaml"


def test_a_job_of_a_file(bough: Bough, here: Path) -> None:
    file = write(here, "name: hello\ncommand: echo $GREETING in $PWD\nenv: {GREETING: hi}\n")
    done = bough("run", file)
    assert (done.code, done.out) == (0, f"hi in {here}\n")


def test_options_stand_above_the_file(bough: Bough, here: Path) -> None:
    file = write(here, "name: hello\ncommand: echo $A $B\nenv: {A: file, B: file}\ndevices: 1\n")
    done = bough("run", file, "-g", "2", "-e", "A=option")
    assert sorted(done.lines) == ["[0] option file", "[1] option file"]


def test_roles_know_each_other_by_tf_config(bough: Bough, here: Path) -> None:
    tell = json.dumps([sys.executable, "-c", TELL])
    wait = json.dumps([sys.executable, "-c", f"{TELL}\nimport time; time.sleep(600)"])
    file = write(
        here,
        "name: recommender\nroles:\n"
        f"  ps: {{count: 1, devices: 0, command: {wait}}}\n"
        f"  chief: {{count: 1, devices: 1, command: {tell}}}\n"
        f"  worker: {{count: 2, devices: 1, command: {tell}}}\n"
        f"  evaluator: {{count: 1, devices: 0, command: {tell}}}\n"
        "grace: 1s\n",
    )
    done = bough("run", file)
    assert done.code == 0
    told = {}
    for line in done.lines:
        who, _, config = line.partition("] ")
        told[who.removeprefix("[")] = json.loads(config)
    roles = {each["task"]["type"] for each in told.values()}
    assert roles == {"ps", "chief", "worker", "evaluator"}
    clusters = [each["cluster"] for each in told.values()]
    counts = {name: len(who) for name, who in clusters[0].items()}
    assert counts == {"ps": 1, "chief": 1, "worker": 2}
    addresses = [address for who in clusters[0].values() for address in who]
    assert len(set(addresses)) == 4
    tasks = [each["task"]["index"] for each in told.values() if each["task"]["type"] == "worker"]
    assert sorted(tasks) == [0, 1]


def test_several_jobs_of_a_file_keep_their_order(bough: Bough, here: Path) -> None:
    file = write(
        here,
        "name: last\ncommand: echo last >> order\nafter: first\n---\n"
        "name: first\ncommand: echo first >> order\n",
    )
    assert bough("run", file).code == 0
    assert (here / "order").read_text() == "first\nlast\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: x\ncommand: a\ndevices: many\n", "bough: job.yaml:3: devices: "),
        ("name: x\ncommand: a\nquue: y\n", "bough: job.yaml:3: no field is called 'quue' (did you"),
        ("name: x\ncommand: [a\n", "bough: job.yaml:"),
        ("- &a [*a]\n", "bough: job.yaml:"),
        ("", "bough: job.yaml: "),
        ("name: x\n", "bough: job.yaml:"),
        ("name: x\ncommand: \x00\n", "bough: job.yaml:"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(
    bough: Bough, here: Path, text: str, line: str
) -> None:
    done = bough("run", write(here, text))
    assert done.code == 2
    assert done.err.startswith(line)
    assert len(done.err.splitlines()) == 1


def test_what_is_no_text(bough: Bough, here: Path) -> None:
    (here / "job.yaml").write_bytes(bytes(range(256)))
    done = bough("run", "job.yaml")
    assert (done.code, len(done.err.splitlines())) == (2, 1)


def test_a_word_after_the_file(bough: Bough, here: Path) -> None:
    done = bough("run", write(here, "name: x\ncommand: true\n"), "train")
    assert (done.code, done.err) == (
        2,
        "bough: 'train' stands after the job file; is it an option of it?\n",
    )


def test_after_two_dashes_a_file_is_a_command(bough: Bough, here: Path) -> None:
    script = here / "job.yaml"
    script.write_text("#!/bin/sh\necho I am a program\n")
    script.chmod(0o755)
    assert bough("run", "--", "./job.yaml").out == "I am a program\n"
