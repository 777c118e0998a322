"""A job with all that is needed to run it: what was asked for, and where it was asked."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence

import msgspec

from bough.core.model import JobSpec
from bough.records import Recipe, Submission

#: Of the caller's environment, what is about its shell or lets it in at a daemon elsewhere.
LEFT_BEHIND = frozenset({"_", "SHLVL", "OLDPWD", "PWD", "COLUMNS", "LINES", "BOUGH_TOKEN"})
#: Launchers: what they run says more about a job than they do.
_LAUNCHERS = re.compile(
    r"(?:python|pypy|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|env|nice|time|uv|poetry"
    r"|conda|sh|bash|zsh|dash|exec|sudo|srun|launch|run)[\d.]*"
)
_UNNAMEABLE = re.compile(r"[^\w.+-]+")
NAME_MAX = 40


def here() -> Recipe:
    """The caller's directory and a snapshot of its environment."""
    try:
        cwd = os.getcwd()
    except OSError:  # it was deleted under our feet
        cwd = os.path.expanduser("~")
    return Recipe(cwd=cwd, env=snapshot(os.environ))


def snapshot(environment: Mapping[str, str]) -> dict[str, str]:
    """What a job takes along of an environment; what is no text cannot be sent."""
    return {
        name: value
        for name, value in environment.items()
        if name not in LEFT_BEHIND and _is_text(name + value)
    }


def prepare(spec: JobSpec, recipe: Recipe, key: str = "") -> Submission:
    """Commands are private: they move from the spec, which all may see, into the recipe."""
    roles = {role.name: role.command for role in spec.roles if role.command}
    recipe = msgspec.structs.replace(
        recipe, argv=recipe.argv or spec.command, roles=recipe.roles | roles
    )
    bare = tuple(msgspec.structs.replace(role, command=()) for role in spec.roles)
    spec = msgspec.structs.replace(spec, command=(), roles=bare)
    return Submission(spec=spec, recipe=recipe, key=key or uuid.uuid4().hex)


def name_of(argv: Sequence[str]) -> str:
    """A name for a command: its script, module or program."""
    for word in argv:
        if word == "-c":
            break
        program = os.path.basename(word.rstrip("/"))
        if word.startswith("-") or "=" in word or _LAUNCHERS.fullmatch(program):
            continue  # also of -m, so that the module is next
        stem = program.removesuffix(".py").removesuffix(".sh")
        if name := _UNNAMEABLE.sub("-", stem).strip("-")[:NAME_MAX]:
            return name
    first = os.path.basename(argv[0]) if argv else ""
    return _UNNAMEABLE.sub("-", first).strip("-")[:NAME_MAX] or "job"


def many_workers(spec: JobSpec, recipe: Recipe) -> bool:
    """Whether it may have more than one process, so that one needs to know whose line it is."""
    if spec.roles:
        return sum(role.count.max for role in spec.roles) > 1
    return recipe.launch == "each" and spec.sizes()[-1] > 1


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # bytes that were no UTF-8
        return False
    return True
