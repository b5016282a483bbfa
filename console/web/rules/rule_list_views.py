"""Who is told of executions, what starts on time, and what could not be delivered?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from zoneinfo import available_timezones

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ServiceError
from console.store.events import deliveries
from console.store.events import rules as store
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.rules import rule_display

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, QueryDict


@require_http_methods(["GET", "POST"])
def notifications_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/notifications/``: rules by pattern, a form for one more, and dead letters."""
    scope = scope_of(request)
    if request.method == "POST":
        require(scope, "events:PutRule")
        problem = _save_rule(
            scope, request, _pattern_field(request.POST), request.POST.get("target", "")
        )
        if not problem:
            return _redirect_to(scope, "notifications")
        return _render_notifications(request, scope, problem)
    return _render_notifications(request, scope)


def _pattern_field(form: QueryDict) -> dict[str, str]:
    pattern = form.get("pattern", "").strip()
    chosen = [status for status in form.getlist("status") if status in rule_display.STATUSES]
    return {"pattern": pattern or rule_display.pattern_of(chosen, form.get("machine", ""))}


def _render_notifications(request: HttpRequest, scope: Scope, problem: str = "") -> HttpResponse:
    before = whole_number(request.GET.get("before", ""))
    rows, after = rule_display.rule_rows(scope, scheduled=False, after=request.GET.get("after", ""))
    letters, older = rule_display.dead_letters(scope, before)
    typed = request.POST
    context = _form_context(scope, problem) | {
        "here": "notifications",
        "rows": rows,
        "after": after,
        "letters": letters,
        "older": older,
        "may_send": scope.may("events:SendAgain"),
        "statuses_to_tell": rule_display.STATUSES,
        "typed": typed,
        "chosen": typed.getlist("status") if typed else ["FAILED", "TIMED_OUT", "ABORTED"],
    }
    return render(request, "rules/notifications.html", context, status=422 if problem else 200)


@require_http_methods(["GET", "POST"])
def schedules_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/schedules/``: rules by time, and a form for one more."""
    scope = scope_of(request)
    problem = ""
    if request.method == "POST":
        require(scope, "events:PutRule")
        form = request.POST
        timed = {
            "schedule": form.get("schedule", "").strip(),
            "timezone": form.get("timezone", "").strip() or "UTC",
        }
        problem = _save_rule(scope, request, timed, form.get("machine", ""))
        if not problem:
            return _redirect_to(scope, "schedules")
    rows, after = rule_display.rule_rows(scope, scheduled=True, after=request.GET.get("after", ""))
    context = _form_context(scope, problem) | {
        "here": "schedules",
        "rows": rows,
        "after": after,
        "typed": request.POST,
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


def _save_rule(scope: Scope, request: HttpRequest, fields: dict[str, str], typed: str) -> str:
    """Make the rule of a form; return what was wrong with it, "" if nothing was."""
    name = request.POST.get("name", "").strip()
    target = {"Id": "1", "Arn": rule_display.target_address(typed)}
    given = request.POST.get("input", "").strip()
    if given:
        target["Input"] = given
    try:
        store.save(scope.project, scope.region, name, target, actor=actor_of(scope), **fields)
    except ServiceError as refused:
        return refused.message
    messages.success(request, f"The rule {name} is on.")
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
        messages.success(request, "It is on its way again, with the same event id.")
    return _redirect_to(scope, "notifications")
