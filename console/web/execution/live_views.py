"""Answer the execution page's polls with the changes since the last poll.

A response has htmx out-of-band fragments: new event rows, changed states, the summary, and the next
poller with its cursor. Without news it is a 204. After the end a page polls rarely, and only if the
execution can be redriven by somebody else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import trigger_client_event

import engine
from console.db import clock
from console.statuses import ExecutionStatus
from console.web.core.scope import render_part, scope_of
from console.web.execution import graph_part, header, iterations, steps, waiting
from console.web.execution.audit_trail import audit_trail_of
from console.web.execution.banner import (
    Banner,
    banner_of,
    banner_without_history,
    ending_stamp,
    failed_children,
)
from console.web.execution.child_signs import child_signs
from console.web.execution.note_stamp import note_stamp
from console.web.execution.page_parts import (
    PaintedParts,
    Poll,
    painted_parts,
    past_parts,
    poll_of,
)
from console.web.execution.panel import form_parameters, panel_part
from console.web.graph.graph_view import states_inside
from console.web.graph.shapes import bound_graph
from console.web.history import event_table
from console.web.history.event_filter import EventFilter
from console.web.history.traces import asked_event, open_trace, open_trace_at, past_ms

if TYPE_CHECKING:
    from django.http import HttpRequest, QueryDict

    from console.models import Execution
    from console.web.execution.iterations import MapRuns, ShownIteration
    from console.web.execution.panel import Panel
    from console.web.execution.step_tree import StepsPart
    from console.web.execution.waiting import WaitingPart
    from engine import Trace

MOST_REPAINTED = 300
"""The number of states inside Maps up to which a selection repaints the graph.

Above it, the page reloads.
"""
LEAST_GROWTH_MS, GROWTH = 2_000, 50
"""The bars of a running execution are redrawn when it has lasted 1/50 longer, and at least 2 s."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that a poll makes to a page.

    ``redriven``: the page has shown the end of the execution, which runs again. ``ending``: status,
    actions and banner changed; ``ended``: they did because the execution has ended or runs again.
    ``facts``: all facts are shown again. ``step``: the state of the panel changed; ``other_visit``:
    the panel shows another visit. ``table``: there are other rows of steps; ``bars``: the bars are
    redrawn. ``more``: the text of the link to events that the page does not show.
    """

    redriven: bool
    ending: bool
    ended: bool
    facts: bool
    note: bool
    step: bool
    other_visit: bool
    table: bool
    bars: bool
    rows: tuple[event_table.EventRow, ...]
    more: str


@dataclass(frozen=True, slots=True)
class _SeenPage:
    """The state of the polling page.

    ``ended``: it has shown an end of the execution; ``current``: this is still the last end.
    """

    cursor: int
    ended: bool
    current: bool
    maps: str
    ending_stamp: str

    @classmethod
    def of(cls, execution: Execution, query: QueryDict) -> _SeenPage:
        over = execution.status != ExecutionStatus.RUNNING
        return cls(
            cursor=_number(query.get("after", "")),
            ended="ended" in query,
            current=over and query.get("ended") == str(execution.redrive_count),
            maps=query.get("maps", ""),
            ending_stamp=query.get("ending", ""),
        )


@dataclass(frozen=True, slots=True)
class _LiveParts:
    """The current parts of the page, and the changes of the trace."""

    header: header.Header
    banner: Banner
    poll: Poll
    waiting: WaitingPart
    painted: PaintedParts | None = None
    ended: bool = False
    ending: bool = True
    note: bool = False
    step: bool = False


@require_safe
def execution_changes(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Answer a poll of the execution page.

    ``after``: the last event the page knows. ``ended``: the page shows the execution as ended,
    after this number of redrives. ``maps``: the counts of Map Runs that the page shows, "" if they
    do not change.
    """
    execution = scope_of(request).execution(machine_name, execution_name)
    page_state = _SeenPage.of(execution, request.GET)
    if page_state.current and not page_state.maps:
        return HttpResponse(status=204)
    head = header.header_of(execution)
    if page_state.ended:
        head = header.with_starter(head, execution)
    try:
        with open_trace(execution) as trace:
            live = _live_parts(execution, trace, request.GET, page_state, head)
    except engine.DefinitionError:
        live = _parts_without_history(execution, head)
    if live is None:
        return HttpResponse(status=204)
    painted = live.painted
    panel = painted.panel if painted else None
    table = _table_on_page(painted, request.GET)
    context = {
        **header.base_context(execution, machine_name),
        "header": live.header,
        "banner": live.banner,
        "poll": live.poll,
        "waiting": live.waiting,
        "panel": panel,
        "payloads": None if panel and panel.shown else header.payloads_of(execution),
        "steps": table,
        "timeline": painted.timeline if painted else None,
        "activity": audit_trail_of(execution),
        "form_parameters": form_parameters(request.GET),
        "changes": _changes_of(execution, live, table, request.GET, page_state),
    }
    response = render_part(request, "execution/_live_update.html", context)
    return trigger_client_event(response, "paint", after="swap")


def _live_parts(
    execution: Execution, trace: Trace, query: QueryDict, page_state: _SeenPage, head: header.Header
) -> _LiveParts | None:
    """Return the current parts of the page; None if nothing has changed."""
    note = query.get("note", "") != note_stamp(execution)
    maps = iterations.map_runs_of_execution(execution, trace)
    counted = maps is not None and maps.stamp != page_state.maps
    beaten = _heartbeats_changed(execution, query)
    grown = _bars_are_due(execution, query)
    poll = poll_of(execution, trace.last, maps)
    ended = (poll.over or page_state.ended) and not page_state.current
    if trace.last == page_state.cursor and not (ended or note or counted or beaten or grown):
        return None
    signs = child_signs(execution, trace)
    painted = painted_parts(execution, trace, query, maps=maps, signs=signs)
    failures = failed_children(execution, trace, maps) if poll.over else None
    banner = banner_of(execution, trace, failures)
    stamp = ending_stamp(
        *(execution, banner), unsettled=poll.unsettled, seen_stamp=page_state.ending_stamp
    )
    waits = waiting.waiting_part(execution, whole=not query.get("iteration"))
    changed = _changed_states(trace, page_state.cursor, counted=counted)
    if beaten:
        beating = waiting.states_with_heartbeats(waits.lines)
        changed |= {trace.graph.by_name.get(name, "") for name in beating} - {""}
    if note:
        changed |= {trace.graph.by_name.get(name, "") for name in waits.halts} - {""}
    changed |= _owners_of_folded(trace, painted, changed)
    return _LiveParts(
        header=header.with_figures(head, execution, trace, maps),
        banner=banner,
        poll=replace(poll, ending_stamp=stamp, paint=_paint_json(trace, changed, painted, waits)),
        waiting=waits,
        painted=painted,
        ended=ended,
        ending=ended or stamp != page_state.ending_stamp,
        note=note,
        step=trace.graph.by_name.get(painted.panel.chosen) in changed,
    )


def _parts_without_history(execution: Execution, head: header.Header) -> _LiveParts:
    """Return the parts of an execution whose definition cannot be parsed any more."""
    return _LiveParts(
        header=head,
        banner=banner_without_history(execution),
        poll=poll_of(execution, event_table.last_event_id(execution)),
        waiting=waiting.waiting_part(execution),
    )


def _changes_of(
    execution: Execution,
    live: _LiveParts,
    table: StepsPart | None,
    query: QueryDict,
    page_state: _SeenPage,
) -> Changes:
    """Return the changes from the polling page to the current parts."""
    last = live.poll.cursor or 0
    rows = _new_rows(execution, page_state.cursor, last, query)
    painted = live.painted
    return Changes(
        redriven=page_state.ended and not live.poll.over,
        ending=live.ending,
        ended=live.ended,
        facts=page_state.ended,
        note=live.note,
        step=live.step,
        other_visit=_shows_other_visit(painted.panel.shown if painted else None, query),
        # A pause or a stop at a breakpoint marks rows, and adds none.
        table=table is not None and (live.note or table.stamp != query.get("seen_rows", "")),
        bars=table is not None and painted is not None and painted.timeline is not None,
        rows=rows,
        more=_more_events_text(rows, last, query),
    )


@require_safe
def time_machine_moment(
    request: HttpRequest, machine_name: str, execution_name: str
) -> HttpResponse:
    """Answer the time machine: all colours at event ``at``."""
    execution = scope_of(request).execution(machine_name, execution_name)
    try:
        painted = past_parts(execution, request.GET, event_table.last_event_id(execution))
    except engine.DefinitionError as error:
        raise Http404("This definition can no longer be drawn.") from error
    table = _table_on_page(painted, request.GET)
    shown = _summaries_on_page(painted, table)
    values = graph_part.paint_values(shown, painted.painting.taken, painted.painting.folded)
    for node, summary in shown.items():
        if summary.running_since is not None and painted.past_ms is not None:
            values["nodes"][node]["under"] = steps.line_at(summary, painted.past_ms)
    head = header.header_of(execution)
    if execution.faults:
        head = header.with_features(head, execution, 0)
    context = {
        **header.base_context(execution, machine_name),
        "header": head,
        "poll": Poll(over=True, paint=json.dumps(values)),
        "moment": painted.moment,
        "past_ms": painted.past_ms,
        "panel": painted.panel,
        "payloads": None if painted.panel.shown else header.payloads_of(execution),
        "steps": table,
        "timeline": painted.timeline,
        "form_parameters": form_parameters(request.GET),
    }
    response = render_part(request, "execution/_time_machine_update.html", context)
    return trigger_client_event(response, "paint", after="swap")


def _table_on_page(painted: PaintedParts | None, query: QueryDict) -> StepsPart | None:
    """Return the steps; None if the page has no steps table yet."""
    return painted.steps if painted is not None and query.get("seen_rows") else None


def _bars_are_due(execution: Execution, query: QueryDict) -> bool:
    """Whether the timeline has grown enough for a new drawing."""
    drawn = _number(query.get("drawn", ""))
    if query.get("view") != "timeline" or not drawn:
        return False
    now = clock.now_ms()
    return now - drawn >= max(LEAST_GROWTH_MS, (now - execution.start_ms) // GROWTH)


def _heartbeats_changed(execution: Execution, query: QueryDict) -> bool:
    """Whether a worker has sent a heartbeat; False if none is awaited."""
    stamp = query.get("beats", "")
    return bool(stamp) and waiting.heartbeat_stamp(execution) != stamp


def _summaries_on_page(
    painted: PaintedParts, table: StepsPart | None
) -> dict[str, steps.StepSummary]:
    """Return summaries of the states on the page: in the graph or as rows."""
    shown = {node.id for node in bound_graph(painted.painting.graph).nodes}
    if table is not None:
        shown |= {row.id for row in table.rows}
    summaries = painted.painting.summaries
    return {node: summary for node, summary in summaries.items() if node in shown}


def _new_rows(
    execution: Execution, cursor: int, last: int, query: QueryDict
) -> tuple[event_table.EventRow, ...]:
    """Return event rows to append; none if the last page is not shown or is full."""
    room = event_table.MOST_ROWS - _number(query.get("shown", ""))
    if query.get("follow") != "1" or room <= 0:
        return ()
    newest_shown = max(cursor, _number(query.get("seen", "")))
    return event_table.events_between(execution, EventFilter.of(query), newest_shown, last, room)


def _more_events_text(rows: tuple[event_table.EventRow, ...], last: int, query: QueryDict) -> str:
    """Return the text of the link to events beyond this page."""
    row_count = _number(query.get("shown", "")) + len(rows)
    if query.get("follow") == "1" and row_count < event_table.MOST_ROWS:
        return ""
    newest = rows[-1].id if rows else _number(query.get("seen", ""))
    return "Show latest events" if last > newest else ""


def _changed_states(trace: Trace, cursor: int, *, counted: bool) -> set[str]:
    """Return the states to repaint: the states with events since ``cursor``.

    A distributed Map also changes with the counts of its Map Runs (``counted``), and the states
    inside when it is entered.
    """
    changed = trace.changes(cursor)
    if counted:
        changed |= {node.id for node in trace.graph.nodes if node.distributed}
    outside = iterations.enclosing_maps(trace.graph)
    return changed | {node for node, owner in outside.items() if owner in changed}


def _owners_of_folded(trace: Trace, painted: PaintedParts, changed: set[str]) -> set[str]:
    """Return the groups into which changed states may be folded."""
    inside = states_inside(trace.graph) if painted.painting.folded else {}
    return {owner for owner, nodes in inside.items() if not changed.isdisjoint(nodes)}


def _paint_json(trace: Trace, changed: set[str], painted: PaintedParts, waits: WaitingPart) -> str:
    """Return the repaint values for the script as JSON.

    That is: the changed states, all ways taken, and the event types one can filter by.
    """
    painting = painted.painting
    changed_summaries = {
        node: summary for node, summary in painting.summaries.items() if node in changed
    }
    values = graph_part.paint_values(changed_summaries, painting.taken, painting.folded)
    durations = painted.timeline.durations if painted.timeline else {}
    for node, of_node in values["nodes"].items():
        if node in durations:
            of_node["drawn"] = durations[node].paint
        countdown = waits.countdowns.get(changed_summaries[node].node.name)
        if countdown and of_node["since"]:
            of_node["countdown"] = countdown
        if sign := painting.child_signs.get(node):
            of_node["child"] = {"href": sign.href, "label": sign.label, "words": sign.words}
    return json.dumps({**values, "types": sorted(trace.types)})


def _repaint_json(trace: Trace, maps: MapRuns | None, shown: ShownIteration | None) -> str:
    """Return repaint values of states inside inline Maps, and of taken lines, as JSON.

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
    return json.dumps(graph_part.repaint_values(trace, inside, maps, shown))


def _shows_other_visit(shown: Panel | None, query: QueryDict) -> bool:
    """Whether the panel moved to another visit or state."""
    name = shown.node.name if shown is not None else ""
    if name != query.get("seen_step", name):
        return True
    return shown is not None and query.get("seen_visit", "") != shown.place_key


@require_safe
def step_panel(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return the panel of a step."""
    execution = scope_of(request).execution(machine_name, execution_name)
    name, event = request.GET.get("step", ""), asked_event(request.GET)
    try:
        with open_trace_at(execution, event) as trace:
            maps = None if event else iterations.map_runs_of_execution(execution, trace)
            panel = panel_part(execution, trace, request.GET, maps)
            repaint = _repaint_json(trace, maps, panel.iteration)
            at_ms = past_ms(execution, trace) if event else None
            transitions = trace.transitions
    except engine.DefinitionError as error:
        raise Http404("This definition can no longer be drawn.") from error
    if name and panel.shown is None:
        raise Http404(f"The definition has no state “{name}”.")
    context: dict[str, Any] = {
        "execution": execution,
        "machine_name": machine_name,
        "base": reverse("execution", args=[machine_name, execution.name]),
        "panel": panel,
        "past_ms": at_ms,
        "repaint": repaint,
        "form_parameters": form_parameters(request.GET),
    }
    if execution.faults:
        head = header.header_of(execution)
        context["header"] = header.with_features(head, execution, transitions)
    if panel.shown is None:
        context["payloads"] = header.payloads_of(execution)
    elif panel.shown.running_since:
        context["waiting"] = waiting.waiting_part(execution)
    return render_part(request, "execution/_panel.html", context)


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else 0
