"""The API described for machines: OpenAPI 3.1, made of the operations and the types they name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from bough import __version__
from bough.records import Problem
from bough.server.operations import Operation
from bough.server.problems import TITLES

Json = dict[str, Any]
_REF: Final = "#/components/schemas/{name}"
#: Answers that any operation may give.
_ANY: Final = (400, 403, 408, 413, 421, 422, 429, 431, 500, 503)
_ABOUT: Final = (
    "Over the Unix socket the peer's account is who asks; over the network a bearer token is. "
    "Errors are application/problem+json. Numbers are at most 2**53; fields that have their "
    "default value are left out of answers."
)


#: Asked twice, msgspec makes their types anew.
_fields = cache(msgspec.structs.fields)


def document(operations: Sequence[Operation]) -> bytes:
    """All of it, as JSON."""
    types = [kind for each in operations for kind in (each.answer, each.body) if kind is not None]
    every = [*types, *(kind for each in operations for kind in _parameters_of(each).values())]
    schemas, components = msgspec.json.schema_components([*every, Problem], ref_template=_REF)
    known = dict(zip(map(id, every), schemas, strict=False))
    paths: Json = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, known)
    found = {
        "openapi": "3.1.0",
        "info": {"title": "bough", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(found)


def _parameters_of(operation: Operation) -> Json:
    """Types of what stands in the address."""
    asked = {f.encode_name: f.type for f in _fields(operation.query)}
    return {**operation.places, **asked}


def _operation(each: Operation, known: Mapping[int, Json]) -> Json:
    about = inspect.getdoc(each.handler) or ""
    found: Json = {
        "operationId": each.name,
        "summary": about.partition("\n")[0],
        "tags": [_tag(each.path)],
        "parameters": [*_in_path(each, known), *_in_query(each, known), *_in_headers(each)],
        "responses": _responses(each, known),
    }
    if each.scope is not None:
        found["security"] = [{"token": []}]
        found["x-scope"] = each.scope
    if each.body is not None:
        content = {"application/json": {"schema": known[id(each.body)]}}
        found["requestBody"] = {"required": each.body_required, "content": content}
    return found


def _tag(path: str) -> str:
    return next((part for part in path.split("/") if part and part != "v1"), "daemon")


def _in_path(each: Operation, known: Mapping[int, Json]) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": known[id(kind)]}
        for name, kind in each.places.items()
    ]


def _in_query(each: Operation, known: Mapping[int, Json]) -> list[Json]:
    found = []
    for field in _fields(each.query):
        schema = dict(known[id(field.type)])
        parts = schema.get("anyOf", [schema])
        parts = [part for part in parts if part != {"type": "null"}]
        # No address can say null: a parameter is left out instead.
        schema = parts[0] if len(parts) == 1 else {"anyOf": parts}
        if field.default not in (None, msgspec.NODEFAULT, ()):
            schema = schema | {"default": field.default}
        found.append({"name": field.encode_name, "in": "query", "schema": schema})
    return found


def _in_headers(each: Operation) -> list[Json]:
    return [
        {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}
        for name, about in each.headers.items()
    ]


def _responses(each: Operation, known: Mapping[int, Json]) -> Json:
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}}
    errors = set(_ANY)
    errors |= {401} if each.scope is not None else set()
    named = each.places or any(field.name == "job" for field in _fields(each.query))
    errors |= {404} if named or each.body is not None else set()
    errors |= {409} if each.method != "GET" else set()
    errors |= {415} if each.body is not None else set()
    errors |= {507} if each.method != "GET" else set()
    found: Json = {str(status): _answer(each, known) for status in (each.status,)}
    for status, about in each.also.items():
        if status < 400:
            found[str(status)] = {**_answer(each, known), "description": about}
        else:
            errors.add(status)
    for status in sorted(errors):
        found[str(status)] = {"description": TITLES[status], "content": problem}
    return found


def _answer(each: Operation, known: Mapping[int, Json]) -> Json:
    if each.answer is not None:
        schema: Json = known[id(each.answer)]
    elif each.media != "application/json":
        schema = {"type": "string"}
    elif each.status in (202, 204):
        return {"description": "Done."}
    else:
        schema = {"type": "object"}
    media = re.sub(r";.*", "", each.media)
    return {"description": "The answer.", "content": {media: {"schema": schema}}}
