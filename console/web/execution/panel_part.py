"""Build the panel beside the graph: the selected step and the content of its open tab."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.feature import Hook, hooked
from console.web.core.scope import choose
from console.web.execution import data_flow, iterations
from console.web.execution.chosen_step import ChosenStep, default_step, step_of_last_event
from console.web.execution.panel import Panel, ProblemVisit, next_problem, panel_of_state
from console.web.graph.definition_text import coloured_text
from console.web.history.traces import asked_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import QueryDict

    from console.models import Execution
    from console.web.execution.iterations import MapRuns
    from engine import Trace


TABS = (
    ("io", "Input & output"),
    ("flow", "Data flow"),
    ("details", "Details"),
    ("definition", "Definition"),
    ("attempts", "Retries"),
    ("logs", "Logs"),
    ("events", "Events"),
)
_OLD_TABS = {"tries": "attempts"}
"""Names of tabs in addresses of the release before -> their names now."""
_FORM_PARAMETERS = (
    *("step", "visit", "iteration", "tab", "view", "at"),
    *("status", "find", "sort", "attempt", "region", "unfold", "rows", "from", "to"),
)


@dataclass(frozen=True, slots=True)
class PanelPart:
    """The panel beside the graph.

    ``shown``: the visit on display, None for the execution itself or an unknown state ``chosen``.
    ``flow``, ``calls`` and ``definition``: the contents of their tabs, if that is open.
    ``iteration``: the iteration of a Map that the graph shows.
    """

    shown: Panel | None
    chosen: str
    tab: str
    tabs: tuple[tuple[str, str], ...]
    flow: data_flow.VisitDataFlow | None = None
    calls: Sequence[ShownCall] = ()
    definition: str = ""
    problem: ProblemVisit | None = None
    iteration: iterations.ShownIteration | None = None


def form_parameters(query: QueryDict) -> list[tuple[str, str]]:
    """Return the URL parameters that the page's forms send again."""
    return [(key, str(query[key])) for key in _FORM_PARAMETERS if query.get(key)]


def panel_part(
    execution: Execution, trace: Trace, query: QueryDict, maps: MapRuns | None = None
) -> PanelPart:
    """Return the panel of the selected step; the URL may select an iteration of a Map."""
    step_of_query = asked_step(execution, trace, query)
    chosen = iterations.leading_state(trace, step_of_query.name, step_of_query.iteration)
    tab = choose(query, "tab", (*dict(TABS), *_OLD_TABS), "io")
    tab = _OLD_TABS.get(tab, tab)
    panel = panel_of_state(
        *(execution, trace, chosen, step_of_query.visit, step_of_query.iteration, maps),
        all_events=tab == "events",
    )
    flow = None
    if tab == "flow" and panel is not None and panel.number:
        visit = trace.visits[panel.node.id][panel.number - 1]
        flow = data_flow.data_flow_of(execution, trace, visit, panel)
    tabs: tuple[tuple[str, str], ...] = TABS
    if panel is None or panel.node.type != "Task" or not has_logs():
        tabs = tuple(each for each in TABS if each[0] != "logs")
        tab = "io" if tab == "logs" else tab
    return PanelPart(
        shown=panel,
        chosen=chosen,
        tab=tab,
        tabs=tabs,
        flow=flow,
        calls=calls_of_step(execution, panel) if tab == "logs" else (),
        definition=coloured_text(panel.node.text) if panel and tab == "definition" else "",
        problem=next_problem(trace, panel),
        iteration=iterations.shown_iteration(trace, chosen, query.get("iteration", "")),
    )


def asked_step(execution: Execution, trace: Trace, query: QueryDict) -> ChosenStep:
    """Return the step named in the URL, else the execution's default step."""
    visit = asked_visit(query)
    if asked_event(query) and not visit:
        return step_of_last_event(trace, query.get("step"), query.get("iteration", ""))
    if "step" in query:
        return ChosenStep(query.get("step", ""), visit, query.get("iteration", ""))
    if asked_event(query):
        last = trace.last_event
        return ChosenStep(last.state if last else "", visit, query.get("iteration", ""))
    chosen = default_step(execution, trace)
    if "visit" in query or "iteration" in query:
        return replace(chosen, visit=visit, iteration=query.get("iteration", ""))
    return chosen


def asked_visit(query: QueryDict) -> int:
    """Return the visit number in the URL, 0 without one."""
    visit = query.get("visit") or query.get("seen_visit", "")  # a tick does not move the panel
    return int(visit) if re.fullmatch(r"\d{1,9}", visit, re.ASCII) else 0


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call with its log. ``attempt``: its number among the attempts of the visit."""

    attempt: int
    function: str
    request: str
    started_ms: int
    duration: str
    error: str
    log: str


def has_logs() -> bool:
    """Whether a feature stores function logs."""
    return bool(hooked(Hook.FUNCTION_LOGS))


def calls_of_step(execution: Execution, panel: Panel | None) -> list[ShownCall]:
    """Return the finished calls of one visit, oldest first.

    A running call is omitted, because the masked values of its outcome are not known yet.
    """
    if panel is None:
        return []
    attempts = {
        attempt.task: attempt.number
        for attempt in panel.attempts
        if attempt.task and attempt.until_ms is not None
    }
    last = max((event.id for event in panel.with_failures), default=0)
    show = hooked(Hook.FUNCTION_LOGS) if attempts else ()
    return [call for calls_of in show for call in calls_of(execution, attempts, last)]
