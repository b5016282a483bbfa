"""Every page, with something to see on it, keeps the rules of accessibility and fits a phone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import TARGET_SIZE, faults_at_all_sizes, only
from tests.acceptance.browser.conftest import running_server, saved_login
from tests.acceptance.browser.yard import create, ended, map_run, over, start, unique, waits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
PARTS = 4
"""The pages are tested in so many parts, which the processes of a run share."""


def import_failure(server: Server, browser: Browser, signed_in: Path) -> str:
    """Import an execution that failed; return the address of its page."""
    failing = {"StartAt": "Charge", "States": {"Charge": {"Type": "Fail", "Error": "CardLost"}}}
    path = ended(server, start(server, create(server, failing), name=unique("lost")))
    _, _, machine, _, name, _ = path.split("/")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:{name}"
    client = server.client()
    answers = {
        "history": client.get_execution_history(executionArn=arn),
        "machine": client.describe_state_machine_for_execution(executionArn=arn),
        "execution": client.describe_execution(executionArn=arn),
    }
    context = browser.new_context(base_url=server.url, storage_state=signed_in)
    page = context.new_page()
    page.goto("/import/")
    for field, answer in answers.items():
        page.fill(f"#{field}", json.dumps(answer, default=str))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#status")).to_have_text("Failed")
    address = urlsplit(page.url).path
    context.close()
    return address


def pages_of_rules(server: Server) -> dict[str, str]:
    """Return the addresses of the pages of rules and schedules."""
    machine = create(server, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    events = server.client("events")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    pattern = {"source": ["aws.states"], "detail": {"stateMachineArn": [arn]}}
    events.put_rule(Name=machine, EventPattern=json.dumps(pattern))
    hook = {"Id": "1", "Arn": f"https://hooks.example.com/{'-'.join(['long'] * 40)}"}
    events.put_targets(Rule=machine, Targets=[hook])
    events.put_rule(Name=f"at-{machine}", ScheduleExpression="rate(10 days)")
    events.put_targets(Rule=f"at-{machine}", Targets=[{"Id": "1", "Arn": arn}])
    start(server, machine)
    return {
        "notifications": "/notifications/",
        "new rule": "/notifications/?create=1",
        "all dead letters": "/notifications/?letters=all",
        "schedules": "/schedules/",
        "new schedule": "/schedules/?create=1",
        "rule": f"/rules/{machine}/",
        "edited rule": f"/rules/{machine}/?edit=1",
        "delete rule": f"/rules/{machine}/delete/",
        "rule of a schedule": f"/rules/at-{machine}/",
        "triggers": f"/machines/{machine}/triggers/",
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server of these tests alone: the rows of other tests would change its pages."""
    yield from running_server(tmp_path_factory)


@pytest.fixture(scope="module")
def signed_in(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Log in to that server and return the file with the cookies."""
    return saved_login(browser, server, tmp_path_factory)


@pytest.fixture(scope="module")
def paths(server: Server, browser: Browser, signed_in: Path) -> dict[str, str]:
    """Return the addresses of every page, with something to see on each."""
    machine = create(server, waits(600), name="w")  # a link of one letter is a small target
    unbroken = create(server, waits(0), name="n" * 80)
    tags = [{"key": key, "value": "b"} for key in ("a", "cc", "team", "stage", "owner", "cost")]
    machine_arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    server.client().tag_resource(resourceArn=machine_arn, tags=tags)
    running = start(server, machine)
    start(server, machine, name="other")
    start(server, machine, name="c")
    spread = create(server, over(waits(600)))
    running_map = start(server, spread, list(range(70)))
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}"
    activity = server.client().create_activity(name=unique("ask"))["activityArn"]
    approve = {"Type": "Task", "Resource": activity, "End": True}
    asking = create(server, {"StartAt": "Approve refund", "States": {"Approve refund": approve}})
    asked = start(server, asking, {"order": 4711})
    start(server, asking, {"order": 4712}, name="alike")  # so that both can be answered together
    server.client("cloudwatch").put_metric_alarm(
        AlarmName=f"{machine} fails",
        Namespace="AWS/States",
        MetricName="ExecutionsFailed",
        Dimensions=[{"Name": "StateMachineArn", "Value": machine_arn}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
    )
    return {
        "overview": "/",
        "connect": "/connect/",
        "project settings": "/settings/",
        "machines": "/machines/",
        "machine": f"/machines/{machine}/",
        "no executions": "/machines/Wait/",
        "definition": "/machines/OrderProcessing/definition/",
        "versions": "/machines/OrderProcessing/versions/",
        "changes": "/machines/OrderProcessing/diff/",
        "settings": "/machines/OrderProcessing/settings/",
        "logs": "/machines/OrderProcessing/logs/",
        "grid": f"/machines/{machine}/grid/",
        "insights": f"/machines/{machine}/insights/",
        "hot states": f"/machines/{machine}/hot-states/?by=p95",
        "executions of a state": f"/machines/{machine}/hot-states/executions/?state=Nap&figure=p95",
        "resilience": "/machines/OrderProcessing/resilience/",
        "role": "/machines/OrderProcessing/role/",
        "next starts": f"/machines/{machine}/next-starts/",
        "named inputs": f"/machines/{machine}/inputs/",
        "new": "/machines/new/",
        "edit": "/machines/OrderProcessing/edit/",
        "start": f"/machines/{machine}/start/",
        "test": "/machines/OrderProcessing/test/",
        "test with recorded input": f"/machines/{machine}/test/?state=Nap&origin=run",
        "delete": f"/machines/{machine}/delete/",
        "delete a long name": f"/machines/{unbroken}/delete/",
        "calls": f"/machines/{asking}/calls/",
        "start with recent inputs": f"/machines/{asking}/start/",
        "open task": f"{asked}tasks/3/",
        "dry run of a stop": f"/executions/bulk/?action=stop&all=1&machine={asking}",
        "keys": "/keys/",
        "executions": "/executions/",
        "filtered": "/executions/?status=RUNNING&from=2026-01-01&q=run&find=input.x+%3D+1",
        "bad filter": "/executions/?min=x&find=x+%3D",
        "columns": "/executions/?columns=x,+output.y",
        "bad columns": "/executions/?columns=x+y",
        "dry run": "/executions/bulk/?action=redrive&all=1",
        "dry run of replays": "/executions/bulk/?action=replay&all=1",
        "bulk jobs": "/executions/bulk/",
        "compare": f"/compare/?a={arn}:run&b={arn}:other",
        "compare form": "/compare/",
        "failures": "/failures/",
        "dry run of a pause": f"/executions/bulk/?action=pause&all=1&machine={asking}",
        "pause of all schedules": "/schedules/pause/",
        **pages_of_rules(server),
        "audit": "/audit/?act=-StartExecution",
        "server audit": "/server-audit/",
        "activities": "/activities/",
        "activity": "/activities/Add/",
        "targets": "/targets/",
        "search that finds nothing": "/executions/?find=caught+%3D+Nobody+duration+%3E+9d",
        "execution tree": f"{running_map}tree/",
        "alarms": "/alarms/",
        "tasks": "/tasks/?columns=order.id",
        "tasks with a bad column": "/tasks/?columns=a+b",
        "approval that is closed": "/approval/none/",
        "machine's alarms": f"/machines/{machine}/alarms/",
        "execution": running,
        "step": f"{running}?step=Nap",
        "event": f"{running}events/1/",
        "events": f"{running}events/?open=1.2",
        "definition it ran with": f"{running}definition/",
        "comparison with what differs": f"/compare/?a={arn}:run&b={arn}:other&only=differing",
        "compare with another": f"/compare/?a={arn}:run",
        "steps": f"{running}?view=steps&sort=-name",
        "timeline": f"{running}?view=timeline&step=Nap&tab=attempts",
        "map run": map_run(server, running_map),
        "map run's failed children": f"{map_run(server, running_map)}?status=FAILED",
        "past": f"{running}?at=3&step=Before&tab=flow",
        "import": "/import/",
        "reproduce": f"{import_failure(server, browser, signed_in)}reproduce/",
        "stop": f"{running}stop/",
        "breakpoints": f"{running}breakpoints/",
        "halted-lines": "/breakpoints/",
        "faults": f"{running}faults/",
        "replay": f"{running}replay/?step=Before",
        "share": f"{running}share/",
        "operations": "/operations/",
        "members": "/members/",
        "password": "/password/",
        "limits of a key": f"/keys/{server.keys()[0]}/limits/",
        "service accounts": "/service-accounts/",
        "sign-in": "/sign-in/",
        "account": "/account/",
        "second factor": "/account/second-factor/",
        "projects": "/projects/",
        "quotas": "/settings/quotas/",
        "denied actions": "/settings/denied-actions/",
        "retention": "/settings/retention/",
        "mocks": "/settings/mocks/",
        "settings file": "/settings/file/",
        "own targets": "/settings/targets/",
        "own service": "/settings/targets/edit/service/",
        "own address": "/settings/targets/edit/address/",
        "own connection": "/settings/targets/edit/connection/?type=OAUTH_CLIENT_CREDENTIALS",
        "own function": "/settings/targets/edit/function/",
        "confirmation of an address": "/account/mail/none/",
        "new password by mail": "/password-reset/",
        "link for a new password that is closed": "/password-reset/MQ/none/",
        "missing": "/machines/nowhere/",
    }


@pytest.mark.row("X18", "E16")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_breaks_an_accessibility_rule(page: Page, paths: dict[str, str], part: int) -> None:
    """Axe finds nothing on any page in either theme, and no page scrolls sideways."""
    faults = []
    for name, path in list(paths.items())[part::PARTS]:
        lines = faults_at_all_sizes(page, path, runOnly=only(TARGET_SIZE))
        faults += [f"{name}:", *lines] if lines else []
    assert not faults, "\n".join(faults)
