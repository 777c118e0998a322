"""Who may see and do what. All see that others' jobs are there; what they run is their owners'."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from bough.core.model import JobSpec
from bough.errors import ForbiddenError
from bough.records import Attempt, JobDetail, JobRecord, Recipe

#: Names of variables whose values are shown to nobody.
SECRET: Final = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|SIGNATURE|(?:^|_)PW"
    r"(?:$|_)|DSN|CONNECTION_STRING|DATABASE_URL|REDIS_URL|WEBHOOK",
    re.IGNORECASE,
)
#: What a web address carries before its host: https://user:password@host
IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@]*:[^/\s@]*(?=@)")
HIDDEN: Final = "***"
replace = msgspec.structs.replace


class Caller(NamedTuple):
    """Who asks."""

    #: Account name.
    user: str
    #: -1: not known on this machine, as it came with a token over the network.
    uid: int
    #: May act for all.
    admin: bool
    #: Of a token: "read", "submit", "manage", "admin"; None: all that the user may.
    scopes: frozenset[str] | None = None
    #: The process on this machine that asks; 0: it is not known.
    pid: int = 0


def may_act(caller: Caller, owner: str) -> bool:
    """Owners and admins."""
    return caller.admin or caller.user == owner


def check_owner(caller: Caller, record: JobRecord) -> None:
    """Refuse everybody else."""
    if not may_act(caller, record.user):
        raise ForbiddenError(
            f"Job {record.id} is {record.user}'s; only they and admins may do that."
        )


def check_admin(caller: Caller, what: str) -> None:
    """Refuse everybody else."""
    if not caller.admin:
        raise ForbiddenError(f"Only admins may {what}.")


def shown(record: JobRecord, caller: Caller) -> JobRecord:
    """A job as this caller may see it."""
    if record.command is None or may_act(caller, record.user):
        return record
    return replace(record, command=None)


def detail_shown(detail: JobDetail, caller: Caller) -> JobDetail:
    """All there is of a job, as this caller may see it."""
    spec = without_commands(detail.spec)
    if may_act(caller, detail.job.user):
        recipe = None if detail.recipe is None else redacted(detail.recipe)
        return replace(detail, spec=spec, recipe=recipe)
    return replace(
        detail,
        job=shown(detail.job, caller),
        spec=spec,
        recipe=None,
        attempts=tuple(_without_note(attempt) for attempt in detail.attempts),
    )


def without_commands(spec: JobSpec) -> JobSpec:
    """They are the recipe's."""
    if not spec.command and not any(role.command for role in spec.roles):
        return spec
    return replace(spec, command=(), roles=tuple(replace(r, command=()) for r in spec.roles))


def redacted(recipe: Recipe) -> Recipe:
    """With the values of secrets left out."""
    env = {name: _value_shown(name, value) for name, value in recipe.env.items()}
    return replace(recipe, env=env)


def _value_shown(name: str, value: str) -> str:
    return HIDDEN if SECRET.search(name) else IN_ADDRESS.sub(HIDDEN, value)


def _without_note(attempt: Attempt) -> Attempt:
    """A note may name a file or a folder."""
    return replace(attempt, note="") if attempt.note else attempt
