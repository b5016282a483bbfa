"""Workflow variables: which values a line of control sees, and changes by ``Assign``.

Source: "Passing data between states with variables". Every Parallel branch and Map iteration opens
a scope. It sees the variables of the outer scopes and writes only its own. Outer variables cannot
change meanwhile, because their line of control waits, so no copy is needed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from engine import jsontext
from engine.errors import DATA_LIMIT_EXCEEDED, StatesError
from engine.jsontext import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.data.expression import EvaluationScope, Json
    from engine.language.model import Assign
    from engine.runtime.run import Frame, Group

_MAX_ALL = 10 * 1024 * 1024  # bytes; AWS: all variables of an execution together


class FrameStore(Protocol):
    """The frame store of a turn: the only part that variables need."""

    @property
    def frames(self) -> Mapping[int, Frame]:
        """Return the lines of control by their numbers."""

    @property
    def groups(self) -> Mapping[int, Group]:
        """Return the open groups by their numbers."""

    def keep(self, frame: Frame, **changes: Any) -> Frame:
        """Store the frame with these changes and return it."""


class Variables:
    """The variables of a turn, parsed once per frame."""

    def __init__(self, store: FrameStore) -> None:
        """Read from the frames of ``store`` when asked."""
        self._store = store
        self._own: dict[int, dict[str, Json]] = {}
        self._size: int | None = None

    def own(self, frame: Frame) -> dict[str, Json]:
        """Return name -> value of the variables assigned in the frame's own scope."""
        values = self._own.get(frame.id)
        if values is None:
            values = json.loads(frame.variables) if frame.variables else {}
            self._own[frame.id] = values
        return values

    def visible(self, frame: Frame) -> Mapping[str, Json]:
        """Return name -> value of all visible variables, inner scopes over outer ones."""
        own = self.own(frame)
        if not frame.group:
            return own
        owner = self._store.frames[self._store.groups[frame.group].owner]
        outer = self.visible(owner)
        return {**outer, **own} if own else outer

    def evaluate(self, assign: Assign, scope: EvaluationScope) -> dict[str, Json]:
        """Return name -> value of an Assign; every expression sees the values at entry.

        So ``{"a": "$b", "b": "$a"}`` swaps two variables.
        """
        return {name: target.evaluate(scope) for name, target in assign.targets.items()}

    def put(self, frame: Frame, values: dict[str, Json]) -> tuple[Frame, dict[str, str]]:
        """Store the values in the frame's scope; return the frame and name -> JSON text."""
        texts = {name: jsontext.dumps(value) for name, value in values.items()}
        _check_size(frame.state, texts)
        own = {**self.own(frame), **values}
        text = jsontext.dumps(own)
        self._check_all(frame, text)
        self._own[frame.id] = own  # not before: what was refused must not be seen in this step
        return self._store.keep(frame, variables=text), texts

    def exchange(self, frame: Frame, values: dict[str, Json]) -> Frame:
        """Replace all variables of the frame's own scope."""
        text = jsontext.dumps(values) if values else ""
        self._check_all(frame, text)
        self._own[frame.id] = values
        return self._store.keep(frame, variables=text)

    def _check_all(self, frame: Frame, text: str) -> None:
        """Raise ``States.DataLimitExceeded`` if the variables of all lines grow too large."""
        # The sum is kept from one Assign to the next, because adding it up costs a look at each
        # frame. Lines that end are not taken off it, so it can be too high, but never too low. It
        # is computed again before anything is refused.
        size = self._total() if self._size is None else self._size
        grown = jsontext.byte_size(text) - jsontext.byte_size(frame.variables)
        self._size = size + grown
        if self._size > _MAX_ALL:
            self._size = self._total() + grown
        if self._size > _MAX_ALL:
            raise _too_large_error(frame.state)

    def _total(self) -> int:
        return sum(jsontext.byte_size(frame.variables) for frame in self._store.frames.values())


def _check_size(state: str, texts: Mapping[str, str]) -> None:
    if sum(jsontext.byte_size(text) for text in texts.values()) > MAX_BYTES:
        raise _too_large_error(state)


def _too_large_error(state: str) -> StatesError:
    return StatesError(
        DATA_LIMIT_EXCEEDED,
        f"The variables assigned by the state '{state}' exceed the maximum number of bytes "
        "service limit.",
    )
