"""Views of the overview: running executions, recent failures, latest state machines."""

from __future__ import annotations

import configparser
import hashlib
import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from django.db.models import F, OuterRef, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from console.config.client_profile import PROFILE
from console.config.data_folder import data_folder
from console.db import clock
from console.feature import Hook, hooked
from console.models import AccessKey, Execution, StateMachine
from console.statuses import ExecutionStatus, MachineStatus
from console.store.executions.last_states import open_states
from console.web.core.cli_commands import CliCommand
from console.web.core.formatting import DAY, MINUTE, StatusLabel, rough_duration
from console.web.core.scope import Scope, render, scope_of
from console.web.execution import waiting
from console.web.machines import views
from console.web.search import lists
from console.web.search.lists import newest_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from django.http import HttpRequest

    from console.web.search.lists import MachinePage


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
    context["trends"] = machine_trends(scope, context["machines"])
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
    """Add what features show in the lists."""
    for add in hooked(Hook.OVERVIEW_CHANGED):
        context |= add(scope, context)


_ARN = re.compile(
    r"arn:aws[a-z-]*:states:([a-z0-9-]+):\d{12}:(stateMachine|execution|express|activity):([^:]+)"
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
    if kind == "activity" and execution is None:
        return redirect(f"{reverse('activity', args=[machine])}?region={region}")
    if kind == "stateMachine" and execution is not None:  # the number of a version, or an alias
        return redirect(f"{reverse('versions', args=[machine])}?region={region}")
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


MOST_MACHINES = 100
"""The number of state machines, the last started, that are examined for drift and silence."""
_MOST_TRENDS = 5
LOOKED_AT = 60
"""The number of latest executions read per machine."""
NEW = 10
"""The number of latest successes that are compared with the successes before them."""
BEFORE = 30
LEAST_BEFORE = 10
_FACTOR = 1.5
_LEAST_MS = 500
_ROUND = 10
STARTS = 12
"""The gaps between how many of the newest starts are a state machine's rhythm."""
LEAST_GAPS = 5
_REGULAR = 3
SILENT_MS = 7 * DAY
"""The time after which a state machine without a rhythm counts as silent."""


@dataclass(frozen=True, slots=True)
class DurationDrift:
    """A state machine whose latest successes are slower or faster than its earlier successes.

    ``now``, ``before``: the medians in milliseconds; ``since_ms``: when the first of the newest
    started.
    """

    machine: str
    now: int
    before: int
    since_ms: int

    @property
    def factor(self) -> float:
        """Return the new duration divided by the old one."""
        return max(self.now, 1) / max(self.before, 1)

    @property
    def strength(self) -> float:
        """Return the factor of the change in either direction, at least 1."""
        return max(self.factor, 1 / self.factor)

    @property
    def status(self) -> StatusLabel:
        """Return icon and words of the change."""
        if self.factor < 1:
            return StatusLabel("succeeded", f"{_times(1 / self.factor)} faster")
        return StatusLabel("caught", f"{_times(self.factor)} slower")


@dataclass(frozen=True, slots=True)
class SilentMachine:
    """A state machine that has not run for a long time.

    ``usual``: the median time between its starts in milliseconds, None without a regular interval.
    """

    machine: str
    last_ms: int
    usual: int | None

    @property
    def status(self) -> StatusLabel:
        """Return icon and word; a broken rhythm needs attention."""
        return StatusLabel("idle", "Quiet") if self.usual is None else StatusLabel("caught", "Late")

    @property
    def rhythm(self) -> str:
        """Return its usual interval between starts, "" if unknown."""
        return "" if self.usual is None else f"Usually every {rough_duration(self.usual)}"


@dataclass(frozen=True, slots=True)
class MachineTrends:
    """The overview's drifting and silent state machines, the most striking first.

    ``compared``: how many of them have enough successes to be compared with their past.
    """

    drifts: tuple[DurationDrift, ...]
    silent: tuple[SilentMachine, ...]
    compared: int
    needed: int = NEW + LEAST_BEFORE
    looked_at: int = LOOKED_AT


def machine_trends(scope: Scope, listed: MachinePage) -> MachineTrends:
    """Return drifting and silent state machines.

    State machines that have never run are not examined. ``listed``: the first state machines by
    name, reused if there are no others.
    """
    names = _last_started(scope) if listed.after else _names(listed)
    newest = newest_rows(list(names), ("stop_ms", "status"), LOOKED_AT)
    now = clock.now_ms()
    drifts, silent, compared = [], [], 0
    for machine, rows in newest.items():
        succeeded = [
            (start, stop) for start, stop, status in rows if status == ExecutionStatus.SUCCEEDED
        ]
        drifts.append(_drift(names[machine], succeeded[: NEW + BEFORE]))
        compared += len(succeeded) >= NEW + LEAST_BEFORE
        starts = [start for start, _, _ in rows[:STARTS]]
        silent.append(_silence(names[machine], starts, now))
    return MachineTrends(
        tuple(sorted(filter(None, drifts), key=lambda drift: -drift.strength)[:_MOST_TRENDS]),
        tuple(
            sorted(filter(None, silent), key=lambda row: (row.usual is None, -row.last_ms))[
                :_MOST_TRENDS
            ]
        ),
        compared,
    )


def _names(listed: MachinePage) -> dict[int, str]:
    machines = [row.machine for row in listed.rows]
    return {
        machine.pk: machine.name for machine in machines if machine.status == MachineStatus.ACTIVE
    }


def _last_started(scope: Scope) -> dict[int, str]:
    """Return id -> name of the most recently started state machines."""
    newest = Execution.objects.filter(state_machine=OuterRef("pk")).order_by("-start_ms", "-id")
    machines = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    ).annotate(last_ms=Subquery(newest.values("start_ms")[:1]))
    order = (F("last_ms").desc(nulls_last=True), "pk")
    return dict(machines.order_by(*order).values_list("pk", "name")[:MOST_MACHINES])


def _drift(name: str, rows: Sequence[tuple[int, int]]) -> DurationDrift | None:
    """Return the drift; None without a change or with too few executions.

    The new median must be outside of the middle half of the earlier durations.
    """
    times = [stop - start for start, stop in rows]
    new, before = times[:NEW], times[NEW:]
    if len(before) < LEAST_BEFORE:
        return None
    low, middle, high = quantiles(before, n=4, method="inclusive")
    now = round(median(new))
    drift = DurationDrift(name, now, round(middle), rows[NEW - 1][0])
    moved = abs(now - middle) >= _LEAST_MS and drift.strength >= _FACTOR
    return drift if moved and not low <= now <= high else None


def _silence(name: str, starts: Sequence[int], now: int) -> SilentMachine | None:
    """Return a silent state machine; None while it starts as usual.

    It has a rhythm where it starts about as often each time: the longest gap is at most three
    times the median one. What people start by hand has none, and is quiet after a week.
    """
    silence = now - starts[0]
    gaps = [later - earlier for later, earlier in pairwise(starts)]
    usual = round(median(gaps)) if gaps else 0
    regular = len(gaps) >= LEAST_GAPS and usual >= MINUTE and max(gaps) <= _REGULAR * usual
    if regular and silence > _FACTOR * max(gaps):
        return SilentMachine(name, starts[0], usual)
    return SilentMachine(name, starts[0], None) if silence > SILENT_MS else None


def _times(factor: float) -> str:
    return f"{factor:.1f}×" if factor < _ROUND else f"{factor:,.0f}×"  # noqa: RUF001 - as on the graph
