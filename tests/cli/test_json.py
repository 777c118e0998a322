"""`--json` of every command, with a daemon: all fields of its record, each time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Bough
from tests.daemons import Daemon

from bough.cli.finding import Finding
from bough.core.model import JobSpec, Queue
from bough.core.reason import Reason
from bough.records import (
    Attempt,
    Config,
    DeviceRecord,
    JobDetail,
    JobRecord,
    LogChunk,
    NewToken,
    QueueRecord,
    Receipt,
    Recipe,
    StatusRecord,
    TokenRecord,
    UsageRow,
    UserRecord,
    WorkerEnd,
)


@pytest.fixture(scope="module")
def job(machine: Daemon) -> str:
    """One that is over."""
    run = machine.bough("run", "--detach", "--json", "--name", "brief", "--", "echo", "hello")
    (found,) = json.loads(run.stdout)
    assert set(found) == fields(JobRecord)
    assert machine.bough("wait", found["id"]).returncode == 0
    return str(found["id"])


def fields(kind: Any) -> set[str]:
    return set(getattr(kind, "__struct_fields__", None) or kind._fields)


LISTS = [
    (("ls",), JobRecord),
    (("history",), JobRecord),
    (("wait", "brief"), JobRecord),
    (("queue", "ls"), QueueRecord),
    (("devices",), DeviceRecord),
    (("devices", "check"), DeviceRecord),
    (("devices", "drain"), DeviceRecord),
    (("devices", "undrain"), DeviceRecord),
    (("devices", "quarantine", "3"), DeviceRecord),
    (("devices", "release", "3"), DeviceRecord),
    (("user", "ls"), UserRecord),
    (("report", "usage"), UsageRow),
    (("doctor",), Finding),
]
RECORDS = [
    (("why", "brief"), Reason),
    (("queue", "show", "default"), QueueRecord),
    (("queue", "set", "default", "--weight", "1"), QueueRecord),
    (("status",), StatusRecord),
    (("config",), Config),
    (("config", "set", "keep_days", "30"), Config),
]


@pytest.mark.parametrize(("words", "kind"), LISTS, ids=str)
def test_lists(bough: Bough, job: str, words: tuple[str, ...], kind: Any) -> None:
    found = bough(*words, "--json").json
    assert found
    assert [set(each) for each in found] == [fields(kind)] * len(found)


@pytest.mark.parametrize(("words", "kind"), RECORDS, ids=str)
def test_single_records(bough: Bough, job: str, words: tuple[str, ...], kind: Any) -> None:
    assert set(bough(*words, "--json").json) == fields(kind)


def test_all_of_a_job(bough: Bough, job: str) -> None:
    shown = bough("show", job, "--json").json
    detail = shown["detail"]
    assert set(shown) == {"detail", "receipt"}
    assert set(shown["receipt"]) == fields(Receipt)
    assert set(detail) == fields(JobDetail)
    assert set(detail["job"]) == fields(JobRecord)
    assert set(detail["spec"]) == fields(JobSpec)
    assert set(detail["recipe"]) == fields(Recipe)
    assert [set(each) for each in detail["attempts"]] == [fields(Attempt)]
    assert [set(each) for each in detail["attempts"][0]["workers"]] == [fields(WorkerEnd)]


def test_a_queue_is_told_as_it_was_made(bough: Bough) -> None:
    queue = bough("queue", "show", "default", "--json").json["queue"]
    assert set(queue) == fields(Queue)
    assert queue["budget_device_hours"] is None  # without end


def test_logs_are_lines_of_objects(bough: Bough, job: str) -> None:
    done = bough("logs", job, "--json")
    chunk, end = map(json.loads, done.lines)
    assert set(chunk) == fields(LogChunk)
    assert chunk["text"] == "hello\n"
    assert end == {"end": "done", "code": 0}


def test_tokens(bough: Bough) -> None:
    made = bough("token", "create", "laptop", "--json").json
    assert set(made) == fields(NewToken)
    assert set(made["token"]) == fields(TokenRecord)
    (listed,) = bough("token", "ls", "--json").json
    assert listed == made["token"]
    assert bough("token", "revoke", "laptop", "--json").json == []


def test_one_setting_is_its_value(bough: Bough) -> None:
    assert bough("config", "get", "policy", "--json").json == "fair"
    assert bough("config", "get", "admins", "--json").json == []
