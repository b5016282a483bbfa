"""Find where the paths of two executions diverge, and the Choice rule or Catcher that caused it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.core import formatting
from engine import EdgeKind, VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.features.compare.compare import ExecutionWalk, PathStep
    from engine import Edge, Graph


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for a transition.

    ``name``: ``rule 2``, ``Default``; ``condition``: the rule's condition.
    """

    name: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class WayTaken:
    """The next state of one execution. ``visit``: the last common state's visit, 0 without one.

    ``to``: the state that followed, "" if none, with its visit; ``status``: the status of the
    common visit; ``reasons``: several if more than one rule leads to the same state.
    """

    visit: int
    to: str
    to_visit: int
    status: formatting.StatusLabel
    reasons: tuple[Reason, ...] = ()

    @property
    def cause(self) -> str:
        """Return the reasons as text: ``rule 1 or rule 3``, "" without a decision."""
        return " or ".join(reason.name for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Divergence:
    """``at``: the last common state, "" without one; then the way of each execution.

    ``kind``: the type of that state; ``line``: which branch or iteration, "" for the main line.
    """

    at: str
    kind: str
    a: WayTaken
    b: WayTaken
    line: str = ""

    @property
    def summary(self) -> str:
        """Return both reasons: ``rule 1 against Default``, "" if they are the same."""
        causes = self.a.cause, self.b.cause
        return " against ".join(causes) if all(causes) and causes[0] != causes[1] else ""


def find_divergence(a: ExecutionWalk, b: ExecutionWalk) -> Divergence | None:
    """Return the first divergence on the main line of control; None without one."""
    for key in sorted({*a.paths, *b.paths}):
        ours, theirs = a.paths.get(key, ()), b.paths.get(key, ())
        shared_count = _shared_length(ours, theirs)
        if shared_count < max(len(ours), len(theirs)):
            at = ours[shared_count - 1].name if shared_count else ""
            return Divergence(
                at,
                _type_of(a.graph, at) or _type_of(b.graph, at),
                _way_taken(a.graph, ours, shared_count),
                _way_taken(b.graph, theirs, shared_count),
                _line_of_control(key),
            )
    return None


def _shared_length(ours: Sequence[PathStep], theirs: Sequence[PathStep]) -> int:
    """Return the length of the common beginning of two paths."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    parting = (place for place, (a, b) in pairs if a.name != b.name)
    return next(parting, min(len(ours), len(theirs)))


def _type_of(graph: Graph | None, name: str) -> str:
    return graph.by_id[graph.by_name[name]].type if graph and name in graph.by_name else ""


def _line_of_control(key: tuple[int, tuple[int, ...]]) -> str:
    group, iteration = key
    if iteration:
        return "iteration " + " → ".join(f"#{index}" for index in iteration)
    return "a branch" if group else ""


def _way_taken(graph: Graph | None, path: Sequence[PathStep], shared_count: int) -> WayTaken:
    """Return the transition of a path after its first ``same`` states."""
    shared = path[shared_count - 1] if shared_count else None
    after = path[shared_count] if shared_count < len(path) else None
    return WayTaken(
        shared.visit if shared else 0,
        after.name if after else "",
        after.visit if after else 0,
        formatting.STEP[shared.status if shared else ""],
        tuple(_reasons(graph, shared, after.name)) if graph and shared and after else (),
    )


def _reasons(graph: Graph, shared: PathStep, to: str) -> Iterator[Reason]:
    """Yield each rule or Catcher that leads from a visit to a state."""
    source, target = graph.by_name[shared.name], graph.by_name[to]
    edges = [edge for edge in graph.edges if edge.source == source]
    caught = shared.status == VisitStatus.CAUGHT
    for kind, word in (
        *((EdgeKind.CHOICE, "rule"), (EdgeKind.DEFAULT, "")),
        *([(EdgeKind.CATCH, "Catcher")] if caught else []),
    ):
        yield from _reasons_of_kind(edges, kind, word, target)


def _reasons_of_kind(
    edges: Sequence[Edge], kind: EdgeKind, word: str, target: str
) -> Iterator[Reason]:
    alike = [edge for edge in edges if edge.kind == kind]
    for number, edge in enumerate(alike, 1):
        if edge.target == target:
            yield Reason(f"{word} {number}", edge.label) if word else Reason("Default")
