"""Views of the list of state machines, and of one: executions, definition, deletion."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.cli.machine_formats import FORMATS
from console.feature import Hook, hooked
from console.integrations import mocks
from console.integrations.targets import MachineKey
from console.samples import MACHINES, PROJECT
from console.statuses import ExecutionStatus, MachineStatus
from console.store.machines import drafts, revisions
from console.store.machines import machines as store
from console.store.state import pause
from console.web.core import json_view
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.replay_point import replay_point
from console.web.graph import definition_text, svg
from console.web.graph.graph_view import GraphView
from console.web.machines.drift import drift_of
from console.web.search import lists, saved_view_list, scan
from console.web.search.filters import ExecutionFilters
from console.web.search.list_views import render_execution_list, render_list_changes

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import DefinitionDraft, StateMachine
    from console.web.core.scope import HtmxRequest, Scope

MOST_BESIDE_A_LIST = 150
"""How many states a graph may have that stands beside a list."""
WIDEST_BESIDE_A_LIST = 480
"""Pixels: the groups of a wider graph are folded, so that its names can be read beside a list."""
LEAST_FOLDED = 4
"""With fewer boxes left, a folded graph says nothing: the groups stay open."""


@require_safe
def machine_list(request: HttpRequest) -> HttpResponse:
    """Show ``/machines/``: all state machines by name."""
    scope = scope_of(request)
    search, after = request.GET.get("q", "")[:80], request.GET.get("after", "")[:80]
    tag = request.GET.get("tag", "")[:400]
    asked = request.GET.get("sort", "")
    sort = asked if asked in lists.SORTS else "name"
    # list samples apart from the project's own state machines
    apart = False if scope.project.name != PROJECT else None
    context: dict[str, Any] = {"section": "machines", "search": search, "after": after}
    context |= {
        "tag": tag,
        "sort": sort,
        "sorts": _next_sorts(sort),
        "draft": open_draft(scope, None),
    }
    if apart is not None and not after:
        own, samples = lists.list_beside_samples(scope, search=search, sort=sort, tag=tag)
        context |= {"machines": own, "samples": samples}
    else:
        context["machines"] = lists.list_machines(
            scope, search=search, after=after, sort=sort, samples=apart, recent=True, tag=tag
        )
    return render(request, "machines/machine_list.html", context)


def _next_sorts(sort: str) -> dict[str, str]:
    """Return the next sort key of each heading: times start descending, a second click reverses."""
    first = {"name": "name", "started": "-started", "created": "-created"}
    turned = {"name": "-name", "started": "started", "created": "created"}
    return {key: turned[key] if sort == order else order for key, order in first.items()}


@require_safe
def machine_page(request: HtmxRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/``: its executions."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    address = saved_view_list.default_view(scope, request, machine)
    if address:
        return redirect(address)
    filters = ExecutionFilters.of(request.GET)
    context = machine_context(machine) | {
        "tab": "executions",
        "draft": open_draft(scope, machine),
        "executions": scan.find_executions(scope, machine, filters),
        "saved": saved_view_list.saved_view_list(
            scope, machine, filters, request.GET.get("view", "")
        ),
        "updates_url": reverse("machine-updates", args=[machine.name]),
        "with_machine": False,
        "input": suggested_input(machine.name),
        "has_paused": pause.has_paused_executions(machine),
        "machine_hints": [hint for find in hooked(Hook.MACHINE_HINT) if (hint := find(machine))],
    }
    return render_execution_list(
        request, "machines/page.html", context | graph_beside(request, machine)
    )


def graph_beside(request: HttpRequest, machine: StateMachine) -> dict[str, Any]:
    """Return the graph beside a list, {} if it is too large.

    It leads down and has the names only. Each state leads to its place in the definition.
    """
    text, view = machine.definition.text, GraphView(plain=True, compact=True)
    shown = definition_text.picture_context(text, machine.type, view)
    if shown["picture"] is None or len(shown["graph"].nodes) > MOST_BESIDE_A_LIST:
        return {}
    if shown["picture"].width > WIDEST_BESIDE_A_LIST:
        folded = svg.definition_picture(text, machine.type, replace(view, folds=True))
        shown |= {"picture": folded} if len(folded.boxes) >= LEAST_FOLDED else {}
    definition = reverse("definition", args=[machine.name])
    jump = f"{definition}?{urlencode({'region': scope_of(request).region, 'state': ''})}"
    return {key: shown[key] for key in ("picture", "graph_view")} | {"jump": jump}


@require_safe
def machine_execution_changes(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer a poll of a state machine's list of executions."""
    scope = scope_of(request)
    return render_list_changes(request, scope, scope.machine(machine_name))


@require_safe
def definition_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/definition/``: text and graph.

    ``?execution=``: the failed execution for whose sake the reader has changed the definition.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    context = machine_context(machine) | {"tab": "definition"}
    context |= definition_text.definition_context(
        request, machine.definition.text, machine.type, scope.region
    )
    saves = revisions.list_revisions(machine, limit=1)
    context |= {
        "drift": drift_of(machine),
        "formats": FORMATS,
        "revision": saves[0].number if saves else None,
        "draft": open_draft(scope, machine),
    }
    if failed := request.GET.get("execution", ""):
        execution = scope.own_execution(machine_name, failed)
        context |= {"failed_execution": execution, "replay_point": replay_point(execution)}
    return render(request, "machines/definition.html", context)


@require_http_methods(["GET", "POST"])
def delete_machine(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Ask once, then delete; running executions are aborted at their next transition."""
    scope = scope_of(request)
    require(scope, "DeleteStateMachine")
    machine = scope.machine(machine_name)
    if request.method == "GET":
        running = machine.execution_set.filter(status=ExecutionStatus.RUNNING).count()
        return render(
            request, "machines/delete.html", machine_context(machine) | {"running": running}
        )
    store.delete_machine(scope.project, machine.arn, actor_of(scope))
    if (
        type(machine).objects.filter(pk=machine.pk).exists()
    ):  # it goes when its last execution has ended
        return redirect("machine", machine.name)
    messages.success(request, f"{machine.name} was deleted.")
    return redirect("machines")


def open_draft(scope: Scope, machine: StateMachine | None) -> DefinitionDraft | None:
    """Return the reader's unsaved text in the editor, None without one.

    ``machine``: None for one that is not created yet.
    """
    if not scope.may("UpdateStateMachine" if machine else "CreateStateMachine"):
        return None
    if machine is not None and machine.status != MachineStatus.ACTIVE:
        return None
    arn = machine.arn if machine else ""
    draft = drafts.find_draft(scope.project, scope.principal.user, arn)
    if draft is None or machine is None:
        return draft
    return None if _differ_in_space_alone(draft.text, machine.definition.text) else draft


def _differ_in_space_alone(text: str, other: str) -> bool:
    """Whether two definitions differ only in whitespace: the editor reformats one-line texts."""
    try:
        return json_view.is_equal_but_for_spaces(text, other)
    except (ValueError, RecursionError):  # half of a definition
        return False


def machine_context(machine: StateMachine) -> dict[str, Any]:
    """Return the shared context of a state machine's pages."""
    text = machine.definition.text
    try:
        parsed = engine.parse_stored(text, machine.type)
        comment, limit = parsed.comment, parsed.timeout_seconds
    except engine.DefinitionError:  # stored by a version that checked less
        comment, limit = None, None
    sample = next((each for each in MACHINES if each.name == machine.name), None)
    if sample is not None and sample.definition == text:
        comment = sample.description
    return {
        "section": "machines",
        "machine": machine,
        "comment": comment,
        "machine_limit": limit,
        "cases": mocks.test_cases(MachineKey(machine.project.name, machine.name)),
        "sha": hashlib.sha256(text.encode()).hexdigest()[:12],
    }


def suggested_input(name: str) -> str:
    """Return a sample's input, else an empty object."""
    return next((sample.input for sample in MACHINES if sample.name == name), "{}")
