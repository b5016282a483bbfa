"""Build the parts of an execution's page. Each function returns one part of the context."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.urls import reverse

import engine
from console import arns
from console.db import clock
from console.feature import Hook, hooked
from console.masking import masked_execution
from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.store.executions import redrive, replay
from console.store.executions.transitions import transitions_of
from console.web.core import formatting, json_view
from console.web.core.causes import cause_of
from console.web.execution import (
    child_counts,
    data_flow,
    folded_groups,
    function_calls,
    iterations,
    panel,
    root_cause,
    step_tree,
    steps,
    time_machine,
)
from console.web.execution.child_signs import child_signs
from console.web.execution.chosen_step import (
    ChosenStep,
    default_step,
    ended_in,
    states_left_open,
    step_of_last_event,
)
from console.web.execution.last_success import has_last_success
from console.web.execution.taken_ways import taken_ways
from console.web.execution.timeline import bars
from console.web.execution.timeline.durations import attempt_durations
from console.web.execution.timeline.lanes import iteration_lanes
from console.web.execution.timeline.timeline_part import TimelinePart
from console.web.graph import folding, svg
from console.web.graph.definition_text import coloured_text
from console.web.graph.graph_view import WHOLE
from console.web.history import event_table, timed_out, traces
from console.web.history.event_filter import EventFilter
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import QueryDict

    from console.models import Execution
    from console.web.execution.folded_groups import FoldedGroup
    from console.web.execution.iterations import MapRuns
    from console.web.execution.steps import StepSummary
    from console.web.graph.graph_view import GraphView
    from console.web.graph.shapes import Picture
    from engine import Trace

MOST_ROWS = 1000
"""How many steps the table and the timeline show; a filter finds the others."""
SETTLES_WITHIN_MS = 60_000
"""For how long after the end a page asks every half second for the counts of Map Runs."""
MOST_NAMES = 1000
"""How many states the event table can be filtered by, the first ones of the definition."""


def history_context(
    execution: Execution, query: QueryDict, drawn: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the event table. ``drawn``: the picture, which knows how many events there are."""
    filters = EventFilter.of(query)
    page = event_table.event_page(execution, filters, drawn.get("event_counts") if drawn else None)
    return {
        "events": page,
        "follow": "1" if page.follows else "",
        "kept": [(key, query[key]) for key in _KEPT if query.get(key)],
        "types": page.types,
        "states": _state_names(execution),
        "cursor": page.last,
    }


def _state_names(execution: Execution) -> list[str]:
    """Return the states the event table can be filtered by."""
    try:
        return list(svg.state_names(execution.definition.text)[:MOST_NAMES])
    except engine.DefinitionError:
        return []


def picture_context(
    execution: Execution, query: QueryDict, view: GraphView = WHOLE
) -> dict[str, Any]:
    """Return graph, steps, timeline and panel, coloured by all events or by those up to ``at``."""
    try:
        with open_trace(execution) as trace:
            counts = event_table.EventCounts(trace.types, trace.last)
            context = {"event_counts": counts, "moment": None, **ending_context(execution, trace)}
            if not time_machine.asked_event(query):
                maps = iterations.map_runs_of_execution(execution, trace)
                context["child_failures"] = failed_children(execution, trace, maps)
                context["child_signs"] = child_signs(execution, trace)
                context |= painted_context(execution, trace, query, maps=maps)
                context["ending_stamp"] = ending_stamp(execution, context)
        if time_machine.asked_event(query):
            context |= past_context(execution, query, counts.last)
        return {**context, **_drawn_context(execution, context, view)}
    except engine.DefinitionError:  # stored by a version that checked less
        return {"picture": None}


def _drawn_context(
    execution: Execution, context: dict[str, Any], view: GraphView
) -> dict[str, Any]:
    """Return the picture, in which the chosen state is not folded away."""
    view = folding.view_around(context["graph"], context["chosen"], view)
    drawing = svg.definition_picture(execution.definition.text, view=view)
    return {
        "picture": drawing,
        "graph_view": view,
        "fold_links": folding.fold_links(view, drawing),
        "box_summaries": _box_summaries(drawing, context["summaries"], context["folded"]),
    }


def _box_summaries(
    drawing: Picture, summaries: Mapping[str, StepSummary], folded: Mapping[str, FoldedGroup]
) -> dict[str, StepSummary | FoldedGroup | None]:
    """Return what each box of a picture says of its state, or of all that is folded into it."""
    return {
        box.node.id: (folded if box.folded else summaries).get(box.node.id) for box in drawing.boxes
    }


def as_it_ran_context(execution: Execution, drawing: Picture) -> dict[str, Any]:
    """Return the colours of a definition's picture: by all events there are."""
    with open_trace(execution) as trace:
        maps = iterations.map_runs_of_execution(execution, trace)
        summaries = steps.step_summaries(trace, maps=maps)
        folded = folded_groups.folded_groups(trace.graph, summaries)
        return {
            "legend": formatting.LEGEND,
            "box_summaries": _box_summaries(drawing, summaries, folded),
            "taken": taken_ways(trace, maps),
        }


def past_context(execution: Execution, query: QueryDict, last: int) -> dict[str, Any]:
    """Return what was known at the event asked for; raise ``engine.DefinitionError``."""
    with time_machine.open_trace_at(execution, min(time_machine.asked_event(query), last)) as trace:
        moment = time_machine.past_moment(execution, trace, last)
        at_ms = moment.at_ms if moment else execution.start_ms
        return {
            "moment": moment,
            "past_ms": at_ms,
            **painted_context(execution, trace, query, at_ms),
        }


TABS = (
    ("io", "Input & output"),
    ("flow", "Data flow"),
    ("details", "Details"),
    ("definition", "Definition"),
    ("attempts", "Retries"),
    ("logs", "Logs"),
    ("events", "Events"),
)
TABLE_VIEWS = ("steps", "timeline")
"""Views of an execution that show a table of its steps."""
_OLD_TABS = {"tries": "attempts"}
"""Names of tabs in addresses of the release before -> their names now."""
_KEPT = (
    *("step", "visit", "iteration", "tab", "view", "at"),
    *("status", "find", "sort", "attempt", "region", "unfold", "rows", "from", "to"),
)


def tab_context(query: QueryDict) -> dict[str, Any]:
    """Return which tab of the panel is open."""
    chosen = query.get("tab", "")
    chosen = _OLD_TABS.get(chosen, chosen)
    return {
        "tab": chosen if chosen in dict(TABS) else "io",
        "panel_tabs": TABS,
        "kept": [(key, query[key]) for key in _KEPT if query.get(key)],
    }


def panel_context(
    execution: Execution, trace: Trace, query: QueryDict, maps: MapRuns | None = None
) -> dict[str, Any]:
    """Return the panel and which step it is about; an iteration of a Map leads into the Map."""
    asked = asked_step(execution, trace, query)
    chosen = iterations.leading_state(trace, asked.name, asked.iteration)
    tab = tab_context(query)
    shown = panel.panel_of_state(
        *(execution, trace, chosen, asked.visit, asked.iteration, maps),
        all_events=tab["tab"] == "events",
    )
    flow = None
    if tab["tab"] == "flow" and shown is not None and shown.number:
        visit = trace.visits[shown.node.id][shown.number - 1]
        flow = data_flow.data_flow_of(execution, trace, visit, shown)
    if shown is None or shown.node.type != "Task" or not function_calls.has_logs():
        tab["panel_tabs"] = tuple(each for each in TABS if each[0] != "logs")
        tab["tab"] = "io" if tab["tab"] == "logs" else tab["tab"]
    calls = function_calls.calls_of_step(execution, shown) if tab["tab"] == "logs" else None
    return {
        "panel": shown,
        "chosen": chosen,
        "flow": flow,
        "function_calls": calls,
        "definition_text": coloured_text(shown.node.text)
        if shown is not None and tab["tab"] == "definition"
        else "",
        "problem": panel.next_problem(trace, shown),
        "shown_iteration": iterations.shown_iteration(trace, chosen, query.get("iteration", "")),
        **tab,
    }


def asked_step(execution: Execution, trace: Trace, query: QueryDict) -> ChosenStep:
    """Return what the panel is about: what the reader chose, else what tells most."""
    visit = asked_visit(query)
    if time_machine.asked_event(query) and not visit:
        return step_of_last_event(trace, query.get("step"), query.get("iteration", ""))
    if "step" in query:
        return ChosenStep(query.get("step", ""), visit, query.get("iteration", ""))
    if time_machine.asked_event(query):
        last = trace.last_event
        return ChosenStep(last.state if last else "", visit, query.get("iteration", ""))
    chosen = default_step(execution, trace)
    if "visit" in query or "iteration" in query:
        return replace(chosen, visit=visit, iteration=query.get("iteration", ""))
    return chosen


def asked_visit(query: QueryDict) -> int:
    """Return which visit the panel is about, 0 if that was not said."""
    visit = query.get("visit") or query.get("seen_visit", "")  # a tick does not move the panel
    return int(visit) if re.fullmatch(r"\d{1,9}", visit, re.ASCII) else 0


def painted_context(
    execution: Execution,
    trace: Trace,
    query: QueryDict,
    past_ms: int | None = None,
    maps: MapRuns | None = None,
) -> dict[str, Any]:
    """Return what a trace says: summaries, ways taken, steps and bars if shown, and the panel.

    ``maps``: the counts of Map Runs as they are now; None in the past, which nobody kept.
    """
    shown_panel = panel_context(execution, trace, query, maps)
    summaries = steps.step_summaries(trace, maps=maps, shown=shown_panel["shown_iteration"])
    return {
        "graph": trace.graph,
        "summaries": summaries,
        "folded": folded_groups.folded_groups(trace.graph, summaries),
        **(
            _tables_context(execution, trace, summaries, query, past_ms)
            if _shows_tables(query, trace.graph)
            else {"tree": None, "timeline": None}
        ),
        "taken": taken_ways(trace, maps, shown_panel["shown_iteration"]),
        "map_stamp": maps.stamp if maps else "",
        "unsettled": maps is not None and maps.unsettled,
        "settles_soon": clock.now_ms() - (execution.stop_ms or 0) < SETTLES_WITHIN_MS,
        **shown_panel,
    }


def _shows_tables(query: QueryDict, graph: engine.Graph) -> bool:
    """Tell whether the page holds the steps or the timeline: each costs as much as the graph.

    It holds the one that the reader looks at; the page asks for the other when it is chosen. Beside
    a graph that folds groups it holds the steps: the search for a state finds in the table what the
    graph does not show.
    """
    return query.get("view") in TABLE_VIEWS or len(graph.nodes) > folding.FOLD_ABOVE


def _tables_context(
    execution: Execution,
    trace: Trace,
    summaries: dict[str, StepSummary],
    query: QueryDict,
    past_ms: int | None,
) -> dict[str, Any]:
    """Return the rows of the steps, and the axis and the bars of the timeline if it is in view."""
    filters = step_tree.StepFilters.of(query)
    matching = step_tree.step_rows(trace, summaries, filters)
    rows = matching[:MOST_ROWS]
    in_time = query.get("view") == "timeline"
    return {
        "tree": {
            "has_steps": not in_time or len(trace.graph.nodes) > folding.FOLD_ABOVE,
            "rows": rows,
            "stamp": step_tree.rows_stamp(rows),
            "state_rows": [row for row in rows if not row.of_iterations],
            "iteration_rows": [row for row in rows if row.of_iterations],
            "matching": len(matching),
            "filters": filters,
            "keys": formatting.STEP,
        },
        "timeline": _timeline_context(execution, trace, rows, query, past_ms) if in_time else None,
    }


def _timeline_context(
    execution: Execution,
    trace: Trace,
    rows: list[step_tree.StepRow],
    query: QueryDict,
    past_ms: int | None,
) -> dict[str, Any]:
    """Return the axis of the timeline, and the bars of some rows."""
    part = TimelinePart.of(query)
    now = clock.now_ms()
    axis, drawn = bars.timeline_bars(execution, trace, rows, now, past_ms, part)
    return {
        "axis": axis,
        "bars": drawn,
        "durations": attempt_durations(rows, axis),
        "lanes": {
            row.id: iteration_lanes(trace, row.iterations, axis)
            for row in rows
            if row.iterations is not None
        },
        "part": part,
        "drawn_ms": now,
    }


def ending_context(execution: Execution, trace: Trace) -> dict[str, Any]:
    """Return how far it came: transitions, their price, and where it failed."""
    culprit = trace.culprit
    ended = ended_in(execution, trace)
    idle_ms = sum(until - since for since, until in trace.gaps)
    # a moment in the past knows the redrives before it only
    all_gaps = 0 < len(trace.gaps) == execution.redrive_count
    took_ms = execution.stop_ms and execution.stop_ms - execution.start_ms
    return {
        "attempts_ms": took_ms - idle_ms if took_ms and all_gaps else None,
        "transitions": transitions_of(execution, trace.transitions),
        "failed_at": ended.name,
        "failed_visit": ended.visit,
        "failed_attempts": culprit.attempts if culprit else 0,
        "failed_iteration": ended.iteration,
        "also_open": 0 if culprit else max(0, len(states_left_open(execution, trace)) - 1),
        "has_success": has_last_success(execution),
        "root": (root := root_cause.root_cause(execution, trace)),
        "root_cause_text": root.cause.text
        if root and root.cause and root.cause.raw != execution.cause
        else "",
        "failed_child": _failed_child(execution, trace, root),
        "timed_out": timed_out.explain_timeout(execution),
        **_hooked_context(execution, trace.transitions),
    }


def _hooked_context(execution: Execution, transitions: int) -> dict[str, Any]:
    """Return what features add to the page of an execution."""
    context: dict[str, Any] = {}
    for add in hooked(Hook.EXECUTION_PAGE):
        context |= add(execution, transitions)
    return context


def _failed_child(
    execution: Execution, trace: Trace, root: root_cause.RootCause | None
) -> Execution | None:
    """Return the execution whose failure ended this one: what a Task started and waited for."""
    culprit, arn = trace.culprit, root.child if root else ""
    if culprit is not None and "startExecution" in trace.graph.by_id[culprit.node].text:
        arn = traces.arn_started_last(traces.events_of_visit(execution, culprit))
    child = traces.children_by_arn(execution, [arn]).get(arn)
    fine = (ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED)
    return child if child is not None and child.status not in fine else None


def failed_children(
    execution: Execution, trace: Trace, maps: MapRuns | None
) -> child_counts.ChildFailures | None:
    """Return how the children failed of the distributed Map that ended the execution."""
    culprit = trace.culprit
    if maps is None or culprit is None:
        return None
    run = maps.newest_of_visit(culprit.node, culprit.number)
    return child_counts.failures_of_children(execution.project, run) if run else None


def ending_stamp(execution: Execution, context: dict[str, Any], known: str = "") -> str:
    """Return what changes when a count alters what a page says of an end and what it offers.

    It is "" where no count can change. ``known``: what a page knows, "" if it does not ask.
    """
    may_change = context["unsettled"] or known
    if execution.status == ExecutionStatus.RUNNING or not may_change:
        return ""
    parts = (
        redrive.redrive_refusal(execution),
        context["child_failures"],
        context.get("timed_out"),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def base_context(execution: Execution, machine_name: str) -> dict[str, Any]:
    """Return what all pages of an execution show: its names, its status, its address."""
    imported = execution.imported_ms is not None
    is_express = not imported and arns.is_express(execution.arn)
    never_again = imported or (is_express and execution.map_run_id is None)
    return {
        "section": "executions",
        "execution": execution,
        "machine_name": machine_name,
        "base": reverse("execution", args=[machine_name, execution.name]),
        "status": formatting.EXECUTION[execution.status],
        "is_express": is_express,
        "may_be_redriven": execution.status in UNSUCCESSFUL and not never_again,
    }


def facts_context(execution: Execution) -> dict[str, Any]:
    """Return the summary: status, times, input and output."""
    return {
        "status": formatting.EXECUTION[execution.status],
        "input": json_view.payload_view(execution.input, "input.json"),
        "output": None
        if execution.output is None
        else json_view.payload_view(execution.output, "output.json"),
        "cause": cause_of(execution.cause),
        "origin": replay.origin_of(execution),
        "over": execution.status != ExecutionStatus.RUNNING,
        "parked": masked_execution.masked_execution(execution).mask.words(execution.runrow.parked)
        if hasattr(execution, "runrow")
        else "",
    }
