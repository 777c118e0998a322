"""Job files: every good form, every mistake with the one line it is answered with."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.writings import ROOT, damaged, one_line_or_fine, texts, trees, why, yaml_blocks

from bough.core.model import After, Carbon, JobSpec, Range, Role, Wish
from bough.jobfile import (
    FIELDS,
    JOBS_MAX,
    RECIPE,
    ROLE_FIELDS,
    parse_jobs,
    parse_submissions,
    read_jobs,
)
from bough.records import Recipe

BERLIN = ZoneInfo("Europe/Berlin")
#: A Wednesday evening.
NOW = datetime(2026, 11, 18, 21, 0, tzinfo=BERLIN).timestamp()
EXAMPLES = ROOT / "examples"


def jobs(text: str) -> list[JobSpec]:
    return parse_jobs(text, now=NOW, zone=BERLIN, file="job.yaml")


def job(text: str) -> JobSpec:
    (found,) = jobs(text)
    return found


def example(name: str) -> list[JobSpec]:
    return read_jobs(EXAMPLES / f"{name}.yaml", now=NOW, zone=BERLIN)


def berlin(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


# ------------------------------------------------------------------------------- good forms


def test_a_name_is_enough() -> None:
    assert job("name: a") == JobSpec(name="a")


def test_elastic_training() -> None:
    (found,) = example("elastic")
    assert found.devices == Range(min=2, max=8)
    assert found.kinds == ("h100", "a100")
    assert found.memory == 64 * 2**30
    assert found.topology == Wish(mode="prefer", level="rack")
    assert (found.estimate_seconds, found.estimate_devices) == (6 * 3600, 4)
    assert found.command[:2] == ("/bin/sh", "-c")


def test_parameter_servers_and_workers() -> None:
    (found,) = example("parameter-server")
    ps, worker = found.roles
    assert (ps.name, ps.count, ps.devices, ps.cpus) == ("ps", Range(min=2, max=2), 0, 16)
    assert (worker.name, worker.count, worker.devices) == ("worker", Range(min=4, max=16), 1)
    assert found.sizes() == (4, 8, 16)
    assert found.min_run_seconds == 600


def test_an_array_and_what_comes_after_it() -> None:
    *members, last = example("array")
    assert [m.name for m in members] == [f"sweep-{i}" for i in range(32)]
    assert {m.array_of for m in members} == {"sweep"}
    assert [m.array_index for m in members] == list(range(32))
    assert members[7].command[-1] == "python sweep.py --seed 7"
    assert last.after == tuple(After(job=m.name, on="any") for m in members)


def test_a_deadline_that_is_kept() -> None:
    (found,) = example("deadline")
    assert found.deadline == berlin("2026-11-20 18:00")
    assert found.service == "guaranteed"
    assert found.devices.sizes() == (8, 16, 24, 32)
    assert not found.preemptible
    assert found.command == ("python", "train.py", "--config", "release.yaml")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("command: [a, '']", {"command": ("a", "")}),
        ("command: a > b", {"command": ("/bin/sh", "-c", "a > b")}),
        ("devices: 4", {"devices": Range(min=4, max=4)}),
        ("devices: [8, 2]", {"devices": Range(min=2, max=8, steps=(2, 8))}),
        ("devices: {min: 2, max: 8, steps: [3, 6]}",
         {"devices": Range(min=2, max=8, steps=(3, 6))}),
        ("devices: {max: 4}", {"devices": Range(min=1, max=4)}),
        ("roles: {w: }", {"roles": (Role(name="w"),)}),
        ("roles: [{name: w, count: 3, memory: 1kB, command: x}]",
         {"roles": (Role(name="w", count=Range(min=3, max=3), memory=1000,
                         command=("/bin/sh", "-c", "x")),)}),
        ("kinds: H100", {"kinds": ("h100",)}),
        ("kinds: [no, A100, a100]", {"kinds": ("no", "a100")}),
        ("cpus: 0.5", {"cpus": 0.5}),
        ("memory: 512", {"memory": 512}),
        ("{user: ada, queue: 'team/vision'}", {"user": "ada", "queue": "team/vision"}),
        ("priority: -3", {"priority": -3}),
        ("deadline: +2h", {"deadline_after": 7200.0}),
        ("deadline: in 2h", {"deadline_after": 7200.0}),
        ("deadline_after: 2h", {"deadline_after": 7200.0}),
        ("deadline: 22:00", {"deadline": NOW + 3600}),
        ("deadline: 2026-11-18T22:00+01:00", {"deadline": NOW + 3600}),
        ("service: best-effort", {}),
        ("max_run: 12:00:00", {"max_run_seconds": 43_200.0}),
        ("min_run: 0", {}),
        ("topology: spread", {"topology": Wish(mode="spread")}),
        ("topology: {mode: require, level: rack}",
         {"topology": Wish(mode="require", level="rack")}),
        ("preemptible: no", {"preemptible": False}),
        ("resize_in_place: false", {"resize_in_place": False}),
        ("after: b, c", {"after": (After(job="b"), After(job="c"))}),
        ("after: {job: b, on: failure}", {"after": (After(job="b", on="failure"),)}),
        ("retries: 3", {"retries": 3}),
        ("carbon: {max_delay: 6h, budget: 2.5kg}",
         {"carbon": Carbon(max_delay_seconds=21_600, budget_grams=2500)}),
        ("{model: bert, batch: 32}", {"model": "bert", "batch": 32}),
        ("estimate: 90m", {"estimate_seconds": 5400.0}),
        ("estimate: 90m on 2 devices", {"estimate_seconds": 5400.0, "estimate_devices": 2}),
        ("devices: ", {}),
        ("devices: null", {}),
    ],
)  # fmt: skip
def test_every_field(text: str, changed: dict[str, object]) -> None:
    text = f"{{name: a, {text[1:]}" if text.startswith("{") else f"name: a\n{text}"
    assert job(text) == msgspec.structs.replace(JobSpec(name="a"), **changed)


def test_a_name_is_never_taken_for_something_else() -> None:
    assert [job(f"name: {name}").name for name in ("no", "on", "1", "18:00", "1e3")] == [
        "no", "on", "1", "18:00", "1e3",
    ]  # fmt: skip


def test_json_lists_and_documents_hold_several_jobs() -> None:
    assert [j.name for j in jobs('[{"name": "a"}, {"name": "b", "devices": 2}]')] == ["a", "b"]
    assert [j.name for j in jobs("name: a\n---\n- name: b\n- name: c\n")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("array", "indices"),
    [("0-2", [0, 1, 2]), ("0-4:2", [0, 2, 4]), ("[7, 3]", [3, 7]), ("5-5", [5])],
)
def test_arrays(array: str, indices: list[int]) -> None:
    found = jobs(f"name: a\narray: {array}\nroles: [{{name: w, command: [run, '{{index}}']}}]")
    assert [j.array_index for j in found] == indices
    assert [j.roles[0].command[1] for j in found] == [str(i) for i in indices]


def test_a_job_may_wait_for_one_member_and_for_jobs_of_other_files() -> None:
    *_, last = jobs("name: a\narray: 0-3\n---\nname: b\nafter: [a-2, elsewhere]")
    assert [after.job for after in last.after] == ["a-2", "elsewhere"]


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "job.yaml: has no job (a job needs at least a name)"),
        ("# nothing", "job.yaml: has no job (a job needs at least a name)"),
        ("[]", "job.yaml: has no job (a job needs at least a name)"),
        ("run.sh", "job.yaml:1: must be fields with names, not the text 'run.sh'"),
        ("- name: a\n- ", "job.yaml:2: name is missing"),
        ("devices: 2", "job.yaml:1: name is missing"),
        ("name: ", "job.yaml:1: name is missing"),
        ("name: ''", "job.yaml:1: name: must be one line of 1 to 200 printable characters"),
        ("name: a\ndevicse: 2",
         "job.yaml:2: no field is called 'devicse' (did you mean 'devices'?)"),
        ("name: a\nmax_run_seconds: 2",
         "job.yaml:2: no field is called 'max_run_seconds' (did you mean 'max_run'?)"),
        ("name: a\nname: b", "job.yaml:2: the field 'name' is written twice"),
        ("name: a\ncommand: ' '", "job.yaml:2: command: is empty"),
        ("name: a\ncommand: [[b]]", "job.yaml:2: command[0]: must be a single value, not a list"),
        ("name: a\ndevices: 0", "job.yaml:2: devices: '0' is too few; at least 1 is needed"),
        ("name: a\ndevices: 2-8", "job.yaml:2: devices: '2-8' is not a count; write 2..8"),
        ("name: a\ndevices: 8..2",
         "job.yaml:2: devices: '8..2' ends before it begins; write 2..8"),
        ("name: a\ndevices: lots", "job.yaml:2: devices: 'lots' is not a count; write it like 4, "
         "2..8, 2..8 step 2 or 1,2,4,8"),
        ("name: a\ndevices:\n  min: 2\n  mox: 8",
         "job.yaml:4: devices: no field is called 'mox' (did you mean 'max'?)"),
        ("name: a\ndevices: {min: 4, max: 2}",
         "job.yaml:2: devices: range 4..2 needs 0 <= min <= max <= 10000000"),
        ("name: a\ndevices: {min: 2, max: 4, steps: 8}",
         "job.yaml:2: devices: steps [8] must lie within 2..4"),
        ("name: a\nroles:\n  w: {count: 2}\ndevices: 2",
         "job.yaml:4: devices: belongs to each role once there are roles"),
        ("name: a\nroles:\n  w: {count: 0}",
         "job.yaml:3: roles.w.count: '0' is too few; at least 1 is needed"),
        ("name: a\nroles:\n  w: {device: 0}",
         "job.yaml:3: roles.w: no field is called 'device' (did you mean 'devices'?)"),
        ("name: a\nroles:\n  w: {devices: 0}",
         "job.yaml:3: roles: none has devices; at least one role needs them"),
        ("name: a\nroles:\n  v: {count: 1..2}\n  w: {count: 1..2}",
         "job.yaml:4: roles.w: only one role may have a range of counts, as v has"),
        ("name: a\nroles:\n  v:\n  w: {count: 1..2, devices: 0}",
         "job.yaml:4: roles.w: without devices a role cannot have a range of counts"),
        ("name: a\nroles:\n- {name: w}\n- {name: w}",
         "job.yaml:4: roles[1]: a role called 'w' stands above"),
        ("name: a\nroles: [{count: 2}]", "job.yaml:2: roles[0]: name is missing"),
        ("name: a\nkinds: a,,b",
         "job.yaml:2: kinds: each name must be one line of 1 to 200 printable characters"),
        ("name: a\ncpus: -1", "job.yaml:2: cpus: '-1' must be a number of at least 0"),
        ("name: a\ncpus: .inf", "job.yaml:2: cpus: '.inf' must be a number of at least 0"),
        ("name: a\nmemory: 10Gb", "job.yaml:2: memory: '10Gb' is not a size; write it like 512MB, "
         "10GiB or 1.5TiB"),
        ("name: a\npriority: high",
         "job.yaml:2: priority: 'high' must be a whole number from -1000000 to 1000000"),
        ("name: a\ndeadline: 3600", "job.yaml:2: deadline: 3600 could be seconds from now or since "
         "1970; write +3600s or a date"),
        ("name: a\ndeadline: 2020-01-01 10:00", "job.yaml:2: deadline: 2020-01-01 10:00 has passed "
         "(write +2h for two hours after submission)"),
        ("name: a\ndeadline: today 9am", "job.yaml:2: deadline: today 09:00 has passed "
         "(write +2h for two hours after submission)"),
        ("name: a\ndeadline: fri",
         "job.yaml:2: deadline: 'fri' needs a time of day, like fri 18:00"),
        ("name: a\ndeadline: +0s", "job.yaml:2: deadline: must be later than the submission"),
        ("name: a\ndeadline: +2h\ndeadline_after: 2h",
         "job.yaml:3: deadline_after: says again what deadline says; keep one of them"),
        ("name: a\nservice: guarantee",
         "job.yaml:2: service: 'guarantee' is not possible here (did you mean 'guaranteed'?)"),
        ("name: a\nservice: guaranteed",
         "job.yaml:2: service: a guaranteed job needs a deadline to be held to"),
        ("name: a\nmax_run: 0", "job.yaml:2: max_run: must be longer than 0s"),
        ("name: a\nmax_run: 2:30", "job.yaml:2: max_run: '2:30' is unclear; write 2h30m or 2m30s"),
        ("name: a\nmax_run: 1h\nmin_run: 2h", "job.yaml:3: min_run: is longer than max_run"),
        ("name: a\ntopology: near", "job.yaml:2: topology: 'near' is not a wish (write it like "
         "prefer rack, require node or spread)"),
        ("name: a\ntopology: require",
         "job.yaml:2: topology: require needs a level (like require rack)"),
        ("name: a\ntopology: spread rack", "job.yaml:2: topology: spread takes no level "
         "(it puts workers as far apart as possible)"),
        ("name: a\npreemptible: maybe",
         "job.yaml:2: preemptible: 'maybe' must be true or false"),
        ("name: a\nafter: {job: b, on: succes}",
         "job.yaml:2: after.on: 'succes' is not possible here (did you mean 'success'?)"),
        ("name: a\nafter: [b, b]", "job.yaml:2: after: names a job twice"),
        ("name: a\nafter: a", "job.yaml:2: after: jobs wait for each other: a after a"),
        ("name: a\nafter: b\n---\nname: b\nafter: c\n---\nname: c\narray: 0-1\nafter: [a]",
         "job.yaml:2: after: jobs wait for each other: a after b after c after a"),
        ("name: a\n---\nname: a", "job.yaml:3: a job called 'a' begins on line 1 already"),
        ("name: a\narray: 0-3\n---\nname: a-2",
         "job.yaml:4: a job called 'a-2' begins on line 1 already"),
        ("name: a\narray: 8", "job.yaml:2: array: '8' could be a number of jobs or the index of "
         "one (write 0-7 or [8])"),
        ("name: a\narray: [1, 1]", "job.yaml:2: array: must name each index once"),
        ("name: a\narray: 0-99999\n---\nname: b\narray: 0-1",
         f"job.yaml:4: brings the file over {JOBS_MAX} jobs"),
        ("name: a\narray: 0-9999\n---\nname: b\narray: 0-999\nafter: a",
         "job.yaml:6: after: brings the file over 1000000 waits"),
        ("name: a\nretries: many",
         "job.yaml:2: retries: 'many' must be a whole number from 0 to 1000000"),
        ("name: a\ncarbon: 6h",
         "job.yaml:2: carbon: must be fields with names, not the text '6h'"),
        ("name: a\ncarbon: {budget: 3lb}", "job.yaml:2: carbon.budget: '3lb' is not a mass; write "
         "it like 800g, 2.5kg or 1t"),
        ("name: a\nestimate: soon", "job.yaml:2: estimate: 'soon' is not a duration; write it like "
         "90s, 2h30m, 1d12h or 2:30:00"),
        ("name: a\nestimate: 0", "job.yaml:2: estimate: must be more than nothing, like 6h or "
         "6h on 4"),
        ("name: a\n\tdevices: 2", "job.yaml:2: is indented by a tab (use spaces)"),
        ("name: a\nqueue: @b", "job.yaml:2: a value cannot begin with '@' (put it in quotes)"),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    assert why(jobs, text) == message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    assert why(lambda p: read_jobs(p, now=NOW, zone=BERLIN), str(path)) == (
        f"{path}: cannot be read: No such file or directory"
    )


@given(st.lists(st.lists(st.integers(0, 7), max_size=3, unique=True), min_size=1, max_size=8))
def test_circles_are_found_exactly_when_there_are_any(waits: list[list[int]]) -> None:
    """Oracle: take away jobs that wait for none of those left, until none can be taken away."""
    left = {index: {w for w in others if w < len(waits)} for index, others in enumerate(waits)}
    while free := [index for index, others in left.items() if not others & left.keys()]:
        for index in free:
            del left[index]
    text = "\n".join(
        f"- {{name: j{index}, after: [{', '.join(f'j{w}' for w in others)}]}}"
        for index, others in enumerate(waits)
    )
    if left:
        assert "jobs wait for each other: j" in why(jobs, text)
    else:
        assert len(jobs(text)) == len(waits)


# --------------------------------------------------------------------------- how it is run

CALLER = Recipe(cwd="/data/ada", env={"PATH": "/bin", "SEED": "1"})


def recipe(text: str) -> Recipe:
    (found,) = parse_submissions(text, CALLER, now=NOW, zone=BERLIN, file="job.yaml")
    assert found.spec.command == (), "commands are private, and specs are not"
    return found.recipe


def test_a_job_runs_where_it_was_sent_from() -> None:
    found = recipe("name: a\ncommand: [python, train.py]")
    assert found == Recipe(argv=("python", "train.py"), cwd="/data/ada", env=CALLER.env)


def test_what_a_file_says_of_the_recipe() -> None:
    found = recipe(
        "name: a\ncommand: [x]\ncwd: ../bob\nenv: {SEED: 2, EMPTY: , LR: 1e-3}\nlaunch: one\n"
        "grace: 2m\npark: signal\nlog_max: 1MiB"
    )
    assert found.cwd == "/data/bob"
    assert found.env == {"PATH": "/bin", "SEED": "2", "EMPTY": "", "LR": "1e-3"}
    assert (found.launch, found.grace_seconds, found.park) == ("one", 120.0, "signal")
    assert found.log_bytes_max == 2**20


def test_commands_of_roles_are_private_too() -> None:
    text = (EXAMPLES / "parameter-server.yaml").read_text("utf-8")
    (found,) = parse_submissions(text, CALLER, now=NOW, zone=BERLIN)
    assert set(found.recipe.roles) == {"ps", "worker"}
    assert [role.command for role in found.spec.roles] == [(), ()]


def test_the_members_of_an_array_share_a_recipe_but_not_a_key() -> None:
    text = "- {name: a, array: 0-2, command: [x], launch: one}\n- {name: b, command: [y]}"
    found = parse_submissions(text, CALLER, now=NOW, zone=BERLIN)
    assert [one.recipe.launch for one in found] == ["one", "one", "one", "each"]
    assert len({one.key for one in found}) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: [A]", "job.yaml:2: env: must be fields with names, not a list"),
        ("env: {A=B: c}", "job.yaml:2: env.A=B: cannot be a variable: a name has no '=', and "
         "nothing has a NUL"),
        ("launch: two", "job.yaml:2: launch: 'two' is not possible here (one of: each, one)"),
        ("grace: 2d", "job.yaml:2: grace: must be a day or less"),
        ("park: freeze", "job.yaml:2: park: 'freeze' is not possible here (one of: signal, stop)"),
        ("log_max: 1kB", "job.yaml:2: log_max: must be at least 64KiB"),
        ('cwd: "\\0"', "job.yaml:2: cwd: '\\x00' is not the name of a directory"),
    ],
)  # fmt: skip
def test_mistakes_in_the_recipe(text: str, message: str) -> None:
    assert why(jobs, f"name: a\n{text}") == message


# ---------------------------------------------------------------------- documentation and fuzz


@pytest.mark.parametrize("block", yaml_blocks("job-file.md"))
def test_examples_of_the_documentation(block: str) -> None:
    assert jobs(block)


def test_every_field_has_an_example() -> None:
    text = "\n".join(yaml_blocks("job-file.md"))
    assert [name for name in (*FIELDS, *ROLE_FIELDS) if f"{name}:" not in text] == []


def test_every_field_of_a_job_can_be_written() -> None:
    """What a member of an array is, follows from its array; the rest has a field in the file."""
    written = {
        "max_run_seconds": "max_run", "min_run_seconds": "min_run", "array_index": "array",
        "array_of": "array", "estimate_seconds": "estimate", "estimate_devices": "estimate",
    }  # fmt: skip
    names = {written.get(name, name) for name in JobSpec.__struct_fields__}
    assert names == set(FIELDS) - set(RECIPE)


@given(st.one_of(texts(), trees(FIELDS), trees((*FIELDS, *ROLE_FIELDS)).map("- {}".format)))
def test_whatever_is_written_is_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(jobs, text)


@given(
    damaged([*yaml_blocks("job-file.md"), *(p.read_text("utf-8") for p in EXAMPLES.glob("*.yaml"))])
)
def test_damaged_files_are_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(jobs, text)
