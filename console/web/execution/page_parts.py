"""Assemble the execution page from its parts (header, banner, graph, panel, timeline)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import engine
from console.db import clock
from console.feature import Hook, has_feature, hooked
from console.statuses import ExecutionStatus
from console.web.execution import header, iterations, time_machine
from console.web.execution.banner import (
    Banner,
    banner_of,
    banner_without_history,
    ending_stamp,
    failed_children,
)
from console.web.execution.child_signs import child_signs
from console.web.execution.graph_part import GraphPart, Painting, graph_part, paint_trace
from console.web.execution.panel import PanelPart, panel_part
from console.web.execution.step_tree import StepsPart, steps_part
from console.web.graph import graph_view
from console.web.history.event_filter import EventFilter
from console.web.history.event_table import EventCounts, EventPage, event_page
from console.web.history.traces import asked_event, open_trace, open_trace_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import QueryDict

    from console.models import Execution
    from console.web.execution.child_signs import ChildSign
    from console.web.execution.header import ExecutionPayloads, Header
    from console.web.execution.iterations import MapRuns
    from console.web.graph.graph_view import GraphView
    from engine import Graph, Trace

SETTLES_WITHIN_MS = 60_000
"""The time after the end for which a page asks every half second for the counts of Map Runs."""


@dataclass(frozen=True, slots=True)
class Poll:
    """The page's next poll.

    ``cursor``: the last event that the page has. ``over``: the execution has ended. ``unsettled``:
    the counts of a Map Run may still change, ``settles_soon``: within a minute. ``map_stamp``,
    ``ending_stamp``: change with the counts of Map Runs and with the banner. ``paint``: the values
    for the script, as JSON.
    """

    over: bool
    cursor: int | None = None
    map_stamp: str = ""
    unsettled: bool = False
    settles_soon: bool = False
    ending_stamp: str = ""
    paint: str = ""

    @property
    def stamps(self) -> str:
        """Return the stamps as query parameters of the next poll."""
        return urlencode({"maps": self.map_stamp, "ending": self.ending_stamp})


@dataclass(frozen=True, slots=True)
class PaintedParts:
    """The parts that show an execution at one time.

    ``steps``, ``timeline``: None if the page does not show them. ``past_ms``: the moment, None for
    now; ``moment``: the event on display then.
    """

    panel: PanelPart
    painting: Painting
    steps: StepsPart | None
    timeline: Any
    moment: time_machine.PastMoment | None = None
    past_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PageParts:
    """All parts of the page. ``graph`` and ``panel``: None if the definition cannot be drawn.

    ``payloads``: input and output, None if the panel shows a state instead.
    """

    header: Header
    banner: Banner
    events: EventPage
    poll: Poll
    payloads: ExecutionPayloads | None
    graph: GraphPart | None = None
    panel: PanelPart | None = None
    steps: StepsPart | None = None
    timeline: Any = None
    moment: time_machine.PastMoment | None = None
    past_ms: int | None = None


class _DrawnParts(NamedTuple):
    """The parts that need a drawable definition."""

    header: Header
    banner: Banner
    poll: Poll
    counts: EventCounts
    painted: PaintedParts
    graph: GraphPart


def page_of(execution: Execution, query: QueryDict, view: GraphView) -> PageParts:
    """Return the current page; graph, steps, timeline and panel as of the requested event."""
    head = header.with_starter(header.header_of(execution), execution)
    head = header.with_origin(head, execution)
    filters = EventFilter.of(query)
    try:
        drawn = _drawn_parts(execution, head, query, view)
    except engine.DefinitionError:  # stored by a version that checked less
        events = event_page(execution, filters)
        return PageParts(
            header=head,
            banner=banner_without_history(execution),
            events=events,
            poll=poll_of(execution, events.last),
            payloads=header.payloads_of(execution),
        )
    events = event_page(execution, filters, drawn.counts)
    painted = drawn.painted
    return PageParts(
        header=drawn.header,
        banner=drawn.banner,
        events=events,
        poll=replace(drawn.poll, cursor=events.last),
        payloads=None if painted.panel.shown else header.payloads_of(execution),
        graph=drawn.graph,
        panel=painted.panel,
        steps=painted.steps,
        timeline=painted.timeline,
        moment=painted.moment,
        past_ms=painted.past_ms,
    )


def _drawn_parts(
    execution: Execution, head: Header, query: QueryDict, view: GraphView
) -> _DrawnParts:
    """Return the parts made from the trace; raise ``engine.DefinitionError``."""
    in_past = bool(asked_event(query))
    with open_trace(execution) as trace:
        counts = EventCounts(trace.types, trace.last)
        maps = None if in_past else iterations.map_runs_of_execution(execution, trace)
        head = header.with_figures(head, execution, trace, maps)
        banner = banner_of(execution, trace, failed_children(execution, trace, maps))
        poll = poll_of(execution, trace.last, maps)
        if not in_past:
            painted = painted_parts(
                *(execution, trace, query), maps=maps, signs=child_signs(execution, trace)
            )
            stamp = ending_stamp(execution, banner, unsettled=poll.unsettled)
            poll = replace(poll, ending_stamp=stamp)
    if in_past:
        painted = past_parts(execution, query, counts.last)
    graph = graph_part(execution, painted.painting, painted.panel.chosen, view)
    return _DrawnParts(head, banner, poll, counts, painted, graph)


def poll_of(execution: Execution, cursor: int, maps: MapRuns | None = None) -> Poll:
    """Return the next poll. ``maps``: the Map Runs whose counts the page shows."""
    return Poll(
        over=execution.status != ExecutionStatus.RUNNING,
        cursor=cursor,
        map_stamp=maps.stamp if maps else "",
        unsettled=maps is not None and maps.unsettled,
        settles_soon=clock.now_ms() - (execution.stop_ms or 0) < SETTLES_WITHIN_MS,
    )


def past_parts(execution: Execution, query: QueryDict, last: int) -> PaintedParts:
    """Return an execution as of the requested event; raise ``engine.DefinitionError``."""
    with open_trace_at(execution, min(asked_event(query), last)) as trace:
        moment = time_machine.past_moment(execution, trace, last)
        at_ms = moment.at_ms if moment else execution.start_ms
        painted = painted_parts(execution, trace, query, past_ms=at_ms)
        return replace(painted, moment=moment)


def painted_parts(
    execution: Execution,
    trace: Trace,
    query: QueryDict,
    *,
    past_ms: int | None = None,
    maps: MapRuns | None = None,
    signs: Mapping[str, ChildSign] | None = None,
) -> PaintedParts:
    """Return panel and colours for a trace, and the steps and timeline that the page shows.

    ``maps``: the current counts of Map Runs; None in the past, whose counts are not stored.
    """
    panel = panel_part(execution, trace, query, maps)
    painting = paint_trace(trace, maps, panel.iteration, signs or {})
    steps, timeline = None, None
    if _shows_tables(query, trace.graph):
        in_time = query.get("view") == "timeline" and has_feature("timeline")
        steps = steps_part(
            *(trace, painting.summaries, painting.child_signs, query),
            has_steps=not in_time or len(trace.graph.nodes) > graph_view.FOLD_ABOVE,
        )
        if in_time:
            for drawn in hooked(Hook.TIMELINE):
                timeline = drawn(execution, trace, steps.rows, query, past_ms)
    return PaintedParts(panel, painting, steps, timeline, past_ms=past_ms)


def table_views() -> tuple[str, ...]:
    """Return the views of an execution that show a table of its steps."""
    return ("steps", "timeline") if has_feature("timeline") else ("steps",)


def _shows_tables(query: QueryDict, graph: Graph) -> bool:
    """Whether the page shows steps or timeline: each costs as much as the graph.

    The page contains only the selected table, and loads the other when the reader selects it. If
    the graph folds groups, the page contains the steps, so that the search for a state also finds
    states in folded groups.
    """
    return query.get("view") in table_views() or len(graph.nodes) > graph_view.FOLD_ABOVE
