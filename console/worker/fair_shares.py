"""Fair shares: limit the running calls per project and target, so a slow target delays only itself.

A project may begin another call while it has fewer running calls than there are free places. A
target may while it has fewer running calls than the free places minus the project's running calls.
With 48 places one silent target takes 16, one project 24, a second one 12, and a place is free for
the next project. No share is reserved, so a project that is alone has half of the places.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class FairShare(NamedTuple):
    """Key of a fair share: the project and the target of its jobs."""

    project: int
    target: str


NOBODY = FairShare(0, "")
"""The share of jobs whose rows are gone or cannot be read."""


class FairShares:
    """Counts the jobs under way; the caller guards it with a lock."""

    def __init__(self, places: int) -> None:
        """Count no jobs yet. ``places``: the most jobs at once."""
        self._free = places
        self._projects: Counter[int] = Counter()
        self._targets: Counter[FairShare] = Counter()

    @property
    def free(self) -> int:
        """Return the number of free places."""
        return self._free

    def project_room(self, project: int) -> int:
        """Return how many more jobs a project may begin."""
        return self._free - self._projects[project]

    def of_project(self, project: int) -> int:
        """Return how many jobs of a project are under way."""
        return self._projects[project]

    def of_target(self, share: FairShare) -> int:
        """Return how many jobs of a target are under way."""
        return self._targets[share]

    def may_begin(self, share: FairShare) -> bool:
        """Whether a job of this share may begin now."""
        return self._targets[share] < self.project_room(share.project)

    def begin(self, share: FairShare | None) -> None:
        """Count a job that begins. None: its share is unknown until ``assign``."""
        self._free -= 1
        if share is not None:
            self.assign(share)

    def assign(self, share: FairShare) -> None:
        """Count a job that began with an unknown share for its project and target."""
        self._projects[share.project] += 1
        self._targets[share] += 1

    def end(self, share: FairShare | None) -> None:
        """Count a job that ended."""
        self._free += 1
        if share is not None:
            self._projects[share.project] -= 1
            self._targets[share] -= 1
            if not self._projects[share.project]:
                del self._projects[share.project]
            if not self._targets[share]:
                del self._targets[share]


class FairQueue(Generic[T]):
    """Queue of jobs: projects take turns, and within a project its targets do."""

    def __init__(self, shares: FairShares) -> None:
        """Start empty."""
        self._shares = shares
        self._projects: OrderedDict[int, OrderedDict[FairShare, deque[T]]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        """Return the number of waiting jobs."""
        return self._size

    def put(self, share: FairShare, item: T) -> None:
        """Queue a job behind the others of its target."""
        targets = self._projects.setdefault(share.project, OrderedDict())
        targets.setdefault(share, deque()).append(item)
        self._size += 1

    def take(self) -> tuple[FairShare, T] | None:
        """Begin and return the next job allowed to run; None if there is none."""
        for project, targets in self._projects.items():
            if self._shares.project_room(project) <= 0:
                continue
            for share in targets:
                if self._shares.may_begin(share):
                    return share, self._pop(share)
        return None

    def _pop(self, share: FairShare) -> T:
        """Remove the oldest job of a target; its project and target move to the end of the turn."""
        targets = self._projects[share.project]
        waiting = targets[share]
        item = waiting.popleft()
        targets.move_to_end(share)
        self._projects.move_to_end(share.project)
        if not waiting:
            del targets[share]
        if not targets:
            del self._projects[share.project]
        self._size -= 1
        self._shares.begin(share)
        return item

    def clear(self) -> None:
        """Remove all waiting jobs."""
        self._projects.clear()
        self._size = 0
