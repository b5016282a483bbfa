"""Load every page of a yard on a server with the features of ``STATEYARD_FEATURES``.

Run as a program: it prints, as JSON, the features, the status of each page, and the links of each
page that lead nowhere. ``test_left_out`` runs it once for each choice of features.
"""

from __future__ import annotations

import functools
import gc
import json
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client
    from django.urls import URLPattern

    from console.models import Execution, Project

gc.disable()  # the process ends in seconds; collections took a fifth of them
django.setup()

_LINK = re.compile(
    r'(?:href|action|formaction|hx-get|hx-post|data-draft|data-edit|data-test)="(/[^"#]*)'
)
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_FILES = ("/static/", "/favicon")


def main() -> None:
    """Fill the yard, look at its pages, and print what was seen."""
    from console.feature import chosen_features

    client = _fill()
    paths = [*_addresses(), *_particular_addresses(), "/no/such/page/"]
    pages = {path: client.get(path) for path in paths}
    report = {
        "features": [feature.name for feature in chosen_features()],
        "status": {path: page.status_code for path, page in pages.items()},
        "dead": {
            path: dead
            for path, page in pages.items()
            if "html" in page.headers.get("Content-Type", "")
            if (dead := sorted(_dead_links(client, page.content.decode())))
        },
    }
    sys.stdout.write(json.dumps(report))


def _fill() -> Client:
    """Make a yard with machines and executions of each status; return its owner's client."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    from console.models import Project
    from tests.console.store import helpers

    project = Project.objects.create(name="default", account_id="123456789012")
    with open("/dev/null", "w") as nowhere:  # noqa: PTH123 - a stream for the command's words
        call_command("member", "ana", "--role", "owner", stdout=nowhere)
    _fill_map_run(project)
    asking = helpers.one(
        "Ask",
        Type="Task",
        Resource="arn:aws:states:::lambda:invoke.waitForTaskToken",
        Parameters={"FunctionName": "ask", "Payload": {"token.$": "$$.Task.Token"}},
    )
    definitions = {
        "good": helpers.PASS,
        "bad": {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Odd"}}},
        "asking": asking,
        "working": helpers.WORK,
    }
    for name, definition in definitions.items():
        machine = helpers.create(project, definition, name)
        for number in (1, 2):
            helpers.drain(helpers.start(machine, {"n": number}, f"run{number}"))
    _fill_features(project)
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    client.force_login(get_user_model().objects.get(username="ana"))
    return client


def _fill_map_run(project: Project) -> None:
    """Run a Map over children of which one fails: a worker has to be there for it."""
    from console.worker import Embedded
    from tests.console.store import helpers

    children = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Which?",
        "States": {
            "Which?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "NumericEquals": 2, "Next": "Odd"}],
                "Default": "Fine",
            },
            "Fine": {"Type": "Succeed"},
            "Odd": {"Type": "Fail", "Error": "Odd"},
        },
    }
    mapping = helpers.one("Each", Type="Map", Label="L", ItemProcessor=children)
    worker = Embedded()
    worker.start()
    try:
        machine = helpers.create(project, mapping, "mapping")
        helpers.ended(helpers.start(machine, [1, 2], "run1"))
    finally:
        worker.stop()


def _fill_features(project: Project) -> None:
    """Store what features have made before they were left out: their tables stay."""
    from console.db.audit import Actor
    from console.features.alarms import store as alarms
    from console.features.notifications.store import rules, scheduler
    from console.models import StateMachine
    from console.statuses import AlarmKind, AlarmState
    from console.store.tasks import activities

    ana, region = Actor("ana"), "us-east-1"
    activities.create_activity(project, region, "shift", actor=ana)
    machine = StateMachine.objects.get(name="good")
    fields = {"kind": AlarmKind.NO_SUCCESS, "machine": machine, "period_s": 60}
    alarms.put_alarm(project, region, "quiet", fields, actor=ana)
    alarms.set_alarm_state(project, region, "quiet", AlarmState.ALARM, "It is.", actor=ana)
    pattern = json.dumps({"source": ["aws.states"]})
    rules.put_rule(project, region, "told", pattern=pattern, actor=ana)
    target = {"Arn": machine.arn, "RoleArn": "arn:aws:iam::123456789012:role/schedules"}
    key = scheduler.ScheduleKey(project, region, scheduler.DEFAULT_GROUP, "nightly")
    settings = scheduler.ScheduleSettings("rate(1 day)", target)
    scheduler.create_schedule(key, settings, actor=ana)


def _particular_addresses() -> Iterator[str]:
    """Yield what a query shows on a page, and the pages of what features have made."""
    from console.features.alarms.models import Alarm
    from console.models import EventRule, MapRun
    from console.web.execution.panel import TABS

    for run in MapRun.objects.select_related("parent"):
        yield f"/machines/mapping/executions/{run.parent.name}/map-runs/{run.task}/"
        yield f"/machines/mapping/executions/{run.parent.name}/?step=Each"
    asking = "/machines/asking/executions/run1/"
    yield from (f"{asking}?view={view}" for view in ("steps", "timeline"))
    yield from (f"{asking}?step=Ask&tab={tab}" for tab, _ in TABS)
    sought = ("good", "edit+good", "told", "quiet", "nightly", "shift")
    yield from (f"/palette/?q={text}" for text in sought)
    yield "/failures/?children=with"
    yield "/notifications/?create=1"
    yield "/rules/told/"
    yield "/schedules/default/nightly/"
    yield from (f"/alarms/{alarm.pk}/" for alarm in Alarm.objects.all())
    for rows in (Alarm.objects.all(), EventRule.objects.all()):
        yield from (f"/arn/{arn}" for arn in rows.values_list("arn", flat=True))


def _addresses() -> Iterator[str]:
    """Yield the addresses that can be read, with names that exist."""
    from console.models import Execution, TaskRow
    from console.web.core.rights import PAGES

    task = TaskRow.objects.values_list("execution__state_machine__name", "execution__name", "task")
    asking = task.filter(execution__state_machine__name="asking")
    machine, execution, number = asking.first() or ("", "", 0)
    values = {"machine_name": machine, "execution_name": execution, "number": str(number)}
    for pattern in _patterns("console.web.urls"):
        if "GET" not in PAGES.get(pattern.name or "", {}) or pattern.name in _OTHER:
            continue
        route = str(pattern.pattern)
        if set(_PARAMETER.findall(route)) <= set(values):
            yield "/" + _PARAMETER.sub(lambda match: values[match[1]], route)
            if "execution_name" in route and "number" not in route:
                for each in Execution.objects.filter(name="run1"):
                    yield _page_of(route, each)


_OTHER = {"logout", "prometheus"}
"""Ends the session; asks for a token."""


def _page_of(route: str, execution: Execution) -> str:
    machine = execution.state_machine_arn.rpartition(":")[2]
    values = {"machine_name": machine, "execution_name": execution.name}
    return "/" + _PARAMETER.sub(lambda match: values[match[1]], route)


def _patterns(module: str) -> Iterator[URLPattern]:
    """Yield the addresses of a module and of those that it includes."""
    waiting: list[Any] = list(import_module(module).urlpatterns)
    while waiting:
        pattern = waiting.pop(0)
        if hasattr(pattern, "url_patterns"):
            waiting[:0] = pattern.url_patterns
        else:
            yield pattern


def _dead_links(client: Client, text: str) -> set[str]:
    """Return the links of a page that no address of this server answers, or an absent one did."""
    paths = {link.partition("?")[0] for link in _LINK.findall(text)}
    return {path for path in paths if not path.startswith(_FILES) and _is_dead(client, path)}


@functools.cache
def _is_dead(client: Client, path: str) -> bool:
    from django.urls import Resolver404, resolve

    if path.startswith("/arn/"):  # of any ARN: whether it has a page, the answer says
        return client.get(path).status_code == 404
    try:
        resolve(path)
    except Resolver404:
        return True
    return any(pattern.resolve(path.removeprefix("/")) for pattern in _absent_patterns())


@functools.cache
def _absent_patterns() -> list[URLPattern]:
    return [pattern for module in _absent() for pattern in _patterns(module)]


def _absent() -> list[str]:
    """Return the modules with the addresses of the features that are left out."""
    from console.feature import has_feature
    from console.features import NAMES

    features = [
        import_module(f"console.features.{name}.feature").FEATURE
        for name in NAMES
        if not has_feature(name)
    ]
    return [feature.urls for feature in features if feature.urls]


if __name__ == "__main__":
    main()
