"""Views of execution lists, and of the polls that update them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from console.feature import Hook, hooked
from console.models import Execution
from console.store.executions.last_states import open_states
from console.web.core.scope import Scope, render, scope_of
from console.web.search import filter_words, lists, row_facts, scan
from console.web.search.filters import ExecutionFilters
from console.web.search.payload_columns import column_values

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import StateMachine
    from console.web.core.scope import HtmxRequest


@require_safe
def execution_list(request: HtmxRequest) -> HttpResponse:
    """Show ``/executions/``: of all state machines."""
    scope = scope_of(request)
    if address := list_redirect(request, None):
        return redirect(address)
    page = scan.find_executions(scope, None, ExecutionFilters.of(request.GET))
    context = {
        "section": "executions",
        "executions": page,
        "updates_url": reverse("executions-updates"),
        "with_machine": True,
        "machine_names": lists.machine_names(scope),
    }
    return render_execution_list(request, "search/execution_list.html", context)


def list_redirect(request: HttpRequest, machine: StateMachine | None) -> str:
    """Return the URL that a list without filters opens instead; "" for none."""
    addresses = (find(scope_of(request), request, machine) for find in hooked(Hook.LIST_REDIRECT))
    return next(filter(None, addresses), "")


def render_execution_list(
    request: HtmxRequest, template: str, context: dict[str, Any]
) -> HttpResponse:
    """Show a page of ``executions``; with a script, the shown URL omits empty fields."""
    filters: ExecutionFilters = context["executions"].filters
    context |= {
        "facts": row_facts.read_row_facts(scope_of(request).project, context["executions"].rows),
        "refusals": row_facts.read_refusals(scope_of(request), context["executions"].rows),
        "values": column_values(
            scope_of(request).project, context["executions"].rows, filters.columns
        ),
        "paths": filters.columns,
        "any_paused": any(hasattr(each, "pause") for each in context["executions"].rows),
        "chips": filter_words.filter_chips(filters),
        "understood": filter_words.understood_words(filters),
        "hints": filter_words.search_hints(filters),
        "match_count": scan.count_matching(
            scope_of(request), context.get("machine"), context["executions"]
        ),
    }
    for add in hooked(Hook.EXECUTION_LIST):
        context |= add(scope_of(request), context.get("machine"), filters, request.GET)
    response = render(request, template, context, status=422 if filters.problems else 200)
    if request.htmx:
        region = scope_of(request).region if scope_of(request).elsewhere else ""
        # a machine's page without an address would redirect
        own = "" if filters.address or not context.get("opens_view") else "view="
        parts = (filters.address, own, region and f"region={region}")
        query = "&".join(part for part in parts if part)
        push_url(response, f"{request.path}?{query}" if query else request.path)
    return response


@require_safe
def execution_list_changes(request: HttpRequest) -> HttpResponse:
    """Answer a poll of the list of all executions."""
    return render_list_changes(request, scope_of(request), None)


def render_list_changes(
    request: HttpRequest, scope: Scope, machine: StateMachine | None
) -> HttpResponse:
    """Answer a poll of a list: changed rows, and the number of newer executions."""
    filters = ExecutionFilters.of(request.GET)
    newest = _number(request.GET.get("newest", ""))
    # with the oldest first, new executions are on the last page
    count = 0 if filters.sort else scan.count_newer(scope, machine, filters, newest)
    running = [int(number) for number in re.findall(r"\d{1,15}", request.GET.get("running", ""))]
    pairs = re.findall(r"(\d{1,15}):([\d-]{0,40})", request.GET.get("notes", ""))
    stamps = {int(number): stamp for number, stamp in pairs}
    done = lists.changed_executions(scope, running, stamps) if running or stamps else []
    done += _moved_on(scope, request.GET.get("entered", ""), {execution.pk for execution in done})
    if not done and str(count) == request.GET.get("count", "0"):
        return HttpResponse(status=204)
    context = {
        "rows": done,
        "facts": row_facts.read_row_facts(scope.project, done),
        "refusals": row_facts.read_refusals(scope, done),
        "values": column_values(scope.project, done, filters.columns),
        "paths": filters.columns,
        "count": count,
        "newest": newest,
        "with_machine": machine is None,
    }
    return render(request, "search/_new_executions.html", context)


def _moved_on(scope: Scope, shown: str, listed: set[int]) -> list[Execution]:
    """Return running executions that left the state shown in a list, except known ones.

    ``shown``: execution number and number of the event that entered its state, ``7:12,8:3``.
    """
    pairs = re.findall(r"(\d{1,15}):(\d{1,15})", shown)[: scan.PAGE]
    entered = {int(number): int(event) for number, event in pairs if int(number) not in listed}
    current = open_states(list(entered))
    moved = [number for number, (_, event) in current.items() if event != entered[number]]
    rows = Execution.objects.filter(project=scope.project, pk__in=moved)
    rows = rows.select_related("note", "pause", "halted", "state_machine").defer(*scan.BARE)
    return list(rows) if moved else []


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else 0
