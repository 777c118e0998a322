"""What a history must show whatever has happened: recounted from the journal alone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from bough.core import model as m
from bough.home import store_path
from bough.records import ENDED
from bough.server.journal import of_store, replay, steps_of
from bough.server.reading import StoreReader
from bough.server.rows import Step

Device = tuple[str, int]


class Book:
    """Who holds which device, and which jobs there are, by what was written down."""

    def __init__(self) -> None:
        self.devices: set[Device] = set()
        self.holders: dict[Device, str] = {}
        self.epochs: dict[str, int] = {}
        self.specs: dict[str, m.JobSpec] = {}
        self.over: set[str] = set()
        self.at = 0.0

    def read(self, step: Step) -> None:
        assert step.at >= self.at, f"step {step.step}: time has fallen"
        self.at = step.at
        for event in step.events:
            self._happened(event)
        for command in step.commands:
            self._commanded(command)

    def _happened(self, event: m.Event) -> None:
        if isinstance(event, m.NodeUp):
            self.devices |= {(event.node.name, n) for n in range(event.node.devices)}
        elif isinstance(event, m.Submitted):
            assert event.id not in self.specs, f"job {event.id} was submitted twice"
            self.specs[event.id] = event.spec
        elif isinstance(event, m.Amended) and event.devices is not None:
            spec = self.specs[event.id]
            self.specs[event.id] = msgspec.structs.replace(spec, devices=event.devices)
        elif isinstance(event, m.Exited) and self.epochs.get(event.id) == event.epoch:
            self._freed(event.id)

    def _commanded(self, command: m.Command) -> None:
        id = command.id
        if isinstance(command, m.Ended):
            assert id not in self.over, f"job {id} ended twice"
            assert id not in self.holders.values(), f"job {id} ended and holds devices"
            self.over.add(id)
        elif isinstance(command, m.Start):
            assert id not in self.over, f"job {id} began after its end"
            assert command.epoch > self.epochs.get(id, 0), f"job {id} began twice"
            assert id not in self.holders.values(), f"job {id} began where it already ran"
            self.epochs[id] = command.epoch
            held = {(node, n) for node, numbers in command.place for n in numbers}
            assert held <= self.devices, f"job {id} got devices that there are not"
            assert not held & self.holders.keys(), f"job {id} got devices of another"
            assert len(held) in self.specs[id].sizes(), f"job {id} got {len(held)} devices"
            self.holders |= dict.fromkeys(held, id)

    def _freed(self, id: str) -> None:
        self.holders = {device: job for device, job in self.holders.items() if job != id}


def assert_sound(home: Path, *, dropped: int = 0) -> Book:
    """Whole, decided again in the same way byte for byte, and nothing given out twice."""
    with closing(StoreReader(store_path(home))) as store:
        assert store.check() == []
        assert store.dropped() == dropped
        outcome = replay(of_store(store))
        assert outcome.difference is None, outcome.difference
        book = Book()
        for step in steps_of(store.events()):
            book.read(step)
        shown = {job.id: job.state for job in store.jobs(limit=1_000_000)}
        assert shown.keys() == book.specs.keys()
        assert {id for id, state in shown.items() if state in ENDED} == book.over
    return book
