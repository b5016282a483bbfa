"""Views of an EventBridge Scheduler schedule: show, edit, enable, run and delete it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.errors import ConflictException, ServiceError
from console.features.notifications.store import manual_events, scheduler
from console.features.notifications.target_inputs import mask_target_settings
from console.features.notifications.web import matches, rule_display
from console.features.notifications.web.conflicts import schedule_conflict
from console.features.notifications.web.forms import ScheduleEditForm, ScheduleTimesForm, SwitchForm
from console.features.notifications.web.next_times import next_times
from console.features.notifications.web.rule_views import (
    RUN_DONE,
    due_moments,
    target_context,
)
from console.features.notifications.web.schedule_pause_views import schedule_pause_context
from console.features.notifications.web.schedule_words import schedule_words
from console.models import Delivery
from console.statuses import DeliveryStatus
from console.web.core.addresses import page_address
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, require, scope_of

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


@require_http_methods(["GET", "POST"])
def schedule_page(request: HttpRequest, schedule_group: str, schedule_name: str) -> HttpResponse:
    """Show ``/schedules/<group>/<name>/``: times, target, latest deliveries.

    With ``?edit`` the form that changes it.
    """
    scope = scope_of(request)
    row = _find_schedule(scope, schedule_group, schedule_name)
    typed, problem, conflict = _values_of(row), "", None
    if request.method == "POST":
        require(scope, "scheduler:UpdateSchedule")
        form = ScheduleEditForm(request.POST)
        try:
            problem = _change_schedule(scope, row, form)
        except ConflictException:
            conflict = schedule_conflict(row)
        if not problem and conflict is None:
            messages.success(request, f"The schedule {schedule_name} was changed.")
            return redirect(page_address(scope, "schedule", schedule_group, schedule_name))
        typed = form.texts
    context = _schedule_context(request, scope, row) | {"problem": problem, "typed": typed}
    is_editing = bool("edit" in request.GET or problem or conflict)
    context |= {"conflict": conflict, "edits": context["may_schedule"] and is_editing}
    context["zones"] = sorted(available_timezones()) if context["edits"] else []
    status = 409 if conflict else 422 if problem else 200
    return render(request, "notifications/schedule.html", context, status=status)


def _values_of(row: EventRule) -> dict[str, Any]:
    """Return the form values of a schedule."""
    return {
        "schedule": row.schedule,
        "timezone": row.timezone,
        "window": row.window_minutes or "",
        "after_completion": row.after_completion,
        "input": _input_of(row) or "",
        "description": row.description,
        "revision": scheduler.revision_of(row),
    }


def _change_schedule(scope: Scope, row: EventRule, form: ScheduleEditForm) -> str:
    """Change the form's settings and keep all others; return the error, "" without one.

    Raise ConflictException if the schedule has changed since the reader opened the form or chose
    *Save mine*.
    """
    sent = form.values
    if form.errors:
        return form.first_error[1]
    target = scheduler.target_of(row)
    more = json.loads(target.settings)
    more.pop("Input", None)
    constant = {"Input": sent["input"]} if sent["input"] else {}
    settings = scheduler.ScheduleSettings(
        schedule=sent["schedule"],
        target={"Arn": target.address, **more, **constant},
        timezone=sent["timezone"],
        state=row.state,
        description=sent["description"],
        start_ms=row.start_ms,
        end_ms=row.end_ms,
        window_minutes=sent["window"],
        after_completion=sent["after_completion"],
        kms_key_arn=row.kms_key_arn,
    )
    key = _key_of(scope, row.schedule_group, row.schedule_name)
    revision = sent["over"] or sent["revision"]
    try:
        scheduler.update_schedule(key, settings, actor_of(scope), revision=revision)
    except ConflictException:
        raise
    except ServiceError as refused:
        return refused.message
    return ""


def _schedule_context(request: HttpRequest, scope: Scope, row: EventRule) -> dict[str, Any]:
    may_reveal = scope.may("scheduler:UpdateSchedule")
    before = whole_number(request.GET.get("before", ""))
    matched = matches.list_matches(row, before)  # before the states: see _matches.html
    [counted] = rule_display.list_rows([row])
    return {
        "section": _SECTION,
        "rule": row,
        "state": counted.status,
        "schedule_words": schedule_words(row.schedule, row.timezone),
        "moments": due_moments(row),
        "counted": counted,
        "targets": [target_context(sent, secret=may_reveal) for sent in counted.targets],
        "input": _input_of(row, masked=not may_reveal),
        "matched": matched,
        "newer": before is not None,
        "may_schedule": may_reveal,
        "may_run": scope.may(manual_events.RUN),
        **schedule_pause_context(scope),
    }


def _input_of(row: EventRule, *, masked: bool = False) -> str | None:
    """Return the target's constant input, None if it gets the event."""
    settings = json.loads(scheduler.target_of(row).settings)
    text = (mask_target_settings(row.project, settings) if masked else settings).get("Input")
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
    """Create the schedule's event now."""
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
    """Show ``/schedules/times/``: the next times of an expression being typed."""
    sent = ScheduleTimesForm(request.GET).values
    began, end = whole_number(sent["began"]), whole_number(sent["end"])
    times = next_times(sent["schedule"], sent["timezone"], began, end)
    typed = request.GET.get("schedule", "").strip()
    saved_as = sent["schedule"] if sent["schedule"] != typed else ""
    return render(request, "notifications/_next_times.html", times | {"saved_as": saved_as})


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
        return render(request, "notifications/delete_schedule.html", context)
    key = _key_of(scope, schedule_group, schedule_name)
    scheduler.delete_schedule(key, actor_of(scope))
    messages.success(request, f"The schedule {schedule_name} was deleted.")
    return redirect(page_address(scope, _SECTION))
