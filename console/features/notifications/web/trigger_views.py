"""Views of a state machine's triggers, and the start links that start it by HTTP.

A start link answers as API Gateway in front of Step Functions: StartExecution for a Standard state
machine, StartSyncExecution for an Express one.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.db.models import prefetch_related_objects
from django.http import JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from console.config import quotas
from console.db import signals
from console.db.audit import Actor
from console.errors import ServiceError, ThrottlingException
from console.events import body
from console.features.notifications import patterns
from console.features.notifications.store import rules, start_links
from console.features.notifications.web import matches, rule_display
from console.features.notifications.web.forms import StartLinkForm
from console.features.notifications.web.schedule_pause_views import schedule_pause_context
from console.models import Execution, StartLink
from console.server.shutdown import SHUTTING_DOWN
from console.statuses import ExecutionStatus, MachineType, Topic
from console.store.executions.start import start_execution
from console.web.core.addresses import page_address
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse

    from console.models import EventRule, StateMachine
    from console.web.core.scope import Scope

_CURL = "curl -X POST -H 'Content-Type: application/json' -d '{{}}' \\\n  '{}'"
LONGEST_S = 29.0
"""API Gateway: how long a caller is kept waiting at most."""
_lock = threading.Lock()
_buckets: dict[int, tuple[float, float]] = {}
"""Link -> tokens, and when they were counted (seconds of the monotonic clock)."""
_waiting: Counter[int] = Counter()
MOST_RULES = 200
"""The number of rules of a region that are read, by name."""
_OF_EVENT = ("source", "detail-type", "account", "region")
_DETAIL = frozenset(
    {
        *("executionArn", "stateMachineArn", "name", "status", "startDate", "stopDate"),
        *("input", "output", "inputDetails", "outputDetails", "error", "cause"),
        *("stateMachineVersionArn", "stateMachineAliasArn"),
        *("redriveCount", "redriveDate", "redriveStatus", "redriveStatusReason", "$or"),
    }
)
"""The fields of the detail of "Step Functions Execution Status Change"."""


# -- the start -------------------------------------------------------------------------------------


@login_not_required  # who knows the secret may start this one machine, and nothing else
@csrf_exempt  # no cookie counts here
@require_POST
def start_by_link(request: HttpRequest, machine_name: str, secret: str) -> HttpResponse:
    """Answer ``POST /start/<machine>/<secret>``: start with the body as input."""
    link = start_links.find_link(machine_name, secret)
    if link is None:
        return _json_response({"message": "Not Found"}, 404)
    try:
        take_token(link)
        text, name = request.body.decode("utf-8"), request.GET.get("name")
        if link.machine.type == MachineType.EXPRESS:
            with waiting(link):
                return _wait_for_end(_start_execution(link, text, name))
        execution = _start_execution(link, text, name)
    except UnicodeDecodeError:
        return _json_response({"message": "The body is not UTF-8"}, 400)
    except ServiceError as error:
        status = 429 if error.code == "ThrottlingException" else error.status
        return _json_response({"__type": error.code, "message": error.message}, status)
    started = {"executionArn": execution.arn, "startDate": execution.start_ms / 1000}
    return _json_response(started, 200)


def _start_execution(link: StartLink, text: str, name: str | None) -> Execution:
    execution = start_execution(
        link.machine,
        name=name or None,
        input=text if text.strip() else "{}",
        sync=link.machine.type == MachineType.EXPRESS,
        ahead=True,
        actor=Actor(f"{start_links.ACTOR}{link.name}", acting_for=(link.created_by,)),
    )
    start_links.note_use(link)
    return execution


def _wait_for_end(execution: Execution) -> HttpResponse:
    """Return the result of an Express execution; after a time limit it continues alone."""
    ended = threading.Event()
    stop = signals.subscribe((Topic.EXECUTION, execution.pk), lambda *_: ended.set())
    try:
        remaining_s = LONGEST_S
        while True:
            row = Execution.objects.get(pk=execution.pk)
            if row.status != ExecutionStatus.RUNNING:
                return _json_response(_outcome_body(row), 200)
            if SHUTTING_DOWN.is_set():
                return _json_response({"message": "Service Unavailable"}, 503)
            if remaining_s <= 0:
                return _json_response({"message": "Endpoint request timed out"}, 504)
            ended.wait(min(1.0, remaining_s))  # a hint may be lost
            ended.clear()
            remaining_s -= 1.0
    finally:
        stop()


def _outcome_body(row: Execution) -> dict[str, Any]:
    body = {
        "executionArn": row.arn,
        "stateMachineArn": row.state_machine_arn,
        "name": row.name,
        "startDate": row.start_ms / 1000,
        "stopDate": (row.stop_ms or row.start_ms) / 1000,
        "status": ExecutionStatus.FAILED if row.status == ExecutionStatus.ABORTED else row.status,
        "output": row.output,
        "error": row.error,
        "cause": row.cause,
    }
    return {name: value for name, value in body.items() if value is not None}


def _json_response(body: dict[str, Any], status: int) -> HttpResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _links_of(machine: StateMachine) -> list[StartLink]:
    links = StartLink.objects.filter(machine=machine).select_related("machine__project")
    return list(links.order_by("-pk"))


def _link_status(link: StartLink) -> str:
    if link.revoked_ms is not None:
        return "Revoked"
    return (
        "Active"
        if start_links.is_open(link)
        else "Closed, because its creator lost the right to create links"
    )


# -- the page --------------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
def triggers_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/triggers/``: triggers, and targets of its events."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    address, problem = "", ""
    if request.method == "POST":
        require(scope, "CreateStartLink")
        try:
            _, secret = start_links.create_link(
                machine, StartLinkForm(request.POST).values["name"], actor_of(scope)
            )
            address = request.build_absolute_uri(reverse("start-link", args=[machine.name, secret]))
        except ServiceError as refused:
            problem = refused.message
    rows = _rows_that_start(scope, machine)
    has_events = machine.type != MachineType.EXPRESS or settings.STATEYARD_EXPRESS_EVENTS
    context = machine_context(machine) | {
        "tab": "triggers",
        "links": [(link, _link_status(link)) for link in _links_of(machine)],
        "rows": rows,
        "event_rows": rules_of_events(scope, machine) if has_events else [],
        "has_events": has_events,
        "last_outcomes": matches.last_outcomes(scope.project, rows),
        "may_link": scope.may("CreateStartLink"),
        "may_rule": scope.may("events:PutRule"),
        **schedule_pause_context(scope),
        "made": address,
        "curl": _CURL.format(address),
        "problem": problem,
    }
    return render(request, "notifications/triggers.html", context, status=422 if problem else 200)


def _rows_that_start(scope: Scope, machine: StateMachine) -> list[rule_display.RuleRow]:
    """Return the rules and schedules that start a state machine, with these targets only."""
    starting = rules.rules_that_start(scope.project, scope.region, machine.arn)
    prefetch_related_objects(starting, "targets")
    rows = rule_display.list_rows(starting)
    for row in rows:
        row.targets = [
            sent for sent in row.targets if rules.starts_machine(sent.target, machine.arn)
        ]
    return rows


@require_POST
def revoke_start_link(request: HttpRequest, machine_name: str, number: int) -> HttpResponse:
    """Revoke a start link."""
    scope = scope_of(request)
    require(scope, "RevokeStartLink")
    machine = scope.machine(machine_name)
    try:
        link = start_links.revoke_link(machine, number, actor_of(scope))
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, f"The start link “{link.name}” is revoked.")
    return redirect(page_address(scope, "triggers", machine.name))


def take_token(link: StartLink) -> None:
    """Count a link's request; raise ``ThrottlingException`` above its rate."""
    rate = quotas.quotas_of(link.machine.project.name).start_link
    if rate is None:
        return
    now = time.monotonic()
    with _lock:
        tokens, at = _buckets.get(link.pk, (rate.bucket, now))
        tokens = min(rate.bucket, tokens + (now - at) * rate.refill)
        _buckets[link.pk] = (tokens - 1 if tokens >= 1 else tokens, now)
    if tokens < 1:
        raise ThrottlingException(f"Rate exceeded: {rate.refill:g} requests a second of this link")


@contextmanager
def waiting(link: StartLink) -> Iterator[None]:
    """Count a waiting caller; raise ``ThrottlingException`` above the limit."""
    most = quotas.quotas_of(link.machine.project.name).start_link_waits
    with _lock:
        if _waiting[link.pk] >= most:
            raise ThrottlingException(f"Rate exceeded: {most} callers of this link wait already")
        _waiting[link.pk] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting[link.pk] -= 1


def rules_of_events(scope: Scope, machine: StateMachine) -> list[rule_display.RuleRow]:
    """Return the rules that can match a state machine's status changes, by name."""
    stored = rules.bus_rules(scope.project, scope.region).exclude(pattern="").order_by("name")
    stored = stored.select_related("project")
    matching = [rule for rule in stored[:MOST_RULES] if _can_match(rule, machine)]
    prefetch_related_objects(matching, "targets")
    return rule_display.list_rows(matching)


def _can_match(rule: EventRule, machine: StateMachine) -> bool:
    """Whether a pattern matches the constant parts of a state machine's events.

    What differs from one to the next, as status and input, is not looked at.
    """
    try:
        pattern = json.loads(rule.pattern)
        detail = pattern.get("detail", {})
        if not set(detail) <= _DETAIL:
            return False
        fixed = {name: pattern[name] for name in _OF_EVENT if name in pattern}
        if "stateMachineArn" in detail:
            fixed["detail"] = {"stateMachineArn": detail["stateMachineArn"]}
        return not fixed or patterns.parse_pattern(json.dumps(fixed)).matches(_event(machine))
    except (ValueError, AttributeError, TypeError, patterns.PatternError):
        return False


def _event(machine: StateMachine) -> str:
    """Return the constant parts of a state machine's events."""
    event: dict[str, Any] = {
        "source": body.SOURCE,
        "detail-type": body.DETAIL_TYPE,
        "account": machine.arn.split(":")[4],
        "region": machine.region,
        "detail": {"stateMachineArn": machine.arn},
    }
    return json.dumps(event)
