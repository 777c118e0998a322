"""One page of all that `--json` prints: which command prints what, and every field of it."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from declared import declarations

from bough import records
from bough.cli.finding import Finding
from bough.cli.shadow import Run, Standing
from bough.cli.show import Shown
from bough.core.model import JobSpec, Queue
from bough.core.prospects import Alternative, Delay, Interval, Outlook, Quote
from bough.core.reason import Reason
from bough.sim.whatif import Difference

#: Command: what it prints. A list is written [type]; lines are objects, one on each.
PRINTS: dict[str, str] = {
    "run --detach": "[JobRecord]: those submitted",
    "ls": "[JobRecord], the latest first",
    "history": "[JobRecord], the latest to end first",
    "show": "Shown; of an array, [JobRecord]",
    "why": "Reason; of an array, [JobRecord]",
    "quote": "Quote; of a file with several jobs a list of them",
    "logs": "lines of LogChunk; the last is a LogEnd if the job is over",
    "wait": "[JobRecord]: those waited for",
    "stop": "[JobRecord]: those changed",
    "park": "[JobRecord]: those changed",
    "unpark": "[JobRecord]: those changed",
    "scale": "[JobRecord]: those changed",
    "move": "[JobRecord]: those changed",
    "retry": "[JobRecord]: the new jobs",
    "queue ls": "[QueueRecord]",
    "queue show": "QueueRecord",
    "queue set": "QueueRecord",
    "devices": "[DeviceRecord]",
    "devices check": "[DeviceRecord]",
    "devices drain": "[DeviceRecord]",
    "devices undrain": "[DeviceRecord]",
    "devices quarantine": "[DeviceRecord]",
    "devices release": "[DeviceRecord]",
    "user ls": "[UserRecord]",
    "report usage": "[UsageRow]",
    "up": "`started`: whether it had to be, then `pid`, `version`, `socket`, `listen`, "
    "`fingerprint` and `devices`",
    "down": "`pid` of the daemon that ended, how many jobs were `running`, and whether they were "
    "`parked`",
    "status": "StatusRecord",
    "config": "Config",
    "config set": "Config",
    "config get": "the value alone",
    "token create": "NewToken",
    "token ls": "[TokenRecord]",
    "token revoke": "[TokenRecord]: those left",
    "doctor": "[Finding]",
    "shadow": "`policy`, `runs`: a list of Run, and `jobs`: a list of Standing",
    "whatif": "`before` and `after` in words, `since`, and Differences: `all` of them as one, by "
    "`queues`, by `users`",
    "journal replay": "`steps`, `events` and `commands` that were decided again, `after` which "
    "entry, and `difference`: the first, or null",
    "journal verify": "`whole`: true or false, `problems` in words, and `dropped`: entries put "
    "aside earlier",
}
PLURAL = {"text": "texts", "number": "numbers", "whole number": "whole numbers"}
#: As the comments in the code call what is `null` here.
NONE = re.compile(r"\bNone\b")
#: What the page has a table for, in this order. The rest is described where it is used.
SHOWN: tuple[type, ...] = (
    records.JobRecord,
    Shown,
    records.JobDetail,
    JobSpec,
    records.Recipe,
    records.Attempt,
    records.WorkerEnd,
    records.Receipt,
    Reason,
    Quote,
    Alternative,
    Delay,
    Outlook,
    Interval,
    Difference,
    Run,
    Standing,
    records.LogChunk,
    records.LogEnd,
    records.DeviceRecord,
    records.QueueRecord,
    Queue,
    records.UserRecord,
    records.UsageRow,
    records.StatusRecord,
    records.Config,
    records.TokenRecord,
    records.NewToken,
    Finding,
    records.Decision,
    records.JobPage,
    records.Problem,
)
HEAD = """\
<!-- Written by docs/generate.py from src/bough/records.py; change that, then run `make docs`. -->

# JSON

Every command that lists or changes something takes `--json`, and then prints the records of
[the API](api.md). Fields keep their names and meanings: later versions may add some, and take none
away without a line in the [changelog](../CHANGELOG.md).

- Every field is always there; what nobody knows is `null`. (The API itself leaves out fields that
  have their usual value, shown below behind "=".)
- Moments are seconds since 1970 (UTC), durations are seconds, sizes are bytes, unless the name of
  the field says otherwise. A number without end is `null`.
- Nothing else is on standard output; what is said to people is on standard error.

```sh
bough ls --json | jq -r '.[] | select(.state == "running") | .id'
bough show 12 --json | jq .receipt.device_seconds
```

The simulator's commands have [pages](simulate.md) [of their own](metrics.md).
"""


def page() -> str:
    """The commands, then the records."""
    prints = [f"| `bough {name}` | {linked(what)} |" for name, what in PRINTS.items()]
    parts = [HEAD, "## Which command prints what\n", "| command | prints |\n|---|---|"]
    return "\n".join([*parts, *prints, "", *(table(kind) for kind in SHOWN)])


def table(kind: type) -> str:
    """One record: what it is, and its fields."""
    rows = [
        f"| `{name}` | {cell(type_)} | {cell(meaning)} |" for name, type_, meaning in fields(kind)
    ]
    head = f"## {kind.__name__}\n\n{summary(kind)}\n\n| field | type | meaning |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def fields(kind: type) -> list[tuple[str, str, str]]:
    """Name, type in words with its usual value, and meaning."""
    hints = get_type_hints(kind)
    declared = declarations(kind)
    return [
        (name, said(hints[name]) + usual(kind, name), declared[name][1]) for name in names_of(kind)
    ]


def names_of(kind: type) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(kind, "__struct_fields__", None) or kind._fields  # type: ignore[attr-defined]
    return names


def summary(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").replace("\n", " ")


def usual(kind: type, name: str) -> str:
    """Its usual value, where that is a plain one."""
    if not issubclass(kind, msgspec.Struct):
        return ""
    field = next(each for each in msgspec.structs.fields(kind) if each.name == name)
    value = field.default
    if value is None or value == "" or isinstance(value, msgspec.Struct):
        return ""
    if not isinstance(value, bool | int | float | str) or value == float("inf"):
        return ""
    return f" = {msgspec.json.encode(value).decode()}"


def said(kind: Any) -> str:
    """A type as somebody says it who writes no Python."""
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if kind in names:
        return names[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return linked(kind.__name__)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        words = [said(part) for part in parts if part is not type(None)]
        return " or ".join([*dict.fromkeys(words)] + ["null"] * (type(None) in parts))
    if origin is Literal:
        return ", ".join(f'"{part}"' for part in parts)
    if origin is tuple and parts[-1] is Ellipsis:
        return f"list of {PLURAL.get(inner := said(parts[0]), inner)}"
    if origin is tuple:
        return f"[{', '.join(map(said, parts))}]"
    assert isinstance(origin, type), kind
    assert issubclass(origin, Mapping), kind
    return f"object of {said(parts[1])}"


def linked(text: str) -> str:
    """Names of records that have a table lead there."""
    for name in sorted((kind.__name__ for kind in SHOWN), key=len, reverse=True):
        bare = text.removeprefix("[").removeprefix("lines of ")
        if bare.startswith(name) and not bare.removeprefix(name)[:1].isalnum():
            text = text.replace(name, f"[{name}](#{name.lower()})", 1)
            break
    if text.startswith("[["):
        text = "list of " + text[1:].replace(")]", ")", 1)
    text = text.replace("of an array, [JobRecord]", "of an array, list of [JobRecord](#jobrecord)")
    return text.replace("a LogEnd", "a [LogEnd](#logend)")


def cell(text: str) -> str:
    return NONE.sub("null", text).replace("|", r"\|")
