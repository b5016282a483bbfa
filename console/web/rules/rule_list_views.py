"""Answer the lists of rules: notifications, schedules and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from zoneinfo import available_timezones

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console import arns
from console.errors import ServiceError
from console.models import EventRule
from console.statuses import UNSUCCESSFUL
from console.store.events import deliveries, scheduler
from console.store.events import rules as store
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.rules import dead_letters, rule_display
from console.web.rules.forms import NotificationForm, ScheduleForm, SendAgainForm

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "POST"])
def notifications_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/notifications/``: rules by pattern, a form for one more, and dead letters."""
    scope = scope_of(request)
    if request.method == "POST":
        require(scope, "events:PutRule")
        sent = NotificationForm(request.POST).values
        chosen = rule_display.pattern_of(sent["status"], sent["machine"])
        fields = {"pattern": sent["pattern"] or chosen}
        problem = _save_rule(scope, request, sent, sent["target"], fields)
        if not problem:
            return _redirect_to(scope, "notifications")
        return _render_notifications(request, scope, problem)
    return _render_notifications(request, scope)


def _render_notifications(request: HttpRequest, scope: Scope, problem: str = "") -> HttpResponse:
    rows, after = rule_display.rule_rows(scope, scheduled=False, after=request.GET.get("after", ""))
    form = NotificationForm(request.POST)
    context = _form_context(scope, problem) | _dead_letter_context(request, scope)
    context |= {
        "section": "notifications",
        "rows": rows,
        "after": after,
        "statuses_to_tell": rule_display.STATUSES,
        "typed": form.data,
        "chosen": form.texts["status"] if form.data else UNSUCCESSFUL,
    }
    return render(request, "rules/notifications.html", context, status=422 if problem else 200)


def _dead_letter_context(request: HttpRequest, scope: Scope) -> dict[str, Any]:
    """Return the groups of dead letters, and a page of those that were asked for.

    These are of the group ``?cause=``, or all of them for ``?letters=all``. One group needs no
    choice.
    """
    total = dead_letters.dead_letter_count(scope)
    groups = dead_letters.group_dead_letters(scope) if total else []
    group = dead_letters.find_group(groups, request.GET.get("cause", ""))
    if len(groups) == 1:
        group = groups[0]
    every = request.GET.get("letters") == "all"
    before = whole_number(request.GET.get("before", ""))
    letters, older = (
        dead_letters.list_dead_letters(scope, group, before) if group or every else ([], None)
    )
    return {
        "groups": groups,
        "group": group,
        "every": every,
        "grouped_of": dead_letters.MOST if total > dead_letters.MOST else None,
        "letters": letters,
        "older": older,
        "newer": before is not None,
        "dead_total": total,
        "may_send": scope.may("events:SendAgain"),
    }


@require_http_methods(["GET", "POST"])
def schedules_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/schedules/``: rules by time, and a form for one more."""
    scope = scope_of(request)
    problem = ""
    if request.method == "POST":
        require(scope, "events:PutRule")
        sent = ScheduleForm(request.POST).values
        fields = {name: sent[name] for name in ("schedule", "timezone")}
        if sent["schedule"].startswith("at("):
            problem = _save_once(scope, request, sent)
        else:
            problem = _save_rule(scope, request, sent, sent["machine"], fields)
        if not problem:
            return _redirect_to(scope, "schedules")
    rows, after = rule_display.rule_rows(scope, scheduled=True, after=request.GET.get("after", ""))
    context = _form_context(scope, problem) | {
        "section": "schedules",
        "rows": rows,
        "after": after,
        "typed": ScheduleForm(request.POST).data,
        "zones": sorted(available_timezones()),
    }
    return render(request, "rules/schedules.html", context, status=422 if problem else 200)


def _form_context(scope: Scope, problem: str) -> dict[str, Any]:
    may = scope.may("events:PutRule")
    return {
        "may_rule": may,
        "machines": rule_display.machine_names(scope) if may else [],
        "problem": problem,
    }


def _save_rule(
    scope: Scope,
    request: HttpRequest,
    sent: dict[str, Any],
    target_name: str,
    fields: dict[str, str],
) -> str:
    """Create the rule of a form; return what was wrong with it, "" if nothing was.

    ``target_name``: an ARN, an address, or the name of a machine; ``fields``: when the rule fires.
    """
    name = sent["name"]
    target = {"Id": "1", "Arn": rule_display.target_address(target_name)}
    if sent["input"]:
        target["Input"] = sent["input"]
    try:
        store.save_rule(scope.project, scope.region, name, target, actor=actor_of(scope), **fields)
    except ServiceError as refused:
        return refused.message
    messages.success(request, f"The rule {name} is on.")
    return ""


def _save_once(scope: Scope, request: HttpRequest, sent: dict[str, Any]) -> str:
    """Create the schedule of a form for one moment; return what was wrong with it.

    Rules of EventBridge know no single moment, so it is one of EventBridge Scheduler.
    """
    require(scope, "scheduler:CreateSchedule")
    partition = arns.partition_of(scope.region)
    role = f"arn:{partition}:iam::{scope.project.account_id}:role/schedules"
    target = {"Arn": sent["machine"], "RoleArn": role}
    if sent["input"]:
        target["Input"] = sent["input"]
    group = scheduler.DEFAULT_GROUP
    key = scheduler.ScheduleKey(scope.project, scope.region, group, sent["name"])
    settings = scheduler.ScheduleSettings(sent["schedule"], target, sent["timezone"])
    try:
        store.check_name(sent["name"])
        scheduler.create_schedule(key, settings, actor=actor_of(scope))
    except ServiceError as refused:
        return refused.message
    messages.success(request, f"The schedule {sent['name']} is on.")
    return ""


def _redirect_to(scope: Scope, view: str, *names: str) -> HttpResponse:
    """Lead to a page of the same region."""
    return redirect(page_address(scope, view, *names))


def page_address(scope: Scope, view: str, *names: str) -> str:
    """Return the address of a page of the same region."""
    query = f"?{urlencode({'region': scope.region})}" if scope.elsewhere else ""
    return reverse(view, args=names) + query


@require_POST
def send_delivery_again(request: HttpRequest, number: int) -> HttpResponse:
    """Try a dead letter anew."""
    scope = scope_of(request)
    require(scope, "events:SendAgain")
    try:
        deliveries.send_again(scope.project, number, actor_of(scope))
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, "The event is sent again, with the same event id.")
    return _redirect_to(scope, "notifications")


@require_http_methods(["GET", "POST"])
def send_all_again(request: HttpRequest, number: int) -> HttpResponse:
    """Ask once, then try the dead letters of a rule anew: of ``cause``, a group, or all of them."""
    scope = scope_of(request)
    require(scope, "events:SendAgain")
    rule = get_object_or_404(EventRule, pk=number, project=scope.project, region=scope.region)
    groups = dead_letters.group_dead_letters(scope, rule)
    asked = request.GET if request.method == "GET" else SendAgainForm(request.POST).values
    key = asked.get("cause", "")
    if key:
        groups = [group for group in groups if group.key == key]
    if request.method == "GET":
        return _ask_to_send(request, rule, groups, key)
    errors = {error for group in groups for error in group.errors} if key else None
    count = deliveries.send_all_again(scope.project, rule, actor_of(scope), errors)
    if count:
        events = "1 event is" if count == 1 else f"{count} events are"
        messages.success(request, f"{events} sent again, with the same event ids.")
    else:
        messages.error(request, "These deliveries are not among the dead letters any more.")
    return _redirect_to(scope, "notifications")


def _ask_to_send(
    request: HttpRequest,
    rule: EventRule,
    groups: list[dead_letters.DeadLetterGroup],
    key: str,
) -> HttpResponse:
    count = sum(group.count for group in groups)
    context = {
        "section": "notifications",
        "rule": rule,
        "groups": groups,
        "key": key,
        "count": min(count, deliveries.MOST_AGAIN),
        "more": count > deliveries.MOST_AGAIN,
        "addresses": sorted({address for group in groups for address in group.addresses}),
    }
    return render(request, "rules/send_again.html", context)
