"""View of a state machine's settings: role, logging, tracing, options and tags."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_http_methods

from console import arns
from console.errors import ValidationException
from console.feature import Hook, hooked
from console.store.machines import log_groups, machines, tags
from console.web.core import form_actions
from console.web.core.scope import Scope, actor_of, render
from console.web.machines.forms import (
    LEVELS,
    LoggingForm,
    RemoveTagForm,
    RoleForm,
    TagForm,
    TracingForm,
)
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.form_actions import FormActions


@require_http_methods(["GET", "POST"])
def settings_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/settings/``; a POST changes one setting."""
    return form_actions.answer_form_action(
        request,
        machine_name,
        _ACTIONS,
        _render_page,
        "machine-settings",
        lambda act, why: {"errors": {act: why}},
    )


def _render_page(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **more: Any
) -> HttpResponse:
    logging = json.loads(machine.logging) if machine.logging else {}
    typed: dict[str, str] = more.get("typed", {})
    context = machine_context(machine) | {
        "tab": "settings",
        "levels": LEVELS,
        "level": typed.get("level") or logging.get("level", "OFF"),
        "with_data": "data" in typed if typed else bool(logging.get("includeExecutionData")),
        "group": typed.get("group")
        or log_groups.group_name(logging)
        or f"{log_groups.VENDED}{machine.name}",
        "tracing": bool(machine.tracing and json.loads(machine.tracing).get("enabled")),
        "encryption": json.loads(machine.encryption) if machine.encryption else None,
        "role": typed.get("role") or machine.role_arn,
        "tags": tags.get_tags(machine.arn),
    }
    return render(request, "machines/settings.html", context | more, status=status)


# -- what a form does ------------------------------------------------------------------------------


def _set_logging(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    level, name = sent["level"], sent["group"]
    logging: dict[str, Any] = {"level": level, "includeExecutionData": sent["data"]}
    if name and level != "OFF":
        partition = arns.partition_of(scope.region)
        arn = f"arn:{partition}:logs:{scope.region}:{scope.project.account_id}:log-group:{name}:*"
        logging["destinations"] = [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}]
    log_groups.check_group_name(scope.project, scope.region, logging)
    plain = logging == {"level": "OFF", "includeExecutionData": False}
    text = "" if plain else json.dumps(logging, sort_keys=True)
    machines.update_machine(machine, logging=text, actor=actor_of(scope))
    return "New executions use these log settings."


def _set_tracing(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    text = json.dumps({"enabled": True}) if sent["tracing"] else ""
    machines.update_machine(machine, tracing=text, actor=actor_of(scope))
    return "Tracing is on." if text else "Tracing is off."


def _set_role(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    machines.update_machine(machine, role_arn=sent["role"], actor=actor_of(scope))
    return "New executions have this role."


def _put_tag(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    key, value = sent["key"], sent["value"]
    for problem in (find(key, value) for find in hooked(Hook.TAG_PROBLEM)):
        if problem:
            raise ValidationException(problem)
    tags.put_tags(machine.arn, {key: value}, scope.project, actor_of(scope))
    return f"The tag {key} is set."


def _remove_tag(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    key = sent["key"]
    tags.remove_tags(machine.arn, [key], scope.project, actor_of(scope))
    return f"The tag {key} is removed."


_ACTIONS: FormActions = {
    "logging": ("UpdateStateMachine", LoggingForm, _set_logging),
    "tracing": ("UpdateStateMachine", TracingForm, _set_tracing),
    "role": ("UpdateStateMachine", RoleForm, _set_role),
    "tag": ("TagResource", TagForm, _put_tag),
    "untag": ("UntagResource", RemoveTagForm, _remove_tag),
}
