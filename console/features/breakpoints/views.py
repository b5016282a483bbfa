"""View of an execution's breakpoints and of the lines of control halted there.

A person sets breakpoints, and continues, answers, skips or fails a halted line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods
from msgspec.structs import replace

import engine
from console.errors import ConflictException, ServiceError, ValidationException
from console.features.breakpoints.forms import BreakpointForm, LineForm
from console.masking import mask
from console.masking.masked_execution import masked_execution
from console.store.executions import breakpoints
from console.web.core import formatting
from console.web.core.addresses import page_address
from console.web.core.formatting import BREAK_TIMES
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.header import base_context
from console.web.history.debug_edits import shown_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.http import HttpResponse

    from console.masking.mask import Mask
    from console.models import Execution
    from console.web.core.scope import HtmxRequest

_WAYS = {"": "continue", "step": "step over", "into": "step into", "run_to": "run to"}


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A halted line of control for display, with hidden values masked."""

    line: engine.HaltedLine
    when: str
    input: formatting.PayloadView
    variables: formatting.PayloadView
    parameters: formatting.PayloadView | None
    output: formatting.PayloadView | None
    texts: Mapping[str, str]
    error: str
    cause: str
    problem: str


@require_http_methods(["GET", "POST"])
def breakpoints_page(request: HtmxRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the page; a POST runs an action, and after an error shows the typed values again."""
    scope = scope_of(request)
    require(scope, breakpoints.ACTION)
    execution = scope.own_execution(machine_name, execution_name)
    if request.method == "GET":
        return _render_page(request, execution, machine_name)
    act = _ACTS.get(request.POST.get("act", ""))
    if act is None:
        raise Http404(f"Breakpoints cannot {request.POST.get('act', '')!r}.")
    try:
        message = act(request, execution)
    except ServiceError as refused:
        sent = {name: str(value) for name, value in request.POST.items()}
        context = {"refused": refused.message, "sent": sent}
        return _render_page(request, execution, machine_name, status=422, **context)
    messages.success(request, message)
    return redirect(page_address(scope, "breakpoints", machine_name, execution.name))


def _render_page(
    request: HtmxRequest,
    execution: Execution,
    machine_name: str,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    shown = breakpoints.debugged(execution)
    hidden = masked_execution(execution).mask
    state = request.GET.get("state", "")
    if shown is not None and state and state not in shown.states:  # of a distributed Map's children
        more.setdefault("refused", f"This execution cannot stop at the state {state[:80]!r}.")
    context = base_context(execution, machine_name) | {
        "refusal": breakpoints.debug_refusal(execution),
        "breakpoints": [
            (_shown_place(place, hidden), _place_text(place, hidden)) for place in shown.breakpoints
        ]
        if shown
        else (),
        "is_forbidden": breakpoints.is_forbidden(execution.project.name),
        "states": sorted(shown.states) if shown else (),
        "times": BREAK_TIMES,
        "lines": [_shown_line(line, hidden) for line in shown.lines] if shown else (),
        "edits": shown_edits(execution),
        "sent": {"state": state},
        **more,
    }
    return render(request, "breakpoints/page.html", context, status=status)


def _shown_place(place: engine.Breakpoint, hidden: Mask) -> engine.Breakpoint:
    """Return a breakpoint with hidden values in its condition masked."""
    return replace(place, condition=hidden.words(place.condition))


def _place_text(place: engine.Breakpoint, hidden: Mask) -> str:
    """Return the text by which the form names a breakpoint: an old page removes no other one."""
    return engine.breakpoints_text((_shown_place(place, hidden),))


def _shown_line(line: engine.HaltedLine, hidden: Mask) -> ShownLine:
    halt = line.halt
    variables = engine.dumps(dict(line.variables))
    has_output = halt.when is engine.BreakTime.AFTER
    return ShownLine(
        line,
        BREAK_TIMES[halt.when],
        formatting.payload_view(hidden.payload(line.input)),
        formatting.payload_view(hidden.payload(variables)),
        None
        if line.parameters is None
        else formatting.payload_view(hidden.payload(line.parameters)),
        formatting.payload_view(hidden.payload(halt.output)) if has_output else None,
        {
            "input": hidden.payload(line.input),
            "variables": hidden.payload(line.own_variables),
            "output": hidden.payload(halt.output) if has_output else "",
        },
        hidden.words(halt.error or ""),
        hidden.words(halt.cause or ""),
        hidden.words(halt.problem or line.parameters_problem),
    )


# -- what the buttons do ---------------------------------------------------------------------------


def _set_place(request: HtmxRequest, execution: Execution) -> str:
    sent = BreakpointForm(request.POST).values
    if sent["when"] not in BREAK_TIMES:
        raise ValidationException(f"when: got {sent['when']!r}, wanted {', '.join(BREAK_TIMES)}")
    hits = sent["hits"] or "1"
    if not hits.isdecimal() or not hits.isascii():
        raise ValidationException(f"hits: {hits!r} is not a number from 1")
    condition = engine.without_marks(sent["condition"])
    when = engine.BreakTime(sent["when"])
    place = engine.Breakpoint(sent["state"], when, condition, int(hits[:9]))
    breakpoints.change_breakpoints(execution, lambda places: (*places, place), _actor(request))
    return "The breakpoint is set."


def _remove(request: HtmxRequest, execution: Execution) -> str:
    sent = BreakpointForm(request.POST).values["place"]
    hidden = masked_execution(execution).mask

    def change(places: Sequence[engine.Breakpoint]) -> list[engine.Breakpoint]:
        rest = [place for place in places if _place_text(place, hidden) != sent]
        if len(rest) == len(places):
            raise ConflictException("The breakpoint has been removed in the meantime.")
        return rest

    breakpoints.change_breakpoints(execution, change, _actor(request))
    return "The breakpoint is removed."


def _continue(request: HtmxRequest, execution: Execution, *, way: str = "") -> str:
    """Continue a line. ``way``: its next stop: ``step``, ``into`` or ``run_to``."""
    number, sent = _sent_line(request)
    line = _line(execution, number)
    edits: dict[str, Any] = {
        name: _unmasked_edit(execution, sent[name], before)
        for name, before in (
            ("input", line.input),
            ("variables", line.own_variables),
            ("output", line.halt.output),
        )
        if name in request.POST  # the form shows what can be edited
    }

    stops: dict[str, Any] = {way: sent["run_to"] if way == "run_to" else True} if way else {}
    if way == "run_to" and not sent["run_to"]:
        raise ValidationException("Select the state to run to.")

    def make(by: str) -> engine.ReleaseMessage:
        return engine.Release(number, by, **edits, **stops)

    state = breakpoints.release_line(execution, number, make, _WAYS[way], _actor(request))
    return f"{state} steps." if way else f"{state} continues."


def _answer(request: HtmxRequest, execution: Execution, *, fails: bool) -> str:
    number, sent = _sent_line(request)

    def make(by: str) -> engine.ReleaseMessage:
        if fails:
            return engine.AnswerTask(number, by, None, sent["error"], sent["cause"])
        return engine.AnswerTask(number, by, _without_mask(sent["output"]))

    state = breakpoints.release_line(execution, number, make, "answer", _actor(request))
    return f"{state} is answered."


def _skip(request: HtmxRequest, execution: Execution) -> str:
    number, sent = _sent_line(request)

    def make(by: str) -> engine.ReleaseMessage:
        return engine.Skip(number, _without_mask(sent["output"]), by)

    state = breakpoints.release_line(execution, number, make, "skip", _actor(request))
    return f"{state} is skipped."


def _fail(request: HtmxRequest, execution: Execution) -> str:
    number, sent = _sent_line(request)

    def make(by: str) -> engine.ReleaseMessage:
        return engine.FailState(number, sent["error"], sent["cause"], by)

    state = breakpoints.release_line(execution, number, make, "fail", _actor(request))
    return f"{state} has failed."


def _sent_line(request: HtmxRequest) -> tuple[int, dict[str, Any]]:
    sent = LineForm(request.POST).values
    number = sent["halt"]
    if not number.isdecimal() or not number.isascii():
        raise ValidationException(f"halt: {number!r} is not the number of a line")
    return int(number[:9]), sent


def _line(execution: Execution, number: int) -> engine.HaltedLine:
    shown = breakpoints.debugged(execution)
    lines = shown.lines if shown is not None else ()
    line = next((line for line in lines if line.number == number), None)
    if line is None:
        raise ConflictException("The line has continued in the meantime.")
    return line


def _unmasked_edit(execution: Execution, sent: str, before: str) -> str | None:
    """Return an edited text with real values in place of masks; None if unchanged."""
    shown = masked_execution(execution).mask.payload(before)
    if sent == shown.replace("\r\n", "\n"):
        return None
    if mask.MASK not in sent:
        return sent
    return _without_mask(mask.fill_mask(sent, shown, before), before)


def _without_mask(text: str, before: str = "") -> str:
    """Return a text for the execution; raise ValidationException if it contains a mask.

    ``before``: the stored text, which may contain the same word.
    """
    if mask.MASK in text and mask.MASK not in before:
        raise ValidationException(
            f"{mask.MASK} stands for a hidden value that is not known at this place. Enter a value."
        )
    return text


def _actor(request: HtmxRequest) -> Any:
    return actor_of(scope_of(request))


_ACTS: dict[str, Callable[[HtmxRequest, Execution], str]] = {
    "add": _set_place,
    "remove": _remove,
    "continue": _continue,
    "step": partial(_continue, way="step"),
    "into": partial(_continue, way="into"),
    "run-to": partial(_continue, way="run_to"),
    "answer": partial(_answer, fails=False),
    "answer-error": partial(_answer, fails=True),
    "skip": _skip,
    "fail": _fail,
}
