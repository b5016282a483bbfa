"""``InvocationType`` says whether a Task waits for a function, starts it, or runs nothing.

Source: API reference of Lambda, "Invoke"; developer guide, "How Lambda handles errors and retries
with asynchronous invocation".
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console import integrations
from console.features.logs.models import FunctionLog
from console.features.targets import explain
from console.functions import asynchronous
from console.integrations import function, targets
from console.integrations.outcome import Failed, Outcome, Submitted, Succeeded, TaskAttempt
from tests.console.store.helpers import create, ended, one, start
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project
    from console.worker import Embedded

CALLS: list[Any] = []
GO = threading.Event()


def note(event: Any, _: Any) -> Any:
    """Remember the event, wait until the test says so, and fail if the event says so."""
    assert GO.wait(30)
    CALLS.append(event)
    if isinstance(event, dict) and len(CALLS) <= event.get("failures", 0):
        msg = "not now"
        raise ValueError(msg)
    return {"seen": event}


@pytest.fixture(autouse=True)
def _registered(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.STATEYARD_FUNCTIONS = {"note": {"handler": f"{__name__}:note", "process": "shared"}}
    monkeypatch.setattr(asynchronous, "RETRY_S", (0.0, 0.0))
    CALLS.clear()
    GO.set()


def attempt(service: str, action: str, pattern: str = "", **parameters: Any) -> TaskAttempt:
    """Return a Task that invokes the function."""
    return TaskAttempt(
        kind="service",
        resource=f"arn:aws:states:::{service}:{action}{pattern}",
        service=service,
        action=action,
        input=engine.dumps({"FunctionName": "note", **parameters}),
        idempotency_key="k",
        execution_arn="",
        token="",
        pattern=pattern,
    )


def invoke(**parameters: Any) -> Outcome:
    """Invoke the function by the optimized integration."""
    return integrations.call_task(attempt("lambda", "invoke", **parameters))


def invoke_by_sdk(action: str = "invoke", **parameters: Any) -> Outcome:
    """Invoke the function by the SDK integration."""
    return integrations.call_task(attempt("aws-sdk:lambda", action, **parameters))


def answer(outcome: Outcome) -> Any:
    """Return the value of a success."""
    assert isinstance(outcome, Succeeded), outcome
    return engine.loads(outcome.output)


@pytest.mark.parametrize(("kind", "status"), [("Event", 202), ("DryRun", 204)])
def test_nothing_is_waited_for(kind: str, status: int) -> None:
    """The answer has no payload; the worker makes the call of an event."""
    outcome = invoke(Payload={"a": 1}, InvocationType=kind)
    response = answer(outcome)
    assert (response["StatusCode"], response["SdkHttpMetadata"]["HttpStatusCode"]) == (
        status,
        status,
    )
    assert not {"Payload", "ExecutedVersion"} & set(response)
    assert CALLS == []
    assert isinstance(outcome, Succeeded)
    assert (outcome.event is not None) is (kind == "Event")


def test_a_task_that_waits_for_its_token_may_start_its_function() -> None:
    """The function gets the token, and the Task goes on when somebody sends it back."""
    task = attempt("lambda", "invoke", ".waitForTaskToken", InvocationType="Event", Payload={})
    outcome = integrations.call_task(task)
    assert isinstance(outcome, Submitted)
    assert outcome.event is not None


@pytest.mark.parametrize("call", [invoke, invoke_by_sdk])
def test_an_unknown_type_is_refused(call: Any) -> None:
    """As Lambda refuses it; nothing runs."""
    outcome = call(InvocationType="Later")
    assert isinstance(outcome, Failed)
    assert outcome.error == "Lambda.AWSLambdaException"
    assert "Later" in str(outcome.cause)
    assert CALLS == []


@pytest.mark.parametrize("kind", ["Event", "DryRun", "RequestResponse"])
@pytest.mark.parametrize("call", [invoke, invoke_by_sdk])
def test_a_function_that_is_not_there(call: Any, kind: str) -> None:
    """Whatever the type is."""
    outcome = call(FunctionName="nobody", InvocationType=kind)
    assert isinstance(outcome, Failed)
    assert outcome.error == "Lambda.ResourceNotFoundException"


def test_the_answer_of_the_sdk() -> None:
    """Its payload is a text, and there is nothing of the optimized integration's."""
    expected = {"ExecutedVersion": "$LATEST", "Payload": '{"seen":{"a":1}}', "StatusCode": 200}
    assert answer(invoke_by_sdk(Payload={"a": 1})) == expected
    assert answer(invoke_by_sdk(Payload='{"a":1}')) == expected


def test_an_error_of_the_function_is_no_error_of_the_sdk() -> None:
    """The report is the payload."""
    response = answer(invoke_by_sdk(Payload={"failures": 9}))
    assert (response["FunctionError"], response["StatusCode"]) == ("Unhandled", 200)
    assert engine.loads(response["Payload"])["errorType"] == "ValueError"
    failed = invoke(Payload={"failures": 9})
    assert isinstance(failed, Failed)
    assert failed.error == "ValueError"


@pytest.mark.parametrize("error", ["Lambda.Unknown", "ValueError", "States.Runtime"])
def test_the_sdk_tells_errors_of_the_function_only(
    monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """Also those without a name; a function that ends its process each time fails the state."""
    monkeypatch.setattr(function, "call", lambda _: Failed(error, "{}"))
    outcome = invoke_by_sdk(Payload={})
    if error == "States.Runtime":
        assert outcome == Failed(error, "{}")
    else:
        assert answer(outcome)["FunctionError"] == "Unhandled"


def test_the_older_call_of_the_sdk() -> None:
    """InvokeAsync is an event, too."""
    outcome = invoke_by_sdk("invokeAsync", InvokeArgs={"a": 1})
    assert answer(outcome) == {"Status": 202}
    assert isinstance(outcome, Succeeded)
    assert outcome.event is not None
    assert engine.loads(outcome.event.input) == {"a": 1}


def test_calls_of_the_sdk_are_explained() -> None:
    """The page *Calls* names the registered function."""
    for action in ("invoke", "invokeAsync"):
        resource = engine.parse_resource(f"arn:aws:states:::aws-sdk:lambda:{action}")
        assert resource is not None
        plan = explain.plan_call(resource, {"FunctionName": "note"}, targets.NOBODY)
        assert (plan.callee, plan.problem) == ("function note", "")


# -- executions ------------------------------------------------------------------------------------


def execution_of(project: Project, payload: Any) -> Any:
    """Run a machine that starts the function and does not wait for it."""
    parameters = {"FunctionName": "note", "Payload": payload, "InvocationType": "Event"}
    resource = "arn:aws:states:::lambda:invoke"
    machine = one("Tell", Type="Task", Resource=resource, Parameters=parameters)
    return ended(start(create(project, machine, "telling")))


def test_an_execution_does_not_wait_for_an_event(project: Project, worker: Embedded) -> None:
    """It has ended before the function runs."""
    del worker
    GO.clear()
    execution = execution_of(project, {"a": 1})
    assert execution.status == "SUCCEEDED"
    assert engine.loads(execution.output)["StatusCode"] == 202
    assert CALLS == []
    GO.set()
    wait_until(lambda: CALLS == [{"a": 1}])


@pytest.mark.parametrize(("failures", "calls"), [(1, 2), (9, 3)])
def test_the_errors_of_an_event_stay_with_its_function(
    project: Project, worker: Embedded, failures: int, calls: int
) -> None:
    """It is called twice more, and each failure has a log; the execution has succeeded."""
    del worker
    execution = execution_of(project, {"failures": failures})
    assert execution.status == "SUCCEEDED"
    failed = FunctionLog.objects.filter(execution=execution.pk, error="ValueError")
    wait_until(lambda: failed.count() == min(failures, 3))
    wait_until(lambda: len(CALLS) == calls)
    assert "not now" in failed[0].output


def test_invocations_of_one_project_do_not_wait_for_those_of_another() -> None:
    """Functions that hang hold up the events of their own project only."""
    hanging, done = threading.Event(), threading.Event()

    def hang(_: int) -> str:
        hanging.wait(30)
        return ""

    def finish(_: int) -> str:
        done.set()
        return ""

    for _ in range(20):
        asynchronous.submit_invocation("busy", "f", hang)
    asynchronous.submit_invocation("quiet", "f", finish)
    assert done.wait(10)
    hanging.set()
