"""Count for each masked path the most recent executions in which it hides a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.masking.mask import Mask
from console.models import Execution

if TYPE_CHECKING:
    from console.models import Project

LOOKED_AT = 20
"""The number of latest executions whose inputs and outputs are searched for the paths."""
MOST_TEXT = 400_000
"""The maximum number of characters read from them."""


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A masked path: it hides values in ``matching`` of the ``of`` most recent executions."""

    path: str
    matching: int
    of: int


def path_matches(project: Project) -> list[PathMatch]:
    """Return the masked paths of a project with their counts; values are not shown."""
    paths = project.masked.splitlines()
    payloads = _newest_payloads(project) if paths else []
    return [PathMatch(path, _count(path, payloads), len(payloads)) for path in paths]


def _newest_payloads(project: Project) -> list[list[str]]:
    rows = Execution.objects.filter(project=project, map_run=None).order_by("-start_ms", "-id")
    payloads: list[list[str]] = []
    room = MOST_TEXT
    for texts in rows.values_list("input", "output")[:LOOKED_AT]:
        present = [text for text in texts if text]
        room -= sum(map(len, present))
        if room < 0:
            break
        payloads.append(present)
    return payloads


def _count(path: str, payloads: list[list[str]]) -> int:
    mask = Mask(engine.compile_path_set([path]))
    return sum(any(_finds(mask, text) for text in texts) for texts in payloads)


def _finds(mask: Mask, text: str) -> bool:
    return mask.payload(text) != text
