"""The watch over the devices: taken, freed, broken, silent, held by a job, checked and forgiven."""

from __future__ import annotations

import logging
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping

import pytest
from tests.hardware.conftest import Driver
from tests.hardware.faketools import Tools, recorded

from bough.core.model import DeviceHealth, Node
from bough.hardware import monitor as watching
from bough.hardware import probe as probing
from bough.hardware.meters import Round
from bough.hardware.monitor import Monitor
from bough.hardware.nvidia import Nvml
from bough.hardware.probe import Machine, Part, Reader, probe
from bough.hardware.readings import Device, DeviceUser, Links, NotHere, Reading

PATIENCE_SECONDS = 20.0
GIB = 1 << 30
ADA = DeviceUser(4711, 20 * GIB, "ada", "python")
BOB = DeviceUser(4712, 30 * GIB, "bob", "train.py")
FREE = Reading(users=())
TAKEN = Reading(users=(ADA,))
Answer = Mapping[int, Reading] | Exception


class Meters:
    """A source whose every answer the test gives, so that it knows which look is which."""

    maker, facts, notes, links, seconds = "amd", (), (), Links(), 0.01

    def __init__(self, count: int = 1) -> None:
        self.devices = tuple(Device(number, "mi300x", "MI300X") for number in range(count))
        node = Node(name="here", kind="mi300x", devices=count)
        part = Part(node, self, self.devices)
        self.machine = Machine((node,), ("node",), {}, {}, Reader([part]))
        self.forgiven = 0
        self._answers: queue.Queue[Answer] = queue.Queue()
        self._asked = threading.Semaphore(0)
        self._over = threading.Event()

    def read(self) -> Mapping[int, Reading]:
        self._asked.release()
        everything = {device.number: FREE for device in self.devices}
        answer: Answer = everything if self._over.is_set() else self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def forgive(self) -> None:
        self.forgiven += 1

    def say(self, answer: Answer | Reading) -> None:
        self._answers.put({0: answer} if isinstance(answer, Reading) else answer)

    def look(self, answer: Answer | Reading) -> None:
        """One whole look ends with this answer: the next one has begun."""
        self.say(answer)
        assert self._asked.acquire(timeout=PATIENCE_SECONDS)

    def started(self, monitor: Monitor, answer: Answer | Reading) -> None:
        """The first look, and the beginning of the second."""
        self.say(answer)
        monitor.start()
        for _ in range(2):
            assert self._asked.acquire(timeout=PATIENCE_SECONDS)

    def end(self) -> None:
        """Whoever asks finds all of them free, and waits for nothing."""
        self._over.set()
        self.say({})


class Watch:
    """A monitor on these meters, and what it told."""

    def __init__(self, meters: Meters, *, patience_seconds: float = 60.0) -> None:
        self.meters = meters
        self.told: queue.Queue[DeviceHealth] = queue.Queue()
        self.rounds: list[tuple[Round, Round]] = []
        self.ours: set[int] = set()
        self.held: set[int] = set()
        self.monitor = Monitor(
            meters.machine,
            lambda pid: pid in self.ours,
            self.told.put,
            held=lambda node, device: device in self.held,
            metered=lambda before, after: self.rounds.append((before, after)),
            patience_seconds=patience_seconds,
        )

    def start(self, answer: Answer | Reading) -> None:
        self.meters.started(self.monitor, answer)

    def look(self, answer: Answer | Reading) -> list[tuple[int, bool, str]]:
        """What is told after one more look."""
        self.meters.look(answer)
        return self.said()

    def said(self) -> list[tuple[int, bool, str]]:
        found = []
        while not self.told.empty():
            change = self.told.get()
            found.append((change.device, change.healthy, change.note))
        return found

    def next(self) -> tuple[int, bool, str]:
        change = self.told.get(timeout=PATIENCE_SECONDS)
        return change.device, change.healthy, change.note


@pytest.fixture
def watch() -> Iterator[Watch]:
    found = Watch(Meters())
    yield found
    found.meters.end()
    found.monitor.stop()


WELL = (0, True, "")
TAKEN_BY_ADA = (0, False, "taken by ada's python (pid 4711, 20GiB)")


# ------------------------------------------------------------------------------- taken and freed


def test_the_first_look_tells_of_every_device() -> None:
    watch = Watch(Meters(3))
    watch.start({0: FREE, 1: TAKEN, 2: Reading(ailment="is hot")})
    assert watch.said() == [
        WELL, (1, False, "taken by ada's python (pid 4711, 20GiB)"), (2, False, "is hot"),
    ]  # fmt: skip
    watch.meters.end()
    watch.monitor.stop()


def test_taken_after_two_looks_and_freed_after_two(watch: Watch) -> None:
    watch.start(FREE)
    assert watch.said() == [WELL]
    assert watch.look(TAKEN) == []
    assert watch.monitor.verdicts["here", 0].state == "taken"
    assert watch.look(TAKEN) == [TAKEN_BY_ADA]
    assert watch.look(TAKEN) == []
    assert watch.look(FREE) == []
    assert watch.look(FREE) == [WELL]


def test_a_short_visit_is_not_told(watch: Watch) -> None:
    watch.start(FREE)
    watch.said()
    for answer in (TAKEN, FREE, TAKEN, FREE):
        assert watch.look(answer) == []


def test_another_visitor_is_no_news(watch: Watch) -> None:
    watch.start(TAKEN)
    assert watch.said() == [TAKEN_BY_ADA]
    assert watch.look(Reading(users=(BOB,))) == []
    assert watch.look(Reading(users=(BOB,))) == []
    assert "bob" in watch.monitor.verdicts["here", 0].note


def test_our_own_processes_take_nothing(watch: Watch) -> None:
    watch.ours = {ADA.pid}
    watch.start(TAKEN)
    assert watch.said() == [WELL]
    assert watch.look(Reading(users=(ADA, BOB))) == []
    assert watch.look(Reading(users=(ADA, BOB))) == [
        (0, False, "taken by bob's train.py (pid 4712, 30GiB)")
    ]


def test_a_foreign_process_on_a_real_tool(tools: Tools, foreigner: subprocess.Popen[bytes]) -> None:
    """It is told by name, and the device is free again when it has gone."""

    def prints(processes: str) -> None:
        tools.prints(
            "amd-smi",
            *((f"{c} --json", recorded(f"amd-smi-6.2-{c}.json")) for c in ("list", "static")),
            ("metric --json", recorded("amd-smi-6.2-metric.json")),
            ("process --json", processes),
        )

    prints("[]\n")
    told: queue.Queue[DeviceHealth] = queue.Queue()
    monitor = Monitor(probe("amd"), lambda pid: False, told.put, seconds=0.01)
    monitor.start()
    try:
        first = [told.get(timeout=PATIENCE_SECONDS) for _ in range(2)]
        assert [(change.device, change.healthy) for change in first] == [(0, True), (1, False)]
        prints(recorded("amd-smi-6.2-process.json", foreigner.pid))
        taken = told.get(timeout=PATIENCE_SECONDS)
        assert (taken.device, taken.healthy) == (0, False)
        assert "'s python" in taken.note
        assert f"(pid {foreigner.pid}, 39.1GiB)" in taken.note
        assert foreigner.stdin is not None
        foreigner.stdin.close()
        foreigner.wait(PATIENCE_SECONDS)
        prints("[]\n")
        freed = told.get(timeout=PATIENCE_SECONDS)
        assert (freed.device, freed.healthy, freed.note) == (0, True, "")
    finally:
        monitor.stop()


# ----------------------------------------------------------------------------------- held by a job


def test_a_job_keeps_what_somebody_joins(watch: Watch) -> None:
    """Nor is it told before the job has gone."""
    watch.held = {0}
    watch.start(FREE)
    assert watch.said() == [WELL]
    for _ in range(3):
        assert watch.look(TAKEN) == []
    assert watch.monitor.verdicts["here", 0].note == "taken by ada's python (pid 4711, 20GiB)"
    watch.held = set()
    assert watch.look(TAKEN) == []
    assert watch.look(TAKEN) == [TAKEN_BY_ADA]


def test_a_job_keeps_a_device_with_an_ailment_it_can_live_with(watch: Watch) -> None:
    ailing = Reading(ailment="needs a reset soon", users=())
    watch.held = {0}
    watch.start(ailing)
    assert watch.said() == [WELL]
    assert watch.look(ailing) == []
    watch.held = set()
    assert watch.look(ailing) == []
    assert watch.look(ailing) == [(0, False, "needs a reset soon")]


def test_a_broken_device_is_told_at_once_even_under_a_job(watch: Watch) -> None:
    watch.held = {0}
    watch.start(FREE)
    watch.said()
    broken = Reading(ailment="fell off the bus", broken=True)
    assert watch.look(broken) == [(0, False, "fell off the bus")]


def test_a_stranger_of_another_container_may_be_our_own_job(watch: Watch) -> None:
    """Inside a container of its own, a job's process has a number that means nothing here."""
    stranger = Reading(users=(DeviceUser(1, GIB),))
    watch.held = {0}
    watch.start(stranger)
    assert watch.monitor.verdicts["here", 0].state == "well"
    watch.held = set()
    watch.look(stranger)
    watch.said()
    assert watch.look(stranger) == [
        (0, False, "taken by somebody outside this container (pid 1, 1GiB)")
    ]


# ------------------------------------------------------------------------------ silent and broken


def test_a_device_that_is_no_longer_there(watch: Watch) -> None:
    watch.start(FREE)
    watch.said()
    assert watch.look({}) == [(0, False, "is no longer there")]


def test_a_tool_that_fails_is_no_proof_that_the_device_is_broken(watch: Watch) -> None:
    watch.start(FREE)
    watch.said()
    assert watch.look(NotHere("rocm-smi failed: exit code 1")) == []
    assert watch.look(NotHere("rocm-smi failed: exit code 1")) == [
        (0, False, "does not answer: rocm-smi failed: exit code 1")
    ]
    assert watch.look(FREE) == []
    assert watch.look(FREE) == [WELL]


def test_words_that_nobody_foresaw_end_no_watch(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.start(FREE)
    watch.said()
    with caplog.at_level(logging.CRITICAL):
        watch.look(KeyError("gpu"))
        (told,) = watch.look(KeyError("gpu"))
        assert told[2].startswith("does not answer: what its driver says cannot be read (KeyError")
        watch.look(FREE)
        assert watch.look(FREE) == [WELL]


def test_a_driver_that_hangs_is_not_waited_for() -> None:
    watch = Watch(Meters(), patience_seconds=0.05)
    watch.start(FREE)
    assert watch.next() == WELL
    assert watch.next() == (0, False, "does not answer (no word from its driver for 0.05 s)")
    watch.meters.end()  # what it says at last was asked long ago: it is asked anew
    assert watch.next() == WELL
    watch.monitor.stop()


def test_it_ends_while_the_driver_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "STOP_SECONDS", 0.05)
    watch = Watch(Meters())
    watch.start(FREE)
    watch.monitor.stop()
    watch.meters.end()


def test_what_could_not_be_told_is_told_at_the_next_look(
    caplog: pytest.LogCaptureFixture,
) -> None:
    meters = Meters(2)
    told: list[tuple[int, bool]] = []

    def changed(change: DeviceHealth) -> None:
        if change.device == 0 and len(told) < 2:
            raise OSError("the disk is full")
        told.append((change.device, change.healthy))

    monitor = Monitor(meters.machine, lambda pid: False, changed)
    with caplog.at_level(logging.CRITICAL):
        meters.started(monitor, {0: TAKEN, 1: TAKEN})
        assert told == [(1, False)]
        meters.look({0: TAKEN, 1: FREE})
        meters.look({0: TAKEN, 1: FREE})
        meters.look({0: TAKEN, 1: FREE})
    assert told == [(1, False), (1, True), (0, False)]
    meters.end()
    monitor.stop()


# -------------------------------------------------------------------------- asked, and by the way


def test_a_check_is_believed_at_once() -> None:
    watch = Watch(Meters())
    for answer, told in ((FREE, [WELL]), (TAKEN, [TAKEN_BY_ADA]), (FREE, [WELL])):
        watch.meters.say(answer)
        assert watch.monitor.check() == {("here", 0): answer}
        assert watch.said() == told
        assert watch.monitor.readings == {("here", 0): answer}
    assert watch.meters.forgiven == 3


def test_a_check_forgives_what_was_seen_to(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.number("count").value = 2
    monkeypatch.setattr(probing, "MAKERS", {"nvidia": lambda: Nvml(driver.bindings)})
    told: list[tuple[int, bool]] = []
    monitor = Monitor(probe(), lambda pid: False, lambda c: told.append((c.device, c.healthy)))
    monitor.check()
    driver.reports(1, 79)
    driver.divided[0] = 1
    monitor.check()
    driver.divided[0] = 0
    monitor.check()
    assert told == [(0, True), (1, True), (0, False), (1, False), (0, True), (1, True)]


def test_energy_is_counted_from_look_to_look(watch: Watch) -> None:
    watch.start(Reading(joules=10.0))
    watch.look(Reading(joules=25.0))
    (before, after), *_ = watch.rounds
    assert (before.readings["here", 0].joules, after.readings["here", 0].joules) == (10, 25)
    assert after.at >= before.at


def test_cpu_slots_have_no_meters_and_no_thread(tools: Tools) -> None:
    told: list[DeviceHealth] = []
    threads = threading.active_count()
    monitor = Monitor(probe("cpu:3"), lambda pid: False, told.append, seconds=0.01)
    monitor.start()
    assert [(change.device, change.healthy) for change in told] == [
        (0, True), (1, True), (2, True),
    ]  # fmt: skip
    assert monitor.seconds == float("inf")
    assert threading.active_count() == threads
    monitor.stop()
