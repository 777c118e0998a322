"""YAML and JSON whose every value knows its line, so that an error can name file, line and field.

Scalars stay the text that was written: what `18:00`, `2..8` or `no` means is for the field that
reads it, not for YAML. Sizes and depths are limited, so that no input costs more than a moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from bough.core.units import SHOWN_MAX, shown
from bough.errors import InputError, nearest

T = TypeVar("T")

BYTES_MAX: Final = 16 * 2**20
NODES_MAX: Final = 300_000
DEPTH_MAX: Final = 40
LABEL_MAX: Final = 200
#: The nearest name is looked for among this many, and all are listed if that is not longer.
NEAREST_OF: Final = 5000
HINT_MAX: Final = 400
LABEL: Final = f"one line of 1 to {LABEL_MAX} printable characters"
COUNT_MAX: Final = 1_000_000_000

NULLS: Final = {"", "~", "null", "Null", "NULL"}
FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_UNREADABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_NUMBER: Final = re.compile(r"(?a)[+-]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")
#: JSON writes characters beyond 16 bits as two escapes, which YAML does not know.
_ESCAPED_PAIR: Final = re.compile(
    r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


@dataclass(slots=True)
class Node:
    """A value as parsed: text, a list, or fields with the line of each name."""

    line: int
    value: str | list[Node] | dict[str, tuple[int, Node]]
    #: Written without quotes, so that it may stand for nothing (null).
    plain: bool = False
    #: How many values it holds, itself included and those of aliases counted each time.
    weight: int = 1
    height: int = 1


def read_text(path: str | Path) -> str:
    """The text of a file, or an InputError that says why it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {what}", file=shown_path(path)) from None
    if len(data) > BYTES_MAX:
        raise InputError(f"is larger than {BYTES_MAX >> 20} MiB", file=shown_path(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8 text", file=shown_path(path), line=line) from None


def shown_path(path: str | Path) -> str:
    """A file's name that surely fits on one line."""
    name = str(path)
    return name if name.isprintable() else repr(name)


def read_documents(path: str | Path) -> list[Field]:
    """Every document of a YAML or JSON file that is not empty."""
    return parse_documents(read_text(path), shown_path(path))


def parse_documents(text: str, file: str | None = None) -> list[Field]:
    """Every document of a YAML or JSON text that is not empty."""
    if len(text) > BYTES_MAX:
        raise InputError(f"is larger than {BYTES_MAX >> 20} MiB", file=file)
    if bad := _UNREADABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        raise InputError(f"has the unreadable character {bad[0]!r}", file=file, line=line)
    if text.lstrip()[:1] in ("{", "["):
        text = _ESCAPED_PAIR.sub(_joined, text)
    import yaml  # a command whose options are its job needs none, and is there sooner

    # libyaml if PyYAML was built with it: ten times faster, same answers.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.YAMLError as error:
        raise _unparsed(error, text, file) from None
    return [found for root in builder.roots if not (found := Field(root, file)).empty]


class Field:
    """A value with its place: what is read from it, or an error that says where it stands."""

    __slots__ = ("file", "node", "path")

    def __init__(self, node: Node, file: str | None, path: str = "") -> None:
        self.node = node
        self.file = file
        self.path = path

    def error(self, what: str, hint: str | None = None, line: int | None = None) -> InputError:
        """What is wrong with this value, to be raised."""
        place = line or self.node.line or None  # 0: it was written nowhere
        return InputError(what, file=self.file, line=place, field=self.path or None, hint=hint)

    @property
    def empty(self) -> bool:
        """Whether nothing was written (or null, which means the same)."""
        return self.node.plain and self.node.value in NULLS

    @property
    def is_list(self) -> bool:
        return isinstance(self.node.value, list)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node.value, dict)

    # ------------------------------------------------------------------------------ structure

    def entries(self) -> dict[str, Field]:
        """What stands under each name, whatever the names."""
        if not isinstance(self.node.value, dict):
            raise self.error(f"must be fields with names, not {self._sort()}")
        dot = f"{self.path}." if self.path else ""
        return {
            name: Field(node, self.file, dot + _step(name))
            for name, (_, node) in self.node.value.items()
        }

    def fields(self, allowed: Collection[str], required: Iterable[str] = ()) -> dict[str, Field]:
        """The fields that were given something; their names must be among those allowed."""
        entries = {} if self.empty else self.entries()
        for name in entries:
            if name not in allowed:
                assert isinstance(self.node.value, dict)
                line = self.node.value[name][0]
                raise self.error(f"no field is called {shown(name)}", near(name, allowed), line)
        given = {name: field for name, field in entries.items() if not field.empty}
        for name in required:
            if name not in given:
                raise self.error(f"{name} is missing")
        return given

    def items(self) -> list[Field]:
        """The items of a list; anything else is a list of itself."""
        if not isinstance(self.node.value, list):
            return [] if self.empty else [self]
        return [
            Field(node, self.file, f"{self.path}[{index}]" if self.path else "")
            for index, node in enumerate(self.node.value)
        ]

    # -------------------------------------------------------------------------------- scalars

    def text(self) -> str:
        """The text of a scalar, as written."""
        if not isinstance(self.node.value, str):
            raise self.error(f"must be a single value, not {self._sort()}")
        return self.node.value

    def read(self, parse: Callable[[str], T]) -> T:
        """What a reader makes of the text; its ValueError becomes an error of this place."""
        text = self.text()
        try:
            return parse(text)
        except ValueError as error:
            raise self.error(str(error)) from None

    def label(self) -> str:
        """A name: one line of printable text."""
        name = self.text().strip()
        if not is_label(name):
            raise self.error(f"must be {LABEL}")
        return name

    def labels(self) -> list[str]:
        """Names: a list, or a text with commas between them; no name twice."""
        if self.is_list:
            names = [item.label() for item in self.items()]
        else:
            names = [part.strip() for part in self.text().split(",")]
        seen: set[str] = set()
        for name in names:
            if not is_label(name):
                raise self.error(f"each name must be {LABEL}")
            if name in seen:
                raise self.error(f"names {shown(name)} twice")
            seen.add(name)
        return names

    def choice(self, allowed: Collection[str]) -> str:
        """One of a few words."""
        word = self.text().strip()
        if word not in allowed:
            raise self.error(f"{shown(word)} is not possible here", near(word, allowed))
        return word

    def flag(self) -> bool:
        """Yes or no."""
        text = self.text().strip()
        if text.lower() not in FLAGS:
            raise self.error(f"{shown(text)} must be true or false")
        return FLAGS[text.lower()]

    def whole(self, low: int = 0, high: int = COUNT_MAX) -> int:
        """A whole number between two others."""
        text = self.text().strip()
        if not re.fullmatch(r"(?a)[+-]?\d{1,18}", text) or not low <= int(text) <= high:
            raise self.error(f"{shown(text)} must be a whole number from {low} to {high}")
        return int(text)

    def number(self, low: float = 0.0, *, above: bool = False) -> float:
        """A finite number, at least (or above) another."""
        text = self.text().strip()
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(number) or number < low or (above and number == low):
            bound = f"above {low:g}" if above else f"of at least {low:g}"
            raise self.error(f"{shown(text)} must be a number {bound}")
        return number

    def _sort(self) -> str:
        if self.is_list:
            return "a list"
        if self.is_mapping:
            return "fields with names"
        return "nothing" if self.empty else f"the text {shown(self.text())}"


# -------------------------------------------------------------------------------------- parsing


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been seen yet."""

    node: Node
    anchor: str | None
    key: str | None = None
    key_line: int = 0
    merged: list[Node] = field(default_factory=list)


class _Builder:
    """Turns YAML events into nodes, without recursion: depth is data, not stack."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.roots: list[Node] = []
        self.open: list[_Open] = []
        self.anchors: dict[str, Node] = {}
        self.count = 0

    def take(self, event: Any) -> None:
        """One event of the parser."""
        line = event.start_mark.line + 1
        if getattr(event, "tag", None) is not None:
            raise self.error(f"the tag {shown(event.tag)} means nothing here", line)
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            self.anchors.clear()
        elif kind == "ScalarEvent":
            self.close(Node(line, event.value, plain=event.implicit[0]), event.anchor, line)
        elif kind == "AliasEvent":
            self.alias(event.anchor, line)
        elif kind == "SequenceStartEvent":
            self.open.append(_Open(Node(line, []), event.anchor))
        elif kind == "MappingStartEvent":
            self.open.append(_Open(Node(line, {}), event.anchor))
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            done = self.open.pop()
            self.merge(done)
            self.close(done.node, done.anchor, line)
        self.count += 1
        if len(self.open) > DEPTH_MAX:
            raise self.error(f"is nested deeper than {DEPTH_MAX} levels", line)
        if self.count > NODES_MAX:
            raise self.error(f"has more than {NODES_MAX} values", line)

    def error(self, what: str, line: int) -> InputError:
        return InputError(what, file=self.file, line=line)

    def alias(self, anchor: str | None, line: int) -> None:
        node = self.anchors.get(anchor or "")
        if node is None:
            raise self.error(f"no value above is marked &{anchor}", line)
        self.put(node, line)

    def close(self, node: Node, anchor: str | None, line: int) -> None:
        """A value is complete: it may be referred to, and belongs into what is open."""
        if anchor is not None:
            self.anchors[anchor] = node
        self.put(node, line)

    def put(self, node: Node, line: int) -> None:
        if not self.open:
            self.roots.append(node)
            return
        top = self.open[-1]
        value = top.node.value
        if isinstance(value, list):
            value.append(node)
        elif top.key is None and isinstance(value, dict):
            if not isinstance(node.value, str):
                raise self.error("a field's name must be text", line)
            top.key, top.key_line = node.value, line
            if node.value in value:
                raise self.error(f"the field {shown(node.value)} is written twice", line)
        elif isinstance(value, dict) and top.key is not None:
            if top.key == "<<":
                top.merged += node.value if isinstance(node.value, list) else [node]
            else:
                value[top.key] = (top.key_line, node)
            top.key = None
        self.weigh(top.node, node, line)

    def weigh(self, outer: Node, inner: Node, line: int) -> None:
        outer.weight += inner.weight
        outer.height = max(outer.height, inner.height + 1)
        if outer.weight > NODES_MAX or outer.height > DEPTH_MAX:
            raise self.error("grows too large through its aliases", line)

    def merge(self, done: _Open) -> None:
        """`<<: *base`: the fields of another mapping, where they are not written anew."""
        for node in done.merged:
            if not isinstance(node.value, dict) or not isinstance(done.node.value, dict):
                raise self.error("'<<' takes the fields of another mapping", node.line)
            done.node.value = {**node.value, **done.node.value}


def is_label(name: str) -> bool:
    """Whether it may name something."""
    return 0 < len(name) <= LABEL_MAX and name.isprintable() and name == name.strip()


def _step(name: str) -> str:
    """A name as a part of a path on one line."""
    return name if name.isprintable() and len(name) <= SHOWN_MAX else shown(name)


def near(name: str, names: Iterable[str]) -> str | None:
    """The hint for a name that does not exist, unless there are too many to be of help."""
    hint = nearest(name[:LABEL_MAX], islice(names, NEAREST_OF))
    return hint if len(hint) <= HINT_MAX else None


def _joined(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    return chr(0x10000 + ((int(match[1], 16) & 0x3FF) << 10) + (int(match[2], 16) & 0x3FF))


def _unparsed(error: Exception, text: str, file: str | None) -> InputError:
    """Why the parser gave up, in its words or clearer ones."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    if mark is None:
        return InputError(f"is not YAML: {problem}", file=file)
    line = mark.line + 1
    lines = text.splitlines()
    letter = lines[mark.line][mark.column : mark.column + 1] if mark.line < len(lines) else ""
    if "tab character" in problem or ("cannot start any token" in problem and letter == "\t"):
        return InputError("is indented by a tab", file=file, line=line, hint="use spaces")
    if "cannot start any token" in problem:
        what = f"a value cannot begin with {letter!r}"
        return InputError(what, file=file, line=line, hint="put it in quotes")
    if "mapping values are not allowed" in problem:
        hint = "a value with ': ' in it needs quotes"
        return InputError("has a second ':' where no field begins", file=file, line=line, hint=hint)
    return InputError(f"is not YAML: {problem}", file=file, line=line)
