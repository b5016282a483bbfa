"""Find executions whose redrive would only run a Fail state again, and fail at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.models import Definition
from console.store.executions import redrive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution
    from engine import Graph


def runs_only_fail(graph: Graph, again: Sequence[str]) -> bool:
    """Whether a redrive would only run uncaught Fail states."""
    nodes = [graph.by_id[graph.by_name[name]] for name in again if name in graph.by_name]
    # inside a Parallel or Map it may be retried or caught
    return (
        bool(again)
        and len(nodes) == len(again)
        and all(node.type == "Fail" and node.group == engine.TOP for node in nodes)
    )


def executions_with_only_fail(executions: Sequence[Execution]) -> list[Execution]:
    """Return the executions of which a redrive would run only a Fail state."""
    again = redrive.states_again([execution.pk for execution in executions])
    numbers = {execution.definition_id for execution in executions}
    texts = dict(Definition.objects.filter(pk__in=numbers).values_list("pk", "text"))
    graphs = {number: _graph_of(text) for number, text in texts.items()}
    return [
        execution
        for execution in executions
        if (graph := graphs.get(execution.definition_id)) is not None
        and runs_only_fail(graph, again[execution.pk])
    ]


def _graph_of(text: str) -> Graph | None:
    try:
        return engine.build_graph(engine.parse_stored(text))
    except engine.DefinitionError:  # stored by a version that checked less
        return None
