"""How does a trace tell of one stay in a state?  Lines of control, attempts, and views of visits.

A trace of 25,000 events has 12,500 visits, and a page looks at a few of them: so a visit is known
by the number of the event that entered it, and becomes an object only when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from engine.trace import Trace
RUNNING, SUCCEEDED, CAUGHT = "running", "succeeded", "caught"
FAILED, ABORTED = "failed", "aborted"


class Visit:
    """One stay in a state, as the trace knows it by now. ``number``: of the event that entered."""

    __slots__ = ("_trace", "node", "number")

    def __init__(self, trace: Trace, node: str, number: int) -> None:
        """Look at the visit of ``node`` that event ``number`` began."""
        self._trace = trace
        self.node = node
        self.number = number

    @property
    def entered_ms(self) -> int:
        """Return when it began."""
        return self._trace.time_of(self.number)

    @property
    def left_ms(self) -> int | None:
        """Return when it ended, None if it has not."""
        return self._trace.left.get(self.number)

    @property
    def status(self) -> str:
        """Return what has become of it."""
        return self._trace.status(self.number)

    @property
    def tries(self) -> int:
        """Return how often its work was started."""
        return self._trace.tries.get(self.number, 0)

    @property
    def iteration(self) -> tuple[int, ...]:
        """Return its index in each surrounding Map, outermost first."""
        return self._trace.where[self.number].iteration

    @property
    def events(self) -> list[int]:
        """Return the ids of its own events, in order."""
        return self._trace.events_of(self.number)

    def __repr__(self) -> str:
        """Return it in words, for who debugs."""
        return f"Visit({self.node!r}, {self.number}, {self.status})"


class Visits(Sequence[Visit]):
    """The visits of one state, in order. ``numbers``: the events that entered it."""

    __slots__ = ("_node", "_trace", "numbers")

    def __init__(self, trace: Trace, node: str) -> None:
        """Begin before the first visit."""
        self._trace = trace
        self._node = node
        self.numbers: list[int] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Visit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Visit]: ...
    def __getitem__(self, place: int | slice) -> Visit | list[Visit]:
        """Return the visit at a place, always the same object."""
        if isinstance(place, slice):
            return [self._trace.visit(self._node, number) for number in self.numbers[place]]
        return self._trace.visit(self._node, self.numbers[place])

    def __iter__(self) -> Iterator[Visit]:
        """Yield all of them."""
        visit, node = self._trace.visit, self._node
        return (visit(node, number) for number in self.numbers)

    def stays(self, now: int) -> Iterator[tuple[int, int]]:
        """Yield when each was entered and left, ``now`` if it was not."""
        entered = map(self._trace.times.__getitem__, self.numbers)
        return zip(entered, map(self._trace.left.get, self.numbers, repeat(now)), strict=True)

    def statuses(self) -> list[str]:
        """Return what has become of each."""
        ended, left = self._trace.ended, self._trace.left
        return [
            ended.get(number) or (SUCCEEDED if number in left else RUNNING)
            for number in self.numbers
        ]

    def iterations(self) -> list[tuple[int, ...]]:
        """Return the iteration of each."""
        where = self._trace.where
        return [where[number].iteration for number in self.numbers]

    def failed(self) -> set[int]:
        """Return the places, from 1, of those that failed."""
        ended = self._trace.ended
        if not ended:
            return set()
        return {place for place, one in enumerate(self.numbers, 1) if ended.get(one) == FAILED}

    def place(self, visit: Visit) -> int:
        """Return the number of a visit among them, from 1."""
        return self.numbers.index(visit.number) + 1


@dataclass(slots=True, eq=False)
class Attempt:
    """One start of a Parallel or Map. ``total``: how many children it will have, if known.

    ``tally``: state -> status -> how many iterations ended so, but for those just ``finished``;
    ``culprit``: node and visit whose failure ended it.
    """

    node: str
    home: Scope
    total: int | None = None
    started: int = 0
    done: int = 0
    scopes: dict[int, Scope] = field(default_factory=dict)
    finished: list[Scope] = field(default_factory=list)
    tally: dict[str, Counter[str]] = field(default_factory=dict)
    culprit: tuple[str, int] | None = None


class Scope:
    """One line of control: the execution itself (no attempt), a branch, or an iteration.

    ``open``: the state it is in, "" if in none; ``latest``: state -> its latest visit.
    """

    __slots__ = ("attempt", "attempts", "group", "index", "iteration", "latest", "open")

    def __init__(
        self,
        group: str,
        attempt: Attempt | None = None,
        index: int = 0,
        iteration: tuple[int, ...] = (),
    ) -> None:
        """Begin before its first state."""
        self.group = group
        self.attempt = attempt
        self.index = index
        self.iteration = iteration
        self.open = ""
        self.latest: dict[str, int] = {}
        self.attempts: dict[str, Attempt] | None = None  # most lines of control have none

    @property
    def inner(self) -> dict[str, Attempt]:
        """Return its Parallels and Maps, to be changed."""
        if self.attempts is None:
            self.attempts = {}
        return self.attempts

    def up(self, group: str) -> Scope | None:
        """Go outwards until the line of control that runs in ``group``."""
        scope = self
        while scope.group != group:
            if scope.attempt is None:
                return None
            scope = scope.attempt.home
        return scope

    def child(self, node: str) -> Scope | None:
        """Go outwards until the branch or iteration of the Parallel or Map ``node``."""
        scope, attempt = self, self.attempt
        while attempt is not None:
            if attempt.node == node:
                return scope
            scope = attempt.home
            attempt = scope.attempt
        return None

    def find(self, node: str) -> Attempt | None:
        """Return the attempt of a Parallel or Map, here or further in."""
        for owner, attempt in (self.attempts or {}).items():
            if owner == node:
                return attempt
            for child in attempt.scopes.values():
                found = child.find(node)
                if found is not None:
                    return found
        return None
