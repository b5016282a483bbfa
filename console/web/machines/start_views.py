"""View of the start form: start an execution with a name and an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Left, Length
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.errors import NAME_ERRORS, ErrorCode, ServiceError, ValidationException
from console.feature import Hook, hooked
from console.integrations.targets import MachineKey
from console.masking import mask
from console.masking.masked_execution import masks_of
from console.models import Execution
from console.store.executions.start import start_execution
from console.store.machines import versions
from console.web.core import cli_commands
from console.web.core.addresses import page_address
from console.web.core.formatting import visible_text
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.machines.forms import StartForm
from console.web.machines.start_debugging import debug_fields, sent_breakpoints, sent_faults
from console.web.machines.views import graph_beside, machine_context, suggested_input
from engine import MachineType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from console.models import Project, StateMachine

_MOST_VERSIONS = 200
"""Number of the newest versions in the list."""
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
        return _render_new_form(request, scope, machine)
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
    debugging: dict[str, Any] = {}
    for name, read in (("breakpoints", sent_breakpoints), ("faults", sent_faults)):
        try:
            debugging[name] = read(scope, target, request.POST)
        except ServiceError as error:
            errors = {f"{name}_error": error.message}
            debug = debug_fields(scope, machine, request.POST, **errors)
            return _render_form(request, machine, status=422, **form.texts, debug=debug)
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
            **debugging,
            actor=actor_of(scope),
        )
    except ServiceError as error:
        field = "name_error" if error.code in NAME_ERRORS else "input_error"
        return _render_form(request, machine, status=422, **form.texts, **{field: error.message})
    return redirect(page_address(scope, "execution", machine.name, started.name))


def _render_new_form(request: HttpRequest, scope: Scope, machine: StateMachine) -> HttpResponse:
    """Render the form; say if the input or the version that the address names is gone."""
    run, origin, saved = (request.GET.get(name, "") for name in ("run", "origin", "saved"))
    fields: dict[str, Any] = {"run": run}
    status = 200
    try:
        _target(scope, machine, run)
    except ServiceError as gone:
        fields |= {"run": "", "run_error": gone.message}
        status = 404
    try:
        fields["input"] = _prefilled_input(scope, machine, origin, saved)
    except ServiceError as gone:
        fields |= {"saved": "", "origin": "", "input": suggested_input(machine.name)}
        fields["input_error"] = gone.message
        status = 404
    return _render_form(request, machine, status=status, **fields)


def _target(scope: Scope, machine: StateMachine, run: str) -> versions.Target:
    """Return the target of the start: the state machine, or a version or alias."""
    if not run:
        return versions.Target(machine)
    return versions.resolve_target(scope.project, f"{machine.arn}:{run}")


def _run_choices(machine: StateMachine, run: str) -> dict[str, str]:
    """Return qualifier -> label of aliases and versions; {} without any.

    ``run``: the chosen qualifier, which may be that of an older version than the listed ones.
    """
    aliases = versions.list_aliases(versions.Target(machine))
    numbers = [each.number for each in versions.list_versions(machine, limit=_MOST_VERSIONS)]
    if not aliases and not numbers:
        return {}
    choices = {
        "": "Current definition",
        **{each.name: f"Alias {each.name}" for each in aliases},
        **{str(number): f"Version {number}" for number in numbers},
    }
    kind = "Version" if run.isdecimal() else "Alias"
    return choices if run in choices else {**choices, run: f"{kind} {run}"}


def named_inputs_of(machine: StateMachine) -> Any:
    """Return the named inputs, None without the feature."""
    return next((offer(machine) for offer in hooked(Hook.START_INPUTS)), None)


def _prefilled_input(scope: Scope, machine: StateMachine, origin: str, saved: str) -> str:
    """Return an earlier execution's input, a named one, or a sample's.

    Raise a ServiceError if the execution or the named input does not exist.
    """
    named_inputs = named_inputs_of(machine) if saved else None
    if named_inputs is not None:
        return str(named_inputs.shown(saved))
    if not origin:
        return suggested_input(machine.name)
    return scope.shown(_earlier_execution(scope, machine, origin)).input


def _earlier_execution(scope: Scope, machine: StateMachine, origin: str) -> Execution:
    rows = Execution.objects.filter(project=scope.project)
    if machine.type == MachineType.EXPRESS:  # its ARN ends with an id: names may be used again
        rows = rows.filter(state_machine_arn=machine.arn, name=origin).order_by("-pk")
    else:
        rows = rows.filter(arn=scope.arn("execution", machine.name, origin))
    execution = rows.first()
    if execution is None:
        raise ServiceError(
            ErrorCode.ResourceNotFound, f"{machine.name} has no execution “{origin[:80]}”."
        )
    return execution


def _with_hidden_values(scope: Scope, machine: StateMachine, sent: Mapping[str, Any]) -> str:
    """Return an input with the hidden values of its source: named input or execution.

    Raise a ServiceError if the source is gone, or if a mask stands where it has no hidden value.
    """
    text: str = sent["input"]
    if mask.MASK not in text:
        return text
    named_inputs = named_inputs_of(machine) if sent["saved"] else None
    if named_inputs is not None:
        original, shown = named_inputs.text(sent["saved"]), named_inputs.shown(sent["saved"])
    elif sent["origin"]:
        earlier = _earlier_execution(scope, machine, sent["origin"])
        original, shown = earlier.input, scope.shown(earlier).input
    else:
        return text
    filled = mask.fill_mask(text, shown, original)
    if mask.MASK in filled and mask.MASK not in original:
        raise ValidationException(
            f"{mask.MASK} stands for a hidden value that is not known at this place. Enter a value."
        )
    return filled


def _render_form(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **fields: Any
) -> HttpResponse:
    scope, executions = scope_of(request), last_executions(machine)
    context = machine_context(machine) | {
        "origin": request.GET.get("origin", ""),
        "saved": request.GET.get("saved", ""),
        "named": named_inputs_of(machine),
        "last": executions[0] if executions else None,
        "recent": recent_inputs(scope.project, executions),
        "runs": _run_choices(machine, fields.get("run", "")),
        "debug": debug_fields(scope, machine, request.POST),
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
