"""Answer the page that shows two executions side by side."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.models import Execution
from console.statuses import ExecutionStatus
from console.web.core.scope import Scope, render, scope_of
from console.web.execution import compare as comparing
from console.web.execution.root_cause import root_cause_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

LAST_SUCCESS = "last-success"
"""In the address, in place of an ARN: the newest execution of the same machine that succeeded."""
MOST_CHOICES = 25
"""How many executions the form offers to choose from."""
_UNREAD = ("input", "output", "cause", "error", "trace_header")


@require_safe
def compare_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/compare/?a=<arn>&b=<arn>``; marked rows and "last success" lead there."""
    scope = scope_of(request)
    arns = {name: _asked_arn(request, name) for name in ("a", "b")}
    marked = request.GET.getlist("x")
    if marked:
        return _from_rows(request, scope, marked)
    executions = {name: _execution(scope, arn) for name, arn in arns.items()}
    if executions["a"] is not None and arns["b"] == LAST_SUCCESS:
        executions["b"] = _last_success(executions["a"])
        if executions["b"] is not None:
            return redirect(_address(executions["a"], executions["b"]))
    problems = _problems(arns, executions)
    for side, wanted in (("a", "Choose an execution."), ("b", "Choose the other execution.")):
        if side in request.GET and not arns[side]:  # the form was sent without it
            problems[side] = wanted
    a, b = executions["a"], executions["b"]
    if problems or a is None or b is None:
        return _render_choice(request, scope, arns, problems, a)
    differing = request.GET.get("only") == "differing"
    context = {"section": "executions", **_compared_context(a, b, differing=differing)}
    return render(request, "execution/compare.html", context)


def _asked_arn(request: HttpRequest, name: str) -> str:
    """Return the first one that was given: the form has a field to type and rows to choose from."""
    texts = (text.strip() for text in request.GET.getlist(name))
    return next((text for text in texts if text), "")[:600]


def _render_choice(
    request: HttpRequest,
    scope: Scope,
    arns: dict[str, str],
    problems: dict[str, str],
    a: Execution | None = None,
) -> HttpResponse:
    """Answer the form with the newest executions to choose from, of one machine if that is known.

    ``a``: the one that was chosen already.
    """
    rows = Execution.objects.filter(project=scope.project, map_run=None)
    machine = request.GET.get("machine", "")[:80]
    if a is not None and a.state_machine_id is not None:
        rows = rows.filter(state_machine=a.state_machine_id).exclude(pk=a.pk)
    elif machine:
        rows = rows.filter(state_machine__arn=scope.arn("stateMachine", machine))
    context = {
        "section": "executions",
        "asked": arns,
        "problems": problems,
        "chosen": a,
        "machine_asked": machine,
        "rows": list(rows.order_by("-start_ms", "-pk").defer(*_UNREAD)[:MOST_CHOICES]),
        "last_success": LAST_SUCCESS,
    }
    status = 422 if problems else 200
    return render(request, "execution/compare_form.html", context, status=status)


def _compared_context(a: Execution, b: Execution, *, differing: bool) -> dict[str, Any]:
    ours, theirs = comparing.walk_execution(a), comparing.walk_execution(b)
    rows = comparing.compared_rows(ours, theirs)
    fields = ("input", "output", "error", "cause")
    return {
        "a": a,
        "b": b,
        "sides": [("A", a, root_cause_of(a)), ("B", b, root_cause_of(b))],
        "divergence": comparing.find_divergence(ours, theirs),
        "rows": comparing.shown_rows(rows, differing=differing),
        "states": len(rows),
        "differing": sum(row.differs for row in rows),
        "only_differing": differing,
        "diffs": [
            comparing.diff_field(field, getattr(a, field), getattr(b, field)) for field in fields
        ],
        "same_machine": a.state_machine_arn == b.state_machine_arn,
        "same_definition": a.definition_id == b.definition_id,
        "swapped": _address(b, a),
    }


def _problems(arns: dict[str, str], executions: dict[str, Execution | None]) -> dict[str, str]:
    problems = {
        name: "There is no execution with this ARN."
        for name, arn in arns.items()
        if arn and executions[name] is None
    }
    if arns["b"] == LAST_SUCCESS:
        problems.pop("b", None)
        if executions["a"] is not None:
            problems["b"] = "No other execution of this state machine has succeeded."
    if executions["a"] is not None and executions["a"] == executions["b"]:
        problems["b"] = "This is the same execution."
    return problems


def _from_rows(request: HttpRequest, scope: Scope, marked: list[str]) -> HttpResponse:
    numbers = [int(number) for number in marked if re.fullmatch(r"\d{1,15}", number)]
    pair = list(Execution.objects.filter(project=scope.project, pk__in=numbers[:3]).order_by("pk"))
    if len(pair) == 2 == len(marked):  # noqa: PLR2004 - two sides
        return redirect(_address(pair[1], pair[0]))
    problem = (
        f"Select two rows to compare. {len(marked)} {'is' if len(marked) == 1 else 'are'} selected."
    )
    return _render_choice(request, scope, {}, {"a": problem})


def _address(a: Execution, b: Execution) -> str:
    return f"{reverse('compare')}?{urlencode({'a': a.arn, 'b': b.arn})}"


def _execution(scope: Scope, arn: str) -> Execution | None:
    rows = Execution.objects.select_related("definition", "state_machine")
    execution = rows.filter(project=scope.project, arn=arn).first() if arn else None
    return execution and scope.shown(execution)


def _last_success(of: Execution) -> Execution | None:
    if of.state_machine_id is None:
        return None
    rows = Execution.objects.filter(
        state_machine=of.state_machine_id, status=ExecutionStatus.SUCCEEDED
    )
    return rows.exclude(pk=of.pk).order_by("-start_ms", "-pk").first()
