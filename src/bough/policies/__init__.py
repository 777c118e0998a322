"""Finds a policy by its name: in the built-in table, in a file, else among entry points."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import msgspec

from bough.core.policy import Policy
from bough.errors import nearest
from bough.policies._file import is_file, load

#: Name: class in the module of that name. Loaded when asked for.
_BUILTIN: Final[dict[str, str]] = {
    "afs": "Afs",
    "backfill": "Backfill",
    "bough": "Bough",
    "carbonscaler": "CarbonScaler",
    "chronus": "Chronus",
    "dragon": "Dragon",
    "drf": "Drf",
    "edf": "Edf",
    "edgeflow": "EdgeFlow",
    "elasticflow": "ElasticFlow",
    "fair": "Fair",
    "fifo": "Fifo",
    "gai": "Gai",
    "gandiva": "Gandiva",
    "gavel": "Gavel",
    "greedy": "Greedy",
    "greenflow": "GreenFlow",
    "hived": "Hived",
    "las": "Las",
    "lucid": "Lucid",
    "max_min": "MaxMin",
    "oasis": "Oasis",
    "optimus": "Optimus",
    "pollux": "Pollux",
    "powerflow": "PowerFlow",
    "proteus": "Proteus",
    "qssf": "Qssf",
    "shockwave": "Shockwave",
    "sia": "Sia",
    "srsf": "Srsf",
    "srtf": "Srtf",
    "themis": "Themis",
    "tiresias": "Tiresias",
    "topology_aware": "TopologyAware",
}


#: Names that papers give to a policy with some of its knobs.
_ALSO: Final[dict[str, str]] = {
    "edf+admission": "edf(admission=true)",
    "edf+elastic": "elasticflow(admission=false)",
}


@cache
def builtin() -> dict[str, type[Policy]]:
    """Every policy that comes with bough, by name."""
    return {name: _load(name) for name in _BUILTIN}


def _load(name: str) -> type[Policy]:
    found: type[Policy] = getattr(importlib.import_module(f"{__name__}.{name}"), _BUILTIN[name])
    return found


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="bough.policies")}


def find(text: str) -> Policy:
    """The policy a text names: ``las``, ``las(limits=[3250,7200])``, ``./mine.py:knob=1``.

    ValueError when there is no such policy or it has no such knob.
    """
    name, knobs = parse(_ALSO.get(text.strip().lower(), text))
    if name in _BUILTIN:
        kind = _load(name)
    elif is_file(name):
        kind = load(name)
    else:
        others = _others()
        if name not in others:
            raise ValueError(f"unknown policy {name!r}; {nearest(name, {*_BUILTIN, *others})}")
        kind = others[name].load()
        if not (isinstance(kind, type) and issubclass(kind, Policy)):
            raise ValueError(f"policy {name!r} ({others[name].value}) is not a bough Policy")
    unknown = next((knob for knob in knobs if knob not in kind.__struct_fields__), None)
    if unknown is not None:
        fields = kind.__struct_fields__
        hint = nearest(unknown, fields) if fields else "it has none"
        raise ValueError(f"policy {name!r} has no knob {unknown!r}; {hint}")
    try:
        return msgspec.convert(knobs, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"policy {name!r}: {_of_knob(str(error))}") from None


def _of_knob(error: str) -> str:
    """What msgspec says of a value, with the knob's name in front."""
    what, at, path = error.partition(" - at `$.")
    return f"{path.rstrip('`')}: {what[0].lower()}{what[1:].replace('`', '')}" if at else error


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Name and knobs: ``name``, ``name(knob=value)`` or ``name:knob=value,other=[1,2]``."""
    text = text.strip()
    if text.endswith(")") and "(" in text:
        name, _, rest = text[:-1].partition("(")
    else:
        name, _, rest = text.partition(":")
    name = name.strip()
    if not is_file(name):
        name = name.replace("-", "_").lower()
    if not (name.isidentifier() or is_file(name)):
        raise ValueError(f"{text!r} is no policy: write NAME, NAME(knob=value) or NAME:knob=value")
    knobs: dict[str, Any] = {}
    for part in _split(rest):
        knob, equals, value = part.partition("=")
        if not equals or not knob.strip().isidentifier() or not value.strip():
            raise ValueError(f"policy {name!r}: {part.strip()!r} is no knob=value")
        knobs[knob.strip()] = _value(value.strip())
    return name, knobs


def _split(text: str) -> list[str]:
    """Parts between commas, those inside brackets left alone."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def _value(text: str) -> Any:
    """A value as written: true, inf, a number, a list; anything else is a word."""
    words = {"true": True, "false": False, "none": None, "inf": float("inf")}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
