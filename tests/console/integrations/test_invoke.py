"""A registered function is invoked, and its answer wrapped, as ``lambda:invoke`` does it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.integrations import invoke
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings


def echo(event: Any, _: Any) -> Any:
    """Return the event."""
    return event


def called(settings: Settings, **parameters: Any) -> Outcome:
    """Invoke the echo function."""
    settings.STATEYARD_FUNCTIONS = {"echo": f"{__name__}:echo"}
    text = engine.dumps({"FunctionName": "echo", **parameters})
    return invoke.call(
        TaskAttempt(
            kind="service",
            resource="arn:aws:states:::lambda:invoke",
            service="lambda",
            action="invoke",
            input=text,
            idempotency_key="k",
            execution_arn="",
            token="",
            timeout_s=None,
        )
    )


@pytest.mark.parametrize(
    ("payload", "event"),
    [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), ("0.0", 0.0), ('"text"', "text"), (None, {})],
)
def test_the_event_of_a_payload(settings: Settings, payload: Any, event: Any) -> None:
    """A text is sent as it is, anything else as JSON, nothing as an empty object [recorded]."""
    outcome = called(settings, Payload=payload)
    assert isinstance(outcome, Succeeded)
    answer = engine.loads(outcome.output)
    assert answer["Payload"] == event
    length = answer["SdkHttpMetadata"]["HttpHeaders"]["Content-Length"]
    assert int(length) == len(engine.dumps(event))


def test_a_payload_that_is_not_json(settings: Settings) -> None:
    """Lambda refuses it before the function runs."""
    outcome = called(settings, Payload="{not")
    assert isinstance(outcome, Failed)
    assert outcome.error == "Lambda.InvalidRequestContentException"


def test_the_tail_of_the_log_where_it_is_asked_for(settings: Settings) -> None:
    """``LogType`` Tail adds the log in base64; without it there is none."""
    outcome = called(settings, LogType="Tail")
    assert isinstance(outcome, Succeeded)
    assert b"REPORT RequestId" in base64.b64decode(engine.loads(outcome.output)["LogResult"])
    plain = called(settings)
    assert isinstance(plain, Succeeded)
    assert "LogResult" not in engine.loads(plain.output)
