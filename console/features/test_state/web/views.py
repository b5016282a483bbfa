"""Views of *Test a state*, and of the export of an execution as a test."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.errors import ServiceError
from console.features.insights import past_executions
from console.features.test_state.scenarios.scenario import scenario_of
from console.features.test_state.scenarios.tests import WRITERS, NoCallError, UnstableError
from console.features.test_state.web import form, recorded
from console.features.test_state.web.form import TestRequest
from console.features.test_state.web.forms import SubjectForm, TestStateForm
from console.masking import mask
from console.statuses import ExecutionStatus
from console.web.core.scope import render, require, scope_of
from console.web.execution.recorded_input import recorded_input
from console.web.machines.views import machine_context, suggested_input

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import Execution, StateMachine
    from console.web.core.scope import Scope
    from engine import Graph, Node

_WHERE_CHANGED = "current"
"""The definition that a form begins with: the current one, if it has the state still."""
_OF_MOCK = ("Mock", "A test mock", "State type")


@dataclass(frozen=True, slots=True)
class _Subject:
    """The definition to test. ``text``: the definition; ``edited``: unsaved.

    ``revision``: of the machine that an edited text was made from, "" if it is not known.
    ``origin``: the execution whose input is tried again, of ``visit`` in state ``step``;
    ``changed`` if it ran with another definition than the current one, which ``newer`` chooses;
    ``lost``: the current one does not have the state.
    """

    machine: StateMachine
    text: str
    role: str
    edited: bool = False
    origin: Execution | None = None
    step: str = ""
    visit: str = ""
    changed: bool = False
    newer: bool = False
    lost: bool = False
    revision: str = ""

    def filled(self, test: TestRequest) -> TestRequest:
        """Return a form with each mask replaced by the hidden value of the original execution."""
        if self.origin is None or mask.MASK not in test.input + test.variables:
            return test
        recorded, true = recorded_input(self.origin, self.step, self.visit)
        texts = {name: getattr(test, name) for name in ("input", "variables")}
        texts_whole = {
            name: mask.fill_mask(text, recorded[name], true[name]) for name, text in texts.items()
        }
        return TestRequest(**asdict(test) | texts_whole)


@require_http_methods(["GET", "POST"])
def test_state_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show the form, prefilled from ``?origin=``; a POST tests the state."""
    scope = scope_of(request)
    require(scope, "TestState")
    sent = request.POST if request.method == "POST" else request.GET
    values = SubjectForm(sent).values
    if request.method == "GET":
        values["definition"] = values["definition"] or _WHERE_CHANGED
    subject = _subject_of(scope, scope.machine(machine_name), values)
    graph = _graph_of(subject)
    if graph is None or "state" not in request.POST:
        state = SubjectForm(sent).values["state"] or request.GET.get("state", "")
        first = _first_request(scope, subject, state, graph)
        return _render_form(request, subject, graph, first)
    test = TestRequest(**TestStateForm(request.POST).values)
    if SubjectForm(sent).values["last_input"]:
        return _render_last_input(request, scope, subject, graph, test)
    if test.reveal:
        require(scope, "RevealSecrets")
    node = graph.by_id.get(graph.by_name.get(test.state, ""))
    if node is None:
        problem = {"state_error": "The definition has no such state."}
        return _render_form(request, subject, graph, test, status=422, **problem)
    return _run_and_render(request, scope, subject, graph, test, node)


def _render_last_input(
    request: HttpRequest, scope: Scope, subject: _Subject, graph: Graph, test: TestRequest
) -> HttpResponse:
    """Show the form with the input of the state's latest visit.

    A definition that is not saved gets no original value in place of a masked one: it could put it
    where no mask is.
    """
    machine = subject.machine
    last = past_executions.last_execution_in(machine, test.state)
    if last is None:
        problem = f"None of the last executions entered {test.state}."
        return _render_form(request, subject, graph, test, input_error=problem)
    origin = scope.execution(machine.name, last.name)
    recorded, _ = recorded_input(origin, test.state, "")
    fields = recorded | {"variables": recorded["variables"].removeprefix("{}")}
    if not subject.edited:
        subject = replace(subject, origin=origin, step=test.state, visit="")
    filled = TestRequest(**asdict(test) | fields)
    return _render_form(request, subject, graph, filled, filled_from=origin)


def _run_and_render(  # the arguments are what a test is about
    request: HttpRequest,
    scope: Scope,
    subject: _Subject,
    graph: Graph,
    test: TestRequest,
    node: Node,
) -> HttpResponse:
    try:
        params = subject.filled(test).params(subject.text, subject.role)
        masking = form.mask_of(scope.project, subject.origin)
        outcome = form.run_test(scope, params, node, masking)
    except form.FieldMistake as mistake:
        problems = {f"{mistake.field}_error": str(mistake), "refused": str(mistake)}
    except ServiceError as error:
        problems = {f"{_refused_field(error)}_error": error.message, "refused": error.message}
    else:
        return _render_form(request, subject, graph, test, tested=outcome)
    return _render_form(request, subject, graph, test, status=422, **problems)


def _refused_field(error: ServiceError) -> str:
    """Return the field of an API error."""
    if error.code == "InvalidExecutionInput":
        return "input"
    if "Context object" in error.message:
        return "context"
    of_mock = error.code == "AccessDeniedException" or error.message.startswith(_OF_MOCK)
    return "mock" if of_mock else "state"


def _subject_of(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> _Subject:
    if sent["text"] and scope.may("UpdateStateMachine"):
        role = sent["role"] or machine.role_arn
        return _Subject(machine, sent["text"], role, edited=True, revision=sent["revision"])
    if not sent["origin"]:
        return _Subject(machine, machine.definition.text, machine.role_arn)
    origin = scope.execution(machine.name, sent["origin"])
    changed = origin.definition_id != machine.definition_id
    step = sent["step"] or sent["state"]
    lost = changed and not _has_state(machine, step)
    chosen = sent["definition"]
    newer = chosen == "changed" or (chosen == _WHERE_CHANGED and changed and not lost)
    return _Subject(
        machine,
        (machine if newer else origin).definition.text,
        origin.role_arn or machine.role_arn,
        origin=origin,
        step=step,
        visit=sent["visit"],
        changed=changed,
        newer=newer,
        lost=lost,
    )


def _has_state(machine: StateMachine, state: str) -> bool:
    try:
        graph = engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    except engine.DefinitionError:
        return False
    return state in graph.by_name


def _graph_of(subject: _Subject) -> Graph | None:
    try:
        return engine.build_graph(engine.parse_stored(subject.text, subject.machine.type))
    except engine.DefinitionError:
        return None


def _first_request(scope: Scope, subject: _Subject, state: str, graph: Graph | None) -> TestRequest:
    """Return the initial form; raise ``Http404`` for an unknown state."""
    if graph is None:
        return TestRequest()
    if state and state not in graph.by_name:
        raise Http404(f"“{subject.machine.name}” has no state “{state}”.")
    chosen = state or graph.nodes[0].name
    node = graph.by_id[graph.by_name[chosen]]
    mocked = ("Map", "Parallel") if scope.may("TestUnmockedTask") else ("Map", "Parallel", "Task")
    mock = "result" if node.type in mocked else ""
    fields: dict[str, Any] = {"state": chosen, "mock": mock, "result": form.sample_result(node)}
    if subject.origin is not None:
        recorded, _ = recorded_input(subject.origin, subject.step, subject.visit)
        fields |= recorded | {"variables": recorded["variables"].removeprefix("{}")}
    else:
        fields["input"] = suggested_input(subject.machine.name)
    return TestRequest(**fields)


def _render_form(  # the arguments are what the page is about
    request: HttpRequest,
    subject: _Subject,
    graph: Graph | None,
    test: TestRequest,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    context = machine_context(subject.machine) | {
        "subject": subject,
        "asked": test,
        "choices": form.state_choices(graph) if graph else [],
        "levels": form.LEVELS,
        "modes": form.MODES,
        "masked": mask.MASK in test.input + test.variables and subject.origin is not None,
    }
    return render(request, "test_state/page.html", context | more, status=status)


@require_safe
def scenario_json(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return an execution as a test for ``manage.py replay``."""
    execution = scope_of(request).execution(machine_name, execution_name)
    if execution.status in (ExecutionStatus.RUNNING, ExecutionStatus.UNFINISHED):
        raise Http404(f"“{execution.name}” is still running: a test needs its end.")
    if recorded.is_too_large(execution):
        raise Http404(f"The history of “{execution.name}” is too large for a test.")
    try:
        scenario = scenario_of(recorded.read_recording(execution))
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be run.") from None
    except (ValueError, engine.JsonTextError):  # imported, and cut where it was printed
        raise Http404(f"Payloads of “{execution.name}” are not whole: a test needs them.") from None
    kind = request.GET.get("as", "")
    if kind and kind not in WRITERS:
        raise Http404(f"There is no test “{kind[:20]}”: choose {', '.join(WRITERS)}.")
    if kind:
        try:
            text = WRITERS[kind](scenario, "")
        except UnstableError as error:
            raise Http404(f"A test of “{execution.name}” would fail: {error}") from None
        except NoCallError as error:
            raise Http404(f"The test of “{execution.name}”: {error}.") from None
    else:
        text = json.dumps(scenario, ensure_ascii=False, indent=2) + "\n"
    answer = HttpResponse(
        text,
        content_type="text/x-python; charset=utf-8" if kind == "pytest" else "application/json",
        headers={"Cache-Control": "no-store"},
    )
    # set here and not by the link's ``download``, so that an error is shown instead of saved
    answer["Content-Disposition"] = content_disposition_header(
        True, _file_name(execution.name, kind)
    )
    return answer


def _file_name(name: str, kind: str) -> str:
    """Return the file name of a test, as its tool looks for it."""
    if kind == "pytest":
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        return f"test_{word or 'execution'}.py"
    return f"{name}.{kind or 'scenario'}.json"
