"""Views of the overview: running executions, recent failures, latest state machines."""

from __future__ import annotations

import configparser
import hashlib
import re
import shlex
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from console.config.client_profile import PROFILE
from console.config.data_folder import data_folder
from console.feature import Hook, has_feature, hooked
from console.models import AccessKey
from console.statuses import ExecutionStatus
from console.store.executions.last_states import open_states
from console.web.core.cli_commands import CliCommand
from console.web.core.scope import Scope, render, scope_of
from console.web.execution import waiting
from console.web.machines import views
from console.web.search import lists

if TYPE_CHECKING:
    from pathlib import Path

    from django.http import HttpRequest


MOST = 8
MOST_TASKS = 3


@require_safe
def overview_page(request: HttpRequest) -> HttpResponse:
    """Show ``/``."""
    scope = scope_of(request)
    context = _page_context(scope)
    _change(scope, context)
    for add in hooked(Hook.OVERVIEW):
        context |= add(scope, request.GET)
    for add in hooked(Hook.OVERVIEW_MACHINES):
        context |= add(scope, context["machines"])
    # below the shorter list, and there as long as the page is open
    left_count = len(context["running"]) + len(context["tasks"])
    context["trends_left"] = left_count < len(context.get("kinds", ()))
    context["first_sample"] = views.first_sample()
    if not context["machines"].rows:
        context |= first_calls_context(request, scope)
    return render(request, "overview/page.html", context)


@require_safe
def connect_page(request: HttpRequest) -> HttpResponse:
    """Show ``/connect/``: how shells and programs reach the server."""
    scope = scope_of(request)
    context = first_calls_context(request, scope)
    return render(request, "overview/connect.html", context | {"section": "overview"})


@require_safe
def overview_changes(request: HttpRequest) -> HttpResponse:
    """Answer a poll: nothing without a change, else new lists."""
    scope = scope_of(request)
    context = _page_context(scope)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    if "empty" in request.GET:  # the page of an empty yard is another one
        rows = context["machines"].rows
        return HttpResponseClientRefresh() if rows else HttpResponse(status=204)
    _change(scope, context)
    return render(request, "overview/_live_update.html", context)


def _page_context(scope: Scope) -> dict[str, Any]:
    machines = lists.list_machines(scope, most=MOST, sort="-started")
    tally = lists.status_counts(scope)
    counted = tally.get(ExecutionStatus.RUNNING)  # without any, skip the query
    running = lists.latest_executions(scope, (ExecutionStatus.RUNNING,), MOST) if counted else []
    added = [add(scope, MOST) for add in hooked(Hook.OVERVIEW_LIVE)]
    states = open_states([execution.pk for execution in running])
    open_tasks = tally.get(lists.OPEN_TASKS, 0)
    tasks = waiting.oldest_open_tasks(scope, MOST_TASKS) if open_tasks else ()
    parts = [
        [context["seen"] for context in added],
        sorted(tally.items()),
        [execution.pk for execution in running],
        sorted(states.items()),
        [(task.row.execution_id, task.row.task) for task in tasks],
        [(row.machine.pk, row.running, row.failed, row.last_ms) for row in machines.rows],
    ]
    context = {name: value for each in added for name, value in each.items()}
    return context | {
        "section": "overview",
        "day": "started > 24 h ago",
        "machines": machines,
        "running": running,
        "states": states,
        "open_tasks": open_tasks,
        "halted_count": tally.get(lists.HALTED, 0),
        "tasks": tasks,
        "tally": {
            "running": tally.get(ExecutionStatus.RUNNING, 0),
            "succeeded": tally.get(ExecutionStatus.SUCCEEDED, 0),
            "failed": tally.get(ExecutionStatus.FAILED, 0)
            + tally.get(ExecutionStatus.TIMED_OUT, 0),
            "aborted": tally.get(ExecutionStatus.ABORTED, 0),
        },
        "seen": hashlib.sha256(repr(parts).encode()).hexdigest()[:16],
    }


def _change(scope: Scope, context: dict[str, Any]) -> None:
    """Add the context of the features' lists."""
    for add in hooked(Hook.OVERVIEW_CHANGED):
        context |= add(scope, context)


_ARN = re.compile(
    r"arn:aws[a-z-]*:states:([a-z0-9-]+):\d{12}:(stateMachine|execution|express):([^:]+)"
    r"(?::([^:]+)(?::[0-9a-f-]+)?)?"
)


@require_safe
def redirect_arn(request: HttpRequest, arn: str) -> HttpResponse:
    """Redirect from an ARN to its page."""
    for find in hooked(Hook.ARN_ADDRESS):
        if address := find(scope_of(request), arn):
            return redirect(address)
    match = _ARN.fullmatch(arn)
    if match is None:
        raise Http404(f"No page belongs to “{arn}”.")
    region, kind, machine, execution = match.groups()
    if kind == "stateMachine" and execution is not None:  # the number of a version, or an alias
        view = "versions" if has_feature("versions") else "machine"
        return redirect(f"{reverse(view, args=[machine])}?region={region}")
    if kind != "stateMachine" and execution is None:
        raise Http404(f"No page belongs to “{arn}”.")
    machine = machine.replace("/", "~")  # a child of a Map Run
    names = (machine,) if execution is None else (machine, execution)
    view = "machine" if execution is None else "execution"
    return redirect(f"{reverse(view, args=names)}?region={region}")


_HELLO = (
    '{"StartAt": "Hello", "States": {"Hello": {"Type": "Pass", "Result": "Hello!", "End": true}}}'
)
_THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "[::1]"})


def first_calls_context(request: HttpRequest, scope: Scope) -> dict[str, Any]:
    """Return commands and program; ``credentials``: the file with the reader's own key.

    They contain the name of that file if they work unchanged: on the server's own machine, for its
    owner.
    """
    credentials = _own_credentials(request, scope)
    return {
        "credentials": credentials,
        "endpoint": _endpoint(request),
        "first_calls": _first_calls(request, scope, credentials),
        "first_program": _first_program(request, scope),
    }


def _endpoint(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"


def _own_credentials(request: HttpRequest, scope: Scope) -> Path | None:
    """Return the file that ``up`` wrote, None if missing or another person's."""
    if request.get_host().rpartition(":")[0] not in _THIS_MACHINE:
        return None
    path = data_folder() / "credentials"
    profiles = configparser.RawConfigParser(strict=False)
    try:
        profiles.read_string(path.read_text("utf-8"))
        key = profiles.get(PROFILE, "aws_access_key_id")
    except (OSError, UnicodeDecodeError, configparser.Error):
        return None
    keys = AccessKey.objects.filter(
        key_id=key, project=scope.project, user=scope.principal.user, disabled_ms=None
    )
    return path if keys.exists() else None


def _first_calls(request: HttpRequest, scope: Scope, credentials: Path | None) -> list[CliCommand]:
    create = [
        "aws stepfunctions create-state-machine",
        "--name HelloWorld",
        f"--role-arn arn:aws:iam::{scope.project.account_id}:role/stateyard",
        f"--definition '{_HELLO}'",
    ]
    start = [
        "aws stepfunctions start-execution",
        f"--state-machine-arn {scope.arn('stateMachine', 'HelloWorld')}",
        "--input '{}'",
    ]
    place = [
        f"AWS_ENDPOINT_URL={_endpoint(request)}",
        f"AWS_DEFAULT_REGION={scope.region}",
        f"AWS_PROFILE={PROFILE}",
    ]
    if credentials is not None:
        place.insert(0, f"AWS_SHARED_CREDENTIALS_FILE={shlex.quote(str(credentials))}")
    export = "\n".join(f"export {each}" for each in place)
    if not scope.may("CreateStateMachine"):
        look = "aws stepfunctions list-state-machines"
        return [CliCommand("Say where the server is", export), CliCommand("Look around", look)]
    return [
        CliCommand("Say where the server is", export),
        CliCommand("Create a state machine", " \\\n  ".join(create)),
        CliCommand("Start it", " \\\n  ".join(start)),
    ]


def _first_program(request: HttpRequest, scope: Scope) -> CliCommand:
    """Return the commands as a Python program, with the same profile."""
    lines = [
        "import boto3",
        "",
        f'session = boto3.Session(profile_name="{PROFILE}")',
        "sfn = session.client(",
        '    "stepfunctions",',
        f'    endpoint_url="{_endpoint(request)}",',
        f'    region_name="{scope.region}",',
        ")",
        "machine = sfn.create_state_machine(",
        '    name="HelloPython",',
        f'    roleArn="arn:aws:iam::{scope.project.account_id}:role/stateyard",',
        f"    definition='{_HELLO}',",
        ")",
        'arn = machine["stateMachineArn"]',
        "print(sfn.start_execution(stateMachineArn=arn))",
    ]
    return CliCommand("Or with boto3, in the same shell", "\n".join(lines))
