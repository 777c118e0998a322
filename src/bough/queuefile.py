"""The tenancy tree from a YAML file, nested or as a flat list with parents.

The format is explained in docs/queue-file.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from bough.core.model import Queue
from bough.core.units import parse_duration, shown
from bough.errors import InputError
from bough.located import LABEL, Field, is_label, near, parse_documents, read_text, shown_path

QUEUES_MAX: Final = 5000
DEPTH_MAX: Final = 20
#: The queue of jobs that name none: it exists whether it is written or not.
DEFAULT: Final = "default"
FIELDS: Final = (
    "guarantee", "limit", "weight", "borrow", "dominant", "kind_limits", "half_life",
    "budget_device_hours", "paused", "parent", "queues",
)  # fmt: skip


class _Written(NamedTuple):
    """A queue and what was written of it."""

    field: Field
    given: dict[str, Field]
    queue: Queue

    @property
    def parent(self) -> Field:
        """Where a wrong parent is to be put right."""
        return self.given.get("parent", self.field)


def read_queues(path: str | Path) -> tuple[Queue, ...]:
    """The queues of a file, parents before children."""
    return parse_queues(read_text(path), shown_path(path))


def parse_queues(text: str, file: str | None = None) -> tuple[Queue, ...]:
    """The same from a text."""
    documents = parse_documents(text, file)
    if len(documents) != 1:
        what = "has no queues" if not documents else "has more than one document"
        raise InputError(what, file=file, hint="write queues: and a name below it")
    top = documents[0]
    if top.is_mapping:
        top = top.fields(("queues",), required=("queues",))["queues"]
    found: dict[str, _Written] = {}
    _collect(top, "", found, 1)
    if not found:
        raise top.error("has no queues", "write a name below it")
    ordered = _ordered(found)
    _check_promises(ordered)
    return tuple(written.queue for written in ordered)


# ----------------------------------------------------------------------------------- reading


def _collect(field: Field, parent: str, found: dict[str, _Written], depth: int) -> None:
    """The queues of a list or mapping, and those below them."""
    if depth > DEPTH_MAX:
        raise field.error(f"is nested deeper than {DEPTH_MAX} queues")
    if field.is_mapping:
        parts = list(field.entries().items())
    elif field.is_list:
        parts = [
            (part.fields((*FIELDS, "name"), required=("name",))["name"].label(), part)
            for part in field.items()
        ]
    else:
        raise field.error("must be queues: names with fields below, or a list")
    for name, part in parts:
        given = part.fields((*FIELDS, "name") if field.is_list else FIELDS)
        queue = _queue(name, parent, part, given)
        if name in found:
            line = found[name].field.node.line
            raise part.error(f"a queue called {shown(name)} stands on line {line} already")
        if len(found) >= QUEUES_MAX:
            raise part.error(f"brings the file over {QUEUES_MAX} queues")
        found[name] = _Written(part, given, queue)
        if "queues" in given:
            _collect(given["queues"], name, found, depth + 1)


def _queue(name: str, parent: str, field: Field, given: dict[str, Field]) -> Queue:
    """One queue from its fields."""
    if not is_label(name):
        raise field.error(f"a queue's name must be {LABEL}")
    found: dict[str, Any] = {"name": name, "parent": parent}
    if "parent" in given:
        found["parent"] = given["parent"].label()
        if parent and parent != found["parent"]:
            raise given["parent"].error(f"contradicts that it is written below {shown(parent)}")
    for whole in ("guarantee", "limit"):
        if whole in given:
            found[whole] = given[whole].whole()
    for flag in ("borrow", "dominant", "paused"):
        if flag in given:
            found[flag] = given[flag].flag()
    if "weight" in given:
        found["weight"] = given["weight"].number(above=True)
    if "kind_limits" in given:
        limits = given["kind_limits"].entries()
        found["kind_limits"] = {kind.lower(): limit.whole() for kind, limit in limits.items()}
    if "half_life" in given:
        found["half_life_seconds"] = given["half_life"].read(parse_duration)
    if "budget_device_hours" in given:
        found["budget_device_hours"] = given["budget_device_hours"].number()
    return Queue(**found)


# ---------------------------------------------------------------------------------- the tree


def _ordered(found: dict[str, _Written]) -> list[_Written]:
    """Parents before children, otherwise as written; every way up must end at the root."""
    ordered: list[_Written] = []
    depths: dict[str, int] = {"": 0}
    if DEFAULT not in found:
        depths[DEFAULT] = 1
    for start in found:
        path: list[str] = []
        name = start
        while name not in depths:
            if name in path:
                circle = " in ".join([*path[path.index(name) :], name])
                raise found[name].parent.error(f"queues form a circle: {circle}")
            path.append(name)
            parent = found[name].queue.parent
            if parent and parent not in found and parent != DEFAULT:
                what = f"no queue is called {shown(parent)}"
                raise found[name].parent.error(what, near(parent, found))
            if len(path) > DEPTH_MAX:
                raise found[name].parent.error(f"is more than {DEPTH_MAX} queues below the root")
            name = parent
        for below in reversed(path):
            depths[below] = depths[found[below].queue.parent] + 1
            if depths[below] > DEPTH_MAX:
                raise found[below].parent.error(f"is more than {DEPTH_MAX} queues below the root")
            ordered.append(found[below])
    return ordered


def _check_promises(ordered: list[_Written]) -> None:
    """What is guaranteed below a queue must fit into its own guarantee, if any, and its limit."""
    below: dict[str, int] = {}
    for written in reversed(ordered):
        queue, given = written.queue, written.given
        inside = below.get(queue.name, 0)
        if 0 < queue.guarantee < inside:
            raise given["guarantee"].error(
                f"{queue.guarantee} devices are less than the {inside} guaranteed to queues below"
            )
        promised = max(queue.guarantee, inside)
        if queue.limit is not None and promised > queue.limit:
            raise given["limit"].error(
                f"{queue.limit} devices are less than the {promised} that are guaranteed"
            )
        below[queue.parent] = below.get(queue.parent, 0) + promised
