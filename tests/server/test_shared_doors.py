"""One daemon of root's for all, by the back door: files, signals, links, environments, traces.

Two users are made for it. One has a job that runs; the other tries everything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.daemons import PATIENCE_SECONDS
from tests.server.accounts import Machine, Person
from tests.server.test_daemon import sentence

from bough.backends.attempts import read_shim
from bough.home import attempt_dir, socket_path

#: What others may read of a home: who serves it, how it was begun, and where a gang's hosts are.
OPEN = {"daemon.json", "up.args", "hostfile"}


def test_no_file_of_the_daemon_can_be_read_or_changed_by_others(machine: Machine) -> None:
    home, ben = machine.daemon.home, machine.ben
    files = [path for path in home.rglob("*") if path.name not in OPEN]
    assert {"bough.db", "daemon.log", "launch.json", "worker-0.log"} <= {p.name for p in files}
    tried = "\n".join(map(str, files))
    program = (
        "import os, sys\n"
        "for path in sys.stdin.read().split('\\n'):\n"
        "    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC):\n"
        "        try:\n"
        "            os.close(os.open(path, flags | os.O_NONBLOCK)); print('opened', path, flags)\n"
        "        except OSError: pass\n"
        "    for act in (os.unlink, os.rmdir, lambda p: os.rename(p, '/tmp/x'),\n"
        "                lambda p: os.symlink('/etc/passwd', p + '.1'),\n"
        "                lambda p: os.link(p, '/tmp/bough-linked')):\n"
        "        try:\n"
        "            act(path); print('changed', path)\n"
        "        except OSError: pass\n"
    )
    (machine.ben.home / "try.py").write_text(program)
    (machine.ben.home / "try.py").chmod(0o644)
    done = subprocess.run(
        ["/usr/bin/env", "python3", str(machine.ben.home / "try.py")],
        input=tried, user=ben.uid, group=ben.gid, extra_groups=(), cwd="/", text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    places = {str(path) for path in files if path.is_dir()}
    opened = [line for line in done.stdout.splitlines() if line.split()[1] not in places]
    assert opened == []
    for folder in (home, home / "jobs", home / "jobs" / machine.job):
        assert ben.run("ls", str(folder)).returncode != 0, folder


def test_the_socket_cannot_be_replaced(machine: Machine) -> None:
    place, ben = socket_path(machine.daemon.home), machine.ben
    for words in (("rm", "-f", str(place)), ("mv", str(place), str(ben.home)),
                  ("ln", "-sf", "/nowhere", str(place)), ("touch", f"{place}.new")):  # fmt: skip
        assert ben.run(*words).returncode != 0, words
    assert ben.bough("status").returncode == 0


def test_signals_do_not_reach_anothers_processes(machine: Machine) -> None:
    facts = read_shim(attempt_dir(machine.daemon.home, machine.job, 1))
    assert facts is not None
    for pid in (facts.pid, machine.daemon.pid, facts.workers[0].pid):
        assert machine.ben.run("sh", "-c", f"kill -9 {pid}").returncode != 0
    # Nor do they come from the worker itself to those who watch over it.
    done = machine.anna.bough("run", "--", "sh", "-c", f"kill -9 $PPID {machine.daemon.pid}")
    assert done.returncode == 1
    assert "not permitted" in done.stderr + done.stdout
    assert machine.daemon.runs


@pytest.mark.parametrize("how", ["itself", "link", "link to a link", "up and down"])
def test_no_folder_is_entered_that_the_user_could_not(machine: Machine, how: str) -> None:
    ben, there = machine.ben, machine.anna.home
    place = ben.home / how.replace(" ", "-")
    if how == "itself":
        place = there
    elif how == "up and down":
        place = ben.home / ".." / there.name
    else:
        middle = ben.home / "middle"
        middle.unlink(missing_ok=True)
        middle.symlink_to(there)
        place.symlink_to(middle if "to a" in how else there)
    program = (
        "import sys; from bough.client import Client; from bough.core.model import JobSpec;"
        "from bough.records import Recipe, Submission;"
        "recipe = Recipe(argv=('ls',), cwd=sys.argv[1], env={'PATH': '/usr/bin:/bin'});"
        "job = Submission(spec=JobSpec(name='x'), recipe=recipe);"
        "print(Client.connect().submit(job).id)"
    )
    id = ben.python("-c", program, str(place)).stdout.strip()
    ended = machine.over(id)
    assert ended.startswith("failed 126")
    assert "cannot be used: Permission denied" in ended


def test_a_folder_that_changes_under_our_feet_leads_nowhere_else(machine: Machine) -> None:
    """Whatever it is when the job begins, it is entered with the user's rights alone."""
    ben = machine.ben
    race = ben.home / "race"
    program = (
        "import os, sys, threading\n"
        "from bough.client import Client\nfrom bough.core.model import JobSpec\n"
        "from bough.records import Recipe, Submission\n"
        "own, other, race = sys.argv[1:]\n"
        "stop = threading.Event()\n"
        "def swap():\n"
        "    while not stop.is_set():\n"
        "        for target in (own, other):\n"
        "            os.symlink(target, race + '.new'); os.rename(race + '.new', race)\n"
        "thread = threading.Thread(target=swap); thread.start()\n"
        "client = Client.connect()\n"
        "path = {'PATH': '/usr/bin:/bin'}\n"
        "recipe = Recipe(argv=('sh', '-c', 'pwd -P; ls'), cwd=race, env=path)\n"
        "jobs = [client.submit(Submission(spec=JobSpec(name='x'), recipe=recipe))\n"
        "        for _ in range(20)]\n"
        "for job in jobs: client.wait(job.id)\n"
        "stop.set(); thread.join()\n"
        "print(*(job.id for job in jobs))\n"
    )
    (machine.anna.home / "private").write_text("")
    race.symlink_to(ben.home)
    done = ben.python("-c", program, str(ben.home), str(machine.anna.home), str(race))
    assert done.returncode == 0, done.stderr
    for id in done.stdout.split():
        ended = machine.over(id)
        assert "private" not in ended
        assert ended.startswith(f"done 0\n{ben.home}\n") or "Permission denied" in ended


def test_an_environment_reaches_nobody_who_watches_over_the_job(machine: Machine) -> None:
    """What makes programs load other code is for the job's own processes, which are its user's."""
    ben, trap = machine.ben, machine.ben.home / "trap"
    trap.mkdir()
    ben_owns(ben, trap)
    told = trap / "who"
    spring = f"import os\nopen({str(told)!r}, 'a').write(f'{{os.geteuid()}}\\n')\n"
    names = ("sitecustomize", "usercustomize", "json", "selectors", "bough", "resource")
    for name in names:
        (trap / f"{name}.py").write_text(spring)
        ben_owns(ben, trap / f"{name}.py")
    variables = {
        "PYTHONPATH": str(trap), "PYTHONHOME": str(trap), "PYTHONSTARTUP": str(trap / "json.py"),
        "PYTHONUSERBASE": str(trap), "LD_LIBRARY_PATH": str(trap), "PATH": f"{trap}:/usr/bin:/bin",
        "BOUGH_HOME": str(trap), "BOUGH_ATTEMPT_DIR": "/root", "IFS": "/", "ENV": "/root/x",
        "LC_ALL": "../../etc", "TMPDIR": "/root",
    }  # fmt: skip
    if shutil.which("gcc"):
        source = (
            "#include <stdio.h>\n#include <unistd.h>\n"
            "unsigned la_version(unsigned version) { return version; }\n"
            "__attribute__((constructor)) static void spring(void) {"
            f'FILE *f = fopen("{told}", "a");'
            'if (f) { fprintf(f, "%d\\n", geteuid()); fclose(f); } }'
        )
        library = trap / "trap.so"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)],
            input=source, text=True, check=True,
        )  # fmt: skip
        library.chmod(0o755)
        variables["LD_PRELOAD"] = str(library)
        variables["LD_AUDIT"] = str(library)
    options = [word for item in variables.items() for word in ("-e", "=".join(item))]
    id = ben.submit(*options, "--", "sh", "-c", "echo ran")
    assert machine.over(id) == "done 0\nran\n"
    if "LD_PRELOAD" in variables:
        assert set(told.read_text().split()) == {str(ben.uid)}, "it was loaded by the job alone"
    else:
        assert not told.exists()


def ben_owns(ben: Person, path: Path) -> None:
    os.chown(path, ben.uid, ben.gid)


def test_what_a_job_does_to_its_own_folders_leads_root_nowhere(machine: Machine) -> None:
    """They are made anew, or used again, by root: neither may be a link to something else."""
    anna, before = machine.anna, (os.stat("/etc").st_uid, os.stat("/etc/passwd").st_uid)
    tricks = (
        'cd /; for d in "$BOUGH_JOB_DIR" "$BOUGH_ATTEMPT_DIR"; do'
        " rm -rf $d/* ; ln -s /etc $d/link; ln -s /etc/passwd $d/log; "
        " mv $d $d.old 2>/dev/null && echo moved; rmdir $d 2>/dev/null && echo removed;"
        " ln -sfn /etc $d 2>/dev/null;"
        " ln -sf /etc/passwd $(dirname $d)/worker-0.log && echo linked;"
        " true > $(dirname $d)/exit.json && echo wrote; done; exit 3"
    )
    id = anna.submit("--retry", "1", "--", "sh", "-c", tricks)
    with machine.daemon.client() as client:
        ended = client.wait(id, PATIENCE_SECONDS)
        attempts = client.job(id).attempts
        printed = "".join(client.log_bytes(id, each.epoch, 0).decode() for each in attempts)
    assert (ended.state, ended.code) == ("failed", 3)
    assert len(attempts) == 2
    for word in ("moved", "removed", "linked", "wrote"):
        assert word not in printed.split()
    assert (os.stat("/etc").st_uid, os.stat("/etc/passwd").st_uid) == before
    kept = machine.daemon.home / "jobs" / id / "kept"
    assert not kept.is_symlink()
    assert kept.stat().st_uid == anna.uid


@pytest.mark.parametrize("role", ["../../../../tmp/x", "..", "a/b", "x\ny", "-rf", "$(id)"])
def test_a_role_is_no_path(machine: Machine, role: str) -> None:
    program = (
        "import sys; from bough.client import Client; from bough.core.model import *;"
        "from bough.records import Recipe, Submission;"
        "role = Role(name=sys.argv[1], count=Range(min=1, max=1));"
        "recipe = Recipe(roles={sys.argv[1]: ('true',)}, cwd='/', env={'PATH': '/bin'});"
        "print(Client.connect().submit(Submission(spec=JobSpec(name='x', roles=(role,)),"
        " recipe=recipe)).id)"
    )
    done = machine.ben.python("-c", program, role)
    if done.returncode == 0:
        id = done.stdout.strip()
        assert machine.over(id).startswith("done")
        logs = [path for path in (machine.daemon.home / "jobs" / id / "1").iterdir()
                if path.name.endswith(".log")]  # fmt: skip
        assert sorted(path.name[0] for path in logs) != []
        assert all(path.name.replace("_", "").replace("-", "")[:1].isalnum() for path in logs)
    else:
        assert "may not contain slashes or control characters" in done.stderr


# ------------------------------------------------------------------------------- root's own hand


def test_who_pretends_to_watch_over_a_job_gets_nothing_ended(machine: Machine) -> None:
    """A daemon that begins sweeps up what earlier ones left, by what processes say of them."""
    ben, directory = machine.ben, attempt_dir(machine.daemon.home, machine.job, 1)
    finished = machine.anna.submit("--", "true")
    machine.over(finished)
    old = attempt_dir(machine.daemon.home, finished, 1)
    pretenders = [
        subprocess.Popen(
            ["sh", "-c", "exec sleep 1000", "shim.py", str(path)],
            user=ben.uid, group=ben.gid, extra_groups=(), cwd="/",
            env={"BOUGH_ATTEMPT_DIR": str(path / "scratch"), "PATH": "/bin"},
        )
        for path in (directory, old)
    ]  # fmt: skip
    try:
        machine.daemon.kill()
        assert machine.daemon.bough("up", "--system", "--devices", "cpu:4").returncode == 0
        with machine.daemon.client() as client:
            job = client.job(machine.job).job
        assert (job.state, job.epoch) == ("running", 1)
        assert [each.poll() for each in pretenders] == [None, None]
    finally:
        for each in pretenders:
            each.kill()
            each.wait()


def test_a_shim_that_is_killed_costs_nobody_else_a_process(machine: Machine) -> None:
    anna, ben = machine.anna, machine.ben
    id = anna.submit("--", "sleep", "1000")
    with machine.daemon.client() as client:
        happenings = client.events(0)
        next(e for e in happenings if e.type == "Started" and e.data["id"] == id)
        directory = attempt_dir(machine.daemon.home, id, 1)
        facts = read_shim(directory)
        assert facts is not None
        bystander = subprocess.Popen(
            ["sleep", "1000"], user=ben.uid, group=ben.gid, extra_groups=(), cwd="/",
            env={"BOUGH_ATTEMPT_DIR": str(directory / "scratch"), "PATH": "/bin"},
            start_new_session=True,
        )  # fmt: skip
        try:
            os.kill(facts.pid, 9)
            next(e for e in happenings if e.type == "Exited" and e.data["id"] == id)
            assert bystander.poll() is None, "it only says that it belongs to her job"
        finally:
            bystander.kill()
            bystander.wait()
        client.stop(id)


def test_the_daemon_of_root_wants_a_home_that_is_roots(machine: Machine) -> None:
    room = machine.daemon.home.parent
    for name, owner, mode in (("theirs", machine.ben.uid, 0o755), ("open", 0, 0o777)):
        parent = room / name
        parent.mkdir()
        os.chown(parent, owner, owner)
        parent.chmod(mode)
        for home in (parent, parent / "below"):
            home.mkdir(exist_ok=True)
            done = machine.daemon.bough(
                "up", "--system", "--devices", "cpu:1", env={"BOUGH_HOME": str(home)}
            )
            said = sentence(done)
            assert f"{parent}: may be changed by others than root" in said
    link = room / "link"
    link.symlink_to(room / "theirs" / "below")
    done = machine.daemon.bough("up", "--system", env={"BOUGH_HOME": str(link)})
    assert "may be changed by others than root" in sentence(done)


def test_what_another_user_left_is_not_unpickled(machine: Machine) -> None:
    """`Job.result` runs what is in it: an admin who asks for a user's result would run it."""
    ben, trap = machine.ben, machine.ben.home / "spool"
    program = (
        "import os, pickle, sys\n"
        "class Trap:\n"
        "    def __reduce__(self): return os.system, (f'id -u >> {sys.argv[1]}/sprung',)\n"
        "os.makedirs(sys.argv[1], exist_ok=True)\n"
        "open(f'{sys.argv[1]}/{sys.argv[2]}-1-0', 'wb').write(pickle.dumps((Trap(), b'', '')))\n"
    )
    id = ben.submit("--", "/bin/true", "-P", "-m", "bough.functions", str(trap))
    assert machine.over(id).startswith("done 0")
    assert ben.python("-c", program, str(trap), id).returncode == 0
    asks = f"import bough; print(bough.job({id!r}).result())"
    done = subprocess.run(
        [sys.executable, "-c", asks], env=machine.daemon.env, capture_output=True, text=True,
        check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode != 0
    assert "is another user's" in done.stderr
    assert not (trap / "sprung").exists()
