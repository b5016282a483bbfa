"""View that shows two executions side by side."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef
from django.http import QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.feature import Hook, hooked
from console.features.compare import compare as comparing
from console.features.compare.divergence import find_divergence
from console.masking.masked_execution import masked_execution
from console.models import Execution, StateMachine
from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.store.executions import faults
from console.web.core.scope import Scope, choose, render, scope_of
from console.web.execution.banner import successes_beside
from console.web.execution.root_cause import root_cause_of
from console.web.search import scan
from console.web.search.filters import ExecutionFilters
from console.web.search.lists import machine_names
from console.web.search.row_facts import read_row_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest, HttpResponse

LAST_SUCCESS = "last-success"
"""The word in an address, in place of an ARN, for the latest successful execution of the same
machine.
"""
MOST_SUGGESTED = 3
"""The number of failures that the page suggests."""
_MOST_LOOKED_AT = 10


@require_safe
def compare_page(request: HttpRequest) -> HttpResponse:
    """Show ``/compare/?a=<arn>&b=<arn>``.

    With ``choose`` the list to choose from, whatever was chosen already.
    """
    scope = scope_of(request)
    arns = {name: _asked_arn(request, name) for name in ("a", "b")}
    marked = request.GET.getlist("x")
    if marked:
        return _from_rows(request, scope, marked)
    executions = {name: _execution(scope, arn) for name, arn in arns.items()}
    if request.GET.get("choose"):
        problems = _unknown(arns, executions)
        return _render_choice(request, scope, arns, problems, executions)
    if executions["a"] is not None and arns["b"] == LAST_SUCCESS:
        executions["b"] = successes_beside(executions["a"]).first()
        if executions["b"] is not None:
            return redirect(_address(executions["a"], executions["b"]))
    problems = _problems(arns, executions)
    for side, problem in (("a", "Choose an execution."), ("b", "Choose the other execution.")):
        if side in request.GET and not arns[side]:  # the form was sent without it
            problems[side] = problem
    a, b = executions["a"], executions["b"]
    if problems or a is None or b is None:
        return _render_choice(request, scope, arns, problems, executions)
    differing = choose(request.GET, "only", ["differing"]) == "differing"
    context = {"section": "executions", **_compared_context(a, b, differing=differing)}
    return render(request, "compare/compare.html", context)


def _asked_arn(request: HttpRequest, name: str) -> str:
    """Return the first non-empty ARN: the form has a text field and rows to select."""
    texts = (text.strip() for text in request.GET.getlist(name))
    return next((text for text in texts if text), "")[:600]


def _render_choice(
    request: HttpRequest,
    scope: Scope,
    arns: dict[str, str],
    problems: dict[str, str],
    chosen: dict[str, Execution | None],
) -> HttpResponse:
    """Show the list to select executions from.

    With ``all`` the list is of all machines.
    """
    a = chosen["a"]
    query = QueryDict(mutable=True) if request.GET.get("clear") else request.GET.copy()
    machine = a.state_machine if a is not None else None
    asks_all = any(request.GET.get(name) for name in ("all", "clear"))
    narrowed = machine is not None and machine.region == scope.region and not asks_all
    if machine is not None and narrowed and not query.get("machine"):
        query["machine"] = machine.name
    page = scan.find_executions(scope, None, ExecutionFilters.of(query))
    last = successes_beside(a).first() if a is not None else None
    begins = not any(arns.values()) and not problems and not page.filters.active
    context = {
        "section": "executions",
        "asked": arns,
        "problems": problems,
        "chosen": chosen,
        "filters": page.filters,
        "page": page,
        "facts": read_row_facts(scope.project, page.rows),
        "asks_all": asks_all,
        "same_machine": machine if machine and page.filters.machine == machine.name else None,
        "rows": [row for row in page.rows if a is None or row.pk != a.pk],
        "suggested": _failures_beside_success(page.rows) if begins else [],
        "machine_names": machine_names(scope),
        "last_success": LAST_SUCCESS,
        "last_success_of_a": last,
        "offers_last_success": last or (a is None and _has_success(scope, page.filters.machine)),
    }
    status = 422 if problems or page.filters.problems else 200
    return render(request, "compare/compare_form.html", context, status=status)


def _has_success(scope: Scope, machine: str) -> bool:
    """Whether the list's only state machine has a successful execution."""
    of_list = {"state_machine__name": machine, "state_machine__region": scope.region}
    rows = Execution.objects.filter(project=scope.project, status=ExecutionStatus.SUCCEEDED)
    return bool(machine) and rows.filter(**of_list).exists()


def _compared_context(a: Execution, b: Execution, *, differing: bool) -> dict[str, Any]:
    ours, theirs = comparing.walk_execution(a), comparing.walk_execution(b)
    rows = comparing.compared_rows(ours, theirs)
    fields = ("input", "output", "error", "cause")
    divergence = find_divergence(ours, theirs)
    return {
        "a": a,
        "b": b,
        "summaries": _summaries(a, b),
        "faults": {each.pk: _faults_of(each) for each in (a, b)},
        "sides": [("A", a, root_cause_of(a)), ("B", b, root_cause_of(b))],
        "divergence": divergence,
        "ways": [("A", a, divergence.a), ("B", b, divergence.b)] if divergence else [],
        "rows": comparing.shown_rows(rows, differing=differing),
        "total": comparing.compared_total(a, b),
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


def _summaries(a: Execution, b: Execution) -> dict[int, str]:
    """Return execution number -> summary; the others have none."""
    summaries: dict[int, str] = {}
    for find in hooked(Hook.EXECUTION_SUMMARIES):
        summaries |= find(a.project, [a.pk, b.pk])
    return summaries


def _faults_of(execution: Execution) -> str:
    """Return the injected faults of an execution in words, with hidden values masked."""
    if not execution.faults:
        return ""
    hidden = masked_execution(execution).mask
    _, planned = faults.planned_faults(execution)
    return "; ".join(hidden.words(text) for text in planned)


def _unknown(arns: dict[str, str], executions: dict[str, Execution | None]) -> dict[str, str]:
    return {
        name: "There is no execution with this ARN."
        for name, arn in arns.items()
        if arn and arn != LAST_SUCCESS and executions[name] is None
    }


def _problems(arns: dict[str, str], executions: dict[str, Execution | None]) -> dict[str, str]:
    problems = _unknown(arns, executions)
    if arns["a"] == LAST_SUCCESS:
        problems["a"] = "There is no execution with this ARN."
    if arns["b"] == LAST_SUCCESS and executions["a"] is not None:
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
    nothing = {"a": "", "b": ""}
    return _render_choice(request, scope, nothing, {"a": problem}, dict.fromkeys(nothing))


def _address(a: Execution, b: Execution) -> str:
    return f"{reverse('compare')}?{urlencode({'a': a.arn, 'b': b.arn})}"


def _execution(scope: Scope, arn: str) -> Execution | None:
    rows = Execution.objects.select_related("definition", "state_machine")
    execution = rows.filter(project=scope.project, arn=arn).first() if arn else None
    return execution and scope.shown(execution)


def _failures_beside_success(executions: Iterable[Execution]) -> list[Execution]:
    """Return each state machine's first failure among some executions, if it ever succeeded.

    At most ``MOST_SUGGESTED``, by one query.
    """
    first: dict[int, Execution] = {}
    for execution in executions:
        if execution.status in UNSUCCESSFUL and execution.state_machine_id is not None:
            first.setdefault(execution.state_machine_id, execution)
    if not first:
        return []
    of_machine = {"state_machine": OuterRef("pk"), "status": ExecutionStatus.SUCCEEDED}
    machines = StateMachine.objects.filter(
        Exists(Execution.objects.filter(**of_machine)), pk__in=list(first)[:_MOST_LOOKED_AT]
    )
    succeeded = set(machines.values_list("pk", flat=True))
    suggested = [each for machine, each in first.items() if machine in succeeded]
    return suggested[:MOST_SUGGESTED]
