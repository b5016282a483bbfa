"""The form of a state in the editor: its fields by type and query language, and parsing them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, assert_never

import engine
from console.features.editor.edits.copying import copied_text
from console.features.editor.edits.definition_tree import one_line, transitions_of
from console.features.editor.edits.operations import JSON_NULL
from console.features.editor.state_rules import (
    StateRuleRow,
    json_value,
    path_value,
    read_catchers,
    read_retriers,
    read_rules,
    rule_rows,
    same_text,
    value_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.features.editor.edits.definition_tree import DefinitionTree, StatePlace
    from console.features.editor.edits.json_tree import JsonContainer

END_OPTION = ""
"""The option for the end of a block; no state has this name."""
_OWN = {"Type", "End", "Branches", "ItemProcessor", "Iterator", "Choices", "Retry", "Catch"}
_PATHS = {"InputPath", "OutputPath", "ResultPath"}
"""Paths that may be null, which discards the data."""
_TEXT = {"Comment", "ItemsPath", "Label", "Resource"} | {
    *("SecondsPath", "Timestamp", "TimestampPath", "TimeoutSecondsPath", "HeartbeatSecondsPath"),
    *("Error", "ErrorPath", "Cause", "CausePath", "MaxConcurrencyPath"),
    *("ToleratedFailureCountPath", "ToleratedFailurePercentagePath"),
}
_NUMBER = {"Seconds", "TimeoutSeconds", "HeartbeatSeconds", "MaxConcurrency"} | {
    *("ToleratedFailureCount", "ToleratedFailurePercentage"),
}
_FIRST = {
    "Task": ("Resource", "Parameters", "Arguments"),
    "Wait": ("Seconds",),
    "Pass": ("Result", "Output", "Parameters"),
    "Fail": ("Error", "Cause"),
    "Map": ("ItemsPath", "Items", "MaxConcurrency"),
    "Parallel": (),
    "Choice": (),
    "Succeed": (),
}
"""Fields that a form always shows."""
_TARGETS = {"lambda:invoke": "FunctionName", "states:startExecution": "StateMachineArn"}
_LABELS = {"FunctionName": "Function", "StateMachineArn": "State machine"}


class FieldKind(StrEnum):
    """How a field is displayed; templates use the values."""

    TEXT = "text"  # one line
    NUMBER = "number"  # one line: a number, or a JSONata expression
    JSON = "json"  # several lines of JSON, or a JSONata expression
    PATH = "path"  # one line: a path, or null
    STATE = "state"  # a choice of states
    CHOICE = "choice"  # a choice of fixed values


@dataclass(frozen=True, slots=True)
class FormField:
    """One input. ``options``: (value, label) of a select; ``suggestions``: id of a datalist."""

    name: str
    label: str
    kind: FieldKind
    value: str
    options: tuple[tuple[str, str], ...] = ()
    suggestions: str = ""
    shown: bool = True

    @property
    def input_name(self) -> str:
        """Return the name of the input."""
        return f"f-{self.name}"

    @property
    def lines(self) -> bool:
        """Return whether the value needs an input of several lines."""
        return self.kind is FieldKind.JSON or one_line(self.value) != self.value

    @property
    def rows(self) -> int:
        """Return the number of lines of its input."""
        return min(max(self.value.count("\n") + 1, 2), 14)


@dataclass(frozen=True, slots=True)
class EdgeChoice:
    """A transition out of a state, in which something can be inserted. ``label``: in words."""

    source: str
    target: str
    occurrence: int
    label: str


@dataclass(frozen=True, slots=True)
class StateForm:
    """The form of a state. ``siblings``: the names of the states in its block.

    ``copied``: the text for the clipboard.
    """

    name: str
    type: str
    language: str
    fields: list[FormField]
    rules: list[StateRuleRow] = field(default_factory=list)
    siblings: tuple[str, ...] = ()
    edges: tuple[EdgeChoice, ...] = ()
    branches: tuple[int, ...] = ()
    copied: str = ""

    @property
    def recovers(self) -> bool:
        """Return whether the state may have Retry and Catch."""
        return self.type in ("Task", "Parallel", "Map")

    @property
    def main_fields(self) -> list[FormField]:
        """Return the inputs that are always visible."""
        return [each for each in self.fields if each.shown]

    @property
    def more_fields(self) -> list[FormField]:
        """Return the inputs of rare fields that the state does not have."""
        return [each for each in self.fields if not each.shown]


# -- showing ---------------------------------------------------------------------------------------


def state_form(tree: DefinitionTree, name: str) -> StateForm:
    """Return the form of a state; raise ``EditRefused`` for an unknown name."""
    place = tree.place(name)
    language = tree.language(name)
    siblings = tuple(entry.key for entry in place.block.states.entries)
    fields = [
        _form_field(place, each, siblings)
        for each in engine.fields_of(place.type, engine.QueryLanguage(language))
        if each not in _OWN
    ]
    fields.sort(key=lambda each: _rank(place.type, each))
    branches = place.node.child("Branches")
    return StateForm(
        name=name,
        type=place.type,
        language=language,
        fields=_special_fields(place) + fields,
        rules=rule_rows(place.node, language),
        siblings=siblings,
        edges=_edges(place),
        branches=tuple(range(len(branches.entries))) if branches else (),
        copied=copied_text(tree, name),
    )


def _rank(kind: str, shown: FormField) -> tuple[int, int]:
    first = _FIRST.get(kind, ())
    if shown.name in first:
        return 0, first.index(shown.name)
    return (2, 0) if shown.name in ("Next", "Default") else (1, 0)


def _form_field(place: StatePlace, name: str, siblings: tuple[str, ...]) -> FormField:
    shown = place.node.find(name) is not None or name in _FIRST.get(place.type, ())
    value = place.node.value(name)
    if name in ("Next", "Default"):
        last = (END_OPTION, "End") if name == "Next" else (END_OPTION, "(none)")
        options = (*((each, each) for each in siblings if each != place.name), last)
        chosen = value if isinstance(value, str) else END_OPTION
        if chosen not in {option for option, _ in options}:
            missing = "" if chosen in siblings else " (missing)"
            options = ((chosen, f"{chosen}{missing}"), *options)
        return FormField(name, name, FieldKind.STATE, chosen, options)
    if name == "QueryLanguage":
        options = (
            ("", "Same as the state machine"),
            ("JSONPath", "JSONPath"),
            ("JSONata", "JSONata"),
        )
        return FormField(name, name, FieldKind.CHOICE, value or "", options, shown=shown)
    if name in _PATHS:
        is_null = value is None and place.node.find(name) is not None
        text = "null" if is_null else _shown_value(value)
        return FormField(name, name, FieldKind.PATH, text, shown=shown)
    kind = FieldKind.JSON
    if name in _TEXT or name in _NUMBER:
        kind = FieldKind.TEXT if name in _TEXT else FieldKind.NUMBER
    suggestions = "resources" if name == "Resource" else ""
    return FormField(name, name, kind, _shown_value(value), suggestions=suggestions, shown=shown)


def _shown_value(value: Any) -> str:
    return "" if value is None else value_text(value)


def _special_fields(place: StatePlace) -> list[FormField]:
    """Return the inputs of nested values: the called function, the mode of a Map."""
    arguments = place.node.child("Parameters") or place.node.child("Arguments")
    action = place.node.text("Resource").partition(":::")[2]
    inputs: list[FormField] = []
    for start, key in _TARGETS.items():
        if arguments is not None and action.startswith(start):
            text = _shown_value(arguments.value(key))
            inputs.append(FormField(f"@{key}", _LABELS[key], FieldKind.TEXT, text, suggestions=key))
    processor = place.node.child("ItemProcessor")
    if processor is not None:
        config = processor.child("ProcessorConfig")
        mode = (config.text("Mode") if config else "") or "INLINE"
        options = (("INLINE", "Inline"), ("DISTRIBUTED", "Distributed"))
        inputs.append(FormField("@Mode", "Mode", FieldKind.CHOICE, mode, options))
    return inputs


def _edges(place: StatePlace) -> tuple[EdgeChoice, ...]:
    seen: dict[str, int] = {}
    edges: list[EdgeChoice] = []
    rules = catchers = 0
    for each in transitions_of(place.node):
        occurrence = seen.get(each.target, 0)
        seen[each.target] = occurrence + 1
        label = "after"
        if each.key == "Default":
            label = "to default"
        elif each.rules is not None and place.type == "Choice":
            rules += 1
            label = f"to rule {rules}"
        elif each.rules is not None:
            catchers += 1
            label = f"to catch {catchers}"
        edges.append(EdgeChoice(place.name, each.target, occurrence, label))
    if place.node.find("End") is not None:
        edges.append(EdgeChoice(place.name, "", 0, "after"))
    return tuple(edges)


# -- reading ---------------------------------------------------------------------------------------


def read_fields(tree: DefinitionTree, name: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return field -> value of the fields that the form changed, for ``put_fields``.

    Raise ``EditRefused`` for invalid JSON.
    """
    form = state_form(tree, name)
    node = tree.place(name).node
    changed: dict[str, Any] = {}
    for each in form.fields:
        text = sent.get(each.input_name, each.value)
        if same_text(text, each.value, lines=each.lines):
            continue
        text = text.replace("\r\n", "\n")
        if each.name.startswith("@"):
            changed |= _special_value(node, each.name[1:], text)
        else:
            changed[each.name] = _value(each, text)
    changed |= read_retriers(node, sent)
    changed |= read_catchers(node, form.language, sent)
    return changed | read_rules(node, form.language, sent)


def _value(shown: FormField, text: str) -> Any:
    if shown.kind is FieldKind.STATE and text == END_OPTION:
        return "" if shown.name == "Next" else None
    if not text.strip():
        return None
    match shown.kind:
        case FieldKind.NUMBER:
            return int(text) if text.strip().isdecimal() else text.strip()
        case FieldKind.PATH:
            return JSON_NULL if path_value(text) is None else text.strip()
        case FieldKind.JSON:
            return json_value(shown.label, text)
        case FieldKind.TEXT | FieldKind.STATE | FieldKind.CHOICE:
            return text
        case _:
            assert_never(shown.kind)


def _special_value(node: JsonContainer, key: str, text: str) -> dict[str, Any]:
    if key == "Mode":
        processor = node.value("ItemProcessor")
        config = {**processor.get("ProcessorConfig", {}), "Mode": text}
        if text == "DISTRIBUTED":
            config.setdefault("ExecutionType", "STANDARD")
        else:
            config.pop("ExecutionType", None)
        rest = {name: value for name, value in processor.items() if name != "ProcessorConfig"}
        return {"ItemProcessor": {"ProcessorConfig": config, **rest}}
    holder = "Arguments" if node.child("Arguments") else "Parameters"
    return {holder: {**node.value(holder), key: text}}
