"""How often was the work of a state tried, and what came of it each time?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from console.web import words
from console.web.causes import Cause, cause_of

if TYPE_CHECKING:
    from collections.abc import Iterable

BEGINS = ("Scheduled", "StateStarted")
_AT_ONCE = "ScheduleFailed"  # instead of ...Scheduled, in histories of AWS
_OUTCOMES = ("Succeeded", "Failed", "TimedOut")


class Told(Protocol):
    """An event as far as it matters here."""

    @property
    def id(self) -> int:
        """Return its number."""

    @property
    def at_ms(self) -> int:
        """Return when it happened."""

    @property
    def type(self) -> str:
        """Return its type."""

    @property
    def details(self) -> dict[str, Any]:
        """Return its fields."""


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt at the work of a state. ``wait``: the pause before the next one.

    ``until_ms``: None while it runs. ``outcome`` is a word, ``tone`` its colour. ``task``: its
    number, 0 for a group. ``note``: which clock ran out, or that it was sent again.
    """

    number: int
    at_ms: int
    outcome: str
    tone: str
    until_ms: int | None = None
    error: str = ""
    cause: str = ""
    spent: str = ""
    wait: str = ""
    task: int = 0
    note: str = ""

    @property
    def opened_cause(self) -> Cause | None:
        """Return the cause, taken apart."""
        return cause_of(self.cause or None)


def tries(events: Iterable[Told], aborted_ms: int | None = None) -> list[Try]:
    """Return the attempts at a state's work, each with its outcome and the pause after it.

    ``aborted_ms``: when the execution's end stopped what was in progress.
    """
    found: list[Try] = []
    for one in events:
        if one.type.startswith("MapIteration"):
            continue  # of the items, not of the Map's own attempt
        if one.type.endswith((*BEGINS, _AT_ONCE)):
            if found and (ended := found[-1].until_ms) is not None:
                found[-1] = replace(found[-1], wait=words.duration(one.at_ms - ended))
            begun = Try(len(found) + 1, one.at_ms, "In progress", "running", task=_task(one))
            found.append(_ended(begun, one) if one.type.endswith(_AT_ONCE) else begun)
        elif found and found[-1].until_ms is None and _ends(one.type):
            found[-1] = _ended(found[-1], one)
    if found and found[-1].until_ms is None and aborted_ms is not None:
        spent = words.duration(aborted_ms - found[-1].at_ms)
        found[-1] = replace(
            found[-1], outcome="Aborted", tone="aborted", until_ms=aborted_ms, spent=spent
        )
    return found


def _task(event: Told) -> int:
    """Return the number of the task it schedules, 0 for the start of a group."""
    return event.id if event.type.endswith("Scheduled") else 0


def _ends(kind: str) -> bool:
    return kind.endswith((*_OUTCOMES, "FailStateEntered"))


def _ended(begun: Try, event: Told) -> Try:
    word = next((word for word in _OUTCOMES if event.type.endswith(word)), "Failed")
    return replace(
        begun,
        outcome="Timed out" if word == "TimedOut" else word,
        tone="succeeded" if word == "Succeeded" else "failed",
        until_ms=event.at_ms,
        error=event.details.get("error") or "",
        cause=event.details.get("cause") or "",
        spent=words.duration(event.at_ms - begun.at_ms),
    )
