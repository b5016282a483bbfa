"""The reader of ``Retry`` and ``Catch``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import ALL
from engine.language.diagnostics import DiagnosticCode
from engine.language.model import NO_RECOVERY, Catcher, Recovery, Retrier

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.language.model import DataFlow
    from engine.language.node import DefinitionNode

_RETRIER = (
    "Comment",
    "ErrorEquals",
    "IntervalSeconds",
    "MaxAttempts",
    "BackoffRate",
    "MaxDelaySeconds",
    "JitterStrategy",
)
_CATCHER = ("Comment", "ErrorEquals", "Next", "ResultPath", "Output", "Assign")
_MAX_RATE = sys.float_info.max
_MAX_DELAY = 31_622_399  # documented: less than 31,622,400


def read_recovery(
    node: DefinitionNode, data_flow: Callable[[DefinitionNode], DataFlow]
) -> Recovery:
    """Read both; ``data_flow`` reads a Catcher's ResultPath, Output and Assign."""
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
    _check_fields(node, _RETRIER)
    jitter = node.text("JitterStrategy")
    if jitter not in (None, "FULL", "NONE"):
        message = "The field 'JitterStrategy' should have one of these values: [FULL, NONE]"
        node.error("JitterStrategy", message)
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
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 1 <= rate <= _MAX_RATE:
        message = "The value for the field 'BackoffRate' must be a number of at least 1.0"
        if isinstance(rate, int) and rate > _MAX_RATE:
            message += f" and at most {_MAX_RATE}"
        node.error("BackoffRate", f"{message}: got {rate!r}")
        return 2.0
    return float(rate)


def _read_catcher(node: DefinitionNode, data_flow: Callable[[DefinitionNode], DataFlow]) -> Catcher:
    _check_fields(node, _CATCHER)
    if node.jsonata and node.has("ResultPath"):
        node.error(
            "ResultPath", "Field 'ResultPath' is not supported by the query language 'JSONata'"
        )
    if not node.jsonata and node.has("Output"):
        node.error("Output", "Field 'Output' is not supported by the query language 'JSONPath'")
    return Catcher(_read_error_equals(node), node.text("Next") or "", data_flow(node))


def _check_fields(node: DefinitionNode, known: tuple[str, ...]) -> None:
    for name in node.value:
        if name not in known:
            node.error(name, f"Field '{name}' is not supported")


def _read_error_equals(node: DefinitionNode) -> tuple[str, ...]:
    names = node.get("ErrorEquals")
    if not node.has("ErrorEquals"):
        node.error("", "These fields are required: [ErrorEquals]")
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        node.error(
            "ErrorEquals", "The value for the field 'ErrorEquals' must be an array of strings"
        )
        return ()
    if not names:
        node.error("ErrorEquals", "Value cannot be empty")
    if ALL in names and len(names) > 1:
        message = f"'{ALL}' must appear alone in the field 'ErrorEquals'"
        node.error("ErrorEquals", message)
    return tuple(names)


def _check_order(entries: list[DefinitionNode]) -> None:
    """Check that States.ALL is in the last Retrier or Catcher only, as ASL demands.

    It takes every error, so that an entry after it could never be used.
    """
    for index, node in enumerate(entries):
        names = node.get("ErrorEquals")
        if isinstance(names, list) and ALL in names and index < len(entries) - 1:
            message = f"'{ALL}' must be in the last entry"
            node.error("ErrorEquals", message)
            after = entries[index + 1]
            node.problems.warning(
                after.pointer, "This entry can never be used", DiagnosticCode.CATCH_UNUSED
            )
