"""The reader of the rules of a Choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import Literal
from engine.data.jsonata import is_jsonata
from engine.data.paths import PathSyntaxError, compile_path
from engine.language.choice import (
    COMPARISONS,
    LOGIC,
    PRESENCE,
    TYPE_TESTS,
    WITH_PATH,
    And,
    ChoiceCondition,
    Comparison,
    Jsonata,
    Not,
    Or,
    Presence,
    parse_rfc3339,
)
from engine.language.model import ChoiceRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Expression
    from engine.language.model import DataFlow
    from engine.language.node import DefinitionNode

_TOP = ("Next", "Comment", "Assign", "Output")
_MAX_DEPTH = 50


def read_choice_rules(
    node: DefinitionNode, data_flow: Callable[[DefinitionNode], DataFlow]
) -> tuple[ChoiceRule, ...]:
    """Read ``Choices``; ``data_flow`` reads a rule's Assign and Output."""
    if node.has("Choices") and node.get("Choices") == []:
        node.error("Choices", "Value cannot be empty")
    rules = []
    for rule in node.objects("Choices"):
        if not rule.has("Next"):
            rule.error("", "These fields are required: [Next]")
        condition = _read_jsonata_condition(rule) if node.jsonata else _read_condition(rule, 0)
        following = rule.text("Next")
        rules.append(ChoiceRule(condition=condition, next=following or "", data=data_flow(rule)))
    return tuple(rules)


def _read_jsonata_condition(rule: DefinitionNode) -> ChoiceCondition:
    for name in rule.value:
        if name not in (*_TOP, "Condition"):
            rule.error(name, f"Field '{name}' is not supported by the query language 'JSONata'")
    value = rule.get("Condition")
    if not rule.has("Condition"):
        rule.error("", "These fields are required: [Condition]")
    elif isinstance(value, bool):
        return Jsonata(Literal(value))
    elif expression := rule.expression("Condition"):
        return Jsonata(expression)
    return Jsonata(Literal(value=False))


def _read_condition(rule: DefinitionNode, depth: int) -> ChoiceCondition:
    # A rule with a problem is replaced by one that harms nothing: the machine is never handed out.
    nothing = Presence(Literal(None), wanted=True)
    if depth > _MAX_DEPTH:
        rule.error("", f"Nested deeper than {_MAX_DEPTH} levels")
        return nothing
    known = [name for name in rule.value if _is_operator(name)]
    for name in rule.value:
        if name not in (*known, *_TOP, "Variable") or (depth and name == "Next"):
            rule.error(name, f"Field '{name}' is not supported")
    if len(known) != 1:
        got = ", ".join(known) or "none"
        rule.error("", f"A choice rule must have exactly one comparison operator: got {got}")
        return nothing
    if known[0] in LOGIC:
        return _read_logic(rule, known[0], depth)
    return _read_comparison(rule, known[0]) or nothing


def _is_operator(name: str) -> bool:
    base = name.removesuffix("Path")
    # Every comparison has a twin that reads its value by a path, but for StringMatches.
    return (
        name in COMPARISONS
        or name in TYPE_TESTS
        or name in (PRESENCE, *LOGIC)
        or (name != base and base in WITH_PATH)
    )


def _read_logic(rule: DefinitionNode, name: str, depth: int) -> ChoiceCondition:
    if rule.has("Variable"):
        rule.error("Variable", f"Field 'Variable' is not supported beside '{name}'")
    if name == "Not":
        inner = rule.child("Not")
        if inner is None:
            return Presence(Literal(None), wanted=True)
        return Not(_read_condition(inner, depth + 1))
    if rule.get(name) == []:
        rule.error(name, "Value cannot be empty")
    rules = tuple(_read_condition(inner_rule, depth + 1) for inner_rule in rule.objects(name))
    return And(rules) if name == "And" else Or(rules)


def _read_comparison(rule: DefinitionNode, name: str) -> ChoiceCondition | None:
    if not rule.has("Variable"):
        rule.error("", "These fields are required: [Variable]")
        return None
    variable = _read_path(rule, "Variable")
    if variable is None:
        return None
    value = rule.get(name)
    if name == PRESENCE or name in TYPE_TESTS:
        if not isinstance(value, bool):
            rule.error(name, f"The value for the field '{name}' must be a boolean")
            return None
        if name == PRESENCE:
            return Presence(variable, value)
        return Comparison(variable, TYPE_TESTS[name], Literal(value), rule.get("Variable"))
    if name in COMPARISONS:
        _check_constant(rule, name, value)
        return Comparison(variable, COMPARISONS[name], Literal(value), rule.get("Variable"))
    other = _read_path(rule, name)
    test = COMPARISONS[name.removesuffix("Path")]
    return None if other is None else Comparison(variable, test, other, rule.get("Variable"))


def _read_path(rule: DefinitionNode, name: str) -> Expression | None:
    value = rule.get(name)
    try:
        if isinstance(value, str) and not is_jsonata(value):
            return compile_path(value)
    except PathSyntaxError:
        pass
    rule.error(name, f"The value for the field '{name}' must be a valid JSONPath")
    return None


def _check_constant(rule: DefinitionNode, name: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name.startswith("Numeric"):
        good, wanted = number, "a number"
    elif name.startswith("Boolean"):
        good, wanted = isinstance(value, bool), "a boolean"
    elif name.startswith("Timestamp"):
        good, wanted = parse_rfc3339(value) is not None, "an RFC3339 timestamp"
    else:
        good, wanted = isinstance(value, str), "a string"
    if not good:
        rule.error(name, f"The value for the field '{name}' must be {wanted}: got {value!r}")
