"""The header of an X-Ray trace is the trace header of an execution.

Source: API reference, StartExecution and StartSyncExecution: "If both sources are provided, Step
Functions will use the header value (preferred) over the value in the request body."
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.awsapi import asgi, services
from console.db.audit import Actor
from console.db.writer import Change
from console.models import Execution
from console.own_api import LongPoll
from console.store.people import people
from tests.console.store.helpers import PASS
from tests.security.test_rights import signed_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.console.awsapi.world import World

OURS = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"


@pytest.fixture
def key(world: World) -> Iterator[str]:
    """Return the id of a key of the world's owner."""
    access._principals.clear()
    principal = world.principal
    key, _ = people.new_key(principal.user, principal.project, Actor("owner", "", "test"))
    yield key.key_id
    access._principals.clear()


def send(key: str, action: str, header: str | None, **params: Any) -> Any:
    """Send a call with a header that the client does not sign, as SDKs do."""
    request = signed_request(services.STATES, action, key, **params)
    headers = {name.lower(): [value] for name, value in request.headers.items()}
    if header is not None:
        headers["x-amzn-trace-id"] = [header]
    answer = asgi.answer_call({"path": "/"}, headers, request.data, "request")
    return answer.result() if isinstance(answer, Change) else answer


@pytest.mark.parametrize(
    ("header", "member", "expected"),
    [
        (OURS, None, OURS),
        (OURS, "Root=1-0-0", OURS),
        (None, "Root=1-0-0", "Root=1-0-0"),
        ("", "Root=1-0-0", "Root=1-0-0"),
        ("é", "Root=1-0-0", "Root=1-0-0"),
        ("x" * 257, None, ""),
        (None, None, ""),
    ],
)
def test_the_header_wins_over_the_member(
    world: World, key: str, header: str | None, member: str | None, expected: str
) -> None:
    """One that no trace header can be is left alone: proxies may send anything."""
    parameters = {} if member is None else {"traceHeader": member}
    execution = send(key, "StartExecution", header, stateMachineArn=world.machine, **parameters)
    described = world.ask("DescribeExecution", executionArn=execution["executionArn"])
    assert described.get("traceHeader", "") == expected


def test_a_synchronous_execution_has_it_too(world: World, key: str) -> None:
    """Its answer names it."""
    machine = world.fresh(PASS, type="EXPRESS")
    later = send(key, "StartSyncExecution", OURS, stateMachineArn=machine)
    assert isinstance(later, LongPoll)
    assert Execution.objects.get().trace_header == OURS


def test_other_actions_have_none(world: World, key: str) -> None:
    """The header comes with each call, and only a start keeps it."""
    assert send(key, "ListStateMachines", OURS)["stateMachines"]
    arn = world.start(world.machine)
    assert send(key, "DescribeExecution", OURS, executionArn=arn)["executionArn"] == arn
