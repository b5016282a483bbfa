"""Merge two versions of a definition after a conflict of edits, like the tool diff3.

Used when another person has saved a state machine while its editor was open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, assert_never

from console.db import audit
from console.store.machines import machines as store
from console.store.machines import revisions
from console.web.graph.definition_text import readable_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.models import StateMachine

MOST_LINES = 20_000
_CONTEXT = 3
_CHOICE = re.compile(r"take-(\d{1,5})", re.ASCII)


class MergeSide(StrEnum):
    """The lines of a difference to take into the merged text."""

    MINE = "mine"  # the lines in the reader's editor
    THEIRS = "theirs"  # the lines that another person saved
    BOTH = "both"  # theirs, then mine


@dataclass(frozen=True, slots=True)
class MergeChunk:
    """Lines that are equal in both texts, or a difference.

    ``number``: the number of the difference, from 1; 0 for equal lines. ``proposed``: the side that
    changed the lines; ``conflict``: both sides did, or their common base is unknown.
    """

    number: int
    mine: tuple[str, ...]
    theirs: tuple[str, ...]
    proposed: MergeSide = MergeSide.MINE
    conflict: bool = False

    def lines(self, side: MergeSide) -> tuple[str, ...]:
        """Return the lines of the chosen side, or of both sides."""
        match side:
            case MergeSide.MINE:
                return self.mine
            case MergeSide.THEIRS:
                return self.theirs
            case MergeSide.BOTH:
                return self.theirs + self.mine
            case _:
                assert_never(side)

    @property
    def rows(self) -> list[tuple[str | None, str | None]]:
        """Return (theirs, mine) line by line; equal lines far from a difference are omitted."""
        if self.number == 0 and len(self.mine) > 2 * _CONTEXT + 1:
            head, tail = self.mine[:_CONTEXT], self.mine[-_CONTEXT:]
            return [*((line, line) for line in head), ("…", "…"), *((line, line) for line in tail)]
        size = max(len(self.mine), len(self.theirs))
        return list(zip(_padded(self.theirs, size), _padded(self.mine, size), strict=True))


def _padded(lines: tuple[str, ...], size: int) -> list[str | None]:
    return [*lines, *[None] * (size - len(lines))]


def merge_chunks(base: str | None, mine: str, theirs: str) -> list[MergeChunk] | None:
    """Return both texts split at their differences, None if they are too long to compare.

    ``base``: the text that both are based on, None if unknown.
    """
    own, other = mine.splitlines(), theirs.splitlines()
    if len(own) + len(other) > MOST_LINES:
        return None
    chunks: list[MergeChunk] = []
    regions = _regions(own if base is None else base.splitlines(), own, other)
    for before, my_lines, their_lines in regions:
        if my_lines == their_lines:
            chunks.append(MergeChunk(0, tuple(my_lines), tuple(their_lines)))
            continue
        number = 1 + sum(chunk.number > 0 for chunk in chunks)
        conflict = base is None or before not in (my_lines, their_lines)
        proposed = MergeSide.THEIRS if my_lines == before and not conflict else MergeSide.MINE
        chunks.append(MergeChunk(number, tuple(my_lines), tuple(their_lines), proposed, conflict))
    return chunks


def _regions(
    base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[Sequence[str], Sequence[str], Sequence[str]]]:
    """Yield (base, mine, theirs) alternately: regions equal in all three, and the others."""
    anchors = [(0, 0, 0, 0), *_common(base, mine, theirs), (len(base), len(mine), len(theirs), 0)]
    for (at, my_place, their_place, size), (next_at, my_next, their_next, _) in pairwise(anchors):
        if size:
            yield (
                base[at : at + size],
                mine[my_place : my_place + size],
                theirs[their_place : their_place + size],
            )
        between = (
            base[at + size : next_at],
            mine[my_place + size : my_next],
            theirs[their_place + size : their_next],
        )
        if any(between):
            yield between


def _common(
    base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (place in base, in mine, in theirs, size) of each run of equal lines."""
    my_blocks = SequenceMatcher(None, base, mine, autojunk=False).get_matching_blocks()
    their_blocks = SequenceMatcher(None, base, theirs, autojunk=False).get_matching_blocks()
    first = second = 0
    while first < len(my_blocks) and second < len(their_blocks):
        one_end = my_blocks[first].a + my_blocks[first].size
        other_end = their_blocks[second].a + their_blocks[second].size
        start, end = max(my_blocks[first].a, their_blocks[second].a), min(one_end, other_end)
        if start < end:
            yield (
                start,
                my_blocks[first].b + start - my_blocks[first].a,
                their_blocks[second].b + start - their_blocks[second].a,
                end - start,
            )
        if one_end < other_end:
            first += 1
        else:
            second += 1


def merged_text(chunks: Sequence[MergeChunk], choices: Mapping[int, MergeSide]) -> str:
    """Return the text of the choices; a difference without a choice is as proposed."""
    lines: list[str] = []
    for chunk in chunks:
        lines += chunk.lines(choices.get(chunk.number, chunk.proposed))
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class DefinitionConflict:
    """A conflict with the save of another person while the editor was open.

    ``saved_by``: "" if unknown; ``note``: of their save; ``chunks``: both definitions, None if too
    long to compare; ``revision``: the revision that *Save over it* may replace.
    """

    revision: str
    saved_by: str
    saved_ms: int
    note: str
    text: str
    role: str
    chunks: list[MergeChunk] | None

    @property
    def differences(self) -> int:
        """Return the number of differences."""
        return sum(chunk.number > 0 for chunk in self.chunks or ())

    @property
    def clashes(self) -> int:
        """Return the number of differences in which both sides changed the same lines."""
        return sum(chunk.conflict for chunk in self.chunks or ())


def definition_conflict(theirs: StateMachine, mine: str, made_from: str) -> DefinitionConflict:
    """Compare a state machine's current definition with a typed one.

    ``made_from``: the revision (``store.revision_of``) that ``mine`` is based on.
    """
    saved = revisions.find_revision(theirs, theirs.revision_id)
    text = readable_text(theirs.definition.text)
    return DefinitionConflict(
        revision=store.revision_of(theirs),
        saved_by=_saved_by(theirs),
        saved_ms=theirs.updated_ms,
        note=saved.note if saved else "",
        text=text,
        role=theirs.role_arn,
        chunks=merge_chunks(_base_text(theirs, made_from), readable_text(mine), text),
    )


def _base_text(machine: StateMachine, made_from: str) -> str | None:
    number, _, revision_id = made_from.partition(".")
    if number != str(machine.pk):  # of a machine that was deleted since, and made again
        return None
    base = revisions.find_revision(machine, revision_id)
    return readable_text(base.definition.text) if base else None


def _saved_by(machine: StateMachine) -> str:
    entry = audit.find_latest(
        machine.project, machine.arn, "CreateStateMachine", "UpdateStateMachine"
    )
    return entry.actor if entry else ""


def merge_choices(sent: Mapping[str, str]) -> dict[int, MergeSide]:
    """Return difference -> side from the fields ``take-1``, ``take-2`` … of a form."""
    sides = {str(side): side for side in MergeSide}
    return {
        int(match[1]): sides[value]
        for name, value in sent.items()
        if (match := _CHOICE.fullmatch(name)) and value in sides
    }


def merge_definitions(conflict: DefinitionConflict, sent: Mapping[str, str]) -> str | None:
    """Return the merged text of a conflict, None if too long to compare."""
    if conflict.chunks is None:
        return None
    return merged_text(conflict.chunks, merge_choices(sent))
