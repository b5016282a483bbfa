"""Find which rule of a Choice decided, where several lead to the same state.

A history tells the state that followed a Choice, not the rule. The engine decides again with the
recorded input and the variables of that moment. Where it cannot, or where its answer is not what
the history tells (a rule that looks at the clock), no rule is known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import engine
from console.masking import masked_execution
from console.web.execution.data_flow import context_of, variables_at
from console.web.history import visit_events
from engine import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from console.models import Execution
    from console.web.execution.iterations import ShownIteration
    from engine import Graph, Trace, Visit

MOST_VISITS = 50
"""Of a Choice with more visits that count, no rule is known: to decide again costs a page time."""
_DECIDES = (EdgeKind.CHOICE, EdgeKind.DEFAULT)

Pair = tuple[str, str]


def deciding_rules(
    execution: Execution, trace: Trace, shown: ShownIteration | None = None
) -> Mapping[Pair, AbstractSet[int]]:
    """Return (source, target) -> the rules of the Choice that led there, from 1, 0 for Default.

    Of those pairs of states only that several rules join, and where all that led there are known.
    ``shown``: the iteration whose visits count inside its Map, None for those of all iterations.
    """
    shared = _shared_pairs(trace.graph)
    sources = {source for source, _ in shared} & trace.visits.keys()
    if not sources:
        return {}

    def decide() -> dict[Pair, set[int]]:
        by_pair: dict[Pair, set[int]] = {}
        for source in sources:
            by_pair |= _rules_of_choice(execution, trace, source, shown)
        return {pair: rules for pair, rules in by_pair.items() if pair in shared}

    if masked_execution.masked_execution(execution).hides:
        return {}  # a rule may tell what the reader may not see
    return trace.derive("deciding rules", shown, decide)


def _shared_pairs(graph: Graph) -> set[Pair]:
    pairs = Counter((edge.source, edge.target) for edge in graph.edges if edge.kind in _DECIDES)
    return {pair for pair, number in pairs.items() if number > 1}


def _rules_of_choice(
    execution: Execution, trace: Trace, source: str, shown: ShownIteration | None
) -> dict[Pair, set[int]]:
    """Return the pairs of a Choice and its next states, and the rules that led there."""
    visits = [visit for visit in _counted(trace, source, shown) if visit.status == "succeeded"]
    if len(visits) > MOST_VISITS:
        return {}
    entries = visit_events.read_events(execution, [visit.number for visit in visits])
    by_pair: dict[Pair, set[int]] = {}
    try:
        for visit, entered in zip(visits, entries, strict=True):
            trial = _decide_again(execution, trace, visit, entered)
            target = trace.graph.by_name.get(trial.next_state or "", "")
            if trial.rule is None or (source, target) not in trace.taken:
                return {}
            by_pair.setdefault((source, target), set()).add(trial.rule)
    except (engine.EngineError, KeyError, ValueError):
        return {}
    return by_pair


def _counted(trace: Trace, source: str, shown: ShownIteration | None) -> Sequence[Visit]:
    visits = trace.visits_of(source)
    if shown is not None and source in shown.nodes:
        return [visits[place] for place in shown.places(trace, source)]
    counting = set(visits.counting_still())
    return [visit for visit in visits if visit.number in counting]


def _decide_again(
    execution: Execution, trace: Trace, visit: Visit, entered: visit_events.VisitEvent
) -> engine.Trial:
    node = trace.graph.by_id[visit.node]
    machine, name = engine.parse_stored_state(execution.definition.text, node.name)
    return engine.try_state(
        machine,
        name,
        entered.details["input"],
        engine.Moment(visit.entered_ms, entered.id),
        about={"context": context_of(execution, node, visit, trace), "input": execution.input},
        variables=variables_at(execution, trace, entered.id),
    )
