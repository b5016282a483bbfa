"""Views of alarms: the list, one alarm, and the alarms of a state machine."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from console.db import audit, clock
from console.errors import ConflictException, ServiceError
from console.features.alarms import alarm_chart, alarm_display, metric_alarms
from console.features.alarms import store as alarms
from console.features.alarms.alarm_rules import evaluate_alarm
from console.features.alarms.forms import (
    OFFERED,
    AlarmForm,
    DeleteAlarmForm,
    MetricAlarmForm,
    NotifyForm,
)
from console.features.alarms.models import Alarm, AlarmChange
from console.features.alarms.store import MOST_CHANGES
from console.features.notifications.store import rules
from console.features.notifications.web import rule_display
from console.models import AuditEntry
from console.statuses import AlarmKind, AlarmState
from console.web.core import forms
from console.web.core.addresses import page_address
from console.web.core.forms import SaveConflict, save_conflict
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, choose, render, require, scope_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.formatting import StatusLabel
    from console.web.core.forms import FormActions

PAGE = 50
"""The number of alarms on a page of the list."""
_NOW = {
    AlarmState.ALARM: "Its state is In alarm.",
    AlarmState.OK: "Its state is OK.",
    AlarmState.INSUFFICIENT_DATA: "Its state is Insufficient data.",
}


@require_safe
def alarm_list(request: HttpRequest) -> HttpResponse:
    """Show ``/alarms/``: all alarms by name, or those in one state.

    With ``?create`` the reader selects the state machine of a new alarm; ``?machine=`` redirects to
    its page.
    """
    scope = scope_of(request)
    may_alarm = scope.may("monitoring:PutMetricAlarm")
    if may_alarm and (machine := request.GET.get("machine", "").rpartition(":")[2]):
        return redirect(f"{page_address(scope, 'machine-alarms', machine)}#create-title")
    search = request.GET.get("q", "").strip()
    stored = alarms.alarms_of(scope.project, scope.region).select_related("machine")
    stored = stored.filter(name__icontains=search) if search else stored
    rows = alarm_display.alarm_rows(stored[: alarms.MOST_ALARMS])
    chosen = choose(request.GET, "state", AlarmState)
    counts = Counter(row.alarm.state for row in rows)
    chosen_rows = [row for row in rows if chosen in ("", row.alarm.state)]
    after = min(whole_number(request.GET.get("after", "")) or 0, alarms.MOST_ALARMS)
    creates = may_alarm and "create" in request.GET
    context = {
        "section": "alarms",
        "rows": alarm_display.evaluated(chosen_rows[after : after + PAGE]),
        "count": len(chosen_rows),
        "newer": after > 0,
        "older": after + PAGE if after + PAGE < len(chosen_rows) else None,
        "total": len(rows),
        "states": [(key, each.word, counts[key]) for key, each in alarm_display.STATES.items()],
        "chosen": chosen,
        "search": search,
        "with_machine": True,
        "may_create": may_alarm,
        "creates": creates,
        "machines": rule_display.machine_names(scope) if creates else [],
    }
    return render(request, "alarms/alarm_list.html", context)


@require_http_methods(["GET", "POST"])
def alarm_page(request: HttpRequest, number: int) -> HttpResponse:
    """Show ``/alarms/<number>/``: its chart and its changes of state.

    With ``?edit`` the form that changes an alarm on a metric.
    """
    scope = scope_of(request)
    stored = alarms.alarms_of(scope.project, scope.region).select_related("machine")
    alarm = stored.filter(pk=number).first()
    if alarm is None:
        raise Http404("This alarm does not exist. It may have been deleted.")
    if "preview" in request.GET and alarm.kind == AlarmKind.METRIC:
        return _render_preview(request, alarm)
    form, problem, conflict = MetricAlarmForm(request.POST), "", None
    if request.method == "POST":
        require(scope, "monitoring:PutMetricAlarm")
        try:
            problem = _change_metric_alarm(scope, alarm, form)
        except ConflictException:
            conflict = _save_conflict(alarm)
        if not problem and conflict is None:
            changed = stored.get(pk=number)
            message = f"The alarm {alarm.name} was changed. {_NOW[AlarmState(changed.state)]}"
            messages.success(request, message)
            return redirect(page_address(scope, "alarm", str(number)))
    may_alarm = scope.may("monitoring:PutMetricAlarm")
    row = alarm_display.evaluated(alarm_display.alarm_rows([alarm]))[0]
    context = {
        "section": "alarms",
        "row": row,
        "alarm": alarm,
        "chart": alarm_chart.draw_alarm(alarm),
        "history": alarm_history(alarm),
        "most": alarms.MOST_CHANGES,
        "missing": alarm_display.missing_words(alarm),
        "rules": alarm_display.alarm_rules(scope, alarm.machine, alarm),
        "may_alarm": may_alarm,
        "problem": problem,
    }
    refused = bool(problem or conflict)
    is_editing = may_alarm and ("edit" in request.GET or refused)
    context |= {"conflict": conflict, "edits": is_editing and alarm.kind == AlarmKind.METRIC}
    if context["edits"]:
        context |= metric_alarms.form_context(alarm, form.texts if refused else None)
    status = 409 if conflict else 422 if problem else 200
    return render(request, "alarms/alarm.html", context, status=status)


def _change_metric_alarm(scope: Scope, alarm: Alarm, form: MetricAlarmForm) -> str:
    """Change the condition of a metric alarm; return the error, "" without one.

    Raise ConflictException if the alarm has changed since the reader opened the form or chose *Save
    mine*.
    """
    if alarm.kind != AlarmKind.METRIC:
        return "Edit this alarm on the page of its state machine."
    try:
        _put_metric_alarm(scope, alarm, form, alarm.name)
    except ConflictException:
        raise
    except ServiceError as refused:
        return refused.message
    return ""


def _put_metric_alarm(scope: Scope, alarm: Alarm, form: MetricAlarmForm, name: str) -> AlarmState:
    """Store a form and return the resulting state; raise ``ServiceError``."""
    fields = metric_alarms.columns(alarm, form)
    revision = form.values["over"] or form.values["revision"]
    by = actor_of(scope)
    saved_alarm = alarms.put_alarm(
        scope.project, scope.region, name, fields, actor=by, revision=revision
    )
    verdict = evaluate_alarm(saved_alarm, clock.now_ms())
    alarms.change_state(saved_alarm, verdict.state, verdict.reason)
    return verdict.state


def _render_preview(request: HttpRequest, alarm: Alarm) -> HttpResponse:
    """Return the chart of the form's alarm, or the form's error."""
    context: dict[str, Any] = {"problem": ""}
    try:
        context["chart"] = metric_alarms.preview(alarm, MetricAlarmForm(request.GET))
    except ServiceError as refused:
        context["problem"] = refused.message
    return render(request, "alarms/_alarm_preview.html", context)


@require_http_methods(["GET", "POST"])
def machine_alarms(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/alarms/``: the alarms and the forms to change them.

    With ``?preview`` return the chart that an alarm on a metric would have with the form's values.
    """
    if request.method == "GET" and "preview" in request.GET:
        machine = scope_of(request).machine(machine_name)
        return _render_preview(request, metric_alarms.new_alarm(machine))
    return forms.answer_form_action(
        request,
        machine_name,
        _ACTIONS,
        _render_page,
        "machine-alarms",
        lambda act, why: {"refused": act, "why": why},
    )


def _render_page(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **more: Any
) -> HttpResponse:
    scope = scope_of(request)
    rows = alarm_display.alarms_of_machine(machine)
    why, refused = more.get("why", ""), more.get("refused", "")
    typed = more.get("typed", {}) if refused == "save" else {}
    odd = typed.get("kind", OFFERED[0]) not in OFFERED  # no form shows its problem
    chosen = request.GET.get("alarm", "")
    forms = alarm_display.alarm_forms(machine, rows, chosen, typed, why)
    context = machine_context(machine) | {
        "tab": "alarms",
        "rows": alarm_display.evaluated(rows[:PAGE]) + rows[PAGE:],
        "forms": forms,
        "editing": any(form.name for form in forms),
        "rules": alarm_display.alarm_rules(scope, machine),
        "may_alarm": scope.may("monitoring:PutMetricAlarm"),
        "may_rule": scope.may("events:PutRule"),
        "target": more.get("typed", {}).get("target", ""),
        "notify_problem": why if refused == "notify" else "",
        "problem": why if refused == "delete" or odd else "",
        "metric_problem": why if refused == "metric" else "",
    }
    if context["may_alarm"] and not context["editing"]:
        sent = more.get("typed", {}) if refused == "metric" else None
        context |= metric_alarms.form_context(metric_alarms.new_alarm(machine), sent)
    return render(request, "alarms/machine_alarms.html", context, status=status)


def _save_alarm(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    kind = AlarmKind(sent["kind"])
    counted = kind in (AlarmKind.FAILURE_RATE, AlarmKind.DURATION)
    fields = {
        "kind": kind,
        "machine": machine,
        "period_s": sent["period"],
        "threshold": sent["threshold"] if counted else 0,
        "minimum": sent["minimum"] if counted else 1,
        "state_name": sent["state"][:80] if kind is AlarmKind.STUCK else "",
    }
    alarm = alarms.put_alarm(
        scope.project,
        scope.region,
        sent["name"],
        fields,
        actor=actor_of(scope),
        revision=sent["revision"],
    )
    verdict = evaluate_alarm(alarm, clock.now_ms())
    alarms.change_state(alarm, verdict.state, verdict.reason)
    verb = "changed" if sent["revision"] else "created"
    return f"The alarm {alarm.name} was {verb}. {_NOW[verdict.state]}"


def _create_metric_alarm(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    form = MetricAlarmForm(sent | {"revision": ""})
    state = _put_metric_alarm(scope, metric_alarms.new_alarm(machine), form, sent["name"])
    return f"The alarm {sent['name']} was created. {_NOW[state]}"


def _delete_alarm(scope: Scope, _machine: StateMachine, sent: dict[str, Any]) -> str:
    alarms.delete_alarms(scope.project, scope.region, [sent["name"]], actor=actor_of(scope))
    return f"The alarm {sent['name']} was deleted."


def _notify(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    """Create a rule that sends changes of the state machine's alarms to a target."""
    name = f"alarms-{re.sub(r'[^.A-Za-z0-9_-]', '-', machine.name)[:46]}-{secrets.token_hex(4)}"
    target = {"Id": "1", "Arn": rule_display.target_address(sent["target"])}
    rules.save_rule(
        scope.project,
        scope.region,
        name,
        target,
        actor=actor_of(scope),
        pattern=alarm_display.alarm_pattern(machine.arn),
    )
    return f"The rule {name} sends the alarms of {machine.name}."


_ACTIONS: FormActions = {
    "save": ("monitoring:PutMetricAlarm", AlarmForm, _save_alarm),
    "metric": ("monitoring:PutMetricAlarm", MetricAlarmForm, _create_metric_alarm),
    "delete": ("monitoring:DeleteAlarms", DeleteAlarmForm, _delete_alarm),
    "notify": ("events:PutRule", NotifyForm, _notify),
}


def _save_conflict(alarm: Alarm) -> SaveConflict:
    """Return another person's save of an alarm."""
    now = Alarm.objects.get(pk=alarm.pk)
    entry = audit.find_latest(now.project, now.arn, "monitoring:PutMetricAlarm")
    fields = (
        ("Their alarm", alarm_display.alarm_words(now)),
        ("Their description", now.description),
    )
    theirs = tuple(field for field in fields if field[1])
    return save_conflict(alarms.revision_of(now), entry, theirs)


@dataclass(frozen=True, slots=True)
class AlarmHistoryRow:
    """A change of state from ``before`` to ``after``, or an edit (both None).

    ``actor``: the person who made it, "" for an evaluation.
    """

    at_ms: int
    before: StatusLabel | None
    after: StatusLabel | None
    reason: str
    actor: str


def alarm_history(alarm: Alarm) -> list[AlarmHistoryRow]:
    """Return the latest changes, newest first."""
    states = alarm_display.STATES
    changes = list(AlarmChange.objects.filter(alarm=alarm).order_by("-pk")[:MOST_CHANGES])
    rows = [
        AlarmHistoryRow(
            *(change.at_ms, states.get(change.before), states.get(change.state)),
            *(change.reason, change.actor),
        )
        for change in changes
    ]
    if alarm.state_ms > alarm.created_ms and alarm.state_ms not in {row.at_ms for row in rows}:
        # the release that wrote this change kept the last one only
        rows.append(
            AlarmHistoryRow(alarm.state_ms, None, states[alarm.state], alarm.reason, actor="")
        )
    edits = AuditEntry.objects.filter(
        project=alarm.project_id,
        target=alarm.arn,
        action="monitoring:PutMetricAlarm",
        at_ms__gte=alarm.created_ms,
    )
    newest = edits.order_by("-pk").values_list("at_ms", "actor")[:MOST_CHANGES]
    rows += [AlarmHistoryRow(at_ms, None, None, "", actor) for at_ms, actor in newest]
    return sorted(rows, key=lambda row: row.at_ms, reverse=True)[:MOST_CHANGES]
