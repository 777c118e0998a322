"""What all listings promise: they fit the terminal, are coloured only there, and never move it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from tests.cli import listed
from tests.cli.listed import HOUR, NOW, detail, ended, job, look, reason, receipt, waiting

from bough.cli import (
    devices,
    doctor,
    history,
    ls,
    queues,
    report,
    service,
    settings,
    show,
    tokens,
    top_drawing,
    users,
    why,
)
from bough.cli.asking import Look
from bough.cli.finding import fail, ok, warn
from bough.cli.grid import cells
from bough.cli.top_feed import Opened, Snapshot
from bough.core.model import JobSpec, Range, Role
from bough.records import Config, StatusRecord, TokenRecord, UsageRow

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
#: Others choose names, and print what they like.
EVIL = "evil\x1b[2J\x1b]0;title\x07\r\nname"
TOP = Snapshot(
    at=NOW, jobs=listed.some_jobs(), more=False, devices=tuple(listed.some_devices()),
    queues=tuple(listed.some_queues()),
    status=StatusRecord("1.0", 17, NOW - HOUR, "/home/anna/.local/state/bough", policy="fair"),
)  # fmt: skip


def overview(seen: Snapshot, look: Look) -> list[str]:
    sight = top_drawing.Sight(chosen="12", server="node-1")
    return top_drawing.overview(seen, sight, look, 24).lines


SCREENS: dict[str, tuple[Callable[[Any, Look], Sequence[str]], Any, Any]] = {
    "ls": (
        ls.render,
        ls.Listing(listed.some_jobs(), ls.Wanted(), more=True),
        ls.Listing([waiting(name=EVIL, queue=EVIL, user=EVIL, reason=reason(EVIL))], ls.Wanted()),
    ),
    "history": (
        history.render,
        history.Past([ended("10", "failed", 1), ended()], users=True, more=True),
        history.Past([ended("9", "failed", 1, name=EVIL, user=EVIL, queue=EVIL)], True, False),
    ),
    "show": (
        show.render,
        show.Shown(detail(), receipt()),
        show.Shown(
            detail(job(name=EVIL, user=EVIL, reason=reason(EVIL), command=("sh", EVIL))), receipt()
        ),
    ),
    "why": (
        why.render,
        why.Answer(waiting(), detail().spec, waiting().reason),
        why.Answer(waiting(name=EVIL), detail().spec, reason(EVIL, facts={"queue": EVIL})),
    ),
    "devices": (
        devices.render,
        listed.some_devices(),
        [listed.gpu(0, "taken", note=EVIL, node=EVIL, model=EVIL)],
    ),
    "queue ls": (queues.render, listed.some_queues(), listed.some_queues()),
    "queue show": (queues.render_one, listed.some_queues()[2], listed.some_queues()[3]),
    "user ls": (users.render, listed.some_users(), listed.some_users()),
    "report usage": (
        partial(report.render, by="user", window=(NOW - 24 * HOUR, NOW)),
        [UsageRow("anna", 12, 812.4, 3.5, 1, 44.0), UsageRow("ben", 1, 0.004)],
        [UsageRow(EVIL, 1, 1.0)],
    ),
    "status": (
        service.render,
        StatusRecord("1.0", 17, NOW - HOUR, "/home/anna", devices=8, taken=1, notes=("Full.",)),
        StatusRecord("1.0", 17, NOW - HOUR, "/home/anna"),
    ),
    "config": (settings.render, Config(), Config()),
    "token ls": (
        tokens.render,
        [TokenRecord("laptop", "anna", ("read", "submit", "manage", "admin"), NOW, NOW + 9)],
        [TokenRecord(EVIL, EVIL, ("read",), NOW)],
    ),
    "doctor": (
        doctor.render,
        [ok("Python", "3.11"), warn("cgroup v2", "not lent to us " * 9), fail("x", "no", "mend")],
        [fail("daemon", EVIL, "mend")],
    ),
    "top": (overview, TOP, TOP._replace(jobs=[waiting(name=EVIL, user=EVIL, reason=reason(EVIL))])),
    "top, one job": (
        top_drawing.opened,
        Opened(detail(), waiting().reason, receipt(), ["[0] loss 0.25"]),
        Opened(detail(job(name=EVIL)), reason(EVIL), receipt(), [EVIL]),
    ),
}  # fmt: skip
NAMES = list(SCREENS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [200, 100, 80])
def test_it_fits(name: str, width: int) -> None:
    render, found, _ = SCREENS[name]
    for people in (True, False):
        lines = render(found, look(width, people))
        assert lines
        assert [line for line in lines if cells(line) > width] == []


@pytest.mark.parametrize("name", NAMES)
def test_colours_are_the_only_difference_they_make(name: str) -> None:
    render, found, _ = SCREENS[name]
    plain, coloured = (render(found, look(colour=colour)) for colour in (False, True))
    assert "\x1b" not in "".join(plain)
    assert [ESCAPE.sub("", line) for line in coloured] == list(plain)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_moves_the_cursor(name: str) -> None:
    """Whatever others call their jobs, queues and devices."""
    render, _, evil = SCREENS[name]
    for line in render(evil, look()):
        assert line.isprintable(), line


@pytest.mark.parametrize("name", ["ls", "history", "devices", "user ls", "token ls"])
def test_nothing_is_told_to_people_alone(name: str) -> None:
    """A program that reads an empty listing reads nothing; a person is told what to do."""
    render, _, _ = SCREENS[name]
    none = {"ls": ls.Listing([], ls.Wanted()), "history": history.Past([], True, False)}
    nothing = none.get(name, [])
    assert list(render(nothing, look(people=False))) == []
    assert "bough " in " ".join(render(nothing, look(people=True)))


def test_jobs_in_a_table() -> None:
    lines = ls.render(ls.Listing(listed.some_jobs(), ls.Wanted(user="anna")), look())
    assert lines == [
        "Job  Name            Queue    State    Devices    Time",
        "14   a-rather-long…  vision   waiting  – of 2–8     2h  needs at least 2 a100 d…",
        "12   resnet          vision   running  4 of 2–8  1h54m  43% · 2h40m left · node…",
        "11   ablation        default  parked   – of 2–8  1h54m  parked by a user; bough…",
        "10   typo            default  failed   2–8         54m  exit code 1, 1h ago",
        "9    resnet          default  done     2–8         54m  1h ago",
    ]


def test_one_job_in_full() -> None:
    lines = show.render(show.Shown(detail(), receipt()), look())
    text = "\n".join(lines)
    assert lines[0] == "Job 12  resnet  running  ████▎░░░░░ 43% · 2h30m left"
    assert "asked      2–8 a100 devices with 4 CPUs and 16GiB each" in lines
    assert "folder     /data/x" in lines
    assert "2 to 8 devices, 1h54m" in text
    assert re.search(r"^  1  +\S+ +24m +node-1:0–1 +somebody else killed it", text, re.M)
    assert re.search(r"^  2  +\S+ +1h24m +node-1:0–3 +goes on$", text, re.M)
    assert "7.5 device-hours, 0.2 of them lost" in text.replace("\n", " ")
    assert "3.21 kWh" in text


def test_a_job_that_was_always_as_big() -> None:
    """With pauses."""
    sizes = ((NOW - HOUR, 4), (NOW - 0.5 * HOUR, 0), (NOW - 0.2 * HOUR, 4))
    lines = show.growth(detail(sizes=sizes), look())
    assert any(" 4 devices, 1h " in line for line in lines)


def test_devices_are_a_tree() -> None:
    lines = devices.render(listed.some_devices(), look())
    heads = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in heads] == ["Device", "node-1", "node-2"]
    assert "4 × a100 (NVIDIA A100-SXM4-80GB), 0 free, 1,194 W" in heads[1]
    assert any("process 4711" in line for line in lines)
    assert any(line.split()[:2] == ["0–7", "free"] for line in lines)


def test_who_has_taken_a_device_is_told_in_full() -> None:
    """Beside it where there is room, else below."""
    note = "process 4711 of ben: python notebook.py"
    (beside,) = (line for line in devices.render(listed.some_devices(), look(120)) if note in line)
    assert beside.split()[:2] == ["2", "taken"]
    lines = devices.render(listed.some_devices(), look(80))
    at = next(number for number, line in enumerate(lines) if line.strip() == note)
    assert lines[at - 1].split()[:2] == ["2", "taken"]
    assert any(line.strip() == "double-bit memory error (Xid 48)" for line in lines)


def test_roles_say_what_each_worker_has() -> None:
    roles = (
        Role(name="ps", count=Range(min=2, max=2), devices=0),
        Role(name="chief"),
        Role(name="worker", count=Range(min=4, max=16), devices=2),
    )
    told = "2 × ps without devices, 1 × chief with 1 device, 4–16 × worker with 2 devices each"
    assert show.asked(JobSpec(name="gang", roles=roles)) == told


def test_queues_are_a_tree() -> None:
    lines = queues.render(listed.some_queues(), look(people=False))
    names = [re.match(r" *[\w-]+", line) for line in lines[1:]]
    assert [name and name[0] for name in names] == ["default", "research", "  vision", "  nlp"]
    assert lines[-1].endswith("paused")
