"""From a command to processes: what each worker runs, and what its frameworks find in its air.

Pure: the same command, recipe and machine always give the same Launch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bough.core.model import JobSpec, Node, Place, Start
from bough.errors import InputError
from bough.records import Launch, Recipe, WorkerLaunch

#: Stands for the index of an array's member.
INDEX: Final = "{index}"
ADDRESS: Final = "127.0.0.1"
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
#: The variable with which each maker's programs are told which devices are theirs.
VISIBLE: Final = {
    "nvidia": "CUDA_VISIBLE_DEVICES",
    "amd": "HIP_VISIBLE_DEVICES",
    "ascend": "ASCEND_RT_VISIBLE_DEVICES",
}
_MAKERS: Final = (
    (re.compile(r"(?i)cpu"), ""),
    (re.compile(r"(?i)ascend|npu|910|310"), "ascend"),
    (re.compile(r"(?i)amd|mi\d|gfx|radeon|w\d{4}$"), "amd"),
)
#: Roles of which rank 0 comes, and roles that only serve the others: a gang is done without them.
_FIRST: Final = ("chief", "master")
_SERVES: Final = ("ps",)
#: Not a member of the cluster that TF_CONFIG describes; it looks on.
_ONLOOKER: Final = "evaluator"
#: Left over in the caller's environment from another job, these would mislead.
_STALE: Final = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
    "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID", "JAX_LOCAL_DEVICE_IDS", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR",
    "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "BOUGH_ARRAY_INDEX", "BOUGH_HOSTFILE",
    *VISIBLE.values(),
)  # fmt: skip


class Identity(NamedTuple):
    """Whom a job's processes run as."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class Site(NamedTuple):
    """What there is around the job: the machine and the job's directories."""

    nodes: Mapping[str, Node]
    #: `ports_needed` of them, this job's alone.
    ports: Sequence[int]
    #: Kept between attempts, and gone with this one.
    job_dir: Path
    attempt_dir: Path
    #: Lies outside both: what we write, a job cannot have replaced by a link before.
    hostfile: Path
    #: None: as the daemon itself.
    identity: Identity | None = None


class Seat(NamedTuple):
    """Where one worker sits: its devices, node by node."""

    role: str
    #: Counts the workers of a role.
    number: int
    place: Place


def maker(node: Node) -> str:
    """Whose devices these are ("nvidia" when nothing else is known); empty for CPU slots."""
    named = node.labels.get("maker")
    if named is not None:
        return named
    return next((name for pattern, name in _MAKERS if pattern.match(node.kind)), "nvidia")


def ports_needed(start: Start) -> int:
    """One to meet at, one for JAX, and one for each worker of a gang of roles."""
    return 2 + len(start.seats)


def render(start: Start, spec: JobSpec, recipe: Recipe, site: Site) -> Launch:
    """The processes of one attempt; an InputError says why it cannot be."""
    seats = _seats(start, recipe)
    who = site.identity or Identity(-1, -1, ())
    return Launch(
        job=start.id,
        epoch=start.epoch,
        workers=tuple(
            _worker(rank, seats, (start, spec, recipe, site)) for rank in range(len(seats))
        ),
        grace_seconds=recipe.grace_seconds,
        log_bytes_max=recipe.log_bytes_max,
        memory_max=_memory(start, spec),
        uid=who.uid,
        gid=who.gid,
        groups=who.groups,
        umask=-1 if recipe.umask is None else recipe.umask,
        limits=recipe.limits,
        place=start.place,
        ports=tuple(site.ports),
    )


def hostfile(start: Start) -> str:
    """What MPI and Horovod read: hosts, and how many processes each may have."""
    return f"localhost slots={sum(len(devices) for _, devices in start.place)}\n"


# ---------------------------------------------------------------------------------- who sits where

_Job = tuple[Start, JobSpec, Recipe, Site]


def _seats(start: Start, recipe: Recipe) -> list[Seat]:
    """The workers in the order of their ranks."""
    if not start.seats:
        each = [(node, device) for node, devices in start.place for device in devices]
        if recipe.launch == "one" or not each:
            return [Seat("worker", 0, start.place)]
        return [Seat("worker", i, ((node, (device,)),)) for i, (node, device) in enumerate(each)]
    counts: dict[str, int] = {}
    seats = []
    for role, node, devices in start.seats:
        counts[role] = counts.get(role, -1) + 1
        seats.append(Seat(role, counts[role], ((node, devices),)))
    return sorted(seats, key=lambda seat: seat.role not in _FIRST)  # stable: else as asked


def _memory(start: Start, spec: JobSpec) -> int:
    """Bytes for all workers together; memory is asked for each device, or each worker of a role."""
    if not spec.roles:
        return spec.memory * sum(len(devices) for _, devices in start.place)
    asked = {role.name: role.memory for role in spec.roles}
    wanted = [asked.get(role, 0) for role, _, _ in start.seats]
    return sum(wanted) if all(wanted) else 0  # one without a limit: then the gang has none


def _worker(rank: int, seats: list[Seat], job: _Job) -> WorkerLaunch:
    start, spec, recipe, site = job
    seat = seats[rank]
    argv = recipe.roles.get(seat.role, recipe.argv)
    if not argv or not argv[0]:
        raise InputError(f"role {seat.role} has no command" if start.seats else "has no command")
    if spec.array_index is not None:
        argv = tuple(word.replace(INDEX, str(spec.array_index)) for word in argv)
    env = _environment(rank, seats, job)
    _check_words(argv, env, recipe.cwd)
    return WorkerLaunch(
        rank=rank,
        role=seat.role,
        index=seat.number,
        argv=argv,
        cwd=recipe.cwd or str(site.job_dir),
        env=env,
        log=f"{log_name(seat.role)}-{rank}.log",
        serves=seat.role in _SERVES and any(other.role not in _SERVES for other in seats),
    )


def _check_words(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    """What the kernel would not take, said before it is tried."""
    if any("\0" in word for word in (*argv, *env, *env.values(), cwd)):
        raise InputError("has a command or an environment with the character NUL in it")
    if bad := [name for name in env if not name or "=" in name]:
        raise InputError(f"has a variable that cannot be named so: {bad[0]!r}")


def log_name(role: str) -> str:
    """A role's name as part of a file name: it came from a user."""
    return re.sub(r"[^\w.-]", "_", role, flags=re.ASCII).lstrip(".")[:64] or "worker"


# ---------------------------------------------------------------------------------- environment


def _environment(rank: int, seats: list[Seat], job: _Job) -> dict[str, str]:
    """All of a worker's environment: the caller's, then ours."""
    start, spec, recipe, site = job
    env = {name: value for name, value in recipe.env.items() if name not in _STALE}
    env.setdefault("PATH", PATH)
    env.setdefault("PYTHONUNBUFFERED", "1")  # lines reach the log when they are printed
    seat = seats[rank]
    size = sum(len(devices) for _, devices in start.place)
    env |= {
        "BOUGH_JOB": start.id,
        "BOUGH_EPOCH": str(start.epoch),
        "BOUGH_SIZE": str(size),
        "BOUGH_DEVICES": ";".join(f"{n}:{','.join(map(str, d))}" for n, d in seat.place),
        "BOUGH_JOB_DIR": str(site.job_dir),
        "BOUGH_ATTEMPT_DIR": str(site.attempt_dir),
        "BOUGH_HOSTFILE": str(site.hostfile),
    }
    if spec.array_index is not None:
        env["BOUGH_ARRAY_INDEX"] = str(spec.array_index)
    env |= _meeting(rank, seats, job)
    if start.seats:
        env["TF_CONFIG"] = _tf_config(rank, seats, site)
    elif recipe.launch == "one" and size > 1:
        env |= _for_launcher(size, site)
        # Lightning and transformers take LOCAL_RANK to mean that every rank has its process.
        del env["LOCAL_RANK"]
    env |= _visible(seat.place if start.seats else start.place, site)
    if len(seats) > 1 and not start.seats and any(maker(site.nodes[n]) for n, _ in start.place):
        env["JAX_LOCAL_DEVICE_IDS"] = str(rank)
    threads = _threads(rank, seats, job)
    if threads:
        env.setdefault("OMP_NUM_THREADS", str(threads))
    return env


def _meeting(rank: int, seats: list[Seat], job: _Job) -> dict[str, str]:
    """Where torch and JAX find the others, and who is who.

    As with torchrun, the workers of a plain job see all its devices, and LOCAL_RANK says whose is
    which. A worker with a role sees its own alone, as it would in a pod of its own.
    """
    start, site = job[0], job[3]
    local_rank, local_size = (0, 1) if start.seats else (rank, len(seats))
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(len(seats)),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size),
        "NODE_RANK": str(rank if start.seats else 0),
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(site.ports[0]),
        "JAX_COORDINATOR_ADDRESS": f"{ADDRESS}:{site.ports[1]}",
        "JAX_NUM_PROCESSES": str(len(seats)),
        "JAX_PROCESS_ID": str(rank),
    }


def _for_launcher(size: int, site: Site) -> dict[str, str]:
    """One process that sees all devices is often a launcher: torchrun reads its defaults here."""
    return {
        "PET_NPROC_PER_NODE": str(size),
        "PET_MASTER_ADDR": ADDRESS,
        "PET_MASTER_PORT": str(site.ports[0]),
    }


def _tf_config(rank: int, seats: list[Seat], site: Site) -> str:
    cluster: dict[str, list[str]] = {}
    for number, seat in enumerate(seats):
        if seat.role != _ONLOOKER:
            cluster.setdefault(seat.role, []).append(f"{ADDRESS}:{site.ports[2 + number]}")
    task = {"type": seats[rank].role, "index": seats[rank].number}
    return json.dumps({"cluster": cluster, "task": task})


def _visible(place: Place, site: Site) -> dict[str, str]:
    """Its own devices are visible, those of other makers in this machine are not."""
    shown: dict[str, list[int]] = {
        VISIBLE[name]: [] for name in map(maker, site.nodes.values()) if name in VISIBLE
    }
    for node, devices in place:
        name = maker(site.nodes[node])
        if name in VISIBLE:
            shown[VISIBLE[name]].extend(_maker_numbers(site.nodes[node], devices))
    env = {name: ",".join(map(str, numbers)) for name, numbers in shown.items()}
    if "CUDA_VISIBLE_DEVICES" in env:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as the driver counts, not the fastest first
    return env


def _maker_numbers(node: Node, devices: Sequence[int]) -> list[int]:
    """The same devices as their maker counts: several nodes may share a machine."""
    numbers = [int(number) for number in node.labels.get("numbers", "").split(",") if number]
    return [numbers[device] if device < len(numbers) else device for device in devices]


def _threads(rank: int, seats: list[Seat], job: _Job) -> int:
    """Threads for a worker on CPU slots, so that workers side by side do not fight; 0: unsaid."""
    _, spec, _, site = job
    place = seats[rank].place
    if any(maker(site.nodes[node]) for node, _ in place):
        return 0
    slots = sum(len(devices) for _, devices in place)
    asked = next((r.cpus for r in spec.roles if r.name == seats[rank].role), spec.cpus * slots)
    return max(int(asked), slots, 1)


__all__ = ["Identity", "Site", "hostfile", "log_name", "maker", "ports_needed", "render"]
