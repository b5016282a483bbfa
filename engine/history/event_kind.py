"""The facts that all events of one type and one state share, looked up once for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.history.event_types import EVENT_TYPES, Effect

if TYPE_CHECKING:
    from collections.abc import Callable


class EventKind:
    """The facts that all events of one type and one state share.

    ``node``: the state in the graph, "" if it is not there; ``group``: the group it stands in;
    ``event_ids``: the events of this kind so far.
    Of entries only: ``taken_from``: node left before -> the event that last came from there;
    ``caught_from``: the nodes from which only a Catch leads here.
    """

    __slots__ = (
        "caught_from",
        "effect",
        "event_ids",
        "group",
        "is_failure",
        "node",
        "state",
        "taken_from",
        "type",
    )

    def __init__(self, name: str, state: str, node: str = "", group: str = "") -> None:
        """Look up what the type means; an unknown type has no effect."""
        self.type, self.state, self.node, self.group = name, state, node, group
        known = EVENT_TYPES.get(name)
        self.effect = known.effect if known else Effect.NONE
        self.is_failure = known is not None and known.is_failure
        if not node and (state or self.effect in _OF_STATES):  # of a state that is not drawn
            self.effect, self.is_failure = Effect.NONE, self.is_failure and not state
        self.event_ids: list[int] = []
        self.taken_from: dict[str, int] = {}
        self.caught_from: frozenset[str] = frozenset()


_OF_STATES = frozenset(
    {
        Effect.STATE_ENTERED,
        Effect.STATE_EXITED,
        Effect.FAIL_ENTERED,
        Effect.ATTEMPT_BEGAN,
        Effect.STATE_ABORTED,
        Effect.ITERATION_STARTED,
        Effect.ITERATION_SUCCEEDED,
        Effect.CHILD_FAILED,
    }
)

START = EventKind("", "")
"""What comes before the first event: as if a state named "start" had been exited."""
START.node, START.effect = "start", Effect.STATE_EXITED


class EventKinds(dict[tuple[str, str], EventKind]):
    """(type, state) -> kind, made when it is first looked up."""

    def __init__(self, make: Callable[[str, str], EventKind]) -> None:
        """``make``: makes the kind of a type and a state."""
        super().__init__()
        self._make = make

    def __missing__(self, pair: tuple[str, str]) -> EventKind:
        """Make the kind."""
        made = self[pair] = self._make(*pair)
        return made
