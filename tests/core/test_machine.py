"""The scheduler against a slow, forgetful, repetitive world: what must hold after every step."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.bodies import Body, devices_of

from bough.core import model as m
from bough.core.policy import Ints, Policy, View
from bough.core.reason import explain
from bough.core.scheduler import Scheduler, Settings
from bough.policies import find

POLICIES = ("fifo", "srtf", "las", "max_min", "greedy", "fifo(skip=true)", "backfill", "edf", "drf")


class Kinds(Policy, frozen=True):
    """Decides over all kinds at once, and changes its mind every ten seconds."""

    scope = "cluster"

    def plan(self, view: View) -> Ints:
        jobs, room = view.jobs, list(view.pools)
        plan = np.zeros((jobs.n, len(room)), np.int64)
        for row in np.argsort(1 - jobs.must, kind="stable").tolist():
            turn = (row + int(view.now // 10)) % len(room)
            pool = int(jobs.pool[row]) if jobs.must[row] else turn
            allowed = view.classes.sizes[jobs.cls[row]]
            lo, hi = int(jobs.lo[row]), int(jobs.hi[row])
            fits = [int(s) for s in allowed if max(lo, 1) <= s <= min(hi, room[pool])]
            plan[row, pool] = lo if jobs.must[row] else max(fits, default=0)
            room[pool] -= plan[row, pool]
        return plan


class Cluster(RuleBasedStateMachine):
    """Random submissions, ends, failures and answers; commands go to a body that asserts."""

    @initialize(
        policy=st.sampled_from([*POLICIES, "kinds"]),
        sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
        damp=st.sampled_from([0.0, 5.0]),
        kinds=st.integers(1, 2),
    )
    def begin(self, policy: str, sizes: list[int], damp: float, kinds: int) -> None:
        self.policy = Kinds() if policy == "kinds" else find(policy)
        self.settings = Settings(damp_seconds=damp, locality_seconds=10.0)
        self.scheduler = Scheduler(self.policy, settings=self.settings)
        self.body = Body()
        self.now = 0.0
        self.count = 0
        self.specs: dict[str, m.JobSpec] = {}
        self.nodes = [
            m.Node(name=f"n{i}", kind=f"k{i % kinds}", devices=size) for i, size in enumerate(sizes)
        ]
        self.batches: list[list[m.Event]] = []
        self.commands: list[list[m.Command]] = []
        self.feed([m.NodeUp(at=0.0, node=node) for node in self.nodes])

    def feed(self, events: list[m.Event]) -> None:
        commands = self.scheduler.handle(events)
        self.batches.append(events)
        self.commands.append(commands)
        for command in commands:
            if isinstance(command, m.Start | m.Resize):
                size, allowed = len(devices_of(command.place)), self.specs[command.id].sizes()
                assert size in allowed, f"{size} is not one of {allowed}"
        self.body.receive(commands)

    # ------------------------------------------------------------------ what may happen

    @rule(
        least=st.integers(1, 10),
        extra=st.integers(0, 10),
        wait=st.floats(0, 10),
        preemptible=st.booleans(),
        in_place=st.booleans(),
        calm=st.sampled_from([0.0, 0.0, 7.0]),
        limit=st.sampled_from([m.INFINITY, m.INFINITY, 12.0]),
        after=st.booleans(),
        queue=st.sampled_from(["default", "default", "a", "b"]),
        retries=st.integers(0, 1),
        cpus=st.sampled_from([0.0, 0.0, 1.0]),
        priority=st.sampled_from([0, 0, 0, 1]),
        gang=st.booleans(),
        wish=st.sampled_from(
            [m.Wish(), m.Wish(), m.Wish(mode="require", level="node"), m.Wish(mode="spread")]
        ),
    )
    def submit(
        self, least: int, extra: int, wait: float, preemptible: bool, in_place: bool, calm: float,
        limit: float, after: bool, queue: str, retries: int, cpus: float, priority: int,
        gang: bool, wish: m.Wish,
    ) -> None:  # fmt: skip
        self.now += wait
        self.count += 1
        before = tuple(m.After(job=id, on="any") for id in sorted(self.specs)[-1:] if after)
        roles = (
            m.Role(name="ps", devices=0, cpus=1.0),
            m.Role(name="worker", count=m.Range(min=least, max=least + extra)),
        )
        spec = m.JobSpec(
            name=f"j{self.count}", devices=m.Range(min=least, max=least + extra),
            roles=roles if gang and extra % 3 == 0 else (), priority=priority, topology=wish,
            preemptible=preemptible, resize_in_place=in_place, min_run_seconds=calm,
            max_run_seconds=limit, after=before, queue=queue, retries=retries,
            estimate_seconds=10.0 * least, cpus=cpus,
        )  # fmt: skip
        self.specs[spec.name] = spec
        self.feed([m.Submitted(at=self.now, id=spec.name, spec=spec)])

    @precondition(lambda self: self.body.todo)
    @rule(data=st.data(), fails=st.sampled_from([False, False, False, True]))
    def carry_out(self, data: st.DataObject, fails: bool) -> None:
        self.body.work(data.draw(st.sampled_from(sorted(self.body.todo))), self.now, fails)

    @precondition(lambda self: self.body.runs)
    @rule(
        data=st.data(),
        left=st.none() | st.floats(0, 50),
        rate=st.none() | st.floats(0.1, 8),
        size=st.integers(1, 8),
    )
    def report(
        self, data: st.DataObject, left: float | None, rate: float | None, size: int
    ) -> None:
        id = data.draw(st.sampled_from(sorted(self.body.runs)))
        epoch = self.body.runs[id][0]
        told = m.Progressed(at=self.now, id=id, epoch=epoch, left=left, rate=rate, size=size)
        self.feed([told])

    @precondition(lambda self: self.body.answers)
    @rule(data=st.data(), fate=st.sampled_from(["once", "once", "twice", "lost"]))
    def answer(self, data: st.DataObject, fate: str) -> None:
        i = data.draw(st.integers(0, len(self.body.answers) - 1))
        event = self.body.answers.pop(i)
        event = msgspec.structs.replace(event, at=self.now)
        if fate != "lost":
            self.feed([event])
        if fate == "twice":
            self.feed([event])

    @rule()
    def observe(self) -> None:
        self.feed(self.body.observe(self.now))

    @precondition(lambda self: self.body.runs)
    @rule(data=st.data(), why=st.sampled_from(["done", "done", "failed", "lost"]))
    def exit_by_itself(self, data: st.DataObject, why: str) -> None:
        self.body.leave(data.draw(st.sampled_from(sorted(self.body.runs))), self.now, why)

    @precondition(lambda self: self.specs)
    @rule(data=st.data(), what=st.sampled_from(["cancel", "hold", "release"]))
    def user_acts(self, data: st.DataObject, what: str) -> None:
        id = data.draw(st.sampled_from(sorted(self.specs)))
        if what == "cancel":
            self.feed([m.Cancelled(at=self.now, id=id)])
        else:
            self.feed([m.Held(at=self.now, id=id, held=what == "hold")])

    @precondition(lambda self: self.specs)
    @rule(
        data=st.data(),
        least=st.integers(1, 8),
        extra=st.integers(0, 6),
        priority=st.none() | st.sampled_from([0, 2]),
        queue=st.none() | st.sampled_from(["default", "a", "c"]),
        limit=st.none() | st.sampled_from([0.0, 15.0]),
    )
    def user_asks_for_something_else(
        self, data: st.DataObject, least: int, extra: int, priority: int | None,
        queue: str | None, limit: float | None,
    ) -> None:  # fmt: skip
        id = data.draw(st.sampled_from(sorted(self.specs)))
        devices = m.Range(min=least, max=least + extra)
        if not self.specs[id].roles:
            self.specs[id] = msgspec.structs.replace(self.specs[id], devices=devices)
        told = m.Amended(
            at=self.now, id=id, devices=devices, priority=priority, queue=queue,
            max_run_seconds=limit,
        )  # fmt: skip
        self.feed([told])

    @rule(data=st.data(), what=st.sampled_from(["down", "up", "drain", "undrain", "ill", "well"]))
    def node_changes(self, data: st.DataObject, what: str) -> None:
        node = data.draw(st.sampled_from(self.nodes))
        events: dict[str, m.Event] = {
            "down": m.NodeDown(at=self.now, name=node.name),
            "up": m.NodeUp(at=self.now, node=node),
            "drain": m.NodeDrained(at=self.now, name=node.name),
            "undrain": m.NodeDrained(at=self.now, name=node.name, drained=False),
            "ill": m.DeviceHealth(at=self.now, name=node.name, device=0, healthy=False),
            "well": m.DeviceHealth(at=self.now, name=node.name, device=0),
        }
        self.feed([events[what]])

    @rule(data=st.data(), devices=st.integers(1, 8), cpus=st.sampled_from([100.0, 200.0]))
    def node_is_rebuilt(self, data: st.DataObject, devices: int, cpus: float) -> None:
        i = data.draw(st.integers(0, len(self.nodes) - 1))
        self.nodes[i] = msgspec.structs.replace(self.nodes[i], devices=devices, cpus=cpus)
        self.feed([m.NodeUp(at=self.now, node=self.nodes[i])])

    @rule(limit=st.integers(0, 6), guarantee=st.integers(0, 3), paused=st.booleans())
    def set_queue(self, limit: int, guarantee: int, paused: bool) -> None:
        queue = m.Queue(name="a", limit=max(limit, guarantee), guarantee=guarantee, paused=paused)
        self.feed([m.QueueSet(at=self.now, queue=queue)])

    @rule(wait=st.floats(0, 30))
    def time_passes(self, wait: float) -> None:
        self.now += wait
        self.feed([m.Tick(at=self.now)])

    @rule()
    def restart_from_snapshot(self) -> None:
        fresh = Scheduler(self.policy, settings=self.settings)
        fresh.from_bytes(self.scheduler.to_bytes())
        self.scheduler = fresh

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def books_match_the_tree(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        state = self.scheduler.state
        state.topology.check()
        taken: set[tuple[str, int]] = set()
        for row, job in enumerate(state.table.items):
            devices = devices_of(state.topology.place(job.place))
            assert not devices & taken, "a device is promised twice"
            taken |= devices
            assert len(devices) == state.table.size[row]
            assert len(devices) in (0, *job.spec.sizes()), "a gang is whole or absent"
            assert state.table.serials[row] == job.serial
        assert state.unready == int((state.table.ready == 0).sum())
        assert state.musts == int(state.table.must.sum())

    @invariant()
    def no_job_is_lost(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        known = set(self.scheduler.state.jobs) | set(self.body.ended)
        assert known == set(self.specs)

    @invariant()
    def no_plan_was_refused(self) -> None:
        if hasattr(self, "scheduler"):
            assert not self.scheduler.state.refused, self.scheduler.state.refused

    @invariant()
    def every_job_has_a_reason(self) -> None:
        if hasattr(self, "scheduler"):
            for id in self.specs:
                reason = explain(self.scheduler.state, id)
                assert reason.text.endswith(".")
                assert reason.code != "unknown"

    def teardown(self) -> None:
        if hasattr(self, "scheduler"):
            self.nobody_starves()
            self.replay_gives_the_same_commands()

    def nobody_starves(self) -> None:
        """Once everything is mended and jobs come to their ends, all that fit get their turn."""
        mend: list[m.Event] = [m.QueueSet(at=self.now, queue=m.Queue(name="a"))]
        for node in self.nodes:
            mend.append(m.NodeUp(at=self.now, node=node))
            mend.append(m.NodeDrained(at=self.now, name=node.name, drained=False))
            mend.append(m.DeviceHealth(at=self.now, name=node.name, device=0))
        self.feed(mend + [m.Held(at=self.now, id=id, held=False) for id in sorted(self.specs)])
        for _ in range(6 * len(self.specs) + 6):
            self.now += 20.0
            while self.body.todo:
                self.body.work(min(self.body.todo), self.now)
            self.feed(self.body.observe(self.now))
            self.feed([m.Tick(at=self.now)])
            if self.body.runs and not self.body.todo:
                self.body.leave(min(self.body.runs), self.now, "done")
        if isinstance(self.policy, Kinds):
            return  # it promises nobody a turn
        state = self.scheduler.state
        sizes = dict.fromkeys(state.topology.kinds, 0)
        for node in self.nodes:
            sizes[node.kind] += node.devices
        for id in state.jobs:
            least = self.specs[id].sizes()[0]
            spec = self.specs[id]
            if any(after.job in state.jobs for after in spec.after) or spec.topology.level:
                continue  # what it waits for never came, or it insists on one node
            assert least > max(sizes.values()), f"{id} never ran: {self.scheduler.why(id)}"

    def replay_gives_the_same_commands(self) -> None:
        again = Scheduler(self.policy, settings=self.settings)
        for events, commands in zip(self.batches, self.commands, strict=True):
            batch = msgspec.json.decode(msgspec.json.encode(events), type=list[m.AnyEvent])
            assert msgspec.json.encode(again.handle(batch)) == msgspec.json.encode(commands)


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
