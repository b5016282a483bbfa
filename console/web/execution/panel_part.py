"""Build the panel beside the graph: the selected step and the content of its open tab."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.web.execution import data_flow, function_calls, iterations, time_machine
from console.web.execution.chosen_step import ChosenStep, default_step, step_of_last_event
from console.web.execution.panel import Panel, ProblemVisit, next_problem, panel_of_state
from console.web.graph.definition_text import coloured_text

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
    calls: Sequence[function_calls.ShownCall] = ()
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
    asked = asked_step(execution, trace, query)
    chosen = iterations.leading_state(trace, asked.name, asked.iteration)
    tab = _OLD_TABS.get(query.get("tab", ""), query.get("tab", ""))
    tab = tab if tab in dict(TABS) else "io"
    shown = panel_of_state(
        *(execution, trace, chosen, asked.visit, asked.iteration, maps),
        all_events=tab == "events",
    )
    flow = None
    if tab == "flow" and shown is not None and shown.number:
        visit = trace.visits[shown.node.id][shown.number - 1]
        flow = data_flow.data_flow_of(execution, trace, visit, shown)
    tabs: tuple[tuple[str, str], ...] = TABS
    if shown is None or shown.node.type != "Task" or not function_calls.has_logs():
        tabs = tuple(each for each in TABS if each[0] != "logs")
        tab = "io" if tab == "logs" else tab
    return PanelPart(
        shown=shown,
        chosen=chosen,
        tab=tab,
        tabs=tabs,
        flow=flow,
        calls=function_calls.calls_of_step(execution, shown) if tab == "logs" else (),
        definition=coloured_text(shown.node.text) if shown and tab == "definition" else "",
        problem=next_problem(trace, shown),
        iteration=iterations.shown_iteration(trace, chosen, query.get("iteration", "")),
    )


def asked_step(execution: Execution, trace: Trace, query: QueryDict) -> ChosenStep:
    """Return the step named in the URL, else the execution's default step."""
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
    """Return the visit number in the URL, 0 without one."""
    visit = query.get("visit") or query.get("seen_visit", "")  # a tick does not move the panel
    return int(visit) if re.fullmatch(r"\d{1,9}", visit, re.ASCII) else 0
