"""Which jobs are meant: a number, a member, an array, or the latest of a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from bough.core.units import shown
from bough.errors import NotFoundError
from bough.records import JobRecord
from bough.server.anystore import AnyStore
from bough.server.permissions import Caller

#: 12, or 12.3 for a member of an array; a number has at most so many digits.
_ID: Final = re.compile(r"([1-9][0-9]{0,14})(\.(?:0|[1-9][0-9]{0,8}))?", re.ASCII)

#: A name that was mistyped is compared with those of so many jobs.
_LATEST: Final = 200


def find(store: AnyStore, caller: Caller, ref: str) -> list[str]:
    """Ids of the jobs, of an array all members."""
    found = _by_number(store, ref) or _by_name(store, caller, ref)
    if not found:
        raise NotFoundError(f"No job is called {shown(ref)}; {_nearest(store, caller, ref)}")
    return found


def _nearest(store: AnyStore, caller: Caller, ref: str) -> str:
    """What was probably meant, of the caller's latest jobs; else where to look."""
    names = {job.name: job.id for job in reversed(store.jobs(user=caller.user, limit=_LATEST))}
    close = get_close_matches(ref, names, n=1)
    if not close:
        return "`bough ls --all` shows those there are."
    return f"did you mean {close[0]!r} (job {names[close[0]]})?"


def _by_number(store: AnyStore, ref: str) -> list[str]:
    match = _ID.fullmatch(ref)
    if match is None:
        return []
    if match[2]:
        return [ref] if store.job(ref) is not None else []
    return store.members(int(match[1]))


def _by_name(store: AnyStore, caller: Caller, ref: str) -> list[str]:
    """The caller's latest job of that name, or the latest array; admins find others', too."""
    for user in (caller.user, None) if caller.admin else (caller.user,):
        latest: Sequence[JobRecord] = store.jobs(name=ref, user=user, limit=1)
        if latest and latest[0].array_of not in ("", ref):
            return [latest[0].id]  # a member by its own name
        number = int(latest[0].id.partition(".")[0]) if latest else store.array(ref, user)
        if number is not None:
            return store.members(number)
    return []
