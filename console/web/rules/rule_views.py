"""What does one rule wait for, where does it send, and how did that go?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console import clock
from console.errors import ConflictException, ServiceError
from console.events import schedules
from console.integrations import notices
from console.integrations.redaction import without_secrets
from console.models import Delivery, EventRule
from console.store.events import rules as store
from console.web.core import conflicts
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.rules import rule_display
from console.web.rules.rule_list_views import page_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

_DELIVERIES = 25
_MOMENTS = 5


def _find_rule(here: Scope, name: str) -> EventRule:
    try:
        return store.get_rule(here.project, here.region, name)
    except ServiceError:
        raise Http404(f"There is no rule “{name}” in {here.region}.") from None


@require_http_methods(["GET", "POST"])
def rule_page(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Answer ``/rules/<name>/``: what it waits for, its targets and latest deliveries."""
    here = scope_of(request)
    one = _find_rule(here, rule_name)
    problem, typed, conflict = "", {}, None
    revision = store.revision_of(one)
    if request.method == "POST":
        require(here, "events:PutRule")
        names = ("pattern", "schedule", "timezone", "description")
        typed = {name: request.POST.get(name, "").strip() for name in names}
        typed["timezone"] = typed["timezone"] or "UTC"
        revision = request.POST.get("revision", "")
        try:
            problem = _change_rule(request, here, one, typed)
        except ConflictException:
            conflict = conflicts.rule_conflict(one)
        if not problem and conflict is None:
            return redirect(page_address(here, "rule", one.name))
    context = _rule_context(here, one) | {"typed": typed, "problem": problem}
    context |= {"revision": revision, "conflict": conflict}
    status = 409 if conflict else 422 if problem else 200
    return render(request, "rules/page.html", context, status=status)


def _change_rule(request: HttpRequest, here: Scope, one: EventRule, typed: dict[str, str]) -> str:
    kept = {"state": one.state, "role_arn": one.role_arn}
    kept["revision"] = request.POST.get("over") or request.POST.get("revision", "")
    try:
        store.save(here.project, here.region, one.name, None, actor=actor_of(here), **kept, **typed)
    except ConflictException:
        raise
    except ServiceError as refused:
        return refused.message
    messages.success(request, f"The rule {one.name} was changed.")
    return ""


def _rule_context(here: Scope, one: EventRule) -> dict[str, Any]:
    may = here.may("events:PutRule")
    latest = Delivery.objects.filter(target__rule=one).select_related("target", "event")
    return {
        "here": "schedules" if one.schedule else "notifications",
        "rule": one,
        "state": rule_display.rule_state(one),
        "meaning": rule_display.pattern_meaning(one.pattern),
        "targets": [_target_context(each, secret=may) for each in rule_display.sent_targets(one)],
        "full": one.targets.count() >= store.MOST_TARGETS,
        "moments": _due_moments(one),
        "deliveries": [
            (each, rule_display.DELIVERY[each.status])
            for each in latest.defer("event__body").order_by("-pk")[:_DELIVERIES]
        ],
        "zones": sorted(available_timezones()) if one.schedule and may else [],
        "may_rule": may,
    }


def _target_context(sent: rule_display.SentTarget, *, secret: bool) -> dict[str, Any]:
    """Return a target with what it gets.

    For editors with what is secret: its whole address, and what checks its signatures.
    """
    settings = json.loads(sent.target.settings)
    address = sent.target.address
    more = [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in settings.items()
        if secret or key != "HttpParameters"
    ]
    webhook = secret and sent.kind == "Webhook"
    return {
        "sent": sent,
        "address": address if secret else without_secrets(address),
        "more": more,
        "secret": notices.secret_for(sent.target.rule.arn, sent.target.target_id)
        if webhook
        else "",
    }


def _due_moments(one: EventRule) -> list[int]:
    """Return when a schedule is due the next times."""
    if not one.schedule or one.state != "ENABLED":
        return []
    schedule = schedules.parse(one.schedule, one.timezone)
    found: list[int] = []
    at: int | None = clock.now_ms()
    while at is not None and len(found) < _MOMENTS:
        at = schedule.next(at, one.created_ms)
        found += [] if at is None else [at]
    return found


@require_POST
def switch_rule(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Enable or disable a rule."""
    here = scope_of(request)
    on = request.POST.get("act") == "enable"
    require(here, "events:EnableRule" if on else "events:DisableRule")
    one = _find_rule(here, rule_name)
    store.switch(here.project, here.region, one.name, on=on, actor=actor_of(here))
    messages.success(request, f"The rule {one.name} is {'on' if on else 'off'}.")
    return redirect(page_address(here, "rule", one.name))


@require_http_methods(["GET", "POST"])
def delete_rule(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Ask once, then delete."""
    here = scope_of(request)
    require(here, "events:DeleteRule")
    one = _find_rule(here, rule_name)
    view = "schedules" if one.schedule else "notifications"
    if request.method == "GET":
        waiting = Delivery.objects.filter(target__rule=one, status__in=("waiting", "sending"))
        context = {"here": view, "rule": one, "waiting": waiting.count()}
        return render(request, "rules/delete.html", context)
    store.delete(here.project, here.region, one.name, with_targets=True, actor=actor_of(here))
    messages.success(request, f"The rule {one.name} was deleted.")
    return redirect(page_address(here, view))


@require_POST
def add_target(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Let a rule send to one more address."""
    here = scope_of(request)
    require(here, "events:PutTargets")
    one = _find_rule(here, rule_name)
    taken = {each.target_id for each in one.targets.all()}
    number = next(str(n) for n in range(1, len(taken) + 2) if str(n) not in taken)
    target = {"Id": number, "Arn": rule_display.target_address(request.POST.get("target", ""))}
    if given := request.POST.get("input", "").strip():
        target["Input"] = given

    def act() -> str:
        wrong = store.put_targets(here.project, here.region, one.name, [target], actor_of(here))
        return wrong[0]["ErrorMessage"] if wrong else ""

    return _run_and_redirect(request, here, one, act, f"{one.name} sends to {target['Arn']}, too.")


@require_POST
def remove_target(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Let a rule send to an address no more."""
    here = scope_of(request)
    require(here, "events:RemoveTargets")
    one = _find_rule(here, rule_name)
    ids = [request.POST.get("id", "")]

    def act() -> str:
        missing = store.remove_targets(here.project, here.region, one.name, ids, actor_of(here))
        return "This target was removed already." if missing else ""

    return _run_and_redirect(request, here, one, act, "The target was removed.")


def _run_and_redirect(
    request: HttpRequest, here: Scope, one: EventRule, act: Callable[[], str], done: str
) -> HttpResponse:
    """Do it and lead back to the rule with what came of it."""
    try:
        problem = act()
    except ServiceError as refused:
        problem = refused.message
    if problem:
        messages.error(request, problem)
    else:
        messages.success(request, done)
    return redirect(page_address(here, "rule", one.name))
