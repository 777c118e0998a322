"""What is checked of a submission before it is taken on; each complaint names the field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from bough.core.model import JobSpec
from bough.errors import InputError
from bough.records import MIB, Amendment, Recipe, Submission

#: What the kernel takes: one argument or variable, and all of them together.
WORD_BYTES_MAX: Final = (128 << 10) - 1
ENVIRONMENT_BYTES_MAX: Final = 2 * MIB
NAME_MAX, KEY_MAX = 200, 200
#: More devices than any machine has are a slip of the finger.
DEVICES_MAX: Final = 1 << 20
AFTER_MAX: Final = 10_000
LIST_MAX: Final = 1000
NUMBER_MAX: Final = 1 << 53
PRIORITY_MAX: Final = 1_000_000
GRACE_SECONDS_MAX: Final = 86400.0
LOG_BYTES_MIN, LOG_BYTES_MAX = 4096, 1 << 40

_SLASH = re.compile(r"[/\\]")
_NUMBERS = (
    "cpus", "memory", "priority", "deadline", "deadline_after", "max_run_seconds", "batch",
    "min_run_seconds", "retries", "estimate_seconds", "estimate_devices",
)  # fmt: skip


def check(given: Submission, now: float) -> None:
    """Refuse what makes no sense. A job that merely cannot run here is taken on, and says why."""
    _check_spec(given.spec, now)
    _check_recipe(given.spec, given.recipe)
    if len(given.key) > KEY_MAX or not given.key.isprintable() or _SLASH.search(given.key):
        raise InputError(f"at most {KEY_MAX} printable characters", field="key")


def check_name(name: str, field: str) -> None:
    """It stands in addresses and in tables."""
    if not name.strip():
        raise InputError("needs some letters", field=field)
    if len(name) > NAME_MAX:
        raise InputError(f"has {len(name)} characters; at most {NAME_MAX} are allowed", field=field)
    if not name.isprintable() or _SLASH.search(name):
        raise InputError("may not contain slashes or control characters", field=field)


def _check_spec(spec: JobSpec, now: float) -> None:
    check_name(spec.name, "spec.name")
    check_name(spec.queue, "spec.queue")
    for field in _NUMBERS:
        value = getattr(spec, field)
        endless = field == "max_run_seconds" and value == math.inf
        if value is not None and not endless and not abs(value) <= NUMBER_MAX:
            raise InputError("is too large a number", field=f"spec.{field}", hint="at most 2**53")
    if abs(spec.priority) > PRIORITY_MAX:
        raise InputError(f"must lie within ±{PRIORITY_MAX:,}", field="spec.priority")
    _check_sizes(spec)
    if spec.deadline is not None and spec.deadline <= now:
        raise InputError("is in the past", field="spec.deadline")
    if spec.deadline_after is not None and spec.deadline_after <= 0:
        raise InputError("must be positive", field="spec.deadline_after")
    if spec.array_of and spec.array_index is None:
        raise InputError("a member of an array needs its index", field="spec.array_index")
    if spec.array_index is not None and not 0 <= spec.array_index <= NUMBER_MAX:
        raise InputError("must not be negative", field="spec.array_index")
    if spec.array_of:
        check_name(spec.array_of, "spec.array_of")
    if len(spec.after) > AFTER_MAX:
        raise InputError(f"at most {AFTER_MAX:,} jobs", field="spec.after")
    for field in ("kinds", "roles"):
        if len(getattr(spec, field)) > LIST_MAX:
            raise InputError(f"at most {LIST_MAX:,} of them", field=f"spec.{field}")


def _check_sizes(spec: JobSpec) -> None:
    field = "spec.roles" if spec.roles else "spec.devices"
    for role in spec.roles:
        check_name(role.name, "spec.roles.name")
        if role.devices < 0 or not 0 <= role.memory <= NUMBER_MAX or not 0 <= role.cpus < math.inf:
            raise InputError(f"role {role.name} asks for less than nothing", field=field)
        if len(role.count.steps) > LIST_MAX:
            raise InputError(f"at most {LIST_MAX:,} steps", field=field)
        if role.count.max > DEVICES_MAX or role.devices > DEVICES_MAX:
            raise InputError(f"at most {DEVICES_MAX:,} devices", field=field)
    names = [role.name for role in spec.roles]
    if len(set(names)) < len(names):
        raise InputError("two roles have the same name", field=field)
    if len(spec.devices.steps) > LIST_MAX:
        raise InputError(f"at most {LIST_MAX:,} steps", field=field)
    sizes = spec.sizes() if spec.devices.max <= DEVICES_MAX else (DEVICES_MAX + 1,)
    if sizes[-1] > DEVICES_MAX:
        raise InputError(f"at most {DEVICES_MAX:,} devices", field=field)
    if sizes[0] < 1:
        raise InputError("a job needs at least one device", field=field, hint="a CPU slot is one")


def _check_recipe(spec: JobSpec, recipe: Recipe) -> None:
    names = {role.name for role in spec.roles}
    for name in recipe.roles:
        if name not in names:
            raise InputError(f"the job has no role called {name!r}", field="recipe.roles")
    missing = [name for name in sorted(names) if not recipe.roles.get(name)]
    if not recipe.argv and (missing or not names):
        of = f" for role {missing[0]}" if missing else ""
        raise InputError(f"there is no command{of}", field="recipe.argv")
    for field, words in {"argv": recipe.argv, **recipe.roles}.items():
        _check_words(words, f"recipe.{field}")
    if not recipe.cwd.startswith("/"):
        raise InputError("must be an absolute path", field="recipe.cwd")
    _check_words((recipe.cwd,), "recipe.cwd")
    _check_environment(recipe.env)
    if recipe.umask is not None and not 0 <= recipe.umask <= 0o777:
        raise InputError("must lie within 0 and 0o777", field="recipe.umask")
    if not 0 <= recipe.grace_seconds <= GRACE_SECONDS_MAX:
        raise InputError("must lie within 0 and a day", field="recipe.grace_seconds")
    if not LOG_BYTES_MIN <= recipe.log_bytes_max <= LOG_BYTES_MAX:
        raise InputError("must lie within 4 KiB and 1 TiB", field="recipe.log_bytes_max")


def _check_words(words: tuple[str, ...], field: str) -> None:
    if words and not words[0]:
        raise InputError("the first word is empty", field=field)
    total = 0
    for word in words:
        size = len(word.encode())
        total += size + 1
        if "\0" in word:
            raise InputError("may not contain NUL", field=field)
        if size > WORD_BYTES_MAX:
            raise InputError("a word of it has more than 128 KiB", field=field)
    if total > ENVIRONMENT_BYTES_MAX:
        raise InputError("is longer than 2 MiB", field=field)


def _check_environment(env: Mapping[str, str]) -> None:
    total = 0
    for name, value in env.items():
        size = len(name.encode()) + len(value.encode()) + 2
        total += size
        if not name or "=" in name or "\0" in name:
            raise InputError(f"{name!r} cannot be the name of a variable", field="recipe.env")
        if "\0" in value:
            raise InputError(f"the value of {name} may not contain NUL", field="recipe.env")
        if size > WORD_BYTES_MAX:
            raise InputError(f"{name} has more than 128 KiB", field="recipe.env")
    if total > ENVIRONMENT_BYTES_MAX:
        raise InputError(
            f"has {total / MIB:.1f} MiB; at most 2 MiB are allowed", field="recipe.env"
        )


def check_change(wish: Amendment) -> None:
    """What a job is to ask for from now on."""
    if wish.priority is not None and abs(wish.priority) > PRIORITY_MAX:
        raise InputError(f"must lie within ±{PRIORITY_MAX:,}", field="priority")
    for field in ("deadline", "max_run_seconds"):
        value = getattr(wish, field)
        if value is not None and not 0 <= value <= NUMBER_MAX:
            raise InputError("must not be negative, and at most 2**53", field=field)
    if wish.devices is not None:
        if len(wish.devices.steps) > LIST_MAX or wish.devices.max > DEVICES_MAX:
            raise InputError(f"at most {DEVICES_MAX:,} devices", field="devices")
        if wish.devices.min < 1:
            raise InputError("a job needs at least one device", field="devices")


def tidy(given: Submission) -> Submission:
    """Commands are private: they move from the spec, which all may see, into the recipe."""
    spec, recipe = given.spec, given.recipe
    roles = {role.name: role.command for role in spec.roles if role.command}
    if spec.command or roles:
        recipe = msgspec.structs.replace(
            recipe, argv=recipe.argv or spec.command, roles=roles | recipe.roles
        )
        bare = tuple(msgspec.structs.replace(role, command=()) for role in spec.roles)
        spec = msgspec.structs.replace(spec, command=(), roles=bare)
    return msgspec.structs.replace(given, spec=spec, recipe=recipe)
