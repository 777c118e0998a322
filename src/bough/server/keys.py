"""Tokens: who may come in over the network, what they may do there, and until when."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

from bough.core.model import Frozen
from bough.errors import (
    ConflictError,
    ForbiddenError,
    FullError,
    InputError,
    NotFoundError,
    nearest,
)
from bough.records import NewToken, TokenRecord
from bough.server.anystore import AnyStore
from bough.server.database import StoreError
from bough.server.identity import account_of
from bough.server.intake import check_name
from bough.server.permissions import Caller, may_act
from bough.server.rows import Token

if TYPE_CHECKING:
    from bough.server.parts import Parts

SCOPES: Final = ("read", "submit", "manage", "admin")
#: What a secret begins with, so that those who search for lost secrets recognise it.
PREFIX: Final = "bough_"
SECRET_BYTES: Final = 32
SECONDS_MAX: Final = 10 * 365 * 86400.0


class Wish(Frozen, frozen=True):
    """A token that somebody wants."""

    name: str
    user: str
    scopes: tuple[str, ...]
    #: None: it never expires.
    seconds: float | None = None


def tokens(store: AnyStore, caller: Caller) -> tuple[TokenRecord, ...]:
    """One's own; an admin's are all."""
    return tuple(_record(each) for each in store.tokens() if may_act(caller, each.user))


def add(store: AnyStore, caller: Caller, wish: Wish, now: float) -> NewToken:
    """Let somebody in; the secret is told this once."""
    check_name(wish.name, "name")
    user = wish.user or caller.user
    if not may_act(caller, user):
        raise ForbiddenError("Only admins may make tokens for others.")
    for scope in wish.scopes:
        if scope not in SCOPES:
            raise InputError(f"no scope is called {scope!r}", field="scopes",
                             hint=nearest(scope, SCOPES))  # fmt: skip
        if caller.scopes is not None and scope not in caller.scopes:
            raise ForbiddenError("A token cannot make one that may do more than itself.")
    if not wish.scopes:
        raise InputError("a token that may do nothing is of no use", field="scopes")
    if "admin" in wish.scopes and not caller.admin:
        raise ForbiddenError("Only admins may make tokens that may administer.")
    if wish.seconds is not None and not 0 < wish.seconds <= SECONDS_MAX:
        raise InputError("must be positive, and at most ten years", field="seconds")
    taken = ConflictError(f"There is already a token called {wish.name}.")
    if any(each.name == wish.name for each in store.tokens()):
        raise taken
    token = Token(
        name=wish.name,
        user=user,
        scopes=tuple(scope for scope in SCOPES if scope in wish.scopes),
        created=now,
        expires=None if wish.seconds is None else now + wish.seconds,
    )
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    try:
        store.add_token(token, secret)
    except StoreError as error:
        if any(each.name == wish.name for each in store.tokens()):  # somebody was faster
            raise taken from None
        raise FullError(str(error)) from error
    return NewToken(token=_record(token), secret=secret)


def revoke(store: AnyStore, caller: Caller, name: str) -> None:
    """Let them in no more."""
    found = next((each for each in store.tokens() if each.name == name), None)
    if found is None or not may_act(caller, found.user):  # others' are not even there
        raise NotFoundError(f"No token is called {name!r}.")
    try:
        store.revoke_token(name)
    except StoreError as error:
        raise FullError(str(error)) from error


def caller_of(store: AnyStore, secret: str, now: float, parts: Parts) -> Caller | None:
    """Who says this; None: nobody who is let in."""
    token = store.find_token(secret, now)
    if token is None:
        return None
    scopes = frozenset(token.scopes)
    admin = "admin" in scopes and is_admin(token.user, parts)
    return Caller(user=token.user, uid=-1, admin=admin, scopes=scopes)


def is_admin(user: str, parts: Parts) -> bool:
    """Whether a user may act for all, were they here."""
    account = account_of(user)
    own = account is not None and account.uid in (0, os.geteuid())
    return own or user in parts.config.admins


def _record(token: Token) -> TokenRecord:
    return TokenRecord(
        name=token.name, user=token.user, scopes=token.scopes, created=token.created,
        expires=token.expires,
    )  # fmt: skip
