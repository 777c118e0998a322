"""The API against its own document: whatever is sent, its answers are as the document says.

schemathesis makes requests of the document, good ones and bad ones; hypothesis draws them. All go
to one daemon, which has to be sound afterwards: its history is decided again, byte for byte.

`make soak REQUESTS=1000` sends so many of each kind to each operation.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.faults.journals import assert_sound
from tests.server.served import Served, order, served_at

from bough.server.operations import Operation
from bough.server.routes import api

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

REQUESTS = int(os.environ.get("SOAK_REQUESTS", "8"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
CHECKS = [
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
#: What never ends, and what ends everything.
LEFT_OUT = {"/v1/events", "/v1/shutdown"}
#: And nothing about a request that takes nothing from anybody can be wrong.
SENT = [
    pytest.param(each, mode, id=f"{each.method} {each.path} {mode.value}")
    for each in api.all
    for mode in GenerationMode
    if each.path not in LEFT_OUT and (each.scope or mode is GenerationMode.POSITIVE)
]


class Fuzzed:
    """A daemon with a few jobs, and its document."""

    def __init__(self, served: Served) -> None:
        self.served = served
        document = served.ask("GET", "/v1/openapi.json").json
        self.schema: Any = schemathesis.openapi.from_dict(document)
        with served.client() as client:
            # Nothing is started of what is sent: a command could be anything.
            (node,) = {each.node for each in client.devices()}
            client.submit(order("sleep", "1000", name="runs"))
            served.until("Started", "1")
            client.drain(node)
            client.submit(order("true", name="waits"))
            self.token = client.add_token("fuzz", scopes=("admin",)).secret
        self.session = requests.Session()
        self.address = f"http://127.0.0.1:{served.port}"

    def send(self, case: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer: requests.Response = case.call(
            base_url=self.address, session=self.session, headers=headers, timeout=20
        )
        return answer


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with served_at(tmp_path_factory.mktemp("fuzzed") / "home") as served:
        fuzzed = Fuzzed(served)
        yield fuzzed
        fuzzed.session.close()


@pytest.mark.parametrize(("operation", "mode"), SENT)
def test_answers_are_as_the_document_says(
    fuzzed: Fuzzed, operation: Operation, mode: GenerationMode
) -> None:
    described = fuzzed.schema[operation.path][operation.method]
    cases = described.as_strategy(generation_mode=mode)

    @seed(SEED)
    @settings(
        max_examples=REQUESTS, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=cases, ref=st.sampled_from([None, "1", "2", "runs", "waits"]))
    def sent(case: Any, ref: str | None) -> None:
        if ref is not None and "ref" in (case.path_parameters or {}):
            case.path_parameters["ref"] = ref
        hasten(case)
        answer = fuzzed.send(case)
        assert answer.status_code < 500, answer.text
        assert "Traceback" not in answer.text
        case.validate_response(answer, checks=CHECKS)

    sent()


def hasten(case: Any) -> None:
    """What may take its time answers at once."""
    query = case.query if isinstance(case.query, dict) else {}
    if case.path.endswith("/wait"):
        with suppress(TypeError, ValueError):
            if float(query.get("seconds", 1)) > 0:
                case.query = {**query, "seconds": 0}
    if query.get("follow") in (True, "true", "1"):
        case.query = {**query, "follow": "false"}


def test_it_is_sound_after_all_of_that(fuzzed: Fuzzed) -> None:
    served = fuzzed.served
    with served.client() as client:
        assert client.status().notes == ()
    served.stop()
    assert_sound(Path(served.wish.home))
