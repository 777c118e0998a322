"""Jobs from Python: `bough.run` sends one, and a Job is what one does with it afterwards.

job = bough.run("python train.py", gpus=(2, 8), deadline="fri 18:00")
for line in job.logs(follow=True):
    print(line)

loss = bough.run(train, gpus=4, args=("resnet",)).result()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from bough.client import Client
from bough.core.model import Range
from bough.core.prospects import Outlook, Quote
from bough.core.reason import Reason
from bough.core.units import parse_counts
from bough.errors import BoughError, ConflictError, InputError
from bough.located import Field
from bough.records import ENDED, Amendment, JobRecord, LogChunk, Receipt, Submission
from bough.submission import here, name_of
from bough.written import read, written

#: A number, the fewest and the most, or as on the command line: "2..8 step 2".
Devices = int | tuple[int, int] | str
Command = str | Sequence[str]
#: Options that a job file calls otherwise: as `bough run` has them.
NAMES: Final = {
    "gpus": "devices", "kind": "kinds", "mem": "memory", "time": "max_run", "retry": "retries",
}  # fmt: skip


class JobFailedError(BoughError):
    """The job did not end well."""

    def __init__(self, job: JobRecord) -> None:
        text, name = job.reason.text, f"Job {job.id} ({job.name})"
        told = text.removeprefix("It ") if text.startswith("It ") else f"is {job.state}: {text}"
        super().__init__(f"{name} {told}")
        self.job = job


def run(
    what: Command | Callable[..., Any],
    *,
    gpus: Devices = 1,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    client: Client | None = None,
    **options: Any,
) -> Job:
    """Send a job, and start the daemon if none runs.

    `what` is a text for the shell, a list of words, or a function that is called with `args` and
    `kwargs` in every worker. `options` are the fields of a job file (docs/job-file.md), or the
    names that `bough run` has for them: name, queue, deadline, estimate, after, retries, priority,
    kinds, cpus, memory, env, cwd, launch, time …
    """
    client = client or Client.connect(start=True)
    return Job(client.submit(_given(what, gpus, args, kwargs, client, options)), client)


def quote(
    what: Command | Callable[..., Any],
    *,
    gpus: Devices = 1,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    client: Client | None = None,
    versions: int = 20,
    horizon_seconds: float | None = None,
    **options: Any,
) -> Quote:
    """What would become of a job that is sent like this: nothing is sent. See `bough.run`."""
    client = client or Client.connect(start=True)
    if callable(what):  # how it is called makes no difference here
        what, args, kwargs = [getattr(what, "__name__", "function")], (), None
    given = _given(what, gpus, args, kwargs, client, options)
    return client.quote(given, versions=versions, horizon_seconds=horizon_seconds)


def _given(
    what: Command | Callable[..., Any],
    gpus: Devices,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    client: Client,
    options: Mapping[str, Any],
) -> Submission:
    """What is sent."""
    fields = {NAMES.get(name, name): given for name, given in options.items() if given is not None}
    fields["devices"] = _devices(gpus)
    if callable(what):
        from bough.functions import command_of

        if not client.address.socket:
            raise InputError("a function can be sent only to the daemon of this machine")
        fields["command"] = command_of(what, args, kwargs or {})
        fields.setdefault("name", getattr(what, "__name__", "").strip("<>") or "function")
    else:
        if args or kwargs:
            raise InputError("args and kwargs are for functions")
        fields["command"] = what
        words = what.split() if isinstance(what, str) else [str(word) for word in what]
        fields.setdefault("name", name_of(words))
    if "array" in fields:
        raise InputError("one call sends one job", field="array", hint="use a loop")
    shown = {field: name for name, field in NAMES.items() if name in options or name == "gpus"}
    (given,) = read([Field(written(fields), None)], here(), shown)
    return given


def job(ref: str | int, *, client: Client | None = None) -> Job:
    """A job that was sent before: by its number, or the latest of a name."""
    client = client or Client.connect()
    return Job(client.wait(str(ref), 0.0), client)


class Job:
    """One job."""

    def __init__(self, record: JobRecord, client: Client) -> None:
        self.id = record.id
        self.name = record.name
        self._client = client

    def __repr__(self) -> str:
        return f"<bough.Job {self.id} {self.name!r}>"

    def status(self) -> JobRecord:
        """As it is now."""
        return self._client.wait(self.id, 0.0)

    @property
    def state(self) -> str:
        """waiting, running, done …"""
        return self.status().state

    def wait(self, timeout: float | None = None) -> JobRecord:
        """Until it is over; TimeoutError if it is not after so many seconds."""
        found = self._client.wait(self.id, timeout)
        if found.state not in ENDED:
            raise TimeoutError(f"Job {self.id} is still {found.state} after {timeout:g}s")
        return found

    def result(self, timeout: float | None = None) -> Any:
        """What the function returned in rank 0, once it is over; what it raised is raised here."""
        from bough import functions

        record = self.wait(timeout)
        detail = self._client.job(self.id)
        spool = functions.spool_of(detail.recipe.argv) if detail.recipe else None
        if spool is not None:
            attempts = [attempt.epoch for attempt in detail.attempts] or [record.epoch]
            failed = record.state != "done"
            outcome = functions.outcome_of(spool, self.id, attempts, failed)
            if outcome is not None and record.state in ("done", "failed"):
                return functions.unpacked(outcome)
        if record.state != "done":
            raise JobFailedError(record)
        if spool is None:
            raise ConflictError(f"Job {self.id} runs a command; only functions have results.")
        return None  # the function ended its process itself

    def logs(
        self, *, follow: bool = False, rank: int | None = None, tail: int | None = None
    ) -> Iterator[str]:
        """The lines its workers print; with `follow`, until it is over."""
        for found in self._client.logs(self.id, follow=follow, rank=rank, tail=tail):
            if isinstance(found, LogChunk):
                yield from found.text.removesuffix("\n").split("\n")

    def why(self) -> Reason:
        """Why it waits or runs, and what would help."""
        return self._client.why(self.id)

    def quote(self) -> Outlook:
        """When it is likely to begin and end."""
        return self._client.forecast(self.id)

    def receipt(self) -> Receipt:
        """What it took."""
        return self._client.receipt(self.id)

    def scale(self, gpus: Devices) -> JobRecord:
        """Change how many devices it may have."""
        return self._client.amend(self.id, Amendment(devices=_range(gpus)))[0]

    def stop(self) -> JobRecord:
        """End it for good."""
        return self._client.stop(self.id)[0]

    def park(self) -> JobRecord:
        """Let it leave its devices until it is unparked."""
        return self._client.park(self.id)[0]

    def unpark(self) -> JobRecord:
        """Let it go on."""
        return self._client.unpark(self.id)[0]

    def retry(self) -> Job:
        """Run it once more, as a new job."""
        return Job(self._client.retry(self.id)[0], self._client)


def _devices(gpus: Devices) -> str:
    """As a job file has it."""
    if isinstance(gpus, tuple):
        if len(gpus) != 2:
            raise InputError("needs the fewest and the most", field="gpus", hint="(2, 8)")
        return f"{gpus[0]}..{gpus[1]}"
    return str(gpus)


def _range(gpus: Devices) -> Range:
    try:
        return parse_counts(_devices(gpus))
    except ValueError as error:
        raise InputError(str(error), field="gpus") from None
