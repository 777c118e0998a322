"""Drives one scheduler through a story told line by line; each line returns its commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from tests.core.bodies import Body

from bough.core import model as m
from bough.core.policy import Policy
from bough.core.queues import QueueTree
from bough.core.reason import Reason
from bough.core.scheduler import Scheduler, Settings
from bough.core.speedup import Curve, SpeedBook
from bough.core.topology import Topology
from bough.policies import find

Commands = list[m.Command]
Why = Literal["done", "failed", "lost", "stopped"]


def job(devices: int | tuple[int, ...] = 1, **fields: Any) -> m.JobSpec:
    """A job of one size, or of any of these sizes."""
    sizes = devices if isinstance(devices, tuple) else (devices,)
    return m.JobSpec(
        name="job", devices=m.Range(min=sizes[0], max=sizes[-1], steps=sizes), **fields
    )


def node(name: str, devices: int = 4, kind: str = "gpu", **fields: Any) -> m.Node:
    """A node without a path, unless one is given."""
    return m.Node(name=name, kind=kind, devices=devices, **fields)


def on(name: str, *devices: int) -> m.Place:
    """A place on one node."""
    return ((name, devices),)


def linear(*sizes: int) -> Curve:
    """Twice the devices, twice the speed."""
    return Curve(sizes, tuple(float(s) for s in sizes))


def as_queues(*queues: m.Queue) -> QueueTree:
    """A tree of these, parents first."""
    tree = QueueTree()
    for queue in queues:
        tree.set(queue)
    return tree


class Driver:
    """A scheduler, a body that does as it is told when asked to, and the time."""

    def __init__(
        self,
        policy: str | Policy,
        *nodes: m.Node,
        topology: Topology | None = None,
        queues: Sequence[m.Queue] = (),
        speedups: SpeedBook | None = None,
        **settings: Any,
    ) -> None:
        self.scheduler = Scheduler(
            find(policy) if isinstance(policy, str) else policy,
            topology,
            queues=as_queues(*queues),
            speedups=speedups,
            settings=Settings(**settings),
        )
        self.now = 0.0
        self.body = Body()
        for one in nodes:
            self.up(one)

    # ------------------------------------------------------------------ what happens

    def say(self, *events: m.Event) -> Commands:
        """Deliver events as they are, without asking the body."""
        commands = self.scheduler.handle(events)
        self.body.receive(commands)
        return commands

    def submit(self, id: str, devices: int | tuple[int, ...] = 1, **fields: Any) -> Commands:
        return self.say(m.Submitted(at=self.now, id=id, spec=job(devices, **fields)))

    def submit_spec(self, id: str, spec: m.JobSpec) -> Commands:
        return self.say(m.Submitted(at=self.now, id=id, spec=spec))

    def cancel(self, id: str) -> Commands:
        return self.say(m.Cancelled(at=self.now, id=id))

    def hold(self, id: str) -> Commands:
        return self.say(m.Held(at=self.now, id=id))

    def release(self, id: str) -> Commands:
        return self.say(m.Held(at=self.now, id=id, held=False))

    def amend(self, id: str, **wish: Any) -> Commands:
        return self.say(m.Amended(at=self.now, id=id, **wish))

    def up(self, new: m.Node) -> Commands:
        return self.say(m.NodeUp(at=self.now, node=new))

    def down(self, name: str) -> Commands:
        return self.say(m.NodeDown(at=self.now, name=name))

    def drain(self, name: str, drained: bool = True) -> Commands:
        return self.say(m.NodeDrained(at=self.now, name=name, drained=drained))

    def health(self, name: str, device: int, healthy: bool) -> Commands:
        return self.say(m.DeviceHealth(at=self.now, name=name, device=device, healthy=healthy))

    def queue(self, name: str, **fields: Any) -> Commands:
        return self.say(m.QueueSet(at=self.now, queue=m.Queue(name=name, **fields)))

    def tick(self, at: float) -> Commands:
        """Let time pass."""
        self.now = at
        return self.say(m.Tick(at=at))

    def progress(self, id: str, **told: Any) -> Commands:
        epoch = self.scheduler.state.jobs[id].epoch
        return self.say(m.Progressed(at=self.now, id=id, epoch=epoch, **told))

    # ------------------------------------------------------------------ what the body does

    def does(self, id: str) -> Commands:
        """The body carries out the next command of a job and answers."""
        self.body.work(id, self.now)
        return self._deliver()

    def exits(self, id: str, why: Why = "done", code: int = 0, note: str = "") -> Commands:
        """The job's processes end by themselves."""
        self.body.leave(id, self.now, why)
        last = self.body.answers.pop()
        self.body.answers.append(msgspec.structs.replace(last, code=code, note=note))
        return self._deliver()

    def settle(self) -> Commands:
        """The body does all that it is told until there is no more to do."""
        commands: Commands = []
        while self.body.todo:
            commands += self.does(min(self.body.todo))
        return commands

    def _deliver(self) -> Commands:
        answers, self.body.answers = self.body.answers, []
        return self.say(*answers) if answers else []

    # ------------------------------------------------------------------ what is so

    def why(self, id: str) -> Reason:
        return self.scheduler.why(id)

    def runs(self) -> dict[str, int]:
        """How many devices each job really has."""
        return {id: len(devices) for id, (_, _, devices) in sorted(self.body.runs.items())}

    @property
    def wake_at(self) -> float:
        return self.scheduler.wake_at


def half_taken(policy: str, queues: Sequence[m.Queue] = ()) -> Driver:
    """Four nodes of two, each half taken."""
    d = Driver(policy, *[node(f"n{i}", 2) for i in range(4)], queues=queues)
    for i in range(8):
        d.submit(f"x{i}", 1)
    d.settle()
    for i in range(0, 8, 2):
        d.exits(f"x{i}")
    return d
