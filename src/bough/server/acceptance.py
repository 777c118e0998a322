"""Takes jobs on: gives them numbers and owners, and finds the jobs they come after."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

import msgspec

from bough.core.model import After, JobSpec, Submitted
from bough.core.queues import QueueTree
from bough.core.state import State
from bough.errors import ConflictError, ForbiddenError, InputError, NotFoundError, nearest
from bough.records import ENDED, Recipe, Submission
from bough.server import intake
from bough.server.anystore import AnyStore
from bough.server.identity import Account, account_of
from bough.server.permissions import Caller
from bough.server.references import find
from bough.server.rows import Accepted
from bough.server.turn import Turn

replace = msgspec.structs.replace
#: Variables that are those of whoever it runs as.
OWN: Final = ("HOME", "USER", "LOGNAME", "SHELL")
#: Jobs that those of one request may come after, all added up: each is kept, and looked at again.
LINKS_MAX: Final = 100_000
#: How an end of a job answers the wish of one that comes after it.
_GOOD: Final = {"success": ("done",), "any": ENDED, "failure": tuple(set(ENDED) - {"done"})}


class Acceptance:
    """Used in the decision thread alone."""

    def __init__(self, store: AnyStore, state: Callable[[], State], *, system: bool) -> None:
        self._store = store
        self._state = state
        #: Jobs run as whoever submitted them.
        self._system = system

    def accept(self, caller: Caller, given: Sequence[Submission], turn: Turn) -> list[str]:
        """Ids of the jobs, old ones where a key says so; all or nothing."""
        known = [self._known(self._owner(caller, each.spec), each, turn) for each in given]
        fresh = [self._take_on(caller, each, turn.at, i) for i, each in enumerate(given)
                 if known[i] is None]  # fmt: skip
        self._check_keys(fresh)
        ids = self._numbers([each.spec for each in fresh])
        accepted = [replace_id(each, id) for each, id in zip(fresh, ids, strict=True)]
        for each in _after_resolved(accepted, lambda name: self._ended_well(caller, name)):
            turn.accepted.append(each)
            turn.events.append(Submitted(at=turn.at, id=each.id, spec=each.spec))
            if each.key:
                turn.keys[each.spec.user, each.key] = each.id
        left = iter(ids)
        return [next(left) if id is None else id for id in known]

    def asked(self, caller: Caller, given: Submission, now: float) -> JobSpec:
        """What would be taken on if that were submitted; nothing is."""
        fresh = self._take_on(caller, given, now, 0)
        (found,) = _after_resolved([fresh], lambda name: self._ended_well(caller, name))
        return found.spec

    def repeat(self, caller: Caller, ids: Sequence[str], turn: Turn) -> list[str]:
        """New jobs that ask for the same, without what is in the past by now."""
        specs, recipes = [], []
        for id in ids:
            spec, recipe = self._store.spec(id), self._store.recipe(id)
            if spec is None or recipe is None:
                raise NotFoundError(f"How job {id} was run is not known any more.")
            past = spec.deadline is not None and spec.deadline <= turn.at
            array = spec.array_of if len(ids) > 1 else ""
            spec = replace(spec, after=(), array_of=array)
            specs.append(replace(spec, deadline=None, service="best-effort") if past else spec)
            recipes.append(recipe)
        new = self._numbers(specs)
        for id, old, spec, recipe in zip(new, ids, specs, recipes, strict=True):
            uid = self._store.uid(old)
            turn.accepted.append(Accepted(id, spec, recipe, uid=-1 if uid is None else uid))
            turn.events.append(Submitted(at=turn.at, id=id, spec=spec))
            turn.retry_of[id] = old
        return new

    # ------------------------------------------------------------------ one of them

    def _owner(self, caller: Caller, spec: JobSpec) -> str:
        """Whose job it is: others' names may be used by admins."""
        return spec.user if caller.admin and spec.user else caller.user

    def _known(self, user: str, given: Submission, turn: Turn) -> str | None:
        """The job that came with that key before; another one must not come with it."""
        key = given.key
        if not key:
            return None
        id = turn.keys.get((user, key))
        if id is not None:
            before = next(each for each in turn.accepted if each.id == id)
            spec, recipe = before.spec, before.recipe
        else:
            id = self._store.by_key(user, key)
            found = None if id is None else (self._store.spec(id), self._store.recipe(id))
            if found is None or found[0] is None or found[1] is None:
                return id
            spec, recipe = found[0], found[1]
        if not _is_same(intake.tidy(given), user, spec, recipe):
            raise InputError(f"another job, {id}, was submitted with this key", field="key")
        return id

    def _take_on(self, caller: Caller, given: Submission, now: float, index: int) -> Accepted:
        given = intake.tidy(given)
        try:
            intake.check(given, now)
            self._check_queue(caller, given.spec.queue)
        except InputError as error:
            raise error.at(field=f"[{index}]" if index else None) from None
        user, uid, recipe = self._owner(caller, given.spec), -1, given.recipe
        if self._system:
            account = self._account(caller, user)
            uid, recipe = account.uid, as_user(recipe, account)
        elif caller.uid < 0 and (account_here := account_of(os.geteuid())):
            recipe = as_user(recipe, account_here)  # it brings the environment of elsewhere
        # Processes of this machine keep the devices they began with: another size is a restart.
        spec = replace(given.spec, user=user, resize_in_place=False)
        return Accepted("", spec, recipe, given.key, uid)

    def _account(self, caller: Caller, user: str) -> Account:
        """Whom it runs as. Admins act on all jobs, but what runs as somebody is theirs to say."""
        own = user == caller.user
        account = account_of(caller.uid if own and caller.uid >= 0 else user)
        if account is None:
            raise ForbiddenError(f"This machine has no account {user!r} to run the job as.")
        if account.uid == 0 and not (own and caller.admin):
            raise ForbiddenError("Only root itself may run jobs as root.")
        if not own and not _is_root(caller):
            raise ForbiddenError("Only root may have jobs run as somebody else.")
        return account

    def _check_queue(self, caller: Caller, name: str) -> None:
        """It is there, or whoever asks may make it."""
        queues: QueueTree = self._state().queues
        if name not in queues.names and not caller.admin:
            hint = nearest(name, queues.names)
            raise InputError(f"no queue is called {name!r}", field="spec.queue", hint=hint)

    @staticmethod
    def _check_keys(fresh: Sequence[Accepted]) -> None:
        seen = set()
        for each in fresh:
            if each.key and (each.spec.user, each.key) in seen:
                raise InputError(f"two jobs have the key {each.key!r}", field="key")
            seen.add((each.spec.user, each.key))

    # ------------------------------------------------------------------ all of them

    def _numbers(self, specs: Sequence[JobSpec]) -> list[str]:
        """One for each job; members of an array share one."""
        numbers: dict[str, int] = {}
        ids: list[str] = []
        for spec in specs:
            if not spec.array_of:
                ids.append(str(self._store.next_number()))
                continue
            if spec.array_of not in numbers:
                numbers[spec.array_of] = self._store.next_number()
            ids.append(f"{numbers[spec.array_of]}.{spec.array_index}")
        if len(set(ids)) < len(ids):
            raise InputError("two members have the same index", field="spec.array_index")
        return ids

    def _ended_well(self, caller: Caller, after: After) -> list[After]:
        """Jobs of before that it waits for; those that are over as wished are left out."""
        found = []
        try:
            ids = find(self._store, caller, after.job)
        except NotFoundError:
            raise InputError(f"no job is called {after.job!r}", field="spec.after") from None
        for id in ids:
            record = self._store.job(id)
            if record is None or record.state not in ENDED:
                found.append(After(job=id, on=after.on))
            elif record.state not in _GOOD[after.on]:
                raise ConflictError(
                    f"It cannot come after job {id}, which ended as {record.state}."
                )
        return found


def _is_root(caller: Caller) -> bool:
    """Not merely an admin: it may become anybody anyway."""
    account = account_of(caller.uid if caller.uid >= 0 else caller.user)
    return caller.admin and account is not None and account.uid == 0


def _is_same(given: Submission, user: str, spec: JobSpec, recipe: Recipe) -> bool:
    """Whether this is what was taken on; names of jobs it comes after are ids by then."""
    asked = replace(given.spec, user=user, resize_in_place=False, after=spec.after)
    return asked == spec and _without_account(given.recipe) == _without_account(recipe)


def _without_account(recipe: Recipe) -> Recipe:
    """Without what we may have put in: the account, and bounds of the process that sent it."""
    env = {name: value for name, value in recipe.env.items() if name not in OWN}
    return replace(recipe, env=env, umask=None, limits={})


def replace_id(accepted: Accepted, id: str) -> Accepted:
    """The same under a number."""
    return accepted._replace(id=id)


def as_user(recipe: Recipe, account: Account) -> Recipe:
    """In the home of whoever submitted it, whatever its environment says."""
    shell = account.shell or "/bin/sh"
    own = dict(zip(OWN, (account.home, account.name, account.name, shell), strict=True))
    return replace(recipe, env=recipe.env | own)


def _after_resolved(
    accepted: Sequence[Accepted], of_before: Callable[[After], list[After]]
) -> Iterable[Accepted]:
    """With ids in place of names: first those of the same batch, then jobs of before."""
    here: dict[str, list[str]] = {}
    for each in accepted:
        for name in {each.spec.name, each.spec.array_of} - {""}:
            here.setdefault(name, []).append(each.id)
    waits: dict[str, set[str]] = {}
    known: dict[After, list[After]] = {}
    resolved, links = [], 0
    for each in accepted:
        if not each.spec.after:
            resolved.append(each)
            continue
        after: list[After] = []
        for wish in each.spec.after:
            if wish.job in here:
                found = [After(job=id, on=wish.on) for id in here[wish.job]]
                waits.setdefault(each.id, set()).update(here[wish.job])
            else:
                if wish not in known:
                    known[wish] = of_before(wish)
                found = known[wish]
            after += found
            links += 1 + len(found)
            if links > LINKS_MAX:
                what = f"these jobs come after more than {LINKS_MAX:,} others, all added up"
                raise InputError(what, field="spec.after")
        spec = replace(each.spec, after=tuple(dict.fromkeys(after)))
        resolved.append(each._replace(spec=spec))
    _check_circles(waits)
    return resolved


def _check_circles(waits: dict[str, set[str]]) -> None:
    """Jobs that wait for each other would wait for ever."""
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        raise InputError("these jobs wait for each other", field="spec.after") from None
