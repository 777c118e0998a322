"""What each worker is given: its place in the gang, its devices, and the words frameworks know."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from bough.backends.render import Identity, Site, hostfile, log_name, maker, ports_needed, render
from bough.core.model import JobSpec, Node, Place, Range, Role, Start
from bough.errors import InputError
from bough.records import Launch, Recipe

NODES = {
    "h": Node(name="h", kind="h100", devices=8),
    "m": Node(name="m", kind="mi300x", devices=8),
    "n": Node(name="n", kind="ascend910b", devices=8),
    "c": Node(name="c", kind="cpu", devices=8),
}
TRAIN = Recipe(argv=("python", "train.py"), cwd="/data", env={"PATH": "/bin", "LANG": "C"})


def site(*names: str, ports: int = 20) -> Site:
    nodes = {name: NODES[name] for name in names}
    own = Path("/jobs/7/kept"), Path("/jobs/7/1/scratch"), Path("/jobs/7/1/hostfile")
    return Site(nodes, range(20000, 20000 + ports), *own)


def launched(place: Place, recipe: Recipe = TRAIN, spec: JobSpec | None = None) -> Launch:
    start = Start(id="7", epoch=1, place=place)
    where = site(*{name for name, _ in place})
    return render(start, spec or JobSpec(name="train"), recipe, where)


def changed(**fields: object) -> Recipe:
    return msgspec.structs.replace(TRAIN, **fields)


def with_env(**env: str) -> Recipe:
    return changed(env={**TRAIN.env, **env})


def values(launch: Launch, name: str) -> list[str | None]:
    return [worker.env.get(name) for worker in launch.workers]


def test_one_process_for_each_device_with_its_rank() -> None:
    launch = launched((("h", (2, 3, 6)),))
    assert [(w.rank, w.role, w.index) for w in launch.workers] == [
        (0, "worker", 0), (1, "worker", 1), (2, "worker", 2),
    ]  # fmt: skip
    assert values(launch, "RANK") == ["0", "1", "2"]
    assert values(launch, "LOCAL_RANK") == ["0", "1", "2"]
    assert values(launch, "WORLD_SIZE") == values(launch, "LOCAL_WORLD_SIZE") == ["3"] * 3
    assert values(launch, "NODE_RANK") == ["0"] * 3
    assert values(launch, "MASTER_ADDR") == ["127.0.0.1"] * 3
    assert values(launch, "MASTER_PORT") == ["20000"] * 3


def test_workers_see_the_devices_of_their_gang_and_local_rank_says_which_is_whose() -> None:
    launch = launched((("h", (2, 3, 6)),))
    assert values(launch, "CUDA_VISIBLE_DEVICES") == ["2,3,6"] * 3
    assert values(launch, "CUDA_DEVICE_ORDER") == ["PCI_BUS_ID"] * 3
    assert values(launch, "JAX_LOCAL_DEVICE_IDS") == ["0", "1", "2"]
    assert values(launch, "BOUGH_DEVICES") == ["h:2", "h:3", "h:6"]


@pytest.mark.parametrize(
    ("node", "variable"),
    [
        ("h", "CUDA_VISIBLE_DEVICES"),
        ("m", "HIP_VISIBLE_DEVICES"),
        ("n", "ASCEND_RT_VISIBLE_DEVICES"),
    ],
)
def test_each_maker_has_its_variable(node: str, variable: str) -> None:
    (worker,) = launched(((node, (5,)),)).workers
    visible = {name: value for name, value in worker.env.items() if "VISIBLE" in name}
    assert visible == {variable: "5"}


@pytest.mark.parametrize(
    ("kind", "whose"),
    [
        ("h100", "nvidia"), ("a100-80g", "nvidia"), ("rtx4090", "nvidia"), ("v100", "nvidia"),
        ("mi250", "amd"), ("MI300X", "amd"), ("gfx942", "amd"),
        ("ascend910b", "ascend"), ("910B3", "ascend"), ("cpu", ""),
    ],
)  # fmt: skip
def test_a_kind_tells_its_maker(kind: str, whose: str) -> None:
    assert maker(Node(name="x", kind=kind, devices=1)) == whose


def test_a_label_overrides_what_the_kind_tells() -> None:
    assert maker(Node(name="x", kind="z1", devices=1, labels={"maker": "amd"})) == "amd"


def test_a_job_on_cpu_slots_does_not_see_the_gpus_beside_them() -> None:
    start = Start(id="7", epoch=1, place=(("c", (0,)),))
    (worker,) = render(start, JobSpec(name="x"), TRAIN, site("c", "h")).workers
    assert worker.env["CUDA_VISIBLE_DEVICES"] == ""
    assert "HIP_VISIBLE_DEVICES" not in worker.env
    (worker,) = render(start, JobSpec(name="x"), TRAIN, site("c")).workers
    assert "CUDA_VISIBLE_DEVICES" not in worker.env


def test_one_process_that_sees_all_and_is_told_how_many_to_launch() -> None:
    (worker,) = launched((("h", (0, 1, 2, 3)),), changed(launch="one")).workers
    assert worker.env["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
    assert (worker.env["RANK"], worker.env["WORLD_SIZE"]) == ("0", "1")
    assert worker.env["PET_NPROC_PER_NODE"] == "4"
    assert worker.env["PET_MASTER_PORT"] == worker.env["MASTER_PORT"] == "20000"
    assert worker.env["BOUGH_SIZE"] == "4"
    assert worker.env["BOUGH_DEVICES"] == "h:0,1,2,3"
    # Otherwise Lightning and transformers would believe that somebody launched all ranks.
    assert "LOCAL_RANK" not in worker.env


def test_jax_finds_its_coordinator_elsewhere_than_torch() -> None:
    launch = launched((("h", (0, 1)),))
    assert values(launch, "JAX_COORDINATOR_ADDRESS") == ["127.0.0.1:20001"] * 2
    assert values(launch, "JAX_NUM_PROCESSES") == ["2"] * 2
    assert values(launch, "JAX_PROCESS_ID") == ["0", "1"]


def test_where_things_are_kept_is_told() -> None:
    (worker,) = launched((("c", (0,)),)).workers
    env = {name: value for name, value in worker.env.items() if name.startswith("BOUGH_")}
    assert env == {
        "BOUGH_JOB": "7",
        "BOUGH_EPOCH": "1",
        "BOUGH_SIZE": "1",
        "BOUGH_DEVICES": "c:0",
        "BOUGH_JOB_DIR": "/jobs/7/kept",
        "BOUGH_ATTEMPT_DIR": "/jobs/7/1/scratch",
        "BOUGH_HOSTFILE": "/jobs/7/1/hostfile",
    }


def test_the_callers_environment_comes_along_without_what_would_mislead() -> None:
    recipe = with_env(MASTER_PORT="1", PET_NNODES="9", TF_CONFIG="{}", TOKEN="x", BOUGH_HOME="/b")
    (worker,) = launched((("c", (0,)),), recipe).workers
    assert worker.env["MASTER_PORT"] == "20000"
    assert "PET_NNODES" not in worker.env
    assert "TF_CONFIG" not in worker.env
    assert (worker.env["TOKEN"], worker.env["BOUGH_HOME"]) == ("x", "/b")
    assert (worker.env["PATH"], worker.env["LANG"]) == ("/bin", "C")


def test_devices_named_by_the_caller_are_not_believed() -> None:
    (worker,) = launched((("h", (4,)),), with_env(CUDA_VISIBLE_DEVICES="0")).workers
    assert worker.env["CUDA_VISIBLE_DEVICES"] == "4"
    (worker,) = launched((("c", (4,)),), with_env(CUDA_VISIBLE_DEVICES="0")).workers
    assert "CUDA_VISIBLE_DEVICES" not in worker.env


def test_an_empty_environment_still_finds_programs() -> None:
    (worker,) = launched((("c", (0,)),), changed(env={})).workers
    assert worker.env["PATH"] == "/usr/local/bin:/usr/bin:/bin"


def test_workers_on_cpu_slots_share_them_fairly() -> None:
    assert values(launched((("c", (0, 1, 2)),)), "OMP_NUM_THREADS") == ["1"] * 3
    one = launched((("c", (0, 1, 2)),), changed(launch="one"))
    assert values(one, "OMP_NUM_THREADS") == ["3"]
    wide = launched((("c", (0, 1)),), spec=JobSpec(name="x", cpus=4.0))
    assert values(wide, "OMP_NUM_THREADS") == ["4"] * 2
    asked = launched((("c", (0, 1)),), with_env(OMP_NUM_THREADS="7"))
    assert values(asked, "OMP_NUM_THREADS") == ["7"] * 2
    assert values(launched((("h", (0, 1)),)), "OMP_NUM_THREADS") == [None] * 2


def test_lines_are_not_held_back_unless_the_caller_says_so() -> None:
    assert values(launched((("c", (0,)),)), "PYTHONUNBUFFERED") == ["1"]
    assert values(launched((("c", (0,)),), with_env(PYTHONUNBUFFERED="")), "PYTHONUNBUFFERED") == [
        ""
    ]


def test_a_member_of_an_array_knows_its_index() -> None:
    recipe = changed(argv=("sweep", "--seed={index}", "{index}{index}"))
    spec = JobSpec(name="sweep-12", array_index=12, array_of="sweep")
    (worker,) = launched((("c", (0,)),), recipe, spec).workers
    assert worker.argv == ("sweep", "--seed=12", "1212")
    assert worker.env["BOUGH_ARRAY_INDEX"] == "12"
    (worker,) = launched((("c", (0,)),), recipe).workers
    assert worker.argv[1] == "--seed={index}"


GANG = JobSpec(
    name="gang",
    roles=(
        Role(name="ps", count=Range(min=1, max=1), devices=0, memory=100),
        Role(name="worker", count=Range(min=2, max=2), devices=2, memory=1000),
        Role(name="chief", count=Range(min=1, max=1), devices=1, memory=500),
        Role(name="evaluator", count=Range(min=1, max=1), devices=0, memory=7),
    ),
)
SEATS = (
    ("ps", "h", ()), ("worker", "h", (1, 2)), ("worker", "h", (3, 4)), ("chief", "h", (0,)),
    ("evaluator", "h", ()),
)  # fmt: skip


def gang(recipe: Recipe = TRAIN, spec: JobSpec = GANG) -> Launch:
    start = Start(id="7", epoch=1, place=(("h", (0, 1, 2, 3, 4)),), seats=SEATS)
    assert ports_needed(start) == 7
    return render(start, spec, recipe, site("h"))


def test_a_gang_of_roles_has_a_process_for_each_seat_and_the_chief_is_first() -> None:
    workers = gang().workers
    assert [(w.role, w.index, w.log) for w in workers] == [
        ("chief", 0, "chief-0.log"),
        ("ps", 0, "ps-1.log"),
        ("worker", 0, "worker-2.log"),
        ("worker", 1, "worker-3.log"),
        ("evaluator", 0, "evaluator-4.log"),
    ]
    assert values(gang(), "RANK") == ["0", "1", "2", "3", "4"]


def test_a_worker_with_a_role_sees_its_own_devices_alone() -> None:
    assert values(gang(), "CUDA_VISIBLE_DEVICES") == ["0", "", "1,2", "3,4", ""]
    assert values(gang(), "LOCAL_RANK") == ["0"] * 5
    assert values(gang(), "NODE_RANK") == ["0", "1", "2", "3", "4"]


def test_tensorflow_is_told_the_cluster_and_the_task() -> None:
    configs = [json.loads(value or "") for value in values(gang(), "TF_CONFIG")]
    assert all(config["cluster"] == configs[0]["cluster"] for config in configs)
    assert configs[0]["cluster"] == {
        "chief": ["127.0.0.1:20002"],
        "ps": ["127.0.0.1:20003"],
        "worker": ["127.0.0.1:20004", "127.0.0.1:20005"],
    }  # an evaluator looks on: it is a task, and no member of the cluster
    assert configs[3]["task"] == {"type": "worker", "index": 1}
    assert configs[4]["task"] == {"type": "evaluator", "index": 0}


def test_a_gang_is_done_without_those_who_only_serve_it() -> None:
    assert [worker.role for worker in gang().workers if worker.serves] == ["ps"]


def test_roles_may_run_commands_of_their_own() -> None:
    recipe = changed(roles={"ps": ("serve", "--quietly")})
    assert [w.argv[0] for w in gang(recipe).workers] == [
        "python", "serve", "python", "python", "python",
    ]  # fmt: skip


def test_memory_is_asked_for_each_device_or_for_each_worker_of_a_role() -> None:
    assert launched((("h", (0, 1, 2)),), spec=JobSpec(name="x", memory=1000)).memory_max == 3000
    assert launched((("h", (0, 1, 2)),)).memory_max == 0
    assert gang().memory_max == 100 + 2 * 1000 + 500 + 7
    roles = (msgspec.structs.replace(GANG.roles[0], memory=0), *GANG.roles[1:])
    assert gang(spec=msgspec.structs.replace(GANG, roles=roles)).memory_max == 0


def test_the_recipe_decides_on_time_and_room() -> None:
    launch = launched((("c", (0,)),), changed(grace_seconds=3.5, log_bytes_max=1 << 20))
    assert (launch.grace_seconds, launch.log_bytes_max) == (3.5, 1 << 20)
    assert launched((("c", (0,)),)).workers[0].cwd == "/data"
    assert launched((("c", (0,)),), changed(cwd="")).workers[0].cwd == "/jobs/7/kept"


def test_whom_it_runs_as_is_handed_on() -> None:
    where = site("c")._replace(identity=Identity(1000, 100, (100, 27)))
    start = Start(id="7", epoch=1, place=(("c", (0,)),))
    launch = render(start, JobSpec(name="x"), TRAIN, where)
    assert (launch.uid, launch.gid, launch.groups) == (1000, 100, (100, 27))


@pytest.mark.parametrize("argv", [(), ("",)])
def test_no_command_is_said_to_be_none(argv: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="has no command"):
        launched((("c", (0,)),), changed(argv=argv))


@pytest.mark.parametrize(
    "fields", [{"argv": ("a\0b",)}, {"env": {"A": "\0"}}, {"env": {"\0": ""}}, {"cwd": "/\0"}]
)
def test_what_no_kernel_takes_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InputError, match="NUL"):
        launched((("c", (0,)),), changed(**fields))


@pytest.mark.parametrize("name", ["A=B", "", "=A"])
def test_a_variable_that_no_environment_can_hold_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="variable"):
        launched((("c", (0,)),), changed(env={name: "x"}))


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("worker", "worker"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("a/b\nc", "a_b_c"),
        ("...", "worker"),
        ("ü" * 300, "_" * 64),
    ],
)
def test_a_role_cannot_lead_a_log_astray(role: str, name: str) -> None:
    assert log_name(role) == name


def test_mpi_is_told_how_many_processes_there_may_be() -> None:
    assert hostfile(Start(id="7", epoch=1, place=(("h", (0, 1)),))) == "localhost slots=2\n"


def test_a_launch_travels_as_plain_json() -> None:
    launch = gang()
    data = msgspec.json.encode(launch)
    assert msgspec.json.decode(data, type=Launch) == launch
    assert isinstance(json.loads(data)["workers"][0]["env"], dict)
