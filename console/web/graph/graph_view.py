"""View options of a graph: its direction, and the unfolded groups of a large graph."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.web.graph.diagram import Direction

if TYPE_CHECKING:
    from django.http import HttpRequest

DIRECTION_COOKIE = "direction"
MOST_UNFOLDED = 200
_NODE_ID = re.compile(r"n\d{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GraphView:
    """View options. ``folds``: whether groups of a large state machine are folded.

    ``unfolded``: ids of the unfolded groups. ``plain``: boxes without a status line, so the graph
    is smaller. ``compact``: boxes with names only, and transitions without labels, for narrow
    columns.
    """

    direction: Direction = Direction.DOWN
    folds: bool = False
    unfolded: frozenset[str] = frozenset()
    plain: bool = False
    compact: bool = False

    @property
    def key(self) -> str:
        """Return the cache key of a layout within its definition, "" for the default view."""
        folded = f" folded {' '.join(sorted(self.unfolded))}" if self.folds else ""
        size = " compact" if self.compact else " plain" if self.plain else ""
        usual = self.direction is Direction.DOWN and not folded and not size
        return "" if usual else f"{self.direction}{folded}{size}\n"

    def folding(self, opened: set[str] | None) -> GraphView:
        """Return it with folds, and some more groups open; without any fold for None."""
        if opened is None:
            return replace(self, folds=False, unfolded=frozenset())
        return replace(self, folds=True, unfolded=self.unfolded | opened)


WHOLE = GraphView()
"""Downwards, with nothing folded."""


def graph_view_of(request: HttpRequest) -> GraphView:
    """Return the view of the reader's cookie and the URL; invalid values are ignored."""
    asked = request.COOKIES.get(DIRECTION_COOKIE, "")
    direction = Direction(asked) if asked in list(Direction) else Direction.DOWN
    named = _NODE_ID.findall(request.GET.get("unfold", "")[: 8 * MOST_UNFOLDED])
    return GraphView(direction, unfolded=frozenset(named[:MOST_UNFOLDED]))
