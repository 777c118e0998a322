"""A body for scheduler tests that may be slow, forgetful and repetitive, but never lies."""

from __future__ import annotations

from bough.core import model as m

Device = tuple[str, int]


def devices_of(place: m.Place) -> set[Device]:
    """The devices of a place, one by one."""
    return {(node, d) for node, numbers in place for d in numbers}


class Body:
    """Carries out commands late and answers late; asserts what must never happen."""

    def __init__(self) -> None:
        #: Commands not carried out yet, in order for each job.
        self.todo: dict[str, list[m.Command]] = {}
        #: Answers not delivered yet.
        self.answers: list[m.Event] = []
        #: What really runs: job -> (epoch, step, devices).
        self.runs: dict[str, tuple[int, int, set[Device]]] = {}
        #: The last epoch of each job that is gone from here, and how it ended.
        self.gone: dict[str, tuple[int, str]] = {}
        self.ended: dict[str, str] = {}
        #: Resizes that failed: job -> (epoch, step).
        self.failed: dict[str, tuple[int, int]] = {}

    def receive(self, commands: list[m.Command]) -> None:
        """Take orders; ends are only noted."""
        for command in commands:
            if isinstance(command, m.Ended):
                assert command.id not in self.ended, f"{command.id} ended twice"
                self.ended[command.id] = command.state
            else:
                self.todo.setdefault(command.id, []).append(command)

    def held(self) -> dict[Device, str]:
        """Who is on each device now; nobody shares."""
        found: dict[Device, str] = {}
        for id, (_, _, devices) in self.runs.items():
            for device in devices:
                assert device not in found, f"{device} is held by {found[device]} and {id}"
                found[device] = id
        return found

    def work(self, id: str, now: float, fails: bool = False) -> None:
        """Carry out the job's next command; a resize may fail, and then nothing has changed."""
        queue = self.todo[id]
        command = queue.pop(0)
        if not queue:
            del self.todo[id]
        if isinstance(command, m.Start):
            assert id not in self.runs, f"{id} would run twice"
            self.runs[id] = (command.epoch, 0, devices_of(command.place))
            self.held()
            self.answers.append(m.Started(at=now, id=id, epoch=command.epoch))
        elif id in self.runs and self.runs[id][0] == command.epoch:
            if isinstance(command, m.Resize) and fails:
                self.failed[id] = (command.epoch, command.step)
                self.answers.append(
                    m.Resized(at=now, id=id, epoch=command.epoch, step=command.step, ok=False)
                )
            elif isinstance(command, m.Resize):
                self.runs[id] = (command.epoch, command.step, devices_of(command.place))
                self.held()
                self.answers.append(
                    m.Resized(at=now, id=id, epoch=command.epoch, step=command.step)
                )
            else:
                self.leave(id, now, "stopped")

    def leave(self, id: str, now: float, why: str) -> None:
        """The job's processes end."""
        epoch, _, _ = self.runs.pop(id)
        self.gone[id] = (epoch, why)
        self.answers.append(m.Exited(at=now, id=id, epoch=epoch, why=why))  # type: ignore[arg-type]

    def observe(self, now: float) -> list[m.Event]:
        """What is true now, told again: repairs whatever answers were lost."""
        told: list[m.Event] = []
        for id, (epoch, step, _) in sorted(self.runs.items()):
            told.append(m.Started(at=now, id=id, epoch=epoch))
            failed = self.failed.get(id, (0, 0))
            if failed[0] == epoch:
                told.append(m.Resized(at=now, id=id, epoch=epoch, step=failed[1], ok=False))
            elif step:
                told.append(m.Resized(at=now, id=id, epoch=epoch, step=step))
        for id, (epoch, why) in sorted(self.gone.items()):
            if id not in self.runs:
                told.append(m.Exited(at=now, id=id, epoch=epoch, why=why))  # type: ignore[arg-type]
        return told
