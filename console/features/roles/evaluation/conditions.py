"""Evaluate the Condition of a policy statement for a call whose context is known in part.

The context maps a condition key to its values; () means that the call certainly lacks the key, a
missing key is unknown. Source: "IAM JSON policy elements: Condition operators".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.features.roles.evaluation.patterns import Fit, has_holes, match_arn, match_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Context = Mapping[str, tuple[str, ...]]
    """Key of a condition, in small letters -> the values of the call."""

_ALL, _ANY = "ForAllValues:", "ForAnyValue:"


def _exact(pattern: str, value: str) -> Fit:
    return match_text(pattern, value, wildcards=False)


def _folded(pattern: str, value: str) -> Fit:
    return match_text(pattern.lower(), value.lower(), wildcards=False)


def _compared(holds: Callable[[float, float], bool]) -> Callable[[str, str], Fit]:
    def compare(pattern: str, value: str) -> Fit:
        if has_holes(pattern) or has_holes(value):
            return Fit.MAYBE
        try:
            return Fit.ALWAYS if holds(float(value), float(pattern)) else Fit.NEVER
        except ValueError:
            return Fit.NEVER

    return compare


_OPERATORS: dict[str, tuple[Callable[[str, str], Fit], bool]] = {
    "stringequals": (_exact, False),
    "stringnotequals": (_exact, True),
    "stringequalsignorecase": (_folded, False),
    "stringnotequalsignorecase": (_folded, True),
    "stringlike": (match_text, False),
    "stringnotlike": (match_text, True),
    "arnequals": (match_arn, False),
    "arnlike": (match_arn, False),
    "arnnotequals": (match_arn, True),
    "arnnotlike": (match_arn, True),
    "bool": (_folded, False),
    "numericequals": (_compared(lambda value, limit: value == limit), False),
    "numericnotequals": (_compared(lambda value, limit: value == limit), True),
    "numericlessthan": (_compared(lambda value, limit: value < limit), False),
    "numericlessthanequals": (_compared(lambda value, limit: value <= limit), False),
    "numericgreaterthan": (_compared(lambda value, limit: value > limit), False),
    "numericgreaterthanequals": (_compared(lambda value, limit: value >= limit), False),
}
"""Lower-case operator -> its comparison with the policy's value, and whether it is negated."""


def match_condition(condition: Mapping[str, Any], context: Context) -> tuple[Fit, list[str]]:
    """Evaluate a Condition: all its operators and keys must match.

    Return also the reasons why the outcome is uncertain.
    """
    outcome, reasons = Fit.ALWAYS, []
    for operator, keys in condition.items():
        for key, expected in keys.items():
            held, reason = _match_key(operator, key, expected, context)
            outcome = min(outcome, held)
            if reason:
                reasons.append(reason)
    return outcome, [] if outcome is Fit.NEVER else reasons


def _match_key(operator: str, key: str, expected: Any, context: Context) -> tuple[Fit, str]:
    """Evaluate one operator for one key; the reason is "" for a certain outcome."""
    name = operator.lower()
    every, some = name.startswith(_ALL.lower()), name.startswith(_ANY.lower())
    name = name.rpartition(":")[2]
    optional = name.endswith("ifexists")
    name = name.removesuffix("ifexists")
    values = context.get(key.lower())
    patterns = [_as_text(value) for value in _as_list(expected)]
    if name == "null":
        return _match_null(key, values, patterns)
    if name not in _OPERATORS:
        return Fit.MAYBE, f"the condition operator {operator} is not evaluated"
    if values is None:
        return Fit.MAYBE, f"the condition key {key} is not known before the call"
    compare, negated = _OPERATORS[name]
    if not values and some:  # an absent key has no value that could match or differ
        reason = f"AWS does not document {operator} without the key {key}"
        return (Fit.MAYBE, reason) if optional else (Fit.NEVER, "")
    if not values:
        return (Fit.ALWAYS if optional or negated or every else Fit.NEVER), ""
    matches = [_match_value(compare, patterns, value, negated=negated) for value in values]
    # several values of a key without ForAllValues: one that matches is enough; for a negated
    # operator, each has to differ
    outcome = min(matches) if every or (negated and not some) else max(matches)
    reason = f"{operator} of {key} compares a value that is not known" if outcome == 1 else ""
    return outcome, reason


def _match_value(
    compare: Callable[[str, str], Fit],
    patterns: Sequence[str],
    value: str,
    *,
    negated: bool,
) -> Fit:
    outcome = max((compare(pattern, value) for pattern in patterns), default=Fit.NEVER)
    return outcome.inverted() if negated else outcome


def _match_null(
    key: str, values: tuple[str, ...] | None, patterns: Sequence[str]
) -> tuple[Fit, str]:
    if values is None:
        return Fit.MAYBE, f"the condition key {key} is not known before the call"
    absent = "false" if values else "true"
    return (Fit.ALWAYS if absent in [text.lower() for text in patterns] else Fit.NEVER), ""


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
