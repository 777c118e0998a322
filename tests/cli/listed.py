"""Records as a busy machine would answer, for looking at how they are listed."""

from __future__ import annotations

from typing import Any

from bough.cli.asking import Look
from bough.core.model import JobSpec, Queue, Range
from bough.core.reason import Reason
from bough.records import (
    Attempt,
    DeviceRecord,
    JobDetail,
    JobRecord,
    QueueRecord,
    Receipt,
    Recipe,
    UserRecord,
)

#: A Thursday, 14:00 in Greenwich.
NOW = 1_763_647_200.0
HOUR = 3600.0


def look(width: int = 80, people: bool = True, colour: bool = False) -> Look:
    return Look(NOW, width, colour, people)


def reason(text: str = "It waits.", **more: Any) -> Reason:
    return Reason(**({"code": "busy", "text": text} | more))


def job(id: str = "12", state: str = "running", **more: Any) -> JobRecord:
    """One of anna's."""
    usual: dict[str, Any] = {
        "name": "resnet", "user": "anna", "queue": "default", "devices": 4,
        "sizes": (2, 4, 8), "place": (("node-1", (0, 1, 2, 3)),), "epoch": 1, "priority": 0,
        "submitted": NOW - 2 * HOUR, "began": NOW - 1.9 * HOUR,
        "reason": reason("It runs on 4 devices of node-1, and could use up to 8."),
        "command": ("python", "train.py"),
    }  # fmt: skip
    return JobRecord(id=id, state=state, **(usual | more))


def waiting(id: str = "14", **more: Any) -> JobRecord:
    text = (
        "It needs at least 2 a100 devices and 0 of 8 are free; 1 job submitted earlier waits too."
    )
    usual: dict[str, Any] = {"devices": 0, "place": (), "began": None, "reason": reason(text)}
    return job(id, "waiting", **(usual | more))


def ended(id: str = "9", state: str = "done", code: int | None = 0, **more: Any) -> JobRecord:
    usual: dict[str, Any] = {
        "devices": 0, "place": (), "ended": NOW - HOUR, "code": code, "device_seconds": 4 * HOUR,
        "reason": reason("It finished its work.", code=state),
    }  # fmt: skip
    return job(id, state, **(usual | more))


def some_jobs() -> list[JobRecord]:
    return [
        waiting(name="a-rather-long-name-of-a-job-with-many-words", queue="vision"),
        job(progress=0.43, eta_seconds=2 * HOUR + 2400, queue="vision"),
        job("11", "running", held=True, devices=0, place=(), name="ablation"),
        ended("10", "failed", 1, name="typo"),
        ended("9"),
    ]


def detail(record: JobRecord | None = None, **more: Any) -> JobDetail:
    spec = JobSpec(
        name="resnet", devices=Range(min=2, max=8), kinds=("a100",), cpus=4, memory=16 << 30
    )
    attempts = (
        Attempt(
            epoch=1, place=(("node-1", (0, 1)),), began=NOW - 1.9 * HOUR, ended=NOW - 1.5 * HOUR,
            how="failed", code=137,
        ),
        Attempt(epoch=2, place=(("node-1", (0, 1, 2, 3)),), began=NOW - 1.4 * HOUR),
    )  # fmt: skip
    sizes = (
        (NOW - 1.9 * HOUR, 2), (NOW - 1.5 * HOUR, 0), (NOW - 1.4 * HOUR, 4),
        (NOW - HOUR, 8), (NOW - 0.5 * HOUR, 4),
    )  # fmt: skip
    usual: dict[str, Any] = {"attempts": attempts, "sizes": sizes, "recipe": Recipe(cwd="/data/x")}
    found = record or job(progress=0.43, eta_seconds=9000.0, deadline=NOW + 30 * HOUR, failures=1)
    return JobDetail(job=found, spec=spec, **(usual | more))


def receipt(**more: Any) -> Receipt:
    usual: dict[str, Any] = {
        "job": "12", "state": "running", "submitted": NOW - 2 * HOUR, "waited_seconds": 420.0,
        "waits": {"busy": 360.0, "moving": 60.0}, "ran_seconds": 1.8 * HOUR,
        "device_seconds": 7.5 * HOUR, "lost_device_seconds": 0.2 * HOUR, "starts": 2,
        "resizes": 3, "failures": 1, "energy_kwh": 3.21,
    }  # fmt: skip
    return Receipt(**(usual | more))


def gpu(index: int, state: str = "free", **more: Any) -> DeviceRecord:
    usual: dict[str, Any] = {
        "node": "node-1", "kind": "a100", "model": "NVIDIA A100-SXM4-80GB",
        "memory_bytes": 80 << 30, "memory_used_bytes": 34 << 30, "temperature": 61.0,
        "watts": 298.4, "utilisation": 0.78,
    }  # fmt: skip
    return DeviceRecord(index=index, state=state, **(usual | more))


def some_devices() -> list[DeviceRecord]:
    held = {"job": "12", "user": "anna"}
    slots = [DeviceRecord(node="node-2", kind="cpu", index=i, state="free") for i in range(8)]
    return [
        gpu(0, "held", **held),
        gpu(1, "held", **held),
        gpu(2, "taken", note="process 4711 of ben: python notebook.py"),
        gpu(3, "unhealthy", note="double-bit memory error (Xid 48)", utilisation=0.0),
        *slots,
    ]


def some_queues() -> list[QueueRecord]:
    return [
        QueueRecord(queue=Queue(name="default"), used=0, entitled=2),
        QueueRecord(
            queue=Queue(name="research", guarantee=4, limit=8), used=5, entitled=4, running=2,
            waiting=1, history_device_hours=812.4,
        ),
        QueueRecord(
            queue=Queue(name="vision", parent="research", weight=2.0, budget_device_hours=100),
            used=5, entitled=4, running=2, waiting=1, budget_left_device_hours=12.5,
        ),
        QueueRecord(queue=Queue(name="nlp", parent="research", paused=True), entitled=2),
    ]  # fmt: skip


def some_users() -> list[UserRecord]:
    return [
        UserRecord(user="ben", waiting=2, device_hours=0.004),
        UserRecord(user="anna", running=2, waiting=1, devices=5, device_hours=812.4),
    ]
