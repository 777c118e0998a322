"""Operations of the API about what jobs share: queues, devices, users, and the daemon itself."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated, Literal

import msgspec

from bough.core.model import Frozen, Queue
from bough.errors import InputError
from bough.records import (
    Config,
    ConfigChange,
    DeviceRecord,
    NewToken,
    QueueRecord,
    StatusRecord,
    TokenRecord,
    UsageRow,
    UserRecord,
)
from bough.server import metrics, stream
from bough.server.operations import Ask, Count, Operations, Query, Raw, Ref, Stream

api = Operations()
Devices = tuple[DeviceRecord, ...]
Moment = Annotated[float, msgspec.Meta(ge=0, le=1 << 53)]
Scopes = tuple[Literal["read", "submit", "manage", "admin"], ...]


class Following(Query, frozen=True):
    """Where to begin."""

    #: The last entry that is known already; without it, what is yet to come.
    after: Count | None = None


class Span(Query, frozen=True):
    """Some time, and what to add up."""

    since: Moment | None = None
    until: Moment | None = None
    by: Literal["user", "queue", "job"] = "user"


class Leaving(Query, frozen=True):
    """What becomes of the jobs."""

    park: bool = False


class TokenWish(Frozen, frozen=True):
    """A token to be made."""

    name: Ref
    #: Whom it speaks for; empty: who asks for it.
    user: Annotated[str, msgspec.Meta(max_length=200)] = ""
    #: Empty: all but admin.
    scopes: Scopes = ()
    #: How long it is good; None: until it is revoked.
    seconds: Annotated[float, msgspec.Meta(gt=0, le=1e10)] | None = None


@api.route("GET /healthz", scope=None)
async def health(ask: Ask) -> dict[str, bool]:
    """Whether the daemon listens; nobody is asked who they are."""
    return {"ok": True}


@api.route("GET /v1/status")
def get_status(ask: Ask) -> StatusRecord:
    """How the daemon is."""
    return ask.service.status(ask.caller)


@api.route("GET /v1/openapi.json")
async def describe(ask: Ask) -> Raw:
    """This document."""
    return Raw(ask.around.document, "application/json")


@api.route("GET /metrics", media=metrics.MEDIA)
def get_metrics(ask: Ask) -> Raw:
    """Numbers for Prometheus."""
    return Raw(ask.around.metrics.text(ask.service, ask.caller), metrics.MEDIA)


@api.route(
    "GET /v1/events",
    media="text/event-stream",
    headers={"Last-Event-ID": "The last entry that was heard; it counts before `after`."},
)
async def follow_events(ask: Ask, query: Following) -> Stream:
    """The journal as it is written, as server-sent events: id = its number, event = its type."""
    return stream.events(ask, query.after)


@api.route("GET /v1/queues")
def list_queues(ask: Ask) -> tuple[QueueRecord, ...]:
    """All queues."""
    return ask.service.queues(ask.caller)


@api.route("PUT /v1/queues/{name}", scope="admin")
def set_queue(ask: Ask, name: Ref, body: Queue) -> Future[QueueRecord]:
    """Make or change a queue."""
    if body.name != name:
        raise InputError(f"is {body.name!r}, and the address names {name!r}", field="name")
    return ask.service.set_queue(ask.caller, body)


@api.route("GET /v1/devices")
def list_devices(ask: Ask) -> Devices:
    """All devices, and who holds them."""
    return ask.service.devices(ask.caller)


@api.route("POST /v1/devices/check", scope="admin")
def check_devices(ask: Ask) -> Devices:
    """The same, looked at anew."""
    return ask.service.check_devices(ask.caller)


@api.route("POST /v1/nodes/{node}/drain", scope="admin")
def drain_node(ask: Ask, node: Ref) -> Future[Devices]:
    """A drained node takes nothing new."""
    return ask.service.drain(ask.caller, node, True)


@api.route("POST /v1/nodes/{node}/undrain", scope="admin")
def undrain_node(ask: Ask, node: Ref) -> Future[Devices]:
    """It takes jobs again."""
    return ask.service.drain(ask.caller, node, False)


@api.route("POST /v1/nodes/{node}/devices/{index}/quarantine", scope="admin")
def quarantine_device(ask: Ask, node: Ref, index: Count) -> Future[Devices]:
    """A device in quarantine is not used."""
    return ask.service.quarantine(ask.caller, node, index, True)


@api.route("POST /v1/nodes/{node}/devices/{index}/release", scope="admin")
def release_device(ask: Ask, node: Ref, index: Count) -> Future[Devices]:
    """It is used again."""
    return ask.service.quarantine(ask.caller, node, index, False)


@api.route("GET /v1/users")
def list_users(ask: Ask) -> tuple[UserRecord, ...]:
    """Everybody with jobs here."""
    return ask.service.users(ask.caller)


@api.route("GET /v1/usage")
def get_usage(ask: Ask, query: Span) -> tuple[UsageRow, ...]:
    """What users, queues or jobs used."""
    return ask.service.usage(ask.caller, since=query.since, until=query.until, by=query.by)


@api.route("GET /v1/config")
def get_config(ask: Ask) -> Config:
    """What the daemon decides by."""
    return ask.service.config(ask.caller)


@api.route("PATCH /v1/config", scope="admin")
def change_config(ask: Ask, body: ConfigChange) -> Future[Config]:
    """Change that."""
    return ask.service.configure(ask.caller, body)


@api.route("GET /v1/tokens", scope="manage")
def list_tokens(ask: Ask) -> tuple[TokenRecord, ...]:
    """Tokens of the caller, or of everybody for administrators; without their secrets."""
    return ask.service.tokens(ask.caller)


@api.route("POST /v1/tokens", scope="manage", status=201)
def add_token(ask: Ask, body: TokenWish) -> NewToken:
    """Make a token; its secret is shown this once."""
    scopes = body.scopes or ("read", "submit", "manage")
    user = body.user or ask.caller.user
    return ask.service.add_token(ask.caller, body.name, user, scopes, body.seconds)


@api.route("DELETE /v1/tokens/{name}", scope="manage", status=204)
def revoke_token(ask: Ask, name: Ref) -> None:
    """It lets nobody in any more."""
    ask.service.revoke_token(ask.caller, name)


@api.route("POST /v1/shutdown", scope="admin", status=202)
def shut_down(ask: Ask, query: Leaving) -> None:
    """The daemon goes; its jobs stay, or are parked."""
    ask.service.shutdown(ask.caller, query.park)
