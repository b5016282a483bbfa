"""With which role does a state machine run, where does it log, is it traced, how is it tagged?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_http_methods

from console.errors import ValidationException
from console.store.machines import log_groups, machines, tags
from console.web.core import form_actions
from console.web.core.scope import Scope, actor_of, render
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse, QueryDict

    from console.models import StateMachine

LEVELS = {
    "OFF": "Off: nothing is logged",
    "FATAL": "Fatal: how an execution failed",
    "ERROR": "Error: every failure on the way",
    "ALL": "All: the whole history",
}
_LONGEST_KEY, _LONGEST_VALUE = 128, 256


@require_http_methods(["GET", "POST"])
def settings_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/settings/``; each POST changes one setting."""
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
        "tags": tags.tags_of(machine.arn),
    }
    return render(request, "machine/settings.html", context | more, status=status)


# -- what a form does ------------------------------------------------------------------------------


def _set_logging(scope: Scope, machine: StateMachine, form: QueryDict) -> str:
    level, name = form.get("level", ""), form.get("group", "").strip()
    if level not in LEVELS:
        raise ValidationException(f"The level: got “{level}”, wanted one of {', '.join(LEVELS)}.")
    logging: dict[str, Any] = {"level": level, "includeExecutionData": "data" in form}
    if name and level != "OFF":
        arn = f"arn:aws:logs:{scope.region}:{scope.project.account_id}:log-group:{name}:*"
        logging["destinations"] = [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}]
    log_groups.check(scope.project, scope.region, logging)
    plain = logging == {"level": "OFF", "includeExecutionData": False}
    text = "" if plain else json.dumps(logging, sort_keys=True)
    machines.update(machine, logging=text, actor=actor_of(scope))
    return "Executions that start from now on log so."


def _set_tracing(scope: Scope, machine: StateMachine, form: QueryDict) -> str:
    text = json.dumps({"enabled": True}) if "tracing" in form else ""
    machines.update(machine, tracing=text, actor=actor_of(scope))
    return "Tracing is on." if text else "Tracing is off."


def _set_role(scope: Scope, machine: StateMachine, form: QueryDict) -> str:
    machines.update(machine, role_arn=form.get("role", "").strip(), actor=actor_of(scope))
    return "Executions that start from now on have this role."


def _put_tag(scope: Scope, machine: StateMachine, form: QueryDict) -> str:
    key, value = form.get("key", "").strip(), form.get("value", "").strip()
    if not 1 <= len(key) <= _LONGEST_KEY or len(value) > _LONGEST_VALUE:
        raise ValidationException(
            f"A tag has a key of 1 to {_LONGEST_KEY} characters and a value of up to "
            f"{_LONGEST_VALUE}."
        )
    tags.put_tags(machine.arn, {key: value}, scope.project, actor_of(scope))
    return f"The tag {key} is set."


def _remove_tag(scope: Scope, machine: StateMachine, form: QueryDict) -> str:
    key = form.get("key", "")
    tags.remove(machine.arn, [key], scope.project, actor_of(scope))
    return f"The tag {key} is removed."


_ACTIONS: dict[str, tuple[str, Callable[[Scope, StateMachine, QueryDict], str]]] = {
    "logging": ("UpdateStateMachine", _set_logging),
    "tracing": ("UpdateStateMachine", _set_tracing),
    "role": ("UpdateStateMachine", _set_role),
    "tag": ("TagResource", _put_tag),
    "untag": ("UntagResource", _remove_tag),
}
