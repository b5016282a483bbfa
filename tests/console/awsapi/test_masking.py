"""The API masks a project's values for a viewer's key and records who reads them."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.test.utils import CaptureQueriesContext

from console import access
from console.awsapi import masking, services, shapes
from console.awsapi.asgi import aws_application
from console.db.audit import Actor
from console.db.writer import is_embedded
from console.masking import masked_execution
from console.models import AuditEntry, Execution, MapRun, Membership, Project
from console.server.threads import run_in_loop
from console.store.people import masks, people
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.masking.test_masking import PATHS, SECRETS, logged, mask, taken_everywhere
from tests.loops import looped
from tests.security.test_rights import signed_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.model import Shape

BY = Actor("owner", "", "test")
GROUP = "/aws/vendedlogs/states/x"


class Caller:
    """A person with a key, who calls through the edge as a server hands it over."""

    def __init__(self, project: Project, user: Any) -> None:
        self.name = user.get_username()
        self.key, _ = people.new_key(user, project, BY)
        self.loop_thread: threading.Thread | None = None

    def ask(
        self,
        action: str,
        service: services.ApiService = services.STATES,
        run: Callable[[Any], Any] = looped,
        **params: Any,
    ) -> Any:
        """Return an answer; an error is one, too. ``run``: what runs the event loop, and where."""
        request = signed_request(service, action, self.key.key_id, **params)
        raw = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        sent: list[dict[str, Any]] = []

        body = [{"type": "http.request", "body": request.data, "more_body": False}]

        async def receive() -> dict[str, Any]:
            self.loop_thread = threading.current_thread()
            if not body:
                await asyncio.Event().wait()  # the caller stays
            return body.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "path": "/", "query_string": b"", "headers": raw}
        run(lambda: aws_application(scope, receive, send))
        return json.loads(sent[-1]["body"])


@pytest.fixture
def caller(project: Project, django_user_model: Any) -> Iterator[Callable[[str], Caller]]:
    """Return a function: role -> a new member with that role and a key."""
    access._principals.clear()
    masking._noted.clear()

    def make(role: str) -> Caller:
        user = django_user_model.objects.create_user(role)
        Membership.objects.create(project=project, user=user, role=role)
        return Caller(project, user)

    yield make
    access._principals.clear()


@pytest.fixture
def run(project: Project, worker: Any) -> Execution:
    """Return an execution that took hidden values everywhere."""
    del worker
    return taken_everywhere(project)


def reads(caller: Caller, run: Execution) -> dict[str, Any]:
    """Ask every action that tells what is in an execution, in every way."""
    groups: dict[str, Any] = {"service": services.LOGS, "logGroupName": GROUP}
    streams = caller.ask("DescribeLogStreams", **groups)["logStreams"]
    answers: dict[str, Any] = {
        "loop": caller.ask("DescribeExecution", executionArn=run.arn),
        "metadata": caller.ask(
            "DescribeExecution", executionArn=run.arn, includedData="METADATA_ONLY"
        ),
        "thread": caller.ask("DescribeExecution", executionArn=run.arn),
        "history": caller.ask("GetExecutionHistory", executionArn=run.arn),
        "reverse": caller.ask("GetExecutionHistory", executionArn=run.arn, reverseOrder=True),
        "bare": caller.ask("GetExecutionHistory", executionArn=run.arn, includeExecutionData=False),
        "filter": caller.ask("FilterLogEvents", **groups),
        "list": caller.ask("ListExecutions", stateMachineArn=run.state_machine_arn),
        "map": caller.ask("DescribeMapRun", mapRunArn=MapRun.objects.get().arn),
    }
    for stream in streams:
        name = stream["logStreamName"]
        answers[f"stream {name}"] = caller.ask("GetLogEvents", **groups, logStreamName=name)
        answers[f"few {name}"] = caller.ask("FilterLogEvents", **groups, logStreamNames=[name])
    for child in Execution.objects.exclude(map_run=None):
        answers[f"child {child.arn}"] = caller.ask("DescribeExecution", executionArn=child.arn)
        answers[f"events {child.arn}"] = caller.ask("GetExecutionHistory", executionArn=child.arn)
    assert not [answer for answer in answers.values() if "__type" in answer], answers
    assert len(answers) >= 15
    return answers


@pytest.mark.postgres_too
def test_a_masked_value_is_in_no_answer_to_a_viewer(
    run: Execution, caller: Callable[[str], Caller]
) -> None:
    """Not at its place, not renamed, not in a cause or a log line, not in a child of a Map Run."""
    answers = reads(caller("viewer"), run)
    for name, answer in answers.items():
        text = json.dumps(answer, ensure_ascii=False)
        assert not [secret for secret in SECRETS if secret in text], name
    for name in ("loop", "history", "reverse", "filter"):
        assert "(masked)" in json.dumps(answers[name]), name
    assert "(masked)" in answers["metadata"]["cause"]
    assert "visible-kind" in answers["loop"]["input"]
    assert json.loads(answers["loop"]["input"])["order"] == 4711
    assert not AuditEntry.objects.filter(action="RevealPayloads").exists()


def test_a_filter_pattern_tells_a_viewer_nothing(
    run: Execution, caller: Callable[[str], Caller]
) -> None:
    """Who cannot read a value cannot try values either: what is hidden matches no pattern."""
    viewer, operator = caller("viewer"), caller("operator")
    asked: dict[str, Any] = {"service": services.LOGS, "logGroupName": GROUP}
    for secret in SECRETS:
        assert viewer.ask("FilterLogEvents", **asked, filterPattern=f'"{secret}"')["events"] == []
        assert operator.ask("FilterLogEvents", **asked, filterPattern=f'"{secret}"')["events"]


def test_an_operator_reads_everything_and_that_is_on_record_once(
    run: Execution, caller: Callable[[str], Caller]
) -> None:
    """One row a person and execution, however often a client asks; another process adds none."""
    first, second = caller("operator"), caller("editor")
    for _ in range(2):
        answers = reads(first, run)
        masking._noted.clear()  # as another process knows it
    for name in ("loop", "history", "filter"):
        assert [secret for secret in SECRETS if secret in json.dumps(answers[name])], name
    second.ask("DescribeExecution", executionArn=run.arn)
    rows = AuditEntry.objects.filter(action="RevealPayloads", target=run.arn).order_by("pk")
    assert [(row.actor, row.key_id) for row in rows] == [
        ("operator", first.key.key_id),
        ("editor", second.key.key_id),
    ]
    assert rows[1].reason == "read by DescribeExecution"


def test_a_read_after_ten_minutes_is_another_row(
    run: Execution, caller: Callable[[str], Caller]
) -> None:
    """What was told long ago does not cover what is read now."""
    operator = caller("operator")
    operator.ask("DescribeExecution", executionArn=run.arn)
    rows = AuditEntry.objects.filter(action="RevealPayloads")
    rows.update(at_ms=rows.get().at_ms - 600_001)
    masking._noted.clear()
    operator.ask("GetExecutionHistory", executionArn=run.arn)
    assert rows.count() == 2


@pytest.mark.postgres_too
def test_what_comes_while_it_runs_is_masked_and_recorded(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """An execution without a masked value is read without a row, until it has one."""
    mask(project)
    viewer, operator = caller("viewer"), caller("operator")
    plain = start(create(project, WAIT), {"order": 1}, "plain")
    holds = start(create(project, PASS, "other"), {"password": "canary-late"}, "holds")
    operator.ask("DescribeExecution", executionArn=plain.arn)
    assert not AuditEntry.objects.filter(action="RevealPayloads").exists()
    for _ in range(2):
        answer = viewer.ask("DescribeExecution", executionArn=holds.arn)
        assert "canary-late" not in json.dumps(answer)
        drain(holds)
    assert answer["output"] == '{"password":"(masked)"}'
    operator.ask("DescribeExecution", executionArn=holds.arn)
    assert AuditEntry.objects.get(action="RevealPayloads").target == holds.arn


def test_a_long_masked_history_does_not_stop_the_event_loop(
    project: Project, caller: Callable[[str], Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is masked is looked for on a thread, never in the thread that answers everybody."""
    mask(project)
    execution = start(create(project, WAIT), {"password": "canary-one"}, "x")
    where = []
    family = masked_execution._family

    def note(numbers: Any) -> Any:
        where.append(threading.current_thread())
        return family(numbers)

    monkeypatch.setattr(masked_execution, "_family", note)
    viewer = caller("viewer")
    viewer.ask("DescribeExecution", executionArn=execution.arn)
    assert where
    assert viewer.loop_thread is not None
    assert viewer.loop_thread not in where


def test_without_masked_paths_a_read_takes_the_queries_it_took(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """Two for a description and three for a history, and no thread is changed for the first."""
    execution = drain(start(create(project, PASS), {"password": "canary-one"}, "x"))
    viewer = caller("viewer")
    for action, most in (("DescribeExecution", 3), ("GetExecutionHistory", 3)):
        viewer.ask(action, executionArn=execution.arn)
        counts: list[int] = []
        ask = partial(viewer.ask, action, run=partial(counting, counts), executionArn=execution.arn)
        assert "canary-one" in json.dumps(ask())
        assert counts[0] <= most
        # a history is read by another thread, and so is everything in a database of its own process
        here = is_embedded() and action == "DescribeExecution"
        assert (counts[0] > 0) == here


def counting(counts: list[int], fn: Callable[[], Any]) -> None:
    """Run an event loop in a thread of its own, and note how many queries that thread makes."""

    def counted() -> None:
        async def of_loop() -> Any:
            return run_in_loop(lambda: connections[DEFAULT_DB_ALIAS])

        with asyncio.Runner() as runner:
            connection = runner.run(of_loop())
            try:
                with CaptureQueriesContext(connection) as queries:
                    runner.run(fn())
                counts.append(len(queries))
            finally:
                connection.close()

    thread = threading.Thread(target=counted)
    thread.start()
    thread.join()


# -- nothing is forgotten --------------------------------------------------------------------------

SEAM = {
    "DescribeExecution": "masked",
    "GetExecutionHistory": "masked",
    "logs:FilterLogEvents": "masked",
    "logs:GetLogEvents": "masked",
    "DescribeStateMachine": "the definition",
    "DescribeStateMachineAlias": "its description",
    "DescribeStateMachineForExecution": "the definition",
    "GetActivityTask": "an operator's",
    "StartSyncExecution": "an operator's, of what they start",
    "TestState": "an operator's, of what they send",
    "ValidateStateMachineDefinition": "diagnostics of what the caller sends",
    "events:ListTargetsByRule": "the settings of a target",
}
"""Action -> why it may answer with texts that its model calls sensitive."""


def sensitive(shape: Shape | None, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether an answer has a member that its model calls sensitive."""
    if shape is None or shape.name in seen:
        return False
    if shape.metadata.get("sensitive"):
        return True
    inner = [*getattr(shape, "members", {}).values()]
    inner += [
        part for part in (getattr(shape, "member", None), getattr(shape, "value", None)) if part
    ]
    return any(sensitive(part, seen | {shape.name}) for part in inner)


def test_every_answer_that_can_hold_payloads_is_accounted_for() -> None:
    """By what the service models call sensitive; logs' model does not say it of their lines."""
    operations = {
        service.permission(action)
        for service in services.SERVICES
        for action in service.handlers
        if sensitive(shapes.service_model(service.name).operation_model(action).output_shape)
    }
    assert operations | {"logs:FilterLogEvents", "logs:GetLogEvents"} == set(SEAM)
    for name, why in SEAM.items():
        if why.startswith("an operator's"):
            assert access.least_role(name) == "operator"


@pytest.mark.postgres_too
def test_long_lines_of_logs_are_masked_before_they_are_cut(
    project: Project, caller: Callable[[str], Caller]
) -> None:
    """A cut payload is no JSON any more, in which nobody could find a short value's place."""
    mask(project)
    machine = logged(project, create(project, PASS))
    drain(start(machine, {"password": "ab", "long": "x" * 260_000}, "x"))
    asked: dict[str, Any] = {"service": services.LOGS, "logGroupName": GROUP}
    lines = caller("viewer").ask("FilterLogEvents", **asked)["events"]
    text = json.loads(lines[0]["message"])["details"]["input"]
    assert text.startswith('{"password":"(masked)"')


def test_changed_paths_count_at_once(
    project: Project, run: Execution, caller: Callable[[str], Caller]
) -> None:
    """A key that was used a moment ago is read anew, with its project."""
    viewer = caller("viewer")
    masks.put_paths(project, [], BY)
    assert SECRETS[0] in json.dumps(viewer.ask("DescribeExecution", executionArn=run.arn))
    masks.put_paths(project, PATHS.splitlines(), BY)
    assert SECRETS[0] not in json.dumps(viewer.ask("DescribeExecution", executionArn=run.arn))
