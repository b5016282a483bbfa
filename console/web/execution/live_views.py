"""Answer the polls of an execution's page with what changed since the reader looked.

A tick carries changes, not pages: new event rows, the states that changed, the words of the
summary, as out-of-band pieces, and the next poller with the new cursor. Nothing new is a 204. After
the end a page asks seldom, and only if the execution can be redriven: somebody else may do that.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe
from django_htmx.http import trigger_client_event

import engine
from console.db import clock
from console.statuses import ExecutionStatus
from console.store.machines.published import executed_revision
from console.web.core.scope import render, scope_of
from console.web.execution import audit_trail, iterations, parent_execution, steps, waiting
from console.web.execution.child_signs import child_signs
from console.web.execution.note_stamp import note_stamp
from console.web.execution.page_parts import (
    base_context,
    ending_context,
    ending_stamp,
    facts_context,
    failed_children,
    painted_context,
    panel_context,
    past_context,
)
from console.web.execution.taken_ways import taken_ways
from console.web.execution.time_machine import asked_event, open_trace_at, past_ms
from console.web.graph.bounds import bound_graph
from console.web.graph.folding import states_inside
from console.web.history import event_table
from console.web.history.event_filter import EventFilter
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, QueryDict

    from console.models import Execution
    from console.web.execution.folded_groups import FoldedGroup
    from console.web.execution.iterations import MapRuns, ShownIteration
    from console.web.execution.panel import Panel
    from engine import Trace

MOST_REPAINTED = 300
"""Of how many states inside Maps a choice repaints the graph; beyond, a reload does it."""

LEAST_GROWTH_MS, GROWTH = 2_000, 50
"""The bars of a running execution are drawn anew when it has lasted 1/50 longer, and 2 s."""


@require_safe
def execution_changes(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Answer the poll of an execution's page.

    ``after``: the last event the page knows. ``ended``: it knows that the execution has ended, with
    so many redrives. ``maps``: what it knows of its Map Runs, "" if nothing of them changes.
    """
    execution = scope_of(request).execution(machine_name, execution_name)
    cursor = _number(request.GET.get("after", ""))
    context = base_context(execution, machine_name) | _ending_known(execution, request.GET)
    context["ending_changed"] = True
    over, seen_ended = context["over"], context["seen_ended"]
    known = over and request.GET.get("ended") == str(execution.redrive_count)
    if known and not request.GET.get("maps"):
        return HttpResponse(status=204)
    try:
        with open_trace(execution) as trace:
            context["note_changed"] = request.GET.get("note", "") != note_stamp(execution)
            maps = iterations.map_runs_of_execution(execution, trace)
            counted = maps is not None and maps.stamp != request.GET.get("maps", "")
            beaten = _heartbeats_changed(execution, request.GET)
            grown = _bars_are_due(execution, request.GET)
            ended = context["ending_is_news"] = (over or seen_ended) and not known
            news = ended or context["note_changed"] or counted or beaten or grown
            if trace.last == cursor and not news:
                return HttpResponse(status=204)
            context |= painted_context(execution, trace, request.GET, maps=maps) | ending_context(
                execution, trace
            )
            context["child_failures"] = failed_children(execution, trace, maps) if over else None
            known_stamp = request.GET.get("ending", "")
            context["ending_stamp"] = ending_stamp(execution, context, known_stamp)
            context["ending_changed"] = ended or context["ending_stamp"] != known_stamp
            whole = not request.GET.get("iteration")
            context |= waiting.waiting_context(execution, whole=whole)
            context["child_signs"] = child_signs(execution, trace)
            changed = _changed_states(trace, cursor, counted=counted)
            if beaten:
                beating = waiting.states_with_heartbeats(context["waiting"])
                changed |= {trace.graph.by_name.get(name, "") for name in beating} - {""}
            context["paint"] = _paint_json(trace, changed, context)
            context["cursor"] = trace.last
            context["step_changed"] = trace.graph.by_name.get(context["chosen"]) in changed
    except engine.DefinitionError:
        context["cursor"] = event_table.last_event_id(execution)
    rows = _new_rows(execution, cursor, context["cursor"], request.GET)
    context["rows"] = rows
    context["shown"] = _number(request.GET.get("shown", "")) + len(rows)
    context["more"] = _more_events_text(rows, context, request.GET)
    context["other_visit"] = _shows_other_visit(context.get("panel"), request.GET)
    _forget_unread_tables(context, request.GET)
    context["rows_changed"] = _rows_changed(context, request.GET)
    context["bars_now"] = context.get("tree") is not None and context["timeline"] is not None
    if over or seen_ended or context.get("panel") is None:
        context |= facts_context(execution)
    if "waiting" not in context:
        context |= waiting.waiting_context(execution)
    context["activity"] = audit_trail.audit_trail_of(execution)
    response = render(request, "execution/_live_update.html", context)
    return trigger_client_event(response, "paint", after="swap")


def _ending_known(execution: Execution, query: QueryDict) -> dict[str, Any]:
    """Return whether it has ended, and what a page needs that has shown an end before."""
    over, seen_ended = execution.status != ExecutionStatus.RUNNING, "ended" in query
    ending = {"over": over, "redriven": seen_ended and not over, "seen_ended": seen_ended}
    if not seen_ended:
        return ending
    executed = executed_revision(execution) if execution.version_arn else None
    return ending | {"executed": executed, "parent": parent_execution.parent_of(execution)}


@require_safe
def time_machine_moment(
    request: HttpRequest, machine_name: str, execution_name: str
) -> HttpResponse:
    """Answer the time machine: everything that is coloured, as it was at event ``at``."""
    execution = scope_of(request).execution(machine_name, execution_name)
    context: dict[str, Any] = {
        **base_context(execution, machine_name),
        **facts_context(execution),
        "over": True,
    }
    try:
        context |= past_context(execution, request.GET, event_table.last_event_id(execution))
    except engine.DefinitionError as error:
        raise Http404("This definition can no longer be drawn.") from error
    _forget_unread_tables(context, request.GET)
    shown = _summaries_on_page(context)
    painted = _paint_values(shown, context["taken"], context["folded"])
    for node, summary in shown.items():
        if summary.running_since is not None:
            painted["nodes"][node]["under"] = steps.line_at(summary, context["past_ms"])
    context["paint"] = json.dumps(painted)
    response = render(request, "execution/_time_machine_update.html", context)
    return trigger_client_event(response, "paint", after="swap")


def _forget_unread_tables(context: dict[str, Any], query: QueryDict) -> None:
    """Drop the steps of a page that has none yet: it reads them when the reader turns to them."""
    if not query.get("seen_rows"):
        context["tree"] = None


def _bars_are_due(execution: Execution, query: QueryDict) -> bool:
    """Tell whether the timeline that the page shows has grown enough to be drawn anew."""
    drawn = _number(query.get("drawn", ""))
    if query.get("view") != "timeline" or not drawn:
        return False
    now = clock.now_ms()
    return now - drawn >= max(LEAST_GROWTH_MS, (now - execution.start_ms) // GROWTH)


def _heartbeats_changed(execution: Execution, query: QueryDict) -> bool:
    """Tell whether a worker has sent a heartbeat. A page that awaits none does not ask."""
    known = query.get("beats", "")
    return bool(known) and waiting.heartbeat_stamp(execution) != known


def _summaries_on_page(context: dict[str, Any]) -> dict[str, steps.StepSummary]:
    """Return the summaries of the states that the page may show: in the graph or as a row."""
    known: dict[str, steps.StepSummary] = context["summaries"]
    shown = {node.id for node in bound_graph(context["graph"]).nodes}
    if context["tree"] is not None:
        shown |= {row.id for row in context["tree"]["rows"]}
    return {node: summary for node, summary in known.items() if node in shown}


def _new_rows(
    execution: Execution, cursor: int, last: int, query: QueryDict
) -> tuple[event_table.EventRow, ...]:
    """Return rows to append, none if the page on display is not the last one or is full."""
    room = event_table.MOST_ROWS - _number(query.get("shown", ""))
    if query.get("follow") != "1" or room <= 0:
        return ()
    newest_shown = max(cursor, _number(query.get("seen", "")))
    return event_table.events_between(execution, EventFilter.of(query), newest_shown, last, room)


def _more_events_text(
    rows: tuple[event_table.EventRow, ...], context: dict[str, Any], query: QueryDict
) -> str:
    """Return the words that lead to events this page does not show."""
    if query.get("follow") == "1" and context["shown"] < event_table.MOST_ROWS:
        return ""
    newest = rows[-1].id if rows else _number(query.get("seen", ""))
    return "Show the newest events" if context["cursor"] > newest else ""


def _changed_states(trace: Trace, cursor: int, *, counted: bool) -> set[str]:
    """Return the states to repaint: those that something happened to since event ``cursor``.

    A distributed Map changes with the counts of its Map Runs (``counted``), too, and what is inside
    of it when it is entered.
    """
    changed = trace.changes(cursor)
    if counted:
        changed |= {node.id for node in trace.graph.nodes if node.distributed}
    outside = iterations.enclosing_maps(trace.graph)
    return changed | {node for node, owner in outside.items() if owner in changed}


def _paint_json(trace: Trace, changed: set[str], context: Mapping[str, Any]) -> str:
    """Return as JSON what the script needs to repaint.

    That is: the changed states, the groups they may be folded into, all ways taken, and the event
    types one can filter by.
    """
    summaries, folded = context["summaries"], context["folded"]
    inside = states_inside(trace.graph) if folded else {}
    changed |= {owner for owner, nodes in inside.items() if not changed.isdisjoint(nodes)}
    shown = {node: summary for node, summary in summaries.items() if node in changed}
    painted = _paint_values(shown, context["taken"], folded)
    durations = (context.get("timeline") or {}).get("durations", {})
    for node, values in painted["nodes"].items():
        if node in durations:
            values["drawn"] = durations[node].paint
        countdown = context["countdowns"].get(summaries[node].node.name)
        if countdown and values["since"]:
            values["countdown"] = countdown
        if sign := context["child_signs"].get(node):
            values["child"] = {"href": sign.href, "label": sign.label, "words": sign.words}
    return json.dumps({**painted, "types": sorted(trace.types)})


def _repaint_json(trace: Trace, maps: MapRuns | None, shown: ShownIteration | None) -> str:
    """Return as JSON the states inside inline Maps, and the lines that were taken.

    Both are as the chosen iteration or all of them left them.
    """
    graph = trace.graph
    inside = {
        node.id
        for owner in graph.nodes
        if owner.type == "Map" and not owner.distributed
        for node in iterations.nodes_within(graph, owner)
    }
    if not inside or len(inside) > MOST_REPAINTED:
        return ""
    summaries = steps.step_summaries(trace, inside, maps, shown)
    return json.dumps(_paint_values(summaries, taken_ways(trace, maps, shown), {}))


def _paint_values(
    summaries: dict[str, steps.StepSummary], taken: set[str], folded: Mapping[str, FoldedGroup]
) -> dict[str, Any]:
    nodes = {
        node: {
            "tone": summary.status.tone,
            "word": summary.status.word,
            "under": summary.under,
            "badge": summary.badge,
            **({"badge_place": summary.badge_place} if summary.badge else {}),
            "label": summary.label,
            "spent": summary.duration,
            "worked": summary.worked,
            "since": summary.running_since,
            "worked_since": summary.worked_since,
            "entered": summary.entered_ms,
            "left": summary.left_ms,
            "visits": "-" if summary.in_children else summary.visits,
            "retries": summary.retries,
            "note": summary.note,
            **({"children": summary.children} if summary.children else {}),
            **({"folded": folded[node].paint} if node in folded else {}),
        }
        for node, summary in summaries.items()
    }
    return {"nodes": nodes, "taken": sorted(taken)}


def _rows_changed(context: Mapping[str, Any], query: QueryDict) -> bool:
    """Tell whether the page has other rows, such as before a Map had iterations."""
    tree = context.get("tree")
    return tree is not None and tree["stamp"] != query.get("seen_rows", "")


def _shows_other_visit(shown: Panel | None, query: QueryDict) -> bool:
    """Tell whether the panel moved on to another visit of its state, or to another state."""
    name = shown.node.name if shown is not None else ""
    if name != query.get("seen_step", name):
        return True
    return shown is not None and query.get("seen_visit", "") != shown.place_key


@require_safe
def step_panel(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Answer with the panel of a step."""
    execution = scope_of(request).execution(machine_name, execution_name)
    name = request.GET.get("step", "")
    try:
        with open_trace_at(execution, asked_event(request.GET)) as trace:
            maps = (
                None
                if asked_event(request.GET)
                else iterations.map_runs_of_execution(execution, trace)
            )
            shown = panel_context(execution, trace, request.GET, maps)
            shown["repaint"] = _repaint_json(trace, maps, shown["shown_iteration"])
            shown["past_ms"] = past_ms(execution, trace) if asked_event(request.GET) else None
    except engine.DefinitionError as error:
        raise Http404("This definition can no longer be drawn.") from error
    if name and shown["panel"] is None:
        raise Http404(f"The definition has no state “{name}”.")
    context = {
        **base_context(execution, machine_name),
        **facts_context(execution),
        **waiting.waiting_context(execution),
        **shown,
    }
    return render(request, "execution/_panel.html", context)


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else 0
