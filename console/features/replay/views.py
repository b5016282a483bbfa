"""Replay an execution: show the input of a state for editing, and start in this state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

import engine
from console.errors import NAME_ERRORS, ServiceError, ValidationException
from console.features.replay.plans import calls_of_replay
from console.masking import mask, masked_execution
from console.store.executions import replay
from console.web.core.addresses import page_address
from console.web.core.forms import PageForm, TextField
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.header import base_context
from console.web.execution.recorded_input import recorded_fields, recorded_input, visit_number
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution


class ReplayForm(PageForm):
    """A replay; ``definition``: ``changed`` for the state machine's current definition."""

    name = TextField()
    input = TextField()
    variables = TextField()
    definition = TextField(strip=False)


@require_http_methods(["GET", "POST"])
def replay_execution(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the input of the state in ``?step=`` for editing; a POST starts the replay."""
    scope = scope_of(request)
    require(scope, "StartExecution")
    execution = scope.own_execution(machine_name, execution_name)
    step = request.GET.get("step", "")
    if request.method == "GET":
        return _render_form(
            request,
            execution,
            step,
            **recorded_fields(execution, step, request.GET.get("visit", "")),
        )
    sent = ReplayForm(request.POST).values
    typed = {name: sent[name] for name in ("name", "input", "variables")}
    changed = sent["definition"] == "changed"
    try:
        values = _with_masked_values(execution, step, request.GET.get("visit", ""), typed)
        started = replay.start_replay(
            execution,
            step,
            input=values["input"] or "{}",
            variables="" if values["variables"] == "{}" else values["variables"],
            name=typed["name"] or None,
            changed=changed,
            actor=actor_of(scope),
        )
    except ServiceError as error:
        field = "name_error" if error.code in NAME_ERRORS else "input_error"
        refusal = {field: error.message, "changed": changed}
        return _render_form(request, execution, step, status=422, **typed, **refusal)
    machine_name = started.state_machine_arn.rpartition(":")[2].replace("/", "~")
    return redirect(page_address(scope, "execution", machine_name, started.name))


def _with_masked_values(
    execution: Execution, step: str, visit: str, typed: dict[str, str]
) -> dict[str, str]:
    """Return a typed input with masks replaced by the origin's hidden values."""
    if mask.MASK not in typed["input"] + typed["variables"]:
        return typed
    recorded, true = recorded_input(execution, step, visit)
    filled = {
        name: mask.fill_mask(typed[name], recorded[name], true[name])
        for name in ("input", "variables")
    }
    if masked_execution.shows_hidden(execution, filled["input"], filled["variables"]):
        raise ValidationException(masked_execution.HIDDEN_ELSEWHERE)
    return typed | filled


def _render_form(
    request: HttpRequest, execution: Execution, step: str, *, status: int = 200, **fields: Any
) -> HttpResponse:
    name = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    machine = execution.state_machine
    drifted = replay.has_changed(execution)
    keeps = drifted and machine is not None and replay.begins_in(machine.definition.text, step)
    context = {
        **base_context(execution, name),
        "step": step,
        "refused": _refusal(execution, step),
        "drifted": drifted,
        "keeps": keeps,
        "changed": keeps,  # who fixed the definition wants to see the fix run
        **_replayed_calls(execution, step, request.GET.get("visit", ""), keeps=keeps),
    }
    return render(request, "replay/page.html", context | fields, status=status)


def _replayed_calls(execution: Execution, step: str, visit: str, *, keeps: bool) -> dict[str, Any]:
    """Return the calls that a replay would make again, by definition.

    ``keeps``: the current definition has changed, and an execution can begin there.
    """
    number, machine = visit_number(visit), execution.state_machine
    try:
        with open_trace(execution) as trace:
            own = calls_of_replay(trace, trace.graph, step, number)
            if not keeps or machine is None:
                return {"own_calls": own}
            graph = engine.build_graph(engine.parse_stored(machine.definition.text))
            new = calls_of_replay(trace, graph, step, number)
    except engine.DefinitionError:  # stored by a version that checked less
        return {}
    return {"own_calls": own, "new_calls": new}


def _refusal(execution: Execution, step: str) -> str:
    """Return why no execution can begin in a state, "" if it can."""
    if execution.map_run_id is not None:
        return "the execution is a child of a Map Run"
    if execution.state_machine is None:
        return "its state machine was deleted"
    try:
        replay.check_state(execution.definition.text, step)
    except ServiceError as error:
        return error.message
    return ""
