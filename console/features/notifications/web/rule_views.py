"""Views of one rule: event pattern or schedule, targets and deliveries."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.db import clock
from console.errors import ConflictException, ServiceError
from console.features.editor.edits.json_tree import format_text
from console.features.notifications import notices
from console.features.notifications.store import manual_events
from console.features.notifications.store import rules as store
from console.features.notifications.target_inputs import mask_target_settings
from console.features.notifications.web import matches, rule_display
from console.features.notifications.web.conflicts import rule_conflict
from console.features.notifications.web.forms import RuleForm, SwitchForm, TargetForm, TargetIdForm
from console.features.notifications.web.next_times import NextTime
from console.features.notifications.web.schedule_pause_views import schedule_pause_context
from console.integrations.redaction import without_secrets
from console.models import Delivery, EventRule
from console.statuses import DeliveryStatus, RuleState
from console.web.core.addresses import page_address
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, require, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

_MOMENTS = 5
_CHANGEABLE = ("pattern", "schedule", "timezone", "description")


def _find_rule(scope: Scope, name: str) -> EventRule:
    try:
        return store.get_rule(scope.project, scope.region, name)
    except ServiceError:
        raise Http404(f"There is no rule “{name}” in {scope.region}.") from None


@require_http_methods(["GET", "POST"])
def rule_page(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Show ``/rules/<name>/``: condition, targets and latest deliveries."""
    scope = scope_of(request)
    rule = _find_rule(scope, rule_name)
    problem, typed, conflict = "", {}, None
    as_json = request.GET.get("edit") == "json"
    choices = None if as_json else rule_display.pattern_choices(rule.pattern)
    revision = store.revision_of(rule)
    if request.method == "POST":
        require(scope, "events:PutRule")
        sent = RuleForm(request.POST).values
        choices = _sent_choices(sent)
        sent["pattern"] = _chosen_pattern(rule, choices) if choices else sent["pattern"]
        typed = {name: sent[name] for name in _CHANGEABLE}
        revision = sent["revision"]
        try:
            problem = _change_rule(request, scope, rule, sent)
        except ConflictException:
            conflict = rule_conflict(rule)
        if not problem and conflict is None:
            return redirect(page_address(scope, "rule", rule.name))
    before = whole_number(request.GET.get("before", ""))
    context = _rule_context(scope, rule, before) | {"typed": typed, "problem": problem}
    context |= {"revision": revision, "conflict": conflict}
    context["edits"] = context["may_rule"] and bool("edit" in request.GET or problem or conflict)
    if context["edits"] and choices:
        context |= _choices_context(scope, choices)
    status = 409 if conflict else 422 if problem else 200
    return render(request, "notifications/rule.html", context, status=status)


def _sent_choices(sent: dict[str, Any]) -> rule_display.PatternChoices | None:
    if not sent["choices"]:
        return None
    return rule_display.PatternChoices.sent(sent)


def _chosen_pattern(rule: EventRule, choices: rule_display.PatternChoices) -> str:
    """Return the pattern of the choices: the rule's own text if equivalent."""
    now = rule_display.pattern_choices(rule.pattern)
    if now is None or replace(now, statuses=choices.statuses) != choices:
        return choices.pattern
    return rule.pattern if set(now.statuses) == set(choices.statuses) else choices.pattern


def _choices_context(scope: Scope, choices: rule_display.PatternChoices) -> dict[str, Any]:
    return {
        "choices": choices,
        **rule_display.choices_context(choices),
        "machines": rule_display.machine_options(scope, choices.machine),
    }


def _change_rule(request: HttpRequest, scope: Scope, rule: EventRule, sent: dict[str, Any]) -> str:
    fields = {name: sent[name] for name in _CHANGEABLE}
    fields |= {"state": rule.state, "role_arn": rule.role_arn}
    fields["revision"] = sent["over"] or sent["revision"]
    try:
        store.save_rule(
            scope.project,
            scope.region,
            rule.name,
            None,
            actor=actor_of(scope),
            **fields,
        )
    except ConflictException:
        raise
    except ServiceError as refused:
        return refused.message
    messages.success(request, f"The rule {rule.name} was changed.")
    return ""


def _rule_context(scope: Scope, rule: EventRule, before: int | None) -> dict[str, Any]:
    may = scope.may("events:PutRule")
    matched = matches.list_matches(rule, before)  # before the states: see _matches.html
    [row] = rule_display.list_rows([rule])
    return {
        "section": "schedules" if rule.schedule else "notifications",
        "rule": rule,
        "state": row.status,
        "meaning": row.meaning,
        "pattern": _readable_pattern(rule.pattern),
        "counted": row,
        "targets": [target_context(each, secret=may) for each in row.targets],
        "full": len(row.targets) >= store.MOST_TARGETS,
        "schedule_words": row.schedule_words,
        "moments": due_moments(rule),
        "matched": matched,
        "newer": before is not None,
        "zones": sorted(available_timezones()) if rule.schedule and may else [],
        "may_rule": may,
        "may_test": scope.may(manual_events.TEST),
        **schedule_pause_context(scope),
        "may_run": bool(rule.schedule) and scope.may(manual_events.RUN),
    }


def _readable_pattern(pattern: str) -> str:
    """Return a pattern formatted with one entry per line, unless formatted already."""
    return pattern if "\n" in pattern or not pattern else format_text(pattern)


def target_context(sent: rule_display.SentTarget, *, secret: bool) -> dict[str, Any]:
    """Return a target with its input.

    For editors it includes secrets: ``whole_address`` if it differs from ``address``, the key that
    verifies its signatures, and masked values in its input.
    """
    settings = json.loads(sent.target.settings)
    if not secret:
        settings = mask_target_settings(sent.target.rule.project, settings)
    address = without_secrets(sent.target.address)
    masked = address != sent.target.address
    more = [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in settings.items()
        if secret or key != "HttpParameters"
    ]
    webhook = secret and sent.kind == "Webhook"
    return {
        "sent": sent,
        "address": address,
        "whole_address": sent.target.address if secret and masked else "",
        "more": more,
        "secret": notices.target_secret(sent.target.rule.arn, sent.target.target_id)
        if webhook
        else "",
    }


def due_moments(rule: EventRule) -> list[NextTime]:
    """Return the next times of a schedule, in its zone."""
    if not rule.schedule or rule.state != RuleState.ENABLED:
        return []
    moments: list[int] = []
    now_ms = clock.now_ms()
    at: int | None = now_ms
    while at is not None and len(moments) < _MOMENTS:
        at = store.moment_after(rule, at)
        moments += [] if at is None else [at]
    return [NextTime.of(moment, ZoneInfo(rule.timezone), now_ms) for moment in moments]


@require_POST
def switch_rule(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Enable or disable a rule."""
    scope = scope_of(request)
    on = SwitchForm(request.POST).values["act"] == "enable"
    require(scope, "events:EnableRule" if on else "events:DisableRule")
    rule = _find_rule(scope, rule_name)
    store.set_rule_state(scope.project, scope.region, rule.name, on=on, actor=actor_of(scope))
    messages.success(request, f"The rule {rule.name} is {'on' if on else 'off'}.")
    return redirect(page_address(scope, "rule", rule.name))


@require_http_methods(["GET", "POST"])
def delete_rule(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Ask once, then delete."""
    scope = scope_of(request)
    require(scope, "events:DeleteRule")
    rule = _find_rule(scope, rule_name)
    view = "schedules" if rule.schedule else "notifications"
    if request.method == "GET":
        waiting = Delivery.objects.filter(
            target__rule=rule, status__in=(DeliveryStatus.WAITING, DeliveryStatus.SENDING)
        )
        context = {"section": view, "rule": rule, "waiting": waiting.count()}
        return render(request, "notifications/delete.html", context)
    store.delete_rule(
        scope.project, scope.region, rule.name, with_targets=True, actor=actor_of(scope)
    )
    messages.success(request, f"The rule {rule.name} was deleted.")
    return redirect(page_address(scope, view))


@require_POST
def add_target(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Add a target to a rule."""
    scope = scope_of(request)
    require(scope, "events:PutTargets")
    rule = _find_rule(scope, rule_name)
    used_ids = {each.target_id for each in rule.targets.all()}
    number = next(str(n) for n in range(1, len(used_ids) + 2) if str(n) not in used_ids)
    sent = TargetForm(request.POST).values
    target = {"Id": number, "Arn": rule_display.target_address(sent["target"])}
    if sent["input"]:
        target["Input"] = sent["input"]

    def act() -> str:
        wrong = store.put_targets(scope.project, scope.region, rule.name, [target], actor_of(scope))
        return wrong[0]["ErrorMessage"] if wrong else ""

    return _run_and_redirect(
        request, scope, rule, act, f"{rule.name} sends to {without_secrets(target['Arn'])}, too."
    )


@require_POST
def remove_target(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Remove a target from a rule."""
    scope = scope_of(request)
    require(scope, "events:RemoveTargets")
    rule = _find_rule(scope, rule_name)
    ids = [TargetIdForm(request.POST).values["id"]]

    def act() -> str:
        missing = store.remove_targets(scope.project, scope.region, rule.name, ids, actor_of(scope))
        return "This target was removed already." if missing else ""

    return _run_and_redirect(request, scope, rule, act, "The target was removed.")


@require_POST
def test_target(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Send a test event to a target."""
    scope = scope_of(request)
    require(scope, manual_events.TEST)
    rule = _find_rule(scope, rule_name)
    target_id = TargetIdForm(request.POST).values["id"]

    def act() -> str:
        manual_events.send_test(rule, target_id, actor_of(scope))
        return ""

    title = "Last runs" if rule.schedule else "Last matches"
    message = f"A test event was sent to target {target_id}. See {title}."
    return _run_and_redirect(request, scope, rule, act, message)


@require_POST
def run_rule(request: HttpRequest, rule_name: str) -> HttpResponse:
    """Create the event of a schedule now."""
    scope = scope_of(request)
    require(scope, manual_events.RUN)
    rule = _find_rule(scope, rule_name)
    if not rule.schedule:
        raise Http404(f"The rule “{rule_name}” has no schedule.")

    def act() -> str:
        manual_events.run_schedule(rule, actor_of(scope))
        return ""

    return _run_and_redirect(request, scope, rule, act, RUN_DONE)


RUN_DONE = "The schedule is running. See Last runs."


def _run_and_redirect(
    request: HttpRequest, scope: Scope, rule: EventRule, act: Callable[[], str], message: str
) -> HttpResponse:
    """Run an action and redirect to the rule, with a message."""
    try:
        problem = act()
    except ServiceError as refused:
        problem = refused.message
    if problem:
        messages.error(request, problem)
    else:
        messages.success(request, message)
    return redirect(page_address(scope, "rule", rule.name))
