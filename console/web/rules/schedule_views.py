"""Answer the page of one schedule of EventBridge Scheduler.

The API makes and changes them; the page shows one, switches it on and off, and deletes it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.errors import ServiceError
from console.models import Delivery
from console.statuses import DeliveryStatus
from console.store.events import manual_events, scheduler
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.rules import matches, rule_display
from console.web.rules.forms import ScheduleTimesForm, SwitchForm
from console.web.rules.next_times import next_times
from console.web.rules.rule_list_views import page_address
from console.web.rules.rule_views import (
    RUN_DONE,
    due_moments,
    target_context,
)
from console.web.rules.schedule_words import schedule_words

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import EventRule

_SECTION = "schedules"


def _key_of(scope: Scope, group: str, name: str) -> scheduler.ScheduleKey:
    return scheduler.ScheduleKey(scope.project, scope.region, group, name)


def _find_schedule(scope: Scope, group: str, name: str) -> EventRule:
    try:
        return scheduler.get_schedule(_key_of(scope, group, name))
    except ServiceError:
        msg = f"There is no schedule “{name}” in the group “{group}” of {scope.region}."
        raise Http404(msg) from None


@require_safe
def schedule_page(request: HttpRequest, schedule_group: str, schedule_name: str) -> HttpResponse:
    """Answer ``/schedules/<group>/<name>/``: when it starts what, and its latest deliveries."""
    scope = scope_of(request)
    row = _find_schedule(scope, schedule_group, schedule_name)
    may_reveal = scope.may("scheduler:UpdateSchedule")
    before = whole_number(request.GET.get("before", ""))
    matched = matches.list_matches(row, before)  # before the states: see _matches.html
    context: dict[str, Any] = {
        "section": _SECTION,
        "rule": row,
        "state": rule_display.rule_state(row),
        "schedule_words": schedule_words(row.schedule, row.timezone),
        "moments": due_moments(row),
        "targets": [
            target_context(sent, secret=may_reveal)
            for sent in rule_display.list_rows([row])[0].targets
        ],
        "input": _input_of(row),
        "matched": matched,
        "newer": before is not None,
        "may_schedule": may_reveal,
        "may_run": scope.may(manual_events.RUN),
    }
    return render(request, "rules/schedule.html", context)


def _input_of(row: EventRule) -> str | None:
    """Return what the target gets, None if that is the event."""
    text = json.loads(row.targets.get().settings).get("Input")
    return None if text is None else str(text)


@require_POST
def switch_schedule(request: HttpRequest, schedule_group: str, schedule_name: str) -> HttpResponse:
    """Enable or disable a schedule."""
    scope = scope_of(request)
    require(scope, "scheduler:UpdateSchedule")
    on = SwitchForm(request.POST).values["act"] == "enable"
    key = _key_of(scope, schedule_group, schedule_name)
    _find_schedule(scope, schedule_group, schedule_name)
    scheduler.set_schedule_state(key, on=on, actor=actor_of(scope))
    messages.success(request, f"The schedule {schedule_name} is {'on' if on else 'off'}.")
    return redirect(page_address(scope, "schedule", schedule_group, schedule_name))


@require_POST
def run_schedule(request: HttpRequest, schedule_group: str, schedule_name: str) -> HttpResponse:
    """Let the target of a schedule have its event now."""
    scope = scope_of(request)
    require(scope, manual_events.RUN)
    row = _find_schedule(scope, schedule_group, schedule_name)
    try:
        manual_events.run_schedule(row, actor_of(scope))
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, RUN_DONE)
    return redirect(page_address(scope, "schedule", schedule_group, schedule_name))


@require_safe
def schedule_times(request: HttpRequest) -> HttpResponse:
    """Answer ``/schedules/times/``: the next moments of an expression that is being typed."""
    sent = ScheduleTimesForm(request.GET).values
    return render(request, "rules/_next_times.html", next_times(sent["schedule"], sent["timezone"]))


@require_http_methods(["GET", "POST"])
def delete_schedule(request: HttpRequest, schedule_group: str, schedule_name: str) -> HttpResponse:
    """Ask once, then delete."""
    scope = scope_of(request)
    require(scope, "scheduler:DeleteSchedule")
    row = _find_schedule(scope, schedule_group, schedule_name)
    if request.method == "GET":
        waiting = Delivery.objects.filter(
            target__rule=row, status__in=(DeliveryStatus.WAITING, DeliveryStatus.SENDING)
        )
        context = {"section": _SECTION, "rule": row, "waiting": waiting.count()}
        return render(request, "rules/delete_schedule.html", context)
    key = _key_of(scope, schedule_group, schedule_name)
    scheduler.delete_schedule(key, actor_of(scope))
    messages.success(request, f"The schedule {schedule_name} was deleted.")
    return redirect(page_address(scope, _SECTION))
