"""Actions on an execution: stop, redrive, note."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

import engine
from console.errors import ServiceError, ValidationException
from console.feature import has_feature
from console.masking import mask, masked_execution
from console.models import Execution, ExecutionNote
from console.store.executions import redrive, replay
from console.store.executions.stop import stop_execution
from console.store.people import notes
from console.web.core.addresses import page_address
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.core.views import local_address
from console.web.execution import iterations, root_cause
from console.web.execution.forms import NoteForm, StopForm
from console.web.execution.header import base_context
from console.web.execution.repeated_calls import calls_of_redrive
from console.web.history.traces import open_trace
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from console.web.core.scope import HtmxRequest
    from console.web.execution.repeated_calls import RepeatedCalls
    from engine import Graph


@require_http_methods(["GET", "POST"])
def stop_page(request: HtmxRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Ask once, on a page or in a dialog, then stop."""
    scope = scope_of(request)
    require(scope, "StopExecution")
    execution = scope.own_execution(machine_name, execution_name)
    context = base_context(execution, machine_name)
    if request.method == "GET":
        return render(request, "execution/stop.html", context)
    sent = StopForm(request.POST).values
    error, cause = sent["error"], sent["cause"]
    try:
        stop_execution(execution, error=error or None, cause=cause or None, actor=actor_of(scope))
    except ServiceError as refused:
        context |= {"error": error, "cause_text": cause, "refused": refused.message}
        template = "execution/_stop_form.html" if request.htmx else "execution/stop.html"
        return render(request, template, context, status=422)
    if request.htmx:
        return trigger_client_event(HttpResponse(status=204), "stopped")
    messages.success(request, "The execution is being stopped.")
    return redirect(page_address(scope, "execution", machine_name, execution.name))


_ENDED_BADLY = (VisitStatus.FAILED, VisitStatus.TIMED_OUT, VisitStatus.ABORTED)


@dataclass(frozen=True, slots=True)
class ItemsAgain:
    """A redrive's effect on the iterations or child executions (``kind``) of a Map.

    ``bad``: how many run again, in words; ``not_started``: how many begin that had not.
    """

    owner: str
    kind: str
    bad: str
    not_started: int


@require_http_methods(["GET", "POST"])
def redrive_execution(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show what a redrive would run again, or why it is refused; a POST redrives."""
    scope = scope_of(request)
    require(scope, "RedriveExecution")
    execution = scope.own_execution(machine_name, execution_name)
    status = 200
    refused = redrive.api_refusal(execution)
    if request.method == "POST":
        try:
            redrive.redrive_execution(execution, actor=actor_of(scope))
        except ServiceError as error:
            refused, status = error.message, 422
        else:
            messages.success(request, "The execution was redriven and continues.")
            return redirect(page_address(scope, "execution", machine_name, execution.name))
    context = {
        **base_context(execution, machine_name),
        "refused": refused,
        **({"again": []} if refused else _preview(execution)),
    }
    return render(request, "execution/redrive.html", context, status=status)


def _preview(execution: Execution) -> dict[str, Any]:
    """Return the states that would run again, and whether these are only Fail states."""
    again = redrive.repeated_states(execution)
    try:
        graph = engine.build_graph(engine.parse_stored(execution.definition.text))
    except engine.DefinitionError:  # stored by a version that checked less
        return {"again": again}
    only_fail = runs_only_fail(graph, again)
    return {
        "again": again,
        "items_again": _items_again(execution),
        "calls": _redriven_calls(execution, again),
        "replays": _replays(execution, graph, again) if has_feature("replay") else [],
        "only_fail": only_fail,
        "root": root_cause.root_cause_of(execution) if only_fail else None,
    }


def _redriven_calls(execution: Execution, again: list[str]) -> RepeatedCalls:
    """Return the recorded calls of the states that run again."""
    with open_trace(execution) as trace:
        return calls_of_redrive(trace, again)


def _replays(execution: Execution, graph: Graph, again: list[str]) -> list[str]:
    """Return the states where a replay with a changed definition can begin."""
    machine = execution.state_machine
    if machine is None or not replay.has_changed(execution):
        return []
    nodes = [graph.by_id[graph.by_name[name]] for name in again if name in graph.by_name]
    text = machine.definition.text
    return [
        node.name
        for node in nodes
        if node.group == engine.TOP and node.type != "Fail" and replay.begins_in(text, node.name)
    ]


def _items_again(execution: Execution) -> list[ItemsAgain]:
    """Return the items of each unsuccessful Map that run again, outer Maps first."""
    every = []
    with open_trace(execution) as trace:
        maps = iterations.map_runs_of_execution(execution, trace)
        for node in trace.graph.nodes:
            visits = trace.visits_of(node.id)
            if node.type != "Map" or not visits or visits[-1].status not in _ENDED_BADLY:
                continue
            counted = maps.of_node(node.id) if maps is not None else None
            picker = None if node.distributed else iterations.iteration_picker(trace, node)
            if counted is not None:
                bad = iterations.endings_text(counted.bad)
                every.append(ItemsAgain(node.name, "child executions", bad, counted.pending))
            elif picker is not None:
                bad = iterations.endings_text(
                    (group.count, group.status.word.lower())
                    for group in picker.groups
                    if group.status.tone not in ("succeeded", "caught")
                )
                every.append(ItemsAgain(node.name, "iterations", bad, picker.not_started))
    return [items for items in every if items.bad or items.not_started]


def runs_only_fail(graph: Graph, again: Sequence[str]) -> bool:
    """Whether a redrive would only run uncaught Fail states."""
    nodes = [graph.by_id[graph.by_name[name]] for name in again if name in graph.by_name]
    # inside a Parallel or Map it may be retried or caught
    return (
        bool(again)
        and len(nodes) == len(again)
        and all(node.type == "Fail" and node.group == engine.TOP for node in nodes)
    )


# Pages of the release before send ``look`` and ``leave``.
_ASSIGNS = {"assign": True, "unassign": False, "look": True, "leave": False}


@require_POST
def change_note(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Save the note, or set or remove the reader as the assignee."""
    scope = scope_of(request)
    require(scope, "PutNote")
    execution = scope.execution(machine_name, execution_name)
    sent = NoteForm(request.POST).values
    act = sent["act"]
    if act not in ("note", *_ASSIGNS):
        raise Http404(f"This page has no action “{act}”.")
    try:
        if act == "note":
            notes.put_note(execution, _unmasked_note(execution, sent["note"]), actor_of(scope))
        else:
            notes.set_assignee(execution, actor_of(scope), on=_ASSIGNS[act])
    except ServiceError as refused:
        messages.error(request, refused.message)
    own = page_address(scope, "execution", machine_name, execution.name)
    return redirect(local_address(request, sent["next"], own))


def _unmasked_note(execution: Execution, text: str) -> str:
    """Return a typed note with the hidden value that its mask stands for.

    Raise ValidationException for a mask whose value is not certain: it would replace the value.
    """
    stored = ExecutionNote.objects.filter(execution=execution).values_list("text", flat=True)
    original = stored.first() or ""
    if mask.MASK not in text or mask.MASK in original:
        return text
    shown = masked_execution.masked_execution(execution).mask.words(original)
    if shown.count(mask.MASK) == text.count(mask.MASK) == 1:
        before, _, after = shown.partition(mask.MASK)
        return text.replace(mask.MASK, original[len(before) : len(original) - len(after)])
    raise ValidationException(
        f"The note was not saved: {mask.MASK} stands for a hidden value that is not known here. "
        "Reveal the values of this execution to edit the note."
    )
