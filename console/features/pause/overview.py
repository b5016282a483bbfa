"""Count the paused executions for the overview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.models import Execution

if TYPE_CHECKING:
    from console.web.core.scope import Scope

MOST = 1_000
"""The poll of the overview counts no further."""


def overview_live(scope: Scope, _most: int) -> dict[str, Any]:
    """Return the number of the project's paused executions."""
    rows = Execution.objects.filter(project=scope.project, map_run=None, pause__isnull=False)
    numbers = rows.filter(scope.own_executions).order_by().values("pk")[: MOST + 1]
    count = numbers.count()
    shown_count = min(count, MOST)
    return {"paused_count": shown_count, "paused_more": count > MOST, "seen": count}
