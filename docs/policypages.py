"""A page for each policy, from its class: what it decides, its citation, its knobs."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import msgspec
from declared import declarations

from bough.core.policy import Policy
from bough.policies import builtin

ROOT = Path(__file__).parent.parent
NOTICE = (
    "<!-- Written by docs/generate.py from {source}; change that file, then run `make docs`. -->"
)
LABEL = re.compile(r"([A-Z][a-z]+:) ")


class Knob(NamedTuple):
    """One field of a policy, as its row of the table."""

    name: str
    type: str
    default: str
    meaning: str


def pages() -> dict[str, str]:
    """Every page by its file name."""
    policies = dict(sorted(builtin().items()))
    written = {f"policies/{name}.md": page(name, policy) for name, policy in policies.items()}
    return {"policies/index.md": index(policies), **written}


def index(policies: dict[str, type[Policy]]) -> str:
    rows = [f"| [{name}]({name}.md) | {summary(policy)} |" for name, policy in policies.items()]
    text = """
        {notice}

        # Policies

        A policy says how many devices each job has now; the tree of the cluster says where. Each
        is one short file of `src/bough/policies`, and its fields are its knobs: set them with
        `--policy 'NAME(KNOB=VALUE)'`. `bough policies show NAME` says the same.

        | policy | what it decides |
        |---|---|
        """
    notice = NOTICE.format(source="src/bough/policies")
    return textwrap.dedent(text).strip().format(notice=notice) + "\n" + "\n".join(rows) + "\n"


def page(name: str, policy: type[Policy]) -> str:
    source = source_of(policy)
    lines = [
        NOTICE.format(source=source),
        "",
        f"# {name}",
        "",
        *docstring(policy),
        "",
        "## Knobs",
        "",
    ]
    table = knobs(policy)
    if table:
        lines += ["| knob | type | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{k.name}` | `{k.type}` | `{k.default}` | {k.meaning} |" for k in table]
    else:
        lines += ["None."]
    lines += ["", f"Source: [`{source}`](../../{source})"]
    return "\n".join(lines) + "\n"


def source_of(policy: type[Policy]) -> str:
    return Path(inspect.getfile(policy)).resolve().relative_to(ROOT).as_posix()


def docstring(policy: type[Policy]) -> list[str]:
    """Its lines, those that start with a label ("Citation: …") made items of a list."""
    lines: list[str] = []
    in_item = False
    for line in inspect.cleandoc(policy.__doc__ or "").splitlines():
        label = LABEL.match(line)
        in_item = bool(label) or (in_item and bool(line))
        if label:
            lines.append(f"- **{label[1]}** {line[label.end() :]}")
        else:
            lines.append(f"  {line}" if in_item else line)
    return lines


def summary(policy: type[Policy]) -> str:
    """The first paragraph of the docstring, on one line."""
    return inspect.cleandoc(policy.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def knobs(policy: type[Policy]) -> list[Knob]:
    """The fields in order, each with the `#:` lines above it."""
    declared: dict[str, tuple[str, str]] = {}
    for owner in reversed(policy.__mro__):
        if issubclass(owner, Policy):
            declared |= declarations(owner)
    return [
        Knob(
            name=field.name,
            type=declared[field.name][0].replace("|", r"\|"),
            default=default_of(field).replace("|", r"\|"),
            meaning=declared[field.name][1].replace("|", r"\|"),
        )
        for field in msgspec.structs.fields(policy)
    ]


def default_of(field: msgspec.structs.FieldInfo) -> str:
    if field.default is not msgspec.NODEFAULT:
        return repr(field.default)
    if field.default_factory is not msgspec.NODEFAULT:
        return repr(field.default_factory())
    return "required"
