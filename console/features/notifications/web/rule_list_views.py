"""Views of the lists of rules and schedules, and of the forms that create them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console import arns
from console.errors import ServiceError
from console.features.notifications.store import rules as store
from console.features.notifications.store import scheduler
from console.features.notifications.web import dead_letters, matches, rule_display
from console.features.notifications.web.forms import NotificationForm, ScheduleForm
from console.features.notifications.web.schedule_pause_views import schedule_pause_context
from console.statuses import UNSUCCESSFUL
from console.web.core.addresses import page_address
from console.web.core.scope import Scope, actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_LONGEST_NAMED = 1_600
"""The maximum length of a form value in a link."""


@require_http_methods(["GET", "POST"])
def notifications_page(request: HttpRequest) -> HttpResponse:
    """Show ``/notifications/``: event rules, dead letters; with ``?create`` the form."""
    scope = scope_of(request)
    if request.method == "POST":
        require(scope, "events:PutRule")
        sent = NotificationForm(request.POST).values
        fields = {"pattern": sent["pattern"] or rule_display.PatternChoices.sent(sent).pattern}
        problem = _save_rule(scope, request, sent, sent["target"], fields)
        if not problem:
            return _redirect_to(scope, "notifications")
        return _render_notifications(request, scope, problem)
    return _render_notifications(request, scope)


def _render_notifications(request: HttpRequest, scope: Scope, problem: str = "") -> HttpResponse:
    if problem or _creates(request, scope):
        form = NotificationForm(request.POST)
        context = _form_context(scope, problem) | {
            "section": "notifications",
            "typed": form.data
            or _values_of_link(request, "target") | _values_of_link(request, "machine"),
            **rule_display.choices_context(_offered_choices(request, form)),
        }
        return render(request, "notifications/create.html", context, status=422 if problem else 200)
    rows, after = rule_display.rule_rows(scope, scheduled=False, after=request.GET.get("after", ""))
    context = dead_letters.dead_letter_context(scope, request.GET) | {
        "section": "notifications",
        "rows": rows,
        "after": after,
        "may_rule": scope.may("events:PutRule"),
        **schedule_pause_context(scope),
    }
    return render(request, "notifications/notifications.html", context)


def _offered_choices(request: HttpRequest, form: NotificationForm) -> rule_display.PatternChoices:
    """Return the submitted choices, else the defaults: with ``?about=alarms`` those for alarms."""
    if form.data:
        return rule_display.PatternChoices.sent(form.texts)
    if request.GET.get("about") == rule_display.ABOUT_ALARMS:
        return rule_display.PatternChoices(rule_display.ALARM_DEFAULT, "", alarms=True)
    return rule_display.PatternChoices(UNSUCCESSFUL, "")


def _values_of_link(request: HttpRequest, field: str) -> dict[str, str]:
    """Return the form values given in a link."""
    return {field: request.GET.get(field, "")[:_LONGEST_NAMED]}


def _creates(request: HttpRequest, scope: Scope) -> bool:
    """Whether to show the form; readers without the right get the list."""
    return "create" in request.GET and scope.may("events:PutRule")


@require_http_methods(["GET", "POST"])
def schedules_page(request: HttpRequest) -> HttpResponse:
    """Show ``/schedules/``: scheduled rules; with ``?create`` the form."""
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
            return _after_schedule(scope, sent)
    if problem or _creates(request, scope):
        context = _form_context(scope, problem) | {
            "section": "schedules",
            "typed": ScheduleForm(request.POST).data
            or _values_of_link(request, "machine") | _values_of_link(request, "back"),
            "zones": sorted(available_timezones()),
        }
        return render(
            request, "notifications/create_schedule.html", context, status=422 if problem else 200
        )
    rows, after = rule_display.rule_rows(scope, scheduled=True, after=request.GET.get("after", ""))
    context = {
        "section": "schedules",
        "rows": rows,
        "after": after,
        "last_outcomes": matches.last_outcomes(scope.project, rows),
        "may_rule": scope.may("events:PutRule"),
        **schedule_pause_context(scope),
    }
    return render(request, "notifications/schedules.html", context)


def _after_schedule(scope: Scope, sent: dict[str, Any]) -> HttpResponse:
    """Redirect to where the form was opened: a state machine's triggers, or the list."""
    machine = rule_display.target_address(sent["machine"]).rpartition(":")[2]
    if sent["back"] == "triggers" and machine:
        return redirect(page_address(scope, "triggers", machine))
    return _redirect_to(scope, "schedules")


def _form_context(scope: Scope, problem: str) -> dict[str, Any]:
    return {"machines": rule_display.machine_names(scope), "problem": problem}


def _save_rule(
    scope: Scope,
    request: HttpRequest,
    sent: dict[str, Any],
    target_name: str,
    fields: dict[str, str],
) -> str:
    """Create the form's rule; return the error, "" without one.

    ``target_name``: an ARN, an address, or the name of a machine; ``fields``: its pattern, or its
    schedule and time zone.
    """
    name = sent["name"]
    target = {"Id": "1", "Arn": rule_display.target_address(target_name)}
    if sent["input"]:
        target["Input"] = sent["input"]
    try:
        store.save_rule(scope.project, scope.region, name, target, actor=actor_of(scope), **fields)
    except ServiceError as refused:
        return refused.message
    messages.success(request, f"Rule {name} created.")
    return ""


def _save_once(scope: Scope, request: HttpRequest, sent: dict[str, Any]) -> str:
    """Create a one-time schedule from a form; return the error, if any.

    A rule of EventBridge cannot fire once at a set time, so this is a schedule of EventBridge
    Scheduler.
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
    messages.success(request, f"Schedule {sent['name']} created.")
    return ""


def _redirect_to(scope: Scope, view: str, *names: str) -> HttpResponse:
    """Redirect to a page of the same region."""
    return redirect(page_address(scope, view, *names))
