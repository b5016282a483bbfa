"""Read the ``Retry`` and ``Catch`` fields of a state in a definition."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import ALL
from engine.language.diagnostics import DiagnosticCode
from engine.language.model import NO_RECOVERY, Catcher, Recovery, Retrier
from engine.language.wording import wrong_language

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.language.model import DataFlow
    from engine.language.node import DefinitionNode

RETRIER_FIELDS = (
    "Comment",
    "ErrorEquals",
    "IntervalSeconds",
    "MaxAttempts",
    "BackoffRate",
    "MaxDelaySeconds",
    "JitterStrategy",
)
CATCHER_FIELDS = ("Comment", "ErrorEquals", "Next", "ResultPath", "Output", "Assign")
_MISPLACED_ALL = f"{ALL} must appear alone and at end of list"
_MAX_RATE = sys.float_info.max
_MAX_DELAY = 31_622_400  # measured; the developer guide: less than 31622401


def read_recovery(
    node: DefinitionNode, data_flow: Callable[[DefinitionNode], DataFlow]
) -> Recovery:
    """Read Retry and Catch; ``data_flow`` reads a Catcher's ResultPath, Output and Assign."""
    if not node.has("Retry") and not node.has("Catch"):
        return NO_RECOVERY
    retriers = node.objects("Retry")
    catchers = node.objects("Catch")
    _check_order(retriers)
    _check_order(catchers)
    for catcher in catchers:
        if not catcher.has("Next"):
            catcher.error("", "These fields are required: [Next]")
    return Recovery(
        tuple(_read_retrier(entry) for entry in retriers),
        tuple(_read_catcher(entry, data_flow) for entry in catchers),
    )


def _read_retrier(node: DefinitionNode) -> Retrier:
    _check_fields(node, RETRIER_FIELDS)
    jitter = node.one_of("JitterStrategy", ("NONE", "FULL"))
    # A value with a problem is replaced by ASL's default: 1 second, 3 attempts, a rate of 2.
    interval = node.number("IntervalSeconds", 1)
    attempts = node.number("MaxAttempts", 0)
    return Retrier(
        _read_error_equals(node),
        1 if interval is None else interval,
        3 if attempts is None else attempts,
        _read_backoff_rate(node),
        node.number("MaxDelaySeconds", 1, _MAX_DELAY),
        jitter == "FULL",
    )


def _read_backoff_rate(node: DefinitionNode) -> float:
    rate = node.get("BackoffRate")
    if not node.has("BackoffRate"):
        return 2.0
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        node.error("BackoffRate", "Expected value of type Number")
    elif rate < 1:
        node.error("BackoffRate", "Minimum value is 1.0")
    elif not rate <= _MAX_RATE:
        node.error("BackoffRate", f"Maximum value is {_MAX_RATE}")
    else:
        return float(rate)
    return 2.0


def _read_catcher(node: DefinitionNode, data_flow: Callable[[DefinitionNode], DataFlow]) -> Catcher:
    _check_fields(node, CATCHER_FIELDS)
    foreign = "ResultPath" if node.jsonata else "Output"
    if node.has(foreign):
        node.error("", wrong_language(foreign, node.language))
    return Catcher(_read_error_equals(node), node.text("Next") or "", data_flow(node))


def _check_fields(node: DefinitionNode, allowed: tuple[str, ...]) -> None:
    for name in node.value:
        if name not in allowed:
            node.error("", f"Field '{name}' is not supported")


def _read_error_equals(node: DefinitionNode) -> tuple[str, ...]:
    names = node.get("ErrorEquals")
    if not node.has("ErrorEquals"):
        node.error("", "These fields are required: [ErrorEquals]")
        return ()
    if not isinstance(names, list):
        node.error("ErrorEquals", "Expected value of type Array")
        return ()
    for index, name in enumerate(names):
        if not isinstance(name, str):
            node.error(f"ErrorEquals[{index}]", "Expected value of type String")
            return ()
    if not names:
        node.error("ErrorEquals", "Value cannot be empty")
    if ALL in names and len(names) > 1:
        node.error("ErrorEquals", _MISPLACED_ALL)
    return tuple(names)


def _check_order(entries: list[DefinitionNode]) -> None:
    """Check that States.ALL is only in the last Retrier or Catcher, as ASL demands.

    It handles every error, so an entry after it would never be used.
    """
    for index, node in enumerate(entries):
        names = node.get("ErrorEquals")
        if isinstance(names, list) and ALL in names and index < len(entries) - 1:
            if len(names) == 1:  # else it was noted before
                node.error("ErrorEquals", _MISPLACED_ALL)
            after = entries[index + 1]
            node.problems.warning(
                after.pointer, "This entry can never be used", DiagnosticCode.CATCH_UNUSED
            )
