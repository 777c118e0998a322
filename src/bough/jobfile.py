"""What a user asks for in YAML or JSON becomes a Submission for each job: see docs/job-file.md.

A file holds one job, a list of jobs, or several documents of either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from bough.core.model import After, Carbon, JobSpec, Range, Role, Wish
from bough.core.moments import format_time, parse_time
from bough.core.units import (
    COUNT_MAX,
    SIZES_MAX,
    parse_counts,
    parse_duration,
    parse_grams,
    parse_indices,
    parse_size,
    shown,
)
from bough.errors import InputError
from bough.joborder import resolve
from bough.jobrecipe import RECIPE, merged
from bough.located import LABEL, Field, is_label, parse_documents, read_text, shown_path
from bough.records import Recipe, Submission
from bough.submission import prepare

#: Jobs in one file, counting each member of an array.
JOBS_MAX: Final = 100_000
COMMAND_MAX: Final = 100_000
#: In the command of an array job this stands for the index of the member.
INDEX: Final = "{index}"

_ESTIMATE: Final = re.compile(r"(?a)(.+?)(?:\s+on\s+(\d{1,7})(?:\s+devices?)?)?", re.DOTALL)
_RELATIVE: Final = re.compile(r"(?i)\+|in\s")
_WISH: Final = re.compile(r"(prefer|require|spread)(?:\s+(\S+))?")


class Present(NamedTuple):
    """When and where a file is read: what its times of day are relative to."""

    now: float
    zone: tzinfo


def read_submissions(
    path: str | Path, caller: Recipe, *, now: float, zone: tzinfo
) -> list[Submission]:
    """The jobs of a file, ready to be sent; what it does not say of a recipe is as the caller's."""
    file = shown_path(path)
    return parse_submissions(read_text(path), caller, now=now, zone=zone, file=file)


def parse_submissions(
    text: str, caller: Recipe, *, now: float, zone: tzinfo, file: str | None = None
) -> list[Submission]:
    """The same from a text."""
    return submissions(parse_documents(text, file), caller, Present(now, zone), file)


def submissions(
    documents: Sequence[Field], caller: Recipe, present: Present, file: str | None = None
) -> list[Submission]:
    """The same from what was parsed."""
    written, recipes = _gathered(documents, present, file)
    for field, jobs in written:
        _check_command(field, jobs[0])
    return [
        prepare(spec, merged(given, caller))
        for spec, given in zip(resolve(written), recipes, strict=True)
    ]


def read_jobs(path: str | Path, *, now: float, zone: tzinfo) -> list[JobSpec]:
    """What the jobs of a file ask for; its times of day are of this zone and after this moment."""
    return parse_jobs(read_text(path), now=now, zone=zone, file=shown_path(path))


def parse_jobs(text: str, *, now: float, zone: tzinfo, file: str | None = None) -> list[JobSpec]:
    """The same from a text."""
    return resolve(_gathered(parse_documents(text, file), Present(now, zone), file)[0])


def _gathered(
    documents: Sequence[Field], present: Present, file: str | None
) -> tuple[list[tuple[Field, list[JobSpec]]], list[dict[str, Any]]]:
    """What some documents ask for, each with where it stands; what each job says of its recipe."""
    written: list[tuple[Field, list[JobSpec]]] = []
    recipes: list[dict[str, Any]] = []
    for document in documents:
        for field in document.items():
            made, recipe = _jobs(field, present)
            recipes += [recipe] * len(made)
            if len(recipes) > JOBS_MAX:
                raise field.error(f"brings the file over {JOBS_MAX} jobs")
            written.append((field, made))
    if not written:
        raise InputError("has no job", file=file, hint="a job needs at least a name")
    return written, recipes


def _check_command(field: Field, job: JobSpec) -> None:
    """Whoever sends a job says what it runs; in a trace nothing is run."""
    if not job.command and not job.roles:
        raise field.error("has no command", "write one like command: python train.py")
    for role in job.roles:
        if not job.command and not role.command:
            raise field.error(f"role {role.name} has no command, and the job has none for all")


# ---------------------------------------------------------------------------------- one job


def _jobs(field: Field, present: Present) -> tuple[list[JobSpec], dict[str, Any]]:
    """The job of a mapping, more than one if it is an array; and how it is to be run."""
    given = field.fields(FIELDS, required=("name",))
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in SIMPLE:
            target, read = SIMPLE[name]
            found[target] = read(value)
    recipe = {RECIPE[n][0]: RECIPE[n][1](value) for n, value in given.items() if n in RECIPE}
    if "deadline" in given:
        found |= _deadline(given["deadline"], present)
    if "estimate" in given:
        found |= _estimate(given["estimate"])
    _check(given, found)
    try:
        job = JobSpec(**found)
    except ValueError as error:
        raise field.error(str(error)) from None
    return (_members(job, _indices(given["array"])) if "array" in given else [job]), recipe


def _check(given: dict[str, Field], found: dict[str, Any]) -> None:
    """Fields that contradict each other."""
    if "roles" in given:
        for name in ("devices", "cpus", "memory"):
            if name in given:
                raise given[name].error("belongs to each role once there are roles")
    if "deadline" in given and "deadline_after" in given:
        raise given["deadline_after"].error("says again what deadline says; keep one of them")
    timed = {"deadline", "deadline_after"} & set(given)
    if found.get("service") == "guaranteed" and not timed:
        raise given["service"].error("a guaranteed job needs a deadline to be held to")
    if found.get("min_run_seconds", 0) > found.get("max_run_seconds", float("inf")):
        raise given["min_run"].error("is longer than max_run")


def _members(job: JobSpec, indices: tuple[int, ...]) -> list[JobSpec]:
    return [
        msgspec.structs.replace(
            job,
            name=f"{job.name}-{index}",
            command=_numbered(job.command, index),
            roles=tuple(
                msgspec.structs.replace(role, command=_numbered(role.command, index))
                for role in job.roles
            ),
            array_index=index,
            array_of=job.name,
        )
        for index in indices
    ]


def _numbered(command: tuple[str, ...], index: int) -> tuple[str, ...]:
    return tuple(word.replace(INDEX, str(index)) for word in command)


# ------------------------------------------------------------------------------ single fields


def _command(field: Field) -> tuple[str, ...]:
    """A text is run by a shell; a list is run as it is."""
    words = [item.text() for item in field.items()]
    if not words or not words[0].strip():
        raise field.error("is empty")
    if sum(map(len, words)) > COMMAND_MAX:
        raise field.error(f"is longer than {COMMAND_MAX} characters; put it into a script")
    return tuple(words) if field.is_list else ("/bin/sh", "-c", words[0])


def _counts(field: Field) -> Range:
    """A count or range: as text, as a list of sizes, or as min, max and steps."""
    if field.is_list:
        sizes = sorted({item.whole(1, COUNT_MAX) for item in field.items()})
        if not sizes:
            raise field.error("names no size")
        return Range(min=sizes[0], max=sizes[-1], steps=tuple(sizes) if len(sizes) > 1 else ())
    if not field.is_mapping:
        return field.read(parse_counts)
    given = field.fields(("min", "max", "steps"))
    low = given["min"].whole(1, COUNT_MAX) if "min" in given else 1
    high = given["max"].whole(1, COUNT_MAX) if "max" in given else low
    steps = (
        [item.whole(1, COUNT_MAX) for item in given["steps"].items()] if "steps" in given else []
    )
    if len(steps) > SIZES_MAX:
        raise given["steps"].error(f"has more than {SIZES_MAX} sizes")
    try:
        return Range(min=low, max=high, steps=tuple(steps))
    except ValueError as error:
        raise field.error(str(error)) from None


def _roles(field: Field) -> tuple[Role, ...]:
    """A list of roles with names, or a mapping from name to role."""
    if field.is_mapping:
        roles = [(part, _role(name, part, ROLE_FIELDS)) for name, part in field.entries().items()]
    else:
        fields = ("name", *ROLE_FIELDS)
        parts = [(part, part.fields(fields, required=("name",))) for part in field.items()]
        roles = [(part, _role(given["name"].label(), part, fields)) for part, given in parts]
    if not any(role.devices for _, role in roles):
        raise field.error("none has devices; at least one role needs them")
    elastic = ""
    seen: set[str] = set()
    for part, role in roles:
        if role.name in seen:
            raise part.error(f"a role called {shown(role.name)} stands above")
        seen.add(role.name)
        if role.count.min < role.count.max:
            if not role.devices:
                raise part.error("without devices a role cannot have a range of counts")
            if elastic:
                raise part.error(f"only one role may have a range of counts, as {elastic} has")
            elastic = role.name
    return tuple(role for _, role in roles)


def _role(name: str, field: Field, fields: tuple[str, ...]) -> Role:
    given = field.fields(fields)
    if not is_label(name):
        raise field.error(f"a role's name must be {LABEL}")
    return Role(
        name=name,
        count=_counts(given["count"]) if "count" in given else Range(),
        devices=given["devices"].whole(0, COUNT_MAX) if "devices" in given else 1,
        cpus=given["cpus"].number() if "cpus" in given else 0.0,
        memory=given["memory"].read(parse_size) if "memory" in given else 0,
        command=_command(given["command"]) if "command" in given else (),
    )


def _kinds(field: Field) -> tuple[str, ...]:
    """Kinds are written in small letters everywhere, so that H100 and h100 are the same."""
    return tuple(dict.fromkeys(name.lower() for name in field.labels()))


def _deadline(field: Field, present: Present) -> dict[str, float]:
    """A moment, or how long after the submission."""
    text = field.text().strip()
    if _RELATIVE.match(text):
        rest = text[1:] if text[0] == "+" else text[2:]
        after = field.read(lambda _: parse_duration(rest))
        if not after:
            raise field.error("must be later than the submission")
        return {"deadline_after": after}
    at = field.read(lambda written: parse_time(written, present.now, present.zone))
    if at <= present.now:
        passed = format_time(at, present.now, present.zone)
        raise field.error(f"{passed} has passed", "write +2h for two hours after submission")
    return {"deadline": at}


def _estimate(field: Field) -> dict[str, float | int]:
    """A run time and the number of devices it is meant for: "6h on 4"."""
    match = _ESTIMATE.fullmatch(field.text().strip())
    seconds = field.read(lambda text: parse_duration(match[1] if match else text))
    devices = int(match[2]) if match and match[2] else 0
    if seconds <= 0 or (match and match[2] and not 1 <= devices <= COUNT_MAX):
        raise field.error("must be more than nothing, like 6h or 6h on 4")
    return {"estimate_seconds": seconds, "estimate_devices": devices}


def _topology(field: Field) -> Wish:
    """A mode and a level: "require rack", "prefer node", "spread"; or {require: rack}."""
    if field.is_mapping:
        given = field.fields(("mode", "level"))
        modes = ("prefer", "require", "spread")
        mode = given["mode"].choice(modes) if "mode" in given else "prefer"
        level = given["level"].label() if "level" in given else ""
    else:
        match = _WISH.fullmatch(field.text().strip())
        if match is None:
            what = f"{shown(field.text())} is not a wish"
            raise field.error(what, "write it like prefer rack, require node or spread")
        mode, level = match[1], match[2] or ""
    if mode == "require" and not level:
        raise field.error("require needs a level", "like require rack")
    if mode == "spread" and level:
        raise field.error("spread takes no level", "it puts workers as far apart as possible")
    return msgspec.convert({"mode": mode, "level": level}, Wish)


def _after(field: Field) -> tuple[After, ...]:
    """Names of jobs that must succeed first, or mappings that say which end is waited for."""
    if not field.is_list and not field.is_mapping:
        return tuple(After(job=name) for name in field.labels())
    found = tuple(_one_after(item) for item in field.items())
    if len({after.job for after in found}) < len(found):
        raise field.error("names a job twice")
    return found


def _one_after(field: Field) -> After:
    if not field.is_mapping:
        return After(job=field.label())
    given = field.fields(("job", "on"), required=("job",))
    on = given["on"].choice(("success", "failure", "any")) if "on" in given else "success"
    return msgspec.convert({"job": given["job"].label(), "on": on}, After)


def _carbon(field: Field) -> Carbon:
    given = field.fields(("max_delay", "budget"))
    found: dict[str, float] = {}
    if "max_delay" in given:
        found["max_delay_seconds"] = given["max_delay"].read(parse_duration)
    if "budget" in given:
        found["budget_grams"] = given["budget"].read(parse_grams)
    return Carbon(**found)


def _indices(field: Field) -> tuple[int, ...]:
    if field.is_list:
        found = tuple(sorted({item.whole() for item in field.items()}))
        if len(found) != len(field.items()) or not found:
            raise field.error("must name each index once")
        return found
    text = field.text().strip()
    if text.isdecimal():
        last = f"0-{int(text) - 1} or " if 0 < len(text) < 8 and int(text) else ""
        what = f"{shown(text)} could be a number of jobs or the index of one"
        raise field.error(what, f"write {last}[{text[:8]}]")
    return field.read(parse_indices)


def _positive_duration(field: Field) -> float:
    seconds = field.read(parse_duration)
    if seconds <= 0:
        raise field.error("must be longer than 0s")
    return seconds


#: Field of a role, besides its name.
ROLE_FIELDS: Final = ("count", "devices", "cpus", "memory", "command")
#: Field of a job: the field of JobSpec it becomes, and what reads it.
SIMPLE: Final[dict[str, tuple[str, Callable[[Field], Any]]]] = {
    "name": ("name", Field.label),
    "command": ("command", _command),
    "devices": ("devices", _counts),
    "roles": ("roles", _roles),
    "kinds": ("kinds", _kinds),
    "cpus": ("cpus", Field.number),
    "memory": ("memory", lambda field: field.read(parse_size)),
    "user": ("user", Field.label),
    "queue": ("queue", Field.label),
    "priority": ("priority", lambda field: field.whole(-1_000_000, 1_000_000)),
    "weight": ("weight", lambda field: field.number(above=True)),
    "deadline_after": ("deadline_after", _positive_duration),
    "service": ("service", lambda field: field.choice(("guaranteed", "best-effort"))),
    "max_run": ("max_run_seconds", _positive_duration),
    "min_run": ("min_run_seconds", lambda field: field.read(parse_duration)),
    "topology": ("topology", _topology),
    "preemptible": ("preemptible", Field.flag),
    "resize_in_place": ("resize_in_place", Field.flag),
    "after": ("after", _after),
    "retries": ("retries", lambda field: field.whole(0, 1_000_000)),
    "carbon": ("carbon", _carbon),
    "model": ("model", Field.label),
    "batch": ("batch", Field.whole),
}
FIELDS: Final = (*SIMPLE, *RECIPE, "deadline", "estimate", "array")
