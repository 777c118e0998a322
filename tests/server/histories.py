"""A small live daemon for tests: a scheduler whose every step is written to a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bough.core import model as m
from bough.core.scheduler import Settings
from bough.server.replay import resume
from bough.server.rows import Batch, Conditions
from bough.server.store import Store

FIFO = Conditions(policy="fifo")
#: With everything that may be said.
SHARING = Conditions(
    policy="max_min",
    settings=Settings(damp_seconds=30.0, locality_seconds=60.0),
    queues=(
        m.Queue(name="a", guarantee=4),
        m.Queue(name="b", weight=2.0, half_life_seconds=3600.0),
    ),
    levels=("rack", "node"),
    bandwidth={"rack": 10e9, "node": 50e9},
    inner={"socket": 4},
)


class Daemon:
    """A brain whose every step is written down, and a body that answers as chance has it."""

    def __init__(self, store: Store, conditions: Conditions, seed: int = 1) -> None:
        self.store = store
        self.random = np.random.default_rng(seed)
        self.now, self.running = 0.0, dict[str, int]()
        self.answers: list[m.Event] = []
        self.path = ("r0",) * (len(conditions.levels) - 1)
        self.begin(conditions)

    def begin(self, conditions: Conditions) -> None:
        """As after a restart: from the last snapshot and what came after it."""
        self.scheduler, outcome = resume(self.store, conditions)
        assert outcome.difference is None

    def step(self, events: Sequence[m.Event]) -> None:
        commands = self.scheduler.handle(events)
        decided = [(each, self.scheduler.reason_for(each)) for each in commands]
        self.store.append(Batch(at=self.now, events=events, commands=decided))
        for command in commands:
            self.execute(command)

    def execute(self, command: m.Command) -> None:
        id, epoch, at = command.id, command.epoch, self.now
        match command:
            case m.Start():
                self.running[id] = epoch
                self.answers.append(m.Started(at=at, id=id, epoch=epoch))
            case m.Resize(step=step):
                self.answers.append(m.Resized(at=at, id=id, epoch=epoch, step=step))
            case m.Stop():
                self.running.pop(id, None)
                self.answers.append(m.Exited(at=at, id=id, epoch=epoch, why="stopped"))
            case _:
                self.running.pop(id, None)

    def live(self, steps: int) -> None:
        """Jobs come and go, nodes fail, and now and then a snapshot is saved."""
        if not self.store.step:
            nodes = [m.Node(name=f"n{i}", kind="gpu", devices=8, path=self.path) for i in range(2)]
            self.step([m.NodeUp(at=0.0, node=node) for node in nodes])
        for _ in range(steps):
            self.now += float(self.random.exponential(20.0))
            events, self.answers = [*self.answers, *self.happening()], []
            self.step(events)
            if self.random.random() < 0.03:
                self.store.save_snapshot(self.store.seq, self.scheduler.to_bytes())

    def happening(self) -> list[m.Event]:
        at, number = self.now, int(self.random.integers(12))
        ids = list(self.running)
        if number < 5 or not ids:
            most = int(self.random.choice([1, 2, 4, 8]))
            spec = m.JobSpec(
                name="job", user="u", devices=m.Range(min=1, max=most),
                queue=str(self.random.choice(self.scheduler.state.queues.names)),
                estimate_seconds=float(self.random.uniform(10, 1000)),
            )  # fmt: skip
            return [m.Submitted(at=at, id=str(self.store.next_number()), spec=spec)]
        id = ids[int(self.random.integers(len(ids)))]
        epoch = self.running[id]
        if number < 9:
            del self.running[id]
            return [m.Exited(at=at, id=id, epoch=epoch, why="done")]
        if number == 9:
            return [m.Progressed(at=at, id=id, epoch=epoch, left=100.0, rate=1.5, size=1)]
        if number == 10:
            return [m.Cancelled(at=at, id=id)]
        return [m.DeviceHealth(at=at, name="n0", device=3, healthy=bool(number % 2)), m.Tick(at=at)]
