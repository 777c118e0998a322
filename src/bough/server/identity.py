"""Accounts of this machine: whom jobs run as where many users share a daemon."""

from __future__ import annotations

import os
import pwd
from typing import NamedTuple

from bough.backends.render import Identity
from bough.core.model import JobSpec
from bough.errors import InputError


class Account(NamedTuple):
    """One user of this machine."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


def account_of(who: str | int) -> Account | None:
    """By name or by number; None when there is none."""
    try:
        found = pwd.getpwnam(who) if isinstance(who, str) else pwd.getpwuid(who)
    except (KeyError, ValueError, OverflowError):
        return None
    return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir, found.pw_shell)


def identity_of(spec: JobSpec) -> Identity:
    """Whom a job runs as, with all of that user's groups."""
    account = account_of(spec.user)
    if account is None:
        raise InputError(f"cannot run: this machine has no account {spec.user!r} any more")
    groups = tuple(os.getgrouplist(account.name, account.gid))
    return Identity(account.uid, account.gid, groups)
