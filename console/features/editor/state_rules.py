"""Rows of a state's form with several fields: rules of a Choice, Retriers, Catchers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import engine
from console.features.editor.edits.definition_tree import EditRefused, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.features.editor.edits.json_tree import JsonContainer

_ORDERINGS = ("Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
_CONSTANTS = (
    *("StringEquals", "StringMatches"),
    *(f"String{ordering}" for ordering in _ORDERINGS[1:]),
    *(f"Numeric{ordering}" for ordering in _ORDERINGS),
    "BooleanEquals",
    *(f"Timestamp{ordering}" for ordering in _ORDERINGS),
)
OPERATORS = (
    *_CONSTANTS,
    *("IsPresent", "IsNull", "IsString", "IsNumeric", "IsBoolean", "IsTimestamp"),
    *(f"{name}Path" for name in _CONSTANTS if name != "StringMatches"),
)
_NUMBERS = {
    "IntervalSeconds": "interval",
    "MaxAttempts": "attempts",
    "BackoffRate": "backoff",
    "MaxDelaySeconds": "delay",
}
_MORE_FIELDS = {
    ("rule", "JSONPath"): ("Assign",),
    ("rule", "JSONata"): ("Output", "Assign"),
    ("catch", "JSONPath"): ("ResultPath", "Assign"),
    ("catch", "JSONata"): ("Output", "Assign"),
}
"""Optional fields of a rule or Catcher besides condition and target."""


@dataclass(frozen=True, slots=True)
class StateRuleRow:
    """A row: ``kind`` is ``rule``, ``retry`` or ``catch``; ``values``: input -> its text.

    ``operators``: the choices for a rule with one comparison; ``raw``: a condition that only JSON
    can express; ``more``: field -> text of optional fields.
    """

    kind: str
    index: int
    values: Mapping[str, str]
    operators: tuple[str, ...] = ()
    raw: bool = False
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Return the prefix of its inputs' names."""
        return f"{self.kind}-{self.index}"

    @property
    def has_more(self) -> bool:
        """Return whether an optional field is set."""
        return any(self.more.values())

    @property
    def rows(self) -> int:
        """Return the number of lines of its condition's input."""
        return min(max(self.values.get("condition", "").count("\n") + 1, 2), 10)


def rule_rows(state: JsonContainer, language: str) -> list[StateRuleRow]:
    """Return the rows of a state."""
    rows = [
        _choice_row(index, rule, language)
        for index, rule in enumerate(_list(state, "Choices"))
        if isinstance(rule, dict)
    ]
    for index, retrier in enumerate(_list(state, "Retry")):
        values = {"errors": _errors(retrier)}
        values |= {name: _shown(retrier.get(key)) for key, name in _NUMBERS.items()}
        values["jitter"] = _shown(retrier.get("JitterStrategy"))
        rows.append(StateRuleRow("retry", index, values))
    for index, catcher in enumerate(_list(state, "Catch")):
        values = {"errors": _errors(catcher), "next": str(catcher.get("Next", ""))}
        more = _more_fields("catch", catcher, language)
        rows.append(StateRuleRow("catch", index, values, more=more))
    return rows


def _more_fields(kind: str, rule: Mapping[str, Any], language: str) -> dict[str, str]:
    names = _MORE_FIELDS[kind, language]
    return {name: value_text(rule[name]) if name in rule else "" for name in names}


def value_text(value: Any) -> str:
    """Return a value as the text of an input: strings unchanged, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def json_value(label: str, text: str) -> Any:
    """Parse JSON, or keep a JSONata expression as text; raise ``EditRefused``."""
    if text.strip().startswith("{%"):
        return text.strip()
    try:
        return engine.loads(text)
    except engine.JsonTextError as error:
        place = f" at line {error.line}, column {error.column}" if error.line else ""
        raise EditRefused(f"{label}: this is not JSON{place}.") from None


def _list(state: JsonContainer, key: str) -> list[Any]:
    value = state.value(key)
    return value if isinstance(value, list) else []


def _errors(rule: Mapping[str, Any]) -> str:
    errors = rule.get("ErrorEquals")
    return ", ".join(map(str, errors)) if isinstance(errors, list) else ""


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _choice_row(index: int, rule: dict[str, Any], language: str) -> StateRuleRow:
    values = {"next": str(rule.get("Next", ""))}
    condition = {key: value for key, value in rule.items() if key != "Next"}
    more = _more_fields("rule", rule, language)
    if language == "JSONata":
        values["condition"] = value_text(rule.get("Condition", ""))
        return StateRuleRow("rule", index, values, more=more)
    operators = [key for key in condition if key not in ("Variable", "Comment", "Assign")]
    if len(operators) != 1 or "Variable" not in condition:
        text = json.dumps(condition, indent=2, ensure_ascii=False)
        return StateRuleRow("rule", index, values | {"condition": text}, raw=True)
    operator = operators[0]
    choices = OPERATORS if operator in OPERATORS else (operator, *OPERATORS)
    literal = condition[operator]
    text = literal if isinstance(literal, str) else json.dumps(literal)
    values |= {"variable": str(condition["Variable"]), "operator": operator, "value": text}
    return StateRuleRow("rule", index, values, operators=choices, more=more)


def same_text(sent: str, shown: str, *, lines: bool = False) -> bool:
    """Return whether an input is unchanged. ``lines``: the input has several lines.

    A single-line input drops line breaks; a multi-line one normalizes them and drops a leading one.
    """
    if not lines:
        return one_line(sent).strip() == one_line(shown).strip()
    ends = [text.replace("\r\n", "\n").replace("\r", "\n").strip() for text in (sent, shown)]
    return ends[0] == ends[1]


# -- reading ---------------------------------------------------------------------------------------


def read_rules(state: JsonContainer, language: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return ``Choices`` if the form changed them, else None; raise ``EditRefused``."""
    rules = _list(state, "Choices")
    rows = {row.index: row for row in rule_rows(state, language) if row.kind == "rule"}
    new_rules = [
        _read_rule(rows[index], rule, sent) if index in rows else rule
        for index, rule in enumerate(rules)
        if f"rule-{index}-delete" not in sent
    ]
    if rules and not new_rules:
        raise EditRefused("A Choice needs a rule: delete the Choice instead.")
    return {} if new_rules == rules else {"Choices": new_rules}


def _read_rule(row: StateRuleRow, rule: dict[str, Any], sent: Mapping[str, str]) -> dict[str, Any]:
    values = {
        name: row_text
        if same_text(
            text := sent.get(f"{row.prefix}-{name}", row_text), row_text, lines=name == "condition"
        )
        else text
        for name, row_text in row.values.items()
    }
    if values == row.values:
        return _with_more(rule, row, sent)
    new_rule: dict[str, Any]
    if row.raw:
        new_rule = _condition(values["condition"])
    elif "condition" in values:
        typed = values["condition"].strip()
        new_rule = {**rule, "Condition": typed == "true" if typed in ("true", "false") else typed}
    else:
        old = row.values["operator"]
        literal = _literal(values["operator"], values["value"].strip())
        new_rule = {
            (values["operator"] if key == old else key): (
                literal
                if key == old
                else values["variable"].strip()
                if key == "Variable"
                else value
            )
            for key, value in rule.items()
        }
    new_rule.pop("Next", None)
    return _with_more({**new_rule, "Next": values["next"]}, row, sent)


def _with_more(rule: dict[str, Any], row: StateRuleRow, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return a rule or Catcher with the typed optional fields."""
    new_rule = dict(rule)
    for name, old_text in row.more.items():
        text = sent.get(f"{row.prefix}-more-{name}", old_text)
        if same_text(text, old_text, lines=True):
            continue
        if not text.strip():
            new_rule.pop(name, None)
        elif name == "ResultPath":
            new_rule[name] = path_value(text)
        else:
            new_rule[name] = json_value(name, text)
    # Next stands last, as a person writes it
    following = {"Next": new_rule.pop("Next")} if "Next" in new_rule and new_rule != rule else {}
    return new_rule | following


def path_value(text: str) -> str | None:
    """Return a path, or None for null, which discards the data."""
    return None if text.strip() == "null" else text.strip()


def _condition(text: str) -> dict[str, Any]:
    try:
        value = engine.loads(text)
    except engine.JsonTextError:
        value = None
    if not isinstance(value, dict):
        raise EditRefused("The condition of a rule: this is not a JSON object.")
    return value


def _literal(operator: str, text: str) -> Any:
    """Return the value for a comparison: a number, a boolean, or text."""
    if operator.endswith("Path") or operator.startswith(("String", "Timestamp")):
        return text
    if operator.startswith(("Is", "Boolean")):
        if text not in ("true", "false"):
            raise EditRefused(f"{operator} must be true or false, not “{text}”.")
        return text == "true"
    return number_value(operator, text)


def number_value(label: str, text: str) -> int | float:
    """Parse a number; raise ``EditRefused``."""
    try:
        value = engine.loads(text)
    except engine.JsonTextError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EditRefused(f"{label} must be a number, not “{text}”.")
    return value


def read_retriers(state: JsonContainer, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return ``Retry`` if the form changed it, None for none; raise ``EditRefused``."""

    def read(index: int, retrier: dict[str, Any]) -> dict[str, Any]:
        new_retrier = _with_errors(retrier, sent, f"retry-{index}")
        for key, name in _NUMBERS.items():
            text = sent.get(f"retry-{index}-{name}", _shown(retrier.get(key))).strip()
            if text == _shown(retrier.get(key)):
                continue
            new_retrier.pop(key, None)
            new_retrier |= {key: number_value(key, text)} if text else {}
        jitter = sent.get(f"retry-{index}-jitter", _shown(retrier.get("JitterStrategy")))
        if jitter != _shown(retrier.get("JitterStrategy")):
            new_retrier.pop("JitterStrategy", None)
            new_retrier |= {"JitterStrategy": jitter} if jitter else {}
        return new_retrier

    return _read_list(state, "Retry", "retry", sent, read)


def read_catchers(state: JsonContainer, language: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return ``Catch`` if the form changed it, None for none; raise ``EditRefused``."""
    rows = {row.index: row for row in rule_rows(state, language) if row.kind == "catch"}

    def read(index: int, catcher: dict[str, Any]) -> dict[str, Any]:
        new_catcher = _with_errors(catcher, sent, f"catch-{index}")
        target = sent.get(f"catch-{index}-next", str(catcher.get("Next", "")))
        if target != catcher.get("Next"):
            new_catcher = {**new_catcher, "Next": target}
        return _with_more(new_catcher, rows[index], sent)

    return _read_list(state, "Catch", "catch", sent, read)


def _with_errors(rule: dict[str, Any], sent: Mapping[str, str], prefix: str) -> dict[str, Any]:
    text = sent.get(f"{prefix}-errors", _errors(rule))
    if same_text(text, _errors(rule)):
        return dict(rule)
    errors = [name.strip() for name in text.split(",") if name.strip()]
    if not errors:
        raise EditRefused("Name at least one error, such as States.ALL.")
    return {**rule, "ErrorEquals": errors}


def _read_list(
    state: JsonContainer, key: str, prefix: str, sent: Mapping[str, str], read: Any
) -> dict[str, Any]:
    rules = _list(state, key)
    new_rules = [
        read(index, rule)
        for index, rule in enumerate(rules)
        if f"{prefix}-{index}-delete" not in sent
    ]
    return {} if new_rules == rules else {key: new_rules or None}
