"""Who asks: the user at the other end of the Unix socket, or the owner of a token; and from where.

A web page must not drive a daemon of the machine it is looked at on: a browser sends the name by
which it found us and the page that asks, and both must be ours.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import socket
import struct
import time
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from bough.errors import ForbiddenError
from bough.server.operations import Scope
from bough.server.permissions import Caller
from bough.server.problems import HttpError

#: Asked for by the server itself, or by somebody whose name does not matter.
NOBODY: Final = Caller(user="", uid=-1, admin=False, scopes=frozenset())
#: Accounts are looked up again after so long: a directory service may be slow.
ACCOUNT_SECONDS: Final = 60.0
_CREDENTIALS: Final = struct.Struct("3i")
_accounts: dict[int, tuple[str, float]] = {}


class Peer(NamedTuple):
    """Who holds the other end of a connection."""

    #: Account on this machine; -1: it came over the network.
    uid: int = -1
    pid: int = 0
    #: Address of the network, if it came over one.
    address: str = ""


def peer_of(connection: socket.socket) -> Peer:
    """The kernel tells who connected, and nobody can say otherwise."""
    if connection.family != socket.AF_UNIX:
        return Peer(address=str(connection.getpeername()[0]))
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return Peer(uid=uid, pid=pid)


def name_of(uid: int) -> str:
    """The account's name, or its number where it has none."""
    name, until = _accounts.get(uid, ("", 0.0))
    if until < time.monotonic():
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = str(uid)
        _accounts[uid] = name, time.monotonic() + ACCOUNT_SECONDS
    return name


def caller_at(peer: Peer, *, system: bool, admins: Iterable[str]) -> Caller:
    """Whom a process on this machine speaks for."""
    rules = peer.uid in (0, os.geteuid())
    if not system and not rules:
        raise ForbiddenError("this bough belongs to another user; `bough up` starts your own")
    name = name_of(peer.uid)
    return Caller(user=name, uid=peer.uid, admin=rules or name in admins, pid=peer.pid)


def secret_in(headers: dict[str, str]) -> str | None:
    """The token that was sent along, if one was."""
    given = headers.get("authorization")
    if given is None:
        return None
    kind, _, secret = given.partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise unknown("Send the token as `Authorization: Bearer TOKEN`.")
    return secret.strip()


def unknown(detail: str) -> HttpError:
    """Nobody we know."""
    hint = "a token is made by `bough token create`"
    return HttpError(401, detail, hint=hint, headers={"www-authenticate": "Bearer"})


def check_scope(caller: Caller, scope: Scope) -> None:
    """A token allows only what it was made for; who is no administrator cannot act as one."""
    if caller.scopes is not None and caller.scopes.isdisjoint((scope, "admin")):
        has = ", ".join(sorted(caller.scopes)) or "nothing"
        raise ForbiddenError(f"this needs a token with the scope {scope!r}; yours allows {has}")
    if scope == "admin" and not caller.admin:
        raise ForbiddenError("only administrators may do that")


def own_hosts(listen: str, names: Iterable[str] = ()) -> frozenset[str]:
    """What we may be called, besides by a bare address."""
    host = urlsplit(f"//{listen}").hostname or ""
    return frozenset({"localhost", socket.gethostname().lower(), host.lower(), *names})


def check_host(headers: dict[str, str], hosts: frozenset[str]) -> None:
    """A name in somebody else's hands can be made to lead here; an address cannot."""
    given = headers.get("host", "")
    try:
        host = (urlsplit(f"//{given}").hostname or "").lower()
    except ValueError:
        host = ""
    if host not in hosts and not _is_address(host):
        raise HttpError(421, f"no server is called {given!r} here")


def check_origin(headers: dict[str, str]) -> None:
    """Of web pages only our own may ask."""
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
    if site not in ("none", "same-origin"):
        raise ForbiddenError("a web page from elsewhere may not use bough")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        raise ForbiddenError(f"a web page from {origin} may not use bough")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
