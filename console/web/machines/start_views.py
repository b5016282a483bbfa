"""View of the start form: start an execution with a name and an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Left, Length
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

import engine
from console.errors import ServiceError, ValidationException
from console.feature import Hook, has_feature, hooked
from console.integrations.targets import MachineKey
from console.masking import mask
from console.masking.masked_execution import masks_of
from console.models import Execution
from console.store.executions import breakpoints
from console.store.executions.start import start_execution
from console.store.machines import machines, versions
from console.web.core import cli_commands
from console.web.core.formatting import BREAK_TIMES, visible_text
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.machines.forms import StartForm
from console.web.machines.machine_views import graph_beside, machine_context, suggested_input
from engine import MachineType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from console.models import Project, StateMachine

_MOST_VERSIONS = 200
"""Number of the newest versions in the list."""
_NAME_ERRORS = frozenset({"InvalidName", "ExecutionAlreadyExists"})
_MOST_LOOKED_AT = 50
"""Number of the newest executions that ``last_executions`` searches."""
_MOST_READ = 20
"""Number of executions whose inputs are read."""
_LONGEST = 16_384
"""Characters read of each input. A longer input is offered by its execution's name only."""
_MOST_INPUTS = 5
_SHOWN = 120
"""Characters shown of an offered input."""


@require_http_methods(["GET", "POST"])
def start_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show the form, or start an execution; after an error the form keeps the typed values."""
    scope = scope_of(request)
    require(scope, "StartExecution")
    machine = scope.machine(machine_name)
    if request.method == "GET":
        return _render_form(
            request,
            machine,
            input=_prefilled_input(
                scope, machine, request.GET.get("origin", ""), request.GET.get("saved", "")
            ),
            run=request.GET.get("run", ""),
        )
    form = StartForm(request.POST, MachineKey(machine.project.name, machine.name))
    if not form.is_valid():
        field, message = form.first_error
        wrong = {f"{field}_error": message}
        return _render_form(request, machine, status=422, **form.texts, **wrong)
    sent = form.values
    try:
        target = _target(scope, machine, sent["run"])
    except ServiceError as error:
        return _render_form(request, machine, status=422, **form.texts, run_error=error.message)
    try:
        places = _breakpoints(scope, target, sent)
    except ServiceError as error:
        return _render_form(request, machine, status=422, **form.texts, break_error=error.message)
    try:
        started = start_execution(
            target.machine,
            version=target.version,
            alias_arn=target.alias.arn if target.alias else "",
            name=sent["name"] or None,
            input=_with_hidden_values(scope, machine, sent) or "{}",
            test_case=sent["case"],
            ahead=True,
            timeout_s=sent["timeout"],
            breakpoints=places,
            actor=actor_of(scope),
        )
    except ServiceError as error:
        field = "name_error" if error.code in _NAME_ERRORS else "input_error"
        return _render_form(request, machine, status=422, **form.texts, **{field: error.message})
    return redirect("execution", machine.name, started.name)


def _target(scope: Scope, machine: StateMachine, run: str) -> versions.Target:
    """Return the target of the start: the state machine, or a version or alias."""
    if not run:
        return versions.Target(machine)
    return versions.resolve_target(scope.project, f"{machine.arn}:{run}")


def _breakpoints(
    scope: Scope, target: versions.Target, sent: Mapping[str, Any]
) -> tuple[engine.Breakpoint, ...]:
    """Return where the new execution stops; raise ValidationException if it may not."""
    if not sent["break_state"]:
        return ()
    if not has_feature("breakpoints"):
        raise ValidationException("This server has no breakpoints.")
    if not scope.may(breakpoints.ACTION):
        raise ValidationException("Only editors and owners set breakpoints.")
    place = {"state": sent["break_state"], "when": sent["break_when"]}
    text = engine.dumps([place])
    return breakpoints.breakpoints_of_start(target.machine, target.version, text)


def _break_states(scope: Scope, machine: StateMachine) -> list[str]:
    """Return the states at which the reader may let a new execution stop."""
    offers = has_feature("breakpoints") and scope.may(breakpoints.ACTION)
    is_forbidden = offers and breakpoints.is_forbidden(scope.project.name)
    if not offers or is_forbidden or machine.type == MachineType.EXPRESS:
        return []
    try:
        compiled = machines.compiled_machines.get(machine.definition_id)
    except engine.DefinitionError:  # stored by a version that checked less
        return []
    return sorted(name for name, _ in engine.own_states(compiled))


def _run_choices(machine: StateMachine) -> dict[str, str]:
    """Return qualifier -> label of aliases and versions; {} without any."""
    aliases = versions.list_aliases(versions.Target(machine))
    numbers = [each.number for each in versions.list_versions(machine, limit=_MOST_VERSIONS)]
    if not aliases and not numbers:
        return {}
    return {
        "": "Current definition",
        **{each.name: f"Alias {each.name}" for each in aliases},
        **{str(number): f"Version {number}" for number in numbers},
    }


def _named_inputs(machine: StateMachine) -> Any:
    """Return the named inputs, None without the feature."""
    return next((offer(machine) for offer in hooked(Hook.START_INPUTS)), None)


def _prefilled_input(scope: Scope, machine: StateMachine, origin: str, saved: str) -> str:
    """Return an earlier execution's input, a named one, or a sample's."""
    named = _named_inputs(machine) if saved else None
    if named is not None and (text := named.shown(saved)):
        return str(text)
    if not origin:
        return suggested_input(machine.name)
    earlier = _earlier_execution(scope, machine, origin)
    return scope.shown(earlier).input if earlier else suggested_input(machine.name)


def _earlier_execution(scope: Scope, machine: StateMachine, origin: str) -> Execution | None:
    rows = Execution.objects.filter(project=scope.project)
    if machine.type == MachineType.EXPRESS:  # its ARN ends with an id: names may be used again
        return rows.filter(state_machine_arn=machine.arn, name=origin).order_by("-pk").first()
    return rows.filter(arn=scope.arn("execution", machine.name, origin)).first()


def _with_hidden_values(scope: Scope, machine: StateMachine, sent: Mapping[str, Any]) -> str:
    """Return an input with the hidden values of its source: named input or execution."""
    text: str = sent["input"]
    if mask.MASK in text and sent["saved"]:
        named = _named_inputs(machine)
        return text if named is None else str(named.filled(sent["saved"], text))
    return _with_masked_values(scope, machine, sent["origin"], text)


def _with_masked_values(scope: Scope, machine: StateMachine, origin: str, text: str) -> str:
    """Replace masks in an input by the original values of the execution ``origin``."""
    earlier = _earlier_execution(scope, machine, origin) if origin and mask.MASK in text else None
    if earlier is None:
        return text
    true = earlier.input
    return mask.fill_mask(text, scope.shown(earlier).input, true)


def _render_form(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **fields: Any
) -> HttpResponse:
    scope, executions = scope_of(request), last_executions(machine)
    context = machine_context(machine) | {
        "origin": request.GET.get("origin", ""),
        "saved": request.GET.get("saved", ""),
        "named": _named_inputs(machine),
        "last": executions[0] if executions else None,
        "recent": recent_inputs(scope.project, executions),
        "runs": _run_choices(machine),
        "break_states": _break_states(scope, machine),
        "break_times": BREAK_TIMES,
        **graph_beside(request, machine),
        **fields,
    }
    run, named = context.get("run", ""), context.get("name", "")
    context["command"] = cli_commands.start_command(
        request, scope, machine, context["input"], run=run, name=named
    )
    return render(request, "execution/start.html", context, status=status)


@dataclass(frozen=True, slots=True)
class RecentInput:
    """An input, and the latest execution with it. ``text``: its beginning, "" for a long one."""

    execution: Execution
    text: str


def last_executions(machine: StateMachine) -> list[Execution]:
    """Return up to 20 of the latest executions, without Map Run children and payloads."""
    rows = Execution.objects.filter(state_machine=machine).order_by("-start_ms", "-pk")
    newest = rows.only("name", "start_ms", "status", "map_run_id")[:_MOST_LOOKED_AT]
    return [execution for execution in newest if execution.map_run_id is None][:_MOST_READ]


def recent_inputs(project: Project, executions: Sequence[Execution]) -> list[RecentInput]:
    """Return up to five distinct inputs of executions, masked.

    Costs one query, plus the queries that read the masks of five executions.
    """
    rows = Execution.objects.filter(pk__in=[execution.pk for execution in executions])
    read = rows.annotate(length=Length("input"), beginning=Left("input", _LONGEST))
    texts: dict[int, tuple[int, str]] = {
        pk: (length, text) for pk, length, text in read.values_list("pk", "length", "beginning")
    }
    distinct: dict[tuple[int, str], Execution] = {}
    for execution in executions:
        if execution.pk in texts:
            distinct.setdefault(texts[execution.pk], execution)
    chosen = list(distinct.items())[:_MOST_INPUTS]
    masks = masks_of(project, [execution.pk for _, execution in chosen])
    return [
        RecentInput(
            execution,
            _beginning(masks[execution.pk].payload(text)) if length <= _LONGEST else "",
        )
        for (length, text), execution in chosen
        if execution.pk in masks
    ]


def _beginning(text: str) -> str:
    line = visible_text(" ".join(text.split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
