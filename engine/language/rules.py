"""Read the rules of a Choice state in a definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import Literal
from engine.data.paths import PathSyntaxError, compile_path
from engine.data.timestamps import parse_timestamp
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
)
from engine.language.model import ChoiceRule
from engine.language.wording import one_missing, only_one_of, wrong_language

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Expression
    from engine.language.model import DataFlow
    from engine.language.node import DefinitionNode

TOP_FIELDS = ("Next", "Comment", "Assign")
_SELECTORS = (*LOGIC, "Variable", "Condition")
OPERATORS = (*COMPARISONS, *(f"{name}Path" for name in WITH_PATH), *TYPE_TESTS, PRESENCE)
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
        if name not in (*TOP_FIELDS, "Output", "Condition"):
            _refuse_field(rule, name)
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
    nothing = Presence(Literal(None), expected=True)
    if depth > _MAX_DEPTH:
        rule.error("", f"Nested deeper than {_MAX_DEPTH} levels")
        return nothing
    for name in rule.value:
        if name not in (*OPERATORS, *LOGIC, *TOP_FIELDS, "Variable") or (depth and name == "Next"):
            _refuse_field(rule, name)
    selectors = [name for name in _SELECTORS if rule.has(name)]
    operators = [name for name in OPERATORS if rule.has(name)]
    if len(selectors) != 1:
        names = ", ".join(_SELECTORS)
        rule.error("", f"The object must have only one of the following fields, [{names}]")
    if len(operators) > 1:
        rule.error("", only_one_of(operators))
    if len(selectors) != 1 or len(operators) > 1:
        return nothing
    if selectors[0] in LOGIC:
        return _read_logic(rule, selectors[0], depth)
    if not operators:
        rule.error("", one_missing(OPERATORS))
        return nothing
    return _read_comparison(rule, operators[0]) or nothing


def _refuse_field(rule: DefinitionNode, name: str) -> None:
    if name == "Output" and not rule.jsonata:  # earlier releases took it, without an effect
        rule.newer_error("", wrong_language(name, rule.language))
    elif name == "Condition" or (rule.jsonata and name in (*OPERATORS, *_SELECTORS)):
        rule.error("", wrong_language(name, rule.language))
    else:
        rule.error("", f"Field '{name}' is not supported")


def _read_logic(rule: DefinitionNode, name: str, depth: int) -> ChoiceCondition:
    if name == "Not":
        inner = rule.child("Not")
        if inner is None:
            return Presence(Literal(None), expected=True)
        return Not(_read_condition(inner, depth + 1))
    if rule.get(name) == []:
        rule.error(name, "Value cannot be empty")
    rules = tuple(_read_condition(inner_rule, depth + 1) for inner_rule in rule.objects(name))
    return And(rules) if name == "And" else Or(rules)


def _read_comparison(rule: DefinitionNode, name: str) -> ChoiceCondition | None:
    variable = _read_path(rule, "Variable")
    if variable is None:
        return None
    value = rule.get(name)
    if name == PRESENCE or name in TYPE_TESTS:
        if not isinstance(value, bool):
            rule.error(name, "Expected value of type Boolean")
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
    if not isinstance(value, str):
        rule.error(name, "Expected value of type String")
        return None
    if not value.startswith("$"):
        message = "Value is not a Reference Path: Reference path didn't start with '$'"
        rule.error(name, message)
        return None
    try:
        return compile_path(value)
    except PathSyntaxError:
        rule.error(name, "Value must be a valid JSONPath.")
        return None


def check_timestamp(node: DefinitionNode, name: str) -> None:
    """Report a field that is not an RFC 3339 timestamp; earlier releases accepted others."""
    value = node.get(name)
    if parse_timestamp(value) is None:
        note = node.newer_error if isinstance(value, str) else node.error
        note(name, "String does not match RFC3339 timestamp")


def _check_constant(rule: DefinitionNode, name: str, value: Any) -> None:
    if name.startswith("Timestamp"):
        check_timestamp(rule, name)
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name.startswith("Numeric"):
        good, problem = number, "Expected value of type Number"
    elif name.startswith("Boolean"):
        good, problem = isinstance(value, bool), "Expected value of type Boolean"
    else:
        good, problem = isinstance(value, str), "Expected value of type String"
    if not good:
        rule.error(name, problem)
