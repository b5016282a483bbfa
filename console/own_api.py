"""The way from a Task to the operations of this server's own Step Functions API, in this process.

The worker knows nothing of the API's edge: ``apps.py`` connects the two when the program starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.access import Principal
    from console.store.audit import Actor
    from console.store.births import Parent
    from console.store.pending import Pending


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf an operation is called.

    ``trusted``: what is asked belongs to a call that was allowed before, and needs no right of its
    own. ``parent``: what the executions it starts are children of.
    """

    principal: Principal
    actor: Actor
    region: str
    trusted: bool = False
    parent: Parent | None = None


Answer = dict[str, Any]
_connected: list[Callable[[Caller, str, dict[str, Any]], Pending[Answer]]] = []


def connect(operations: Callable[[Caller, str, dict[str, Any]], Pending[Answer]]) -> None:
    """Let ``answer`` reach the operations."""
    _connected[:] = [operations]


def answer(caller: Caller, action: str, params: dict[str, Any]) -> Pending[Answer]:
    """Return the answer to an action as a change that is still to be written.

    ``params``: as the service model has them. What the operation writes on its own, before its
    answer is known, is written when this returns. Raise a ``ServiceError``, as the change may.
    """
    return _connected[0](caller, action, params)
