"""Write a review as Markdown for a comment on GitHub or GitLab.

Names, comments and values of definitions are untrusted text: each is in a code span, where neither
HTML nor mentions have an effect.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from console.features.review.comparison import NOTHING, ReviewKind
from console.features.review.pictures import changed_part, graph_of, mermaid_of, state_marks
from console.features.review.replays import transition_rate
from console.web.core.formatting import visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import engine
    from console.features.review.commits import Commit
    from console.features.review.comparison import FieldChange, MachineReview, Permission
    from console.features.review.replays import ReplayedMachine

MARKER = "<!-- stateyard-review -->"
"""The first line, which identifies the comment to update."""
MOST_CHARACTERS = 60_000
"""GitHub limits comments to 65,536 characters."""
_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MOST_ROWS = 40
_MOST_ALIKE = 3
"""Maximum number of listed executions that differ in the same way."""
_MOST_VALUE = 120
_BEFORE_CHANGE = 40
_MOST_STATES = 40
_DOLLAR_PLACES = 4
_WORDS = {
    ReviewKind.ADDED: "added",
    ReviewKind.REMOVED: "removed",
    ReviewKind.CHANGED: "changed",
    ReviewKind.HIDDEN: "not compared",
}


@dataclass(frozen=True, slots=True)
class Review:
    """The review of two commits.

    ``pictures``: state machine -> names of its SVG files. ``replays``: by state machine;
    ``left_out``: why there are no replays, "" if there are. ``untried``: as in ``untried_points``.
    """

    before: Commit
    after: Commit
    machines: Sequence[MachineReview]
    triggers: Sequence[tuple[str, str, Sequence[FieldChange]]] = ()
    problems: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pictures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    replays: Mapping[str, ReplayedMachine] = field(default_factory=dict)
    left_out: str = ""
    untried: Mapping[str, Sequence[engine.Point] | None] = field(default_factory=dict)


def code_span(text: str) -> str:
    """Return any text as a Markdown code span on one line."""
    line = " ".join(visible_text(text).split()) or " "
    line = _BIDIRECTIONAL.sub(lambda match: f"\\u{ord(match[0]):04x}", line)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def write_markdown(review: Review) -> str:
    """Return the review, with at most ``MOST_CHARACTERS`` characters."""
    lines = [MARKER, "## State machines", "", _summary(review), ""]
    lines += _problem_lines(review)
    text = "\n".join(lines) + "\n"
    omitted = []
    for machine in review.machines:
        for with_graph in (True, False):
            section = "\n".join(_machine_lines(review, machine, with_graph=with_graph)) + "\n\n"
            if len(text) + len(section) <= MOST_CHARACTERS:
                text += section
                break
        else:
            omitted.append(machine.name)
    tail = [*_trigger_lines(review), *_replay_note(review)]
    if omitted:
        tail.append(f"Left out of this comment, which is too long: {_names(omitted)}.")
    return (text + "\n".join(tail)).rstrip() + "\n"


def _summary(review: Review) -> str:
    commits = f"{review.before.short} to {review.after.short}"
    counts = [
        f"{number} {word}"
        for kind, word in _WORDS.items()
        if (number := sum(machine.kind is kind for machine in review.machines))
    ]
    return f"Commit {commits}: {', '.join(counts) or 'no state machine changed'}."


def _problem_lines(review: Review) -> Iterator[str]:
    for side, problems in review.problems.items():
        if problems:
            yield f"**Cannot be read at {side}:**"
            yield ""
            yield from _bounded([f"- {code_span(problem)}" for problem in problems])
            yield ""


def _machine_lines(review: Review, machine: MachineReview, *, with_graph: bool) -> Iterator[str]:
    former = f", formerly {code_span(machine.former_name)}" if machine.former_name else ""
    yield f"### {code_span(machine.name)} {_WORDS[machine.kind]}{former}"
    yield ""
    source = machine.after or machine.before
    if source is not None:
        yield f"In {code_span(source.place)}."
    if machine.kind is ReviewKind.HIDDEN:
        side = "head" if machine.after is None else "base"
        yield f"A part of it cannot be read at {side}, so its changes are unknown."
        return
    yield from _state_lines(machine)
    yield from _finding_lines(machine)
    yield from _permission_lines("New permissions", machine.needed)
    yield from _permission_lines("Permissions no longer needed", machine.dropped)
    yield from _untried_lines(review, machine)
    yield from _replay_lines(review, machine)
    yield from _graph_lines(review, machine, with_graph=with_graph)


def _state_lines(machine: MachineReview) -> Iterator[str]:
    states = machine.states
    if machine.kind is not ReviewKind.CHANGED:
        return
    if states is None:
        yield ""
        yield "One of its definitions is no JSON, so the states are not compared."
        return
    rows = [f"- {text}" for change in machine.fields.get("", ()) for text in [_words(change)]]
    rows += [f"- State {code_span(name)} added" for name in states.added]
    rows += [f"- State {code_span(name)} removed" for name in states.removed]
    for name in states.changed:
        words = "; ".join(_words(change) for change in machine.fields.get(name, ()))
        rows.append(f"- State {code_span(name)}: {words}")
    if rows:
        yield ""
        yield from _bounded(rows)


def _words(change: FieldChange) -> str:
    """Return a text about a changed field."""
    if not change.path:
        return f"moved from {code_span(change.before)} to {code_span(change.after)}"
    name = code_span(change.path)
    if change.before is NOTHING:
        return f"{name} added: {_value(change.after)}"
    if change.after is NOTHING:
        return f"{name} removed: {_value(change.before)}"
    before, after = _shown(change.before), _shown(change.after)
    start = _common_start(before, after)
    return f"{name} changed from {_excerpt(before, start)} to {_excerpt(after, start)}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))


def _value(value: Any) -> str:
    return _excerpt(_shown(value), 0)


def _common_start(before: str, after: str) -> int:
    """Return where to cut two long texts so that their difference is visible."""
    pairs = zip(before, after, strict=False)
    same = next((n for n, pair in enumerate(pairs) if pair[0] != pair[1]), len(after))
    longest = max(len(before), len(after))
    return max(0, same - _BEFORE_CHANGE) if longest > _MOST_VALUE else 0


def _excerpt(text: str, start: int) -> str:
    end = start + _MOST_VALUE
    return code_span(f"{'…' * (start > 0)}{text[start:end]}{'…' * (len(text) > end)}")


def _finding_lines(machine: MachineReview) -> Iterator[str]:
    if machine.problems:
        yield ""
        yield "**New problems:**"
        yield ""
        yield from _bounded(
            [f"- {problem.severity.capitalize()}: {code_span(str(problem))}"
             for problem in machine.problems]
        )  # fmt: skip
    if machine.mended:
        yield ""
        yield f"Problems that are gone: {machine.mended:,}."


def _permission_lines(title: str, permissions: Sequence[Permission]) -> Iterator[str]:
    if not permissions:
        return
    yield ""
    yield f"**{title}:**"
    yield ""
    rows = []
    for permission in permissions:
        states = _names(state for state in permission.states if state) or "the state machine"
        rows.append(
            f"- {code_span(permission.action)} on {code_span(permission.resource)}, for {states}"
        )
    yield from _bounded(rows)


def _untried_lines(review: Review, machine: MachineReview) -> Iterator[str]:
    points = review.untried.get(machine.name, ())
    if points is None:
        yield ""
        yield "Its coverage is unknown: the definition has errors."
    elif points:
        yield ""
        yield "**New paths that no test has executed:**"
        yield ""
        yield from _bounded([f"- {point.kind} {code_span(point.key)}" for point in points])


def _replay_lines(review: Review, machine: MachineReview) -> Iterator[str]:
    replayed = review.replays.get(machine.name)
    if replayed is None:
        return
    yield ""
    unfit = f" {replayed.unfit:,} could not be reproduced." if replayed.unfit else ""
    yield (
        f"**Replays:** {len(replayed.differing):,} of {replayed.number:,} recorded executions"
        f" differ.{unfit}"
    )
    if replayed.differing:
        yield ""
        alike: dict[str, list[str]] = {}
        for name, words in replayed.differing:
            alike.setdefault("; ".join(words), []).append(name)
        yield from _bounded(
            [f"- {_names(names, _MOST_ALIKE)}: {code_span(text)}" for text, names in alike.items()]
        )
    rate = transition_rate()
    costs = replayed.costs(rate)
    if costs is not None and machine.after is not None and machine.after.type == "STANDARD":
        before, after = (f"${cost:.{_DOLLAR_PLACES}f}" for cost in costs)
        yield ""
        part = "these replays"
        if replayed.ended < replayed.number:
            part = f"the {replayed.ended:,} replays that end with both definitions,"
        yield (
            f"**Cost of 1,000 executions:** {before} before, {after} after, for the state"
            f" transitions of {part} at the prices of {rate.as_of}."
        )


def _graph_lines(review: Review, machine: MachineReview, *, with_graph: bool) -> Iterator[str]:
    files = review.pictures.get(machine.name, ())
    if files:
        yield ""
        yield f"Graphs: {_names(files)}."
    graph = graph_of(machine.after)
    if graph is None or not with_graph:
        return
    marks = state_marks(machine, graph)
    title = "Graph"
    if len(graph.nodes) > _MOST_STATES:
        title = f"Changed states of the {len(graph.nodes):,}, with their neighbours"
        graph = changed_part(graph, marks)
    if len(graph.nodes) > _MOST_STATES:
        return
    yield ""
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield "```mermaid"
    yield mermaid_of(graph, marks)
    yield "```"
    yield ""
    yield "</details>"


def _trigger_lines(review: Review) -> Iterator[str]:
    if not review.triggers:
        return
    yield "### Rules, schedules and activities"
    yield ""
    rows = []
    for kind, name, changes in review.triggers:
        first = changes[0]
        if not first.path and first.before is NOTHING:
            words = "added"
        elif not first.path and first.after is NOTHING:
            words = "removed"
        else:
            words = "; ".join(_words(change) for change in changes)
        rows.append(f"- {kind} {code_span(name)}: {words}")
    yield from _bounded(rows)
    yield ""


def _replay_note(review: Review) -> Iterator[str]:
    if review.left_out and any(machine.kind is ReviewKind.CHANGED for machine in review.machines):
        yield f"Replays and costs are left out: {code_span(review.left_out)}."
        yield ""


def _bounded(rows: Sequence[str]) -> Iterator[str]:
    yield from rows[:_MOST_ROWS]
    if len(rows) > _MOST_ROWS:
        yield f"- … and {len(rows) - _MOST_ROWS:,} more"


def _names(names: Iterable[str], most: int = _MOST_ROWS) -> str:
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(code_span, every[:most])) + more
