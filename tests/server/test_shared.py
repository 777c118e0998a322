"""One daemon of root's for all: everybody's jobs are their own, and nobody gets at another's.

Two users are made for it. One has a job that runs; the other tries everything.
"""

from __future__ import annotations

import grp
import json

import pytest
from tests.server.accounts import SECRET, Machine
from tests.server.test_daemon import sentence

# --------------------------------------------------------------------------- everybody's own jobs


def test_a_job_runs_as_whoever_submits_it(machine: Machine) -> None:
    anna = machine.anna
    tell = "id -u; id -g; id -G; pwd; echo $HOME $USER $LOGNAME; umask; ulimit -n; : > made"
    program = (
        "import os, resource, sys; os.umask(0o027);"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (321, 321));"
        f"from bough.cli import main; sys.exit(main(['run', '--', 'sh', '-c', {tell!r}]))"
    )
    done = anna.python("-c", program)
    assert done.returncode == 0, done.stderr
    uid, gid, groups, cwd, names, umask, files = done.stdout.splitlines()
    assert (int(uid), int(gid), cwd) == (anna.uid, anna.gid, str(anna.home))
    team = grp.getgrnam(f"{anna.name}team").gr_gid
    assert {int(group) for group in groups.split()} == {anna.gid, team}
    assert names == f"{anna.home} {anna.name} {anna.name}"
    assert (umask, files) == ("0027", "321")
    made = (anna.home / "made").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (anna.uid, anna.gid, 0o640)


def test_no_job_has_more_rights_than_its_user(machine: Machine) -> None:
    tell = "grep -E '^(CapPrm|CapEff|CapAmb|Uid)' /proc/self/status; ls -l /proc/self/fd | wc -l"
    done = machine.anna.bough("run", "--", "sh", "-c", tell)
    lines = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    assert set(lines["Uid"].split()) == {str(machine.anna.uid)}
    assert all(int(lines[name], 16) == 0 for name in ("CapPrm", "CapEff", "CapAmb"))
    # A heading, the three that everybody has, and the folder that `ls` reads.
    assert done.stdout.splitlines()[-1].strip() == "5", "nothing of root's is left open"


def test_a_user_reads_their_own_logs_and_changes_their_own_jobs(machine: Machine) -> None:
    anna, job = machine.anna, machine.job
    assert anna.bough("logs", job).stdout == f"{SECRET}\n"
    shown = json.loads(anna.bough("show", job, "--json").stdout)["detail"]
    assert SECRET in " ".join(shown["recipe"]["argv"])
    id = anna.submit("--", "sleep", "1000")
    assert anna.bough("stop", id).returncode == 0
    assert machine.over(id).startswith("cancelled")


# ------------------------------------------------------------------------- through the front door


@pytest.mark.parametrize(
    "words",
    [
        ("logs",), ("stop",), ("park",), ("unpark",), ("retry",), ("scale", "2"),
        ("move", "--queue", "default"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_another_users_job_is_not_ones_own_to_touch(
    machine: Machine, words: tuple[str, ...]
) -> None:
    said = sentence(machine.ben.bough(words[0], machine.job, *words[1:]))
    assert f"is {machine.anna.name}'s; only they and admins may do that" in said
    with machine.daemon.client() as client:
        job = client.job(machine.job).job
    assert (job.state, job.epoch, job.devices) == ("running", 1, 1)


def test_others_see_that_a_job_is_there_and_not_what_it_is(machine: Machine) -> None:
    said = ""
    for words in (("ls",), ("ls", "--all", "--json"), ("show", machine.job),
                  ("show", machine.job, "--json"), ("why", machine.job), ("history",),
                  ("top", "--json"), ("devices", "--json"), ("user", "ls", "--json")):  # fmt: skip
        said += machine.ben.bough(*words).stdout
    assert machine.anna.name in said
    assert "s3cret" not in said


def test_nobody_can_say_that_they_are_somebody_else(machine: Machine) -> None:
    program = (
        "import sys; from bough.client import Client;"
        "from bough.core.model import JobSpec;"
        "from bough.records import Recipe, Submission;"
        "client = Client.connect();"
        "spec = JobSpec(name='x', user=sys.argv[1]);"
        "recipe = Recipe(argv=('id', '-un'), cwd='/', env={'PATH': '/usr/bin:/bin'});"
        "print(client.submit(Submission(spec=spec, recipe=recipe)).id)"
    )
    for name in ("root", machine.anna.name):
        done = machine.ben.python("-c", program, name)
        assert machine.over(done.stdout.strip()) == f"done 0\n{machine.ben.name}\n"


def test_a_key_of_another_user_is_just_a_key(machine: Machine) -> None:
    program = (
        "import os; from bough.client import Client; from bough.core.model import JobSpec;"
        "from bough.records import Recipe, Submission;"
        "recipe = Recipe(argv=('true',), cwd='/', env={});"
        "job = Submission(spec=JobSpec(name='x'), recipe=recipe, key='the-same');"
        "print(Client.connect().submit(job).id)"
    )
    ids = [each.python("-c", program).stdout for each in (machine.anna, machine.ben) * 2]
    assert ids[0] == ids[2] != ids[1] == ids[3]


def test_only_root_rules(machine: Machine) -> None:
    ben = machine.ben
    for words in (("devices", "drain"), ("down",), ("config", "policy=fifo"),
                  ("token", "create", "t", "--user", machine.anna.name),
                  ("token", "create", "t", "--scope", "admin")):  # fmt: skip
        assert ben.bough(*words).returncode != 0, words
    assert machine.daemon.runs
    said = sentence(ben.bough("up", "--system"))
    assert "--system: needs root" in said
