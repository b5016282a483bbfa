"""View that reproduces an imported execution: its form, and the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

import engine
from console.errors import ServiceError, ValidationException
from console.feature import has_feature
from console.features.reproduce.forms import CHANGED, LIVE, RECORDED, STATE, ReproduceForm
from console.features.reproduce.start import start_reproduction
from console.masking.masked_execution import HIDDEN_ELSEWHERE, shows_hidden, unmask_execution
from console.recordings.failing import failing_visit
from console.store.executions import breakpoints
from console.store.machines import machines
from console.web.core.addresses import import_address, page_address
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.header import base_context
from console.web.execution.recorded_input import recorded_fields
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution, StateMachine
    from console.web.core.scope import Scope
    from engine import Graph, Trace


@dataclass(frozen=True, slots=True)
class FailurePoint:
    """The place at which an import failed.

    ``state``: the failing state, "" without one. ``entered``: the event that entered it.
    ``iteration``: its index in each surrounding Map, as text. ``begin``: its outermost surrounding
    state, or itself; ``visit``: the number of the visit of ``begin``, from 1. ``earlier``: the
    number of earlier entries and retries of ``state``. ``map_run``: the name of a distributed Map
    that ran before, "" without one.
    """

    state: str = ""
    entered: int = 0
    iteration: str = ""
    begin: str = ""
    visit: int = 0
    earlier: int = 0
    map_run: str = ""


def failure_point(execution: Execution) -> FailurePoint:
    """Return where an import failed; raise ``Http404`` if its definition is invalid."""
    try:
        with open_trace(execution) as trace:
            return _failure_point(trace)
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” cannot be run.") from None


def _failure_point(trace: Trace) -> FailurePoint:
    visit = failing_visit(trace)
    last = trace.last if visit is None else visit.number
    map_run = _map_run_before(trace, last)
    if visit is None:
        return FailurePoint(map_run=map_run)
    graph = trace.graph
    node = _outermost(graph, visit.node)
    visits = [each for each in trace.visits[node] if each.number <= visit.number]
    name = graph.by_id[visit.node].name
    earlier = [each for each in trace.visits[visit.node] if each.number < visit.number]
    return FailurePoint(
        name,
        visit.number,
        ".".join(map(str, visit.iteration)),
        graph.by_id[node].name,
        len(visits),
        sum(max(1, each.attempts) for each in earlier),
        map_run,
    )


def _outermost(graph: Graph, node: str) -> str:
    """Return the outermost Parallel or Map around a state, or the state itself."""
    owners = {group.id: group.owner for group in graph.groups}
    while owner := owners[graph.by_id[node].group]:
        node = owner
    return node


def _map_run_before(trace: Trace, last: int) -> str:
    """Return the name of a distributed Map that ran before an event, "" without one."""
    for number in range(1, last):
        kind, state = trace.kind_of(number)
        if kind == "MapRunStarted":
            return state
    return ""


@require_http_methods(["GET", "POST"])
def reproduce_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show ``…/reproduce/`` of an import; a POST starts the execution."""
    scope = scope_of(request)
    require(scope, "StartExecution")
    execution = scope.execution(machine_name, execution_name)
    if execution.imported_ms is None:
        raise Http404(f"“{execution.name}” is no import: replay it from one of its states.")
    point = failure_point(execution)
    if request.method == "GET":
        name = execution.state_machine_arn.rpartition(":")[2]
        return _render(request, scope, execution, point, {"machine": name, "calls": LIVE})
    form = ReproduceForm(request.POST)
    sent = form.values if form.is_valid() else {}
    try:
        if not sent:
            raise ValidationException(form.first_error[1])
        started = _start(scope, execution, point, sent)
    except ServiceError as error:
        fields = {**form.texts, "refused": error.message}
        return _render(request, scope, execution, point, fields, status=422)
    machine = started.state_machine_arn.rpartition(":")[2]
    return redirect(page_address(scope, "execution", machine, started.name))


def _start(
    scope: Scope, execution: Execution, point: FailurePoint, sent: dict[str, Any]
) -> Execution:
    """Start the reproduction; raise ``ServiceError`` if that is refused."""
    if sent["calls"] != STATE and point.map_run:
        raise ValidationException(
            f"{point.map_run} is a distributed Map, whose items are executions of their own: their "
            "answers are not in this import. Begin at the failing state."
        )
    if sent["calls"] != RECORDED and not point.state:
        raise ValidationException("The import did not fail, so only recorded calls repeat it.")
    hidden = unmask_execution(execution)
    machine = _existing(scope, sent["machine"])
    definition = execution if machine is None or sent["definition"] != CHANGED else machine
    places = _breakpoints(scope, definition.definition.text, point, sent)
    begin = None
    if sent["calls"] == STATE:
        fields = recorded_fields(hidden, point.begin, str(point.visit))
        variables = "" if fields["variables"] == "{}" else fields["variables"]
        if shows_hidden(execution, fields["input"], variables):
            raise ValidationException(HIDDEN_ELSEWHERE)
        begin = (point.begin, fields["input"], variables)
    machine = machine or _create_machine(scope, execution, sent["machine"])
    return start_reproduction(
        hidden,
        machine,
        until={LIVE: point.entered, RECORDED: 0}.get(sent["calls"]),
        begin=begin,
        changed=sent["definition"] == CHANGED,
        breakpoints=places,
        actor=actor_of(scope),
    )


def _create_machine(scope: Scope, execution: Execution, name: str) -> StateMachine:
    """Create a state machine with the import's definition."""
    if not scope.may("CreateStateMachine"):
        raise ValidationException(
            f"There is no state machine {name}, and your role cannot create one."
        )
    return machines.create_machine(
        scope.project,
        scope.region,
        name=name,
        definition=execution.definition.text,
        role_arn=f"arn:aws:iam::{scope.project.account_id}:role/reproduction",
        actor=actor_of(scope),
    )


def _existing(scope: Scope, name: str) -> StateMachine | None:
    try:
        return scope.machine(name)
    except Http404:
        return None


def _breakpoints(
    scope: Scope, definition: str, point: FailurePoint, sent: dict[str, Any]
) -> tuple[engine.Breakpoint, ...]:
    """Return the breakpoint before the failing state, if the form selects it."""
    if not sent["stop"] or not point.state:
        return ()
    if not may_stop(scope):
        raise ValidationException("You cannot set breakpoints here.")
    place = engine.Breakpoint(point.state, hits=1 if sent["calls"] == STATE else 1 + point.earlier)
    try:
        return engine.check_breakpoints([place], engine.parse_stored(definition))
    except (engine.BreakpointError, engine.DefinitionError) as error:
        raise ValidationException(str(error)) from None


def may_stop(scope: Scope) -> bool:
    """Whether the reader may set a breakpoint for the reproduction."""
    return (
        has_feature("breakpoints")
        and scope.may(breakpoints.ACTION)
        and not breakpoints.is_forbidden(scope.project.name)
    )


def _render(
    request: HttpRequest,
    scope: Scope,
    execution: Execution,
    point: FailurePoint,
    sent: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """Render the form with the possible choices."""
    machine = _existing(scope, sent.get("machine", ""))
    context = base_context(execution, import_address(execution)) | {
        "point": point,
        "sent": sent,
        "may_stop": may_stop(scope) and bool(point.state),
        "is_new": machine is None,
        "differs": machine is not None and machine.definition_id != execution.definition_id,
    }
    return render(request, "reproduce/page.html", context, status=status)
